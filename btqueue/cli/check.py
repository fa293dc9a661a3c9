"""`btqueue check` and `btqueue fit`: measured results, or output of another simulator, beside our engines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from btqueue.cli.errors import NO_ANSWER, BadInput, say
from btqueue.cli.options import Call, fraction

if TYPE_CHECKING:
    import xarray as xr

    from btqueue.scenario import Scenario


def check(
    call: Call,
    results: Path,
    confidence: float = 0.99,
    tolerance: str | None = None,
    map_: list[str] | None = None,
    flow: int | None = None,
    no_simulate: bool = False,
    strict: bool = False,
) -> None:
    """Check another simulator's output: is it consistent, does it agree, and if not, why.

    The verdict is in the output, the exit code is 0 either way unless --strict is given.
    """
    from btqueue.cli.check_report import deliver
    from btqueue.cli.engines import keep_compiled_models
    from btqueue.cli.files import REPORTS
    from btqueue.study.check import check as study
    from btqueue.study.check import read_results
    from btqueue.study.check.results import checked_map

    if not 0.5 <= confidence < 1:
        raise BadInput(f"--confidence {confidence:g}: must be at least 0.5 and below 1")
    share = None if tolerance is None else fraction(tolerance)
    if share is not None and not 0 <= share < 1:
        raise BadInput(f"--tolerance {tolerance}: must be at least 0 and below 1, or a percentage as 3%")
    wanted, files = call.base, call.files(REPORTS)
    simulator = None if no_simulate else simulator_of(call)
    found = read_results(results, wanted, renamed=checked_map(map_ or []), flow=flow)
    keep_compiled_models()
    report = study(found, wanted, confidence=confidence, tolerance=share, simulate=simulator)
    deliver(report, call.scenario, files, as_json=call.as_json)
    if strict and not report.agrees:
        raise typer.Exit(NO_ANSWER)


def simulator_of(call: Call, *, causes: bool = True) -> Callable[[Scenario], xr.Dataset]:
    """Return our simulator with its progress bar; where *causes* are sought it says when that begins."""
    from btqueue.cli.engines import run_simulator

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


def fit(
    call: Call,
    results: Path,
    free: list[str],
    map_: list[str] | None = None,
    flow: int | None = None,
) -> None:
    """Fit keys of a scenario to measured results, and confirm the values by simulation.

    Values have 95 % intervals. Keys that the results do not tell, or that packets state, are named.
    """
    from btqueue.cli.check_report import deliver
    from btqueue.cli.engines import keep_compiled_models
    from btqueue.cli.files import REPORTS
    from btqueue.study.check import read_results
    from btqueue.study.check.results import checked_map
    from btqueue.study.fit import fit as study

    wanted, files = call.base, call.files(REPORTS)
    ranges = {}
    for text in (part.strip() for one in free for part in one.split(",")):
        key, equals, spread = text.partition("=")
        if key.strip() in ranges:
            raise BadInput(f"--free {key.strip()}: is given twice")
        ranges[key.strip()] = spread.strip() if equals else None
    keep_compiled_models()
    found = read_results(results, wanted, renamed=checked_map(map_ or []), flow=flow)
    report = study(found, wanted, ranges, simulate=simulator_of(call, causes=False))
    deliver(report, call.scenario, files, as_json=call.as_json)
