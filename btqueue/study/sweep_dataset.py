"""From the finished points of a sweep to one labelled dataset."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xarray as xr

from btqueue.scenario import METRICS, describe
from btqueue.scenario.expressions import Quantity
from btqueue.study.evaluate import PARTS, Answer, Engine, PointResult
from btqueue.study.points import Points

NOTES: dict[str, tuple[type, Any]] = {
    "converged": (np.int8, -1),
    "residual": (float, math.nan),
    "iterations": (np.int64, -1),
    "events": (np.int64, -1),
    "replications": (np.int64, -1),
    "warmup_s": (float, math.nan),
}
"""Notes that become variables, with type and the value where there is none."""

WORDS = ("answered_by", "why", "method", "check")
"""Notes in words that become variables, beside warnings."""


@dataclass
class Labels:
    """Names of metrics, flows, links and notes in the points of a sweep, found in a first pass over them.

    Each is kept with the number of the first point that has it, so that nothing depends on the order in which
    points were finished.
    """

    metrics: dict[str, str] = field(default_factory=dict)
    with_intervals: set[str] = field(default_factory=set)
    names: dict[str, dict[tuple[str, ...], int]] = field(default_factory=lambda: {part: {} for part in PARTS})
    notes: set[str] = field(default_factory=set)

    def look_at(self, result: PointResult) -> None:
        """Take note of one point."""
        for answer in result.answers.values():
            for name, value in answer.metrics.items():
                self.metrics[name] = value.part
                if not math.isnan(value.ci95) or value.ci95s:
                    self.with_intervals.add(name)
            for part, names in answer.names.items():
                first = self.names[part].get(names, result.number)
                self.names[part][names] = min(first, result.number)
            self.notes |= answer.notes.keys() & NOTES.keys()

    def of_part(self, part: str) -> list[str]:
        """Return the names along the dimension of a part; none if the points have no common ones.

        Queues are matched by name. Flows and links are matched by their number, so all points must have
        equally many.
        """
        in_order = sorted(self.names[part], key=lambda names: self.names[part][names])
        if part == "queue":
            return list(dict.fromkeys(name for names in in_order for name in names))
        sizes = {len(names) for names in in_order}
        if len(sizes) != 1 or sizes == {1}:
            return []
        return list(in_order[0]) if len(in_order) == 1 else [str(n) for n in range(1, sizes.pop() + 1)]


def assemble(
    points: Points, engines: Sequence[Engine], results: Callable[[], Iterable[PointResult]]
) -> xr.Dataset:
    """Return one dataset with a dimension for each key of a grid, or "point" for chosen points.

    Variables, NaN where a point has no answer:

    - each metric, in its unit: the mean over replications and over flows (links, queues);
    - `<metric>_ci95`: half-width of its 95 % interval over replications, from the simulator;
    - `<metric>_per_flow` (`_per_link`, `_per_queue`) and `<metric>_per_flow_ci95`: the same for each flow, if
      all points have equally many flows, and more than one;
    - `failure`: why a point has no answer, empty if it has one; `warnings` of the engine; `answered_by`
      ("theory" or "simulation"), `why` (theory's doubts, or why it has no answer), `method` and `check` (of
      theory by simulation, where there was one); and numbers
      that say how an answer was found (converged, residual, iterations; events, replications, warmup_s).

    With both engines there is a first dimension "engine".

    Args:
        points: of the sweep.
        engines: that were run.
        results: gives the finished points, in any order; called twice, so that they need not be in memory.
    """
    labels = Labels()
    for result in results():
        labels.look_at(result)
    parts = {part: names for part in PARTS if (names := labels.of_part(part))}
    places = {part: {name: place for place, name in enumerate(names)} for part, names in parts.items()}
    rows, columns = len(engines), len(points)
    numbers = _empty_numbers(labels, parts, rows, columns)
    texts = {name: np.full((rows, columns), "", object) for name in ("failure", "warnings", *WORDS)}
    texts["failure"][:] = "not evaluated"
    for result in results():
        for row, engine in enumerate(engines):
            answer = result.answers[engine]
            where = (row, result.number)
            _fill(numbers, where, answer, parts, places)
            texts["failure"][where] = "" if answer.failure is None else str(answer.failure)
            for name in ("warnings", *WORDS):
                found = answer.notes.get(name, "")
                texts[name][where] = found if isinstance(found, str) else "; ".join(found)
    for name in WORDS:
        if not any(text for text in texts[name].flat):
            del texts[name]
    return _labelled(points, engines, labels, parts, numbers | {k: v.astype(str) for k, v in texts.items()})


def with_quantities(dataset: xr.Dataset, quantities: Iterable[Quantity]) -> xr.Dataset:
    """Return a sweep's dataset with a variable for each quantity, named as an expression writes it.

    The half-width of a mean or a sum is the mean or the sum of the half-widths of the flows. It is right
    where all flows rise and fall together, and too wide otherwise.
    """
    added = {}
    for quantity in quantities:
        name, each = str(quantity), ""
        for part in PARTS:
            each = f"_per_{part}" if f"{quantity.name}_per_{part}" in dataset else each
        if name in dataset or quantity.name not in dataset:
            continue
        means = dataset[quantity.name + each]
        widths = dataset.get(f"{quantity.name}{each}_ci95", means * np.nan)
        if not each:  # one flow in all, or points with different numbers of flows
            means, widths = means.expand_dims(flow=1, axis=-1), widths.expand_dims(flow=1, axis=-1)
        dims, shape = means.dims[:-1], means.shape[:-1]
        rows = zip(*(one.values.reshape(-1, means.shape[-1]) for one in (means, widths)), strict=True)
        found = np.array([_with_width(quantity, *row) for row in rows]).reshape(*shape, 2)
        attrs = {"units": quantity.unit, "long_name": name}
        added[name] = (dims, found[..., 0], attrs)
        if np.isfinite(found[..., 1]).any():
            added[f"{name}_ci95"] = (dims, found[..., 1], attrs)
    return dataset.assign(added)


def _with_width(quantity: Quantity, means: np.ndarray, widths: np.ndarray) -> tuple[float, float]:
    value = float(quantity.over(means[None])[0])
    if quantity.aggregate in ("min", "max"):
        of_it = widths[means == value]
        return value, float(of_it[0]) if of_it.size else math.nan
    return value, float(quantity.over(widths[None])[0])


def _empty_numbers(
    labels: Labels, parts: dict[str, list[str]], rows: int, columns: int
) -> dict[str, np.ndarray]:
    numbers: dict[str, np.ndarray] = {}
    for name in (metric for metric in METRICS if metric in labels.metrics):
        part = labels.metrics[name]
        suffixes = ("", "_ci95") if name in labels.with_intervals else ("",)
        for suffix in suffixes:
            numbers[name + suffix] = np.full((rows, columns), math.nan)
        if part in parts:
            for suffix in suffixes:
                shape = (rows, columns, len(parts[part]))
                numbers[f"{name}_per_{part}{suffix}"] = np.full(shape, math.nan)
    for name in (note for note in NOTES if note in labels.notes):
        kind, missing = NOTES[name]
        numbers[name] = np.full((rows, columns), missing, kind)
    return numbers


def _fill(
    numbers: dict[str, np.ndarray],
    where: tuple[int, int],
    answer: Answer,
    parts: dict[str, list[str]],
    places: dict[str, dict[str, int]],
) -> None:
    """Write one answer into the arrays."""
    for name, value in answer.metrics.items():
        numbers[name][where] = value.mean
        if f"{name}_ci95" in numbers:
            numbers[f"{name}_ci95"][where] = value.ci95
        if value.part not in parts:
            continue
        along: Any = slice(None)
        if value.part == "queue":
            along = [places["queue"][queue] for queue in answer.names["queue"]]
        target = f"{name}_per_{value.part}"
        numbers[target][where][along] = value.means
        if value.ci95s:
            numbers[f"{target}_ci95"][where][along] = value.ci95s
    for name in NOTES:
        if name in answer.notes:
            numbers[name][where] = answer.notes[name]


def _labelled(
    points: Points,
    engines: Sequence[Engine],
    labels: Labels,
    parts: dict[str, list[str]],
    arrays: dict[str, np.ndarray],
) -> xr.Dataset:
    """Put names and units on the arrays, shape (engines, points) or (engines, points, part)."""
    several = len(engines) > 1
    dims = (("engine",) if several else ()) + points.dims
    shape = ((len(engines),) if several else ()) + points.shape
    variables = {}
    for name, array in arrays.items():
        part = name.removesuffix("_ci95").rpartition("_per_")[2] if array.ndim == 3 else ""
        inner = array.shape[2:]
        variables[name] = ((*dims, part) if part else dims, array.reshape(shape + inner))
    coordinates: dict[str, Any] = dict(points.coordinates())
    if several:
        coordinates["engine"] = list(engines)
    for part, names in parts.items():
        if part == "queue":
            coordinates["queue"] = names
        else:
            coordinates[part] = np.arange(1, len(names) + 1)
            coordinates[f"{part}_name"] = (part, names)
    dataset = describe(xr.Dataset(variables, coordinates))
    for name, variable in dataset.data_vars.items():
        base, per, _ = str(name).partition("_per_")
        if per and base in METRICS:
            variable.attrs |= {"units": METRICS[base].unit, "long_name": METRICS[base].long_name}
    return dataset
