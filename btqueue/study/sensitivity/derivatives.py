"""Derivatives of metrics by one key: of theory where it stands, else secants of simulations.

Theory's derivatives come from `btqueue.network.variation.Plan`. Simulated ones are secants over a tenth of
the key to both sides, with the same random numbers at all points, so that the differences of replications
vary little. Student's interval of these differences gives the interval of the slope (Glasserman and Yao,
Management Science 38, 1992).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from btqueue.network.variation import Sides
from btqueue.study.summary import student_half_width

BENT = 0.5
"""Difference of the slopes on both sides, as a share of the larger one, from which on both are told."""

FLAT = 1e-6
"""Relative change of a metric that cannot be told from none: an answer of theory is found to 1e-8."""

Kind = Literal["smooth", "flat", "one-sided", "kink", "jump", "step", "secant", "uncertain", "none"]
"""Kind of a derivative: smooth; zero; known on one side only; different below and above; none because the
metric jumps; differences over one step of a whole number; a secant of simulations; a secant whose interval
contains 0; none, for lack of values."""


@dataclass(frozen=True)
class Derivative:
    """A derivative, or why there is none.

    Attributes:
        kind: see `Kind`.
        value: the derivative; NaN at a kink or a jump, or where there are no values.
        error: half-width of the 95 % interval of a secant; else how far the slopes of both sides lie from
            their mean; NaN where there is none.
        left: from below; NaN if there is none, as on the side of a jump.
        right: from above.
    """

    kind: Kind
    value: float = math.nan
    error: float = math.nan
    left: float = math.nan
    right: float = math.nan

    @property
    def size(self) -> float:
        """The largest of them, without sign; NaN if there is none."""
        known = [abs(slope) for slope in (self.value, self.left, self.right) if math.isfinite(slope)]
        return max(known, default=math.nan)

    @property
    def bends(self) -> bool:
        """Whether the slopes below and above differ much."""
        return abs(self.right - self.left) > BENT * max(abs(self.left), abs(self.right))


def of_theory(sides: Sides) -> Derivative:
    """Return the derivative that theory gives."""
    if sides.kind == "smooth" and sides.slope == 0.0:
        return Derivative("flat", 0.0, 0.0, 0.0, 0.0)
    if sides.kind == "jump":
        return Derivative("jump", left=sides.below, right=sides.above)
    return Derivative(sides.kind, sides.slope, abs(sides.above - sides.below) / 2.0, sides.below, sides.above)


def of_steps(here: float, below: Sequence[float], above: Sequence[float], step: float) -> Derivative:
    """Return the differences of theory's values over one step to each side, without intervals.

    Args:
        here: value at the scenario.
        below: value a step below, and two steps below where these are asked for; NaN if missing.
        above: the same above.
        step: of the key.

    Returns:
        The differences; a side jumps, and has no slope, if its second step differs from its first.
    """
    left, left_jumps = _side(here, below, -step)
    right, right_jumps = _side(here, above, step)
    known = [slope for slope in (left, right) if math.isfinite(slope)]
    if left_jumps or right_jumps:
        return Derivative("jump", left=left, right=right)
    if not known:
        return Derivative("none")
    if not any(known):
        return Derivative("flat", 0.0, 0.0, 0.0, 0.0)
    return Derivative("step", sum(known) / len(known), left=left, right=right)


def of_zero(step: Derivative) -> Derivative:
    """Return the derivative by a real key that is 0, from a small step."""
    return replace(step, kind="one-sided") if step.kind == "step" else step


def _side(here: float, there: Sequence[float], step: float) -> tuple[float, bool]:
    """Return the slope on one side, NaN at a jump, and whether there is one."""
    change = there[0] - here
    if abs(change) <= FLAT * abs(here):
        return 0.0, False
    if len(there) > 1 and abs(there[1] - there[0] - change) > BENT * abs(change):
        return math.nan, True
    return change / step, False


def of_simulations(
    below: Sequence[float], here: Sequence[float], above: Sequence[float], offsets: Sequence[float]
) -> Derivative:
    """Return the slope of simulated values, by pairs of replications with the same random numbers.

    Args:
        below: value of each replication; empty if there is none below.
        here: the same at the scenario.
        above: the same above; empty if there is none.
        offsets: of the key, below and above.

    Returns:
        A kink where the slopes of both sides differ beyond the interval and by more than `BENT`; "uncertain"
        where the interval contains 0; "flat" where all replications are equal.
    """
    left, right = _paired(here, below, offsets[0]), _paired(here, above, offsets[1])
    if left.size and right.size:
        slopes = _paired(below, above, offsets[1] - offsets[0])
        apart = right - left
    else:
        slopes, apart = (left if left.size else right), np.zeros(0)
    if slopes.size < 2:
        return Derivative("none")
    value, error = float(slopes.mean()), float(student_half_width(slopes))
    sides = [float(one.mean()) if one.size else math.nan for one in (left, right)]
    if value == 0.0 and error == 0.0 and not any(sides):
        return Derivative("flat", 0.0, 0.0, 0.0, 0.0)
    bent = Derivative("kink", error=error, left=sides[0], right=sides[1])
    if apart.size > 1 and bent.bends and abs(apart.mean()) > student_half_width(apart):
        return bent
    return Derivative("secant" if abs(value) > error else "uncertain", value, error, *sides)


def _paired(first: Sequence[float], second: Sequence[float], step: float) -> np.ndarray:
    """Return the slope from the first to the second value of each replication that has both."""
    if not first or not second:
        return np.zeros(0)
    count = min(len(first), len(second))
    found = (np.array(second[:count]) - np.array(first[:count])) / step
    return found[np.isfinite(found)]
