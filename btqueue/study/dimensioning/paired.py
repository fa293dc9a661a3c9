"""Statistics of simulated points: values by replication, intervals, paired differences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from btqueue.scenario.expressions import Linear
from btqueue.simulator.statistics import precision
from btqueue.study.summary import Estimate, holm, student_half_width

if TYPE_CHECKING:
    import xarray as xr

CONFIDENCE = 0.95
"""Of each interval, and of all comparisons together: one time in 20 at most any of them is a false alarm."""

Bound = Literal["met", "violated", "open", "unknown"]
"""Verdict of an interval on a bound; "open" if the bound lies inside."""


def samples_of(linear: Linear, dataset: xr.Dataset, keys: Mapping[str, Any]) -> np.ndarray:
    """Return the value of an expression in each replication, as `btqueue.simulator.statistics.precision`."""
    values = {
        name: dataset[name].transpose("replication", ...).values.astype(float)
        for name in linear.metrics
        if name in dataset
    }
    return precision.samples_of(linear, values, dataset.sizes["replication"], keys)


def estimate(samples: np.ndarray) -> Estimate:
    """Return mean and interval over the replications that have a value."""
    kept = samples[~np.isnan(samples)]
    if not kept.size:
        return Estimate(math.nan)
    return Estimate(float(kept.mean()), student_half_width(kept, confidence=CONFIDENCE))


def bound_verdict(slack: float, ci95: float) -> Bound:
    """Return whether a bound is met, from the mean slack and the half-width of its interval."""
    if math.isnan(slack):
        return "unknown"
    half_width = 0.0 if math.isnan(ci95) else ci95
    if slack >= half_width:
        return "met"
    return "violated" if slack < -half_width else "open"


def paired_p_value(differences: np.ndarray) -> float:
    """Return the two-sided p-value of Student's test that the mean difference is 0.

    NaN for fewer than two pairs, 1 if all of them are 0.
    """
    from scipy.special import stdtr

    kept = differences[~np.isnan(differences)]
    n = len(kept)
    if n < 2:
        return math.nan
    deviation = float(np.std(kept, ddof=1))
    if deviation == 0:
        return 1.0 if kept[0] == 0 else 0.0
    return float(2 * stdtr(n - 1, -abs(kept.mean()) / (deviation / math.sqrt(n))))


def different(p_values: Sequence[float], confidence: float = CONFIDENCE) -> frozenset[int]:
    """Return which of several differences are significant by `holm`; P-values that are NaN are none."""
    return holm(dict(enumerate(p_values)), 1 - confidence)
