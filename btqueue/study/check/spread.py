"""Intervals against the spread that the run length allows: too narrow ones are too optimistic."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from scipy import stats

from btqueue.study.check.findings import Finding, doubtful
from btqueue.study.check.results import ForeignResults, Quantity

LEAST_RATIO = 3.0
"""Ours must be this many times as wide, for the file need not have the scenario's run length."""


WATCHED = ("goodput_kbps", "throughput_kbps", "rtt_s", "window_segments", "cycle_s", "slot_utilisation")
"""Metrics whose replications are nearly normal, as the test wants them."""


def check_spread(
    results: ForeignResults, simulated: Mapping[str, np.ndarray], alpha: float, *, runs: int, seconds: float
) -> tuple[Finding, ...]:
    """Compare the variance between their replications with ours by Fisher's F test, one-sided.

    Args:
        results: read from the file.
        simulated: our samples.
        alpha: probability of a false alarm over all metrics.
        runs: replications behind an interval whose file does not say how many.
        seconds: simulated time of one of our runs.
    """
    narrow = {}
    for name in WATCHED:
        ours, quantity = simulated.get(name), results.quantities.get(name)
        if quantity is None or ours is None or len(ours) < 2 or ours.var(ddof=1) == 0:
            continue
        if (own := _variance(quantity, runs)) is None:
            continue
        variance, count = own
        ratio = math.inf if variance == 0 else float(ours.var(ddof=1)) / variance
        p = stats.f.sf(ratio, len(ours) - 1, max(1, count - 1))
        if ratio > LEAST_RATIO**2 and p < alpha / len(WATCHED):
            narrow[name] = math.sqrt(ratio)
    if not narrow:
        return ()
    shown = ", ".join(f"{name} {ratio:.3g} times" for name, ratio in narrow.items())
    text = (
        f"replications vary less than ours of {seconds:g} s ({shown}): unless their runs are far "
        "longer, the intervals are too optimistic, as intervals from correlated values or a shared "
        "random stream are"
    )
    return (doubtful("intervals", text),)


def _variance(quantity: Quantity, runs: int) -> tuple[float, int] | None:
    """Return the variance between replications that a quantity shows or claims, and how many there are."""
    if len(quantity.samples) > 1:
        return float(np.var(quantity.samples, ddof=1)), len(quantity.samples)
    if math.isnan(quantity.half_width):
        return None
    count = quantity.replications or runs
    quantile = float(stats.t.ppf(0.5 + quantity.confidence / 2, max(1, count - 1)))
    return (quantity.half_width / quantile) ** 2 * count, count
