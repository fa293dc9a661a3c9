"""The command line: `btqueue solve|simulate|compare|sweep|sensitivity|dimension|check|fit|...`.

Results go to standard output, messages and progress to standard error. Each command imports its modules when
it runs, so that `btqueue --help` answers at once.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from btqueue import __version__
from btqueue.cli import emulate, explore, figures, studies
from btqueue.cli.errors import INTERRUPTED, Commands, put, put_json, put_titles, say
from btqueue.cli.options import Call, add_command

if TYPE_CHECKING:
    from btqueue.scenario import Scenario

# The models' matrices are small: more threads of linear algebra would only wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done, 2 bad input, 3 no answer, 130 interrupted.",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        put(f"btqueue {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Queueing models and simulation of Bluetooth networks that carry TCP."""


def solve(call: Call, every: bool = False, check: bool | None = None) -> None:
    """Solve a scenario with Markov chains and queueing theory.

    The last line says whether a simulation of 0.2 s, which begins when the answer is printed, confirms it.
    """
    _answer(call, call.base, ("solve",), every=every, check=check)


def simulate(
    call: Call,
    every: bool = False,
    trace: Path | None = None,
    pcap: Path | None = None,
    at: str | None = None,
    series: Path | None = None,
    step: float = 0.1,
    until: str | None = None,
    device: Literal["cpu", "gpu"] = "cpu",
) -> None:
    """Simulate a scenario event by event, with confidence intervals.

    Ctrl-C ends it with the measurements until then, marked as interrupted; a second Ctrl-C stops at once.
    """
    from btqueue.scenario.expressions import precision_keys

    wanted = call.base if until is None else call.base.changed(precision_keys(until))
    if all(one is None for one in (trace, pcap, at, series)):
        return _answer(call, wanted, ("simulate",), every=every, device=device)
    from btqueue.cli.recordings import record

    record(call, wanted, trace=trace, pcap=pcap, at=at, series=series, step_s=step, device=device)


def compare(call: Call, every: bool = False) -> None:
    """Solve and simulate a scenario and lay the two answers side by side."""
    _answer(call, call.base, ("solve", "simulate"), every=every)


def models(call: Call, name: str | None = None, schema: bool = False) -> None:
    """List the scenarios that come with btqueue, or print one to start from."""
    import json

    from btqueue.scenario.loading import find, list_models, models_folder, read_toml, toml_text

    if schema:
        from btqueue.scenario import Scenario

        put(json.dumps(Scenario.json_schema(), indent=2))
    elif name is not None:
        path = find(name)
        content = read_toml(path)  # names the fault of a file that is no TOML
        put(json.dumps(content) if call.as_json else toml_text(path), end="\n" if call.as_json else "")
    else:
        folder = models_folder()
        titles = {known: read_toml(folder / f"{known}.toml")["title"] for known in list_models()}
        if call.as_json:
            put_json({"models": titles})
        else:
            put_titles(titles)


for command, takes in (
    (solve, "scenario set_ as_json out force every check quiet"),
    (simulate, "scenario set_ as_json out force every trace pcap at series step until threads device quiet"),
    (compare, "scenario set_ as_json out force every threads quiet"),
    (studies.sweep, "scenario over engine check out plot metric set_ threads cluster force as_json quiet"),
    (
        studies.sensitivity,
        "scenario= method metric key spread samples seed formula at set_ out plot threads force as_json "
        "quiet",
    ),
    (
        studies.dimension,
        "scenario choose maximize minimize pareto subject_to engine confirm top budget set_ out plot threads "
        "force as_json quiet",
    ),
    (
        studies.check,
        "results scenario set_ confidence tolerance map_ flow no_simulate strict out plot force threads "
        "as_json quiet",
    ),
    (studies.fit, "results scenario free set_ map_ flow out plot force threads as_json quiet"),
    (emulate.emulate, "scenario set_ flow program server duration_s pcap force as_json quiet"),
    (explore.explore, "scenario=venugopal-2006/piconet set_ port browser quiet"),
    (figures.figures, "name every paper out replications quick picture_format fresh force quiet"),
    (studies.validate, "paper claims out=reproduction fresh force threads as_json quiet"),
    (models, "name schema as_json"),
):
    add_command(app, command, takes)


def _answer(
    call: Call,
    wanted: Scenario,
    engines: tuple[str, ...],
    *,
    every: bool,
    check: bool | None = False,
    device: Literal["cpu", "gpu"] = "cpu",
) -> None:
    """Ask one engine or both; write, print and, of theory alone, check the answer."""
    from btqueue.cli.documents import print_json
    from btqueue.cli.engines import run_check, run_hints, run_simulator, run_solver
    from btqueue.cli.files import WRITERS

    files, quiet = call.files(), call.quiet
    hinted = run_hints(wanted, simulated="simulate" in engines, quiet=quiet)
    solved = simulated = comparison = None
    if "solve" in engines:
        answer = solved = run_solver(wanted)
    if "simulate" in engines:
        answer = simulated = run_simulator(wanted, threads=call.threads, quiet=quiet, device=device)
    if solved is not None and simulated is not None:
        from btqueue.study import side_by_side

        comparison = side_by_side(wanted, solved.results, simulated.results)
    with files:
        if call.out is not None:  # a dataset takes time to load
            files.write(WRITERS, answer.marked(comparison), wanted)
        if call.as_json:
            checked = solved and run_check(wanted, solved, check, quiet=quiet)
            print_json(wanted, hints=hinted, solved=solved, checked=checked, simulated=simulated, quiet=quiet)
        else:
            from btqueue.cli.tables import answer_table, check_lines

            found = answer.results if comparison is None else comparison
            answer_table(call.heading, wanted, found, solved=solved, simulated=simulated, every=every)
            if solved and not simulated:
                check_lines(solved, run_check(wanted, solved, check, quiet=quiet))
        if answer.interrupted:
            say(f"interrupted: {answer.interrupted}")
            raise typer.Exit(INTERRUPTED)
