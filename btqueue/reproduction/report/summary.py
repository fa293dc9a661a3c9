"""Counts of verdicts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from btqueue.reproduction.claims.record import IN_PART, REPRODUCED, TESTBED_ONLY
from btqueue.reproduction.report.outcomes import Outcome


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
