"""Stationary vectors of finite Markov chains, in discrete and in continuous time, and what they presuppose.

A stationary law is unique if exactly one class of states is closed. Outside compiled code that is checked,
with errors that name the states; inside it (under ``jit``, ``grad``, ``vmap``) the caller answers for it.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike
from scipy.sparse.csgraph import connected_components

from btqueue.queueing._precision import in_float64
from btqueue.queueing.errors import is_traced


@jax.custom_jvp
def _eliminate(transition: Array) -> Array:
    """Stationary row vector by the elimination of Grassmann, Taksar and Heyman (the diagonal is not read)."""
    states = transition.shape[0]
    index = jnp.arange(states)

    def censor(step: int, matrix: Array) -> Array:
        # watch the chain only while it is below `last`; no subtraction anywhere, so no cancellation
        last = states - 1 - step
        below = index < last
        row = jnp.where(below, matrix[last], 0.0)
        column = jnp.where(below, matrix[:, last], 0.0) / row.sum()
        return (matrix + column[:, None] * row[None, :]).at[:, last].set(column)

    def unfold(last: int, weights: Array) -> Array:
        weight = jnp.where(index < last, weights, 0.0) @ ratios[:, last]
        # counted from the likeliest state so far: state 0 of an overloaded queue may be too rare for a number
        return weights.at[last].set(weight) / jnp.maximum(weight, 1.0)

    ratios = jax.lax.fori_loop(0, states - 1, censor, transition)
    weights = jax.lax.fori_loop(1, states, unfold, jnp.zeros(states, transition.dtype).at[0].set(1.0))
    return weights / weights.sum()


@_eliminate.defjvp
def _eliminate_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    # pi = pi P  =>  dpi (I - P + 1 pi) = pi dP: one linear solve, instead of n differentiated steps.
    # Solved for dpi / pi (the matrix becomes that of the reversed chain), so that the derivatives of tiny
    # probabilities keep their digits too.
    (transition,), (perturbation,) = primals, tangents
    law = _eliminate(transition)
    scale = jax.lax.stop_gradient(jnp.where(law > 1e-290, law, 1.0))
    leaving = jnp.eye(transition.shape[0]) - transition + law[None, :]
    reversed_chain = scale[:, None] * leaving / scale[None, :]
    return law, scale * jnp.linalg.solve(reversed_chain.T, (law @ perturbation) / scale)


_eliminate_compiled = jax.jit(_eliminate)


def closed_classes(transition: Any) -> list[list[int]]:
    """The closed communicating classes of a chain: sets of states that lead to each other and nowhere else.

    Args:
        transition: ``(n, n)`` transition or generator matrix (dense or a scipy sparse one); entries off the
            diagonal count if they are not zero.
    """
    matrix = transition.tocoo() if hasattr(transition, "tocoo") else None
    rows, columns = (matrix.row, matrix.col) if matrix is not None else np.nonzero(np.asarray(transition))
    _, label = connected_components(
        matrix if matrix is not None else np.asarray(transition) != 0, directed=True, connection="strong"
    )
    left = set(label[rows[label[rows] != label[columns]]])
    return [np.flatnonzero(label == name).tolist() for name in np.unique(label) if name not in left]


def is_irreducible(transition: Any) -> bool:
    """True if every state of the chain leads to every other."""
    classes = closed_classes(transition)
    return len(classes) == 1 and len(classes[0]) == np.shape(transition)[0]


def require_one_closed_class(transition: Any) -> list[int]:
    """The closed class of a chain that has one; ``ValueError`` with the classes of a chain that has more."""
    classes = closed_classes(transition)
    if len(classes) > 1:
        named = " and ".join(
            "{" + ", ".join(map(str, states[:5])) + ", ..." * (len(states) > 5) + "}"
            for states in classes[:3]
        )
        raise ValueError(
            f"transition is reducible: {len(classes)} classes of states are never left ({named}), "
            "so the stationary law depends on the start"
        )
    return classes[0]


def _require_square(matrix: Any, name: str) -> None:
    if np.ndim(matrix) != 2 or np.shape(matrix)[0] != np.shape(matrix)[1] or np.shape(matrix)[0] == 0:
        raise ValueError(f"{name} must be a square matrix, got shape {np.shape(matrix)}")


def _worst_row(totals: np.ndarray, target: float) -> str:
    row = int(np.abs(totals - target).argmax())
    return f"row {row} sums to {totals[row]:.17g}"


def require_transition(transition: Any, name: str = "transition", *, atol: float = 1e-9) -> None:
    """Raise ``ValueError`` unless a matrix is square, non-negative, with rows summing to one.

    Of a traced matrix only the shape is checked.
    """
    _require_square(transition, name)
    if is_traced(transition):
        return
    matrix = np.asarray(transition, dtype=float)
    if not np.isfinite(matrix).all() or (matrix < -atol).any():
        raise ValueError(f"{name} must hold finite, non-negative probabilities")
    totals = matrix.sum(axis=1)
    if np.abs(totals - 1.0).max() > atol:
        raise ValueError(f"every row of {name} must sum to one, but {_worst_row(totals, 1.0)}")


def require_generator(generator: Any, name: str = "generator", *, atol: float = 1e-9) -> None:
    """Raise ``ValueError`` unless off-diagonal rates are non-negative and rows sum to zero.

    Of a traced matrix only the shape is checked. ``atol`` is relative to the largest rate.
    """
    _require_square(generator, name)
    if is_traced(generator):
        return
    matrix = np.asarray(generator, dtype=float)
    largest = np.abs(matrix).max()
    if not np.isfinite(matrix).all() or ((matrix < -atol * largest) & ~np.eye(len(matrix), dtype=bool)).any():
        raise ValueError(f"{name} must hold finite rates, non-negative off the diagonal")
    totals = matrix.sum(axis=1)
    if np.abs(totals).max() > atol * max(largest, np.finfo(float).tiny):
        raise ValueError(f"every row of {name} must sum to zero, but {_worst_row(totals, 0.0)}")


def _solve_checked(transition: Any) -> Array:
    """Stationary law of a matrix whose entries are known; state 0 need not be in the closed class."""
    matrix = jnp.asarray(transition)
    law = _eliminate_compiled(matrix)
    if bool(jnp.isfinite(law).all()):
        return law
    # elimination ends at state 0, which has to be a recurrent one: exchange it for one that is
    closed = require_one_closed_class(transition)
    order = np.arange(matrix.shape[0])
    order[[0, closed[0]]] = closed[0], 0
    return _eliminate_compiled(matrix[order][:, order])[order]


@in_float64
def stationary_vector(transition: ArrayLike, *, atol: float = 1e-9) -> Array:
    """Stationary law ``pi = pi P`` of a finite chain with one closed class, entrywise accurate.

    Transient states may exist and get probability 0. Differentiable in ``P`` along directions whose rows sum
    to zero. With traced input state 0 has to belong to the closed class.

    Source: Grassmann, Taksar & Heyman, Operations Research 33 (1985).

    Args:
        transition: ``(n, n)``, non-negative, rows summing to one within ``atol``.
        atol: largest error of a row sum that is accepted.

    Raises:
        ValueError: if the matrix is not square, not a transition matrix, or has several closed classes.
    """
    require_transition(transition, atol=atol)
    if is_traced(transition):
        return _eliminate(jnp.asarray(transition))
    return _solve_checked(np.asarray(transition, dtype=float))


def uniformized(generator: Array) -> Array:
    """Transition matrix ``I + Q / q`` of the chain watched at the epochs of its fastest state's clock."""
    fastest = jnp.max(-jnp.diagonal(generator))
    return jnp.eye(generator.shape[0]) + generator / jnp.where(fastest > 0, fastest, 1.0)


@in_float64
def stationary_vector_continuous(generator: ArrayLike, *, atol: float = 1e-9) -> Array:
    """Stationary law ``pi Q = 0`` of a finite chain in continuous time, otherwise as `stationary_vector`.

    Args:
        generator: ``(n, n)`` rates, non-negative off the diagonal, rows summing to zero.
        atol: largest error of a row sum that is accepted, relative to the largest rate.

    Raises:
        ValueError: if the matrix is not square, not a generator, or has several closed classes.
    """
    require_generator(generator, atol=atol)
    rates = jnp.asarray(generator, float)
    if is_traced(generator):
        return _eliminate(uniformized(rates))
    if not np.asarray(rates).any():
        require_one_closed_class(np.asarray(rates))
        return jnp.ones(1)
    return _solve_checked(np.asarray(uniformized(rates)))


@in_float64
def deviation_matrix(transition: ArrayLike) -> Array:
    """Deviation matrix ``sum_t (P^t - 1 pi) = (I - P + 1 pi)^-1 - 1 pi`` of a chain with one closed class.

    Sums of covariances along the chain are bilinear forms in it: the variance of a sum of rewards ``f`` grows
    by ``2 pi f D f - pi f^2 - (pi f)^2`` (with the products taken state by state) a step.

    Source: Kemeny & Snell, Finite Markov Chains (1960), chapter 4.
    """
    law = stationary_vector(transition)
    ones = jnp.broadcast_to(law, (law.shape[0], law.shape[0]))
    return jnp.linalg.inv(jnp.eye(law.shape[0]) - jnp.asarray(transition) + ones) - ones
