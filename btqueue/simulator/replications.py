"""`simulate`: independent replications on all cores, with progress, interruption and run-until-precision."""

import math
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import xarray as xr
from scipy import stats

from btqueue.scenario import Scenario
from btqueue.scenario.capability import require_built
from btqueue.scenario.metrics import describe
from btqueue.simulator.engine import NEEDS_SPACE, advance
from btqueue.simulator.invariants import check_invariants
from btqueue.simulator.measurement import measure
from btqueue.simulator.records import SECOND, State
from btqueue.simulator.state import forget_statistics, grow, new_state

CHUNK_S = 20.0
"""Simulated seconds between two looks at the progress bar and at Ctrl-C."""
MOST_REPLICATIONS = 1000
"""Where run-until-precision gives up."""

Progress = Callable[[float], None]
"""Called with the share of the work done since the last call, in replications."""


def simulate(
    scenario: Scenario, *, threads: int | None = None, progress: Progress | None = None
) -> xr.Dataset:
    """Simulate the scenario and return its metrics, one value for each replication.

    Args:
        scenario: what to simulate; `run` says how long, how often and from which seed.
        threads: replications run at once; the number of cores by default. Results do not depend on it.
        progress: called with the share of a replication that was finished.

    Returns:
        Dataset with dimensions (replication, flow); metrics of the whole piconet have (replication,) and
        `queue_packets` (replication, queue). Attributes: events, seed, and with `run.precision` the relative
        half-width reached.

    Raises:
        NotBuiltYet: the scenario asks for something that the simulator cannot do yet.
        InvariantViolated: the simulator lost count (a bug).
        KeyboardInterrupt: interrupted; threads have stopped.
    """
    require_built(scenario)
    threads = threads or os.cpu_count() or 1
    measured: list[dict] = []
    wanted = scenario.run.replications
    with np.errstate(over="ignore"):
        while True:
            batch = range(len(measured), wanted)
            measured += run_replications(scenario, batch, threads, progress)
            width = relative_half_width([m["goodput_kbps"] for m in measured])
            precision = scenario.run.precision
            if precision is None or width <= precision or len(measured) >= MOST_REPLICATIONS:
                break
            wanted = min(MOST_REPLICATIONS, next_target(len(measured), width, precision))
    return label(measured, scenario, width)


def run_replications(
    scenario: Scenario, numbers: range, threads: int, progress: Progress | None
) -> list[dict]:
    """Run the replications of these numbers, `threads` at a time, and return their metrics in order."""
    stop = threading.Event()
    with ThreadPoolExecutor(threads) as pool:
        try:  # Ctrl-C may come while replications are still handed out
            futures = [pool.submit(run_replication, scenario, number, progress, stop) for number in numbers]
            return [future.result() for future in futures]
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise


def run_replication(
    scenario: Scenario, number: int, progress: Progress | None = None, stop: threading.Event | None = None
) -> dict:
    """Run one replication and return its metrics and its number of events."""
    with np.errstate(over="ignore"):
        sim = new_state(scenario, number)
        total_s = scenario.run.warmup_s + scenario.run.duration_s
        sim = run_until(sim, scenario.run.warmup_s, total_s, progress, stop)
        forget_statistics(sim)
        sim = run_until(sim, total_s, total_s, progress, stop)
    check_invariants(sim)
    return {**measure(sim, scenario), "events": int(sim.clock[0].events)}


def run_until(
    sim: State, end_s: float, total_s: float, progress: Progress | None, stop: threading.Event | None
) -> State:
    """Advance to `end_s`, chunk by chunk, growing the pools where needed; return the state."""
    for until in _chunks(sim.clock[0].now / SECOND, end_s):
        before = sim.clock[0].now
        while advance(sim, round(until * SECOND)) == NEEDS_SPACE:
            sim = grow(sim)
        if stop is not None and stop.is_set():
            raise KeyboardInterrupt
        if progress is not None:
            progress((sim.clock[0].now - before) / SECOND / total_s)
    return sim


def _chunks(start_s: float, end_s: float) -> Iterator[float]:
    count = max(1, math.ceil((end_s - start_s) / CHUNK_S))
    return (start_s + (end_s - start_s) * step / count for step in range(1, count + 1))


def relative_half_width(goodputs: list[np.ndarray]) -> float:
    """Return the half-width of the 95 % interval of the mean goodput over that mean.

    Infinite for a single replication.
    """
    means = np.array([np.mean(values) for values in goodputs])
    if len(means) < 2 or means.mean() == 0:
        return math.inf
    return half_width(means) / abs(means.mean())


def half_width(values: np.ndarray, confidence: float = 0.95) -> float:
    """Return the half-width of Student's interval for the mean of independent values, shape (n,)."""
    if len(values) < 2:
        return math.nan
    quantile = stats.t.ppf(0.5 + confidence / 2, len(values) - 1)
    return float(quantile * values.std(ddof=1) / math.sqrt(len(values)))


def next_target(done: int, width: float, precision: float) -> int:
    """Return how many replications should reach the precision: one more to four times as many."""
    if not math.isfinite(width):
        return done + 2
    return min(4 * done, max(done + 1, math.ceil(done * (width / precision) ** 2)))


def label(measured: list[dict], scenario: Scenario, width: float) -> xr.Dataset:
    """Put names, units and provenance on the replications' metrics."""
    variables = {}
    for name in measured[0]:
        if name == "events":
            continue
        values = np.array([m[name] for m in measured])
        inner = "queue" if name == "queue_packets" else "flow"
        variables[name] = (("replication", inner)[: values.ndim], values)
    dataset = xr.Dataset(
        variables,
        coords={
            "replication": np.arange(len(measured)),
            "flow": np.arange(1, len(measured[0]["goodput_kbps"]) + 1),
            "queue": ["token_buffer", "uplink", "downlink"],
        },
        attrs={
            "answered_by": "simulation",
            "events": sum(m["events"] for m in measured),
            "seed": scenario.run.seed,
            "relative_half_width": width,
        },
    )
    return describe(dataset)
