"""A key without a trait makes no difference: random networks have the same numbers to the last bit."""

import numpy as np
import pytest
from any_scenario import scenarios
from every_key import keys, value_of, values_of, with_value
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import btqueue as bt
from btqueue.scenario import Scenario, ScenarioError, list_models
from btqueue.scenario.topology import topology
from btqueue.scenario.traits import is_trait, traits

TRAITS = [key for key in keys() if is_trait(key) and "[]" not in key and key != "title"]
"""Keys that bring in traits, if anything."""
SLOW = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
OF_POLLS = {"cycle_s", "polls_per_s"}
"""Metrics of a piconet, which voice links change, too, where no flow crosses it."""
SHORT = {"run.duration_s": 3.0, "run.warmup_s": 0.0, "run.replications": 2, "run.precision": None}


def left_out(scenario: Scenario) -> list[str]:
    """Return the keys that make no difference to the scenario, by its traits."""
    there = {one.kind for one in traits(scenario)}
    return [key for key in TRAITS if key not in there]


def changed(scenario: Scenario, key: str) -> list[Scenario]:
    """Return the scenario with other values of a key, where they are valid and make no difference either."""
    found = []
    for value in values_of(key, value_of(scenario, key)):
        try:
            other = with_value(scenario, key, value)
        except ScenarioError:
            continue
        if other != scenario and set(traits(other)) == set(traits(scenario)):
            found.append(other)
    return found


def assert_same(one: Scenario, other: Scenario) -> None:
    """Simulate both; every number has to be the same, and what only one side gives has to be nothing."""
    first, second = (bt.simulate(scenario, threads=1) for scenario in (one, other))
    plan = topology(one)
    hops = {hop.kind for flow in plan.flows for hop in plan.route(flow.source, flow.target)}
    idle = set() if "bluetooth" in hops else OF_POLLS
    for name in sorted({*map(str, first.data_vars), *map(str, second.data_vars)} - idle):
        nothing = 1.0 if name == "transmissions_per_packet" else 0.0  # without errors a packet is sent once
        here, there = (
            np.nan_to_num(found[name].values, nan=nothing) if name in found else nothing
            for found in (first, second)
        )
        np.testing.assert_array_equal(here, there, name)


def hold(data, scenario: Scenario) -> None:
    """Change a key that is left out, and compare."""
    scenario = scenario.changed(SHORT)
    pairs = [(key, other) for key in left_out(scenario) for other in changed(scenario, key)]
    assume(pairs)
    key, other = data.draw(st.sampled_from(pairs))
    try:
        assert_same(scenario, other)
    except AssertionError as error:
        raise AssertionError(f"{key} = {value_of(other, key)}: {error}") from None


@settings(max_examples=8, deadline=None, derandomize=True, suppress_health_check=SLOW)
@given(st.data(), scenarios())
def test_what_is_left_out_makes_no_difference(data, scenario: Scenario):
    hold(data, scenario)


@pytest.mark.long
@settings(max_examples=1000, deadline=None, suppress_health_check=SLOW)
@given(st.data(), st.one_of(scenarios(), st.sampled_from(list_models()).map(bt.load)))
def test_what_is_left_out_makes_no_difference_to_many_networks(data, scenario: Scenario):
    hold(data, scenario)
