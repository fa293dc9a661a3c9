"""The binomial law, from scipy.special alone: scipy.stats takes longer to import than a scenario to solve."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, xlog1py, xlogy


def probability(count: ArrayLike, trials: ArrayLike, chance: ArrayLike) -> NDArray[np.float64]:
    """Return the probability of exactly `count` successes; 0 outside 0..`trials`. Arguments broadcast.

    Example:
        >>> from btqueue.transport.binomial import probability
        >>> round(float(probability(1, 3, 0.5)), 4)
        0.375
    """
    k, n = np.asarray(count, float), np.asarray(trials, float)
    inside = (k >= 0.0) & (k <= n)
    k = np.where(inside, k, 0.0)
    ways: Any = gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)
    return np.where(inside, np.exp(ways + xlogy(k, chance) + xlog1py(n - k, -np.asarray(chance))), 0.0)
