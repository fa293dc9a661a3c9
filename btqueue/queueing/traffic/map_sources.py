"""Named Markovian sources: interrupted and modulated Bernoulli and Poisson processes, renewal processes.

Convention of the discrete ones: the phase of a slot decides what the slot brings, then the phase moves on.
"""

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.chains import markov
from btqueue.queueing.errors import is_traced, require_law, require_no_mass_at_zero, require_positive
from btqueue.queueing.laws.phase_type import ContinuousPhaseType, DiscretePhaseType
from btqueue.queueing.traffic.map_arrivals import ContinuousMap, DiscreteMap

Numbers = ArrayLike | Sequence[Any]
SINGLE = (0.0, 1.0)


def _batches(chances: Array, batch_size: Numbers) -> Array:
    """``(b, m, m)`` diagonal blocks: a batch in phase ``i`` with ``chances[i]``."""
    require_law(batch_size, "batch_size")
    require_no_mass_at_zero(jnp.asarray(batch_size), "batch_size")
    return jnp.asarray(batch_size, float)[1:, None, None] * jnp.diag(chances)[None]


def _require_per_phase(values: Numbers, matrix: Numbers, name: str, most: float) -> None:
    if np.ndim(values) != 1 or np.shape(values)[0] != np.shape(matrix)[0]:
        raise ValueError(f"{name} must hold one value for each phase, got shape {np.shape(values)}")
    if not is_traced(values):
        known = np.asarray(values)
        if not ((known >= 0) & (known <= most) & np.isfinite(known)).all():
            raise ValueError(f"{name} must be finite and between 0 and {most}, got {known}")


@in_float64
def modulated_bernoulli(
    transition: Numbers, probabilities: Numbers, batch_size: Numbers = SINGLE
) -> DiscreteMap:
    """A slot in phase ``i`` brings a batch with ``probabilities[i]``; then the phase moves by ``transition``.

    Raises:
        ValueError: if the matrix is no transition matrix, or a probability or the batch law is not one.
    """
    markov.require_transition(transition)
    _require_per_phase(probabilities, transition, "probabilities", 1.0)
    chances, moves = jnp.asarray(probabilities, float), jnp.asarray(transition, float)
    silent = (1.0 - chances)[None, :, None] * moves[None]
    return DiscreteMap(jnp.concatenate([silent, _batches(chances, batch_size) @ moves]))


@in_float64
def modulated_poisson(generator: Numbers, rates: Numbers, batch_size: Numbers = SINGLE) -> ContinuousMap:
    """Poisson batches at ``rates[i]`` while the phase, moving by ``generator``, is ``i`` (MMPP).

    Raises:
        ValueError: if the matrix is no generator, a rate is negative, or the batch law is not one.
    """
    markov.require_generator(generator)
    _require_per_phase(rates, generator, "rates", np.inf)
    speeds = jnp.asarray(rates, float)
    silent = jnp.asarray(generator, float) - jnp.diag(speeds)
    return ContinuousMap(jnp.concatenate([silent[None], _batches(speeds, batch_size)]))


@in_float64
def two_state_transition(mean_first: ArrayLike, mean_second: ArrayLike) -> Array:
    """Transition matrix of two states with geometric sojourns of the given means (slots, at least 1).

    The state of a Gilbert-Elliott channel, slot by slot.

    Raises:
        ValueError: if a mean is below 1 slot.
    """
    for value, name in ((mean_first, "mean_first"), (mean_second, "mean_second")):
        if not is_traced(value) and not (np.isfinite(value) and float(np.asarray(value)) >= 1.0):
            raise ValueError(f"{name} must be at least one slot, got {value}")
    out, back = 1.0 / jnp.asarray(mean_first, float), 1.0 / jnp.asarray(mean_second, float)
    return jnp.stack([jnp.stack([1.0 - out, out]), jnp.stack([back, 1.0 - back])])


@in_float64
def two_state_generator(mean_first: ArrayLike, mean_second: ArrayLike) -> Array:
    """Generator of two states with exponential sojourns of the given means.

    Raises:
        ValueError: if a mean is not positive.
    """
    require_positive(mean_first, "mean_first")
    require_positive(mean_second, "mean_second")
    out, back = 1.0 / jnp.asarray(mean_first, float), 1.0 / jnp.asarray(mean_second, float)
    return jnp.stack([jnp.stack([-out, out]), jnp.stack([back, -back])])


@in_float64
def interrupted_bernoulli(rate: ArrayLike, scv: ArrayLike, batch_size: Numbers = SINGLE) -> DiscreteMap:
    """Interrupted Bernoulli process with the given rate and scv of the gaps (phase 0 active, 1 idle).

    Active slots bring a batch; active turns idle with ``p``, idle active with ``q``. Then ``rate = q / (p +
    q)`` and ``scv = p (2 - p - q) / (p + q)^2``, solved for ``p + q = 2 (1 - rate) / (scv + 1 - rate)``.

    Args:
        rate: batches a slot, in (0, 1).
        scv: squared coefficient of variation of the slots from batch to batch; ``1 - rate`` (Bernoulli)
            always works.
        batch_size: law of the packets in a batch.

    Raises:
        ValueError: if the rate is not in (0, 1) or the scv is too small for it.
    """
    if not is_traced(rate) and not 0.0 < float(np.asarray(rate)) < 1.0:
        raise ValueError(f"rate must be between 0 and 1 batch a slot, got {rate}")
    if not is_traced(rate, scv):
        share = float(np.asarray(rate))
        least = (1.0 - share) * (2.0 * max(share, 1.0 - share) - 1.0)
        if not (np.isfinite(scv) and float(np.asarray(scv)) >= least):
            raise ValueError(f"scv must be at least {least:g} at rate {share:g}, got {scv}")
    share = jnp.asarray(rate, float)
    both = 2.0 * (1.0 - share) / (jnp.asarray(scv, float) + 1.0 - share)
    stop, go = (1.0 - share) * both, share * both
    transition = jnp.stack([jnp.stack([1.0 - stop, stop]), jnp.stack([go, 1.0 - go])])
    return modulated_bernoulli(transition, jnp.array([1.0, 0.0]), batch_size)


@in_float64
def bernoulli(probability: ArrayLike, batch_size: Numbers = SINGLE) -> DiscreteMap:
    """A batch in each slot with the given probability, independently.

    Raises:
        ValueError: if the probability is not in (0, 1].
    """
    return modulated_bernoulli(np.ones((1, 1)), jnp.asarray(probability, float)[None], batch_size)


@in_float64
def poisson(rate: ArrayLike, batch_size: Numbers = SINGLE) -> ContinuousMap:
    """Poisson batches.

    Raises:
        ValueError: if the rate is not positive.
    """
    require_positive(rate, "rate")
    return modulated_poisson(np.zeros((1, 1)), jnp.asarray(rate, float)[None], batch_size)


@in_float64
def renewal(gap: DiscretePhaseType | ContinuousPhaseType) -> DiscreteMap | ContinuousMap:
    """Single packets with independent phase-type gaps."""
    restart = jnp.asarray(gap.exits)[:, None] * jnp.asarray(gap.start)[None, :]
    blocks = jnp.stack([jnp.asarray(gap.matrix), restart])
    return DiscreteMap(blocks) if isinstance(gap, DiscretePhaseType) else ContinuousMap(blocks)
