"""Write the reproduction report, and print its counts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from btqueue.cli.errors import put
from btqueue.cli.files import Target
from btqueue.cli.tables import Screen
from btqueue.reproduction.claims.record import PAPERS, claims_of
from btqueue.reproduction.report import sentences
from btqueue.reproduction.report.document import document
from btqueue.reproduction.report.html import page
from btqueue.reproduction.report.markdown import markdown
from btqueue.reproduction.report.outcomes import Outcome
from btqueue.reproduction.report.pictures import PaperFigure
from btqueue.reproduction.report.sentences import Report
from btqueue.scenario import load
from btqueue.study import provenance

WRITERS = {
    ".html": lambda path, report: path.write_text(page(report), "utf-8"),
    ".md": lambda path, report: path.write_text(markdown(report), "utf-8"),
    ".json": lambda path, report: path.write_text(
        json.dumps(document(report), indent=1, allow_nan=False) + "\n", "utf-8"
    ),
}
"""Files of the report by suffix, and the functions that write them."""
SHORT_HEADINGS = {
    False: ("claims", "yes", "in part", "no", "not sim.", "testbed", "share", "or in part"),
    True: ("answered", "yes", "in part", "no", "share", "or in part", "as simulated"),
}
"""Of the counts by simulation and by theory, for a terminal."""


def report_of(
    outcomes: Sequence[Outcome], figures: dict[str, list[PaperFigure]], *, quick: bool, wall_s: float
) -> Report:
    """Return the report of these outcomes.

    Args:
        outcomes: outcomes of the claims.
        figures: by publication.
        quick: whether runs were shortened.
        wall_s: seconds that this command took, without the time of results known before.
    """
    made_with: dict[str, str | int] = dict(provenance(load("venugopal-2006/piconet")))
    date = made_with.pop("date")
    made_with.pop("seed")
    seeds = sorted({seed for one in outcomes for seed in one.simulated.seeds})
    made_with["seeds of the scenarios"] = ", ".join(map(str, seeds)) or "none"
    made_with["time of the simulations"] = minutes(sum(one.simulated.wall_s for one in outcomes))
    made_with["time of the models"] = minutes(sum(one.solved.wall_s for one in outcomes))
    made_with["time of this command"] = minutes(wall_s)
    made_with["date"] = date
    complete = len(outcomes) == sum(len(claims_of(paper)) for paper in PAPERS)
    return Report(outcomes, figures, made_with, quick, complete)


def minutes(seconds: float) -> str:
    """Return a time in words."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


def report_targets(folder: Path, *, force: bool) -> list[Target]:
    """Return where the files of the report go.

    Raises:
        BadInput: one is there already and not *force*, or the folder is missing or read-only.
    """
    formats = dict.fromkeys(WRITERS, "report")
    targets = [
        Target.checked(folder / f"report{suffix}", "--out", formats, force=force) for suffix in WRITERS
    ]
    return [target for target in targets if target is not None]


def print_summary(report: Report) -> None:
    """Print counts by simulation and by theory, one line a publication."""
    screen = Screen()
    names = {sentences.citation(paper): paper for paper in report.papers()}
    for solved, headings in SHORT_HEADINGS.items():
        table = Table(
            title=None if solved else sentences.TITLE, title_justify="left", box=None, padding=(0, 2, 0, 0)
        )
        table.add_column("solved" if solved else "simulated", no_wrap=True)
        for heading in headings:
            table.add_column(heading, justify="right", no_wrap=True)
        for name, *cells in sentences.count_rows(report, solved):
            table.add_row(names.get(name, name), *cells, style="bold" if name == "all" else None)
        screen.print(table)
    put(sentences.headline(report))
    for warning in sentences.warnings(report):
        put(warning)
