"""The text of the report, for every format: lines of a cell, sentences, rows of its tables."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from btqueue.reproduction.claims.record import (
    NO_MODEL,
    REPRODUCED,
    VERDICTS,
    Judged,
    is_judged,
    publication_record,
)
from btqueue.reproduction.report.outcomes import Counts, Outcome, counts

TITLE = "What was published, simulated and solved"
CLAIM_HEADINGS = ("verdict", "claim", "published", "simulated", "solved", "verdict of theory")
COUNT_HEADINGS = ("simulated", "claims", *VERDICTS, "of the checkable", "at least in part")
SOLVED_HEADINGS = (
    *("solved", "answered", *VERDICTS[:3], "of the answered", "at least in part"),
    "verdict as simulated",
)
KEPT_BACK = "of these, kept back"
"""The last row of counts."""
MISPRINT_HEADINGS = ("where", "printed", "correct", "because")
NOT_CHECKED_HEADINGS = ("where", "claim", "why not")
REASON_NEEDED = "no reason is on record"


@dataclass(frozen=True)
class Report:
    """The content of the report.

    Attributes:
        outcomes: outcomes of the claims, publication by publication.
        made_with: versions, seeds, run time, date.
        complete: whether all claims on record are in it.
    """

    outcomes: Sequence[Outcome]
    made_with: dict[str, Any]
    complete: bool

    def papers(self) -> dict[str, list[Outcome]]:
        """Return the outcomes by publication."""
        found: dict[str, list[Outcome]] = {}
        for outcome in self.outcomes:
            found.setdefault(outcome.paper, []).append(outcome)
        return found


class Line(NamedTuple):
    """A line of a cell, and whether its check holds (None: no check)."""

    text: str
    holds: bool | None = None


def citation(paper: str) -> str:
    """Return authors and year, as "Chen and others (2004)"."""
    about = publication_record(paper)["publication"]
    names = about.get("authors") or about["author"].split(", ")
    surnames = [name.split()[-1] for name in names]
    shown = (
        surnames[0]
        if len(surnames) == 1
        else " and ".join((surnames[0], surnames[1] if len(surnames) == 2 else "others"))
    )
    return f"{shown} ({about['year']})"


def about(paper: str) -> str:
    """Return authors, title, place and method of a publication, as sentences."""
    record = publication_record(paper)["publication"]
    authors = ", ".join(record["authors"]) if "authors" in record else record["author"]
    where = record.get("venue") or record["kind"]
    method = record["method"][0].upper() + record["method"][1:]
    return f"{authors}: {record['title']}. {where}, {record['year']}. {method}."


def simulated_how(paper: str) -> list[str]:
    """Return paragraphs on how the publication is simulated here."""
    return publication_record(paper)["publication"].get("runs", "").strip().splitlines()


def simulated_lines(outcome: Outcome) -> list[Line]:
    """Return the simulated findings, a line for each check."""
    if not is_judged(outcome.claim):
        return [Line("–")]
    return _lines(outcome.simulated.judged)


def solved_lines(outcome: Outcome) -> list[Line]:
    """Return the models' findings, or why there are none."""
    judged = outcome.solved.judged
    if not judged.parts:
        return [Line("–")]
    if not outcome.modelled:
        return [Line("; ".join(judged.unanswered))]
    return _lines(judged)


def model_verdict(outcome: Outcome) -> str:
    """Return the verdict of the models, with the checks that they leave out."""
    judged = outcome.solved.judged
    if not judged.parts:
        return "–"
    if not outcome.modelled:
        return NO_MODEL
    missing = sum(part.holds is None for part in judged.parts)
    left_out = f" ({missing} of {len(judged.parts)} checks: {NO_MODEL})" if missing else ""
    return judged.verdict + left_out


def _lines(judged: Judged) -> list[Line]:
    """Return a line for each check; after a text for all of them, only the names of failed checks."""
    several = len(judged.parts) > 1
    if judged.seen:
        lines = [Line(judged.seen)]
        return lines + [Line(f"fails: {name}", False) for name in judged.failed if name and several]
    return [
        Line(f"{part.label}: {part.seen}" if part.label else part.seen, part.holds if several else None)
        for part in judged.parts
    ]


def claim_text(outcome: Outcome) -> tuple[str, str]:
    """Return the statement, and its place in the publication."""
    statement = outcome.claim["statement"].rstrip(".")
    return f"{statement}.", outcome.claim["where"] + (" (kept back)" if outcome.kept_back else "")


def reasons(outcomes: Iterable[Outcome]) -> list[tuple[Outcome, str]]:
    """Return why claims are not reproduced as stated."""
    return [
        (one, one.claim.get("reason", REASON_NEEDED))
        for one in outcomes
        if is_judged(one.claim) and one.verdict != REPRODUCED
    ]


def not_checked(outcomes: Iterable[Outcome]) -> list[tuple[str, str, str]]:
    """Return the rows of the table of claims that are not checked: place, statement, reason."""
    return [
        (where, statement, one.claim["reason"])
        for one in outcomes
        if not is_judged(one.claim)
        for statement, where in [claim_text(one)]
    ]


def remarks(outcomes: Iterable[Outcome]) -> list[tuple[Outcome, str]]:
    """Return the remarks on claims that are reproduced."""
    return [
        (one, one.claim["reason"]) for one in outcomes if one.verdict == REPRODUCED and "reason" in one.claim
    ]


def other_by_model(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Return the claims on which model and simulation have different verdicts."""
    return [one for one in outcomes if one.modelled and one.verdict != one.solved.judged.verdict]


def misprints(paper: str) -> list[tuple[str, str, str, str]]:
    """Return the rows of the table of misprints."""
    return [
        (one["where"], one["printed"], one["correct"], one["evidence"])
        for one in publication_record(paper).get("misprint", ())
    ]


def count_rows(report: Report, solved: bool = False) -> list[list[str]]:
    """Return the rows of a table of counts, by simulation or by theory, one for each publication.

    The last rows are for all publications, and for the claims that were kept back.
    """
    groups = {citation(paper): outcomes for paper, outcomes in report.papers().items()}
    if len(groups) > 1:
        groups["all"] = list(report.outcomes)
    if kept_back := [one for one in report.outcomes if one.kept_back]:
        groups[KEPT_BACK] = kept_back
    return [[name, *_cells(counts(outcomes), solved)] for name, outcomes in groups.items()]


def _cells(found: Counts, solved: bool) -> list[str]:
    shares = map(percent, found.shares(solved))
    if solved:
        numbers = [found.solved.total(), *(found.solved[verdict] for verdict in VERDICTS[:3])]
        return [*map(str, numbers), *shares, str(found.agree)]
    return [*map(str, [found.total, *(found.simulated[verdict] for verdict in VERDICTS)]), *shares]


def percent(share: float) -> str:
    """Return a share in percent, a dash for none."""
    return "–" if math.isnan(share) else f"{100 * share:.0f} %"


def headline(report: Report) -> str:
    """Return the report's counts of reproduced claims in a sentence or two."""
    found = counts(report.outcomes)
    share, in_part = map(percent, found.shares())
    text = (
        f"Of {found.total} claims, {found.checkable} can be checked without the testbed; "
        f"{found.simulated[REPRODUCED]} of them ({share}) are reproduced by simulation, "
        f"{in_part} at least in part."
    )
    if solved := found.solved.total():
        share, in_part = map(percent, found.shares(solved=True))
        text += (
            f" Theory answers {solved}; it reproduces {found.solved[REPRODUCED]} of them ({share}), "
            f"{in_part} at least in part, and has the verdict of the simulation on {found.agree}."
        )
    return text


def warnings(report: Report) -> list[str]:
    """Return warnings that a reader must know before using the page."""
    found = []
    if not report.complete:
        found.append("Only some of the claims on record were judged.")
    if changed := [one.name for one in report.outcomes if not one.as_on_record]:
        found.append(f"Not the verdict on record: {', '.join(changed)}.")
    return found


METHOD = (
    "A claim is a statement of a publication that can be true or false of a simulation. Tolerances come from "
    "its wording, by one rule for each word (the table below). The rules were fixed in November 2026, after "
    "the first verdicts on most claims and before the claims that were kept back were judged; six verdicts "
    "became worse by them and none better. A value is reproduced if the 95 % interval of the simulated mean "
    "touches the published value with its tolerance. Trends and orders "
    "are one-sided t-tests of paired replications, each with a false-alarm rate of 0.1 %; a trend must have "
    "a significant slope and no significant step backward of more than 5 % of its range. A claim of several "
    "checks is reproduced if all of them hold, and in part if some do.",
    "The solved column is the same judgement of the models' answers. They have no interval: an order holds "
    "if values differ by more than a millionth, and of a trend no step may go backward by more than 5 % of "
    "the range. On a perfect radio each claim is simulated twice, without jitter and with jitter (a random "
    "processing time of up to 2 ms), because a saturated piconet settles in one of several patterns of "
    "events that repeat (limit cycles). Theory has one answer. "
    "“Fit” is a scenario that was fitted to the reported numbers: it is shown, and does not count. "
    "Neither do other readings, which are shown where the publication is silent and the reading may decide.",
    "Claims that are marked “kept back” were unknown to the authors of the scenarios while these were made. "
    "They were kept back as a blind check until November 2026, and judged afterwards, by the scenarios as "
    "they stood. All of them are in the record, whatever their verdict.",
    "A claim is “testbed-only” if it is about one set of equipment, or has no number. It is “not simulated” "
    "if a simulation could check it and ours does not. “Verdict as simulated” counts the claims on which "
    "theory and simulation have the same verdict.",
)
"""How to read the report."""
WORD_HEADINGS = ("word", "reading")
