"""The work of `btqueue sweep`, and its output: a table for people, or a JSON object."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import typer
import xarray as xr
from rich.table import Table

from btqueue.cli.engines import keep_compiled_models, prepare_simulator
from btqueue.cli.errors import INTERRUPTED, BadInput, put_json, say
from btqueue.cli.files import AnswerFirst
from btqueue.cli.options import Call
from btqueue.cli.tables import Screen, new_table
from btqueue.network.numba_cache import interpreted
from btqueue.progress_bars import bars
from btqueue.scenario import METRICS, Scenario
from btqueue.scenario.expressions import parse_metric
from btqueue.scenario.problems import field_at
from btqueue.study import Estimate
from btqueue.study.checked_answers import in_words
from btqueue.study.comparison import axis_label
from btqueue.study.provenance import as_document
from btqueue.study.sweep import SweepInterrupted, failures, sweep
from btqueue.study.sweep_files import table
from btqueue.study.sweep_store import StoreError, Unwritten, journal_path
from btqueue.study.tables import number, with_interval

DEFAULT_METRICS = ("goodput_kbps", "rtt_s")
"""Metrics shown by default."""
MOST_ROWS = 40
"""Points that the table shows."""
MOST_REASONS = 5
"""Reasons for failures that are shown."""


def shown_metrics(base: Scenario, metrics: Sequence[str] | None) -> tuple[str, ...]:
    """Return the metrics to show, or quantities made of them, as expressions write them."""
    every = (str(parse_metric(text, "--metric", base)) for text in metrics or DEFAULT_METRICS)
    return tuple(dict.fromkeys(every))


def run(call: Call, files: AnswerFirst, wanted: dict[str, Any]) -> xr.Dataset:
    """Run the sweep with progress; turn failures into messages."""
    keep_compiled_models()
    wanted |= {"check": wanted["check"] and not interpreted(), "out": call.out, "force": call.force}
    if wanted["check"] or wanted["engine"] != "auto":
        prepare_simulator(call.base, quiet=call.quiet)
    try:
        with bars(quiet=call.quiet) as bar:
            told = {"progress": bar("points"), "notes": None if call.quiet else say}
            found = sweep(call.base, workers=call.threads, **told, **wanted)
        if call.out is not None:
            files.written["out"] = str(call.out)
        return found
    except Unwritten as error:
        files.failures.append(BadInput(f"--out {error}"))
        return error.dataset
    except StoreError as error:
        raise BadInput(f"--out {error}") from None
    except SweepInterrupted as interruption:
        count = f"{interruption.finished:,} finished points"
        if call.out is None:
            say(f"interrupted: {count} are lost (with --out they would be kept)")
        else:
            kept = journal_path(call.out)
            say(f"interrupted: {count} are kept in {kept}; the same command goes on from there")
        raise typer.Exit(INTERRUPTED) from None


def require(metrics: Sequence[str], found: xr.Dataset) -> None:
    """Refuse a metric that was asked for and that no answered point has."""
    given = [name for name in (*METRICS, *metrics) if name in found and found[name].notnull().any()]
    missing = [name for name in metrics if name not in given]
    if missing and found.attrs["answered"]:
        raise BadInput(f"--metric {missing[0]}: no point has this metric; there are {', '.join(given)}")


def print_json(base: Scenario, found: xr.Dataset, metrics: Sequence[str], files: Mapping[str, str]) -> None:
    """Print the JSON object of a sweep: its keys and values, failures with their causes, and some metrics."""
    asked = json.loads(found.attrs["sweep"])
    shown = [name for metric in metrics for name in (metric, f"{metric}_ci95") if name in found]
    content = {
        "engines": asked["engines"],
        "dimensions": {str(dim): found.sizes[dim] for dim in found["failure"].dims},
        "coordinates": {
            str(name): values.values.tolist()
            for name, values in found.coords.items()
            if set(values.dims) <= set(found["failure"].dims)
        },
        "points": found.attrs["answered"] + found.attrs["failed"],
        "answered": found.attrs["answered"],
        "failed": found.attrs["failed"],
        "failures": failures(found),
        "metrics": {name: found[name].values.tolist() for name in shown},
        **({"answered_by": found["answered_by"].values.tolist()} if "answered_by" in found else {}),
        **({"checks": json.loads(found.attrs["checks"])} if "checks" in found.attrs else {}),
    }
    put_json(as_document(base, sweep=content, files=files))


def print_table(
    title: str, found: xr.Dataset, metrics: Sequence[str], wall_s: float, out: str | None
) -> None:
    """Print the first points, how many there are, and why points failed."""
    screen, rows, reasons = Screen(), found["failure"].size, failures(found)
    total = found.attrs["answered"] + found.attrs["failed"]
    lines = [f"{found.attrs['answered']:,} of {total:,} points answered in {wall_s:.1f} s"]
    if rows > MOST_ROWS:
        lines.insert(0, f"the first {MOST_ROWS} of {rows:,} rows")
    screen.show(title, _points_table(found, metrics), *lines)
    told = [f"failed: {count:,} x {reason}" for reason, count in list(reasons.items())[:MOST_REASONS]]
    if len(reasons) > MOST_REASONS:
        told.append(f"... and for {len(reasons) - MOST_REASONS} more reasons")
    if "answered_by" in found and "engine" not in found.dims:
        told += _about_engines(found, metrics)
    for key in _without_effect(found, metrics):
        told.append(f"{key} has no effect on these metrics")
    if warned := [text for text in found["warnings"].values.ravel().tolist() if text]:
        told.append(f"warnings at {len(warned):,} points (all of them with --out), first: {warned[0]}")
    screen.say(*told, style="yellow")
    if out is not None:
        screen.say(f"written to {out}", style="dim")


def _without_effect(found: xr.Dataset, metrics: Sequence[str]) -> list[str]:
    """Return the keys whose values leave all of these metrics as they are, at every point."""
    shown = [found[metric] for metric in metrics if metric in found and found[metric].notnull().any()]

    def same(key: str) -> bool:
        along = [np.moveaxis(one.values, one.dims.index(key), 0) for one in shown if key in one.dims]
        return bool(along) and all(
            np.array_equal(row, one[0], equal_nan=True) for one in along for row in one
        )

    keys = (str(name) for name, size in found.sizes.items() if size > 1)
    return [key for key in keys if field_at(Scenario, key) is not None and same(key)]


def _about_engines(found: xr.Dataset, metrics: Sequence[str]) -> list[str]:
    """Return the number and precision of the points that were simulated, and the result of the checks."""
    by = found["answered_by"].values
    played, solved = int((by == "simulation").sum()), int((by == "theory").sum())
    checks = json.loads(found.attrs["checks"]) if "checks" in found.attrs else None
    around = checks["simulated"] if checks else 0
    lines = []
    why = next(filter(None, found["why"].values.ravel().tolist()), "") if "why" in found else ""
    if played > around and why:  # `--engine simulate` asks theory nothing
        lines.append(
            f"{played - around:,} points simulated: theory does not stand there, or lacks a metric (reasons "
            f"with --out), first: {why}"
        )
    for name in (metrics or ["goodput_kbps"]) if played else ():
        if f"{name}_ci95" in found:
            widths = (found[f"{name}_ci95"] / found[name]).values[by == "simulation"]
            if (known := widths[np.isfinite(widths)]).size:
                told = f"{100 * known.max():.2g} % or better"
                lines.append(f"{name} of points that were simulated is known to {told}")
    return lines + (in_words(checks, solved + around) if checks and checks["points"] else [])


def _shown(value: Any) -> str:
    """Return the value of a key as a scenario file writes it."""
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return text.lower() if isinstance(value, bool | np.bool_) else text


def _points_table(found: xr.Dataset, metrics: Sequence[str]) -> Table:
    rows = table(found).head(MOST_ROWS)
    shown = [metric for metric in metrics if metric in rows]
    keys = [
        str(name)
        for name in rows.columns
        if name in found.coords and ("[" not in str(name) or field_at(Scenario, str(name)) is not None)
    ]
    by = [name for name in ("answered_by",) if name in rows and "simulation" in set(rows[name])]
    printed = new_table(*keys, *map(axis_label, shown), *(["by"] if by else []), left=len(keys))
    for row in rows.to_dict("records"):
        cells = [_shown(row[key]) for key in keys]
        for metric in shown:
            ci95 = row.get(f"{metric}_ci95", math.nan)
            cells.append(
                number(row[metric]) if math.isnan(ci95) else with_interval(Estimate(row[metric], ci95))
            )
        printed.add_row(*cells, *(row[name] for name in by), style="yellow" if row["failure"] else None)
    return printed
