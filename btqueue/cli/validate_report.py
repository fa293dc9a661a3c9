"""Judge the claims, write the reproduction report, and print its counts."""

import json
from collections.abc import Sequence
from pathlib import Path

import typer

from btqueue.cli.engines import keep_compiled_models, prepare_simulator
from btqueue.cli.errors import INTERRUPTED, BadInput, duration, put, say
from btqueue.cli.files import Target
from btqueue.reproduction.answer_cache import Store
from btqueue.reproduction.claims.engines import Model, Simulator
from btqueue.reproduction.claims.record import PAPERS, Claim, claims_of
from btqueue.reproduction.report import sentences
from btqueue.reproduction.report.document import document
from btqueue.reproduction.report.html import page
from btqueue.reproduction.report.judging import Progress, judge_all
from btqueue.reproduction.report.markdown import markdown
from btqueue.reproduction.report.outcomes import Outcome
from btqueue.reproduction.report.sentences import Report
from btqueue.scenario import load
from btqueue.scenario.problems import closest
from btqueue.study import provenance
from btqueue.text_table import TextTable

Wanted = list[tuple[str, Claim]]

WRITERS = {
    ".html": lambda path, report: path.write_text(page(report), "utf-8"),
    ".md": lambda path, report: path.write_text(markdown(report), "utf-8"),
    ".json": lambda path, report: path.write_text(
        json.dumps(document(report), indent=1, allow_nan=False) + "\n", "utf-8"
    ),
}
"""Files of the report by suffix, and the functions that write them."""


def chosen(papers: Sequence[str], ids: Sequence[str]) -> Wanted:
    """Return the claims that were asked for, with their publications.

    Raises:
        BadInput: a publication or claim is unknown; the message suggests the nearest name.
    """
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
    guess = closest(name, known)
    few = ", ".join(known[:8]) + (", ..." if len(known) > 8 else "")
    return f"did you mean '{guess}'?" if guess else f"there are {few}"


def made_folder(out: Path) -> Path:
    """Return the folder to write to, made if it is not there."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"--out {out}: cannot be made ({error.strerror or error})") from None
    return out


def judge(wanted: Wanted, *, fresh: bool, threads: int | None, quiet: bool) -> list[Outcome]:
    """Judge with progress; after Ctrl-C name the results that are kept."""
    keep_compiled_models()
    prepare_simulator(load("venugopal-2006/piconet"), quiet=quiet)
    simulator = Simulator(threads=threads)
    store = Store(fresh=fresh)
    done = 0

    def told(progress: Progress) -> None:
        nonlocal done
        done = progress.number
        if not quiet:
            say(progress_line(progress))

    try:
        return judge_all(wanted, simulator, Model(), store, told)
    except KeyboardInterrupt:
        say(f"interrupted: {done} of {len(wanted)} claims are kept; the same command goes on from there")
        raise typer.Exit(INTERRUPTED) from None


def progress_line(progress: Progress) -> str:
    """Return a line about a claim that was just judged."""
    outcome = progress.outcome
    model = f", the model: {sentences.model_verdict(outcome)}" if outcome.modelled else ""
    took = "known" if progress.kept else f"{outcome.simulated.wall_s + outcome.solved.wall_s:.1f} s"
    return f"{progress.number}/{progress.total} {outcome.name}: {outcome.verdict}{model} ({took})"


def report_of(outcomes: Sequence[Outcome], *, wall_s: float) -> Report:
    """Return the report of these outcomes.

    Args:
        outcomes: outcomes of the claims.
        wall_s: seconds that this command took, without the time of results known before.
    """
    made_with: dict[str, str | int] = dict(provenance(load("venugopal-2006/piconet")))
    date = made_with.pop("date")
    made_with.pop("seed")
    seeds = sorted({seed for one in outcomes for seed in one.simulated.seeds})
    made_with["seeds of the scenarios"] = ", ".join(map(str, seeds)) or "none"
    made_with["time of the simulations"] = duration(sum(one.simulated.wall_s for one in outcomes))
    made_with["time of the models"] = duration(sum(one.solved.wall_s for one in outcomes))
    made_with["time of this command"] = duration(wall_s)
    made_with["date"] = date
    complete = len(outcomes) == sum(len(claims_of(paper)) for paper in PAPERS)
    return Report(outcomes, made_with, complete)


def report_targets(folder: Path, *, force: bool) -> list[Target]:
    """Return where the files of the report go.

    Raises:
        BadInput: one is there already and not *force*, or the folder is missing or read-only.
    """
    formats = dict.fromkeys(WRITERS, "report")
    paths = (folder / f"report{suffix}" for suffix in WRITERS)
    return [one for path in paths if (one := Target.checked(path, "--out", formats, force=force))]


def print_summary(report: Report) -> None:
    """Print counts by simulation and by theory, one line a publication."""
    for solved, headings in ((False, sentences.COUNT_HEADINGS), (True, sentences.SOLVED_HEADINGS)):
        rows = tuple(map(tuple, sentences.count_rows(report, solved)))
        put(TextTable("By theory" if solved else sentences.TITLE, headings, rows))
        put("")
    put(sentences.headline(report))
    for warning in sentences.warnings(report):
        put(warning)
