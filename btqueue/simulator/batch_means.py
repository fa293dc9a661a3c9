"""Confidence intervals from one long run: batch means.

Values next to each other in time are correlated, so their sample variance says little about the error of
their mean. Means of long batches are nearly independent. Batches side by side follow Schmeiser, Operations
Research 30 (1982): more than 30 of them gain nothing. Overlapping batches follow Meketon and Schmeiser
(Winter Simulation Conference, 1984): their estimate of the variance has the same bias and two thirds of the
scatter, as if it had half as many degrees of freedom again.
"""

import math
from typing import Literal, NamedTuple

import numpy as np
from scipy import stats

BATCHES = 20
"""Batches side by side that fit into the run; between Schmeiser's 10 and 30."""

Method = Literal["overlapping", "non-overlapping"]


class Interval(NamedTuple):
    """Interval for a mean: `mean` plus or minus `half_width`, shape (...,) for values of shape (n, ...)."""

    mean: np.ndarray
    half_width: np.ndarray


def interval(
    values: np.ndarray, method: Method = "overlapping", batches: int = BATCHES, confidence: float = 0.95
) -> Interval:
    """Return the interval for the mean of a stationary series by batch means with Student's quantile.

    Args:
        values: observations at equal distances in time, shape (n, ...), without the warm-up.
        method: how the batches lie.
        batches: how many batches side by side fit into the series; a batch should be much longer than the
            time over which the values are correlated.
        confidence: probability that the interval covers the mean.

    Raises:
        ValueError: fewer than two batches, or fewer values than batches.
    """
    values = np.asarray(values, float)
    if batches < 2 or len(values) < batches:
        raise ValueError(f"{len(values)} values do not fill {batches} batches (at least 2)")
    size = len(values) // batches
    values = values[len(values) % batches :]  # what is left over is dropped where the warm-up was nearest
    if method == "overlapping":
        variance, degrees = _overlapping_variance(values, size), 1.5 * (batches - 1)
    else:
        variance, degrees = _variance_side_by_side(values, batches), float(batches - 1)
    quantile = stats.t.ppf(0.5 + confidence / 2, degrees)
    return Interval(values.mean(axis=0), quantile * np.sqrt(variance))


def _variance_side_by_side(values: np.ndarray, batches: int) -> np.ndarray:
    """Return the variance of the mean: that of the batch means over their number."""
    means = values.reshape(batches, -1, *values.shape[1:]).mean(axis=1)
    return means.var(axis=0, ddof=1) / batches


def _overlapping_variance(values: np.ndarray, size: int) -> np.ndarray:
    """Return the variance of the mean from the batches that start at every value (their equation 2)."""
    count = len(values)
    mean = values.mean(axis=0)
    sums = np.concatenate([np.zeros_like(values[:1]), np.cumsum(values - mean, axis=0)])
    deviations = (sums[size:] - sums[:-size]) / size
    return size * np.sum(deviations**2, axis=0) / ((count - size + 1) * (count - size))


def batch_observations(series: np.ndarray, count: int) -> np.ndarray:
    """Return the means of `count` stretches of a series of shape (n, ...), shape (count, ...)."""
    size = len(series) // count
    if size == 0:
        raise ValueError(f"{len(series)} values do not fill {count} stretches")
    kept = series[len(series) - count * size :]
    return kept.reshape(count, size, *series.shape[1:]).mean(axis=1)


def relative_half_width(values: np.ndarray, method: Method = "overlapping") -> float:
    """Return the half-width of the 95 % interval over the mean; infinite if the mean is 0."""
    result = interval(values, method)
    return float(result.half_width / abs(result.mean)) if result.mean != 0 else math.inf
