"""Stationary laws of chains on levels ``0..n-1``, whichever end the mass is at.

Levels of a queue span hundreds of orders of magnitude, from one end at light load and from the other in
overload. Both functions work without subtractions, so entries are right to relative precision, and start
where the mass is, so that nothing overflows.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.chains import markov

NEGLIGIBLE = 1e-200
"""A probability that changes no digit of a result."""


def level_law(transition: Array, overloaded: Array) -> Array:
    """Stationary law of a chain on levels by elimination, from the top level if ``overloaded``.

    The level it starts from need not be one that the chain returns to.
    """
    ordered = jnp.where(overloaded, transition[::-1, ::-1], transition)
    law = markov.stationary_vector(ordered.at[:, 0].add(NEGLIGIBLE))
    return jnp.where(overloaded, law[::-1], law)


@in_float64
@eqx.filter_jit
def skip_free_law(landings: np.ndarray, weights: ArrayLike) -> Array:
    """Stationary law of a chain on ``0..n-1`` that falls by at most one a step.

    Up and down flow across each cut are equal: ``pi[k] Pr(k -> k-1) = sum_{v<k} pi[v] Pr(v -> k or more)``.
    Only sums, products and one division a level: entrywise accurate, ``O(J n^2)``.

    Args:
        landings: ``(J, n)`` whole numbers; with probability ``weights[j]`` level ``v`` moves to
            ``landings[j, v]``, never below ``v - 1``. Every level above 0 must be able to fall.
        weights: ``(J,)``, summing to one.
    """
    weights = jnp.asarray(weights)
    levels = jnp.arange(landings.shape[1])

    def next_level(law: Array, level: Array) -> tuple[Array, None]:
        climbs = weights @ jnp.where((landings >= level) & (levels < level), 1.0, 0.0)
        falls = weights @ jnp.where(landings[:, level] == level - 1, 1.0, 0.0)
        law = law.at[level].set(law @ climbs / falls)
        return law / jnp.maximum(law[level], 1.0), None  # far into overload the weights would overflow

    start = jnp.zeros(levels.shape[0]).at[0].set(1.0)
    law, _ = jax.lax.scan(next_level, start, levels[1:])
    return law / law.sum()
