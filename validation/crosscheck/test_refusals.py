"""Refusals are about the cause: another value of the key that one names, and nothing else, removes it."""

import re
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from keys_of_models import keys, values_of
from scenario_strategy import dictionaries

import btqueue as bt
from btqueue.network.models import MODELS, distance
from btqueue.scenario import Problem, Scenario, ScenarioError, list_models
from btqueue.scenario.description import description
from btqueue.scenario.scope import Scope, problems_of

SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
KEYS = set(keys())
NUMBERS = (0, 1, 2, 4, 8, 20, 64, 500, 2000, 10**6, 1e-9, 1e-6, 1e-3, 0.02, 0.1, 1.5, 3.0)
OTHERS: tuple[Any, ...] = (None, (), ("DH5", "DH3"), ("DH1",), ("DM3", "DM1"))
WHO = ("network.topology", "network.flows", "network.piconet_list", "network.outside_links")
"""Keys that say who is in the network. Hardly any other value of one goes with the rest of a scenario."""


def closest(scenario: Scenario) -> tuple[Scope, list[Problem]]:
    """Return the model whose problems `not_built` returns, and these."""
    found = [(scope, problems_of(scope, scenario)) for scope in MODELS.values()]
    return min(found, key=lambda one: distance(one[1]))


def kind_of(key: str) -> str:
    """Return the key of the table that a key of a flow stands for, or the key itself."""
    name = {"law": "source"}.get(key.partition("].")[2], key.partition("].")[2])
    tables = [table for table in ("traffic", "transport") if f"{table}.{name}" in KEYS]
    return f"{tables[0]}.{name}" if key.startswith("network.flows[") and tables else key


def others(scenario: Scenario, key: str, values: Iterable[Any]) -> list[Scenario]:
    """Return the scenario with other values of a key, as far as they are valid."""
    path, bracket, rest = key.partition("[")
    place, _, name = rest.partition("].")
    data, table, field = scenario.to_dict(resolved=False), *path.split(".")
    found = []
    for value in values:
        if bracket:
            entries = [dict(entry) for entry in data[table][field]]
            entries[int(place) - 1][name] = value
            change = {path: [{k: v for k, v in entry.items() if v is not None} for entry in entries]}
        else:
            change = {path: value}
        try:
            changed = scenario.changed(change)
            description(changed)
        except ScenarioError:
            continue
        if changed != scenario:
            found.append(changed)
    return found


def vocabulary(key: str) -> tuple[Any, ...]:
    """Return values that a key may have."""
    known = next((k for k in (kind_of(key), re.sub(r"\[\d+\]", "[]", key)) if k in KEYS), None)
    return *(values_of(known, None) if known else ()), *NUMBERS, *OTHERS


def assert_about_the_cause(scenario: Scenario) -> int:
    """Every problem of the closest model goes away with another value of its key alone.

    Where other keys of the scenario forbid all values that the model has, nothing can be said.

    Returns:
        Problems about which something was said.
    """
    (scope, problems), looked_at = closest(scenario), 0
    for problem in problems:
        listed = scope.values.get(kind_of(problem.key))
        full_segments = (scenario.transport.mss_bytes,)
        changed = others(scenario, problem.key, listed or (*vocabulary(problem.key), *full_segments))
        if problem.key in WHO or not changed:
            continue
        looked_at += 1
        left = [{(one.key, one.allowed) for one in problems_of(scope, other)} for other in changed]
        assert any((problem.key, problem.allowed) not in one for one in left), problem.message
    return looked_at


@st.composite
def any_network(draw):
    """Draw a scenario: of any network, or a shipped one with a few keys of another network."""
    while True:
        drawn = draw(dictionaries())
        if draw(st.booleans()):
            base = bt.load(draw(st.sampled_from(list_models()))).to_dict(resolved=False)
            tables = draw(
                st.sets(st.sampled_from(["radio", "link", "polling", "traffic", "transport"]), max_size=3)
            )
            drawn = {**base, **{table: drawn[table] for table in tables if table in drawn}}
        try:
            scenario = Scenario.from_dict(drawn)
            description(scenario)
        except ScenarioError:
            continue
        return scenario


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=SLOW)
@given(any_network())
def test_a_refusal_is_about_the_cause(scenario: Scenario):
    assert_about_the_cause(scenario)


@pytest.mark.long
@settings(max_examples=3000, deadline=None, suppress_health_check=SLOW)
@given(any_network())
def test_many_refusals_are_about_the_cause(scenario: Scenario):
    assert_about_the_cause(scenario)
