"""Judge any claim on record with any engine."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from btqueue.reproduction.claims import recorded
from btqueue.reproduction.claims.engines import Engine
from btqueue.reproduction.claims.record import NOT_SIMULATED, TESTBED_ONLY, Claim, Judged, Part, claims_of


def module_of(paper: str) -> ModuleType:
    """Return the module of a publication, whose functions are the procedures that its record names."""
    return import_module(f"btqueue.reproduction.claims.{paper.replace('-', '_')}")


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
    return recorded.judge(engine, claim, module_of(paper), claims_of(paper))


def _by_tests(claim: Claim) -> Judged:
    named = [Part("", True, f"checked by test {name.rpartition('/')[2]}") for name in claim["tests"]]
    return Judged((*named, *(Part("", False, f"no test: {what}") for what in claim.get("untested", ()))))
