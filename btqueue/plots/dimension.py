"""Figures of dimensionings: the objective along each chosen key, and a map where two keys are numbers.

>>> dimension_figure(found).savefig("choice.pdf")  # doctest: +SKIP
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from btqueue.plotting import PALETTE, SURFACE, axis_label, house_style
from btqueue.scenario import METRICS
from btqueue.study.dimensioning.choices import Choice
from btqueue.study.dimensioning.confirmation import Simulated
from btqueue.study.dimensioning.optimum import Dimensioning
from btqueue.study.dimensioning.table import NAMES, Candidate
from btqueue.study.summary import Estimate
from btqueue.study.value_ranges import label

FEASIBLE, INFEASIBLE, SIMULATED, WINNER = PALETTE[0], "#999999", PALETTE[1], PALETTE[4]
"""Colours; each kind of point also has a different marker."""


def dimension_figure(found: Dimensioning, title: str = "") -> Figure:
    """Return a figure of a dimensioning.

    A panel for each chosen key shows the objective along it, the other keys at the winner's values: points
    that meet all bounds, points that do not, and the simulated ones with 95 % intervals. If exactly two keys
    are numbers, a further panel maps the objective over both. An objective of keys alone makes no curve:
    in its place the left side of the first bound on a metric is drawn, with the bound.

    Args:
        found: result of `btqueue.study.dimensioning.dimension`.
        title: heading.
    """
    choices = found.task.choices
    numbers = [place for place, choice in enumerate(choices) if choice.ordered]
    panels = len(choices) + (len(numbers) == 2)
    with house_style():
        figure = Figure(figsize=(3.8 * panels, 3.6), layout="constrained")
        axes = np.atleast_1d(figure.subplots(1, panels))
        for place, panel in enumerate(axes[: len(choices)]):
            _slice(panel, found, place)
        if len(numbers) == 2:
            _map(figure, axes[-1], found, numbers[0], numbers[1])
        axes[0].set_ylabel(_height(found).label)
        figure.legend(handles=_key(found), loc="outside lower center", ncols=2, fontsize=8)
        figure.suptitle(title, fontsize=10)
    return figure


@dataclass(frozen=True)
class _Height:
    """The quantity of the vertical axis: the objective, or the left side of a bound.

    Attributes:
        label: of the axis.
        number: of the bound; None for the objective.
        bound: to draw as a line; None for the objective.
    """

    label: str
    number: int | None = None
    bound: float | None = None

    def of(self, point: Candidate) -> float:
        return point.objective if self.number is None else point.sides[self.number]

    def simulated(self, point: Simulated) -> Estimate:
        return point.objective if self.number is None else point.sides[self.number]


def _height(found: Dimensioning) -> _Height:
    """Return the quantity of the vertical axis."""
    task = found.task
    if not task.objective.expression.metrics:
        for number, constraint in enumerate(task.constraints):
            if not constraint.of_keys_only:
                terms = constraint.expression.terms
                alone = len(terms) == 1 and terms[0][0] == 1 and terms[0][1].aggregate == "mean"
                side = axis_label(terms[0][1].name) if alone else f"left side of {constraint.text}"
                return _Height(side, number, constraint.bound)
    text = task.objective.text
    return _Height(axis_label(text) if text in METRICS else text)


def _centre(found: Dimensioning) -> Candidate | None:
    """Return the winner, or the nearest point if there is none."""
    return found.best or found.nearest


def _slice(axes: Axes, found: Dimensioning, place: int) -> None:
    """Draw the objective along one key through the winner."""
    choice, centre, height = found.task.choices[place], _centre(found), _height(found)
    axes.set_xlabel(choice.key)
    if height.bound is not None:
        axes.axhline(height.bound, color="#555555", linestyle=(0, (5, 3)), linewidth=1.0, zorder=1)
    if centre is None:
        return
    along = sorted(
        (c for c in found.candidates if c.failure is None and _others_equal(c, centre, place)),
        key=lambda candidate: candidate.place[place],
    )
    axes.plot([_x(choice, c) for c in along], [height.of(c) for c in along], color=FEASIBLE, linewidth=0.8)
    for candidate in along:
        _mark(axes, _x(choice, candidate), height.of(candidate), candidate.feasible(found.task))
    for point in () if found.confirmation is None else found.confirmation.points:
        others = (key for key in centre.changes if key != choice.key)
        if point.failure is None and all(point.changes[key] == centre.changes[key] for key in others):
            played = height.simulated(point)
            half_width = 0.0 if math.isnan(played.ci95) else played.ci95
            axes.errorbar(
                [_value(choice, point.changes[choice.key])], [played.mean], yerr=[half_width],
                color=SIMULATED, fmt="s", markersize=4.5, markerfacecolor="white", capsize=2.5, zorder=4,
            )  # fmt: skip
    if found.best is not None:
        axes.plot(_x(choice, centre), height.of(centre), marker="*", markersize=13, color=WINNER, zorder=3)
    if not choice.ordered:
        axes.set_xticks(range(len(choice.values)), [label(value) for value in choice.values])
    elif choice.interval is not None and choice.interval.scale == "log":
        axes.set_xscale("log")


def _others_equal(one: Candidate, other: Candidate, *places: int) -> bool:
    """Whether two points have the same values of all keys except the keys at these places."""
    both = enumerate(zip(one.place, other.place, strict=True))
    return all(a == b for number, (a, b) in both if number not in places)


def _x(choice: Choice, candidate: Candidate) -> float:
    return _value(choice, candidate.changes[choice.key])


def _value(choice: Choice, value: Any) -> float:
    return float(value) if choice.ordered else float(choice.values.index(value))


def _mark(axes: Axes, x: float, y: float, feasible: bool) -> None:
    colour, marker = (FEASIBLE, "o") if feasible else (INFEASIBLE, "x")
    axes.plot(x, y, marker=marker, color=colour, markersize=4, linestyle="", zorder=2)


def _map(figure: Figure, axes: Axes, found: Dimensioning, across: int, up: int) -> None:
    """Draw all points over two keys, the objective as colour; unordered keys at the winner's values."""
    centre, height = _centre(found), _height(found)
    x_choice, y_choice = found.task.choices[across], found.task.choices[up]
    axes.set_xlabel(x_choice.key)
    axes.set_ylabel(y_choice.key)
    if centre is None:
        return
    shown = [c for c in found.candidates if c.failure is None and _others_equal(c, centre, across, up)]
    heights = list(map(height.of, shown))
    limits: dict[str, Any] = {"vmin": min(heights), "vmax": max(heights)}
    for marker, size, feasible in (("s", 26, True), ("x", 12, False)):
        points = [c for c in shown if c.feasible(found.task) == feasible]
        dots = axes.scatter(
            [_x(x_choice, c) for c in points], [_x(y_choice, c) for c in points],
            c=[height.of(c) for c in points], cmap=SURFACE, marker=marker, s=size, linewidths=0.8, **limits,
        )  # fmt: skip
        if marker == "s":
            figure.colorbar(dots, ax=axes, label=height.label)
    if found.best is not None:
        axes.plot(
            _x(x_choice, centre), _x(y_choice, centre), marker="*", markersize=14, color=WINNER,
            markeredgecolor="white",
        )  # fmt: skip


def _key(found: Dimensioning) -> list[Line2D]:
    """Return the entries of the legend."""
    by = NAMES[found.engine].removeprefix("the ")
    broken = any(c.failure is None and not c.feasible(found.task) for c in found.candidates)
    entries: tuple[tuple[bool, dict[str, Any]], ...] = (
        (True, {"marker": "o", "color": FEASIBLE, "label": f"meets all bounds ({by})"}),
        (broken, {"marker": "x", "color": INFEASIBLE, "label": f"violates a bound ({by})"}),
        (
            found.confirmation is not None,
            {"marker": "s", "color": SIMULATED, "markerfacecolor": "white", "label": "simulated, 95 %"},
        ),
        (found.best is not None, {"marker": "*", "color": WINNER, "markersize": 11, "label": "best"}),
    )
    return [Line2D([], [], linestyle="", **look) for there, look in entries if there]
