"""Derivatives by extrapolated differences that know when there is none.

The operating point of a scenario comes out of fixed points, orbits and integer rules. It is smooth in most
keys at most values, but it can bend (another limit binds), jump (another packet fits) or carry the noise of
an iteration that stops. A derivative is therefore taken with several steps, from both sides, and judged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

STEPS = (1e-2, 1e-3, 1e-4, 1e-5)
"""Steps in turn, in units of the argument: shorter ones where longer ones do not settle it."""

CLOSE = 1e-3
"""Relative error with which a derivative counts as found at once."""

FAIR = 1e-2
"""Relative error up to which the best one is still given, with its error."""

FLAT = 1e-6
"""An elasticity that cannot be told from none, for iterations stop at about a tenth of a millionth of it."""

NOTHING = 1e-12
"""A metric this small is 0, whatever its unit."""

Kind = Literal["smooth", "flat", "fitted", "one-sided", "step", "kink", "jump", "uncertain", "none"]
"""What was found: a derivative; none to be seen; one of a fit to samples, with a 95 % interval; one from one
side only; differences of one step of a whole number; different ones from left and right; a jump; none that
can be trusted; no values."""


@dataclass(frozen=True)
class Derivative:
    """A derivative, or why there is none.

    Attributes:
        kind: see `Kind`.
        value: the derivative; NaN at a kink or a jump, or where there are no values.
        error: its estimated error; NaN where there is none.
        left: from below (for a whole number, the difference of one step down); NaN if there is none, as on
            the side of a jump.
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


@dataclass(frozen=True)
class Stencil:
    """Values around an argument x, NaN where the function has none.

    Attributes:
        step: h.
        centre: f(x).
        below: f(x - h), f(x - h/2).
        above: f(x + h), f(x + h/2).
    """

    step: float
    centre: float
    below: tuple[float, float]
    above: tuple[float, float]


@dataclass(frozen=True)
class Slopes:
    """What one stencil says: slopes extrapolated to step 0 (Richardson), and their last corrections."""

    step: float
    left: float
    left_error: float
    right: float
    right_error: float
    central: float
    central_error: float


def slopes(stencil: Stencil) -> Slopes:
    """Extrapolate the differences with steps h and h/2 to step 0.

    One-sided differences have an error of order h, central ones of order h²; extrapolated, of order h² and
    h⁴. The left and right slope of a smooth function agree to order h³: a sharp test for kinks. The error of
    each is taken to be the whole correction, which is safe.
    """
    h, f = stencil.step, stencil.centre
    (down, down_half), (up, up_half) = stencil.below, stencil.above
    right, right_error = _extrapolated((up - f) / h, (up_half - f) / (h / 2), 1)
    left, left_error = _extrapolated((f - down) / h, (f - down_half) / (h / 2), 1)
    central, central_error = _extrapolated((up - down) / (2 * h), (up_half - down_half) / h, 2)
    return Slopes(h, left, left_error, right, right_error, central, central_error)


def _extrapolated(whole: float, half: float, order: int) -> tuple[float, float]:
    better = half + (half - whole) / (2**order - 1)
    return better, abs(better - half)


def judge(found: Sequence[Slopes], floor: float, jump: float) -> Derivative | None:
    """Return the derivative if the stencils so far settle it, else None: go on with a shorter step.

    Args:
        found: from stencils with shorter and shorter steps around one argument; at least one.
        floor: slopes below this are 0.
        jump: least step of the function itself that is no noise.
    """
    last, before = found[-1], found[-2] if len(found) > 1 else None
    left, right = last.left, last.right
    if math.isnan(left) and math.isnan(right):
        return None
    if before is not None:
        left_jumps = _jumps(before.left, left, before, last, jump)
        right_jumps = _jumps(before.right, right, before, last, jump)
        if left_jumps or right_jumps:
            kept = math.nan if left_jumps else left, math.nan if right_jumps else right
            return Derivative("jump", left=kept[0], right=kept[1])
    if math.isnan(left) or math.isnan(right):
        slope, error = (right, last.right_error) if math.isnan(left) else (left, last.left_error)
        if error > CLOSE * abs(slope) + floor:
            return None
        return _flattened(Derivative("one-sided", slope, error, left, right), floor)
    size = max(abs(left), abs(right))
    if last.central_error <= CLOSE * size + floor and abs(right - left) <= CLOSE * size + floor:
        error = max(last.central_error, np.finfo(float).eps * abs(last.central))
        return _flattened(Derivative("smooth", last.central, error, left, right), floor)
    if before is not None and not (math.isnan(before.left) or math.isnan(before.right)):
        moved = abs(left - before.left), abs(right - before.right)
        if max(moved) <= FAIR * size + floor and abs(right - left) > 3 * sum(moved) + floor:
            return Derivative("kink", error=max(moved), left=left, right=right)
    return None


def best_of(found: Sequence[Slopes], floor: float) -> Derivative:
    """Return what is left to say when no step has settled it: the steadiest slope, if it is fair."""
    candidates = []
    for one in found:
        if not math.isnan(one.central):
            error = max(one.central_error, abs(one.right - one.left))
            candidates.append((error, Derivative("smooth", one.central, error, one.left, one.right)))
        for slope, error in ((one.left, one.left_error), (one.right, one.right_error)):
            if math.isnan(one.central) and not math.isnan(slope):
                candidates.append((error, Derivative("one-sided", slope, error, one.left, one.right)))
    if not candidates:
        return Derivative("none")
    error, best = min(candidates, key=lambda candidate: candidate[0])
    if error <= FAIR * best.size + floor:
        return _flattened(best, floor)
    return Derivative("uncertain", best.value, error, best.left, best.right)


def step_difference(down: float, centre: float, up: float, step: float = 1.0) -> Derivative:
    """Return forward and backward difference of one step, and their mean (or the only one there is)."""
    left, right = (centre - down) / step, (up - centre) / step
    known = [slope for slope in (left, right) if not math.isnan(slope)]
    if not known:
        return Derivative("none")
    return Derivative("step", sum(known) / len(known), left=left, right=right)


def floor_of(values: Sequence[float], unit: float) -> float:
    """Return the slope that cannot be told from 0 for a function with such values, by the unit's scale."""
    largest = max((abs(value) for value in values if not math.isnan(value)), default=0.0)
    return max(FLAT * largest, NOTHING) / unit


def _jumps(earlier: float, later: float, before: Slopes, last: Slopes, least: float) -> bool:
    """Whether a slope grows as the step shrinks: the function has a step of its own just there."""
    height, now = earlier * before.step, later * last.step
    return abs(now) > least and abs(now - height) <= 0.2 * abs(now)


def _flattened(found: Derivative, floor: float) -> Derivative:
    """Return 0 for a slope that cannot be told from it."""
    if found.size <= floor:
        return Derivative("flat", 0.0, floor, 0.0, 0.0)
    return found
