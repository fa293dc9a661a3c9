"""The report as one JSON object."""

from __future__ import annotations

from typing import Any

from btqueue.reproduction.claims.record import Judged, publication_record
from btqueue.reproduction.report import sentences
from btqueue.reproduction.report.outcomes import Counts, Outcome, Seen, counts
from btqueue.reproduction.report.sentences import Report
from btqueue.study.provenance import plain


def document(report: Report) -> dict[str, Any]:
    """Return all numbers of the report; missing numbers are null."""
    return plain(
        {
            "made_with": report.made_with,
            "complete": report.complete,
            "warnings": sentences.warnings(report),
            **summary(report),
            "papers": {
                paper: {
                    "publication": publication_record(paper)["publication"],
                    "claims": [_claim(one) for one in outcomes],
                    "misprints": publication_record(paper).get("misprint", []),
                }
                for paper, outcomes in report.papers().items()
            },
        }
    )


def summary(report: Report) -> dict[str, Any]:
    """Return the counts, by publication and in all."""
    papers = {paper: _counts(counts(outcomes)) for paper, outcomes in report.papers().items()}
    kept_back = [one for one in report.outcomes if one.kept_back]
    return plain(
        {
            "counts": _counts(counts(report.outcomes)),
            "counts_by_paper": papers,
            "counts_kept_back": _counts(counts(kept_back)),
        }
    )


def _counts(found: Counts) -> dict[str, Any]:
    return {
        "claims": found.total,
        "checkable": found.checkable,
        **dict(zip(("share_reproduced", "share_at_least_in_part"), found.shares(), strict=True)),
        "simulated": dict(found.simulated),
        "solved": dict(found.solved),
        **dict(
            zip(("share_solved", "share_solved_at_least_in_part"), found.shares(solved=True), strict=True)
        ),
        "same_by_model": found.agree,
    }


def _claim(outcome: Outcome) -> dict[str, Any]:
    record = outcome.claim
    texts = {key: record[key] for key in ("id", "where", "statement", "published", "reason") if key in record}
    return {
        **texts,
        "kept_back": outcome.kept_back,
        "verdict": outcome.verdict,
        "verdict_on_record": record["verdict"],
        "model_verdict": outcome.solved.judged.verdict if outcome.modelled else None,
        "simulated": _seen(outcome.simulated),
        "solved": _seen(outcome.solved),
    }


def _seen(seen: Seen) -> dict[str, Any]:
    return {
        **_judged(seen.judged),
        "seeds": list(seen.seeds),
        "wall_s": seen.wall_s,
    }


def _judged(judged: Judged) -> dict[str, Any]:
    return {"seen": judged.seen, "checks": [part._asdict() for part in judged.parts]}
