"""The records of the publications: each claim is checked by something that exists, or says why by nothing."""

import ast
import inspect
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from btqueue.reproduction.claims import recorded
from btqueue.reproduction.claims.record import (
    NOT_SIMULATED,
    PAPERS,
    REPRODUCED,
    VERDICTS,
    claims_of,
    is_judged,
    is_tested,
    publication_record,
)
from btqueue.reproduction.claims.recorded import JUDGES, module_of

CLAIM = (["claim"], ["_claim"])
"""The second and last parameter of a check."""
ROOT = Path(__file__).parents[2]
CLAIMS = [
    pytest.param(paper, claim, id=f"{paper} {claim['id']}")
    for paper in PAPERS
    for claim in claims_of(paper).values()
]


@pytest.mark.parametrize(("paper", "claim"), CLAIMS)
def test_a_claim_says_what_and_where_and_what_became_of_it(paper, claim):
    assert claim["statement"] and claim["where"] and claim["published"]
    assert claim["verdict"] in VERDICTS
    assert claim["verdict"] == REPRODUCED or claim["reason"]
    if is_judged(claim):
        assert is_tested(claim) or claim["kind"] in {*JUDGES, "procedure", "summary"}


@pytest.mark.parametrize("paper", PAPERS)
def test_every_function_checks_a_claim(paper):
    named = {claim["procedure"] for claim in claims_of(paper).values() if "procedure" in claim}
    functions = inspect.getmembers(module_of(paper), inspect.isfunction)
    checks = {name for name, one in functions if [*inspect.signature(one).parameters][1:] in CLAIM}
    assert checks == named


@pytest.mark.parametrize(
    "name",
    sorted({name for paper in PAPERS for c in claims_of(paper).values() for name in c.get("tests", ())}),
)
def test_a_test_that_stands_for_a_claim_exists(name):
    path, _, function = name.partition("::")
    names = {node.name for node in ast.parse((ROOT / path).read_text("utf-8")).body if hasattr(node, "name")}
    assert not function or function in names


@pytest.mark.parametrize("paper", PAPERS)
def test_a_claim_names_misprints_that_are_on_record(paper):
    known = {one["id"] for one in publication_record(paper)["misprint"] if "id" in one}
    for claim in claims_of(paper).values():
        assert set(claim.get("misprints", ())) <= known


def test_what_is_not_simulated_is_not_judged():
    left_out = [c for paper in PAPERS for c in claims_of(paper).values() if c["verdict"] == NOT_SIMULATED]
    assert left_out
    assert not any(map(is_judged, left_out))


def test_every_run_and_means_keep_an_interval_from_widening_a_tolerance(monkeypatch):
    """One run of five loses 5 %; ratios of 1.07 scatter so much that their interval touches 1.05."""
    for kind, runs, limits in (
        ("bound", [0.0, 0.0, 0.0, 0.0, 0.05], {"upper": 0.0}),
        ("value", [0.9, 1.3, 1.1, 0.9, 1.15], {"value": 1.0, "rel_tol": 0.05}),
    ):
        check = {"kind": kind, **limits}
        for strict, holds in (({}, True), ({"means": True}, False), ({"every_run": True}, False)):
            sample = np.mean(runs, keepdims=True) if strict.get("means") else np.array(runs)
            monkeypatch.setattr(recorded, "sample_of", lambda *_, sample=sample: sample)
            assert JUDGES[kind](cast(Any, None), check | strict).holds == holds
