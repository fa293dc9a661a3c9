"""`btqueue check` and `btqueue fit`: measured results, or output of another simulator, beside our engines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from btqueue.cli.errors import NO_ANSWER, BadInput, say
from btqueue.cli.options import fraction

if TYPE_CHECKING:
    import xarray as xr

    from btqueue.scenario import Scenario


def check(
    results: Path,
    scenario: str,
    set_: list[str] | None = None,
    confidence: float = 0.99,
    tolerance: str | None = None,
    map_: list[str] | None = None,
    flow: int | None = None,
    no_simulate: bool = False,
    strict: bool = False,
    out: Path | None = None,
    plot: Path | None = None,
    force: bool = False,
    threads: int | None = None,
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """Check another simulator's output: is it consistent, does it agree, and if not, why.

    The verdict is in the output, the exit code is 0 either way unless --strict is given.
    """
    from btqueue.cli.check_report import deliver
    from btqueue.cli.engines import keep_compiled_models
    from btqueue.cli.files import REPORTS, AnswerFirst
    from btqueue.scenario import load
    from btqueue.study.check import check as study
    from btqueue.study.check import read_results
    from btqueue.study.check.results import checked_map

    if not 0.5 <= confidence < 1:
        raise BadInput(f"--confidence {confidence:g}: must be at least 0.5 and below 1")
    share = None if tolerance is None else fraction(tolerance)
    if share is not None and not 0 <= share < 1:
        raise BadInput(f"--tolerance {tolerance}: must be at least 0 and below 1, or a percentage as 3%")
    wanted, files = load(scenario, set_ or ()), AnswerFirst(out, plot, REPORTS, force=force)
    simulator = None if no_simulate else simulator_of(threads, quiet)
    found = read_results(results, wanted, renamed=checked_map(map_ or []), flow=flow)
    keep_compiled_models()
    report = study(found, wanted, confidence=confidence, tolerance=share, simulate=simulator)
    deliver(report, scenario, files, as_json=as_json)
    if strict and not report.agrees:
        raise typer.Exit(NO_ANSWER)


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


def fit(
    results: Path,
    scenario: str,
    free: list[str],
    set_: list[str] | None = None,
    map_: list[str] | None = None,
    flow: int | None = None,
    out: Path | None = None,
    plot: Path | None = None,
    force: bool = False,
    threads: int | None = None,
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """Fit keys of a scenario to measured results, and confirm the values by simulation.

    Values have 95 % intervals. Keys that the results do not tell, or that packets state, are named.
    """
    from btqueue.cli.check_report import deliver
    from btqueue.cli.engines import keep_compiled_models
    from btqueue.cli.files import REPORTS, AnswerFirst
    from btqueue.scenario import load
    from btqueue.study.check import read_results
    from btqueue.study.check.results import checked_map
    from btqueue.study.fit import fit as study

    wanted, files = load(scenario, set_ or ()), AnswerFirst(out, plot, REPORTS, force=force)
    ranges = {}
    for text in (part.strip() for one in free for part in one.split(",")):
        key, equals, spread = text.partition("=")
        if key.strip() in ranges:
            raise BadInput(f"--free {key.strip()}: is given twice")
        ranges[key.strip()] = spread.strip() if equals else None
    keep_compiled_models()
    found = read_results(results, wanted, renamed=checked_map(map_ or []), flow=flow)
    report = study(found, wanted, ranges, simulate=simulator_of(threads, quiet, causes=False))
    deliver(report, scenario, files, as_json=as_json)
