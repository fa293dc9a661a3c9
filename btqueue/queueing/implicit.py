"""Roots found by any search, differentiated by the implicit function theorem.

Where ``r(x, p) = 0``, the derivative solves ``r_x x' = -r_p p'``: one linear system, however ``x`` was found.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.custom_derivatives import SymbolicZero
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


@partial(at_root.defjvp, symbolic_zeros=True)
def _at_root_jvp(
    function: Any, search: Any, primals: tuple[Tree], tangents: tuple[Tree]
) -> tuple[tuple[Tree, Tree], tuple[Tree, Tree]]:
    """Linearise the function once, in the unknowns and in those parameters that move."""
    (parameters,) = primals
    leaves, tree = jax.tree.flatten(parameters)
    steps = jax.tree.leaves(tangents[0])
    moving = [place for place, step in enumerate(steps) if not isinstance(step, SymbolicZero)]
    found, _ = search(parameters)
    vector, unravel = ravel_pytree(found)

    def flat(unknown: Array, moved: list[Array]) -> tuple[Tree, Array]:
        there = leaves.copy()
        for place, leaf in zip(moving, moved, strict=True):
            there[place] = leaf
        outcome, residual = function(unravel(unknown), jax.tree.unflatten(tree, there))
        return outcome, ravel_pytree(residual)[0]

    (outcome, residual), slope = jax.linearize(flat, vector, [leaves[place] for place in moving])
    moves = [steps[place] for place in moving]
    still = jax.tree.map(jnp.zeros_like, moves)
    of_outcome, matrix = jax.vmap(lambda unit: slope(unit, still), out_axes=-1)(jnp.eye(vector.size))
    direct, pushed = slope(jnp.zeros_like(vector), moves)
    change = -jnp.linalg.solve(matrix, pushed)
    total = jax.tree.map(lambda slope, own: slope @ change + own, of_outcome, direct)
    return (outcome, unravel(residual)), (total, unravel(jnp.zeros_like(residual)))


def slopes_at_root(
    function: Callable[[Tree, Tree], tuple[dict[str, Array], Tree]],
    root: Tree,
    parameters: Tree,
    jacobian: Callable = jax.jacrev,
) -> dict[str, tuple[Array, ...]]:
    """Return the derivatives of an outcome at a known root, by name, in the order of the parameters' leaves.

    All come from one pass without a search, so that the program is a part of that of `at_root`'s derivatives.

    Args:
        function: of root and parameters; returns outcome and residual, which is 0 at the root.
        root: a tree of unknowns.
        parameters: a tree of arrays.
        jacobian: `jax.jacrev` or `jax.jacfwd`, whichever compiles faster.

    Example:
        >>> from btqueue.queueing.implicit import slopes_at_root
        >>> import jax.numpy as jnp
        >>> def square(root, number):
        ...     return {"root": root}, root**2 - number
        >>> slopes_at_root(square, jnp.asarray(2.0), jnp.asarray(4.0))["root"][0].tolist()
        0.25
    """
    vector, unravel = ravel_pytree((root, parameters))
    unknowns = ravel_pytree(root)[0].size

    def flat(vector: Array) -> tuple[dict[str, Array], Array]:
        outcome, residual = function(*unravel(vector))
        return outcome, ravel_pytree(residual)[0]

    direct, change = jacobian(flat)(vector)
    change = -jnp.linalg.solve(change[:, :unknowns], change[:, unknowns:])
    shapes = [np.shape(leaf) for leaf in jax.tree.leaves(parameters)]
    ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
    found = {}
    for name, by in direct.items():
        parts = jnp.split(by[..., :unknowns] @ change + by[..., unknowns:], ends, axis=-1)
        found[name] = tuple(
            part.reshape(*by.shape[:-1], *shape) for part, shape in zip(parts, shapes, strict=True)
        )
    return found
