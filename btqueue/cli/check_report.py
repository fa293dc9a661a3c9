"""The report of a check: as a table for people, as JSON, and as a file."""

from __future__ import annotations

import csv
import json
import math
from typing import Any

from rich.table import Table
from rich.text import Text

from btqueue.cli.errors import finite
from btqueue.cli.files import Target
from btqueue.cli.tables import Screen, new_table
from btqueue.scenario import METRICS
from btqueue.study import Estimate, provenance
from btqueue.study.check import Agreement, Report
from btqueue.study.comparison import long_name
from btqueue.study.tables import number, with_interval

SIGNS = {"passed": ("✓", "green"), "doubtful": ("?", "yellow"), "failed": ("✗", "red")}
VERDICTS = {
    "agrees": ("✓ agrees", "green"),
    "negligible": ("✓ negligible", "green"),
    "differs": ("✗ differs", "red"),
    "not compared": ("not compared", "dim"),
}
MOST_CAUSES = 3
"""Likely causes that are shown."""
COLUMNS = ("theirs", "theirs_ci95", "simulation", "simulation_ci95", "model", "model_error", "p_value")


def document(report: Report) -> dict[str, Any]:
    """Return the report as plain values; NaN is None."""
    results = report.results
    return {
        "scenario": report.scenario.to_dict(),
        "check": {
            "file": results.source,
            "format": results.kind,
            "flow": results.flow,
            "agrees": report.agrees,
            "summary": report.summary,
            "confidence": report.confidence,
            "consistency": [
                {"check": one.check, "status": one.status, "sentence": one.sentence}
                for one in report.findings
            ],
            "metrics": {
                one.metric: {
                    **{column: finite(getattr(one, column)) for column in COLUMNS},
                    "verdict": one.verdict,
                    "sentence": one.sentence,
                }
                for one in report.agreements
            },
            "pattern": report.pattern,
            "causes": [
                {"changes": dict(cause.changes), "sentence": cause.sentence, "misfit": cause.misfit}
                for cause in report.causes
            ],
            "neighbours_tried": report.tried,
            "notes": list(report.notes),
        },
        "provenance": provenance(report.scenario),
    }


def write_report(report: Report, target: Target) -> None:
    """Write the report: all of it as JSON, the metrics as CSV."""
    with target.replaced() as part, part.open("w", newline="", encoding="utf-8") as file:
        if target.path.suffix.lower() == ".json":
            json.dump(document(report), file, indent=2, allow_nan=False)
            return
        rows = csv.writer(file)
        rows.writerow(["metric", "unit", *COLUMNS, "verdict", "sentence"])
        for one in report.agreements:
            values = ["" if math.isnan(value) else value for value in _values(one)]
            rows.writerow([one.metric, _unit(one), *values, one.verdict, one.sentence])


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
    screen.print(_table(report))
    for one in report.agreements:
        if one.verdict in ("differs", "negligible"):
            line(f"  {one.sentence}", VERDICTS[one.verdict][1])
    if report.pattern and not report.causes:
        line(f"  pattern: {report.pattern}")
    for cause in report.causes[:MOST_CAUSES]:
        line(f"  likely cause: {cause.sentence}")
    if report.tried and not report.causes:
        kinds = "buffers, limits, timers, windows, rates, delays, errors, warm-up"
        line(f"  none of {report.tried} neighbours of the scenario fits ({kinds})")
    if unknown := sum(one.verdict == "not compared" for one in report.agreements):
        line(f"{unknown} metrics were not compared: neither simulation nor model gives them here", "dim")
    for note in report.notes:
        line(note, "dim")
    line(report.summary, "bold green" if report.agrees else "bold red")


def _table(report: Report) -> Table:
    table = new_table("metric", "unit", "theirs", "model", "simulation ± 95 %", "verdict", left=2)
    table.columns[-1].justify = "left"
    for one in report.agreements:
        text, style = VERDICTS[one.verdict]
        table.add_row(
            long_name(one.metric),
            _unit(one),
            with_interval(Estimate(one.theirs, one.theirs_ci95)),
            number(one.model),
            with_interval(Estimate(one.simulation, one.simulation_ci95)),
            Text(text, style=style),
        )
    return table


def _unit(one: Agreement) -> str:
    return METRICS[one.metric.partition("[")[0]].unit


def _values(one: Agreement) -> list[float]:
    return [getattr(one, column) for column in COLUMNS]
