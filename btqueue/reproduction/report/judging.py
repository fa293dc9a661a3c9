"""Judge claims by both engines, one after the other; finished claims are kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from btqueue.reproduction.claims import papers
from btqueue.reproduction.claims.engines import Engine
from btqueue.reproduction.claims.record import Claim, Judged, Part
from btqueue.reproduction.report.outcomes import Outcome, Seen
from btqueue.reproduction.report.store import Store

ARITHMETIC = "arithmetic: no engine is asked"


@dataclass(frozen=True)
class Progress:
    """How far the judging is, after a claim.

    Attributes:
        outcome: outcome of the claim.
        number: number of the claim among all, from 1.
        total: number of claims.
        kept: whether the verdicts of simulator and theory were kept from an earlier run.
    """

    outcome: Outcome
    number: int
    total: int
    kept: bool


def judge_all(
    wanted: Sequence[tuple[str, Claim]],
    simulator: Engine,
    model: Engine,
    store: Store,
    report: Callable[[Progress], None] | None = None,
) -> list[Outcome]:
    """Judge claims, publication by publication.

    Args:
        wanted: publication and claim.
        simulator: the engine whose verdict counts.
        model: the other engine.
        store: where finished claims are kept, and found again.
        report: told about each claim.

    Raises:
        KeyboardInterrupt: by Ctrl-C; finished claims are in the store.
    """
    engines = (simulator, model)
    known = [[store.get(paper, claim, engine) for engine in engines] for paper, claim in wanted]
    outcomes: list[Outcome] = []
    last_paper = ""
    for number, ((paper, claim), kept) in enumerate(zip(wanted, known, strict=True), start=1):
        if paper != last_paper:
            simulator.forget()
            model.forget()
            last_paper = paper
        both = []
        for engine, seen in zip(engines, kept, strict=True):
            if seen is None:
                seen = judge_one(paper, claim, engine)
                store.add(paper, claim, engine, seen)
            both.append(seen)
        outcomes.append(Outcome(paper, claim, *both))
        if report is not None:
            report(Progress(outcomes[-1], number, len(wanted), None not in kept))
    return outcomes


def judge_one(paper: str, claim: Claim, engine: Engine) -> Seen:
    """Judge a claim by one engine."""
    began = time.monotonic()
    engine.asked.clear()
    judged = papers.judge(paper, claim, engine)
    if not engine.is_simulator:
        judged = _by_model(paper, claim, engine, judged)
    seeds = tuple(sorted({scenario.run.seed for scenario in engine.asked}))
    return Seen(judged, seeds, round(time.monotonic() - began, 2))


def _by_model(paper: str, claim: Claim, model: Engine, judged: Judged) -> Judged:
    """Return a verdict of a model; none for unit tests, and for checks that ask no engine."""
    if papers.is_tested(claim):
        return Judged(())
    if judged.parts and not model.asked and not judged.unanswered:
        return Judged((Part("", None, ARITHMETIC),))
    return judged
