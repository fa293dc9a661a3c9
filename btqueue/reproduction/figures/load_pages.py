"""Pages of five metrics over the offered load and a swept key, as curves and as surfaces.

Each page is made twice: curves that can be read, the simulation as markers with 95 % intervals and the model
as lines; and surfaces, as in the thesis whose figures these are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from textwrap import fill
from typing import Any

import numpy as np
import xarray as xr

from btqueue.plotting import (
    PALETTE,
    Figure,
    axis_label,
    house_style,
    published_point,
    surface_key,
    surface_panel,
)
from btqueue.reproduction.figures.curve_panels import Curve, Panel, curves
from btqueue.reproduction.figures.published import Stated, mark_key, mark_point, marks_in
from btqueue.reproduction.figures.work import Picture, Work, runs_note
from btqueue.scenario import Scenario

LOAD = "traffic.load_kbps"
LOAD_LABEL = "offered load of each connection (kbit/s)"
FIVE = ("goodput_kbps", "rtt_s", "window_segments", "timeouts_per_s", "fast_retransmits_per_s")
"""The metrics of the thesis, in its order; the window is the window used, see `WINDOW_NOTE`."""

WINDOW_NOTE = (
    "Window: min(cwnd, receive window), mean over acknowledgements; "
    "cwnd itself has no bound while nothing is lost."
)
FALLING = ("rtt_s", "timeouts_per_s")
"""Surfaces that are seen from the side of small values of the swept key, so that no crest hides them."""


@dataclass(frozen=True)
class LoadPage:
    """An entry of `page` in the table of a figure: metrics over the load and another key.

    Attributes:
        scenario: name.
        key: the other key, dotted.
        symbol: its symbol in the publication, as "S".
        unit: unit of its values, as "packets".
        values: values of the other key, in rising order.
        loads: offered by each connection (kbit/s), in rising order.
        claims: ids; a star marks each claim that states a number of a metric at a point of this page.
        heading: heading of the page, as "four peripherals, perfect radio"; the fixed parameters are added.
        part: part of the pictures' names, as "n4", for a figure of several pages.
        metrics: metrics of the panels, at most five.
        surfaces: whether to make them, too.
        marks_of: name of the scenario whose stated numbers are marked; by default the scenario of the page.
    """

    scenario: str
    key: str
    symbol: str
    unit: str
    values: Sequence[float]
    loads: Sequence[float]
    claims: Sequence[str] = ()
    heading: str = ""
    part: str = ""
    metrics: Sequence[str] = FIVE
    surfaces: bool = True
    marks_of: str | None = None


def draw(work: Work, table: Mapping[str, Any]) -> Iterator[Picture]:
    """Yield the curves and the surfaces of each page of a figure; other keys of the table hold for all pages.

    Raises:
        TypeError: a key of a page is unknown or missing.
    """
    common = {key: value for key, value in table.items() if key in LoadPage.__dataclass_fields__}
    for page in table["page"]:
        yield from load_page(work, LoadPage(**common | page))


def load_page(work: Work, wanted: LoadPage) -> Iterator[Picture]:
    """Yield the curves and the surfaces of a page."""
    loads = [float(load) for load in wanted.loads]
    label = wanted.heading.partition(",")[0]
    found = work.sweep(wanted.scenario, {wanted.key: wanted.values, LOAD: loads}, label=label)
    scenario, like = work.scenario(wanted.scenario), work.scenario(wanted.marks_of or wanted.scenario)
    marks = {
        metric: marks_in(work.paper, wanted.claims, metric, like, (wanted.key, LOAD))
        for metric in wanted.metrics
    }
    title = f"{work.citation}: {_title(wanted, scenario)}"
    page = _Page(found, wanted, marks, title, _notes(scenario, wanted.metrics, found))
    prefix = f"{wanted.part}-" if wanted.part else ""
    yield Picture(_curves(page), f"{prefix}lines", "Curves, simulated and solved.")
    if wanted.surfaces:
        with house_style():
            yield Picture(_surfaces(page), f"{prefix}surfaces", "Surfaces, as in the thesis.")


@dataclass(frozen=True)
class _Page:
    """The data that both pictures of a page show."""

    found: xr.Dataset
    wanted: LoadPage
    marks: Mapping[str, list[Stated]]
    title: str
    note: str

    @property
    def loads(self) -> np.ndarray:
        return self.found[LOAD].values

    @property
    def values(self) -> np.ndarray:
        return self.found[self.wanted.key].values

    def grid(self, metric: str, engine: str, suffix: str = "") -> np.ndarray:
        """Return a metric over (swept values, loads), NaN where there is no answer."""
        name = f"{metric}{suffix}"
        if name not in self.found:
            return np.full((len(self.values), len(self.loads)), np.nan)
        return self.found[name].sel(engine=engine).transpose(self.wanted.key, LOAD).values


def _curves(page: _Page) -> Figure:
    """Draw one curve for each value of the swept key over the load; too many are thinned out."""
    rows, symbol = _thinned(page), page.wanted.symbol
    panels = []
    for metric in page.wanted.metrics:
        mean, ci95 = page.grid(metric, "simulate"), page.grid(metric, "simulate", "_ci95")
        model = page.grid(metric, "solve")
        stated = np.array([one.value + one.tolerance for one in page.marks[metric]])
        top = 1.06 * _highest(mean + np.nan_to_num(ci95), model, stated)
        drawn = [
            Curve(f"{symbol} = {page.values[row]:g}", page.loads, mean[row], ci95[row], model[row])
            for row in rows
        ]
        finish = partial(_finish, page=page, metric=metric, top=top)
        panels.append(Panel(drawn, axis_label(metric), "", LOAD_LABEL, finish))
    more = [mark_key()] if any(page.marks.values()) else []
    return curves(panels, title=page.title, columns=3, size=(3.8, 3.0), note=_words(page, 150), more=more)


def _finish(axes: Any, *, page: _Page, metric: str, top: float) -> None:
    """Set the axes of a panel, and draw its marks and, for the goodput, the line of the offered load."""
    for one in page.marks[metric]:
        mark_point(axes, one.scenario.traffic.load_kbps, one.value, one.tolerance)
    axes.set_xticks(page.loads[:: 1 + len(page.loads) // 8])
    axes.set_ylim(0, top)
    if metric == "goodput_kbps":
        _offered(axes, page.loads)


def _surfaces(page: _Page) -> Figure:
    """Draw surfaces over load and the swept key."""
    figure = Figure(figsize=(12.5, 8.0))
    figure.subplots_adjust(left=0.02, right=0.96, top=0.92, bottom=0.04, wspace=0.12, hspace=0.16)
    for number, metric in enumerate(page.wanted.metrics, start=1):
        axes: Any = figure.add_subplot(2, 3, number, projection="3d")
        view = (24, -50) if metric in FALLING else (24, -125)
        simulated, solved = page.grid(metric, "simulate"), page.grid(metric, "solve")
        surface_panel(axes, page.loads, page.values, simulated, solved, view=view)
        axes.set(xlabel="offered load (kbit/s)", ylabel=f"{page.wanted.symbol} ({page.wanted.unit})")
        axes.set_title(axis_label(metric), y=0.96)
        axes.set_xticks(page.loads[:: 1 + len(page.loads) // 6])
        axes.set_yticks(page.values[:: 1 + len(page.values) // 6])
        axes.set_zlim(bottom=0)
        for one in page.marks[metric]:
            at = (one.scenario.traffic.load_kbps, float(one.scenario.value_of(page.wanted.key)), one.value)
            published_point(axes, at)
    marked = [mark_key()] if any(page.marks.values()) else []
    legend: Any = figure.add_subplot(2, 3, 6)
    legend.axis("off")
    legend.legend(handles=[*surface_key(), *marked], loc="upper left", ncols=2, fontsize=8)
    legend.text(
        0.02, 0.02, _words(page, 56), transform=legend.transAxes, va="bottom", linespacing=1.35, fontsize=7.5,
        color="#444444",
    )  # fmt: skip
    figure.suptitle(page.title)
    return figure


def _words(page: _Page, width: int) -> str:
    """Return the stated numbers and the notes of a page, in lines of this width."""
    marked = [one for marks in page.marks.values() for one in marks]
    words = dict.fromkeys(f"★ {axis_label(one.metric)}: {one.text}" for one in marked)
    return "\n".join(fill(line, width) for line in [*words, *page.note.split("\n")])


def _highest(*values: np.ndarray) -> float:
    """Return the largest of all numbers, 1 if there are none but 0 and NaN."""
    return max(float(np.nan_to_num(array).max(initial=0.0)) for array in values) or 1.0


def _thinned(page: _Page) -> list[int]:
    """Return the rows that are drawn as curves: no more than there are colours, both ends among them."""
    count, most = len(page.values), len(PALETTE)
    if count <= most:
        return list(range(count))
    return sorted({round(k * (count - 1) / (most - 1)) for k in range(most)})


def _offered(axes: Any, loads: np.ndarray) -> None:
    """Draw the line on which the goodput equals the offered load."""
    axes.plot(loads, loads, color="#999999", linewidth=0.8, linestyle=":", zorder=1)
    top = axes.get_ylim()[1]
    at = min(float(loads[-1]), 0.97 * top)
    axes.annotate(
        "offered", (at, at), xytext=(-4, -1), textcoords="offset points", ha="right", va="center",
        fontsize=7.5, color="#777777",
    )  # fmt: skip


def _title(wanted: LoadPage, scenario: Scenario) -> str:
    """Return the heading with the parameters that are the same at all points."""
    fixed = {
        "M": ("polling.limit", f"M = {scenario.polling.limit}"),
        "S": ("flow_control.buffer_packets", f"S = {scenario.flow_control.buffer_packets}"),
        "tb": ("flow_control.token_rate_kbps", f"tb = {scenario.flow_control.token_rate_kbps:g} kbit/s"),
        "L": ("flow_control.baseband_packets", f"L = {scenario.flow_control.baseband_packets}"),
    }
    words = ", ".join(text for key, text in fixed.values() if key != wanted.key)
    return f"{wanted.heading} ({words})" if wanted.heading else words


def _notes(scenario: Scenario, metrics: Sequence[str], found: xr.Dataset) -> str:
    notes = [f"Simulation: {runs_note(scenario)}, means and 95 % intervals."]
    unsolved = found["failure"].sel(engine="solve").values != ""
    if unsolved.any():
        notes.append(f"The model has no answer at {unsolved.sum()} of {unsolved.size} points.")
    if "window_segments" in metrics:
        notes.append(WINDOW_NOTE)
    return "\n".join(notes)
