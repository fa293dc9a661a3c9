"""From the measurements of replications, or of the batches of one long run, to labelled results."""

from typing import NamedTuple

import numpy as np

from btqueue.scenario import Scenario
from btqueue.scenario.metrics import Results, Variable
from btqueue.scenario.overload import grows_with_the_run, overload_warning
from btqueue.scenario.recordings import read_arrivals
from btqueue.scenario.topology import topology
from btqueue.simulator.construction.state import network_of
from btqueue.simulator.records.arrays import State
from btqueue.simulator.records.nodes import QUEUE_KINDS
from btqueue.simulator.statistics.backlog import LOOKS, is_growing
from btqueue.simulator.statistics.doubts import doubts, look_at_batches
from btqueue.simulator.statistics.invariants import check_invariants
from btqueue.simulator.statistics.measurement import (
    LINK_METRICS,
    Counts,
    Metrics,
    drained_kbps,
    halves,
    measure,
    queue_kinds,
    stacked,
    take_counts,
)


class Replication(NamedTuple):
    """The counts of one replication (or batch), and whether it came to its end.

    `backlogs`: backlogs at its beginning and at its looks, shape (looks + 1, backlogs); `halfway`: the
    statistics of the flows in the middle of a replication; `random`: whether it can have random events.
    """

    counts: Counts
    events: int
    complete: bool
    backlogs: np.ndarray
    halfway: np.ndarray | None = None
    random: bool = True


def uses_batch_means(scenario: Scenario) -> bool:
    """Whether intervals come from the batches of one long run."""
    run = scenario.run
    return run.intervals == "batch-means" or (run.intervals == "auto" and run.replications == 1)


def finish(sim: State, complete: bool) -> Replication | None:
    """Check a state and return its counts; None if there are none.

    In the middle of a chunk the parts of a network, which are played one after the other, are at different
    times, and no metric can be measured.
    """
    clock = sim.clock[0]
    if clock.look == 0 or (clock.pause_at > 0 and len(sim.islands) > 1):
        return None
    check_invariants(sim)
    if clock.now == clock.statistics_since:
        return None
    halfway = sim.halfway.copy() if clock.look > LOOKS // 2 else None
    return Replication(take_counts(sim), int(clock.events), complete, sim.seen[: clock.look].copy(), halfway)


def label(measured: list[Replication], scenario: Scenario, warmup_s: float, wanted: int) -> Results:
    """Put names on the measurements; replications cut short are left out if any is complete."""
    complete = [one for one in measured if one.complete]
    kept = complete or measured
    kinds = queue_kinds(network_of(scenario))
    values, overloaded, endless = values_of(kept, scenario)
    variables = {}
    for name, found in values.items():
        inner = "queue" if name == "queue_packets" else "link" if name in LINK_METRICS else "flow"
        variables[name] = Variable(("replication", inner)[: found.ndim], found)
    results = Results(
        variables,
        coordinates(kept, scenario, kinds),
        {
            "answered_by": "simulation",
            "events": sum(one.events for one in kept),
            "seed": scenario.run.seed,
            "warmup_s": warmup_s,
            "intervals": "batch-means" if uses_batch_means(scenario) else "replications",
            "complete": int(len(complete) == wanted),
            "wanted": wanted,
            "finished": len(complete),
            "warnings": [],
        },
    )
    results.attrs["warnings"] += warnings_of_growth(kept, scenario, results, overloaded, endless)
    if uses_batch_means(scenario):
        look_at_batches(results)
    if complete:
        ends = stacked([one.counts.flows for one in complete])
        seconds = np.array([[one.counts.seconds] for one in complete])
        halfway = [one.halfway for one in complete if one.halfway is not None]  # none of batches
        both = halves(stacked(halfway), ends, seconds) if halfway else {}
        seen = {
            name: values
            for name, values in both.items()
            if not (overloaded.any() and grows_with_the_run(name))
        }
        results.attrs["warnings"] += doubts(
            results,
            scenario,
            seen,
            drained_kbps(ends, seconds),
            random=any(one.random for one in complete),
        )
    return results


def values_of(kept: list[Replication], scenario: Scenario) -> tuple[Metrics, np.ndarray, np.ndarray]:
    """Return the metrics, NaN where they grow with the run, and the two arrays of `growing`."""
    network = network_of(scenario)
    values = measure(network, [one.counts for one in kept])
    overloaded, endless = growing(kept, scenario)
    for name in filter(grows_with_the_run, values):
        values[name] = np.where(overloaded, np.nan, values[name])
    values["queue_packets"] = np.where(endless[queue_kinds(network)], np.nan, values["queue_packets"])
    return values, overloaded, endless


def growing(measured: list[Replication], scenario: Scenario) -> tuple[np.ndarray, np.ndarray]:
    """Return whose delays grow with the run, shape (flows,), and which kinds of queues do, shape (kinds,)."""
    if uses_batch_means(scenario):
        first, *others = (one.backlogs for one in measured)
        backlogs = np.array([[first[0], first[-1], *(later[-1] for later in others)]])
    else:
        looks = min(len(one.backlogs) for one in measured)
        backlogs = np.array([one.backlogs[:looks] for one in measured])
    grows = is_growing(backlogs)
    return grows[: -len(QUEUE_KINDS)], grows[-len(QUEUE_KINDS) :]


def warnings_of_growth(
    measured: list[Replication],
    scenario: Scenario,
    results: Results,
    overloaded: np.ndarray,
    endless: np.ndarray,
) -> list[str]:
    """Return the warnings about delays and queue lengths that are left out because they grow with the run."""
    carried = results.metrics["goodput_kbps"].values.mean(axis=0)
    messages = np.sum([one.counts.flows["messages"] for one in measured], axis=0)
    offered = messages * message_bits(scenario) / 1000 / sum(one.counts.seconds for one in measured)
    warning = overload_warning(results.coords["flow_name"].values.tolist(), overloaded, carried, offered)
    names = [name for name, grows in zip(QUEUE_KINDS, endless, strict=True) if grows]
    more = f"queues without a limit grow with the run and are left out: {', '.join(names)}" if names else ""
    return [text for text in (warning, more) if text]


def message_bits(scenario: Scenario) -> np.ndarray:
    """Return the mean size of a message of each flow (bits), shape (flows,)."""
    sources = [scenario.of_flow(flow.spec).traffic for flow in topology(scenario).flows]
    recorded = {
        name: float(np.mean(read_arrivals(name)[1]))
        for name in {own.arrival_file for own in sources if own.source == "file"}
        if name is not None
    }
    sizes = [
        recorded[own.arrival_file or ""] if own.source == "file" else own.message_bytes for own in sources
    ]
    return 8.0 * np.array(sizes)


def coordinates(measured: list[Replication], scenario: Scenario, kinds: list[int]) -> dict[str, Variable]:
    """Return the names of flows, links and queues, and how long each replication (or batch) was measured."""
    plan = topology(scenario)
    flows = [f"{plan.nodes[flow.source]}>{plan.nodes[flow.target]}" for flow in plan.flows]
    links = [f"{plan.nodes[p.central]}-{plan.nodes[member]}" for p in plan.piconets for member in p.members]
    seconds = np.array([one.counts.seconds for one in measured])
    found = {
        "replication": Variable(("replication",), np.arange(len(measured))),
        "measured_s": Variable(("replication",), seconds, {"units": "s"}),
        "queue": Variable(("queue",), np.array([QUEUE_KINDS[kind] for kind in kinds])),
    }
    for part, names in (("flow", flows), ("link", links)):
        if names:
            found[part] = Variable((part,), np.arange(1, len(names) + 1))
            found[f"{part}_name"] = Variable((part,), np.array(names))
    return found
