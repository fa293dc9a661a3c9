"""The report as one HTML page that needs no other file: style and pictures are in it."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.resources import files

from jinja2 import Environment, StrictUndefined

from btqueue.reproduction.claims.record import NO_MODEL
from btqueue.reproduction.report import words
from btqueue.reproduction.report.outcomes import Outcome
from btqueue.reproduction.report.pictures import embedded
from btqueue.reproduction.report.words import Report


def page(report: Report) -> str:
    """Return the whole page.

    Raises:
        UnusableFile: a picture cannot be read.
    """
    template = files("btqueue.reproduction.report").joinpath("page.html").read_text("utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    environment.globals.update(
        words=words, anchor=_anchor, by_id=_by_id, embedded=embedded, NO_MODEL=NO_MODEL
    )
    return environment.from_string(template).render(report=report, papers=report.papers())


def _anchor(outcome: Outcome) -> str:
    """Return the name of a claim's row."""
    return f"{outcome.paper}-{outcome.claim['id']}"


def _by_id(outcomes: Iterable[Outcome]) -> dict[str, Outcome]:
    return {one.claim["id"]: one for one in outcomes}
