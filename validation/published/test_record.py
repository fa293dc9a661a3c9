"""The records of the publications: each claim is checked by something that exists, or says why by nothing."""

import ast
from pathlib import Path

import pytest

from btqueue.reproduction.claims import papers
from btqueue.reproduction.claims.record import (
    NOT_SIMULATED,
    PAPERS,
    REPRODUCED,
    VERDICTS,
    claims_of,
    publication_record,
)
from btqueue.reproduction.claims.recorded import JUDGES

ROOT = Path(__file__).parents[2]
CLAIMS = [
    pytest.param(paper, claim, id=f"{paper} {claim['id']}")
    for paper in PAPERS
    for claim in claims_of(paper).values()
]


@pytest.mark.parametrize(("paper", "claim"), CLAIMS)
def test_a_claim_says_what_and_where_and_what_became_of_it(paper, claim):
    assert claim["statement"]
    assert claim["where"]
    assert claim["published"]
    assert claim["verdict"] in VERDICTS


@pytest.mark.parametrize(("paper", "claim"), CLAIMS)
def test_a_claim_is_checked_by_its_record_or_tests(paper, claim):
    if papers.is_judged(claim):
        assert papers.is_tested(claim) or claim["kind"] in {*JUDGES, "procedure", "summary"}


@pytest.mark.parametrize("paper", PAPERS)
def test_every_function_checks_a_claim(paper):
    named = {claim["procedure"] for claim in claims_of(paper).values() if "procedure" in claim}
    assert set(papers.procedures_of(paper)) == named


@pytest.mark.parametrize(("paper", "claim"), CLAIMS)
def test_a_claim_that_is_not_reproduced_has_a_reason(paper, claim):
    if claim["verdict"] != REPRODUCED:
        assert claim["reason"]


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
    assert not any(map(papers.is_judged, left_out))
