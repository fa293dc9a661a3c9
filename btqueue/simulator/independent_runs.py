"""Independent replications of a small system on all cores, labelled, with confidence intervals."""

import math
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import xarray as xr
from scipy import stats

Metrics = Mapping[str, np.ndarray | float]


class CountLost(RuntimeError):
    """The simulator has lost count: its numbers must not be used. Please report the system and the seed."""


def require_equal(first: np.ndarray, second: np.ndarray, what: str) -> None:
    """Raise `CountLost` unless two counts of the same thing are equal."""
    if not np.array_equal(first, second):
        raise CountLost(f"{what}: {first} and {second} should be equal")


def interval_half_widths(values: np.ndarray, confidence: float) -> np.ndarray:
    """Return half-widths of Student's intervals of means over axis 0; not a number for one replication."""
    count = len(values)
    if count < 2:
        return np.full(values.shape[1:], np.nan)
    quantile = stats.t.ppf(0.5 + confidence / 2, count - 1)
    return quantile * values.std(axis=0, ddof=1) / math.sqrt(count)


def run_independently(
    replicate: Callable[[int], Metrics],
    *,
    replications: int,
    threads: int | None,
    confidence: float,
    seed: int,
) -> xr.Dataset:
    """Call `replicate` with the numbers of the replications and return its metrics over them.

    Args:
        replicate: returns the metrics of one replication: scalars, or one value for each queue.
        replications: how many.
        threads: how many at once; the number of cores by default.
        confidence: of the half-widths.
        seed: kept as an attribute.

    Returns:
        Dataset with dimensions (replication,) or (replication, queue), and for each metric `m` that is not a
        count (a whole number) `m_half_width` over the replications.
    """

    def quietly(number: int) -> Metrics:
        with np.errstate(over="ignore"):  # the random numbers' words wrap around
            return replicate(number)

    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        measured = list(pool.map(quietly, range(replications)))
    variables = {}
    for name in measured[0]:
        values = np.array([metrics[name] for metrics in measured])
        variables[name] = (("replication", "queue")[: values.ndim], values)
        if values.dtype.kind == "f":
            widths = interval_half_widths(values, confidence)
            variables[f"{name}_half_width"] = (("queue",)[: values.ndim - 1], widths)
    return xr.Dataset(variables, attrs={"seed": seed, "confidence": confidence, "unit_of_time": "slot"})
