"""The command line: `btqueue solve|simulate|compare|sweep|sensitivity|dimension|check|fit|...`.

Results go to standard output, messages and progress to standard error. Each command imports its modules when
it runs, so that `btqueue --help` answers at once.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from btqueue import __version__
from btqueue.cli import check, dimension, emulate, explore, figures, sensitivity, sweep, validate
from btqueue.cli.errors import INTERRUPTED, BadInput, Commands, put, put_json, put_titles, say
from btqueue.cli.options import add_command

if TYPE_CHECKING:
    from btqueue.cli.engines import Answer
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


def solve(
    scenario: str,
    set_: list[str] | None = None,
    as_json: bool = False,
    out: Path | None = None,
    force: bool = False,
    every: bool = False,
    check: bool | None = None,
    quiet: bool = False,
) -> None:
    """Solve a scenario with Markov chains and queueing theory.

    The last line says whether a simulation of 0.2 s, which begins when the answer is printed, confirms it.
    """
    from btqueue.cli.engines import run_check, run_hints, run_solver
    from btqueue.cli.files import WRITERS, AnswerFirst

    wanted, files = _wanted(scenario, set_), AnswerFirst(out, force=force)
    hinted = run_hints(wanted, simulated=False, quiet=quiet)
    solved = run_solver(wanted)
    with files:
        if out is not None:  # a dataset takes time to load
            files.write(WRITERS, solved.marked(), wanted)
        if as_json:
            checked = run_check(wanted, solved, check, quiet=quiet)
            _print_json(wanted, hints=hinted, solved=solved, checked=checked, quiet=quiet)
        else:
            from btqueue.cli.tables import check_lines, heading, solved_table

            solved_table(heading(scenario, wanted), solved, every=every)
            check_lines(solved, run_check(wanted, solved, check, quiet=quiet))


def simulate(
    scenario: str,
    set_: list[str] | None = None,
    as_json: bool = False,
    out: Path | None = None,
    force: bool = False,
    every: bool = False,
    trace: Path | None = None,
    pcap: Path | None = None,
    at: str | None = None,
    series: Path | None = None,
    step: float = 0.1,
    until: str | None = None,
    threads: int | None = None,
    device: Literal["cpu", "gpu"] = "cpu",
    quiet: bool = False,
) -> None:
    """Simulate a scenario event by event, with confidence intervals.

    Ctrl-C ends it with the measurements so far, marked as interrupted; a second Ctrl-C stops at once.
    """
    from btqueue.cli.engines import run_hints, run_simulator
    from btqueue.cli.files import WRITERS, AnswerFirst
    from btqueue.cli.recordings import Recordings
    from btqueue.scenario.expressions import precision_keys

    wanted = _wanted(scenario, set_)
    if until is not None:
        wanted = wanted.changed(precision_keys(until))
    recordings = Recordings(wanted, trace=trace, pcap=pcap, at=at, series=series, step_s=step, force=force)
    if recordings.asked:
        if out is not None:
            raise BadInput("--out: goes with replications; --trace, --pcap and --series play a single one")
        if device == "gpu":
            raise BadInput("--device gpu: --trace, --pcap and --series are written on the CPU")
        hinted = run_hints(wanted, quiet=quiet)
        with AnswerFirst() as files:
            recordings.make(files, quiet=quiet)
            if as_json:
                _print_json(wanted, hints=hinted, files=recordings.written, quiet=quiet)
            elif recordings.written:
                from btqueue.cli.tables import heading, recordings_table

                recordings_table(heading(scenario, wanted), recordings.written)
        return
    files = AnswerFirst(out, force=force)
    hinted = run_hints(wanted, quiet=quiet)
    simulated = run_simulator(wanted, threads=threads, quiet=quiet, device=device)
    with files:
        if out is not None:
            files.write(WRITERS, simulated.marked(), wanted)
        if as_json:
            _print_json(wanted, hints=hinted, simulated=simulated, quiet=quiet)
        else:
            from btqueue.cli.tables import heading, simulated_table

            simulated_table(heading(scenario, wanted), wanted, simulated, every=every)
        _end(simulated)


def compare(
    scenario: str,
    set_: list[str] | None = None,
    as_json: bool = False,
    out: Path | None = None,
    force: bool = False,
    every: bool = False,
    threads: int | None = None,
    quiet: bool = False,
) -> None:
    """Solve and simulate a scenario and lay the two answers side by side."""
    from btqueue.cli.engines import run_hints, run_simulator, run_solver
    from btqueue.cli.files import WRITERS, AnswerFirst
    from btqueue.study import side_by_side

    wanted, files = _wanted(scenario, set_), AnswerFirst(out, force=force)
    hinted = run_hints(wanted, quiet=quiet)
    solved = run_solver(wanted)
    simulated = run_simulator(wanted, threads=threads, quiet=quiet)
    with files:
        if out is not None:
            comparison = side_by_side(wanted, solved.results, simulated.results)
            files.write(WRITERS, simulated.marked(comparison), wanted)
        if as_json:
            _print_json(wanted, hints=hinted, solved=solved, simulated=simulated, quiet=quiet)
        else:
            from btqueue.cli.tables import comparison_table, heading

            comparison_table(heading(scenario, wanted), wanted, solved, simulated, every=every)
        _end(simulated)


def models(
    name: str | None = None,
    schema: bool = False,
    as_json: bool = False,
) -> None:
    """List the scenarios that come with btqueue, or print one to start from."""
    import json

    from btqueue.scenario.loading import find, list_models, models_folder, read_toml, toml_text

    if schema:
        from btqueue.scenario import Scenario

        put(json.dumps(Scenario.json_schema(), indent=2))
    elif name is not None:
        path = find(name)
        content = read_toml(path)  # names the fault of a file that is no TOML
        put(json.dumps(content) if as_json else toml_text(path), end="\n" if as_json else "")
    else:
        folder = models_folder()
        titles = {known: read_toml(folder / f"{known}.toml")["title"] for known in list_models()}
        if as_json:
            put_json({"models": titles})
        else:
            put_titles(titles)


for command in (
    solve, simulate, compare, sweep.sweep, sensitivity.sensitivity, dimension.dimension, check.check,
    check.fit, emulate.emulate, explore.explore, figures.figures, validate.validate, models,
):  # fmt: skip
    add_command(app, command)


def _wanted(name: str, sets: list[str] | None) -> Scenario:
    from btqueue.scenario import load

    return load(name, sets or ())


def _print_json(scenario: Scenario, *, quiet: bool, **parts: Any) -> None:
    from btqueue.cli.documents import document

    content = document(scenario, **parts)
    put_json(content)
    for part, who in (("solve", "the model"), ("simulate", "the simulation")):
        for warning in content.get(part, {}).get("warnings", ()):
            if not quiet:
                say(f"{who} warns: {warning}")


def _end(simulated: Answer) -> None:
    """Leave with the exit code of an interrupted command if the simulation was."""
    if simulated.interrupted:
        say(f"interrupted: {simulated.interrupted}")
        raise typer.Exit(INTERRUPTED)
