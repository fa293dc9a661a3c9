"""The report of a check: as a table for people, as JSON, and as a file."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from btqueue.cli.files import Target
from btqueue.cli.tables import Screen, new_table
from btqueue.files import write_rows
from btqueue.study import Estimate
from btqueue.study.check import Agreement, Report
from btqueue.study.comparison import long_name, metric_of
from btqueue.study.provenance import as_document
from btqueue.study.tables import number, with_interval

SIGNS = {"passed": ("✓", "green"), "doubtful": ("?", "yellow"), "failed": ("✗", "red")}
VERDICTS = {
    "agrees": ("✓ agrees", "green"),
    "negligible": ("✓ negligible", "green"),
    "cannot tell": ("? cannot tell", "yellow"),
    "differs": ("✗ differs", "red"),
    "not compared": ("not compared", "dim"),
}
MOST_CAUSES = 3
"""Likely causes that are shown."""
COLUMNS = ("theirs", "theirs_ci95", "simulation", "simulation_ci95", "model", "model_error", "p_value")


def document(report: Report) -> dict[str, Any]:
    """Return the report as plain values; NaN is None."""
    results = report.results
    check = {
        "file": results.source,
        "format": results.kind,
        "flow": results.flow,
        "agrees": report.agrees,
        "summary": report.summary,
        "confidence": report.rules.confidence,
        "tolerance": report.rules.tolerance,
        "consistency": list(map(asdict, report.findings)),
        "metrics": agreements_document(report.agreements),
        "pattern": report.pattern,
        "causes": list(map(asdict, report.causes)),
        "neighbours_tried": report.tried,
        "cannot_tell": list(report.unseen),
        "notes": report.notes,
    }
    return as_document(report.scenario, check=check)


def agreements_document(agreements: Iterable[Agreement]) -> dict[str, dict[str, Any]]:
    """Return the columns of each metric, by its name."""
    columns = (*COLUMNS, "verdict", "sentence")
    return {one.metric: {column: getattr(one, column) for column in columns} for one in agreements}


def write_report(report: Report, target: Target) -> None:
    """Write the report: all of it as JSON, the metrics as CSV."""
    columns = (*COLUMNS, "verdict", "sentence")
    rows = (
        [one.metric, metric_of(one.metric).unit, *(getattr(one, c) for c in columns)]
        for one in report.agreements
    )
    write_json_or_rows(target, lambda: document(report), [["metric", "unit", *columns], *rows])


def write_json_or_rows(
    target: Target, content: Callable[[], dict[str, object]], rows: Iterable[Sequence[Any]]
) -> None:
    """Write a document as JSON, or rows as CSV, as the file's name says."""
    with target.replaced() as part:
        if target.path.suffix.lower() == ".json":
            part.write_text(json.dumps(content(), indent=2, allow_nan=False), "utf-8")
        else:
            write_rows(part, rows)


def print_report(report: Report, name: str) -> None:
    """Print the report for people."""
    screen, results = Screen(), report.results
    line = screen.say
    line(f"{results.source} ({results.kind}) against {name}", "bold")
    line("")
    line("consistency")
    for one in report.findings:
        sign, style = SIGNS[one.status]
        line(f"  {sign} {one.check}: {one.sentence}", style if one.status != "passed" else "")
    if not report.findings:
        line("    nothing in the file can be checked against the rest of it")
    screen.print(agreements_table(report.agreements))
    for one in report.agreements:
        no_chance = (
            math.isnan(one.p_value) and one.simulation != one.theirs and not math.isnan(one.simulation)
        )
        if one.verdict in ("differs", "negligible") or no_chance:
            line(f"  {one.sentence}", VERDICTS[one.verdict][1])
    if report.pattern and not report.causes:
        line(f"  pattern: {report.pattern}")
    for cause in report.causes[:MOST_CAUSES]:
        line(f"  likely cause: {cause.sentence}")
    if report.tried and not report.causes:
        kinds = "buffers, limits, timers, windows, rates, delays, errors, warm-up"
        line(f"  none of {report.tried} neighbours of the scenario fits ({kinds})")
    if report.unseen:
        line(f"cannot tell: half or twice {', '.join(report.unseen)} would pass (by the model)", "yellow")
    if unknown := sum(one.verdict == "not compared" for one in report.agreements):
        line(f"metrics not compared: {unknown}; neither simulation nor model gives them here", "dim")
    for note in report.notes:
        line(note, "dim")
    line(report.summary, "bold green" if report.agrees else "bold red")


def agreements_table(agreements: Iterable[Agreement]) -> Table:
    """Return the table of metrics: theirs beside the model and the simulation."""
    table = new_table("metric", "unit", "theirs", "model", "simulation ± 95 %", "verdict", left=2)
    table.columns[-1].justify = "left"
    for one in agreements:
        text, style = VERDICTS[one.verdict]
        table.add_row(
            long_name(one.metric),
            metric_of(one.metric).unit,
            with_interval(Estimate(one.theirs, one.theirs_ci95)),
            number(one.model),
            with_interval(Estimate(one.simulation, one.simulation_ci95)),
            Text(text, style=style),
        )
    return table
