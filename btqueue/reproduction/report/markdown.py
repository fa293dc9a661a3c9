"""The report in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from btqueue.reproduction.report import words
from btqueue.reproduction.report.outcomes import Outcome
from btqueue.reproduction.report.pictures import PaperFigure
from btqueue.reproduction.report.words import Line, Report

ShowFigures = Callable[[Sequence[PaperFigure]], Iterable[str]]
MARKS = {True: " ✓", False: " ✗", None: ""}


def file_names(figures: Iterable[PaperFigure]) -> list[str]:
    """Return a line for each figure with the names of its pictures."""
    return [f"* {figure.title} ({', '.join(file.name for file in figure.files)})" for figure in figures]


def markdown(report: Report, shown: ShowFigures = file_names) -> str:
    """Return the whole report; `shown` makes the lines of figures."""
    lines = [
        f"# {words.TITLE}",
        "",
        "Written by `btqueue validate`.",
        "",
        *(line for warning in words.warnings(report) for line in (f"**{warning}**", "")),
        words.headline(report),
        "",
        *table(words.COUNT_HEADINGS, words.count_rows(report)),
        "",
        "## How to read it",
        "",
        *(line for paragraph in words.METHOD for line in (paragraph, "")),
        *_model(report),
        *(
            line
            for paper, outcomes in report.papers().items()
            for line in _paper(report, paper, outcomes, shown)
        ),
        "## Made with",
        "",
        *(f"* {name}: {value}" for name, value in report.made_with.items()),
    ]
    return "\n".join(lines) + "\n"


def _model(report: Report) -> list[str]:
    lines = ["## Models against simulation", ""]
    if rows := words.error_rows(report.outcomes):
        lines += [*table(words.ERROR_HEADINGS, rows), ""]
    else:
        lines += ["No number was given by both.", ""]
    if other := words.other_by_model(report.outcomes):
        lines += ["Claims on which the model has another verdict:", ""]
        lines += [f"* {one.name}: {one.verdict}; the model: {words.model_verdict(one)}" for one in other]
        lines.append("")
    return lines


def _paper(report: Report, paper: str, outcomes: Sequence[Outcome], shown: ShowFigures) -> list[str]:
    return [f"## {words.citation(paper)}", "", *section(report, paper, outcomes, shown)]


def section(
    report: Report, paper: str, outcomes: Sequence[Outcome], shown: ShowFigures = file_names
) -> list[str]:
    """Return the lines about a publication: claims, reasons, misprints, figures."""
    paragraphs = [words.about(paper), *words.simulated_how(paper)]
    lines = [line for paragraph in paragraphs for line in (paragraph, "")]
    lines += [*table(words.CLAIM_HEADINGS, map(claim_row, outcomes)), ""]
    lines += _reasons("### Why not", words.reasons(outcomes))
    lines += _reasons("### Remarks", words.remarks(outcomes))
    if rows := words.misprints(paper):
        lines += ["### Misprints", "", *table(words.MISPRINT_HEADINGS, rows), ""]
    if figures := report.figures.get(paper):
        lines += ["### Figures", "", *shown(figures), ""]
    return lines


def _reasons(heading: str, found: Sequence[tuple[Outcome, str]]) -> list[str]:
    if not found:
        return []
    listed = [f"* **{one.claim['id']}** ({one.verdict}){f': {why}' if why else ''}" for one, why in found]
    return [heading, "", *listed, ""]


def claim_row(outcome: Outcome) -> list[str]:
    """Return a claim as cells of the table."""
    statement, where = words.claim_text(outcome)
    verdict = (
        outcome.verdict
        if outcome.as_on_record
        else f"{outcome.verdict} (on record: {outcome.claim['verdict']})"
    )
    return [
        f"{where}: {statement}",
        outcome.claim["published"],
        _cell(words.simulated_lines(outcome)),
        verdict,
        _cell(words.solved_lines(outcome)),
        words.model_verdict(outcome),
    ]


def _cell(lines: Iterable[Line]) -> str:
    return "<br>".join(f"{line.text}{MARKS[line.holds]}" for line in lines)


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """Return the lines of a table; bars inside cells are escaped."""
    names = list(headings)
    lines = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
    return lines + [f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |" for row in rows]
