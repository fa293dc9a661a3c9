"""From the measurements of replications, or of the batches of one long run, to a labelled dataset."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from btqueue.scenario import Scenario
from btqueue.scenario.metrics import describe
from btqueue.scenario.topology import topology
from btqueue.simulator.records.nodes import QUEUE_KINDS
from btqueue.simulator.statistics.doubts import doubts, look_at_batches
from btqueue.simulator.statistics.measurement import LINK_METRICS


class Replication(NamedTuple):
    """What one replication (or batch) measured, over how long, and whether it came to its end.

    `halves`: the watched metrics in the first and second half of a replication, shape (2,) each; `random`:
    whether anything random can have happened in it.
    """

    metrics: dict[str, Any]
    events: int
    measured_s: float
    complete: bool
    halves: Mapping[str, np.ndarray] = MappingProxyType({})
    random: bool = True


def uses_batch_means(scenario: Scenario) -> bool:
    """Whether intervals come from the batches of one long run."""
    run = scenario.run
    return run.intervals == "batch-means" or (run.intervals == "auto" and run.replications == 1)


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
    if uses_batch_means(scenario):
        look_at_batches(dataset)
    if complete:
        dataset.attrs["warnings"] += doubts(
            dataset, scenario, [one.halves for one in complete], random=any(one.random for one in complete)
        )
    return describe(dataset)


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
