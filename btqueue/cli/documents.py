"""The JSON object that `--json` prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from btqueue.cli.engines import Answer
from btqueue.cli.errors import put_json, say
from btqueue.scenario import Scenario
from btqueue.scenario.errors import Problem
from btqueue.scenario.metrics import Results
from btqueue.study.provenance import as_document
from btqueue.study.summary import Estimate, by_queue, labels_of, of_groups, summarise

if TYPE_CHECKING:
    from btqueue.study.checked_answers import Check

ABOUT_THE_MODEL = ("answered_by", "model", "system", "regime", "measured_errors")


def document(
    scenario: Scenario,
    *,
    hints: Iterable[Problem] = (),
    solved: Answer | None = None,
    checked: Check | str | None = None,
    simulated: Answer | None = None,
    files: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return scenario, results and provenance as plain values; only the parts that were run, NaN as None."""
    parts: dict[str, Any] = {"hints": [{"key": hint.key, "message": hint.message} for hint in hints]}
    if solved is not None:
        parts["solve"] = _solution(solved.results)
    if checked is not None:
        parts["solve"]["check"] = _check(checked)
    if simulated is not None:
        parts["simulate"] = _simulation(simulated)
    if files is not None:
        parts["files"] = dict(files)
    return as_document(scenario, **parts)


def print_json(scenario: Scenario, *, quiet: bool, **parts: Any) -> None:
    """Print the JSON object of `document`; say the warnings of its engines, unless *quiet*."""
    content = document(scenario, **parts)
    put_json(content)
    for part, who in (("solve", "the model"), ("simulate", "the simulation")):
        for warning in content.get(part, {}).get("warnings", ()):
            if not quiet:
                say(f"{who} warns: {warning}")


def _solution(results: Results) -> dict[str, Any]:
    attrs = results.attrs
    return {
        "converged": bool(attrs["converged"]),
        "residual": float(attrs["residual"]),
        **({"iterations": int(attrs["iterations"])} if "iterations" in attrs else {}),
        "method": str(attrs["method"]),
        "warnings": [str(warning) for warning in attrs["warnings"]],
        "stands": bool(attrs["stands"]),
        "why": list(attrs["why"]),
        **{key: str(attrs[key]) for key in ABOUT_THE_MODEL if key in attrs},
        **_names(results),
        "metrics": _metrics(results, interval=False),
    }


def _check(checked: Check | str) -> dict[str, Any]:
    """Return the verdict of a check, the line that tables show, and each metric's relative difference."""
    if isinstance(checked, str):
        return {"verdict": "not checked", "line": checked, "metrics": {}}
    metrics = {
        one.metric: {"difference": one.value, "half_width": one.half_width, "verdict": one.verdict}
        for one in checked.differences
    }
    return {"verdict": checked.verdict, "line": str(checked), "metrics": metrics}


def _simulation(simulated: Answer) -> dict[str, Any]:
    """Return a simulation for JSON: replications, events, warnings and metrics."""
    results, attrs = simulated.results, simulated.results.attrs
    content: dict[str, Any] = {"complete": not simulated.interrupted}
    if simulated.interrupted:
        content["interrupted"] = simulated.interrupted
    content |= {"replications": results.sizes["replication"], "events": int(attrs["events"])}
    content["warmup_s"] = attrs.get("warmup_s")
    if "precision_of" in attrs:
        content["precision"] = {
            "of": attrs["precision_of"],
            "mean": float(attrs["estimate"]),
            "ci95": float(attrs["half_width"]),
            "relative": float(attrs["relative_half_width"]),
        }
    content["warnings"] = list(attrs.get("warnings", ()))
    return {**content, **_names(results), "metrics": _metrics(results, interval=True)}


def _names(results: Results) -> dict[str, list[Any]]:
    """Return the names of flows and links, the group of each flow where flows differ, and their limits."""
    kinds = {"flows": "flow_name", "groups": "group", "links": "link_name"}
    there = {kind: name for kind, name in kinds.items() if name in results.variables}
    limits = {key: results.attrs[key] for key in ("limited_by",) if key in results.attrs}
    return {kind: list(labels_of(results, name)) for kind, name in there.items()} | limits


def _metrics(results: Results, *, interval: bool) -> dict[str, Any]:
    metrics: dict[str, dict[str, Any]] = {}
    for name, found in summarise(results).items():
        values = metrics[name] = _estimate(found, interval)
        if queues := by_queue(results, found):
            values["per_queue"] = {queue: _estimate(one, interval) for queue, one in queues.items()}
        elif found.part:
            values[f"per_{found.part}"] = list(found.means)
        if groups := of_groups(found, labels_of(results, "group")):
            values["per_group"] = {group: _estimate(one, interval) for group, one in groups.items()}
    return metrics


def _estimate(estimate: Estimate, interval: bool) -> dict[str, Any]:
    return {"mean": estimate.mean, "ci95": estimate.ci95} if interval else {"mean": estimate.mean}
