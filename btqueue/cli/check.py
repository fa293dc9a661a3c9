"""`btqueue check`: another simulator's output against itself, the model and our simulation."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from typer import Argument, Option

from btqueue.cli.errors import NO_ANSWER, BadInput, put_json, say
from btqueue.cli.options import AsJson, FlowOfResults, Force, Map, Plot, Quiet, Sets, Threads

if TYPE_CHECKING:
    import xarray as xr

    from btqueue.scenario import Scenario

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
        Argument(
            metavar="RESULTS", help="Their file: CSV, pcap, pcapng, btsnoop, FlowMonitor XML, .sca or .vec."
        ),
    ],
    scenario: Annotated[
        str,
        Option("--scenario", metavar="SCENARIO", help="The simulated scenario: a TOML file or a name."),
    ],
    set_: Sets = None,
    confidence: Annotated[
        float, Option(metavar="P", help="1 - the chance that a correct simulator fails in any metric.")
    ] = 0.99,
    tolerance: Annotated[
        str | None,
        Option(
            metavar="SHARE",
            help="Difference that does not matter, as 3%; default: 1%, or 3% if nothing is random.",
        ),
    ] = None,
    format: Annotated[
        Literal["csv", "pcap", "flowmonitor", "omnet"] | None,
        Option(help="Of RESULTS; default: told from the file."),
    ] = None,
    map_: Map = None,
    flow: FlowOfResults = None,
    no_simulate: Annotated[bool, Option("--no-simulate", help="Compare with the model alone.")] = False,
    strict: Annotated[
        bool, Option("--strict", help="Exit code 3 if anything is inconsistent or differs.")
    ] = False,
    out: Annotated[
        Path | None, Option(metavar="FILE", help="Write the report to FILE (.json, .csv).")
    ] = None,
    plot: Plot = None,
    force: Force = False,
    threads: Threads = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Check another simulator's output: is it consistent, does it agree, and if not, why.

    The verdict is in the output, the exit code is 0 either way unless --strict is given.
    """
    from btqueue.cli.check_report import document, print_report, write_report
    from btqueue.cli.engines import keep_compiled_models
    from btqueue.cli.files import AnswerFirst, Target
    from btqueue.plots import FORMATS
    from btqueue.scenario import load
    from btqueue.study.check import check as study
    from btqueue.study.check import read_results
    from btqueue.study.check.results import checked_map

    if not 0.5 <= confidence < 1:
        raise BadInput(f"--confidence {confidence:g}: must be at least 0.5 and below 1")
    share = None if tolerance is None else _share(tolerance)
    wanted = load(scenario, set_ or ())
    target = None if out is None else Target.checked(out, "--out", REPORTS, force=force)
    picture = None if plot is None else Target.checked(plot, "--plot", FORMATS, force=force)
    simulator = None if no_simulate else simulator_of(threads, quiet)
    found = read_results(results, wanted, format=format, renamed=checked_map(map_ or []), flow=flow)
    keep_compiled_models()
    report = study(found, wanted, confidence=confidence, tolerance=share, simulate=simulator)
    with AnswerFirst() as files:
        if target is not None:
            files.write(write_report, report, target)
        if picture is not None:
            from btqueue.plots.check import check_figure

            files.write(picture.draw, check_figure, report)
        if as_json:
            put_json(document(report))
        else:
            print_report(report, scenario)
    if strict and not report.agrees:
        raise typer.Exit(NO_ANSWER)


def _share(text: str) -> float:
    """Return a share from a number or a percentage.

    Raises:
        BadInput: it is none, or not from 0 to below 1.
    """
    number = text.strip().removesuffix("%")
    try:
        found = float(number) / (100 if number != text.strip() else 1)
    except ValueError:
        found = math.nan
    if not 0 <= found < 1:
        raise BadInput(f"--tolerance {text}: must be at least 0 and below 1, or a percentage as 3%")
    return found


def simulator_of(
    threads: int | None, quiet: bool, *, causes: bool = True
) -> Callable[[Scenario], xr.Dataset]:
    """Return our simulator with its progress bar; where *causes* are sought it says when that begins."""
    from btqueue.cli.engines import run_simulator

    first: Scenario | None = None
    told = quiet or not causes

    def simulate(scenario: Scenario) -> xr.Dataset:
        nonlocal first, told
        first = first or scenario
        if not told and scenario.model_copy(update={"run": first.run}) != first:
            told = True
            say("something differs: simulating neighbours of the scenario to find out why")
        answer = run_simulator(scenario, threads=threads, quiet=quiet)
        if answer.interrupted:  # half a comparison is none
            raise KeyboardInterrupt
        return answer.results.to_dataset()

    return simulate
