"""Quantiles of times that were counted in the bins of `btqueue.simulator.statistics.histograms`."""

import numpy as np

from btqueue.simulator.statistics.histograms import edges


def quantile(histograms: np.ndarray, share: float) -> np.ndarray:
    """Return the time (ns) below which this share of the counted times lies.

    Within a bin the times are taken to be spread evenly, so the error is less than the bin, 6 % of the time.

    Args:
        histograms: counts, shape (..., BINS).
        share: between 0 and 1.

    Returns:
        Quantiles, shape (...,); not a number where nothing was counted.
    """
    below = np.cumsum(histograms, axis=-1)
    total = below[..., -1]
    wanted = share * total
    # the first bin at whose end at least the wanted number of times has been passed, and that is not empty
    place = np.argmax((below >= wanted[..., None]) & (histograms > 0), axis=-1)
    inside = np.take_along_axis(histograms, place[..., None], axis=-1)[..., 0]
    passed = np.take_along_axis(below, place[..., None], axis=-1)[..., 0] - inside
    limits = edges()
    with np.errstate(invalid="ignore", divide="ignore"):
        part = (wanted - passed) / inside
    return limits[place] + part * (limits[place + 1] - limits[place])
