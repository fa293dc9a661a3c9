"""Histograms of times with fixed bins: sixteen to an octave, so that a quantile is known within about 3 %."""

from functools import cache

import numpy as np

from btqueue.simulator.machinery.numba_cache import compiled

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
