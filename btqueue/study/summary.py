"""From a dataset with one value for each replication, flow, link or queue to one number for each metric."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import xarray as xr
from scipy.special import stdtrit

from btqueue.scenario.metrics import METRICS


@dataclass(frozen=True)
class Estimate:
    """A mean and the half-width of its 95 % interval; NaN if there is none (the solver, one replication)."""

    mean: float
    ci95: float = math.nan


@dataclass(frozen=True)
class MetricSummary:
    """One metric of a dataset, in the metric's unit.

    Attributes:
        total: over flows (or links, or queues) and replications.
        per_flow: mean of each flow over the replications, NaN where a flow has no observation; empty for a
            metric that is none of flows.
        per_link: the same for the links between centrals and peripherals.
        per_queue: by the name of the queue, for `queue_packets`.
    """

    total: Estimate
    per_flow: tuple[float, ...] = ()
    per_link: tuple[float, ...] = ()
    per_queue: tuple[tuple[str, Estimate], ...] = ()


def summarise(dataset: xr.Dataset) -> dict[str, MetricSummary]:
    """Return the summary of each metric in *dataset*, in the order of `METRICS`.

    Metrics have dimensions (flow,), (link,), (queue,) or none, with a leading `replication` in a simulation.
    Flows of one replication share a network and are not independent, so the interval is over replications, of
    the mean over flows. A metric that is absent, or without a single observation, is left out.
    """
    return {
        name: _summary(dataset[name])
        for name in METRICS
        if name in dataset and bool(dataset[name].notnull().any())
    }


def _summary(values: xr.DataArray) -> MetricSummary:
    total = _estimate(values.mean([dim for dim in ("flow", "link", "queue") if dim in values.dims]))
    means = values.mean("replication") if "replication" in values.dims else values
    if "flow" in values.dims:
        return MetricSummary(total, per_flow=tuple(float(value) for value in means))
    if "link" in values.dims:
        return MetricSummary(total, per_link=tuple(float(value) for value in means))
    if "queue" in values.dims:
        names = [str(name) for name in values["queue"].values]
        return MetricSummary(total, per_queue=tuple((q, _estimate(values.sel(queue=q))) for q in names))
    return MetricSummary(total)


def _estimate(values: xr.DataArray) -> Estimate:
    """Return a scalar, or mean and interval over the replications that have a value."""
    if "replication" not in values.dims:
        return Estimate(float(values))
    samples = values.values[~np.isnan(values.values)]
    if not samples.size:
        return Estimate(math.nan)
    return Estimate(float(samples.mean()), student_half_width(samples))


def student_half_width(samples: np.ndarray, *, confidence: float = 0.95) -> float:
    """Return the half-width of Student's interval for the mean of independent samples, shape (n,).

    NaN for fewer than two samples.
    """
    n = len(samples)
    if n < 2:
        return math.nan
    return float(stdtrit(n - 1, 0.5 + confidence / 2) * np.std(samples, ddof=1) / math.sqrt(n))
