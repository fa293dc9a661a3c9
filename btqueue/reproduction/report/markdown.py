"""The report in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from btqueue.reproduction.claims.judgement import WORDS
from btqueue.reproduction.report import sentences
from btqueue.reproduction.report.outcomes import Outcome
from btqueue.reproduction.report.sentences import Line, Report

MARKS = {True: " ✓", False: " ✗", None: ""}


def markdown(report: Report) -> str:
    """Return the whole report."""
    lines = [
        f"# {sentences.TITLE}",
        "",
        "Written by `btqueue validate`.",
        "",
        *(line for warning in sentences.warnings(report) for line in (f"**{warning}**", "")),
        sentences.headline(report),
        "",
        *table(sentences.COUNT_HEADINGS, sentences.count_rows(report)),
        "",
        *table(sentences.SOLVED_HEADINGS, sentences.count_rows(report, solved=True)),
        "",
        "## How to read it",
        "",
        *(line for paragraph in sentences.METHOD for line in (paragraph, "")),
        *table(sentences.WORD_HEADINGS, ((word, rule.reading) for word, rule in WORDS.items())),
        "",
        *_model(report),
        *(
            line
            for paper, outcomes in report.papers().items()
            for line in (f"## {sentences.citation(paper)}", "", *section(paper, outcomes))
        ),
        "## Made with",
        "",
        *(f"* {name}: {value}" for name, value in report.made_with.items()),
    ]
    return "\n".join(lines) + "\n"


def _model(report: Report) -> list[str]:
    lines = []
    if other := sentences.other_by_model(report.outcomes):
        lines += ["## Claims on which theory has another verdict", ""]
        lines += [f"* {one.name}: {one.verdict}; the model: {sentences.model_verdict(one)}" for one in other]
        lines.append("")
    return lines


def section(paper: str, outcomes: Sequence[Outcome]) -> list[str]:
    """Return the lines about a publication: claims, reasons, misprints."""
    paragraphs = [sentences.about(paper), *sentences.simulated_how(paper)]
    lines = [line for paragraph in paragraphs for line in (paragraph, "")]
    lines += [*table(sentences.CLAIM_HEADINGS, map(claim_row, outcomes)), ""]
    lines += _reasons("### Why not", sentences.reasons(outcomes))
    lines += _reasons("### Remarks", sentences.remarks(outcomes))
    if rows := sentences.not_checked(outcomes):
        lines += ["### Not checked", "", *table(sentences.NOT_CHECKED_HEADINGS, rows), ""]
    if rows := sentences.misprints(paper):
        lines += ["### Misprints", "", *table(sentences.MISPRINT_HEADINGS, rows), ""]
    return lines


def _reasons(heading: str, found: Sequence[tuple[Outcome, str]]) -> list[str]:
    if not found:
        return []
    listed = [f"* **{one.claim['id']}** ({one.verdict}){f': {why}' if why else ''}" for one, why in found]
    return [heading, "", *listed, ""]


def claim_row(outcome: Outcome) -> list[str]:
    """Return a claim as cells of the table."""
    statement, where = sentences.claim_text(outcome)
    verdict = (
        outcome.verdict
        if outcome.as_on_record
        else f"{outcome.verdict} (on record: {outcome.claim['verdict']})"
    )
    return [
        verdict,
        f"{where}: {statement} ({outcome.claim['id']})",
        outcome.claim["published"],
        _cell(sentences.simulated_lines(outcome)),
        _cell(sentences.solved_lines(outcome)),
        sentences.model_verdict(outcome),
    ]


def _cell(lines: Iterable[Line]) -> str:
    return "<br>".join(f"{line.text}{MARKS[line.holds]}" for line in lines)


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """Return the lines of a table; bars inside cells are escaped."""
    names = list(headings)
    lines = [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
    return lines + [f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |" for row in rows]
