"""From one value for each replication, flow, link or queue to one number for each metric."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from btqueue.network.load_steps import CARRIED
from btqueue.scenario import Scenario
from btqueue.scenario.metrics import METRICS, Results
from btqueue.scenario.topology import topology
from btqueue.simulator.statistics.student import student_half_width

if TYPE_CHECKING:
    import xarray as xr

    from btqueue.scenario.expressions import Quantity

Hypothesis = TypeVar("Hypothesis", bound=Hashable)

PARTS = ("flow", "link", "queue")
"""Parts of a network for which a metric can have separate values."""


@dataclass(frozen=True)
class Estimate:
    """One metric, in its unit; NaN where there is no value.

    Attributes:
        mean: over replications and flows (or links, or queues).
        ci95: half-width of its 95 % interval over replications; NaN from the solver, or for one replication.
        part: "flow", "link" or "queue" if the metric has one value for each of them, else "".
        means: means of each part, over the replications.
        ci95s: their half-widths; empty from the solver.
        samples: the mean over the parts in each replication; empty from the solver.
        each: value of each part in each replication, shape (replications, parts); None from the solver.
    """

    mean: float
    ci95: float = math.nan
    part: str = ""
    means: tuple[float, ...] = ()
    ci95s: tuple[float, ...] = ()
    samples: tuple[float, ...] = ()
    each: np.ndarray | None = field(default=None, repr=False, compare=False)

    def of(self, quantity: Quantity) -> Estimate:
        """Return the estimate of a quantity of this metric, over the same replications."""
        each = np.array(self.samples)[:, None] if self.each is None else self.each
        samples = quantity.over(each)
        return Estimate(quantity.of(self), over_replications(samples).ci95, samples=tuple(samples.tolist()))


NOTHING = Estimate(math.nan)
"""Where there is no value."""


def summarise(results: Results | xr.Dataset) -> dict[str, Estimate]:
    """Return the estimate of each metric in *results*, in the order of `METRICS`.

    Metrics have dimensions (flow,), (link,), (queue,) or none, with a leading `replication` in a simulation.
    Flows of one replication share a network and are not independent. So the interval is over the
    replications' means over flows. If a metric was simulated to a precision (`run.precision`), its interval
    is at least as wide as this precision. A metric that is absent, or without a single observation, is left
    out.
    """
    variables = results.variables
    found = {
        name: _estimate(np.asarray(variables[name].values, float), tuple(map(str, variables[name].dims)))
        for name in METRICS
        if name in variables
    }
    if (watched := results.attrs.get("precision_of")) in found:
        one = found[watched]
        found[watched] = replace(one, ci95=max(one.ci95, results.attrs["half_width"]))
    return {
        name: one
        for name, one in found.items()
        if not all(math.isnan(mean) for mean in (one.mean, *one.means))
    }


FEW_MESSAGES = 10
"""Messages expected in a run up to which a Poisson source may have none: exp(-10) is 1 in 22,000."""


def flows_without_goodput(results: Results | xr.Dataset, scenario: Scenario) -> int:
    """Return how many flows offer load and get no goodput, in the replication with the fewest of them.

    These flows may differ between replications: where one flow captures a piconet, chance decides which one.

    Args:
        results: results of an engine; without goodputs the number is 0.
        scenario: the scenario of the results. A flow that begins after the end of the run does not count, nor
            a flow with less than `FEW_MESSAGES` in a run, which may get nothing by chance.
    """
    if (goodput := results.variables.get("goodput_kbps")) is None:
        return 0
    run = scenario.run
    end_s = run.duration_s + (0.0 if run.warmup_s == "auto" else run.warmup_s)
    offers = []
    for flow in topology(scenario).flows:
        own = scenario.of_flow(flow.spec).traffic
        messages = own.load_kbps * 1000 / 8 / own.message_bytes * run.duration_s
        many = own.source not in ("poisson", "ibp", "periodic") or messages > FEW_MESSAGES
        offers.append(many and own.start_s < end_s)
    return int(((np.asarray(goodput.values) == 0.0) & np.array(offers)).sum(axis=-1).min())


def partial_times(results: Results | xr.Dataset, scenario: Scenario) -> set[str]:
    """Return the times that some flows have and other flows lack, although they carry messages.

    Args:
        results: results of an engine.
        scenario: that they are of.
    """
    own = [scenario.of_flow(flow.spec) for flow in topology(scenario).flows]
    goodput, found = np.asarray(results.variables["goodput_kbps"].values), set[str]()
    goodput = goodput.mean(axis=0) if goodput.ndim > 1 else goodput
    loads = np.array([one.traffic.load_kbps for one in own])
    has_trips = np.array([one.transport.protocol == "tcp" for one in own]) & (goodput > 0.0)
    has_delays = np.array([one.traffic.source not in ("greedy", "request-reply") for one in own])
    has_delays &= goodput >= CARRIED * loads
    for name in METRICS:
        if name.startswith(("rtt_", "delay_")) and (variable := results.variables.get(name)) is not None:
            known = ~np.isnan(np.atleast_2d(variable.values)).all(axis=0)
            has = has_trips if name.startswith("rtt_") else has_delays
            found |= {name} if known.any() and (has & ~known).any() else set()
    return found


def labels_of(results: Results | xr.Dataset, part: str) -> tuple[str, ...]:
    """Return the names of the flows, links or queues, or other labels; empty if the results have none."""
    found = results.variables.get(f"{part}_name", results.variables.get(part))
    return () if found is None else tuple(str(label) for label in found.values)


def by_queue(results: Results | xr.Dataset, estimate: Estimate) -> dict[str, Estimate]:
    """Return the estimate of each queue by its name; empty for other metrics."""
    if estimate.part != "queue":
        return {}
    widths = estimate.ci95s or [math.nan] * len(estimate.means)
    every = zip(labels_of(results, "queue"), estimate.means, widths, strict=True)
    return {queue: Estimate(mean, ci95) for queue, mean, ci95 in every}


def of_groups(estimate: Estimate, groups: Sequence[str]) -> dict[str, Estimate]:
    """Return the mean of a metric over the flows of each group.

    The result is empty where flows have no groups, and for metrics of links, queues or the whole network.

    A group without a value is left out.

    Args:
        estimate: estimate of a metric.
        groups: groups of its flows; none if flows are alike.
    """
    if estimate.part != "flow" or len(estimate.means) != len(groups):
        return {}
    values = np.array([estimate.means]) if estimate.each is None else estimate.each
    dims = ("flow",) if estimate.each is None else ("replication", "flow")
    found = {}
    for group in dict.fromkeys(groups):
        own = values[:, [one == group for one in groups]]
        found[group] = _estimate(own[0] if estimate.each is None else own, dims)
    return {group: one for group, one in found.items() if not math.isnan(one.mean)}


def of_same_flows(one: Estimate, other: Estimate) -> tuple[Estimate, Estimate]:
    """Return the estimates of a metric over the flows (links, queues) for which both have a value."""
    if not one.means or len(one.means) != len(other.means):
        return one, other
    known = np.asarray(~np.isnan(np.array([one.means, other.means])).any(axis=0))
    return _among(one, known), _among(other, known)


def _among(estimate: Estimate, known: np.ndarray) -> Estimate:
    """Return the estimate over the parts that are known, with NaN for the others."""
    if known.all():
        return estimate
    if estimate.each is None:
        return _estimate(np.where(known, np.array(estimate.means), math.nan), (estimate.part,))
    return _estimate(np.where(known, estimate.each, math.nan), ("replication", estimate.part))


def _estimate(values: np.ndarray, dims: tuple[str, ...]) -> Estimate:
    """Return mean, interval and parts of a metric with dimensions (replication?, part?)."""
    part = dims[-1] if dims and dims[-1] in PARTS else ""
    if "replication" not in dims:
        if not part:
            return Estimate(float(values))
        return Estimate(_mean(values), part=part, means=tuple(values.tolist()))
    if not part:
        return replace(over_replications(values), samples=tuple(values.tolist()))
    if np.isnan(values).any():
        samples = np.array([_mean(row) for row in values])
        columns = [over_replications(column) for column in values.T]
        means, widths = (tuple(getattr(one, name) for one in columns) for name in ("mean", "ci95"))
    else:  # all parts at once
        samples, means = values.mean(axis=1), tuple(values.mean(axis=0).tolist())
        widths = tuple(np.asarray(student_half_width(values)).tolist())
    every = {"part": part, "means": means, "ci95s": widths, "samples": tuple(samples.tolist())}
    return replace(over_replications(samples), **every, each=values)


def over_replications(samples: np.ndarray) -> Estimate:
    """Return mean and 95 % interval over the replications that have a value, shape (n,); NaN if none has."""
    kept = samples[~np.isnan(samples)]
    return Estimate(_mean(kept), float(student_half_width(kept)))


def _mean(values: np.ndarray) -> float:
    """Return the mean of the values that are numbers, NaN if none is."""
    kept = values[~np.isnan(values)]
    return float(kept.mean()) if kept.size else math.nan


def holm(p_values: Mapping[Hypothesis, float], alpha: float) -> frozenset[Hypothesis]:
    """Return the hypotheses that Holm's procedure rejects (Scand. J. Statistics 6, 1979).

    The chance of rejecting a true hypothesis is at most *alpha*, whatever their dependence. A hypothesis with
    p-value NaN was not tested.
    """
    tested = sorted((item for item in p_values.items() if not math.isnan(item[1])), key=lambda item: item[1])
    accepted = (n for n, (_, p) in enumerate(tested) if p > alpha / (len(tested) - n))
    return frozenset(name for name, _ in tested[: next(accepted, None)])
