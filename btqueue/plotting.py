"""Figures: panels with simulated intervals and the model's lines, and surfaces as older papers print them.

Axes are labelled from the vocabulary of metrics, colours can be told apart by colour-blind readers.
"""

from __future__ import annotations

import io
from contextlib import AbstractContextManager
from typing import Any

import matplotlib.figure
import numpy as np
import xarray as xr
from matplotlib import colormaps, rc_context
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from btqueue.study.comparison import axis_label as axis_label

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00", "#8C8C8C")
"""Line colours after Okabe and Ito (Color Universal Design, 2008), a grey in place of the faint yellow."""

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<")
"""A second sign, for print without colour."""

SURFACE = "cividis"
"""Colour map of surfaces: even in lightness, the same for all kinds of colour vision."""

MODEL = PALETTE[1]
"""Colour of the model's wire frame."""

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


def surface_panel(
    axes: Any, x: np.ndarray, y: np.ndarray, mean: np.ndarray, model: np.ndarray, *, view: tuple[float, float]
) -> None:
    """Draw the simulated means as a surface and the model as a wire frame over it.

    Args:
        axes: axes with `projection="3d"`.
        x: shape (n,).
        y: shape (m,).
        mean: simulated means, shape (m, n); NaN leaves a hole.
        model: the model's answers, shape (m, n); NaN leaves a hole.
        view: elevation and azimuth in degrees.
    """
    across, along = np.meshgrid(x, y)
    axes.computed_zorder = False  # the frame stays readable where it runs inside the surface
    if np.isfinite(mean).any():
        axes.plot_surface(
            across, along, mean, cmap=SURFACE, vmin=min(0.0, float(np.nanmin(mean))), alpha=0.85,
            linewidth=0.3, edgecolor="white", rstride=1, cstride=1, zorder=1,
        )  # fmt: skip
    if np.isfinite(model).any():
        axes.plot_wireframe(across, along, model, color=MODEL, linewidth=0.9, rstride=1, cstride=1, zorder=2)
    axes.view_init(elev=view[0], azim=view[1])
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_pane_color((1.0, 1.0, 1.0, 0.0))


def published_point(axes: Any, point: tuple[float, float, float]) -> None:
    """Mark a value that a publication states in a surface panel."""
    axes.plot(*([value] for value in point), marker="*", markersize=12, color="black",
              markeredgecolor="white", linestyle="", zorder=3)  # fmt: skip


def surface_key() -> list[Any]:
    """Return legend entries for surface and wire frame."""
    return [
        Patch(facecolor=colormaps[SURFACE](0.55), label="simulated"),
        Line2D([], [], color=MODEL, linewidth=0.9, label="model"),
    ]


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
