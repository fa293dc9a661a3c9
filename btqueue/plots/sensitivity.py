"""Figures of sensitivity studies: tornados, and shares of variance.

>>> from btqueue.study.sensitivity import sensitivity                    # doctest: +SKIP
>>> sensitivity_figure(sensitivity(scenario)).savefig("tornado.pdf")    # doctest: +SKIP
"""

from collections.abc import Callable, Mapping

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from btqueue.plots import NoFigure
from btqueue.plotting import PALETTE, Figure, axis_label, house_style
from btqueue.study.comparison import long_name

MOST_BARS = 12
"""In one panel: the keys with the largest effects."""
LOW, HIGH = PALETTE[1], PALETTE[0]
"""Colours of the low and the high end of a spread, or of a second and a first index."""


def sensitivity_figure(dataset: xr.Dataset, title: str = "") -> Figure:
    """Return a figure of a sensitivity study, a panel for each metric with effects, the largest on top.

    Args:
        dataset: dataset of a local study (tornado), or of Sobol's method; see
            `btqueue.study.sensitivity`.
        title: heading.

    Raises:
        NoFigure: no key has an effect on any metric.
    """
    draw, size = PANELS[dataset.attrs["study"]]
    drawn = []
    for metric in dataset["metric"].values.tolist():
        one = dataset.sel(metric=metric)
        sizes = np.nan_to_num(size(one))
        order = [place for place in np.argsort(-sizes, kind="stable")[:MOST_BARS] if sizes[place] > 0]
        if order:
            drawn.append((metric, one.isel(key=order[::-1])))
    if not drawn:
        raise NoFigure("no key has an effect on any metric")
    with house_style():
        heights = [1.0 + 0.36 * one.sizes["key"] for _, one in drawn]
        figure = Figure(figsize=(7.5, sum(heights) + 0.4), layout="constrained")
        grid = figure.subplots(len(drawn), 1, squeeze=False, height_ratios=heights)
        for axes, (metric, one) in zip(grid[:, 0], drawn, strict=True):
            places = np.arange(one.sizes["key"])
            draw(axes, one, places, metric)
            axes.set_yticks(places, [str(key) for key in one["key"].values])
            axes.set_axisbelow(True)
            axes.grid(visible=False, axis="y")
            axes.set_ylim(-0.6, len(places) - 0.4)
            axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8)
        if title:
            figure.suptitle(title, fontsize=10)
    return figure


def _tornado(axes: Axes, one: xr.Dataset, places: np.ndarray, metric: str) -> None:
    """Draw the metric at both ends of each spread, from its value in the scenario; ends are written on."""
    base = float(one["base"])
    changes = {end: np.nan_to_num(one[f"at_{end}"].values - base) for end in ("low", "high")}
    together = changes["low"] * changes["high"] > 0  # both on one side: one above the other
    for end, colour, hatch, up in (("low", LOW, "///", -0.175), ("high", HIGH, "", 0.175)):
        change, rows, heights = changes[end], places + up * together, np.where(together, 0.35, 0.7)
        axes.barh(
            rows, change, left=base, height=heights, color=colour, hatch=hatch, edgecolor="white",
            linewidth=0.5, label=f"key at its {end} end",
        )  # fmt: skip
        for place, width, value in zip(rows, change, one[end].values, strict=True):
            if width:
                side = "left" if width > 0 else "right"
                axes.annotate(
                    f"{value:.4g}", (base + width, place), xytext=(3 if width > 0 else -3, 0),
                    textcoords="offset points", ha=side, va="center", fontsize=7, color="#444444",
                )  # fmt: skip
    axes.axvline(base, color="#333333", linewidth=0.9)
    axes.margins(x=0.2)
    axes.set_xlabel(axis_label(metric))


def _sobol(axes: Axes, one: xr.Dataset, places: np.ndarray, metric: str) -> None:
    """Draw first-order and total index of each key as a pair of bars with intervals."""
    for name, label, offset, colour, hatch in (
        ("first", "alone", 0.19, HIGH, ""), ("total", "with interactions", -0.19, LOW, "///"),
    ):  # fmt: skip
        axes.barh(
            places + offset, one[name].values, xerr=one[f"{name}_ci95"].values, height=0.36, color=colour,
            hatch=hatch, edgecolor="white", linewidth=0.5, label=label, capsize=2,
            error_kw={"elinewidth": 0.9, "ecolor": "#333333"},
        )  # fmt: skip
    axes.set_xlim(left=min(0.0, axes.get_xlim()[0]))
    axes.set_xlabel(f"share of the variance of {long_name(metric)}")


Panel = Callable[[Axes, xr.Dataset, np.ndarray, str], None]

PANELS: Mapping[str, tuple[Panel, Callable[[xr.Dataset], np.ndarray]]] = {
    "local": (_tornado, lambda one: one["effect"].values),
    "sobol": (_sobol, lambda one: one["total"].values),
}
"""By study: the function that draws a panel, and the quantity that ranks its keys."""
