"""From the measurements of replications, or of the batches of one long run, to a labelled dataset."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from btqueue.scenario import Scenario
from btqueue.scenario.metrics import describe
from btqueue.scenario.overload import grows_with_the_run, overload_warning
from btqueue.scenario.recordings import read_arrivals
from btqueue.scenario.topology import topology
from btqueue.simulator.construction.flows import spec_of
from btqueue.simulator.records.arrays import State
from btqueue.simulator.records.conventions import SECOND
from btqueue.simulator.records.nodes import QUEUE_KINDS
from btqueue.simulator.statistics.backlog import is_growing
from btqueue.simulator.statistics.doubts import doubts, look_at_batches
from btqueue.simulator.statistics.invariants import check_invariants
from btqueue.simulator.statistics.measurement import LINK_METRICS, halves, measure, queue_kinds


class Replication(NamedTuple):
    """What one replication (or batch) measured, over how long, and whether it came to its end.

    `backlogs`: what waited at its beginning and at its looks (`statistics.backlog.waiting`), shape
    (looks + 1, backlogs); `messages`: how many each flow's application wrote, shape (flows,); `halves`: the
    watched metrics in the first and second half of a replication, shape (2,) each; `random`: whether anything
    random can have happened in it.
    """

    metrics: dict[str, Any]
    events: int
    measured_s: float
    complete: bool
    backlogs: np.ndarray
    messages: np.ndarray
    halves: Mapping[str, np.ndarray] = MappingProxyType({})
    random: bool = True


def uses_batch_means(scenario: Scenario) -> bool:
    """Whether intervals come from the batches of one long run."""
    run = scenario.run
    return run.intervals == "batch-means" or (run.intervals == "auto" and run.replications == 1)


def finish(
    sim: State,
    scenario: Scenario,
    complete: bool,
    backlogs: list[np.ndarray],
    halfway: np.recarray | None = None,
) -> Replication | None:
    """Check a state and return what was measured there; None if that is nothing.

    In the middle of a chunk the parts of a network, which are played one after the other, have come to
    different times, and nothing can be measured.

    Args:
        sim: the state.
        scenario: what is simulated.
        complete: whether the run has come to its end.
        backlogs: what waited at the beginning and at the looks.
        halfway: the statistics of the flows in the middle of the run.
    """
    clock = sim.clock[0]
    if not complete and len(sim.islands) > 1 and is_paused(sim):
        return None
    check_invariants(sim)
    measured_s = float(clock.now - clock.statistics_since) / SECOND
    if measured_s == 0:
        return None
    metrics = {**measure(sim, scenario), "queue_kinds": queue_kinds(sim)}
    seen = {} if halfway is None or not complete else halves(halfway, sim.flow_statistics, measured_s)
    messages = sim.flow_statistics.messages.copy()
    return Replication(
        metrics, int(clock.events), measured_s, complete, np.array(backlogs), messages, halves=seen
    )


def is_paused(sim: State) -> bool:
    """Whether `advance` has stopped on the way, because there were many events."""
    return bool(sim.clock[0].events >= sim.clock[0].pause_at)


def label(measured: list[Replication], scenario: Scenario, warmup_s: float, wanted: int) -> xr.Dataset:
    """Put names and units on what was measured; what was cut short is left out if anything was not."""
    complete = [one for one in measured if one.complete]
    kept = complete or measured
    first = kept[0].metrics
    variables = {}
    for name in first:
        if name == "queue_kinds":
            continue
        values = np.array([one.metrics[name] for one in kept])
        inner = "queue" if name == "queue_packets" else "link" if name in LINK_METRICS else "flow"
        variables[name] = (("replication", inner)[: values.ndim], values)
    dataset = xr.Dataset(
        variables,
        coords=coordinates(kept, scenario),
        attrs={
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
    dataset, overloaded = leave_out_growing(dataset, kept, scenario)
    if uses_batch_means(scenario):
        look_at_batches(dataset)
    if complete:
        halves = [
            {name: both for name, both in one.halves.items() if not (overloaded and grows_with_the_run(name))}
            for one in complete
        ]
        dataset.attrs["warnings"] += doubts(
            dataset, scenario, halves, random=any(one.random for one in complete)
        )
    return describe(dataset)


def leave_out_growing(
    dataset: xr.Dataset, measured: list[Replication], scenario: Scenario
) -> tuple[xr.Dataset, bool]:
    """Return the dataset without delays and queue lengths that grow with the run, and whether a flow's do.

    A warning says so.
    """
    if uses_batch_means(scenario):
        first, *others = (one.backlogs for one in measured)
        backlogs = np.array([[first[0], first[-1], *(later[-1] for later in others)]])
    else:
        looks = min(len(one.backlogs) for one in measured)
        backlogs = np.array([one.backlogs[:looks] for one in measured])
    flows = dataset.sizes["flow"]
    grows = is_growing(backlogs)
    overloaded = xr.DataArray(grows[:flows], dims="flow")
    endless = xr.DataArray(grows[flows:][measured[0].metrics["queue_kinds"]], dims="queue")
    for name in map(str, dataset.data_vars):
        if grows_with_the_run(name):
            dataset[name] = dataset[name].where(~overloaded)
    dataset["queue_packets"] = dataset["queue_packets"].where(~endless)
    carried = dataset["goodput_kbps"].mean("replication").values
    messages = np.sum([one.messages for one in measured], axis=0)
    offered = messages * message_bits(scenario) / 1000 / sum(one.measured_s for one in measured)
    warning = overload_warning(dataset["flow_name"].values.tolist(), overloaded.values, carried, offered)
    names = dataset["queue"].values[endless.values]
    more = (
        f"queues without a limit grow with the run and are left out: {', '.join(names)}" if len(names) else ""
    )
    dataset.attrs["warnings"] += [text for text in (warning, more) if text]
    return dataset, bool(overloaded.any())


def message_bits(scenario: Scenario) -> np.ndarray:
    """Return the mean size of a message of each flow (bits), shape (flows,)."""
    specs = [spec_of(scenario, flow.spec) for flow in topology(scenario).flows]
    recorded = 0.0
    if any(spec.law == "file" for spec in specs):
        recorded = float(np.mean(read_arrivals(scenario.traffic.arrival_file or "")[1]))
    return np.array([8.0 * (recorded if spec.law == "file" else spec.message_bytes) for spec in specs])


def coordinates(measured: list[Replication], scenario: Scenario) -> dict[str, Any]:
    """Return the names of flows, links and queues, and how long each replication (or batch) was measured."""
    plan = topology(scenario)
    flows = [f"{plan.nodes[flow.source]}>{plan.nodes[flow.target]}" for flow in plan.flows]
    links = [f"{plan.nodes[p.central]}-{plan.nodes[member]}" for p in plan.piconets for member in p.members]
    return {
        "replication": np.arange(len(measured)),
        "measured_s": ("replication", [one.measured_s for one in measured], {"units": "s"}),
        "flow": np.arange(1, len(flows) + 1),
        "flow_name": ("flow", flows),
        "queue": [QUEUE_KINDS[kind] for kind in measured[0].metrics["queue_kinds"]],
        **({"link": np.arange(1, len(links) + 1), "link_name": ("link", links)} if links else {}),
    }
