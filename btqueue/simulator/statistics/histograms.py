"""Histograms of times with fixed bins: sixteen to an octave, so that a quantile is known within about 3 %."""

import math

import numpy as np

from btqueue.simulator.machinery.compilation import compiled

BINS_AN_OCTAVE = 16
LEAST_EXPONENT = 14
"""Times below 2^13 ns (8 microseconds) fall into the first bin."""
OCTAVES = 40
"""Up to 2^53 ns, 104 days, longer than a run takes."""
BINS = BINS_AN_OCTAVE * OCTAVES


@compiled
def count(histogram, time):
    """Count a time (ns) in the flow's histogram, shape (BINS,)."""
    mantissa, exponent = math.frexp(float(max(time, 1)))
    place = (exponent - LEAST_EXPONENT) * BINS_AN_OCTAVE + int((2.0 * mantissa - 1.0) * BINS_AN_OCTAVE)
    histogram[min(max(place, 0), BINS - 1)] += 1


def edges() -> np.ndarray:
    """Return the edges of the bins (ns), shape (BINS + 1,); within an octave they are equally far apart."""
    octave, part = np.divmod(np.arange(BINS + 1), BINS_AN_OCTAVE)
    return np.ldexp(1.0 + part / BINS_AN_OCTAVE, octave + LEAST_EXPONENT - 1)
