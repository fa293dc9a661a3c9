"""From the measurements of replications, or of the batches of one long run, to labelled results."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from btqueue.scenario import Scenario
from btqueue.scenario.limits import limits
from btqueue.scenario.metrics import LINK_METRICS, Computed, Results, Variable
from btqueue.scenario.overload import grows_with_the_run, overload_warning
from btqueue.scenario.recordings import read_arrivals
from btqueue.scenario.topology import topology
from btqueue.simulator.construction.flows import settings_of_flows
from btqueue.simulator.records.arrays import State, copied
from btqueue.simulator.records.nodes import QUEUE_KINDS
from btqueue.simulator.statistics import limits as limiting
from btqueue.simulator.statistics import measurement
from btqueue.simulator.statistics.backlog import LOOKS, is_growing
from btqueue.simulator.statistics.doubts import autocorrelations, doubts, doubts_about_batches
from btqueue.simulator.statistics.invariants import check_invariants


class Replication(NamedTuple):
    """The counts of one replication (or batch), and whether it came to its end.

    `backlogs`: backlogs at its beginning and at its looks, shape (looks + 1, backlogs); `halfway`: the
    statistics of the flows in the middle of a replication; `random`: whether it can have random events.
    """

    counts: measurement.Counts
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
    halfway = copied(sim.halfway) if clock.look > LOOKS // 2 else None
    return Replication(
        measurement.take_counts(sim), int(clock.events), complete, sim.seen[: clock.look].copy(), halfway
    )


def label(
    measured: list[Replication], scenario: Scenario, network: State, warmup_s: float, wanted: int
) -> Results:
    """Put names on the measurements; replications cut short are left out if any is complete.

    Metrics, labels and warnings are computed when they are read. Neither the network nor a file that the
    scenario names is read again.
    """
    complete = [one for one in measured if one.complete]
    kept, batches = complete or measured, uses_batch_means(scenario)
    values, growth = values_of(kept, scenario, network)
    sizes = cache(partial(message_bits, scenario))
    if scenario.files:
        sizes()

    def variable(name: str) -> Variable:
        found = values[name]
        inner = "queue" if name == "queue_packets" else "link" if name in LINK_METRICS else "flow"
        return Variable(("replication", inner)[: found.ndim], found)

    metrics = Computed(later={name: partial(variable, name) for name in values})
    coords = Computed(later=coordinates(kept, scenario, measurement.queue_kinds(network)))
    kind = "batch-means" if batches else "replications"
    # Without attributes that are computed from it: results in a cycle would wait for garbage collection.
    found = Results(metrics, coords, {"intervals": kind})
    attrs = Computed(
        {
            "answered_by": "simulation",
            "events": sum(one.events for one in kept),
            "seed": scenario.run.seed,
            "warmup_s": warmup_s,
            "intervals": kind,
            "complete": int(len(complete) == wanted),
            "wanted": wanted,
            "finished": len(complete),
        },
        {
            "limited_by": lambda: limits(
                scenario,
                limiting.bounds(scenario, network, measurement.total([one.counts for one in kept]), sizes()),
            ),
            **({"autocorrelation": lambda: autocorrelations(found)} if batches else {}),
            "warnings": lambda: warnings_of(found, kept, bool(complete), scenario, growth, sizes),
        },
    )
    return Results(metrics, coords, attrs)


Sizes = Callable[[], np.ndarray]
"""Returns the `message_bits`."""
Growth = Callable[[], tuple[np.ndarray, np.ndarray]]
"""Returns whether the delays of each flow grow with the run, and whether the queues of each kind do."""


def values_of(
    kept: list[Replication], scenario: Scenario, network: State
) -> tuple[Mapping[str, np.ndarray], Growth]:
    """Return the metrics, NaN where they grow with the run, and the growth; both are computed when read."""
    values, kinds = (
        measurement.measure(network, [one.counts for one in kept]),
        measurement.queue_kinds(network),
    )
    growth = cache(partial(growing, kept, scenario))

    def unless_growing(name: str) -> np.ndarray:
        if name == "queue_packets":
            return np.where(growth()[1][kinds], np.nan, values[name])
        return np.where(growth()[0], np.nan, values[name]) if grows_with_the_run(name) else values[name]

    return Computed(later={name: partial(unless_growing, name) for name in values}), growth


def warnings_of(
    results: Results,
    kept: list[Replication],
    complete: bool,
    scenario: Scenario,
    growth: Growth,
    sizes: Sizes,
) -> list[str]:
    """Return the warnings about growth, correlated batches and short runs; the last need complete runs.

    `sizes` are the `message_bits`.
    """
    warnings = warnings_of_growth(kept, results, growth, sizes)
    if uses_batch_means(scenario):
        warnings += doubts_about_batches(autocorrelations(results))
    if not complete:
        return warnings
    ends = measurement.stacked([one.counts.flows for one in kept])
    seconds = np.array([[one.counts.seconds] for one in kept])
    halfway = [one.halfway for one in kept if one.halfway is not None]  # none of batches
    both = measurement.halves(measurement.stacked(halfway), ends, seconds) if halfway else {}
    grows = bool(growth()[0].any())
    seen = {name: values for name, values in both.items() if not (grows and grows_with_the_run(name))}
    random = any(one.random for one in kept)
    return warnings + doubts(results, scenario, seen, measurement.drained_kbps(ends, seconds), random=random)


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
    measured: list[Replication], results: Results, growth: Growth, sizes: Sizes
) -> list[str]:
    """Return the warnings about delays and queue lengths that are left out because they grow with the run."""
    overloaded, endless = growth()
    carried = results.metrics["goodput_kbps"].values.mean(axis=0)
    messages = np.sum([one.counts.flows["messages"] for one in measured], axis=0)
    offered = messages * sizes() / 1000 / sum(one.counts.seconds for one in measured)
    warning = overload_warning(results.coords["flow_name"].values.tolist(), overloaded, carried, offered)
    names = [name for name, grows in zip(QUEUE_KINDS, endless, strict=True) if grows]
    more = f"queues without a limit grow with the run and are left out: {', '.join(names)}" if names else ""
    return [text for text in (warning, more) if text]


def message_bits(scenario: Scenario) -> np.ndarray:
    """Return the mean size of a message of each flow (bits), shape (flows,)."""
    sources = [own.traffic for own in settings_of_flows(scenario)]
    recorded = {
        name: float(np.mean(read_arrivals(name)[1]))
        for name in {own.arrival_file for own in sources if own.source == "file"}
        if name is not None
    }
    sizes = [
        recorded[own.arrival_file or ""] if own.source == "file" else own.message_bytes for own in sources
    ]
    return 8.0 * np.array(sizes)


def coordinates(
    measured: list[Replication], scenario: Scenario, kinds: list[int]
) -> dict[str, Callable[[], Variable]]:
    """Return how to compute the names of flows, links and queues, and how long each run was measured."""
    plan = topology(scenario)
    links = sum(len(piconet.members) for piconet in plan.piconets)

    def link_names() -> Variable:
        ends = ((piconet.central, member) for piconet in plan.piconets for member in piconet.members)
        return Variable(
            ("link",), np.array([f"{plan.nodes[one]}-{plan.nodes[other]}" for one, other in ends])
        )

    def of_flows(name: str) -> Variable:
        return Variable(("flow",), np.array(plan.flow_labels()[name]))

    found = {
        "replication": lambda: Variable(("replication",), np.arange(len(measured))),
        "measured_s": lambda: Variable(
            ("replication",), np.array([one.counts.seconds for one in measured]), {"units": "s"}
        ),
        "queue": lambda: Variable(("queue",), np.array([QUEUE_KINDS[kind] for kind in kinds])),
        **{name: partial(of_flows, name) for name in plan.flow_labels()},
    }
    if links:
        found["link"] = lambda: Variable(("link",), np.arange(1, links + 1))
        found["link_name"] = link_names
    return found
