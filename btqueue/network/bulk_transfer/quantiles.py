"""Quantiles of round trips."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Vector = NDArray[np.floating]

QUANTILES = {"rtt_p50_s": 0.5, "rtt_p90_s": 0.9, "rtt_p95_s": 0.95, "rtt_p99_s": 0.99}
SHARES = list(QUANTILES.values())


def quantiles(trips: Vector, spread: float) -> Vector:
    """Return quantiles of round trips (s), each with a normal spread of variance `spread` (s) a second."""
    if spread == 0.0:
        return np.quantile(trips, SHARES)
    centres = np.quantile(trips, (np.arange(200) + 0.5) / 200)
    deviations = np.sqrt(spread * centres)
    grid = np.linspace(max(0.0, centres[0] - 5 * deviations[0]), centres[-1] + 5 * deviations[-1], 2000)
    below = ndtr((grid[:, None] - centres) / deviations).mean(axis=1)
    return np.interp(SHARES, below, grid)


def weighted_quantiles(trips: Vector, weights: Vector) -> Vector:
    """Return quantiles of round trips that have these weights."""
    order = np.argsort(trips)
    below = np.cumsum(weights[order]) - 0.5 * weights[order]
    return np.interp(SHARES, below / weights.sum(), trips[order])
