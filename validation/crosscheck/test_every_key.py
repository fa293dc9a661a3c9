"""No key is ignored in silence: it changes the answer of theory, is doubted, or makes no difference.

A long test lays theory and simulation side by side wherever the answer to a changed key stands.
"""

import tomllib
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from any_scenario import scenarios
from every_key import (
    BASES,
    NOT_TRIED,
    OF_NOBODY,
    Change,
    base,
    changes_of,
    keys,
    solved,
    value_of,
    values_of,
    with_value,
)
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scipy import stats

import btqueue as bt
from btqueue.network.answers import NoConvergence
from btqueue.network.certificates import ImpossibleAnswer
from btqueue.scenario import NotBuiltYet, Scenario, ScenarioError, list_models
from btqueue.scenario.metrics import Results
from btqueue.scenario.topology import flows_of, topology
from btqueue.scenario.traits import in_tables, is_trait, traits

QUICK = ("access point",)
"""Bases that are asked about in every run of the tests; the others are for the long tests."""

TOLERANCE = {"goodput_kbps": 0.10, "rtt_s": 0.20, "session_time_s": 0.20}
"""Relative errors beyond which an answer must be in doubt."""

CONFIDENCE = 0.9999
"""Of an interval: of a thousand metrics that are off by just the tolerance, one in ten tests fails."""


def silent(name: str) -> Iterator[Change]:
    """Yield the changes of traits, of each key of which theory notices no value."""
    ignored: dict[str, list[Change]] = {}
    noticed = set()
    for change in changes_of(name):
        if change.key in noticed or described(change.after) == described(change.before):
            continue
        if is_noticed(change):
            noticed.add(change.key)
        else:
            ignored.setdefault(change.key, []).append(change)
    for key in ignored.keys() - noticed:
        yield from ignored[key]


def described(scenario: Scenario) -> tuple[Any, ...]:
    """Return the keys that make a difference, and who talks to whom over which links."""
    return frozenset(traits(scenario)), topology(scenario)


def is_noticed(change: Change) -> bool:
    """Whether the answer is another one, is doubted otherwise, or there is none."""
    before, after = solved(change.before.to_toml()), solved(change.after.to_toml())
    if isinstance(before, str) or isinstance(after, str):
        return True
    return after[1] != before[1] or not after[0].equals(before[0])


def test_every_key_is_asked_about():
    """A new key needs a value to try, or a reason to have none."""
    for key in keys():
        # outside links are asked about by the keys of an entry
        if key in OF_NOBODY or key == "network.outside_links" or key.startswith(NOT_TRIED):
            continue
        assert any(values_of(key, value_of(base(name), key)) for name in BASES), key


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one in QUICK else pytest.mark.long) for one in BASES]
)
def test_a_key_that_theory_does_not_notice_makes_no_difference(name: str):
    """The simulator, asked for both, agrees with itself within the tolerances and its intervals."""
    wrong = []
    for change in silent(name):
        before, after = (quick_simulation(one.to_toml()) for one in (change.before, change.after))
        if any(found := differences(before, after)):
            wrong.append(f"{change.key} = {change.value}: {found}")
    assert not wrong, "\n".join(wrong)


@cache
def quick_simulation(scenario_toml: str) -> Results:
    """Return the simulator's answer; equal scenarios are simulated once."""
    scenario = Scenario.from_dict(tomllib.loads(scenario_toml))
    return bt.simulate(scenario.with_(run__duration_s=100, run__replications=4), threads=1)


IN_DOUBT = {"lossy ring", "sessions", "CentaurusComm", "busy link"}
"""Bases of which at most two answers stand, of up to 209 changes."""


@pytest.mark.long
@pytest.mark.parametrize("name", BASES)
def test_a_changed_key_is_answered_right_or_in_doubt(name: str):
    wrong, compared = [], 0
    for change in changes_of(name):
        # a load schedule is answered for the run's duration: it has to be the one that is simulated
        changed = change.after.with_(run__duration_s=500, run__replications=6)
        after = solved(changed.to_toml())
        if isinstance(after, str) or not after[0].attrs["stands"]:
            continue
        compared += 1
        if any(found := differences(after[0], bt.simulate(changed, threads=1))):
            wrong.append(f"{change.key} = {change.value}: {found}")
    assert compared or name in IN_DOUBT
    assert not wrong, "\n".join(wrong)


def differences(answer: Results, simulated: Results) -> dict[str, str]:
    """Return the metrics of which an answer of either engine is off by more than tolerance and interval."""
    found = {}
    for metric, tolerance in TOLERANCE.items():
        if metric not in answer or metric not in simulated:
            continue
        both = (np.atleast_1d(one[metric].mean("flow").values) for one in (answer, simulated))
        ours, runs = (values[np.isfinite(values)] for values in both)
        if runs.size < 2 or not ours.size:
            continue
        model, mean = float(ours.mean()), float(runs.mean())
        error = np.sqrt(sum(one.var(ddof=1) / one.size for one in (ours, runs) if one.size > 1))
        width = stats.t.ppf(0.5 + CONFIDENCE / 2, ours.size + runs.size - 2) * error
        if abs(model - mean) > tolerance * abs(mean) + width:
            found[metric] = f"{model:.4g} for {mean:.4g} ± {width:.2g}"
    return found


# ---------------------------------------------------------- keys of the tables, or the same of every flow

OF_HOSTS = {"tcp_delay_s", "ip_delay_s"}
"""Keys of `[transport]` that a flow cannot have of its own."""


def both_spellings(scenario: Scenario) -> tuple[Scenario, Scenario]:
    """Return a scenario with its keys of traffic and transport in tables, and with the same in every flow."""
    data = scenario.to_dict(resolved=False)
    flows = [
        one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in flows_of(scenario.network)
    ]
    given = data.get("traffic", {}) | data.get("transport", {})
    own = {"law" if key == "source" else key: given[key] for key in given.keys() - OF_HOSTS}
    left = {"traffic": {}, "transport": {key: given[key] for key in given.keys() & OF_HOSTS}}
    tables, entries = (
        data.get("network", {}) | {"flows": listed} for listed in (flows, [own | flow for flow in flows])
    )
    in_entries = data | left | {"network": entries}
    return Scenario.from_dict(data | {"network": tables}), Scenario.from_dict(in_entries)


def compare_spellings(scenario: Scenario) -> tuple[Scenario, Scenario]:
    """Make sure that theory is asked the same thing."""
    try:
        tables, entries = both_spellings(scenario)
    except ScenarioError:
        assume(False)
    one, other = in_tables(tables), in_tables(entries)
    assert topology(one) == topology(other)
    assert (one.traffic, one.transport) == (other.traffic, other.transport)
    return tables, entries


def compare_answers(scenario: Scenario) -> None:
    """Make sure that `solve` gives the same numbers and doubts, or refuses both."""
    found = []
    for written in compare_spellings(scenario):
        try:
            found.append(bt.solve(written))
        except (NotBuiltYet, NoConvergence, ImpossibleAnswer) as error:
            found.append(type(error))
    one, other = found
    if isinstance(one, type) or isinstance(other, type):
        assert one is other
        return
    assert one.equals(other)
    assert one.attrs["warnings"] == other.attrs["warnings"]


ANY = st.one_of(scenarios(), st.sampled_from(list_models()).map(bt.load))
DRAWN = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@settings(max_examples=60, derandomize=True, **DRAWN)
@given(ANY)
def test_a_key_in_every_flow_is_that_key_of_the_table_for_theory(scenario):
    compare_spellings(scenario)


@pytest.mark.parametrize("source", ["ibp", "poisson"])
def test_a_key_in_every_flow_is_that_key_of_the_table_for_answers_and_doubts(source):
    star = {"network.flows": "uplink", "network.peripherals": 3, "flow_control.enabled": False}
    load = {"traffic.source": source, "traffic.load_kbps": 100.0, "transport.receive_window_segments": 8}
    compare_answers(bt.load("venugopal-2006/piconet").changed(star | load))


@pytest.mark.long
@settings(max_examples=200, **DRAWN)
@given(ANY)
def test_a_key_in_every_flow_is_that_key_of_the_table_for_many_answers(scenario):
    compare_answers(scenario)


# --------------------------------------------------------------- what makes no difference, by its traits

TRAITS = [key for key in keys() if is_trait(key) and "[]" not in key and key != "title"]
"""Keys that bring in traits, if anything."""
OF_POLLS = {"cycle_s", "polls_per_s"}
"""Metrics of a piconet, which voice links change, too, where no flow crosses it."""
BRIEF = {"run.duration_s": 3.0, "run.warmup_s": 0.0, "run.replications": 2, "run.precision": None}


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
    scenario = scenario.changed(BRIEF)
    pairs = [(key, other) for key in left_out(scenario) for other in changed(scenario, key)]
    assume(pairs)
    key, other = data.draw(st.sampled_from(pairs))
    try:
        assert_same(scenario, other)
    except AssertionError as error:
        raise AssertionError(f"{key} = {value_of(other, key)}: {error}") from None


@settings(max_examples=8, derandomize=True, **DRAWN)
@given(st.data(), scenarios())
def test_what_is_left_out_makes_no_difference(data, scenario: Scenario):
    hold(data, scenario)


@pytest.mark.long
@settings(max_examples=1000, **DRAWN)
@given(st.data(), ANY)
def test_what_is_left_out_makes_no_difference_to_many_networks(data, scenario: Scenario):
    hold(data, scenario)
