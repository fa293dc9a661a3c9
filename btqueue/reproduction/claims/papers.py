"""Judge any claim on record with any engine."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from btqueue.reproduction.claims import recorded
from btqueue.reproduction.claims.engines import Engine
from btqueue.reproduction.claims.record import NOT_SIMULATED, TESTBED_ONLY, Claim, Judged, Part, claims_of


def procedures_of(paper: str) -> Mapping[str, recorded.Procedure]:
    """Return the checks of a publication that are functions of its module, by their names in the record."""
    return import_module(f"btqueue.reproduction.claims.{paper.replace('-', '_')}").PROCEDURES


def is_judged(claim: Claim) -> bool:
    """Whether there is anything to check."""
    return claim["verdict"] not in (TESTBED_ONLY, NOT_SIMULATED)


def is_tested(claim: Claim) -> bool:
    """Whether a claim is checked by unit tests, which an installed package does not have."""
    return "tests" in claim


def judge(paper: str, claim: Claim, engine: Engine) -> Judged:
    """Judge a claim; for a claim that unit tests check, pytest tells whether they pass."""
    if not is_judged(claim):
        return Judged(())
    if is_tested(claim):
        return _by_tests(claim)
    return recorded.judge(engine, claim, procedures_of(paper), claims_of(paper))


def points(claim: Claim) -> int:
    """Return about how many points of ten replications a claim simulates, for the time that is left."""
    return 0 if not is_judged(claim) or is_tested(claim) else recorded.points(claim)


def _by_tests(claim: Claim) -> Judged:
    named = [Part("", True, f"checked by test {name.rpartition('/')[2]}") for name in claim["tests"]]
    return Judged((*named, *(Part("", False, f"no test: {what}") for what in claim.get("untested", ()))))
