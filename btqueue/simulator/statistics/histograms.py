"""Histograms of times and their quantiles: sixteen bins to an octave, so that these are known within 3 %."""

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
        shares: above 0 and up to 1, the least first, shape (shares,).

    Returns:
        Quantiles, shape (flows, shares); not a number where nothing was counted.
    """
    found = np.full((len(histograms), len(shares)), np.nan)
    write_quantiles(histograms, shares, edges(), found)
    return found


@entry_point
def write_quantiles(histograms, shares, limits, found):
    """Write the quantiles of `quantiles` to `found`, which holds NaN; `limits` are the edges of the bins."""
    for flow in range(len(histograms)):
        total, passed, place = 0, 0, 0
        for bin in range(BINS):
            total += histograms[flow, bin]
        if total == 0:
            continue
        for number in range(len(shares)):
            wanted = shares[number] * total
            while passed + histograms[flow, place] < wanted:
                passed += histograms[flow, place]
                place += 1
            inside = (wanted - passed) / histograms[flow, place]
            found[flow, number] = limits[place] + inside * (limits[place + 1] - limits[place])
