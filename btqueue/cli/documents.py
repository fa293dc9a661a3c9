"""The JSON object that `--json` prints."""

from __future__ import annotations

import math
from typing import Any

import xarray as xr

from btqueue.scenario import Scenario
from btqueue.study import Estimate, MetricSummary, provenance, summarise


def document(
    scenario: Scenario, *, solved: xr.Dataset | None = None, simulated: xr.Dataset | None = None
) -> dict[str, Any]:
    """Return scenario, results and provenance as plain values; only the parts that were run, NaN as None."""
    parts: dict[str, Any] = {"scenario": scenario.to_dict()}
    if solved is not None:
        attrs = solved.attrs
        parts["solve"] = {
            "converged": bool(attrs["converged"]),
            "residual": _number(attrs["residual"]),
            "iterations": int(attrs["iterations"]),
            "method": str(attrs["method"]),
            "warnings": [str(warning) for warning in attrs["warnings"]],
            "metrics": _metrics(solved, interval=False),
        }
    if simulated is not None:
        parts["simulate"] = {
            "replications": simulated.sizes["replication"],
            "events": int(simulated.attrs["events"]),
            "metrics": _metrics(simulated, interval=True),
        }
    return {**parts, "provenance": provenance(scenario)}


def _metrics(dataset: xr.Dataset, *, interval: bool) -> dict[str, Any]:
    return {name: _metric(summary, interval) for name, summary in summarise(dataset).items()}


def _metric(summary: MetricSummary, interval: bool) -> dict[str, Any]:
    values: dict[str, Any] = _estimate(summary.total, interval)
    if summary.per_flow:
        values["per_flow"] = [_number(value) for value in summary.per_flow]
    if summary.per_queue:
        values["per_queue"] = {queue: _estimate(estimate, interval) for queue, estimate in summary.per_queue}
    return values


def _estimate(estimate: Estimate, interval: bool) -> dict[str, float | None]:
    mean = {"mean": _number(estimate.mean)}
    return {**mean, "ci95": _number(estimate.ci95)} if interval else mean


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
