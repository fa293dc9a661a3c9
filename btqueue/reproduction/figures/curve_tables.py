"""Panels of curves as the table of a figure describes them: scenarios, keys, ranges, metrics, marks.

A figure has entries of `picture`, each with entries of `panel`. Entries of `curve` stand in a panel, or in
the picture or the figure for all its panels. Keys of a curve may stand in its panel, picture or figure, too:
the innermost key holds, and tables `set` and `arguments` are merged. With `metrics` a picture has its panels
once a metric.

Keys of a curve:

* `label` in the legend; `scenario` name; `set` values by dotted key; `engines` that answer, by default both
* `each`: a curve for each of the `values` of a `key`, which `label` names, as "S = {}"
* `key` and `values`: the abscissae; or `x` and `points`, tables of values by dotted key (and `scenario`)
* `metric`; `per` a metric that divides it; `times` a factor, "x" for the abscissa; `interval = false`
* `load_1`: table of a scenario whose goodput is load 1, by each engine: values are shares of it
* `minus`: table of keys that make the curve which is subtracted, from runs with other random numbers
* `plus`: a constant that is added; `large = true` for large markers
* `step_s`: in place of abscissae: the metric over each step of one run, and its mean by the model; or, with
  `line = true`, as a line alone; `fading` as in `event_panels`
* `function`: as "btqueue.channel:link_quality", drawn as a line over `range` (from, to, number of points, and
  1 for logarithmic steps), with `arguments`; simulated points may stand beside it

Keys of a panel: `title`, `ylabel` (by default of the metric), `xlabel`, `axes` (arguments of matplotlib's
`Axes.set_...`), `doubling = true` for a horizontal axis with a doubling at each value, `spread = true` for
the largest difference of its curves over their mean (%), `beside`, a table of keys with which all curves are
drawn again as thin dashed lines, `compared`, the begin of a sentence on how often the second curve is above,
and the marks `levels`, `verticals`, `stars`, `stated`, `dots`, `bands`, `lines` and `texts`, see `marks`.

Keys of a picture: `part` of its file's name; `title`, `note` with `{citation}` and `{runs}`, the runs of the
scenario that the key `runs` or else `scenario` names; `columns`, `size` (inch) and `zero` as in
`curve_panels.curves`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pkgutil import resolve_name
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator, StrMethodFormatter

from btqueue.plotting import PALETTE, axis_label
from btqueue.reproduction.fading import with_fading
from btqueue.reproduction.figures.curve_panels import Curve, Panel, curves
from btqueue.reproduction.figures.published import mark_key, mark_level, mark_place, mark_point, stated
from btqueue.reproduction.figures.work import Picture, Work, runs_note
from btqueue.scenario import Scenario
from btqueue.simulator.statistics.series import time_series
from btqueue.study.evaluate import ENGINES, Answer, Engine

Table = Mapping[str, Any]
GREY = "#999999"


def draw(work: Work, table: Table) -> Iterator[Picture]:
    """Yield the pictures of a figure."""
    for picture in table["picture"]:
        common = within(table, picture)
        panels = [
            _panel(work, within(common, metric), panel)
            for metric in ([{"metric": name} for name in common["metrics"]] if "metrics" in common else [{}])
            for panel in picture["panel"]
        ]
        words = {"citation": work.citation, "runs": ""}
        if "{runs}" in (note := common.get("note", "")):
            scenario = common["runs" if "runs" in common else "scenario"]
            words["runs"] = runs_note(work.scenario(scenario, picture.get("set")))
        look = {key: common[key] for key in ("columns", "size", "zero") if key in common}
        starred = any("stars" in panel or "stated" in panel for panel in picture["panel"])
        figure = curves(
            panels,
            title=picture["title"].format(**words),
            note=note.strip().format(**words),
            more=[mark_key()] if starred else [],
            **look,
        )
        yield Picture(figure, picture.get("part", ""))


def within(outer: Table, inner: Table) -> dict[str, Any]:
    """Return the keys of a table with the keys of an inner one on top; `set` and `arguments` are merged."""
    merged = {name: {**outer.get(name, {}), **inner.get(name, {})} for name in ("set", "arguments")}
    return {**outer, **inner, **merged}


def _panel(work: Work, outer: Table, panel: Table) -> Panel:
    common = within(outer, panel)
    wanted = work.some([within(common, one) for curve in common["curve"] for one in _each(curve)])
    thin = [table_curve(work, within(one, panel["beside"])) for one in wanted if "beside" in panel]
    drawn = [table_curve(work, one) for one in wanted]
    if panel.get("compared"):
        one, other = (np.asarray(curve.mean) for curve in drawn)
        work.note(f"{panel['title']}: {panel['compared']} in {float((other > one).mean()):.0%} of the steps.")
    if panel.get("spread"):
        together = np.array([curve.mean for curve in drawn])
        share = 100 * np.ptp(together, axis=0) / together.mean(axis=0)
        drawn = [Curve("spread", drawn[0].x, share)]
    ylabel = common.get("ylabel") or axis_label(common["metric"])
    finish = partial(_finish, work=work, panel=common, drawn=drawn, thin=thin)
    return Panel(drawn, ylabel, panel.get("title", ""), common.get("xlabel", ""), finish)


def _each(curve: Table) -> list[Table]:
    """Return a curve for each value of its key `each`; without this key the curve."""
    if "each" not in curve:
        return [curve]
    key, values = curve["each"]["key"], curve["each"]["values"]
    sets = [{**curve.get("set", {}), key: value} for value in values]
    labels = [curve["label"].format(value) for value in values]
    return [{**curve, "label": label, "set": own} for label, own in zip(labels, sets, strict=True)]


def table_curve(work: Work, wanted: Table) -> Curve:
    """Return the curve that a table describes.

    Args:
        work: the workbench.
        wanted: its keys, see the module.
    """
    if "function" in wanted:
        return _function_curve(work, wanted)
    if "step_s" in wanted:
        return _course(work, wanted)
    engines: Sequence[Engine] = wanted.get("engines", ENGINES)
    values = wanted.get("values", wanted.get("x"))
    points = wanted["points"] if "points" in wanted else [{wanted["key"]: value} for value in values]
    chosen = work.some(list(zip(values, points, strict=True)))
    x = np.array([value for value, _ in chosen], float)
    if "load_1" in wanted:
        answers = {}
        for engine in engines:
            unit = _load_1(work, wanted["load_1"], engine)
            shares = [{wanted["key"]: float(unit * share)} for share in x]
            answers |= _answers(work, wanted, shares, (engine,))
    else:
        answers = _answers(work, wanted, [point for _, point in chosen], engines)
    mean, ci95, _ = _values(wanted, x, answers.get("simulate", ()))
    model, _, doubted = _values(wanted, x, answers.get("solve", ()))
    ci95 = ci95 if wanted.get("interval", True) else None
    curve = Curve(wanted["label"], x, mean, ci95, model, wanted.get("large", False), doubted)
    if "minus" in wanted:
        other = {key: value for key, value in wanted.items() if key != "minus"}
        return _less(curve, table_curve(work, within(other, wanted["minus"])))
    return curve


def _function_curve(work: Work, wanted: Table) -> Curve:
    """Return the values of a function as the model, with simulated points if there is a scenario."""
    low, high, count, logarithmic = wanted["range"]
    x = np.geomspace(low, high, count) if logarithmic else np.linspace(low, high, count)
    line = resolve_name(wanted["function"])(x, **wanted["arguments"])
    if "scenario" not in wanted:
        return Curve(wanted["label"], x, model=line)
    points = table_curve(work, {key: value for key, value in wanted.items() if key != "function"})
    before, behind = np.full(len(x), np.nan), np.full(len(points.x), np.nan)
    return Curve(
        wanted["label"],
        np.append(x, points.x),
        np.append(before, np.asarray(points.mean)),
        np.append(before, np.asarray(points.ci95)),
        np.append(line, behind),
    )


def faded(work: Work, wanted: Table) -> tuple[Scenario, dict[str, np.ndarray]]:
    """Return the scenario of a single run, and the states of its radio by node, if they were drawn before."""
    scenario = work.scenario(wanted["scenario"], wanted["set"])
    return with_fading(scenario, **wanted["fading"]) if "fading" in wanted else (scenario, {})


def _course(work: Work, wanted: Table) -> Curve:
    """Return a metric in each step of one run, and the model's mean; with `line` the steps alone."""
    scenario, _ = faded(work, wanted)
    found = time_series(scenario, 0, wanted["step_s"])
    x, values = found["time"].values, wanted.get("times", 1.0) * found[wanted["metric"]].values[:, 0]
    if wanted.get("line"):
        return Curve(wanted["label"], x, model=values)
    (answer,) = work.answers([scenario], ("solve",), label=wanted["label"])
    model, _, doubted = _values(wanted, x, [answer["solve"]] * len(x))
    return Curve(wanted["label"], x, values, model=model, doubted=doubted)


def _answers(
    work: Work, wanted: Table, points: Sequence[Table], engines: Sequence[Engine]
) -> dict[Engine, list[Answer]]:
    """Return the answers of each engine at points, tables of values by dotted key."""
    scenarios = [
        work.scenario(
            point.get("scenario", wanted.get("scenario")),
            wanted["set"] | {key: value for key, value in point.items() if key != "scenario"},
        )
        for point in points
    ]
    found = work.answers(scenarios, engines, label=wanted["label"])
    return {engine: [one[engine] for one in found] for engine in engines}


def _load_1(work: Work, wanted: Table, engine: Engine) -> float:
    """Return the goodput (kbit/s) of a scenario by one engine."""
    scenario = work.scenario(wanted["scenario"], wanted["set"])
    (found,) = work.answers([scenario], (engine,), label="load 1")
    return found[engine].means["goodput_kbps"]


def _values(
    wanted: Table, x: np.ndarray, answers: Sequence[Answer]
) -> tuple[np.ndarray | None, np.ndarray | None, list[int]]:
    """Return means and half-widths of one engine (None without answers), and places of doubted answers."""
    mean = np.array([answer.mean(wanted["metric"]) for answer in answers])
    if np.isnan(mean).all():
        return None, None, []
    factor = x if wanted.get("times") == "x" else np.full(len(x), wanted.get("times", 1.0))
    if "per" in wanted:
        factor = factor / np.array([answer.mean(wanted["per"]) for answer in answers])
    ci95 = np.array([answer.ci95.get(wanted["metric"], np.nan) for answer in answers])
    doubted = [place for place, answer in enumerate(answers) if answer.notes.get("why")]
    return factor * mean + wanted.get("plus", 0.0), factor * ci95, doubted


def _less(curve: Curve, other: Curve) -> Curve:
    """Return the difference of two curves, whose replications are independent."""
    both = {name: (getattr(curve, name), getattr(other, name)) for name in ("mean", "ci95", "model")}
    parts = {
        name: None if one is None or two is None else (np.hypot if name == "ci95" else np.subtract)(one, two)
        for name, (one, two) in both.items()
    }
    return replace(curve, **parts, doubted=sorted({*curve.doubted, *other.doubted}))


def _finish(axes: Axes, *, work: Work, panel: Table, drawn: Sequence[Curve], thin: Sequence[Curve]) -> None:
    """Set the axes of a panel and draw its marks."""
    for curve, colour in zip(thin, PALETTE, strict=False):
        axes.plot(curve.x, np.asarray(curve.mean), color=colour, linewidth=0.8, linestyle=(0, (4, 3)))
    if panel.get("doubling"):
        sizes = panel["values"]
        axes.set_xscale("log", base=2)
        axes.set_xticks(sizes, [f"{size:,}" for size in sizes], fontsize=7.5)
        axes.set_xlim(sizes[0] / 1.3, sizes[-1] * 1.3)
        axes.minorticks_off()
    for name, value in panel.get("axes", {}).items():
        setter = getattr(axes, f"set_{name}")
        setter(**value) if isinstance(value, Mapping) else setter(value)
    if "xticks" in panel.get("axes", {}):
        axes.xaxis.set_minor_locator(NullLocator())
    low, high = axes.get_ylim()
    if panel.get("axes", {}).get("yscale") == "log" and high < 10_000 * low:
        axes.yaxis.set_major_locator(LogLocator(10, subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    marks(axes, work, panel, drawn)


def marks(axes: Axes, work: Work, panel: Table, drawn: Sequence[Curve]) -> None:
    """Draw the marks of a panel; each kind is a list of tables.

    * `levels`: as `mark_level`; `verticals`: as `mark_place`
    * `stars`: as `mark_point`, or a share of the curve `of` a label; `dots`: `x`, `y`, `text`
    * `stated`: ids of claims, a star for each that states a number of the metric
    * `bands`: `x` or `y` from and to, in grey; with `share = true` shares of the largest simulated value
    * `lines`: `x`, `y`, dashed, with a `text` at its place `at`; `texts`: `at` (shares of the axes), `text`
    """
    for level in panel.get("levels", ()):
        mark_level(axes, **level)
    for vertical in panel.get("verticals", ()):
        mark_place(axes, **vertical)
    for star in panel.get("stars", ()):
        if "of" in star:
            found = [np.asarray(one.mean)[one.x == star["x"]] for one in drawn if one.label == star["of"]]
            for value in np.concatenate([*found, []]):
                mark_point(axes, star["x"], star["share"] * value, value * np.array(star["tolerance"]))
        else:
            mark_point(axes, **star)
    for dot in panel.get("dots", ()):
        axes.plot([dot["x"]], [dot["y"]], "o", color="#333333", markersize=4)
        offset = {"xytext": (6, 5), "textcoords": "offset points", "fontsize": 8}
        axes.annotate(dot["text"], (dot["x"], dot["y"]), **offset)
    for name in panel.get("stated", ()):
        one = stated(work.paper, name)
        if one.metric == panel["metric"]:
            mark_point(axes, float(one.scenario.value_of(panel["key"])), one.value, one.tolerance)
    for band in panel.get("bands", ()):
        largest = max(np.nanmax(np.asarray(curve.mean)) for curve in drawn) if band.get("share") else 1.0
        span = axes.axvspan if "x" in band else axes.axhspan
        low, high = band.get("x") or (largest * edge for edge in band["y"])
        span(low, high, color=GREY, alpha=0.2, zorder=0, lw=0)
    for line in panel.get("lines", ()):
        axes.plot(line["x"], line["y"], color="#555555", linestyle=(0, (5, 3)), linewidth=1.0)
        axes.text(line["at"][0], line["at"][1], line["text"], fontsize=7.5, color="#444444")
    for text in panel.get("texts", ()):
        place = {"transform": axes.transAxes, "ha": "left", "va": "top", "fontsize": 7.5, "color": "#444444"}
        axes.text(text["at"][0], text["at"][1], text["text"], **place)
