"""The reports of a check and of a fit: as tables for people, as JSON, and as files."""

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import xarray as xr
from rich.table import Table
from rich.text import Text

from btqueue.cli.engines import keep_compiled_models, run_simulator
from btqueue.cli.errors import put_json, say
from btqueue.cli.files import AnswerFirst, write_json
from btqueue.cli.options import Call
from btqueue.cli.tables import Screen, new_table
from btqueue.files import write_rows
from btqueue.scenario import Scenario
from btqueue.study import Estimate
from btqueue.study.check import Agreement, ForeignResults, Report, read_results
from btqueue.study.check.results import checked_map
from btqueue.study.comparison import long_name, metric_of
from btqueue.study.fit import Fit, Fitted
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


def read(call: Call, path: Path, renamed: list[str] | None, flow: int | None) -> ForeignResults:
    """Read a file of measured or simulated results; `renamed` has the pairs of `--map`."""
    keep_compiled_models()
    return read_results(path, call.base, renamed=checked_map(renamed or []), flow=flow)


def simulator_of(call: Call, *, causes: bool = True) -> Callable[[Scenario], xr.Dataset]:
    """Return our simulator with its progress bar; where *causes* are sought it says when that begins."""
    first: Scenario | None = None
    told = call.quiet or not causes

    def simulate(scenario: Scenario) -> xr.Dataset:
        nonlocal first, told
        first = first or scenario
        if not told and scenario.model_copy(update={"run": first.run}) != first:
            told = True
            say("something differs: simulating neighbours of the scenario to find out why")
        answer = run_simulator(scenario, threads=call.threads, quiet=call.quiet)
        if answer.interrupted:  # half a comparison is none
            raise KeyboardInterrupt
        return answer.results.to_dataset()

    return simulate


def deliver(call: Call, files: AnswerFirst, report: Report | Fit) -> None:
    """Write the files and the figure, then print the report."""
    with files:
        writers = {".json": lambda path, one: write_json(path, document(one)), ".csv": write_csv}
        files.write(writers, report)
        files.draw("btqueue.plots.check.check_figure", report)
        if call.as_json:
            put_json(document(report))
        elif isinstance(report, Fit):
            print_fit(report, call.scenario)
        else:
            print_report(report, call.scenario)


OF_METRICS = (*COLUMNS, "verdict", "sentence")
OF_KEYS = ("key", "before", "value", "low", "high", "verdict")
"""Columns of a check's rows, and of a fit's."""


def document(report: Report | Fit) -> dict[str, Any]:
    """Return the report as plain values; NaN is None."""
    results = report.results
    metrics = {one.metric: {name: getattr(one, name) for name in OF_METRICS} for one in report.agreements}
    content = {"file": results.source, "format": results.kind, "flow": results.flow}
    content |= {"summary": report.summary, "metrics": metrics, "notes": report.notes}
    if isinstance(report, Fit):
        keys = {one.key: {k: v for k, v in asdict(one).items() if k != "key"} for one in report.keys}
        content |= {"keys": keys, "cannot_be_told": report.flat, "confirmed": report.confirmed}
        content |= {"facts": list(map(asdict, report.findings)), "fitted_metrics": report.used}
        return as_document(report.scenario, fit=content | {"doubts": report.doubts})
    content |= {
        "compared": report.compared,
        "agrees": report.agrees,
        "confidence": report.rules.confidence,
        "tolerance": report.rules.tolerance,
        "consistency": list(map(asdict, report.findings)),
        "causes": list(map(asdict, report.causes)),
        "neighbours_tried": report.tried,
        "cannot_tell": report.unseen,
    }
    return as_document(report.scenario, check=content)


def write_csv(path: Path, report: Report | Fit) -> None:
    """Write a row for each metric that was checked, or for each key that was fitted."""
    if isinstance(report, Fit):
        rows = [OF_KEYS, *([getattr(one, name) for name in OF_KEYS] for one in report.keys)]
    else:
        values = ([getattr(one, name) for name in OF_METRICS] for one in report.agreements)
        named = zip(report.agreements, values, strict=True)
        rows = [("metric", "unit", *OF_METRICS)]
        rows += [(one.metric, metric_of(one.metric).unit, *its) for one, its in named]
    write_rows(path, rows)


def print_report(report: Report, name: str) -> None:
    """Print the report for people."""
    screen, results = Screen(), report.results
    line = screen.say
    line(f"{results.source} ({results.kind}) against {name}", style="bold")
    line(*filter(None, [report.compared]), "", "consistency")
    for one in report.findings:
        sign, style = SIGNS[one.status]
        line(f"  {sign} {one.check}: {one.sentence}", style=style if one.status != "passed" else "")
    if not report.findings:
        line("    nothing in the file can be checked against the rest of it")
    screen.print(agreements_table(report.agreements))
    for one in report.agreements:
        no_chance = (
            math.isnan(one.p_value) and one.simulation != one.theirs and not math.isnan(one.simulation)
        )
        if one.verdict in ("differs", "negligible") or no_chance:
            line(f"  {one.sentence}", style=VERDICTS[one.verdict][1])
    for cause in report.causes[:MOST_CAUSES]:
        strength = "partial" if cause.remains else "possible" if len(report.differing) == 1 else "likely"
        line(f"  {strength} cause: {cause.sentence}")
    if report.tried and not report.causes:
        kinds = "buffers, limits, timers, windows, rates, delays, errors, warm-up"
        line(f"  no cause found: none of {report.tried} neighbours of the scenario fits ({kinds})")
    if report.unseen:
        keys = ", ".join(report.unseen)
        text = f"cannot tell {keys}: half or twice the value would change no metric here enough to show"
        line(f"{text} (by the model)", style="yellow")
    if unknown := sum(one.verdict == "not compared" for one in report.agreements):
        line(f"metrics not compared: {unknown}; neither simulation nor model gives them here", style="dim")
    line(*report.notes, style="dim")
    line(report.summary, style="bold green" if report.agrees else "bold red")


def agreements_table(agreements: Iterable[Agreement]) -> Table:
    """Return the table of metrics: the file's values beside the model's and the simulation's."""
    rows = (
        [
            long_name(one.metric),
            metric_of(one.metric).unit,
            with_interval(Estimate(one.theirs, one.theirs_ci95)),
            number(one.model),
            with_interval(Estimate(one.simulation, one.simulation_ci95)),
            Text(*VERDICTS[one.verdict]),
        ]
        for one in agreements
    )
    columns = ("metric", "unit", "theirs", "model", "simulation ± 95 %", "verdict")
    table = new_table(*columns, left=2, rows=rows)
    table.columns[-1].justify = "left"
    return table


FITTED = {
    "fitted": "",
    "stated": "the packets say so",
    "cannot be told": "cannot be told from this file",
    "at the end": "at the end of its range: give a wider one",
}
"""Remarks on a fitted value, by its verdict."""


def print_fit(report: Fit, name: str) -> None:
    """Print the values for people, and the comparison at them."""

    def row(one: Fitted) -> tuple[str, ...]:
        told = one.verdict not in ("cannot be told", "stated")
        interval = f"{number(one.low)} to {number(one.high)}" if told else ""
        return one.key, number(one.before), number(one.value), interval, FITTED[one.verdict]

    screen = Screen()
    table = new_table("key", "scenario", "found", "95 % interval", "", rows=map(row, report.keys))
    table.columns[-1].justify = "left"
    screen.show(f"{report.results.source} ({report.results.kind}) fitted to {name}", table)
    screen.say(*filter(None, [report.compared]))
    facts = (f"{fact.check}: {fact.sentence}" for fact in report.findings)
    screen.say(*report.flat, *facts, style="yellow")
    screen.print(agreements_table(report.agreements))
    screen.say(*(one.sentence for one in report.differing), style=VERDICTS["differs"][1])
    screen.say(*report.doubts, *report.notes, style="dim")
    screen.say(report.summary, style="bold green" if report.confirmed else "bold red")
