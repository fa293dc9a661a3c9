"""Quantiles of times that were counted in the bins of `btqueue.simulator.statistics.histograms`."""

import math

import numpy as np

from btqueue.simulator.machinery.numba_cache import entry_point
from btqueue.simulator.statistics.histograms import edges


def quantiles(histograms: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return the times (ns) below which these shares of the counted times lie.

    Within a bin the times are taken to be spread evenly, so the error is less than the bin, 6 % of the time.

    Args:
        histograms: counts, shape (flows, BINS).
        shares: between 0 and 1, ascending, shape (shares,).

    Returns:
        Quantiles, shape (flows, shares); not a number where nothing was counted.
    """
    times = np.zeros((len(histograms), len(shares)))
    find_quantiles(histograms, shares, edges(), times)
    return times


@entry_point
def find_quantiles(histograms, shares, limits, times):
    """Write the quantiles of each flow's histogram, whose bins end at these limits (ns), into `times`."""
    for flow in range(len(histograms)):
        total = 0
        for count in histograms[flow]:
            total += count
        passed, place = 0, 0
        times[flow, :] = math.nan
        for end, count in enumerate(histograms[flow]):
            # the first bin that is not empty and at whose end the wanted number of times has been passed
            while count > 0 and place < len(shares) and passed + count >= shares[place] * total:
                inside = (shares[place] * total - passed) / count
                times[flow, place] = limits[end] + inside * (limits[end + 1] - limits[end])
                place += 1
            passed += count
