"""Judge any claim on record with any engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module

from btqueue.reproduction.claims import recorded
from btqueue.reproduction.claims.engines import Engine, NoAnswer
from btqueue.reproduction.claims.judgement import Finding
from btqueue.reproduction.claims.record import (
    NOT_SIMULATED,
    TESTBED_ONLY,
    Claim,
    Comparison,
    Judged,
    Part,
    claims_of,
)

Check = Callable[[Engine], Finding | Comparison]


@cache
def checks_of(paper: str) -> Mapping[str, Check]:
    """Return the checks of a publication that are functions of its package, by the id of their claim."""
    return getattr(_module(paper), "CHECKS", {})


def is_judged(claim: Claim) -> bool:
    """Whether there is anything to check."""
    return claim["verdict"] not in (TESTBED_ONLY, NOT_SIMULATED)


def is_tested(paper: str, claim: Claim) -> bool:
    """Whether a claim is checked by unit tests, which an installed package does not have."""
    return "tests" in claim and claim["id"] not in checks_of(paper)


def judge(paper: str, claim: Claim, engine: Engine) -> Judged:
    """Judge a claim; for a claim that unit tests check, pytest tells whether they pass."""
    if not is_judged(claim):
        return Judged(())
    if is_tested(paper, claim):
        return _by_tests(claim)
    if claim["id"] in checks_of(paper):
        return _by_function(checks_of(paper)[claim["id"]], engine)
    return recorded.judge(engine, claim, _module(paper).PROCEDURES, claims_of(paper))


def points(paper: str, claim: Claim) -> int:
    """Return about how many points of ten replications a claim simulates, for the time that is left."""
    if not is_judged(claim) or is_tested(paper, claim):
        return 0
    return 15 if claim["id"] in checks_of(paper) else recorded.points(claim)


def _module(paper: str):
    return import_module(f"btqueue.reproduction.claims.{paper.replace('-', '_')}")


def _by_tests(claim: Claim) -> Judged:
    named = [Part("", True, f"checked by test {name.rpartition('/')[2]}") for name in claim["tests"]]
    return Judged((*named, *(Part("", False, f"no test: {what}") for what in claim.get("untested", ()))))


def _by_function(check: Check, engine: Engine) -> Judged:
    try:
        found = check(engine)
    except NoAnswer as reason:
        return Judged((Part("", None, str(reason)),))
    if isinstance(found, Comparison):
        return Judged(tuple(Part(name, bool(holds), "") for name, holds in found.parts.items()), found.seen)
    return Judged((Part("", bool(found.holds), found.seen),))
