"""Figures of sweeps: lines with bands over one key; families of lines, heat maps and panels over more.

>>> from btqueue.study.sweep_files import read_sweep      # doctest: +SKIP
>>> sweep_figure(read_sweep("limits.nc"), ["goodput_kbps"]).savefig("limits.pdf")  # doctest: +SKIP
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import LogFormatter, LogLocator

from btqueue.plots import NoFigure
from btqueue.plotting import MARKERS, PALETTE, SURFACE, Figure, axis_label, house_style
from btqueue.scenario import METRICS, Scenario
from btqueue.scenario.expressions import parse_metric

DASHES = ("-", (0, (5, 2)), (0, (2, 1.5)), (0, (5, 1.5, 1, 1.5)), (0, (1, 1)), (0, (7, 2, 2, 2)), (0, (3, 3)))
"""A third sign that tells curves apart, beside colour and marker."""
MOST_CURVES = len(DASHES)
"""In one panel; a second key with more values makes a heat map."""
MOST_PANELS = 12
"""In one figure."""
MARKED = {"theory, in doubt": "x", "simulated in place of theory": "o"}
"""Markers of points that are not theory's alone."""
BAND = 0.18
"""Opacity of the band that shows a 95 % interval."""


def sweep_figure(dataset: xr.Dataset, metrics: Sequence[str] = ("goodput_kbps",), title: str = "") -> Figure:
    """Return a figure of a sweep, a row of panels for each metric.

    Over one key: a line, with a band for the simulator's 95 % intervals; both engines in one panel if both
    were run. Points at which theory doubts its answer are crosses, points simulated in its place are filled.
    Over two keys: a line for each value of the second key, or of the first if only this one holds names
    (few); if the second key has many values, a heat map for each engine that has values. Over a third key: a
    panel for each of its values.

    Args:
        dataset: result of `btqueue.study.sweep.sweep`.
        metrics: names of metrics in it, or quantities as `sweep` takes them.
        title: heading.

    Raises:
        NoFigure: there are more than three keys, or too many panels, or no point has a value of a metric.
        ScenarioError: a metric cannot be read.
    """
    if set(metrics) - dataset.keys() and "scenario" in dataset.attrs:
        scenario = Scenario.from_dict(json.loads(dataset.attrs["scenario"]))
        metrics = [str(parse_metric(text, "metrics", scenario)) for text in metrics]
    for metric in metrics:
        if metric not in dataset or not bool(dataset[metric].notnull().any()):
            there = ", ".join(
                str(name) for name in dataset if name in METRICS or str(name).endswith(("]", ")"))
            )
            raise NoFigure(f"no point has a value of {metric}; there are {there or 'none'}")
    dims = next(iter(dataset.data_vars.values())).dims
    keys = [str(dim) for dim in dims if dim not in ("engine", "flow", "link", "queue")]
    if len(keys) > 3:
        raise NoFigure(f"a figure shows at most three keys, not {len(keys)}: {', '.join(keys)}")
    panels = dataset[keys[2]].values if len(keys) == 3 else [None]
    numbers = [_is_number(dataset, key) for key in keys[:2]]
    if numbers == [False, True] and dataset.sizes[keys[0]] <= MOST_CURVES:
        keys[:2] = keys[1::-1]
    as_map = len(keys) > 1 and dataset.sizes[keys[1]] > MOST_CURVES
    engines = [str(e) for e in dataset["engine"].values] if "engine" in dataset.dims else [""]
    if len(engines) > 1:
        engines = [e for e in engines if any(dataset[m].sel(engine=e).notnull().any() for m in metrics)]
    columns = [(panel, engine) for panel in panels for engine in (engines if as_map else [None])]
    height, width = len(metrics), len(columns)
    if height * width > MOST_PANELS:
        raise NoFigure(f"{height * width} panels are too many (at most {MOST_PANELS})")
    with house_style():
        figure = Figure(figsize=(1.2 + 4.4 * width, 0.6 + 3.2 * height), layout="constrained")
        if title:
            figure.suptitle(title, fontsize=10)
        grid = figure.subplots(height, width, squeeze=False)
        for row, metric in zip(grid, metrics, strict=True):
            for axes, (panel, engine) in zip(row, columns, strict=True):
                one = dataset if panel is None else dataset.sel({keys[2]: panel})
                heading = [] if panel is None else [f"{keys[2]} = {_short(panel)}"]
                if as_map:
                    one = one if not engine else one.sel(engine=engine)
                    heading += [engine] if engine else []
                    if not one[metric].notnull().any():
                        axes.set_visible(False)
                        continue
                    _heat_map(figure, axes, one, keys[0], keys[1], metric)
                else:
                    _lines(axes, one, keys[:2], metric, engines)
                axes.set_title(", ".join(heading))
    return figure


def _lines(axes: Axes, dataset: xr.Dataset, keys: Sequence[str], metric: str, engines: Sequence[str]) -> None:
    """Draw one line for each value of the second key, with bands, and both engines if there are two."""
    labels, places = _scale(axes, "x", dataset, keys[0])
    curves, looks = dataset[keys[1]].values if len(keys) > 1 else [None], set[str]()
    for number, curve in enumerate(curves):
        one = dataset if curve is None else dataset.sel({keys[1]: curve})
        name = "" if curve is None else _short(curve)
        for engine in engines:
            chosen = one.sel(engine=engine) if engine else one
            both = len(engines) > 1
            colour = PALETTE[number % MOST_CURVES]
            mean = chosen[metric].values
            if not np.isfinite(mean).any():
                continue
            simulated = both and engine == "simulate"
            for look, points in _marked(chosen).items():
                looks.add(look)
                axes.plot(places[points], mean[points], MARKED[look], color=colour, markersize=5.5, zorder=4)
            axes.plot(
                places, mean, color=colour, label=" ".join(part for part in (name, engine) if part),
                linestyle="" if simulated else DASHES[number % len(DASHES)], linewidth=1.3,
                marker=MARKERS[number % len(MARKERS)] if simulated or not both else "",
                markersize=4.5, markerfacecolor="white", zorder=3,
            )  # fmt: skip
            if f"{metric}_ci95" in chosen:
                half = chosen[f"{metric}_ci95"].values
                if np.isfinite(half).any():
                    axes.fill_between(
                        places, mean - half, mean + half, color=colour, alpha=BAND, lw=0, zorder=2
                    )
    axes.set_ylabel(axis_label(metric))
    axes.set_xlabel(labels)
    for look in sorted(looks):
        axes.plot([], [], MARKED[look], color="#555555", markersize=5.5, label=look)
    if len(curves) > 1 or len(engines) > 1 or looks:
        axes.legend(title=keys[1] if len(keys) > 1 else None, fontsize=7.5, title_fontsize=7.5)


def _marked(dataset: xr.Dataset) -> dict[str, np.ndarray]:
    """Return which points are simulated in place of theory, and at which theory doubts its answer."""
    if "answered_by" not in dataset or "why" not in dataset:
        return {}
    by, doubted = dataset["answered_by"].values, dataset["why"].values != ""
    found = zip(MARKED, ("theory", "simulation"), strict=True)
    return {look: points for look, who in found if (points := (by == who) & doubted).any()}


def _heat_map(figure: Figure, axes: Axes, dataset: xr.Dataset, x: str, y: str, metric: str) -> None:
    """Draw the metric over two keys, with contour lines; points without a value are left white."""
    x_label, across = _scale(axes, "x", dataset, x)
    y_label, along = _scale(axes, "y", dataset, y)
    values = np.ma.masked_invalid(dataset[metric].transpose(y, x).values)
    image = axes.pcolormesh(across, along, values, cmap=SURFACE, shading="nearest", rasterized=True)
    spread = float(values.max() - values.min())
    if min(values.shape) > 2 and spread > 1e-9 * float(np.abs(values).max()) and not values.mask.any():
        lines = axes.contour(across, along, values, levels=5, colors="white", linewidths=0.7)
        axes.clabel(lines, fontsize=6.5, fmt="%.3g")
    axes.grid(False)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    figure.colorbar(image, ax=axes, label=axis_label(metric))


def _scale(axes: Axes, which: str, dataset: xr.Dataset, key: str) -> tuple[str, np.ndarray]:
    """Set up an axis for a key; return its label and where the key's values lie on it.

    Numbers that are evenly spaced in the logarithm get a logarithmic axis; names and truth values get ticks.
    """
    values = dataset[key].values
    axis: Any = axes.xaxis if which == "x" else axes.yaxis
    if not _is_number(dataset, key):
        texts = [_short(value) for value in values]
        names = list(dict.fromkeys(texts))
        axis.set_ticks(range(len(names)), names)
        return key, np.array([names.index(text) for text in texts], float)
    if is_geometric(values):
        (axes.set_xscale if which == "x" else axes.set_yscale)("log")
        if values.max() / values.min() < 1000:
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter(LogFormatter(labelOnlyBase=False, minor_thresholds=(np.inf, np.inf)))
            axis.set_minor_locator(LogLocator(subs=()))
    return key, values


def _is_number(dataset: xr.Dataset, key: str) -> bool:
    return dataset[key].dtype.kind in "iuf"


def is_geometric(values: np.ndarray) -> bool:
    """Whether numbers, shape (n,), are spread evenly in the logarithm rather than in their value."""
    ordered = np.unique(values)
    if len(ordered) < 3 or ordered[0] <= 0 or ordered[-1] < 10 * ordered[0]:
        return False
    return bool(np.median(ordered) < (ordered[0] + ordered[-1]) / 4)


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float | np.floating) else str(value)
