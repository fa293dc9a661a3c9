"""`simulate`: independent replications on all cores, until they are enough.

Ctrl-C stops between two chunks of a run, so that the measurements until then can still be used.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import Any, Literal

import numpy as np

from btqueue.scenario import Scenario
from btqueue.scenario.errors import ScenarioError, bad_value, conflict
from btqueue.scenario.metrics import Results
from btqueue.simulator.construction.state import EmptyNetwork, empty_network, grow, new_state
from btqueue.simulator.engine import NEEDS_SPACE, REACHED, advance
from btqueue.simulator.machinery.threads import Job, Progress, Stopped, in_threads, to_the_end
from btqueue.simulator.records.arrays import State
from btqueue.simulator.records.conventions import SECOND
from btqueue.simulator.statistics.backlog import plan_looks, plan_second_half
from btqueue.simulator.statistics.precision import FEWEST_OBSERVATIONS, CpuBudget, Watched, next_target
from btqueue.simulator.statistics.results import Measured, Replication, finish, label
from btqueue.simulator.statistics.warmup import find_warm_up

FIRST_CHUNK_S = 20.0
"""Simulated seconds of one piconet until the parts of a network first reach a common time; later chunks take
`CHUNK_TAKES_S`."""
CHUNK_TAKES_S = 0.25
"""Least time (s) between two common times; the most is four times as much. At each common time every part
comes back into the processor's cache."""
PARTS = 8
"""The first runs last `run.duration_s / PARTS`. They become twice as long until goodput is known, or until
they have the whole length."""
MOST_OBSERVATIONS = 1000
"""Replications at which run-until-precision gives up."""
PILOT_STEPS = 1000
"""Observations in the pilot run that finds the warm-up."""

Device = Literal["cpu", "gpu"]
"""Where replications run."""
Runner = Callable[[Iterable[Job]], Generator[None, bool | None, list[Any]]]
"""Does jobs, piece by piece, and returns their results in order; raises `Stopped` after Ctrl-C."""


class Interrupted(Stopped):
    """The simulation was interrupted; `results` are the measurements until then, or None."""


def simulate(
    scenario: Scenario,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    device: Device = "cpu",
    most: int | None = None,
) -> Results:
    """Simulate the scenario and return its metrics, one value for each replication, with units.

    Args:
        scenario: the scenario to simulate; `run` has the length, the number of replications and the seed.
        threads: replications run at once; the number of cores by default. Results do not depend on it.
        progress: called with the share of a replication that was finished.
        device: where replications run; on the "gpu" all at once (`btqueue.simulator.gpu.runs`).
        most: greatest number of replications with `run.precision`; if given, all have the whole length. By
            default `MOST_OBSERVATIONS`, and runs may be shorter.

    Returns:
        `Results`, read like an `xarray.Dataset`: metrics of dimensions (replication, flow); metrics of the
        whole network have (replication,), metrics of single links (replication, link), and `queue_packets`
        (replication, queue). Attributes: events, seed, warmup_s, complete, warnings, and of the quantity
        `precision_of` its `estimate`, and the `half_width` and `relative_half_width` of its 95 % interval,
        which is never narrower than `run.precision` asks for (`btqueue.simulator.statistics.precision`).
        With a precision of goodput runs may be shorter than `run.duration_s`; the coordinate `measured_s` has
        their lengths.

    Raises:
        NotBuiltYet: the scenario has a feature that the simulator does not have yet.
        ScenarioError: a file that the scenario names cannot be used, no warm-up was found, the network does
            not have the quantity `run.precision_of`, or `run.limit_cpu_s` ended the run in its warm-up.
        GpuUnavailable: a GPU was asked for, and there is none.
        InvariantViolated: the simulator's counts are inconsistent (a bug).
        Interrupted: by Ctrl-C; threads have stopped. `results` holds the replications that came to their end
            or, if there are none, the measurements of the replications under way; its attribute `complete` is
            0.
    """
    run = partial(in_parallel, threads or os.cpu_count() or 1)
    return to_the_end(observe(scenario, run, progress, device, most))


def simulate_many(
    scenarios: Iterable[Scenario], *, threads: int | None = None, progress: Progress | None = None
) -> list[Results]:
    """Simulate several scenarios, one thread each, and return their results in order; see `simulate`.

    No thread is idle at the end of a scenario, while the last replication of this scenario runs.

    Args:
        scenarios: each gives the results that `simulate` gives.
        threads: scenarios simulated at once; the number of cores by default.
        progress: called with the share of a replication that was finished.

    Raises:
        NotBuiltYet: a scenario has a feature that the simulator does not have yet.
        ScenarioError: a scenario cannot be simulated, as for `simulate`.
        InvariantViolated: the simulator's counts are inconsistent (a bug).
        Stopped: by Ctrl-C; `results` are the results of the scenarios that were begun, in order. Of a
            scenario under way they hold the measurements up to then, with `complete` = 0; a scenario
            in its warm-up has none.
    """
    jobs = (observe(scenario, one_by_one, progress) for scenario in scenarios)
    try:
        return in_threads((_unless_interrupted(job) for job in jobs), threads or os.cpu_count() or 1)
    except Stopped as stopped:
        raise Stopped([one for one in stopped.results if one is not None]) from None


def _unless_interrupted(job: Job) -> Generator[None, bool | None, Results | None]:
    """Return the job's results, partial ones after Ctrl-C: other threads have results to be kept, too."""
    try:
        return (yield from job)
    except Interrupted as stopped:
        return stopped.results


def observe(
    scenario: Scenario,
    run: Runner,
    progress: Progress | None,
    device: Device = "cpu",
    most: int | None = None,
) -> Generator[None, bool | None, Results]:
    """Simulate a scenario, piece by piece, and return its results; see `simulate`."""
    require_length(scenario)
    network = empty_network(scenario)
    watched, budget = Watched(scenario, network.state), CpuBudget(scenario)
    replications = None if device == "cpu" else on_device(device, scenario)
    warmup_s = find_warmup(scenario) if scenario.run.warmup_s == "auto" else float(scenario.run.warmup_s)
    measured, shorter = list[Replication](), list[Replication]()
    begun: dict[int, State] = {}
    parts = PARTS if device == "cpu" and most is None and watched.may_end_early else 0
    most = most or MOST_OBSERVATIONS
    wanted = min(FEWEST_OBSERVATIONS, scenario.run.replications) if parts else scenario.run.replications
    while True:
        numbers = range(len(measured), wanted)
        try:
            if replications is not None:
                measured += replications(scenario, numbers, warmup_s, progress)
            else:
                job = partial(replicate, network, scenario, parts=parts or 1, begun=begun)
                jobs = (budget.bound(job(n, warmup_s, progress)) for n in numbers)
                measured += [one for one in (yield from run(jobs)) if one is not None]
        except Stopped as stopped:
            measured += [one for one in stopped.results if one is not None]
            measured = measured if len(measured) >= len(shorter) else shorter
            found = None
            if measured:
                own = Measured(measured, scenario, network.state)
                found = label(own, network.state, warmup_s, wanted)
                found.attrs["complete"] = 0  # also if all of a round were finished just then
                watched.note(found, watched.known(own), "")
            raise Interrupted(found) from None
        budget.require(measured)
        own = Measured(measured, scenario, network.state)
        known, target = watched.known(own), wanted
        result = label(own, network.state, warmup_s, wanted)
        if parts:
            if watched.is_enough_early(known, own.complete, result):
                if parts > 1:  # longer runs may differ, even if these runs are alike
                    known = known._replace(final=False)
                break
            parts, shorter, measured = parts // 2, measured, [] if begun else measured
            wanted = wanted if parts else scenario.run.replications
            continue
        if not watched.is_enough(known, len(measured)):
            target = min(most, next_target(len(measured), known.relative, watched.precision))
        within = min(target, budget.affordable(len(measured)))
        if within <= wanted:
            break
        wanted = within
    watched.note(result, known, budget.ended(result.attrs["finished"], target))
    return result


def require_length(scenario: Scenario) -> None:
    """Make sure that the run lasts a nanosecond, the step of the clock.

    Raises:
        ScenarioError: it does not.
    """
    if scenario.run.duration_s * SECOND < 1:
        allowed = "at least 1e-09 s to be simulated"
        raise ScenarioError(bad_value("run.duration_s", scenario.run.duration_s, allowed))


def on_device(device: Device, scenario: Scenario) -> Callable[..., list[Replication]]:
    """Return the function that runs replications on a device other than the CPU.

    Raises:
        GpuUnavailable: the device is a GPU, and there is none.
        ScenarioError: the scenario bounds CPU time.
    """
    if device != "gpu":
        raise ValueError(f'device is "cpu" or "gpu", not {device!r}')
    if (limit_s := scenario.run.limit_cpu_s) is not None:
        why = "a GPU plays its replications to the end"
        raise ScenarioError(conflict("run.limit_cpu_s", limit_s, why))
    from btqueue.simulator.gpu import runs as gpu  # an extra

    gpu.open_gpu()
    return gpu.run_replications


def in_parallel(threads: int, jobs: Iterable[Job]) -> Generator[None, bool | None, list[Any]]:
    """Do jobs in threads, without a pause; only Ctrl-C stops it."""
    yield from ()
    return in_threads(jobs, threads)


def one_by_one(jobs: Iterable[Job]) -> Generator[None, bool | None, list[Any]]:
    """Do jobs one after the other, and stop between two pieces if Ctrl-C has come.

    Raises:
        Stopped: with the results of the jobs begun.
    """
    results: list[Any] = []
    for job in jobs:
        stop: bool | None = None
        while True:
            try:
                job.send(stop)
            except StopIteration as end:
                results.append(end.value)
                break
            stop = yield
        if stop:
            raise Stopped(results)
    return results


def run_replication(scenario: Scenario, number: int) -> Replication:
    """Run one replication and return its measurements."""
    network, warmup_s = empty_network(scenario), float(scenario.run.warmup_s)
    return to_the_end(replicate(network, scenario, number, warmup_s, None))


def replicate(
    network: EmptyNetwork,
    scenario: Scenario,
    number: int,
    warmup_s: float,
    progress: Progress | None,
    parts: int = 1,
    begun: dict[int, State] | None = None,
) -> Generator[None, bool | None, Replication | None]:
    """Run one replication, piece by piece, and return its measurements; None if stopped in its warm-up.

    The measurement lasts `run.duration_s / parts`. `begun` has, by number, the states of measurements half as
    long, which go on here; for `parts` > 1 it keeps the state at the end.
    """
    total_s = warmup_s + scenario.run.duration_s / parts
    sim = begun.pop(number, None) if begun else None
    plan = plan_second_half if sim else plan_looks
    sim = sim or network.begin(scenario.run.seed, number)
    plan(sim, round(warmup_s * SECOND), total_s)
    whole_s = warmup_s + scenario.run.duration_s
    sim, complete = yield from advance_to(sim, total_s, whole_s, progress)
    if begun is not None and parts > 1:
        begun[number] = sim
    network.keep_pools(sim)
    return finish(sim, complete)


def run_until(sim: State, end_s: float) -> State:
    """Advance to `end_s`, with larger pools of packets and segments where needed, and return the state."""
    return to_the_end(advance_to(sim, end_s, end_s, None))[0]


def advance_to(
    sim: State, end_s: float, total_s: float, progress: Progress | None
) -> Generator[None, bool | None, tuple[State, bool]]:
    """Advance to `end_s`, with larger pools where needed; return the state and whether it came there.

    At every pause of `advance` it yields, and reports progress. The parts of a network that no path connects
    are played one after the other, in chunks of time. Progress is reported when all have come to the same
    time.
    """
    clock = sim.clock[0]
    end, reported = round(end_s * SECOND), int(clock.now)
    parts = len(sim.islands)
    chunk = end if parts == 1 else round(FIRST_CHUNK_S / parts * SECOND)
    while reported < end:
        if (yield):
            return sim, False
        began, until = time.perf_counter(), min(end, reported + chunk)
        while (reason := advance(sim, until)) != REACHED:
            if reason == NEEDS_SPACE:
                sim = grow(sim)
                continue
            if parts == 1:
                reported = report(progress, reported, int(clock.now), total_s)
            if (yield):
                return sim, False
        took = time.perf_counter() - began
        if took < CHUNK_TAKES_S:
            chunk *= 2
        elif took > 4 * CHUNK_TAKES_S:
            chunk = max(1, chunk // 2)
        reported = report(progress, reported, until, total_s)
    return sim, True


def report(progress: Progress | None, before: int, now: int, total_s: float) -> int:
    """Report the progress from `before` to `now` (ns), if a `progress` was given, and return `now`."""
    if progress is not None:
        progress((now - before) / SECOND / total_s)
    return now


def find_warmup(scenario: Scenario) -> float:
    """Return the warm-up (s) that MSER-5 finds in a pilot run as long as the measurement.

    It is the longer of two warm-ups: of the total goodput and of the number of packets in all queues.

    Raises:
        ScenarioError: one of the two has no stationary part.
    """
    step_s = scenario.run.duration_s / PILOT_STEPS
    looks = []
    sim = new_state(scenario, 0)
    for step in range(1, PILOT_STEPS + 1):
        sim = run_until(sim, step * step_s)
        looks.append((sim.flow_statistics.bytes_delivered.sum(), sim.queues.length.sum()))
    delivered, waiting = np.array(looks, float).T
    ends = []
    for what, series in (("goodput", np.diff(delivered, prepend=0.0)), ("queues", waiting)):
        if (end_s := find_warm_up(series, step_s)) is None:
            why = f"the {what} did not become stationary in a run of duration_s = {scenario.run.duration_s:g}"
            raise ScenarioError(
                conflict("run.warmup_s", "auto", f"{why}; make it longer, or give warmup_s in seconds")
            )
        ends.append(end_s)
    return max(ends)
