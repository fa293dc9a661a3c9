"""Weights at places between the points of a lattice, shared out to the points smoothly."""

import numpy as np
from numpy.typing import NDArray

VARIANCE = 0.25
"""What the sharing adds to a variance, in squares of the lattice's step."""


def shared_out(places: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return for each place the three points nearest to it, and its shares in them.

    The shares are quadratic B-splines: they keep the mean, add the same variance wherever the place is, and
    have a continuous derivative. Both results have a row for each of the three points.
    """
    nearest = np.floor(places + 0.5)
    off = places - nearest
    shares = np.stack([(0.5 - off) ** 2 / 2.0, 0.75 - off**2, (0.5 + off) ** 2 / 2.0])
    return nearest.astype(np.int64) + np.array([[-1], [0], [1]]), shares
