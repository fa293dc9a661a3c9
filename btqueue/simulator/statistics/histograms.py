"""Histograms of times and their quantiles: sixteen bins to an octave, so that these are known within 3 %."""

import math
from functools import cache

import numpy as np

from btqueue.simulator.machinery.numba_cache import compiled, entry_point

BINS_AN_OCTAVE = 16
LEAST_EXPONENT = 14
"""Times below 2^13 ns (8 microseconds) fall into the first bin."""
OCTAVES = 40
"""Up to 2^53 ns, 104 days, longer than a run takes."""
BINS = BINS_AN_OCTAVE * OCTAVES
FIRST_BIN = np.float64(2.0 ** (LEAST_EXPONENT - 1)).view(np.int64) >> 48
"""The leading sixteen bits of the first bin's lower edge as a floating-point number."""


@compiled
def count(histogram, time):
    """Count a time (ns) in the flow's histogram, shape (BINS,)."""
    # Exponent and first four bits of the fraction of a floating-point number: octave and bin.
    place = (np.float64(max(time, 1)).view(np.int64) >> 48) - FIRST_BIN
    histogram[min(max(place, 0), BINS - 1)] += 1


@cache
def edges() -> np.ndarray:
    """Return the edges of the bins (ns), shape (BINS + 1,); within an octave they are equally far apart."""
    octave, part = np.divmod(np.arange(BINS + 1), BINS_AN_OCTAVE)
    return np.ldexp(1.0 + part / BINS_AN_OCTAVE, octave + LEAST_EXPONENT - 1)


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
