"""From the measurements of replications to labelled results."""

from collections.abc import Callable
from functools import cache, cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from btqueue.scenario import Scenario
from btqueue.scenario.limits import grows_with_the_run, limits, overload_warning
from btqueue.scenario.metrics import LINK_METRICS, Computed, Results, Variable
from btqueue.scenario.topology import topology
from btqueue.simulator.construction.flows import message_sizes, settings_of_flows
from btqueue.simulator.records.arrays import State, first_of
from btqueue.simulator.records.nodes import QUEUE_KINDS
from btqueue.simulator.statistics import limits as limiting
from btqueue.simulator.statistics import measurement
from btqueue.simulator.statistics.backlog import is_growing
from btqueue.simulator.statistics.doubts import doubts
from btqueue.simulator.statistics.invariants import check_invariants


class Replication(NamedTuple):
    """The counts of one replication, and whether it came to its end.

    `looks`: number of times at which backlogs were counted, with the beginning.
    """

    counts: measurement.Counts
    events: int
    complete: bool
    looks: int


def finish(sim: State, complete: bool) -> Replication | None:
    """Check a state and return its counts; None if there are none.

    In the middle of a chunk the parts of a network, which are played one after the other, are at different
    times, and no metric can be measured.
    """
    clock = first_of(sim.clock)
    if clock.look == 0 or (clock.pause_at > 0 and len(sim.islands) > 1):
        return None
    check_invariants(sim)
    if clock.now == clock.statistics_since:
        return None
    counts = measurement.take_counts(sim)
    return Replication(counts, clock.events, complete, clock.look)


class Measured:
    """The measurements of replications of a scenario; computed when they are read."""

    def __init__(self, measured: list[Replication], scenario: Scenario, network: State) -> None:
        """Keep them, without replications cut short if any is complete; the network is not read again."""
        self.complete = [one for one in measured if one.complete]
        self.kept, self.scenario = self.complete or measured, scenario
        self.kinds = measurement.queue_kinds(network)
        self.found = measurement.measure(network, [one.counts for one in self.kept])
        self.message_bits = cache(partial(message_bits, scenario))

    @cached_property
    def growth(self) -> tuple[np.ndarray, np.ndarray]:
        """Whether the delays of each flow grow with the run, and whether the queues of each kind do."""
        looks = min(one.looks for one in self.kept)
        grows = is_growing(np.array([one.counts.backlogs[:looks] for one in self.kept]))
        return grows[: -len(QUEUE_KINDS)], grows[-len(QUEUE_KINDS) :]

    def get(self, name: str) -> np.ndarray | None:
        """Return a metric, NaN where it grows with the run; None if there is none of this name."""
        if (value := self.found.get(name)) is None:
            return None
        if name == "queue_packets":
            return np.where(self.growth[1][self.kinds], np.nan, value)
        return np.where(self.growth[0], np.nan, value) if grows_with_the_run(name) else value

    def variable(self, name: str) -> Variable:
        """Return a metric with the names of its dimensions."""
        found = self.get(name)
        assert found is not None
        inner = "queue" if name == "queue_packets" else "link" if name in LINK_METRICS else "flow"
        return Variable(("replication", inner)[: found.ndim], found)

    def limited_by(self, network: State) -> Any:
        """Return the limits of the flows."""
        counts = measurement.total([one.counts for one in self.kept])
        return limits(self.scenario, limiting.bounds(self.scenario, network, counts, self.message_bits()))

    def warnings(self, results: Results) -> list[str]:
        """Return warnings about growth and short runs; the latter need complete runs."""
        warnings = self.warnings_of_growth(results)
        if not self.complete:
            return warnings
        ends = measurement.stacked([one.counts.flows for one in self.kept])
        seconds = np.array([[one.counts.seconds] for one in self.kept])
        both = measurement.halves(
            measurement.stacked([one.counts.halfway for one in self.kept]), ends, seconds
        )
        grows = bool(self.growth[0].any())
        seen = {name: values for name, values in both.items() if not (grows and grows_with_the_run(name))}
        drained = measurement.drained_kbps(ends, seconds)
        return warnings + doubts(results, self.scenario, seen, drained)

    def warnings_of_growth(self, results: Results) -> list[str]:
        """Return the warnings about delays and queue lengths that are left out: they grow with the run."""
        overloaded, endless = self.growth
        carried = results.metrics["goodput_kbps"].values.mean(axis=0)
        messages = np.sum([one.counts.flows["messages"] for one in self.kept], axis=0)
        offered = messages * self.message_bits() / 1000 / sum(one.counts.seconds for one in self.kept)
        warning = overload_warning(results.coords["flow_name"].values.tolist(), overloaded, carried, offered)
        names = [name for name, grows in zip(QUEUE_KINDS, endless, strict=True) if grows]
        warnings = [warning] if warning else []
        if names:
            warnings.append(f"queues without a limit grow with the run and are left out: {', '.join(names)}")
        return warnings


def label(own: Measured, network: State, warmup_s: float, wanted: int) -> Results:
    """Put names on the measurements.

    A file that the scenario names is not read again.
    """
    scenario, finished = own.scenario, len(own.complete)
    if scenario.files:
        own.message_bits()
    metrics = Computed(
        later={"goodput_kbps": partial(own.variable, "goodput_kbps")},
        more=lambda: {name: partial(own.variable, name) for name in own.found},
    )
    coords = Computed(more=partial(coordinates, own.kept, scenario, own.kinds))
    # Without attributes that are computed from it: results in a cycle would wait for garbage collection.
    found = Results(metrics, coords, {})
    attrs = Computed(
        {
            "answered_by": "simulation",
            "events": sum(one.events for one in own.kept),
            "seed": scenario.run.seed,
            "warmup_s": warmup_s,
            "complete": int(finished == wanted),
            "wanted": wanted,
            "finished": finished,
        },
        {
            "limited_by": partial(own.limited_by, network),
            "warnings": partial(own.warnings, found),
        },
    )
    return Results(metrics, coords, attrs)


def message_bits(scenario: Scenario) -> np.ndarray:
    """Return the mean size of a message of each flow (bits), shape (flows,)."""
    settings = settings_of_flows(scenario)
    different = {id(own): own for own in settings}
    means = {number: float(np.mean(message_sizes(own))) for number, own in different.items()}
    return 8.0 * np.array([means[id(own)] for own in settings])


def coordinates(
    measured: list[Replication], scenario: Scenario, kinds: list[int]
) -> dict[str, Callable[[], Variable]]:
    """Return how to compute the names of flows, links and queues, and how long each run was measured."""
    plan = topology(scenario)
    links = sum(len(piconet.members) for piconet in plan.piconets)

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
        found["link_name"] = lambda: Variable(("link",), np.array(plan.link_names))
    return found
