"""Phase-type laws with a given mean and squared coefficient of variation (scv), exactly.

Little variability is met by a mixture of two sums of ``k - 1`` and ``k`` equal phases, much by a mixture of
two phases. The two families meet without a jump in mean and scv, not in shape.

Sources: Tijms, Stochastic Models (1994), appendix B; Whitt, Oper. Res. 30 (1982) (balanced means); the
discrete forms follow from the same equations, because ``k`` geometric phases have ``scv + 1/mean`` where
``k`` exponential ones have ``scv``.
"""

from math import ceil

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.errors import is_traced, require_count, require_positive
from btqueue.queueing.laws.phase_type import ContinuousPhaseType, DiscretePhaseType


def _stages_needed(spread: float) -> int:
    return max(1, ceil(1.0 / spread - 1e-9))


def _skip_probability(spread: Array, stages: Array) -> Array:
    """Probability of one phase less, so that the sum has scv ``spread`` between ``1/k`` and ``1/(k-1)``."""
    inside = jnp.maximum(stages * (1.0 + spread) - stages**2 * spread, 0.0)
    return (stages * spread - jnp.sqrt(inside)) / (1.0 + spread)


def _equal_stages(spread: Array, most: int) -> tuple[Array, Array]:
    """Start law on ``most`` phases in a row, and the mean number gone through."""
    stages = jnp.maximum(jnp.ceil(1.0 / spread - 1e-9), 1.0)
    # an order of one leaves no phase to skip
    skip = jnp.where(stages > 1, _skip_probability(spread, jnp.maximum(stages, 2.0)), 0.0)
    # counted down, so that the last phase, number 0, is one that every passage goes through
    left = jnp.arange(most) + 1
    start = jnp.where(left == stages, 1.0 - skip, 0.0) + jnp.where(left == stages - 1, skip, 0.0)
    return start, stages - skip


def _stages_or_raise(spread: ArrayLike, stages: int | None) -> int:
    if stages is None:
        if is_traced(spread):
            raise ValueError("stages must be given inside compiled code: the number of phases is a shape")
        return _stages_needed(float(np.asarray(spread)))
    require_count(stages, "stages")
    if not is_traced(spread) and stages < _stages_needed(float(np.asarray(spread))):
        raise ValueError(f"stages must be at least {_stages_needed(float(np.asarray(spread)))}, got {stages}")
    return stages


@in_float64
def fit_low_variability(mean: ArrayLike, scv: ArrayLike, *, stages: int | None = None) -> ContinuousPhaseType:
    """Mixed Erlang law with ``0 < scv <= 1``: ``k - 1`` or ``k`` equal phases, ``1/k <= scv <= 1/(k-1)``.

    Args:
        mean: mean, positive.
        scv: squared coefficient of variation.
        stages: number of phases to lay out, at least ``1 / scv``; needed inside compiled code.

    Raises:
        ValueError: if the mean is not positive, the scv is outside (0, 1] or needs more stages.
    """
    require_positive(mean, "mean")
    if not is_traced(scv) and not 0.0 < float(np.asarray(scv)) <= 1.0:
        raise ValueError(f"scv must be in (0, 1] for equal phases in a row, got {scv}")
    most = _stages_or_raise(scv, stages)
    start, passed = _equal_stages(jnp.asarray(scv, float), most)
    rate = passed / jnp.asarray(mean, float)
    return ContinuousPhaseType(
        start, rate * (jnp.eye(most, k=-1) - jnp.eye(most)), rate * (jnp.arange(most) == 0)
    )


@in_float64
def fit_high_variability(mean: ArrayLike, scv: ArrayLike) -> ContinuousPhaseType:
    """Hyperexponential law of two phases with balanced means, ``scv >= 1``.

    Raises:
        ValueError: if the mean is not positive or the scv is below 1.
    """
    require_positive(mean, "mean")
    if not is_traced(scv) and not (np.isfinite(scv) and float(np.asarray(scv)) >= 1.0):
        raise ValueError(f"scv must be finite and at least 1 for a hyperexponential law, got {scv}")
    spread = jnp.asarray(scv, float)
    inside = (spread - 1.0) / (spread + 1.0)
    root = jnp.where(inside > 0, jnp.sqrt(jnp.where(inside > 0, inside, 1.0)), 0.0)
    first = 0.5 * (1.0 + root)
    start = jnp.stack([first, 1.0 - first])
    rates = 2.0 * start / jnp.asarray(mean, float)
    return ContinuousPhaseType(start, -jnp.diag(rates), rates)


@in_float64
def fit(mean: ArrayLike, scv: ArrayLike) -> ContinuousPhaseType:
    """Continuous law with the given mean and scv: mixed Erlang below scv 1, hyperexponential from there on.

    Raises:
        ValueError: if an argument is not positive, or inside compiled code (the number of phases depends on
            the scv: choose `fit_low_variability` or `fit_high_variability` there).
    """
    _require_concrete(mean, scv)
    require_positive(scv, "scv")
    if float(np.asarray(scv)) < 1.0:
        return fit_low_variability(mean, scv)
    return fit_high_variability(mean, scv)


def _require_concrete(mean: ArrayLike, scv: ArrayLike) -> None:
    if is_traced(mean, scv):
        raise ValueError(
            "fit cannot choose the number of phases inside compiled code: name the family yourself"
        )


def _least_scv(mean: float) -> float:
    """Scv of the law on the two whole numbers around the mean, the least of any law on whole numbers."""
    part = mean - np.floor(mean)
    return part * (1.0 - part) / mean**2


@in_float64
def fit_discrete_low_variability(
    mean: ArrayLike, scv: ArrayLike, *, stages: int | None = None
) -> DiscretePhaseType:
    """Mixed negative binomial law: ``k - 1`` or ``k`` equal geometric phases; ``scv + 1/mean <= 1``.

    Reaches the least scv a law on whole numbers with this mean can have.

    Args:
        mean: mean in slots, at least 1.
        scv: squared coefficient of variation.
        stages: number of phases to lay out, at least ``1 / (scv + 1/mean)``; needed inside compiled code.

    Raises:
        ValueError: if the mean is below 1, no law on whole numbers has this scv, or it is too large here.
    """
    if not is_traced(mean, scv):
        _require_slots(mean, scv)
        if float(np.asarray(scv)) + 1.0 / float(np.asarray(mean)) > 1.0 + 1e-12:
            raise ValueError(f"scv must not exceed 1 - 1/mean for equal phases in a row, got {scv}")
    slots = jnp.asarray(mean, float)
    spread = jnp.asarray(scv, float) + 1.0 / slots
    most = _stages_or_raise(spread, stages)
    start, passed = _equal_stages(spread, most)
    success = jnp.minimum(passed / slots, 1.0)
    stay = jnp.maximum((slots - passed) / slots, 0.0)
    return DiscretePhaseType(
        start, stay * jnp.eye(most) + success * jnp.eye(most, k=-1), success * (jnp.arange(most) == 0)
    )


@in_float64
def fit_discrete_high_variability(mean: ArrayLike, scv: ArrayLike) -> DiscretePhaseType:
    """One slot, or else a geometric number of slots: ``scv + 1/mean >= 1``.

    The law of the gaps of an interrupted Bernoulli process.

    Raises:
        ValueError: if the mean is not above 1 or the scv is below ``1 - 1/mean``.
    """
    if not is_traced(mean, scv):
        _require_slots(mean, scv)
        if float(np.asarray(scv)) + 1.0 / float(np.asarray(mean)) < 1.0 - 1e-12:
            raise ValueError(f"scv must be at least 1 - 1/mean for one slot or a geometric law, got {scv}")
        if not float(np.asarray(mean)) > 1.0:
            raise ValueError(f"mean must be above 1 slot for a law that varies, got {mean}")
    slots = jnp.asarray(mean, float)
    # E[X^2] = 2 q - mean with q the mixture's mean square of phase means: here one and `longer`
    square = (jnp.asarray(scv, float) * slots**2 + slots**2 + slots) / 2.0
    longer = (square - slots) / (slots - 1.0)
    chance = jnp.minimum((slots - 1.0) / (longer - 1.0), 1.0)
    matrix = jnp.zeros((2, 2)).at[0, 0].set((longer - 1.0) / longer)
    return DiscretePhaseType(
        jnp.stack([chance, 1.0 - chance]), matrix, jnp.stack([1.0 / longer, jnp.ones(())])
    )


@in_float64
def fit_discrete(mean: ArrayLike, scv: ArrayLike) -> DiscretePhaseType:
    """Law on ``1, 2, ...`` slots with the given mean and scv; any that a law on whole numbers can have.

    Raises:
        ValueError: if the mean is below 1, no law on whole numbers has this scv, or inside compiled code
            (choose `fit_discrete_low_variability` or `fit_discrete_high_variability` there).
    """
    _require_concrete(mean, scv)
    _require_slots(mean, scv)
    if float(np.asarray(scv)) + 1.0 / float(np.asarray(mean)) <= 1.0 + 1e-12:
        return fit_discrete_low_variability(mean, scv)
    return fit_discrete_high_variability(mean, scv)


def _require_slots(mean: ArrayLike, scv: ArrayLike) -> None:
    slots, spread = float(np.asarray(mean)), float(np.asarray(scv))
    if not (np.isfinite(slots) and slots >= 1.0):
        raise ValueError(f"mean must be at least one slot, got {mean}")
    if not (np.isfinite(spread) and spread >= _least_scv(slots) * (1.0 - 1e-9)):
        raise ValueError(
            f"scv must be at least {_least_scv(slots):g} for whole slots of mean {slots:g}, got {scv}"
        )
