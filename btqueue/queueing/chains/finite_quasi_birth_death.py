"""Quasi-birth-death chains with finitely many levels, solved exactly from the top level down.

Watching only the levels up to ``k`` turns excursions above it into moves within it; what is left at the end
is a small chain. No subtraction anywhere, so that rare levels keep their digits.

Source: Gaver, Jacobs & Latouche, Adv. Appl. Prob. 16 (1984).
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.chains import markov
from btqueue.queueing.chains.absorbing import visit_counts
from btqueue.queueing.chains.quasi_birth_death import require_row_sums, transition_blocks
from btqueue.queueing.errors import require_count


class FiniteQuasiBirthDeath(eqx.Module):
    """Steady state with levels ``0..n``.

    Attributes:
        boundary: stationary probabilities of the phases of level 0, ``(b,)``.
        levels: those of levels ``1..n``, ``(n, m)``.
    """

    boundary: Array
    levels: Array

    @property
    @in_float64
    def level_law(self) -> Array:
        """Law of the level, ``(n + 1,)``."""
        return jnp.concatenate([jnp.asarray(self.boundary).sum()[None], jnp.asarray(self.levels).sum(axis=1)])


def _shares(level: Array) -> tuple[Array, Array]:
    """Shares of the phases and logarithm of their mass; a level that is never entered keeps zeros."""
    mass = level.sum()
    entered = mass > 0
    mass = jnp.where(entered, mass, 1.0)
    return level / mass, jnp.where(entered, jnp.log(mass), -jnp.inf)


@eqx.filter_jit
def _solve_finite(levels: int, *blocks: Array) -> FiniteQuasiBirthDeath:
    up, local, down, at_zero, from_zero, to_zero, top_up, top_local = blocks
    exits = down.sum(axis=1)

    def lower(above: tuple[Array, Array], climb: Array) -> tuple[tuple[Array, Array], Array]:
        """Watch only the levels up to this one: excursions above become moves within it."""
        _, visits_above = above
        ratio = climb @ visits_above
        within = local + ratio @ down
        return (within, visit_counts(within, exits)), ratio

    top = (top_local, visit_counts(top_local, exits))
    if levels == 1:
        within, ratios = top_local, jnp.zeros((0, *up.shape))
    else:
        climbs = jnp.concatenate([jnp.broadcast_to(up, (levels - 2, *up.shape)), top_up[None]])
        (within, _), ratios = jax.lax.scan(lower, top, climbs, reverse=True)
    censored = jnp.concatenate(
        [jnp.concatenate([at_zero, from_zero], axis=1), jnp.concatenate([to_zero, within], axis=1)]
    )
    weights = markov.stationary_vector(censored)
    boundary, first = weights[: at_zero.shape[0]], weights[at_zero.shape[0] :]

    def climb(carry: tuple[Array, Array], ratio: Array) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Each level by its phases' shares and the logarithm of its mass: overloads span any range."""
        shares, log_mass = carry
        level, log_gain = _shares(shares @ ratio)
        above = level, log_mass + log_gain
        return above, above

    start = _shares(first)
    _, (shares, logs) = jax.lax.scan(climb, start, ratios)
    shares, logs = jnp.concatenate([start[0][None], shares]), jnp.append(start[1], logs)
    highest = jax.lax.stop_gradient(jnp.maximum(jnp.max(logs), -1.0))
    stacked = jnp.exp(logs - highest)[:, None] * shares
    below = jnp.exp(-highest) * boundary
    total = below.sum() + stacked.sum()
    return FiniteQuasiBirthDeath(below / total, stacked / total)


@in_float64
def finite_quasi_birth_death(
    up: ArrayLike,
    local: ArrayLike,
    down: ArrayLike,
    *,
    levels: int,
    boundary: tuple[ArrayLike, ArrayLike, ArrayLike] | None = None,
    top: tuple[ArrayLike, ArrayLike] | None = None,
    rates: bool = False,
) -> FiniteQuasiBirthDeath:
    """Steady state with levels ``0..levels``, exact for any drift, ``O(levels * m^3)``.

    Args:
        up: ``(m, m)``, one level up, from levels 1 to ``levels - 2`` (and to the top, unless ``top`` is
            given).
        local: ``(m, m)``, within levels 1 to ``levels - 1``.
        down: ``(m, m)``, one level down.
        levels: number of levels above level 0.
        boundary: as in `quasi_birth_death`.
        top: ``(m, m)`` from the last level but one into the top level, and ``(m, m)`` within it; left out, a
            step up from the top level stays within.
        rates: whether the blocks hold rates or probabilities.

    Raises:
        ValueError: if shapes or row sums do not fit, or ``levels`` is not positive.
    """
    require_count(levels, "levels")
    last: Any = top if top is not None else (up, jnp.asarray(local, float) + jnp.asarray(up, float))
    require_row_sums([down, last[1]], "down and the top level", 0.0 if rates else 1.0)
    return _solve_finite(levels, *transition_blocks(up, local, down, boundary, rates, *last))
