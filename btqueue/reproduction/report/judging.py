"""Judge claims by both engines, one after the other; finished claims are kept.

An engine's finding about a claim is a file in a cache folder. The folder's name is a digest of everything the
engine's answers depend on. The file's name holds a digest of the claim's checks: if only words of the record
change, the finding stays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from btqueue.caches import cache_folder
from btqueue.reproduction import claims
from btqueue.reproduction.answer_cache import Store, digest_of, source_digest
from btqueue.reproduction.claims.engines import Engine
from btqueue.reproduction.claims.record import Claim, Judged, Part, is_tested
from btqueue.reproduction.claims.recorded import judge
from btqueue.reproduction.report.outcomes import Outcome, Seen
from btqueue.scenario.loading import models_folder

ARITHMETIC = "arithmetic: no engine is asked"
CHECKS = ("judgement.py", "engines.py", "record.py", "recorded.py")
"""Modules of `btqueue.reproduction.claims` that all checks use."""
WORDS = (
    "where",
    "blind",
    "statement",
    "published",
    "verdict",
    "reason",
    "note",
    "misprints",
    "computed",
    "unit",
)
"""Keys of a claim that no check reads."""


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
    known = [
        [store.get(path_of(paper, claim, engine), Seen.from_plain) for engine in engines]
        for paper, claim in wanted
    ]
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
                store.keep(path_of(paper, claim, engine), seen.to_plain())
            both.append(seen)
        outcomes.append(Outcome(paper, claim, *both))
        if report is not None:
            report(Progress(outcomes[-1], number, len(wanted), None not in kept))
    return outcomes


def judge_one(paper: str, claim: Claim, engine: Engine) -> Seen:
    """Judge a claim by one engine."""
    began = time.monotonic()
    engine.asked.clear()
    judged = judge(paper, claim, engine)
    if not engine.is_simulator:
        judged = _by_model(paper, claim, engine, judged)
    seeds = tuple(sorted({scenario.run.seed for scenario in engine.asked}))
    return Seen(judged, seeds, round(time.monotonic() - began, 2))


def _by_model(paper: str, claim: Claim, model: Engine, judged: Judged) -> Judged:
    """Return a verdict of a model; none for unit tests, and for checks that ask no engine."""
    if is_tested(claim):
        return Judged(())
    if judged.parts and not model.asked and not judged.unanswered:
        return Judged((Part("", None, ARITHMETIC),))
    return judged


def path_of(paper: str, claim: Claim, engine: Engine) -> Path:
    """Return where an engine's finding about a claim is kept."""
    checked = {key: value for key, value in claim.items() if key not in WORDS}
    folder = cache_folder("claims", f"{engine.name}-{paper}-{sources_digest(engine.name, paper)}")
    return folder / f"{claim['id']}-{digest_of(checked)[:12]}.json"


@cache
def sources_digest(engine: str, paper: str) -> str:
    """Return a short digest of everything an engine's answers for a publication depend on."""
    folder = Path(claims.__file__).parent
    checks = [folder / name for name in (*CHECKS, f"{paper.replace('-', '_')}.py")]
    # How each claim is checked is in the name of its file.
    scenarios = [path for path in sorted((models_folder() / paper).iterdir()) if path.stem != "published"]
    return source_digest(engine, *checks, *scenarios)
