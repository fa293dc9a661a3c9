"""Roots found by any search, differentiated by the implicit function theorem.

Where ``r(x, p) = 0``, the derivative solves ``r_x x' = -r_p p'``: one linear system, however ``x`` was found.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree

Tree = Any
Step = Callable[[Tree, Tree], Tree]


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

    Example:
        >>> from btqueue.queueing.implicit import at_root
        >>> import jax
        >>> import jax.numpy as jnp
        >>> def square(root, number):
        ...     return root, root**2 - number
        >>> def search(number):
        ...     root = jnp.sqrt(number)
        ...     return root, square(root, number)
        >>> round(float(jax.grad(lambda number: at_root(square, search, number)[0])(4.0)), 4)
        0.25
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
