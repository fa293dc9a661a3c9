"""A dimensioning as a dataset (one row a solved point) and as plain values for JSON."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from btqueue.files import write_rows
from btqueue.study.dimensioning.confirmation import Confirmation, Simulated
from btqueue.study.dimensioning.front import spread
from btqueue.study.dimensioning.prices import Price
from btqueue.study.dimensioning.table import Candidate
from btqueue.study.points import as_labels
from btqueue.study.provenance import attributes, plain
from btqueue.study.summary import Estimate
from btqueue.study.tables import number
from btqueue.text_table import TextTable

if TYPE_CHECKING:  # which imports this module
    from btqueue.study.dimensioning.optimum import Dimensioning


def as_dataset(found: Dimensioning) -> xr.Dataset:
    """Return the solved points, the best first.

    Returns:
        Dataset over `point` (coordinates: the chosen keys) and `constraint`, with `objective`, `slack`
        (point, constraint; negative where the bound is violated), `feasible`, `flows_without_goodput`
        (their number), `failure` and `warnings` of the engine, `answered_by` ("theory" or "simulation");
        for two objectives `second_objective` and `on_front`;
        for points that were simulated `simulated`, `simulated_ci95`, `verdict` and `role`. Attributes: the
        scenario, the objective, and the whole result as JSON.
    """
    task, points = found.task, found.candidates
    slacks = [[c.slack(side) for c, side in zip(task.bounds, p.sides, strict=False)] for p in points]
    simulated = {} if found.confirmation is None else {
        _key(point.changes): point for point in found.confirmation.points
    }  # fmt: skip
    played = [simulated.get(_key(point.changes)) for point in points]
    columns: dict[str, Any] = {
        "objective": [point.objective if point.failure is None else math.nan for point in points],
        "feasible": [point.feasible(task) for point in points],
        "flows_without_goodput": [point.unserved for point in points],
        "failure": ["" if point.failure is None else str(point.failure) for point in points],
        "warnings": ["; ".join(point.warnings) for point in points],
        "answered_by": [point.answered_by if point.failure is None else "" for point in points],
    }
    if task.second is not None:
        on_front = set(map(id, found.front))
        columns["second_objective"] = [point.sides[-1] for point in points]
        columns["on_front"] = [id(point) in on_front for point in points]
    if simulated:
        columns |= {
            "simulated": [math.nan if p is None else p.objective.mean for p in played],
            "simulated_ci95": [math.nan if p is None else p.objective.ci95 for p in played],
            "verdict": ["" if p is None else p.verdict for p in played],
            "role": ["" if p is None else p.role for p in played],
        }
    coords: dict[str, Any] = {"point": np.arange(len(points))} | {
        choice.key: ("point", as_labels([point.changes[choice.key] for point in points]))
        for choice in task.choices
    }
    variables: dict[str, tuple[str | tuple[str, ...], np.ndarray]] = {
        name: ("point", np.array(values)) for name, values in columns.items()
    }
    if task.bounds:
        variables["slack"] = (("point", "constraint"), np.array(slacks, float))
        coords["constraint"] = [c.text for c in task.bounds]
    aims = [task.objective, *([] if task.second is None else [task.second])]
    attrs = {
        "objective": ", ".join(f"{aim.sense} {aim.text}" for aim in aims),
        "dimensioning": json.dumps(as_values(found)),
        **attributes(task.base),
    }
    return xr.Dataset(variables, coords, attrs)


def _key(changes: Any) -> str:
    return json.dumps(changes, sort_keys=True)


def as_values(found: Dimensioning) -> dict[str, Any]:
    """Return the dimensioning as plain values, None where there is no number."""
    task, outcome = found.task, found.outcome
    content = {
        "objective": {"sense": task.objective.sense, "expression": task.objective.text},
        "subject_to": [constraint.text for constraint in task.bounds],
        "choose": {
            choice.key: list(choice.values)
            if choice.interval is None
            else {"low": choice.interval.low, "high": choice.interval.high, "scale": choice.interval.scale}
            for choice in task.choices
        },
        "engine": found.engine,
        "method": outcome.method,
        "proved": outcome.proved,
        "budget_spent": outcome.spent,
        "interrupted": found.interrupted,
        "combinations": outcome.total,
        "solved": len(found.candidates),
        "feasible": found.feasible,
        "failures": found.failures,
        "best": _candidate(found, found.best),
        "ties": found.ties,
        "runners_up": [_candidate(found, candidate) for candidate in found.runners_up],
        "nearest": _candidate(found, found.nearest),
        "at_end_of_range": list(found.at_end),
        "keys_without_effect": list(found.without_effect),
        "constraints": [_price(price) for price in found.prices],
        "confirmation": None if found.confirmation is None else _confirmation(found.confirmation),
    }
    if task.second is not None:
        content["second_objective"] = {"sense": task.second.sense, "expression": task.second.text}
        content["front"] = [_candidate(found, candidate) for candidate in found.front]
    return plain(content)


def _candidate(found: Dimensioning, candidate: Candidate | None) -> dict[str, Any] | None:
    if candidate is None:
        return None
    bounds = zip(found.task.bounds, candidate.sides, strict=False)
    second = {} if found.task.second is None else {"second_objective": candidate.sides[-1]}
    return {
        "keys": dict(candidate.changes),
        "flows_without_goodput": candidate.unserved,
        "objective": candidate.objective,
        **second,
        "slack": {constraint.text: constraint.slack(side) for constraint, side in bounds},
        "warnings": list(candidate.warnings),
        "answered_by": candidate.answered_by,
    }


def _price(price: Price) -> dict[str, Any]:
    return {
        "constraint": price.constraint.text,
        "value": price.side,
        "slack": price.slack,
        "binding": price.binding,
        "relaxed_by": price.relaxed_by,
        "gain": price.gain,
        "price_per_unit": price.per_unit,
        "next_step": price.step,
        "next_gain": price.step_gain,
        "next_keys": price.step_changes,
        "exact": price.exact,
    }


def _confirmation(confirmation: Confirmation) -> dict[str, Any]:
    return {
        "replications": confirmation.replications,
        "warnings": list(confirmation.warnings),
        "points": [_simulated(point) for point in confirmation.points],
    }


def _simulated(point: Simulated) -> dict[str, Any]:
    return {
        "role": point.role,
        "keys": dict(point.changes),
        "flows_without_goodput": point.unserved,
        "objective": _estimate(point.objective),
        "model_objective": None if point.model is None else point.model.objective,
        "constraints": [
            {**_estimate(side), "verdict": bound, "replications_to_decide": needed}
            for side, bound, needed in zip(point.sides, point.bounds, point.needed, strict=True)
        ],
        "winner_better_by": _estimate(point.difference),
        "p_value": point.p_value,
        "verdict": point.verdict,
        "failure": None if point.failure is None else str(point.failure),
    }


def _estimate(estimate: Estimate) -> dict[str, float]:
    return {"mean": estimate.mean, "ci95": estimate.ci95}


MOST_ROWS = 12
"""Points of a front that the table shows, the ends among them."""


def points_table(found: Dimensioning) -> TextTable:
    """Return the best point and the runners-up, or points of the front, or the nearest point, as a table."""
    task = found.task
    keys = [choice.key for choice in task.choices]
    heading = [] if task.objective.text in keys else [task.objective.text]
    if found.best is None:
        rows = [] if found.nearest is None else [("nearest", found.nearest)]
    elif found.front:
        rows = [(f"{n + 1}.", found.front[n]) for n in spread(len(found.front), MOST_ROWS)]
    else:
        rows = [("best", found.best), *((f"{n}.", c) for n, c in enumerate(found.runners_up, 2))]
    columns = ("", *keys, *heading, *(c.text for c in task.constraints))
    cells = tuple((name, *_cells(found, candidate)) for name, candidate in rows)
    return TextTable(task.base.title, columns, cells)


def _cells(found: Dimensioning, candidate: Candidate) -> list[str]:
    sides = []
    for constraint, side in zip(found.task.constraints, candidate.sides, strict=True):
        broken = constraint.violation(side) > 0
        sides.append(number(side) + (f" (fails by {number(-constraint.slack(side))})" if broken else ""))
    keys = [choice.shown(candidate.changes[choice.key]) for choice in found.task.choices]
    value = [] if found.task.objective.text in candidate.changes else [number(candidate.objective)]
    return [*keys, *value, *sides]


def write_csv(dataset: xr.Dataset, path: Path) -> None:
    """Write the points of `as_dataset` as a table: one row a point, one column a key, a slack, a value.

    Raises:
        OSError: the file system refuses.
    """
    columns = {name: values for name, values in dataset.coords.items() if values.dims == ("point",)}
    del columns["point"]
    columns["objective"] = dataset["objective"]
    if "slack" in dataset:
        columns |= {f"slack of {c}": dataset["slack"].sel(constraint=c) for c in dataset["constraint"].values}
    columns |= {name: values for name, values in dataset.data_vars.items() if values.dims == ("point",)}
    write_rows(path, [columns, *zip(*(values.values.tolist() for values in columns.values()), strict=True)])
