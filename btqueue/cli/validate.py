"""`btqueue validate`: the claims of the publications against both engines, and the reproduction report."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from btqueue.cli.errors import INTERRUPTED, NO_ANSWER, BadInput, duration, put, put_json, say
from btqueue.cli.options import AsJson, Force, Quiet, Threads

if TYPE_CHECKING:
    from btqueue.reproduction.claims.record import Claim
    from btqueue.reproduction.report.judging import Progress
    from btqueue.reproduction.report.outcomes import Outcome
    from btqueue.reproduction.report.pictures import PaperFigure

Wanted = list[tuple[str, "Claim"]]


EXAMPLES = ("btqueue validate --paper venugopal-2006 --quick --out report",)
"""That the help shows."""


def validate(
    paper: Annotated[
        list[str] | None,
        Option(metavar="PAPER", help="Only this publication, as venugopal-2006. Repeatable."),
    ] = None,
    claims: Annotated[
        list[str] | None, Option(metavar="ID[,ID...]", help="Only these claims. Repeatable.")
    ] = None,
    out: Annotated[
        Path, Option(metavar="FOLDER", help="Where report.html, .md and .json are written.")
    ] = Path("reproduction"),
    figures: Annotated[
        bool, Option("--figures/--no-figures", help="Draw the publications' figures into FOLDER/figures.")
    ] = True,
    figures_from: Annotated[
        Path | None, Option(metavar="FOLDER", help="Take figures that are drawn already.")
    ] = None,
    quick: Annotated[
        bool, Option("--quick", help="Shorter runs and fewer replications; the report says so.")
    ] = False,
    fresh: Annotated[bool, Option("--fresh", help="Judge claims anew that are known already.")] = False,
    force: Force = False,
    threads: Threads = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Judge every claim of the publications by simulation and by model; write the reproduction report.

    Finished claims are kept: after Ctrl-C the same command goes on. A claim that is not reproduced is a
    finding, not a failure: the exit code is 0. It is 3 if a figure cannot be drawn.
    """
    from btqueue.cli.files import AnswerFirst
    from btqueue.cli.validate_report import WRITERS, print_summary, report_of, report_targets
    from btqueue.reproduction.report.document import summary
    from btqueue.reproduction.report.pictures import found_figures

    wanted = chosen(paper or (), claims or ())
    if figures_from is not None and not os.path.isdir(figures_from):
        raise BadInput(f"--figures-from {figures_from}: there is no such folder")
    folder = _folder(out)
    targets = report_targets(folder, force=force)
    papers = list(dict.fromkeys(name for name, _ in wanted))
    given = None if figures_from is None else found_figures(figures_from, papers)
    began = time.perf_counter()
    outcomes = _judge(wanted, quick=quick, fresh=fresh, threads=threads, quiet=quiet)
    drawn, failed = given or {}, 0
    if figures and given is None:
        drawn, failed = _figures(papers, folder, quick=quick, force=force, quiet=quiet)
    report = report_of(outcomes, drawn, quick=quick, wall_s=time.perf_counter() - began)
    with AnswerFirst() as files:
        written = [str(folder / t.path.name) for t in targets if files.write(t, WRITERS, report)]
        if as_json:
            put_json({"files": written, **summary(report)})
        else:
            print_summary(report)
            for file in written:
                put(file)
        if failed:
            raise typer.Exit(NO_ANSWER)


def chosen(papers: Sequence[str], ids: Sequence[str]) -> Wanted:
    """Return the claims that were asked for, with their publications.

    Raises:
        BadInput: a publication or claim is unknown; the message suggests the nearest name.
    """
    from btqueue.reproduction.claims.record import PAPERS, claims_of

    for name in papers:
        if name not in PAPERS:
            raise BadInput(f"--paper {name}: no such publication; {_hint(name, PAPERS)}")
    known = {name: claims_of(name) for name in PAPERS if not papers or name in papers}
    wanted = [name for text in ids for name in text.split(",") if name]
    everywhere = [name for claims in known.values() for name in claims]
    for name in wanted:
        if name not in everywhere:
            raise BadInput(f"--claims {name}: no such claim; {_hint(name, everywhere)}")
    return [
        (paper, claim)
        for paper, claims in known.items()
        for name, claim in claims.items()
        if not wanted or name in wanted
    ]


def _hint(name: str, known: Sequence[str]) -> str:
    from btqueue.scenario.problems import closest

    guess = closest(name, known)
    few = ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
    return f"did you mean '{guess}'?" if guess else f"there are {few}"


def _folder(out: Path) -> Path:
    """Return the folder to write to, made if it is not there."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"--out {out}: cannot be made ({error.strerror or error})") from None
    return out


def _judge(wanted: Wanted, *, quick: bool, fresh: bool, threads: int | None, quiet: bool) -> list[Outcome]:
    """Judge with progress; after Ctrl-C name the results that are kept."""
    from btqueue.cli.engines import keep_compiled_models, prepare_simulator, second_interrupt_ends_all
    from btqueue.reproduction.claims.engines import Model, Simulator
    from btqueue.reproduction.report.judging import judge_all
    from btqueue.reproduction.report.store import Store
    from btqueue.scenario import load

    keep_compiled_models()
    prepare_simulator(load("venugopal-2006/piconet"), quiet=quiet)
    simulator = Simulator(threads=threads, quick=quick)
    store = Store(quick=quick, fresh=fresh)
    done = 0

    def told(progress: Progress) -> None:
        nonlocal done
        done = progress.number
        if not quiet:
            say(progress_line(progress))

    try:
        with second_interrupt_ends_all():
            return judge_all(wanted, simulator, Model(), store, told)
    except KeyboardInterrupt:
        say(f"interrupted: {done} of {len(wanted)} claims are kept; the same command goes on from there")
        raise typer.Exit(INTERRUPTED) from None


def progress_line(progress: Progress) -> str:
    """Return a line about a claim that was just judged."""
    from btqueue.reproduction.report.sentences import model_verdict

    outcome = progress.outcome
    model = f", the model: {model_verdict(outcome)}" if outcome.modelled else ""
    took = "known" if progress.kept else f"{outcome.simulated.wall_s + outcome.solved.wall_s:.1f} s"
    left_s = None if progress.number == progress.total else progress.left_s
    left = "" if left_s is None else f", {duration(left_s)} left"
    return f"{progress.number}/{progress.total} {outcome.name}: {outcome.verdict}{model} ({took}{left})"


def _figures(
    papers: Sequence[str], folder: Path, *, quick: bool, force: bool, quiet: bool
) -> tuple[dict[str, list[PaperFigure]], int]:
    """Return the figures, drawn into the report's folder, and how many could not be drawn."""
    from btqueue.cli.figures import draw_each
    from btqueue.reproduction.figures.catalogue import catalogue
    from btqueue.reproduction.figures.points import Store
    from btqueue.reproduction.figures.work import Settings
    from btqueue.reproduction.report.pictures import found_figures

    place, entries = folder / "figures", [entry for entry in catalogue() if entry.paper in papers]
    settings, store = Settings(quick=quick), Store()
    failed = draw_each(entries, place, settings, store, tell=say, force=force, quiet=quiet)
    return found_figures(place, papers), failed
