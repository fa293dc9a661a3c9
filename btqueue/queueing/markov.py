"""Stationary vector of a finite Markov chain."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.errors import is_traced


@jax.custom_jvp
def _eliminate(transition: Array) -> Array:
    """Stationary row vector by the elimination of Grassmann, Taksar and Heyman."""
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
        return weights.at[last].set(jnp.where(index < last, weights, 0.0) @ ratios[:, last])

    ratios = jax.lax.fori_loop(0, states - 1, censor, transition)
    weights = jax.lax.fori_loop(1, states, unfold, jnp.zeros(states, transition.dtype).at[0].set(1.0))
    return weights / weights.sum()


@_eliminate.defjvp
def _eliminate_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    # pi = pi P  =>  dpi (I - P + 1 pi) = pi dP: one linear solve, instead of n differentiated steps
    (transition,), (perturbation,) = primals, tangents
    law = _eliminate(transition)
    fundamental = jnp.eye(transition.shape[0]) - transition + law[None, :]
    return law, jnp.linalg.solve(fundamental.T, law @ perturbation)


_eliminate_compiled = jax.jit(_eliminate)


@in_float64
def stationary_vector(transition: ArrayLike, *, atol: float = 1e-9) -> Array:
    """Stationary law ``pi = pi P`` of a finite chain with one closed class, entrywise accurate.

    Every state must be able to reach a lower-numbered one (state 0 excepted); transient states may exist and
    get probability 0. Differentiable in ``P`` along directions whose rows sum to zero.

    Source: Grassmann, Taksar & Heyman, Operations Research 33 (1985).

    Args:
        transition: ``(n, n)``, non-negative, rows summing to one within ``atol``.
        atol: largest error of a row sum that is accepted.

    Raises:
        ValueError: if the matrix is not square, not a transition matrix, or has states that never lead down.
    """
    if np.ndim(transition) != 2 or np.shape(transition)[0] != np.shape(transition)[1]:
        raise ValueError(f"transition must be a square matrix, got shape {np.shape(transition)}")
    if is_traced(transition):
        return _eliminate(jnp.asarray(transition))
    matrix = np.asarray(transition, dtype=float)
    if not np.isfinite(matrix).all() or (matrix < -atol).any():
        raise ValueError("transition must hold finite, non-negative probabilities")
    if np.abs(matrix.sum(axis=1) - 1.0).max() > atol:
        raise ValueError(f"every row of transition must sum to one, got {matrix.sum(axis=1)}")
    law = _eliminate_compiled(jnp.asarray(matrix))
    if not bool(jnp.isfinite(law).all()):
        raise ValueError("transition is reducible: some state never leads to a lower-numbered one")
    return law
