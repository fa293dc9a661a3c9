"""Confidence intervals from one long run: batch means.

Values next to each other in time are correlated, so their sample variance says little about the error of
their mean. Means of long batches are nearly independent; more than 30 of them gain nothing (Schmeiser,
Operations Research 30, 1982).
"""

from typing import NamedTuple

import numpy as np
from scipy import special

BATCHES = 20
"""Between Schmeiser's 10 and 30."""


class Interval(NamedTuple):
    """Interval for a mean: `mean` plus or minus `half_width`, shape (...,) for values of shape (n, ...)."""

    mean: np.ndarray
    half_width: np.ndarray


def interval(values: np.ndarray, batches: int = BATCHES, confidence: float = 0.95) -> Interval:
    """Return the interval for the mean of a stationary series by batch means with Student's quantile.

    Args:
        values: observations at equal distances in time, shape (n, ...), without the warm-up.
        batches: into how many batches the series is cut; a batch should be much longer than the time over
            which the values are correlated.
        confidence: probability that the interval covers the mean.

    Raises:
        ValueError: fewer than two batches, or fewer values than batches.
    """
    values = np.asarray(values, float)
    if batches < 2 or len(values) < batches:
        raise ValueError(f"{len(values)} values do not fill {batches} batches (at least 2)")
    values = values[len(values) % batches :]  # what is left over is dropped where the warm-up was nearest
    means = values.reshape(batches, -1, *values.shape[1:]).mean(axis=1)
    quantile = special.stdtrit(batches - 1, 0.5 + confidence / 2)
    return Interval(values.mean(axis=0), quantile * np.sqrt(means.var(axis=0, ddof=1) / batches))
