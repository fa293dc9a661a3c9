"""`simulate`: independent replications on all cores, with progress, interruption and run-until-precision."""

import math
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy import stats

from btqueue.scenario import Scenario
from btqueue.scenario.capability import require_built
from btqueue.scenario.metrics import describe
from btqueue.simulator.batch_means import batch_observations, interval
from btqueue.simulator.engine import NEEDS_SPACE, advance
from btqueue.simulator.invariants import check_invariants
from btqueue.simulator.measurement import LINK_METRICS, measure, queue_kinds
from btqueue.simulator.records import QUEUE_KINDS, SECOND, State
from btqueue.simulator.state import build, forget_statistics, grow, new_state
from btqueue.simulator.warmup import find_warm_up

CHUNK_S = 20.0
"""Simulated seconds between two looks at the progress bar and at Ctrl-C."""
MOST_REPLICATIONS = 1000
"""Where run-until-precision gives up."""
PILOT_STEPS = 1000
"""Observations of the goodput in the pilot run that finds the warm-up."""
BATCH_OBSERVATIONS = 1024
"""Observations that batch means are made of."""

Progress = Callable[[float], None]
"""Called with the share of the work done since the last call, in replications."""


class Interrupted(KeyboardInterrupt):
    """The simulation was interrupted; `partial` is what had been measured by then, or None."""

    def __init__(self, partial: xr.Dataset | None) -> None:
        """Keep the partial result."""
        super().__init__("interrupted")
        self.partial = partial


class Replication(NamedTuple):
    """What one replication measured, over how many simulated seconds, and whether it came to its end."""

    metrics: dict[str, Any]
    events: int
    measured_s: float
    complete: bool


def simulate(
    scenario: Scenario, *, threads: int | None = None, progress: Progress | None = None
) -> xr.Dataset:
    """Simulate the scenario and return its metrics, one value for each replication.

    Args:
        scenario: what to simulate; `run` says how long, how often and from which seed.
        threads: replications run at once; the number of cores by default. Results do not depend on it.
        progress: called with the share of a replication that was finished.

    Returns:
        Dataset with dimensions (replication, flow); metrics of the whole network have (replication,), those of
        single links (replication, link), and `queue_packets` (replication, queue). With `run.intervals` =
        "batch-means", or a single replication, the dimension replication counts the batches of one long run.
        Attributes: events, seed, warmup_s, complete, and the relative half-width of the goodput's interval.

    Raises:
        NotBuiltYet: the scenario asks for something that the simulator cannot do yet.
        ScenarioError: a file that the scenario names cannot be used.
        InvariantViolated: the simulator lost count (a bug).
        Interrupted: by Ctrl-C; threads have stopped, and `partial` holds what was measured till then.
    """
    require_built(scenario, engine="simulate")
    threads = threads or os.cpu_count() or 1
    build(scenario)
    warmup_s = find_warmup(scenario) if scenario.run.warmup_s == "auto" else float(scenario.run.warmup_s)
    measured: list[Replication] = []
    wanted = scenario.run.replications
    while True:
        batch = range(len(measured), wanted)
        done = run_replications(scenario, batch, threads, warmup_s, progress)
        measured += [replication for replication in done if replication is not None]
        if len(done) < len(batch) or not all(r is not None and r.complete for r in done):
            raise Interrupted(label(measured, scenario, warmup_s) if measured else None)
        width = relative_half_width([r.metrics["goodput_kbps"] for r in measured])
        precision = scenario.run.precision
        if precision is None or width <= precision or len(measured) >= MOST_REPLICATIONS:
            break
        wanted = min(MOST_REPLICATIONS, next_target(len(measured), width, precision))
    return label(measured, scenario, warmup_s)


def run_replications(
    scenario: Scenario, numbers: range, threads: int, warmup_s: float, progress: Progress | None
) -> list[Replication | None]:
    """Run the replications of these numbers, `threads` at a time, and return them in order.

    After Ctrl-C: those that were finished, and what the others had measured by then (None before the end of the
    warm-up); those not begun are left out.
    """
    stop = threading.Event()
    futures: list[Future[Replication | None]] = []
    with ThreadPoolExecutor(threads) as pool:
        try:  # Ctrl-C may come while replications are still handed out
            for number in numbers:
                futures.append(pool.submit(run_replication, scenario, number, warmup_s, progress, stop))  # noqa: PERF401
            return [future.result() for future in futures]
        except KeyboardInterrupt:
            stop.set()
            pool.shutdown(cancel_futures=True)
            return [future.result() for future in futures if not future.cancelled()]
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise


def run_replication(
    scenario: Scenario,
    number: int,
    warmup_s: float | None = None,
    progress: Progress | None = None,
    stop: threading.Event | None = None,
) -> Replication | None:
    """Run one replication and return what it measured; None if it was stopped in its warm-up."""
    warmup_s = float(scenario.run.warmup_s) if warmup_s is None else warmup_s
    with np.errstate(over="ignore"):
        sim = new_state(scenario, number)
        total_s = warmup_s + scenario.run.duration_s
        sim, complete = run_until(sim, warmup_s, total_s, progress, stop)
        if not complete:
            return None
        forget_statistics(sim)
        sim, complete = run_until(sim, total_s, total_s, progress, stop)
    clock = sim.clock[0]
    check_invariants(sim)
    measured_s = float(clock.now - clock.statistics_since) / SECOND
    if measured_s == 0:
        return None
    return Replication(
        {**measure(sim, scenario), "queue_kinds": queue_kinds(sim)}, int(clock.events), measured_s, complete
    )


def run_until(
    sim: State, end_s: float, total_s: float, progress: Progress | None, stop: threading.Event | None
) -> tuple[State, bool]:
    """Advance to `end_s`, chunk by chunk, growing the pools where needed; return the state and whether it came there."""
    for until in _chunks(sim.clock[0].now / SECOND, end_s):
        if stop is not None and stop.is_set():
            return sim, False
        before = sim.clock[0].now
        while advance(sim, round(until * SECOND)) == NEEDS_SPACE:
            sim = grow(sim)
        if progress is not None:
            progress((sim.clock[0].now - before) / SECOND / total_s)
    return sim, True


def _chunks(start_s: float, end_s: float) -> Iterator[float]:
    count = max(1, math.ceil((end_s - start_s) / CHUNK_S))
    return (start_s + (end_s - start_s) * step / count for step in range(1, count + 1))


def find_warmup(scenario: Scenario) -> float:
    """Return the warm-up (s) that MSER-5 finds in the total goodput of a pilot run as long as the measurement."""
    step_s = scenario.run.duration_s / PILOT_STEPS
    sim = new_state(scenario, 0)
    delivered = [0]
    for step in range(1, PILOT_STEPS + 1):
        sim, _ = run_until(sim, step * step_s, scenario.run.duration_s, None, None)
        delivered.append(int(sim.flow_statistics.bytes_delivered.sum()))
    return find_warm_up(np.diff(delivered).astype(float), step_s).length_s


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


def label(measured: list[Replication], scenario: Scenario, warmup_s: float) -> xr.Dataset:
    """Put names, units and provenance on the replications' metrics."""
    variables = {}
    first = measured[0].metrics
    for name in first:
        if name == "queue_kinds":
            continue
        values = np.array([replication.metrics[name] for replication in measured])
        inner = "queue" if name == "queue_packets" else "link" if name in LINK_METRICS else "flow"
        variables[name] = (("replication", inner)[: values.ndim], values)
    coordinates: dict[str, Any] = {
        "replication": np.arange(len(measured)),
        "flow": np.arange(1, len(first["goodput_kbps"]) + 1),
        "queue": [QUEUE_KINDS[kind] for kind in first["queue_kinds"]],
    }
    if "polls_per_s" in first:
        coordinates["link"] = np.arange(1, len(first["polls_per_s"]) + 1)
    dataset = xr.Dataset(
        variables,
        coords=coordinates,
        attrs={
            "answered_by": "simulation",
            "events": sum(replication.events for replication in measured),
            "seed": scenario.run.seed,
            "warmup_s": warmup_s,
            "complete": int(all(replication.complete for replication in measured)),
            "measured_s": sum(replication.measured_s for replication in measured),
            "relative_half_width": relative_half_width([r.metrics["goodput_kbps"] for r in measured]),
        },
    )
    return describe(dataset)
