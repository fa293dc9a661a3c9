"""The figure of a check: theirs, our simulation and the model, metric by metric (a forest plot)."""

import math

import numpy as np
from matplotlib.lines import Line2D

from btqueue.plotting import PALETTE, Figure, house_style
from btqueue.study.check import Agreement, Report
from btqueue.study.comparison import long_name
from btqueue.study.fit import Fit

SIDES = (
    ("theirs, 95 %", "theirs", "theirs_ci95", PALETTE[1], "s", 0.22),
    ("simulation, 95 %", "simulation", "simulation_ci95", PALETTE[0], "o", 0.0),
    ("model and its known error", "model", "", PALETTE[2], "D", -0.22),
)
"""Label, value, half-width, colour, marker and place in the row of each side."""
SIGNS = {"differs": " ✗", "cannot tell": " ?"}
"""Behind the name of a metric."""
WIDEST = 3.0
"""Relative values beyond this are drawn at the edge, as arrows."""


def check_figure(report: Report | Fit) -> Figure:
    """Return the forest plot of a report, or of the metrics at fitted values.

    Every value is relative to the simulation (or to the model where nothing was simulated), so that metrics
    of any unit stand on one axis; a row whose reference is 0 shows nothing but its name.
    """
    rows = [one for one in report.agreements if one.verdict != "not compared"]
    with house_style():
        figure = Figure(figsize=(7.0, 1.4 + 0.42 * max(1, len(rows))), layout="constrained")
        axes = figure.subplots()
        axes.axvline(1.0, color="#555555", linewidth=0.9, linestyle=(0, (5, 3)))
        for place, one in enumerate(rows):
            _row(axes, len(rows) - 1 - place, one)
        names = [f"{long_name(one.metric)}{SIGNS.get(one.verdict, '')}" for one in rows]
        axes.set_yticks(range(len(rows) - 1, -1, -1), names)
        for tick, one in zip(axes.get_yticklabels(), rows, strict=True):
            tick.set_fontweight("bold" if one.verdict == "differs" else "normal")
        axes.set_ylim(-0.6, max(1, len(rows)) - 0.4)
        simulated = any(not math.isnan(one.simulation) for one in rows)
        axes.set_xlabel(f"relative to the {'simulation' if simulated else 'model'}")
        axes.set_title(report.results.source)
        handles = [
            Line2D([], [], color=colour, marker=marker, markerfacecolor="white", label=label)
            for label, _, _, colour, marker, _ in SIDES
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=len(SIDES))
    return figure


def _row(axes, height: int, one: Agreement) -> None:
    reference = one.reference
    if reference == 0 or math.isnan(reference):
        return
    for _, value_name, width_name, colour, marker, shift in SIDES:
        value = getattr(one, value_name) / reference
        if math.isnan(value):
            continue
        width = getattr(one, width_name) / abs(reference) if width_name else one.model_error * abs(value)
        drawn = float(np.clip(value, -WIDEST, WIDEST))
        axes.errorbar(
            drawn,
            height + shift,
            xerr=None if math.isnan(width) or drawn != value else width,
            color=colour,
            fmt=(">" if value > 0 else "<") if drawn != value else marker,
            markersize=4.5,
            markerfacecolor="white",
            markeredgewidth=1.1,
            elinewidth=1.0 if width_name else 0.5,
            capsize=2.0,
        )
