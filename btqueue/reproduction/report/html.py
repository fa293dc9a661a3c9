"""The report as one HTML page that needs no other file: style and pictures are in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from importlib.resources import files
from string import Template

from btqueue.reproduction.claims.record import NO_MODEL
from btqueue.reproduction.report import words
from btqueue.reproduction.report.outcomes import Outcome
from btqueue.reproduction.report.pictures import PaperFigure, embedded
from btqueue.reproduction.report.words import Line, Report

MARKS = {True: ("yes", "✓", "holds"), False: ("no", "✗", "does not hold")}


def page(report: Report) -> str:
    """Return the whole page.

    Raises:
        UnusableFile: a picture cannot be read.
    """
    template = files("btqueue.reproduction.report").joinpath("page.html").read_text("utf-8")
    papers = report.papers()
    contents = [("counts", "Counts"), ("method", "How to read it"), ("models", "Models against simulation")]
    contents += [(paper, words.citation(paper)) for paper in papers] + [("made-with", "Made with")]
    return Template(template).substitute(
        title=escape(words.TITLE),
        date=escape(str(report.made_with["date"])),
        warnings="".join(f'<p class="warning">{escape(text)}</p>' for text in words.warnings(report)),
        headline=escape(words.headline(report)),
        contents="".join(f'<li><a href="#{key}">{escape(text)}</a></li>' for key, text in contents),
        counts=_table(words.COUNT_HEADINGS, _escaped(words.count_rows(report)), "numbers"),
        method="".join(f"<p>{escape(text)}</p>" for text in words.METHOD),
        models=_models(report),
        papers="".join(_paper(report, paper, outcomes) for paper, outcomes in papers.items()),
        made_with="".join(
            f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>"
            for name, value in report.made_with.items()
        ),
    )


def _models(report: Report) -> str:
    rows = _escaped(words.error_rows(report.outcomes))
    text = _table(words.ERROR_HEADINGS, rows, "numbers") if rows else "<p>No number was given by both.</p>"
    if other := words.other_by_model(report.outcomes):
        listed = "".join(
            f"<li>{_link(one, one.name)}: {escape(one.verdict)}; "
            f"the model: {escape(words.model_verdict(one))}</li>"
            for one in other
        )
        text += f"<p>Claims on which the model has another verdict:</p><ul>{listed}</ul>"
    return text


def _paper(report: Report, paper: str, outcomes: Sequence[Outcome]) -> str:
    parts = [
        f'<section id="{paper}"><h2>{escape(words.citation(paper))}</h2>',
        f'<p class="quiet">{escape(words.about(paper))}</p>',
        *(f"<p>{escape(text)}</p>" for text in words.simulated_how(paper)),
        _table(words.CLAIM_HEADINGS, map(_claim_row, outcomes), "claims", map(_anchor, outcomes)),
        _reasons("Why not", words.reasons(outcomes)),
        _reasons("Remarks", words.remarks(outcomes)),
    ]
    if rows := words.misprints(paper):
        parts.append(f"<h3>Misprints</h3>{_table(words.MISPRINT_HEADINGS, _escaped(rows), 'misprints')}")
    if figures := report.figures.get(paper):
        known = {one.claim["id"]: one for one in outcomes}
        parts.append("<h3>Figures</h3>" + "".join(_figure(figure, known) for figure in figures))
    return "".join(parts) + "</section>"


def _reasons(heading: str, found: Sequence[tuple[Outcome, str]]) -> str:
    if not found:
        return ""
    listed = "".join(
        f"<li>{_link(one, one.claim['id'])} {_verdict(one.verdict)} {escape(why)}</li>" for one, why in found
    )
    return f"<h3>{heading}</h3><ul>{listed}</ul>"


def _figure(figure: PaperFigure, known: dict[str, Outcome]) -> str:
    pictures = "".join(f'<img src="{embedded(file)}" alt="{escape(figure.title)}">' for file in figure.files)
    caption = "".join(f"<p>{escape(text)}</p>" for text in figure.caption.splitlines() if text)
    links = ", ".join(_link(known[name], name) for name in figure.claims if name in known)
    claims = f"<p>Claims: {links}</p>" if links else ""
    return (
        f"<figure>{pictures}<figcaption><strong>{escape(figure.title)}</strong>"
        f"{caption}{claims}</figcaption></figure>"
    )


def _claim_row(outcome: Outcome) -> list[str]:
    statement, where = words.claim_text(outcome)
    verdict = _verdict(outcome.verdict)
    if not outcome.as_on_record:
        verdict += f'<span class="where">on record: {escape(outcome.claim["verdict"])}</span>'
    solved = words.model_verdict(outcome)
    return [
        f'{escape(statement)}<span class="where">{escape(where)}</span>',
        escape(outcome.claim["published"]),
        _cell(words.simulated_lines(outcome)),
        verdict,
        _cell(words.solved_lines(outcome)),
        _verdict(solved, outcome.solved.judged.verdict if outcome.modelled else NO_MODEL),
    ]


def _verdict(text: str, kind: str | None = None) -> str:
    if text == "–":
        return text
    return f'<span class="verdict {(kind or text).replace(" ", "-")}">{escape(text)}</span>'


def _cell(lines: Iterable[Line]) -> str:
    return f"<ul>{''.join(f'<li>{escape(line.text)}{_mark(line.holds)}</li>' for line in lines)}</ul>"


def _mark(holds: bool | None) -> str:
    if holds is None:
        return ""
    kind, sign, meaning = MARKS[holds]
    return f' <span class="mark {kind}" title="{meaning}">{sign}</span>'


def _link(outcome: Outcome, text: str) -> str:
    return f'<a href="#{_anchor(outcome)}">{escape(text)}</a>'


def _anchor(outcome: Outcome) -> str:
    return f"{outcome.paper}-{outcome.claim['id']}"


def _escaped(rows: Iterable[Iterable[str]]) -> list[list[str]]:
    return [[escape(cell) for cell in row] for row in rows]


def _table(
    headings: Iterable[str], rows: Iterable[Iterable[str]], kind: str, anchors: Iterable[str] = ()
) -> str:
    """Return a table of cells in HTML; `anchors` name its rows."""
    names = [f' id="{escape(anchor)}"' for anchor in anchors]
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in headings)
    body = "".join(
        f"<tr{names[number] if names else ''}>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>"
        for number, row in enumerate(rows)
    )
    table = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="scroll"><table class="{kind}">{table}</table></div>'
