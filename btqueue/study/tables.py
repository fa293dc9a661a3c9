"""Answers as tables of words, for the command line and for notebooks.

>>> import btqueue as bt
>>> bt.table(bt.load("chen-2004/adaptive-1").with_(network__hops=2)).rows[0]
('network.topology', '"chain"')
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from btqueue.scenario.metrics import METRICS, Results
from btqueue.study.comparison import heading, least_and_greatest, metric_of, rows_of, shown_rows
from btqueue.study.summary import Estimate, labels_of
from btqueue.text_table import Row, TextTable

if TYPE_CHECKING:
    import xarray as xr

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
SPREAD = "least to greatest flow"
"""One more column where flows differ."""


@runtime_checkable
class Tabular(Protocol):
    """A scenario or a closed form."""

    def table(self) -> TextTable:
        """Return itself as a table."""
        ...


def table(thing: Tabular | Results | xr.Dataset, *, every: bool = False) -> TextTable:
    """Return a scenario, an answer of either engine, a comparison, or a closed form as a table.

    Args:
        thing: result of `btqueue.load`, `solve`, `simulate` or `compare`, or a closed form.
        every: show all metrics, percentiles too.
    """
    if not isinstance(thing, Results) and isinstance(thing, Tabular):
        return thing.table()
    attrs = thing.attrs
    title = str(attrs.get("title") or "")
    if not isinstance(thing, Results) and "metric" in thing.dims:
        notes = [f"model: {attrs['model_method']}"] if "model_method" in attrs else []
        notes += [
            f"{side} warns: {text}"
            for side in ("simulation", "model")
            for text in attrs.get(f"{side}_warnings", ())
        ]
        columns = (*COMPARED, SPREAD) if "least" in thing else COMPARED
        rows = tuple(comparison_rows(thing, every=every))
        return TextTable(title or "Comparison", columns, rows, tuple(notes))
    by = "simulation" if attrs.get("answered_by") == "simulation" else "model"
    notes = [*limit_lines(thing), *(f"{by} warns: {text}" for text in attrs.get("warnings", ()))]
    heading = "value" if by == "model" else "mean ± 95 % interval"
    rows = tuple(metric_rows(thing, every=every))
    columns = ("metric", "unit", heading, *([SPREAD] if "group" in thing.variables else []))
    return TextTable(title or f"Answer of the {by}", columns, rows, tuple(notes))


def metric_rows(results: Results | xr.Dataset, *, every: bool = False) -> Iterator[Row]:
    """Yield name, unit and value of each metric, and the least and greatest flow where flows differ."""
    estimates = rows_of(results)
    for name in _with_gaps(estimates, every):
        if not name:
            yield ()
            continue
        cells = (heading(name, estimates[name]), metric_of(name).unit, with_interval(estimates[name]))
        if "group" in results.variables:
            cells += (spread(*least_and_greatest(estimates[name])) if "[" in name else "",)
        yield cells


def comparison_rows(comparison: xr.Dataset, *, every: bool = False) -> Iterator[Row]:
    """Yield the `COMPARED` columns of each metric, and the `SPREAD` where flows differ."""
    for name in _with_gaps(map(str, comparison["metric"].values), every):
        if not name:
            yield ()
            continue
        row = comparison.sel(metric=name)
        model, mean, ci95, difference = (
            float(row[key]) for key in ("model", "simulation", "ci95", "relative_difference")
        )
        cells = (
            str(row["long_name"].item()),
            str(row["units"].item()),
            number(model),
            with_interval(Estimate(mean, ci95)),
            "–" if math.isnan(difference) else f"{difference:+.1%}",
            verdict(model, mean, ci95, inside=bool(row["inside"])),
        )
        yield (*cells, spread(float(row["least"]), float(row["greatest"]))) if "least" in row else cells


def spread(least: float, greatest: float) -> str:
    """Return the values of the least and the greatest flow; nothing where they are unknown or equal."""
    return f"{number(least)} to {number(greatest)}" if least < greatest else ""


def limit_lines(results: Results | xr.Dataset) -> list[str]:
    """Return the limits of the flows: a line for a group with the same limit, else one for each flow."""
    found = results.attrs.get("limited_by", ())
    names = labels_of(results, "flow_name")
    groups = labels_of(results, "group") or ("",) * len(names)
    lines: dict[str, str] = {}
    for group in dict.fromkeys(groups):
        every = zip(names, groups, found, strict=False)
        known = {name: one for name, of, one in every if of == group and one}
        if len({(one["kind"], one["name"]) for one in known.values()}) == 1:
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


def _with_gaps(rows: Iterable[str], every: bool) -> Iterator[str]:
    """Yield the rows to be shown, and an empty name before each group but the first."""
    group = ""
    order = list(METRICS).index
    for row in shown_rows(rows):
        metric = row.partition("[")[0]
        if not every and METRICS[metric].table == "all":
            continue
        begun = next((first for first in reversed(GROUPS) if order(first) <= order(metric)), "")
        if group and begun != group:
            yield ""
        group = begun
        yield row
