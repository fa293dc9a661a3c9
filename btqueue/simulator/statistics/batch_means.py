"""Confidence intervals: Student's, of independent values, and batch means from one long run.

Successive values are correlated, so their sample variance is no measure of the error of their mean. Means of
long batches are nearly independent; more than 30 of them bring no gain (Schmeiser, Operations Research 30,
1982).
"""

from typing import Any, NamedTuple

import numpy as np

BATCHES = 20
"""Between Schmeiser's 10 and 30."""


class Interval(NamedTuple):
    """Interval for a mean: `mean` plus or minus `half_width`, shape (...,) for values of shape (n, ...)."""

    mean: np.ndarray
    half_width: np.ndarray


def student_half_width(values: np.ndarray, *, confidence: float = 0.95) -> Any:
    """Return the half-width of Student's interval for the mean of independent values.

    A number for values of shape (n,), an array (...,) for shape (n, ...); NaN for fewer than two values.
    """
    count = len(values)
    if count < 2:
        return np.full(np.shape(values)[1:], np.nan)[()]  # a number, not an array without dimensions
    return student_quantile(count - 1, 0.5 + confidence / 2) * np.std(values, axis=0, ddof=1) / count**0.5


def student_quantile(freedom: int, probability: float) -> float:
    """Return the quantile of Student's law with `freedom` degrees of freedom."""
    from scipy.special import stdtrit  # takes as long to import as numba

    return float(stdtrit(freedom, probability))


def interval(values: np.ndarray, batches: int = BATCHES, confidence: float = 0.95) -> Interval:
    """Return the interval for the mean of a stationary series by batch means with Student's quantile.

    Args:
        values: observations at equal distances in time, shape (n, ...), without the warm-up.
        batches: number of batches; a batch should be much longer than the time over which the values are
            correlated.
        confidence: probability that the interval covers the mean.

    Raises:
        ValueError: fewer than two batches, or fewer values than batches.
    """
    values = np.asarray(values, float)
    if batches < 2 or len(values) < batches:
        raise ValueError(f"{len(values)} values do not fill {batches} batches (at least 2)")
    values = values[len(values) % batches :]  # values left over are dropped next to the warm-up
    means = values.reshape(batches, -1, *values.shape[1:]).mean(axis=1)
    return Interval(values.mean(axis=0), student_half_width(means, confidence=confidence))
