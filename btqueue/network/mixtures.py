"""Laws of delays and round trips as mixtures of shifted gamma laws: mean, variation, quantiles."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc

Vector = NDArray[np.float64]
Number = float | Vector
Part = tuple[Number, Number, Number, Number]
"""Weight, least value, mean, variance; arrays are several parts."""

SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}
GRID = 4000
"""Points between the least value and twelve deviations above the mean."""


class Mixture(NamedTuple):
    """Parts with these weights: each its least value plus a gamma law of what is beyond (s)."""

    weights: Vector
    least: Vector
    means: Vector
    variances: Vector

    @property
    def mean(self) -> float:
        """Mean (s)."""
        return float(self.weights @ self.means)

    @property
    def sd(self) -> float:
        """Standard deviation (s)."""
        square = float(self.weights @ (self.variances + self.means**2))
        return max(square - self.mean**2, 0.0) ** 0.5

    def below(self, time: float) -> float:
        """Return the probability of a value up to this time."""
        beyond = np.maximum(self.means - self.least, 1e-9)
        shape = beyond**2 / np.maximum(self.variances, 1e-4 * beyond**2)
        return float(gammainc(shape, shape * np.maximum(time - self.least, 0.0) / beyond) @ self.weights)

    def quantiles(self) -> dict[str, float]:
        """Return the quantiles `SHARES` by name, from the law at the two points of a grid around each."""
        top = float((self.means + 12.0 * np.sqrt(self.variances)).max()) + 1e-6
        grid = np.linspace(float(self.least.min()), top, GRID)
        found = {}
        for name, share in SHARES.items():
            place = bisect_right(range(GRID), share, lo=1, hi=GRID - 1, key=lambda i: self.below(grid[i]))
            ends = grid[place - 1 : place + 1]
            found[name] = float(np.interp(share, [self.below(end) for end in ends], ends))
        return found

    def metrics(self, name: str) -> dict[str, float]:
        """Return mean, standard deviation and quantiles as metrics of this name (s)."""
        quantiles = {f"{name}_{share}_s": value for share, value in self.quantiles().items()}
        return {f"{name}_s": self.mean, f"{name}_sd_s": self.sd, **quantiles}


def mixture(parts: Sequence[Part]) -> Mixture:
    """Make a mixture of parts; weights need not sum to one, and parts without any are left out."""
    columns = np.hstack([np.broadcast_arrays(*map(np.atleast_1d, part)) for part in parts])
    weights, least, means, variances = columns[:, columns[0] > 0.0]
    return Mixture(weights / weights.sum(), np.minimum(least, means), means, variances)
