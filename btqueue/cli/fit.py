"""`btqueue fit`: the values of keys that measured results point to, with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from btqueue.cli.check import REPORTS, simulator_of
from btqueue.cli.errors import BadInput, put_json
from btqueue.cli.options import AsJson, FlowOfResults, Force, Map, Plot, Quiet, Sets, Threads

if TYPE_CHECKING:
    from btqueue.cli.files import Target
    from btqueue.study.fit import Fit, Fitted

EXAMPLES = (
    "btqueue fit capture.pcap --scenario practice/printer --free radio.ber",
    "btqueue fit results.csv --scenario five-sensors.toml --free radio.ber=1e-6..1e-4,traffic.load_kbps",
)
"""That the help shows."""


def fit(
    results: Annotated[
        Path, Argument(metavar="RESULTS", help="Measured: a file of any kind that btqueue check reads.")
    ],
    scenario: Annotated[
        str, Option("--scenario", metavar="SCENARIO", help="That was measured: a TOML file or a name.")
    ],
    free: Annotated[
        list[str],
        Option(
            metavar="KEY[=LOW..HIGH],...",
            help="Keys to fit; default range: a tenth to ten times the scenario's value. Repeatable.",
        ),
    ],
    set_: Sets = None,
    map_: Map = None,
    flow: FlowOfResults = None,
    out: Annotated[
        Path | None, Option(metavar="FILE", help="Write the report (.json) or the values (.csv) to FILE.")
    ] = None,
    plot: Plot = None,
    force: Force = False,
    threads: Threads = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Fit keys of a scenario to measured results, and confirm the values by simulation.

    Values have 95 % intervals. Keys that the results do not tell, or that packets state, are named.
    """
    from btqueue.cli.engines import keep_compiled_models
    from btqueue.cli.files import AnswerFirst, Target
    from btqueue.plots import FORMATS
    from btqueue.scenario import load
    from btqueue.study.check import read_results
    from btqueue.study.check.results import checked_map
    from btqueue.study.fit import fit as study

    target = None if out is None else Target.checked(out, "--out", REPORTS, force=force)
    picture = None if plot is None else Target.checked(plot, "--plot", FORMATS, force=force)
    wanted = load(scenario, set_ or ())
    ranges = {}
    for text in (part.strip() for one in free for part in one.split(",")):
        key, equals, spread = text.partition("=")
        if key.strip() in ranges:
            raise BadInput(f"--free {key.strip()}: is given twice")
        ranges[key.strip()] = spread.strip() if equals else None
    keep_compiled_models()
    found = read_results(results, wanted, renamed=checked_map(map_ or []), flow=flow)
    report = study(found, wanted, ranges, simulate=simulator_of(threads, quiet, causes=False))
    with AnswerFirst() as files:
        if target is not None:
            files.write(_write, report, target)
        if picture is not None:
            from btqueue.plots.check import check_figure

            files.write(picture.draw, check_figure, report)
        if as_json:
            put_json(_document(report))
        else:
            _print(report, scenario)


def _write(report: Fit, target: Target) -> None:
    """Write the report: all of it as JSON, the values of the keys as CSV."""
    from btqueue.cli.check_report import write_json_or_rows

    columns = ("key", "before", "value", "low", "high", "verdict")
    rows = ([getattr(one, column) for column in columns] for one in report.keys)
    write_json_or_rows(target, lambda: _document(report), [columns, *rows])


def _document(report: Fit) -> dict[str, object]:
    from dataclasses import asdict

    from btqueue.cli.check_report import agreements_document
    from btqueue.study.provenance import as_document

    results = report.results
    content = {
        "file": results.source,
        "format": results.kind,
        "flow": results.flow,
        "keys": {one.key: {k: v for k, v in asdict(one).items() if k != "key"} for one in report.keys},
        "cannot_be_told": report.flat,
        "confirmed": report.confirmed,
        "summary": report.summary,
        "facts": list(map(asdict, report.findings)),
        "fitted_metrics": report.used,
        "metrics": agreements_document(report.agreements),
        "doubts": report.doubts,
        "notes": report.notes,
    }
    return as_document(report.scenario, fit=content)


def _print(report: Fit, name: str) -> None:
    from btqueue.cli.check_report import VERDICTS, agreements_table
    from btqueue.cli.tables import Screen, new_table
    from btqueue.study.tables import number

    def row(one: Fitted) -> tuple[str, ...]:
        told = one.verdict not in ("cannot be told", "stated")
        interval = f"{number(one.low)} to {number(one.high)}" if told else ""
        return one.key, number(one.before), number(one.value), interval, WORDS[one.verdict]

    screen = Screen()
    screen.say(f"{report.results.source} ({report.results.kind}) fitted to {name}", "bold")
    table = new_table("key", "scenario", "found", "95 % interval", "", left=1)
    table.columns[-1].justify = "left"
    for one in report.keys:
        table.add_row(*row(one))
    screen.print(table)
    for sentence in report.flat:
        screen.say(sentence, "yellow")
    for fact in report.findings:
        screen.say(f"{fact.check}: {fact.sentence}", "yellow")
    screen.print(agreements_table(report.agreements))
    for one in report.agreements:
        if one.verdict == "differs":
            screen.say(one.sentence, VERDICTS[one.verdict][1])
    for note in (*report.doubts, *report.notes):
        screen.say(note, "dim")
    screen.say(report.summary, "bold green" if report.confirmed else "bold red")


WORDS = {
    "fitted": "",
    "stated": "the packets say so",
    "cannot be told": "cannot be told from this file",
    "at the end": "at the end of its range: give a wider one",
}
