"""Independent replications of a small system on all cores, labelled, with confidence intervals."""

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Required, TypedDict

import numpy as np
import xarray as xr

from btqueue.simulator.statistics.batch_means import student_half_width

Metrics = Mapping[str, np.ndarray | float]
Replicate = Callable[[int, int, float, float], Metrics]
"""Called with the seed, the number of a replication, and the times at which the warm-up and the run end
(slots); returns the metrics of what lies between: scalars, or one value for each queue."""


class Runs(TypedDict, total=False):
    """How long and how often a system is simulated.

    Attributes:
        duration_slots: time that is measured, after `warmup_slots`, in each replication.
        warmup_slots: time before measuring starts; 0 by default.
        replications: independent repetitions; 10 by default.
        seed: seed of all random streams; 1 by default.
        threads: replications run at once; the number of cores by default. Results do not depend on it.
        confidence: of the half-widths; 0.95 by default.
    """

    duration_slots: Required[float]
    warmup_slots: float
    replications: int
    seed: int
    threads: int | None
    confidence: float


class CountLost(RuntimeError):
    """The simulator has lost count: its numbers must not be used. Please report the system and the seed."""


def require_equal(first: np.ndarray, second: np.ndarray, what: str) -> None:
    """Raise `CountLost` unless two counts of the same thing are equal."""
    if not np.array_equal(first, second):
        raise CountLost(f"{what}: {first} and {second} should be equal")


def run_independently(
    replicate: Replicate,
    *,
    duration_slots: float,
    warmup_slots: float = 0.0,
    replications: int = 10,
    seed: int = 1,
    threads: int | None = None,
    confidence: float = 0.95,
) -> xr.Dataset:
    """Call `replicate` for every replication and return its metrics over them; the arguments are `Runs`.

    Returns:
        Dataset with dimensions (replication,) or (replication, queue), and for each metric `m` that is not a
        count (a whole number) `m_half_width` over the replications.
    """

    def quietly(number: int) -> Metrics:
        with np.errstate(over="ignore"):  # the random numbers' words wrap around
            return replicate(seed, number, warmup_slots, warmup_slots + duration_slots)

    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        measured = list(pool.map(quietly, range(replications)))
    variables = {}
    for name in measured[0]:
        values = np.array([metrics[name] for metrics in measured])
        variables[name] = (("replication", "queue")[: values.ndim], values)
        if values.dtype.kind == "f":
            widths = student_half_width(values, confidence=confidence)
            variables[f"{name}_half_width"] = (("queue",)[: values.ndim - 1], widths)
    return xr.Dataset(variables, attrs={"seed": seed, "confidence": confidence, "unit_of_time": "slot"})
