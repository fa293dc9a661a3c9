"""Solutions found by iteration, differentiated by the implicit function theorem.

Where ``x = f(x, p)``, the derivative solves ``(I - f_x) x' = f_p p'``: one linear system, whatever the number
of iterations that led to ``x``. It is solved by the same iteration, which converges at the same rate, forward
and transposed alike.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

Tree = Any
Step = Callable[[Tree, Tree], Tree]


def distance(first: Tree, second: Tree) -> Array:
    """Sum of the absolute differences of all entries."""
    gaps = jax.tree.map(lambda a, b: jnp.abs(a - b).sum(), first, second)
    return jax.tree.reduce(jnp.add, gaps)


def _repeat(step: Callable[[Tree], Tree], start: Tree, tolerance: float, most: int) -> tuple[Tree, Array]:
    def unfinished(carry: tuple[Tree, Array, Array]) -> Array:
        _, gap, count = carry
        return (gap > tolerance) & (count < most)

    def advance(carry: tuple[Tree, Array, Array]) -> tuple[Tree, Array, Array]:
        state, _, count = carry
        new = step(state)
        return new, distance(new, state), count + 1

    state, _, count = jax.lax.while_loop(unfinished, advance, (start, jnp.asarray(jnp.inf), jnp.asarray(0)))
    return state, count


@partial(jax.custom_jvp, nondiff_argnums=(0, 3, 4))
def stationary_state(
    step: Step, parameters: Tree, start: Tree, tolerance: float, most: int
) -> tuple[Tree, Array]:
    """Iterate ``state = step(state, parameters)`` until it changes by less than ``tolerance``.

    Returns the state and the iterations taken, at most ``most``; whether that was enough is for the caller to
    see from ``distance(step(state, parameters), state)``. Differentiable in ``parameters`` both ways; the
    start has no influence. ``step`` must contract near the solution.
    """
    return _repeat(lambda state: step(state, parameters), start, tolerance, most)


@stationary_state.defjvp
def _stationary_state_jvp(
    step: Step, tolerance: float, most: int, primals: tuple[Tree, Tree], tangents: tuple[Tree, Tree]
) -> tuple[tuple[Tree, Array], tuple[Tree, np.ndarray]]:
    parameters, start = primals
    state, count = stationary_state(step, parameters, start, tolerance, most)
    _, pushed = jax.jvp(lambda p: step(state, p), (parameters,), (tangents[0],))

    def without_feedback(change: Tree) -> Tree:
        _, fed_back = jax.jvp(lambda x: step(x, parameters), (state,), (change,))
        return jax.tree.map(jnp.subtract, change, fed_back)

    def solve(operator: Callable[[Tree], Tree], right: Tree) -> Tree:
        def improve(change: Tree) -> Tree:
            return jax.tree.map(lambda x, b, ax: x + b - ax, change, right, operator(change))

        scale = jnp.maximum(distance(right, jax.tree.map(jnp.zeros_like, right)), 1e-300)
        unit = jax.tree.map(lambda b: b / scale, right)  # so that the tolerance is relative
        right = unit
        found, _ = _repeat(improve, unit, 1e-3 * tolerance, most)
        return jax.tree.map(lambda x: scale * x, found)

    change = jax.lax.custom_linear_solve(without_feedback, pushed, solve, solve)
    return (state, count), (change, np.zeros((), dtype=jax.dtypes.float0))


Evaluated = tuple[Tree, tuple[Tree, Tree]]
"""A tree of unknowns, with outcome and residual there."""


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def at_root(
    function: Callable[[Tree, Tree], tuple[Tree, Tree]],
    search: Callable[[Tree], Evaluated],
    parameters: Tree,
) -> tuple[Tree, Tree]:
    """Return ``function(root, parameters)`` at the root that ``search(parameters)`` finds.

    Differentiable in ``parameters`` both ways, at the cost of one dense linear system of the root's size.

    Args:
        function: of a tree of unknowns, and of parameters; returns outcome and residual, a tree like that of
            the unknowns, which is 0 at the root.
        search: finds the root; returns it with the function's value there, which it has from its last step: a
            second call would double the program (`unevaluated` is where such a search begins).
        parameters: a tree of arrays.

    Returns:
        Outcome and residual.
    """
    return search(parameters)[1]


def unevaluated(
    function: Callable[[Tree, Tree], tuple[Tree, Tree]], start: Tree, parameters: Tree
) -> Evaluated:
    """Return a start with zeros in the place of the function's value, for the state of a loop."""
    shapes = jax.eval_shape(function, start, parameters)
    return start, jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)


@at_root.defjvp
def _at_root_jvp(
    function: Any, search: Any, primals: tuple[Tree], tangents: tuple[Tree]
) -> tuple[Tree, Tree]:
    (parameters,) = primals
    found, _ = search(parameters)
    vector, unravel = ravel_pytree(found)

    def flat(unknown: Array, parameters: Tree) -> tuple[Tree, Array]:
        outcome, residual = function(unravel(unknown), parameters)
        return outcome, ravel_pytree(residual)[0]

    _, by_unknown = jax.linearize(lambda unknown: flat(unknown, parameters), vector)
    of_outcome, matrix = jax.vmap(by_unknown, out_axes=-1)(jnp.eye(vector.size))
    (outcome, residual), (direct, pushed) = jax.jvp(lambda p: flat(vector, p), (parameters,), tangents)
    change = -jnp.linalg.solve(matrix, pushed)
    total = jax.tree.map(lambda slope, own: slope @ change + own, of_outcome, direct)
    return (outcome, unravel(residual)), (total, unravel(jnp.zeros_like(residual)))
