"""`btqueue check`: another simulator's output against itself, the model and our simulation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from btqueue.cli.errors import NO_ANSWER, BadInput, put_json, say
from btqueue.cli.options import AsJson, Force, Quiet, Sets, Threads

if TYPE_CHECKING:
    import xarray as xr

    from btqueue.scenario import Scenario
    from btqueue.study.check import Report

REPORTS = {".json": "JSON", ".csv": "CSV"}
"""Formats of `--out`, by suffix."""


EXAMPLES = (
    "btqueue check results.csv --scenario five-sensors.toml",
    "btqueue check capture.pcap --scenario venugopal-2006/piconet --set run.duration_s=60",
)
"""That the help shows."""


def check(
    results: Annotated[
        Path,
        typer.Argument(
            metavar="RESULTS", help="Their file: CSV, pcap, pcapng, FlowMonitor XML, .sca or .vec."
        ),
    ],
    scenario: Annotated[
        str,
        typer.Option("--scenario", metavar="SCENARIO", help="The simulated scenario: a TOML file or a name."),
    ],
    set_: Sets = None,
    confidence: Annotated[
        float,
        typer.Option(metavar="P", help="1 - the chance that a correct simulator fails in any metric."),
    ] = 0.99,
    format: Annotated[
        Literal["csv", "pcap", "flowmonitor", "omnet"] | None,
        typer.Option("--format", help="Of RESULTS; default: told from the file."),
    ] = None,
    map_: Annotated[
        list[str] | None,
        typer.Option("--map", metavar="THEIRS=METRIC", help="Our metric for a name of theirs. Repeatable."),
    ] = None,
    flow: Annotated[
        int | None,
        typer.Option("--flow", min=1, metavar="N", help="Flow of the scenario that RESULTS is about."),
    ] = None,
    no_simulate: Annotated[bool, typer.Option("--no-simulate", help="Compare with the model alone.")] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit code 3 if anything is inconsistent or differs.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write the report to FILE (.json, .csv).")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw theirs, model and simulation (.png, .svg, .pdf)."),
    ] = None,
    force: Force = False,
    threads: Threads = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Check another simulator's output: is it consistent, does it agree, and if not, why.

    The verdict is in the output, the exit code is 0 either way unless --strict is given.
    """
    from btqueue.cli.check_report import document, print_report, write_report
    from btqueue.cli.files import AnswerFirst, Target
    from btqueue.plots import FORMATS
    from btqueue.scenario import load

    if not 0.5 <= confidence < 1:
        raise BadInput(f"--confidence {confidence:g}: must be at least 0.5 and below 1")
    wanted = load(scenario, set_ or ())
    target = None if out is None else Target.checked(out, "--out", REPORTS, force=force)
    picture = None if plot is None else Target.checked(plot, "--plot", FORMATS, force=force)
    report = _checked(
        results,
        wanted,
        confidence,
        format,
        map_ or [],
        flow,
        simulated=not no_simulate,
        threads=threads,
        quiet=quiet,
    )
    with AnswerFirst() as files:
        if target is not None:
            files.write(write_report, report, target)
        if picture is not None:
            from btqueue.plots.check import check_figure

            files.write(picture.draw, check_figure(report))
        if as_json:
            put_json(document(report))
        else:
            print_report(report, scenario)
    if strict and not report.agrees:
        raise typer.Exit(NO_ANSWER)


def _checked(
    path: Path,
    scenario: Scenario,
    confidence: float,
    format: Any,
    pairs: list[str],
    flow: int | None,
    *,
    simulated: bool,
    threads: int | None,
    quiet: bool,
) -> Report:
    """Read the file and check it; turn faults of the file into a message."""
    from btqueue.cli.engines import keep_compiled_models
    from btqueue.study.check import BadResults, read_results
    from btqueue.study.check import check as study
    from btqueue.study.check.results import checked_map

    engine = _Simulator(threads, quiet)
    try:
        found = read_results(path, scenario, format=format, renamed=checked_map(pairs), flow=flow)
        keep_compiled_models()
        return study(found, scenario, confidence=confidence, simulate=engine if simulated else None)
    except BadResults as error:
        raise BadInput(str(error)) from None


class _Simulator:
    """Our simulator with its progress bar; after the first run it says that causes are looked for."""

    def __init__(self, threads: int | None, quiet: bool) -> None:
        """Begin before the first run."""
        self.threads, self.quiet, self.runs = threads, quiet, 0

    def __call__(self, scenario: Scenario) -> xr.Dataset:
        """Simulate.

        Raises:
            KeyboardInterrupt: by Ctrl-C; half a comparison is none.
        """
        from btqueue.cli.engines import run_simulator

        self.runs += 1
        if self.runs == 2 and not self.quiet:
            say("something differs: simulating neighbours of the scenario to find out why")
        answer = run_simulator(scenario, threads=self.threads, quiet=self.quiet)
        if answer.interrupted:
            raise KeyboardInterrupt
        return answer.results.to_dataset()
