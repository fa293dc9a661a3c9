"""The JSON object that `--json` prints."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import xarray as xr

from btqueue.cli.engines import Answer
from btqueue.scenario import Scenario
from btqueue.study import Estimate, MetricSummary, provenance, summarise

ABOUT_THE_MODEL = ("solver", "solver_reason", "model", "system", "regime", "measured_errors")


def document(
    scenario: Scenario,
    *,
    solved: Answer | None = None,
    simulated: Answer | None = None,
    files: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return scenario, results and provenance as plain values; only the parts that were run, NaN as None."""
    parts: dict[str, Any] = {"scenario": scenario.to_dict()}
    if solved is not None:
        parts["solve"] = _solution(solved.dataset)
    if simulated is not None:
        parts["simulate"] = _simulation(simulated)
    if files is not None:
        parts["files"] = dict(files)
    return {**parts, "provenance": provenance(scenario)}


def _solution(dataset: xr.Dataset) -> dict[str, Any]:
    attrs = dataset.attrs
    return {
        "converged": bool(attrs["converged"]),
        "residual": _number(attrs["residual"]),
        **({"iterations": int(attrs["iterations"])} if "iterations" in attrs else {}),
        "method": str(attrs["method"]),
        "warnings": [str(warning) for warning in attrs["warnings"]],
        **{key: str(attrs[key]) for key in ABOUT_THE_MODEL if key in attrs},
        "metrics": _metrics(dataset, interval=False),
    }


def _simulation(simulated: Answer) -> dict[str, Any]:
    """Return what was simulated; with batch means the dataset has batches in place of replications."""
    dataset, attrs = simulated.dataset, simulated.dataset.attrs
    entries = dataset.sizes["replication"]
    content: dict[str, Any] = {"complete": not simulated.interrupted}
    if simulated.interrupted:
        content["interrupted"] = simulated.interrupted
    if attrs.get("intervals") == "batch-means":
        correlations = {name: _number(value) for name, value in attrs["autocorrelation"].items()}
        content |= {"replications": 1, "batches": entries, "autocorrelation": correlations}
    else:
        content["replications"] = entries
    content |= {"events": int(attrs["events"]), "warmup_s": attrs.get("warmup_s")}
    content["warnings"] = list(attrs.get("warnings", ()))
    for kind in ("flow", "link"):
        if f"{kind}_name" in dataset.coords:
            content[f"{kind}s"] = dataset[f"{kind}_name"].values.tolist()
    return {**content, "metrics": _metrics(dataset, interval=True)}


def _metrics(dataset: xr.Dataset, *, interval: bool) -> dict[str, Any]:
    return {name: _metric(summary, interval) for name, summary in summarise(dataset).items()}


def _metric(summary: MetricSummary, interval: bool) -> dict[str, Any]:
    values: dict[str, Any] = _estimate(summary.total, interval)
    if summary.per_flow:
        values["per_flow"] = [_number(value) for value in summary.per_flow]
    if summary.per_link:
        values["per_link"] = [_number(value) for value in summary.per_link]
    if summary.per_queue:
        values["per_queue"] = {queue: _estimate(estimate, interval) for queue, estimate in summary.per_queue}
    return values


def _estimate(estimate: Estimate, interval: bool) -> dict[str, float | None]:
    mean = {"mean": _number(estimate.mean)}
    return {**mean, "ci95": _number(estimate.ci95)} if interval else mean


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
