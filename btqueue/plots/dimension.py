"""Figures of dimensionings: the objective and the bounds along each chosen key, and a front of two aims.

>>> dimension_figure(found).savefig("choice.pdf")  # doctest: +SKIP
"""

import textwrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from btqueue.plotting import PALETTE, Figure, axis_label, house_style
from btqueue.scenario.expressions import Linear
from btqueue.study.dimensioning.confirmation import Simulated
from btqueue.study.dimensioning.optimum import Dimensioning
from btqueue.study.dimensioning.problem import Choice, Constraint
from btqueue.study.dimensioning.search import Candidate

FEASIBLE, INFEASIBLE, SIMULATED, WINNER = PALETTE[0], "#999999", PALETTE[1], PALETTE[4]
"""Colours; each kind of point also has a different marker."""
LINE, HIGH = 95, 30
"""Letters in a line below the title, and of the label of a vertical axis."""
FAINT = "#9fc5e0"
"""Of points that meet all bounds, and that others beat."""
LOOKS: dict[str, dict[str, Any]] = {
    "o": {"marker": "o", "color": FEASIBLE, "markersize": 4, "label": "meets all bounds"},
    "x": {"marker": "x", "color": INFEASIBLE, "markersize": 4, "label": "violates a bound"},
}
"""Look of a point that meets all bounds, and of one that does not."""
PLAYED: dict[str, Any] = {
    "color": SIMULATED, "fmt": "s", "markersize": 4.5, "markerfacecolor": "white", "capsize": 2.5,
    "zorder": 4, "label": "simulated, 95 %",
}  # fmt: skip
"""Look of a point that was simulated, with its intervals."""
OF_BOUNDS: dict[str, dict[str, Any]] = {
    "violated": {"fmt": "x", "markersize": 7, "label": "simulated, violates a bound"},
    "open": {"markerfacecolor": SIMULATED, "label": "simulated, a bound is open"},
}
"""How this look differs where the simulation violates a bound, or leaves one open."""
BOUND: dict[str, Any] = {"color": "#555555", "linestyle": (0, (5, 3)), "linewidth": 1.0, "label": "bound"}
"""Look of the line of a bound."""
Height = tuple[str, int, Constraint | None]
"""Label of a vertical axis, and its quantity: 0 for the objective, or number and bound of a left side."""
LETTERS, CATEGORY = 13, 1.1
"""Most letters in a line of a category's name, and its room on the axis (inches)."""


def dimension_figure(found: Dimensioning, title: str = "") -> Figure:
    """Return a figure of a dimensioning.

    A column for each chosen key, the other keys at the winner's values, which stand above it; the columns of
    a row have one scale, so that the effects of two keys can be compared. The first row shows the objective
    along the key, and a further row the left side of each bound on metrics, with the bound as a line: points
    that meet all bounds, points that do not, and the simulated ones with 95 % intervals. A bound on the key
    itself is a vertical line. An objective of keys alone makes no curve, and has no row beside a bound on
    metrics.

    Args:
        found: result of `btqueue.study.dimensioning.dimension`.
        title: heading.
    """
    choices, rows = found.task.choices, _heights(found)
    widths = [3.8 if one.ordered else max(3.8, 0.7 + CATEGORY * len(one.values)) for one in choices]
    with house_style():
        figure = Figure(figsize=(max(sum(widths), 4.6), 1.4 + 2.4 * len(rows)), layout="constrained")
        ratios = {"width_ratios": widths}
        grid = figure.subplots(
            len(rows), len(widths), squeeze=False, sharex="col", sharey="row", gridspec_kw=ratios
        )
        for panels, height in zip(grid, rows, strict=True):
            for place, panel in enumerate(panels):
                _slice(panel, found, height, place)
            panels[0].set_ylabel(textwrap.fill(height[0], HIGH))
        for panel in grid[:-1].flat:
            panel.set_xlabel("")
        for panel, choice, width in zip(grid[0], choices, widths, strict=True):
            panel.set_title(textwrap.fill(_others(found, choice), int(16 * width)), fontsize=8)
        _legend(figure)
        figure.suptitle(title, fontsize=10, wrap=True)
    return figure


def _played(point: Simulated) -> dict[str, Any]:
    """Return the look of a simulated point."""
    return PLAYED | next((look for kind, look in OF_BOUNDS.items() if kind in point.bounds), {})


def front_figure(found: Dimensioning, title: str = "") -> Figure:
    """Return a figure of a dimensioning of two aims: all points by their two values, and the front.

    The ends of the front, A and B, are named with the values of their keys; simulated points have 95 %
    intervals, and a bound on an aim is a line. The axes end half the length of the front beside it; the
    legend counts the points beyond.

    Args:
        found: result of `btqueue.study.dimensioning.dimension` with `pareto`.
        title: heading.
    """
    task, front, aims = found.task, found.front, found.task.aims
    others = [one for one in found.candidates if one.failure is None and one not in front]
    with house_style():
        figure = Figure(figsize=(6.4, 5.0), layout="constrained")
        axes = figure.subplots()
        kinds = (
            ([one for one in others if not one.feasible(task)], LOOKS["x"]),
            ([one for one in others if one.feasible(task)], {"color": FAINT, "label": "other points"}),
            (front, {"label": "no point beats these in both"}),
        )
        for points, look in kinds:
            values = [p.objective for p in points], [p.sides[-1] for p in points]
            if points:
                axes.plot(*values, linestyle="", **{**LOOKS["o"], **look})
        for point in () if found.confirmation is None else found.confirmation.points:
            if point.failure is None:
                one, *_, other = point.estimates
                widths = {"xerr": np.nan_to_num([one.ci95]), "yerr": np.nan_to_num([other.ci95])}
                axes.errorbar([one.mean], [other.mean], **widths, **_played(point))
        for bound in task.bounds:
            for aim, drawn in zip(aims, (axes.axvline, axes.axhline), strict=True):
                if bound.expression.terms == aim.expression.terms:
                    drawn(bound.bound, zorder=1, **BOUND)
        lines = []
        for letter, aim, point in zip("AB", aims, (front[0], front[-1]), strict=True):
            most = "most" if aim.sense == "maximize" else "least"
            named = (f"{choice.key} = {choice.shown(point.changes[choice.key])}" for choice in task.choices)
            keys = ", ".join(one.replace(" ", "\N{NO-BREAK SPACE}") for one in named)
            line = textwrap.fill(f"{letter}: {most} {aim.text}: {keys}", LINE)
            lines.append(line.replace("\N{NO-BREAK SPACE}", " "))
            axes.annotate(
                letter, (point.objective, point.sides[-1]), (0, 9), textcoords="offset points", ha="center",
                weight="bold", zorder=5,
            )  # fmt: skip
        axes.set_title("\n".join(lines), fontsize=8, loc="left")
        axes.margins(0.08, 0.12)
        _end_at_front(axes, found, others)
        axes.set_xlabel(_label(aims[0].expression, aims[0].text))
        axes.set_ylabel(_label(aims[1].expression, aims[1].text))
        _legend(figure)
        figure.suptitle(title, fontsize=10, wrap=True)
    return figure


def _end_at_front(axes: Axes, found: Dimensioning, others: list[Candidate]) -> None:
    """End the axes half the length of the front beside it; the legend says how many points are beyond."""
    played = () if found.confirmation is None else found.confirmation.points
    drawn = [
        [value.mean + way * np.nan_to_num(value.ci95) for value in (one.estimates[0], one.estimates[-1])]
        for one in played
        if one.failure is None
        for way in (-1.0, 1.0)
    ]
    both = np.array([*((one.objective, one.sides[-1]) for one in found.front), *drawn])
    low, high = both.min(axis=0), both.max(axis=0)
    low, high = low - (high - low) / 2.0, high + (high - low) / 2.0
    values = np.array([(one.objective, one.sides[-1]) for one in others]).reshape(-1, 2)
    beyond = int(((values < low) | (values > high)).any(axis=1).sum())
    if beyond and (low < high).all():
        axes.plot([], [], linestyle="", label=f"{beyond:,} other points are beyond the axes")
        axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))


def _heights(found: Dimensioning) -> list[Height]:
    task = found.task
    bounds = [
        (_label(bound.expression, f"left side of {bound.text}"), number, bound)
        for number, bound in enumerate(task.bounds, 1)
        if not bound.of_keys_only
    ]
    if bounds and not task.objective.expression.metrics:
        return [*bounds]
    return [(_label(task.objective.expression, task.objective.text), 0, None), *bounds]


def _label(expression: Linear, text: str) -> str:
    """Return the label of an axis for an expression: a metric by its name and unit, or the expression."""
    if len(expression.terms) == 1 and expression.terms[0][0] == 1 and expression.metrics:
        return axis_label(str(expression.terms[0][1]))
    return text


def _slice(axes: Axes, found: Dimensioning, height: Height, place: int) -> None:
    """Draw a quantity along one key through the winner, or through the nearest point if there is none."""
    choice, centre = found.task.choices[place], found.best or found.nearest
    axes.set_xlabel(choice.key)
    _, row, constraint = height
    if constraint is not None:
        axes.axhline(constraint.bound, zorder=1, **BOUND)
    for bound in found.task.constraints:
        if bound.of_keys_only and bound.expression.keys == (choice.key,):
            axes.axvline(bound.bound / bound.expression.terms[0][0], zorder=1, **BOUND)
    if centre is None:
        return

    def value(point: Candidate) -> float:
        return (point.objective, *point.sides)[row]

    def through_centre(point: Candidate) -> bool:
        others = (key for key in centre.changes if key != choice.key)
        return point.failure is None and all(point.changes[key] == centre.changes[key] for key in others)

    along = sorted(filter(through_centre, found.candidates), key=lambda candidate: candidate.place[place])
    if choice.ordered:  # between names there is nothing
        x = [_x(choice, candidate) for candidate in along]
        axes.plot(x, [value(candidate) for candidate in along], color=FEASIBLE, linewidth=0.8)
    for one in along:
        look = LOOKS["o" if one.feasible(found.task) else "x"]
        axes.plot(_x(choice, one), value(one), linestyle="", zorder=2, **look)
    for point in () if found.confirmation is None else found.confirmation.points:
        if through_centre(point):
            width, look = np.nan_to_num([point.estimates[row].ci95]), _played(point)
            axes.errorbar([_x(choice, point)], [value(point)], yerr=width, **look)
    if found.best is not None:
        axes.plot(
            _x(choice, centre), value(centre), marker="*", markersize=13, color=WINNER, zorder=3,
            clip_on=False, linestyle="", label="best",
        )  # fmt: skip
    axes.margins(0.06, 0.08)
    if not choice.ordered:
        names = [textwrap.fill(choice.shown(value), LETTERS) for value in choice.values]
        axes.set_xticks(range(len(names)), names, fontsize=8)
        axes.set_xlim(-0.5, len(names) - 0.5)
    if choice.interval is not None and choice.interval.scale == "log":
        axes.set_xscale("log")
    elif choice.ordered and all(isinstance(value, int) for value in choice.values or (0.5,)):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _others(found: Dimensioning, choice: Choice) -> str:
    """Return the values of the other keys, at which the points along a key are shown."""
    centre, others = found.best or found.nearest, [one for one in found.task.choices if one.key != choice.key]
    values = [f"{one.key} = {one.shown(centre.changes[one.key])}" for one in others] if centre else []
    return f"at {', '.join(values)}" if values else ""


def _x(choice: Choice, point: Candidate) -> float:
    value = point.changes[choice.key]
    return float(value) if choice.ordered else float(choice.values.index(value))


def _legend(figure: Figure) -> None:
    """Explain each kind of point once, whichever panels have it."""
    kinds = [axes.get_legend_handles_labels() for axes in figure.axes]
    by_label = {
        label: handle for handles, labels in kinds for handle, label in zip(handles, labels, strict=True)
    }
    figure.legend(by_label.values(), by_label.keys(), loc="outside lower center", ncols=2, fontsize=8)
