"""Stationary vector by elimination, for chains whose law spans more than the floating-point range.

The method of Grassmann, Taksar and Heyman never subtracts, so that tiny probabilities keep their digits. It
fixes the weight of state 0 at one. In a hopelessly overloaded queue state 0 is less likely than 1e-308, and
the other weights would overflow: they are scaled down as they grow, and what is too unlikely to be
represented becomes zero.
"""

import jax
import jax.numpy as jnp
from jax import Array

_TINY = 1e-280  # stands for a way down whose probability underflows


@jax.custom_jvp
def stationary_law(transition: Array) -> Array:
    """Stationary row vector of a chain with one closed class; its derivative is one linear solve.

    Source: Grassmann, Taksar & Heyman, Operations Research 33 (1985). ``transition`` is ``(n, n)``; its rows
    sum to one, which the caller answers for, and its diagonal is not read. States that never lead to a lower
    one are allowed, if the chain ends up among them.

    Example:
        >>> from btqueue.queueing.elimination import stationary_law
        >>> import jax.numpy as jnp
        >>> stationary_law(jnp.array([[0.75, 0.25], [0.25, 0.75]])).round(4).tolist()
        [0.5, 0.5]
    """
    states = transition.shape[0]
    index = jnp.arange(states)

    def censor(step: int, matrix: Array) -> Array:
        last = states - 1 - step
        below = index < last
        row = jnp.where(below, matrix[last], 0.0)
        column = jnp.where(below, matrix[:, last], 0.0) / jnp.maximum(row.sum(), _TINY)
        return (matrix + column[:, None] * row[None, :]).at[:, last].set(column)

    def unfold(last: int, weights: Array) -> Array:
        weights = weights.at[last].set(jnp.where(index < last, weights, 0.0) @ ratios[:, last])
        return weights / jnp.maximum(weights[last], 1.0)

    ratios = jax.lax.fori_loop(0, states - 1, censor, transition)
    weights = jax.lax.fori_loop(1, states, unfold, jnp.zeros(states, transition.dtype).at[0].set(1.0))
    return weights / weights.sum()


@stationary_law.defjvp
def _stationary_law_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    # pi = pi P  =>  dpi (I - P + 1 pi) = pi dP, solved for dpi / pi: tiny probabilities keep their digits
    (transition,), (perturbation,) = primals, tangents
    law = stationary_law(transition)
    scale = jax.lax.stop_gradient(jnp.where(law > _TINY, law, 1.0))
    leaving = jnp.eye(transition.shape[0]) - transition + law[None, :]
    reversed_chain = scale[:, None] * leaving / scale[None, :]
    return law, scale * jnp.linalg.solve(reversed_chain.T, (law @ perturbation) / scale)
