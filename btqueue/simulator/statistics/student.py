"""Confidence intervals of independent values: Student's."""

from functools import lru_cache
from typing import Any

import numpy as np


def student_half_width(values: np.ndarray) -> Any:
    """Return the half-width of Student's 95 % interval for the mean of independent values.

    A number for values of shape (n,), an array (...,) for shape (n, ...); NaN for fewer than two values.
    """
    count = len(values)
    if count < 2:
        return np.full(np.shape(values)[1:], np.nan)[()]  # a number, not an array without dimensions
    return student_quantile(count - 1, 0.975) * np.std(values, axis=0, ddof=1) / count**0.5


@lru_cache(maxsize=256)
def student_quantile(freedom: int, probability: float) -> float:
    """Return the quantile of Student's law with `freedom` degrees of freedom."""
    from scipy.special import stdtrit  # takes as long to import as numba

    return float(stdtrit(freedom, probability))
