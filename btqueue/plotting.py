"""Figures: colours, markers, labels of axes, and runs over time.

Axes are labelled from the vocabulary of metrics, colours can be told apart by colour-blind readers.
"""

from __future__ import annotations

import io
from contextlib import AbstractContextManager
from typing import Any

import matplotlib.figure
import numpy as np
import xarray as xr
from matplotlib import rc_context

from btqueue.study.comparison import axis_label as axis_label

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00", "#8C8C8C")
"""Line colours after Okabe and Ito (Color Universal Design, 2008), a grey in place of the faint yellow."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
"""A second sign, for print without colour."""

SURFACE = "cividis"
"""Colour map of heat maps: even in lightness, the same for all kinds of colour vision."""

STYLE: dict[Any, Any] = {
    "figure.dpi": 110,
    "savefig.dpi": 160,
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
}
"""Matplotlib settings: small type, light grid, no box."""


class Figure(matplotlib.figure.Figure):
    """A figure that a notebook shows as the value of a cell, without pyplot."""

    def _repr_png_(self) -> bytes:
        drawn = io.BytesIO()
        with house_style():
            self.savefig(drawn, format="png", dpi=STYLE["figure.dpi"])
        return drawn.getvalue()


def house_style() -> AbstractContextManager[None]:
    """Return a context in which figures are drawn in `STYLE`."""
    return rc_context(STYLE)


def series_figure(series: xr.Dataset, title: str = "") -> Figure:
    """Return a figure of how a run develops: windows, round-trip times and queues over time.

    At most as many flows and queues as there are colours are drawn: the first flows, and the queues that are
    longest in the mean; the legend says how many there are. Where ssthresh lies far above every window it is
    cut off.

    Args:
        series: result of `btqueue.simulator.statistics.series.time_series`.
        title: heading.
    """
    figure = Figure(figsize=(8.0, 7.0), layout="constrained")
    windows, times, queues = figure.subplots(3, 1, sharex=True)
    flows = series["flow"].values[: len(PALETTE)]
    for colour, flow in zip(PALETTE, flows, strict=False):
        one = series.sel(flow=flow)
        windows.plot(one["time"], one["cwnd_segments"], color=colour, linewidth=0.9, label=f"flow {flow}")
        windows.plot(
            one["time"], one["ssthresh_segments"], color=colour, linewidth=0.8, linestyle=(0, (4, 2))
        )
        times.plot(one["time"], one["srtt_s"], color=colour, linewidth=0.9)
    highest = float(series["cwnd_segments"].sel(flow=flows).max())
    windows.set_ylim(0, 1.1 * max(highest, 1.0))
    windows.set_ylabel("cwnd; ssthresh dashed\n(segments)")
    times.set_ylabel("smoothed RTT (s)")
    times.set_ylim(bottom=0)
    means = series["queue_packets"].mean("time")
    longest = np.sort(np.argsort(-means.values, kind="stable")[: len(PALETTE)])
    for colour, place in zip(PALETTE, longest, strict=False):
        one = series["queue_packets"].isel(queue=place)
        queues.plot(
            one["time"], one, color=colour, linewidth=0.9, label=str(one["queue"].item()).replace("_", " ")
        )
    queues.set_ylabel("queue (packets)")
    queues.set_ylim(bottom=0)
    queues.set_xlabel("time (s)")
    windows.set_title(title)
    for axes, drawn, dimension in ((windows, len(flows), "flow"), (queues, len(longest), "queue")):
        count = series.sizes[dimension]
        heading = f"{drawn} of {count} {dimension}s" if drawn < count else None
        axes.legend(title=heading, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8, title_fontsize=8)
    return figure
