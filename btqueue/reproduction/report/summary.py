"""Counts of verdicts, and errors of the models against the simulation."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from btqueue.reproduction.claims.record import IN_PART, REPRODUCED, TESTBED_ONLY
from btqueue.reproduction.report.outcomes import Outcome, Pair


class Counts(NamedTuple):
    """How many claims have each verdict.

    Attributes:
        simulated: by verdict of the simulator.
        solved: by verdict of the models, of the claims on which they have a verdict.
        agree: how many claims have the same verdict by both.
    """

    simulated: Counter[str]
    solved: Counter[str]
    agree: int

    @property
    def total(self) -> int:
        """All claims."""
        return self.simulated.total()

    @property
    def checkable(self) -> int:
        """Number of claims that are not left to the testbed."""
        return self.total - self.simulated[TESTBED_ONLY]

    def shares(self, solved: bool = False) -> tuple[float, float]:
        """Return the shares of claims that are reproduced, and at least in part; NaN if there are none.

        Of the checkable claims by the simulator, or of the claims on which the models have a verdict.
        """
        found, total = (self.solved, self.solved.total()) if solved else (self.simulated, self.checkable)
        met = found[REPRODUCED]
        return (met / total, (met + found[IN_PART]) / total) if total else (math.nan, math.nan)


def counts(outcomes: Iterable[Outcome]) -> Counts:
    """Count verdicts."""
    listed = list(outcomes)
    modelled = [one for one in listed if one.modelled]
    return Counts(
        Counter(one.verdict for one in listed),
        Counter(one.solved.judged.verdict for one in modelled),
        sum(one.verdict == one.solved.judged.verdict for one in modelled),
    )


class ModelError(NamedTuple):
    """Sizes of the relative errors of one metric.

    Attributes:
        metric: its name.
        points: scenarios that both engines answered and whose simulated value differs from 0.
        median: median of the absolute errors.
        high: their 95th percentile.
        worst: the error of greatest absolute value, positive if the model is above.
    """

    metric: str
    points: int
    median: float
    high: float
    worst: float


def model_errors(outcomes: Iterable[Outcome]) -> list[ModelError]:
    """Return the models' errors against the simulation, by metric, over all points of the checks.

    A point counts once, however many claims use it. A point has no relative error if the interval of its
    simulated mean holds 0.
    """
    unique = {key: pair for outcome in outcomes for key, pair in outcome.pairs()}
    errors: dict[str, list[float]] = {}
    for pair in unique.values():
        if (error := relative_error(pair)) is not None:
            errors.setdefault(pair.metric, []).append(error)
    return [_sizes(metric, found) for metric, found in sorted(errors.items())]


def relative_error(pair: Pair) -> float | None:
    """Return model over simulation less one, None where the simulation is not known to differ from 0."""
    mean, width = pair.simulated
    if not math.isfinite(mean) or not math.isfinite(pair.solved) or abs(mean) <= np.nan_to_num(width):
        return None
    return pair.solved / mean - 1


def _sizes(metric: str, errors: Sequence[float]) -> ModelError:
    sizes = np.abs(errors)
    worst = float(errors[int(sizes.argmax())])
    return ModelError(metric, len(errors), float(np.median(sizes)), float(np.percentile(sizes, 95)), worst)
