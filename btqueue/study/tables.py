"""Answers as tables of words, for the command line and for notebooks.

>>> import btqueue as bt
>>> bt.table(bt.load("chen-2004/adaptive-1").with_(network__hops=2)).rows[0]
('network.topology', '"chain"')
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from btqueue.scenario.metrics import METRICS, Results
from btqueue.study.comparison import has_spread, heading, least_and_greatest, metric_of, rows_of, shown_rows
from btqueue.study.summary import Estimate, labels_of
from btqueue.text_table import Row, TextTable

if TYPE_CHECKING:
    import xarray as xr

    from btqueue.scenario import Scenario
    from btqueue.study.closed_forms import ClosedForm

GROUPS = ("goodput_kbps", "session_time_s", "cwnd_segments", "segment_loss", "queue_packets")
"""First metric of each group of rows: flows, their sessions, TCP, losses, links and queues."""
ROUNDING = 1e-12
"""Relative half-width of an interval that is nothing but rounding."""
CLOSE = 0.01
"""Relative difference that matters to nobody, however narrow the interval is."""
INSIDE, CLOSE_BY, OUTSIDE = "✓ inside", f"within {CLOSE:.0%}", "outside"
"""Verdicts on a model beside an interval."""
COMPARED = ("metric", "unit", "model", "simulation ± 95 %", "difference", "interval")
"""Columns of a comparison."""
SPREAD = "least to greatest"
"""One more column where flows differ: the flows of a group, or the links."""


def table(thing: Scenario | ClosedForm | Results | xr.Dataset, *, every: bool = False) -> TextTable:
    """Return a scenario, an answer of either engine, a comparison, or a closed form as a table.

    Args:
        thing: result of `btqueue.load`, `solve`, `simulate` or `compare`, or a closed form.
        every: show all metrics, percentiles too.
    """
    if (own := getattr(type(thing), "table", None)) is not None:
        return own(thing)
    found: Any = thing
    attrs = found.attrs
    title = str(attrs.get("title") or "")
    if not isinstance(found, Results) and "metric" in found.dims:
        notes = [f"model: {attrs['model_method']}"] if "model_method" in attrs else []
        notes += [
            f"{side} warns: {text}"
            for side in ("simulation", "model")
            for text in attrs.get(f"{side}_warnings", ())
        ]
        columns = (*COMPARED, SPREAD) if "least" in found else COMPARED
        rows = _with_gaps(map(str, found["metric"].values), every, partial(_comparison_row, found))
        return TextTable(title or "Comparison", columns, tuple(rows), tuple(notes))
    by = "simulation" if attrs.get("answered_by") == "simulation" else "model"
    notes = [*limit_lines(found), *(f"{by} warns: {text}" for text in attrs.get("warnings", ()))]
    value = "value" if by == "model" else "mean ± 95 % interval"
    estimates, grouped = rows_of(found), "group" in found.variables

    def row(name: str) -> Row:
        one = estimates[name]
        least = spread(*least_and_greatest(one)) if grouped and has_spread(name, one) else ""
        return (heading(name, one), metric_of(name).unit, with_interval(one), *([least] if grouped else []))

    columns = ("metric", "unit", value, *([SPREAD] if grouped else []))
    return TextTable(
        title or f"Answer of the {by}", columns, tuple(_with_gaps(estimates, every, row)), tuple(notes)
    )


def _comparison_row(comparison: xr.Dataset, name: str) -> Row:
    """Return the `COMPARED` columns of a metric, and the `SPREAD` where flows differ."""
    row = comparison.sel(metric=name)
    numbers = (float(row[key]) for key in ("model", "simulation", "ci95", "relative_difference"))
    model, mean, ci95, difference = numbers
    cells = (
        str(row["long_name"].item()),
        str(row["units"].item()),
        number(model),
        with_interval(Estimate(mean, ci95)),
        "–" if math.isnan(difference) else f"{difference:+.1%}",
        verdict(model, mean, ci95, inside=bool(row["inside"])),
    )
    return (*cells, spread(float(row["least"]), float(row["greatest"]))) if "least" in row else cells


def spread(least: float, greatest: float) -> str:
    """Return the values of the least and the greatest part; nothing where they are unknown or equal."""
    return f"{number(least)} to {number(greatest)}" if least < greatest else ""


def limit_lines(results: Results | xr.Dataset, model: Results | xr.Dataset | None = None) -> list[str]:
    """Return the limit of each flow, or group with one limit, in a line; then other lines of `model`."""
    if model is not None:
        ours = limit_lines(results)
        heads = (line.split(": ", 1) for line in limit_lines(model) if line not in ours)
        return [*ours, *(f"{head}, in the model: {rest}" for head, rest in heads)]
    found = results.attrs.get("limited_by", ())
    names = labels_of(results, "flow_name")
    groups = labels_of(results, "group") or ("",) * len(names)
    lines: dict[str, str] = {}
    for group in dict.fromkeys(groups):
        every = zip(names, groups, found, strict=False)
        known = {name: one for name, of, one in every if of == group and one}
        kinds = {tuple((of["kind"], of["name"]) for of in (one, *one["also"])) for one in known.values()}
        if len(kinds) == 1:
            known = {group: next(iter(known.values()))}
        lines |= {name: one["line"] for name, one in known.items()}
    return [f"limited by{name and f', {name}'}: {line}" for name, line in lines.items()]


def number(value: float) -> str:
    """Return *value* with four significant digits; a dash for NaN."""
    if math.isnan(value):
        return "–"
    return "0" if value == 0 else f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


def with_interval(estimate: Estimate) -> str:
    """Return mean ± half-width, the latter with two significant digits, the mean to match.

    Values that are all equal have no interval: a half-width of zero would claim a precision.
    """
    mean, ci95 = estimate.mean, estimate.ci95
    if not (math.isfinite(mean) and math.isfinite(ci95)):
        return number(mean)
    if ci95 <= ROUNDING * abs(mean):
        return f"{number(mean)} (no spread)"
    decimals = max(0, 1 - math.floor(math.log10(ci95)))
    if decimals > 6:
        return f"{number(mean)} ± {ci95:.1e}"
    return f"{mean:.{decimals}f} ± {ci95:.{decimals}f}"


def verdict(model: float, mean: float, ci95: float, *, inside: bool) -> str:
    """Return whether the model lies in the interval, where both exist."""
    if math.isnan(model):
        return "no model"
    if math.isnan(mean):
        return "not simulated"
    if math.isnan(ci95):
        return "no interval"
    if not inside and ci95 <= ROUNDING * abs(mean):
        return "no spread"
    return INSIDE if inside else CLOSE_BY if abs(model - mean) <= CLOSE * abs(mean) else OUTSIDE


def _with_gaps(rows: Iterable[str], every: bool, cells: Callable[[str], Row]) -> Iterator[Row]:
    """Yield the cells of the rows to be shown, and an empty row before each group but the first."""
    group = ""
    order = list(METRICS).index
    for row in shown_rows(rows):
        metric = row.partition("[")[0]
        if not every and METRICS[metric].table == "all":
            continue
        begun = next((first for first in reversed(GROUPS) if order(first) <= order(metric)), "")
        if group and begun != group:
            yield ()
        group = begun
        yield cells(row)
