"""Derivatives of simulated answers: parabolas fitted by least squares to answers around the scenario.

A simulated answer is right to its standard error only, and the difference of two close ones is that of their
samples. Over a tenth of the key to both sides a parabola tells
the slope from the scatter; what the parabola misses (a kink, a jump) widens the interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit

from btqueue.study.sensitivity.differences import Derivative, floor_of
from btqueue.study.sensitivity.factors import Factor
from btqueue.study.sensitivity.solving import Solver

WIDTH = 0.1
"""How far the points lie from the scenario, in units of the key."""

POINTS = 16
"""Simulated for each key, besides the scenario's own."""

NODES = np.cos(np.pi * (np.arange(POINTS) + 0.5) / POINTS)
"""Places of the points, in units of `WIDTH`: Chebyshev's, denser at the ends."""

FEWEST = 6
"""Points that a fit needs: three for the parabola, three for the scatter."""

CONFIDENCE = 0.95
"""Of the intervals of slopes."""


def fitted_derivatives(
    active: Sequence[Factor], metrics: Sequence[str], solver: Solver
) -> dict[str, dict[str, Derivative]]:
    """Return derivatives by key and metric, with 95 % intervals as their errors."""
    solver.solve_all({factor.key: value} for factor in active for value in places(factor))
    found: dict[str, dict[str, Derivative]] = {}
    for factor in active:
        values = [*places(factor), factor.value]
        answers = [*(solver.at({factor.key: value}) for value in values[:-1]), solver.answer]
        offsets = np.array(values) - factor.value
        found[factor.key] = {
            name: fitted(offsets, np.array([answer.mean(name) for answer in answers]), factor.unit)
            for name in metrics
        }
    return found


def places(factor: Factor) -> list[float]:
    """Return the values around the scenario's own to be simulated."""
    return (factor.value + WIDTH * factor.unit * NODES).tolist()


def fitted(offsets: np.ndarray, values: np.ndarray, unit: float) -> Derivative:
    """Return the slope at 0 of the parabola through noisy values, both of shape (points,).

    Values that are not numbers are left out. The slope is "uncertain" if its interval contains 0.
    """
    known = np.isfinite(values)
    if known.sum() < FEWEST:
        return Derivative("none")
    scale = float(np.abs(offsets).max())
    powers = np.vander(offsets[known] / scale, 3, increasing=True)
    inverse = np.linalg.pinv(powers)
    coefficients = inverse @ values[known]
    misses = values[known] - powers @ coefficients
    freedom = int(known.sum()) - 3
    error = math.sqrt(misses @ misses / freedom * float(inverse[1] @ inverse[1])) / scale
    slope = float(coefficients[1]) / scale
    floor = floor_of(values[known].tolist(), unit)
    if abs(slope) + error <= floor:
        return Derivative("flat", 0.0, floor, 0.0, 0.0)
    error *= float(stdtrit(freedom, (1 + CONFIDENCE) / 2))
    return Derivative("fitted" if abs(slope) > error else "uncertain", slope, error)
