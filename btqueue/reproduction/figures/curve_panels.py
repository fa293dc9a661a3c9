"""Panels of curves: metrics over one key, a curve for each case, the simulation beside the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from btqueue.plotting import MARKERS, PALETTE, Figure, house_style

LEGEND_SIZE = 8
"""Size of the letters of legends (points)."""


@dataclass(frozen=True)
class Curve:
    """One curve of a panel; every array has shape (n,), NaN where there is nothing.

    Attributes:
        label: in the legend; curves of the same label in several panels look the same.
        x: abscissae.
        mean: simulated means, or None.
        ci95: half-widths of their 95 % intervals, or None.
        model: the model's answers, or None.
        large: whether its markers are large, so that equal markers of another curve are seen in them.
        doubted: places of the points at which the model doubts its answer; they are crosses.
    """

    label: str
    x: np.ndarray
    mean: np.ndarray | None = None
    ci95: np.ndarray | None = None
    model: np.ndarray | None = None
    large: bool = False
    doubted: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Panel:
    """One panel of curves.

    Attributes:
        curves: its curves.
        ylabel: label of the vertical axis.
        title: heading, as "(a) one hop".
        xlabel: label of the horizontal axis.
        finish: called with the axes when the curves are drawn, for marks and scales.
    """

    curves: Sequence[Curve]
    ylabel: str
    title: str = ""
    xlabel: str = ""
    finish: Callable[[Axes], Any] | None = None


def curves(
    panels: Sequence[Panel],
    *,
    title: str = "",
    columns: int = 2,
    size: tuple[float, float] = (4.6, 3.4),
    zero: bool = True,
    note: str = "",
    more: Sequence[Any] = (),
) -> Figure:
    """Return a figure of panels, with one legend below them.

    The simulation is drawn as markers with intervals, the model as lines; a curve of a single answer without
    intervals as a line with markers.

    Args:
        panels: the panels, row by row.
        title: heading.
        columns: panels in a row.
        size: size of a panel (inches).
        zero: let the vertical axes start at 0.
        note: small print below the legend.
        more: further legend entries, as `published.mark_key()`.
    """
    columns = min(columns, len(panels))
    rows = -(-len(panels) // columns)
    with house_style():
        figure = Figure(figsize=(size[0] * columns, size[1] * rows + 0.6), layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False)
        labels = list(dict.fromkeys(curve.label for panel in panels for curve in panel.curves))
        for axes, panel in zip(grid.flat, panels, strict=False):
            draw_panel(axes, panel, labels, zero=zero)
        for axes in list(grid.flat)[len(panels) :]:
            axes.axis("off")
        handles = _key(labels, [curve for panel in panels for curve in panel.curves])
        handles += more
        if len(handles) > 1:
            figure.legend(
                handles=handles,
                loc="outside lower center",
                ncols=min(len(handles), 3 * columns),
                fontsize=LEGEND_SIZE,
            )
        if title:
            figure.suptitle(title)
        if note:
            _small_print(figure, note)
    return figure


def _small_print(figure: Figure, note: str) -> None:
    """Write a note at the lower edge, and keep room for it."""
    share = (0.17 * (note.count("\n") + 1) + 0.05) / figure.get_figheight()
    layout: Any = figure.get_layout_engine()
    layout.set(rect=(0.0, share, 1.0, 1.0 - share))
    for legend in figure.legends:  # it stays at the edge, wherever the layout's rectangle ends
        legend.borderaxespad += share * figure.get_figheight() * 72 / LEGEND_SIZE
    figure.text(0.01, share, note, va="top", fontsize=7.5, color="#444444", linespacing=1.3)


def draw_panel(axes: Axes, panel: Panel, labels: Sequence[str], *, zero: bool = True) -> None:
    """Draw one panel; the place of a curve's label in *labels* chooses colour and marker."""
    for curve in panel.curves:
        place = labels.index(curve.label)
        colour, marker = PALETTE[place % len(PALETTE)], MARKERS[place % len(MARKERS)]
        if curve.model is not None:
            axes.plot(curve.x, curve.model, color=colour, linewidth=1.3, zorder=2)
            crosses = curve.x[curve.doubted], curve.model[curve.doubted]
            axes.plot(*crosses, "x", color=colour, markersize=5.5, zorder=4)
        if curve.mean is not None:
            axes.errorbar(
                curve.x, curve.mean, yerr=curve.ci95, color=colour, fmt=marker,
                markersize=9 if curve.large else 4.5,
                markerfacecolor="white", markeredgewidth=1.1, elinewidth=1.0, capsize=2.0, zorder=3,
                linestyle="" if curve.model is not None else ":", linewidth=0.9,
            )  # fmt: skip
    axes.set(xlabel=panel.xlabel, ylabel=panel.ylabel, title=panel.title)
    if zero:
        axes.set_ylim(bottom=0)
    if panel.finish is not None:
        panel.finish(axes)


def _key(labels: Sequence[str], drawn: Sequence[Curve]) -> list[Any]:
    """Return legend entries: each label, and the meaning of markers and lines if there are both."""
    kinds: Mapping[str, bool] = {
        "simulated, 95 % interval": any(curve.mean is not None for curve in drawn),
        "model": any(curve.model is not None for curve in drawn),
    }
    named = [(place, label) for place, label in enumerate(labels) if label]
    handles = [
        Line2D(
            [], [], color=PALETTE[place % len(PALETTE)], marker=MARKERS[place % len(MARKERS)],
            markerfacecolor="white", markersize=4.5, label=label, linestyle="-" if kinds["model"] else ":",
        )
        for place, label in named
    ]  # fmt: skip
    if all(kinds.values()):
        handles += [
            Line2D([], [], color="#555555", marker="o", markerfacecolor="white", linestyle="",
                   label="simulated, 95 % interval"),
            Line2D([], [], color="#555555", label="model"),
        ]  # fmt: skip
    if any(curve.doubted for curve in drawn):
        handles += [Line2D([], [], color="#555555", marker="x", linestyle="", label="model, in doubt")]
    return handles
