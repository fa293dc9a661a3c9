"""Quantiles of round trips: a mixture of normal laws."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from btqueue.network.chain.splitting import VARIANCE, shared_out

LEAST = 1e-300
"""Least weight by which is divided."""
PRECISION = 1e-7
"""Relative, of a quantile."""


def quantile(rtts: NDArray[np.float64], level: float) -> float:
    """Return the quantile of a mixture of normal laws: rows of means, deviations and weights."""
    means, deviations, weights = rtts
    narrow = np.maximum(deviations, 1e-9 * means)
    share = weights / weights.sum()

    def excess(time: float) -> float:
        return float(share @ ndtr((time - means) / narrow)) - level

    return root_of(excess, 0.0, float((means + 8.0 * narrow).max()))


def condensed(rtts: NDArray[np.float64], places: int) -> NDArray[np.float64]:
    """Return nearly the same mixture at so many means, equally spaced.

    Each part is shared out to the means around its own, so that the mean of all stays what it is. What that
    adds to its variance is taken off where it can be.
    """
    means, deviations, weights = rtts
    low, width = float(means.min()), float(np.ptp(means))
    if len(means) <= places or width == 0.0:
        return rtts
    step = width / (places - 3)
    to, shares = shared_out((means - low) / step + 1.0)
    variances = np.maximum(deviations**2 - VARIANCE * step**2, 0.0)
    total = np.bincount(to.ravel(), (shares * weights).ravel(), places)
    squares = np.bincount(to.ravel(), (shares * weights * variances).ravel(), places)
    grid = low + step * (np.arange(places) - 1.0)
    rows = [grid, np.sqrt(squares / np.maximum(total, LEAST)), total]
    return np.array(rows, float)[:, total > 0.0]


def root_of(function: Callable[[float], float], low: float, high: float) -> float:
    """Return a root between two places where the function has different signs, to `PRECISION`.

    Inverse quadratic interpolation where that is safe, else bisection (T. R. Chandrupatla, Advances in
    Engineering Software 28(3), 1997). That of scipy.optimize takes longer to import than a chain to solve.
    """
    newest, other, share = high, low, 0.5
    at_newest, at_other = function(newest), function(other)
    while True:
        place = newest + share * (other - newest)
        value = function(place)
        if (value > 0.0) == (at_newest > 0.0):
            third, at_third = newest, at_newest
        else:
            third, at_third, other, at_other = other, at_other, newest, at_newest
        newest, at_newest = place, value
        best = newest if abs(at_newest) < abs(at_other) else other
        least = PRECISION * abs(best) / abs(other - newest)
        if least > 0.5 or value == 0.0:
            return best
        along = (newest - other) / (third - other)
        up = (at_newest - at_other) / (at_third - at_other)
        share = 0.5
        if up**2 < along and (1.0 - up) ** 2 < 1.0 - along:
            share = at_newest / (at_other - at_newest) * at_third / (at_other - at_third)
            share += (third - newest) / (other - newest) * at_newest / (at_third - at_newest) * (
                at_other / (at_third - at_other)
            )  # fmt: skip
        share = min(max(share, least), 1.0 - least)
