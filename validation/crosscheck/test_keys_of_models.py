"""No key is ignored in silence: it changes the answer of a model, is refused, is warned of, or cannot matter.

The quick test says so without the simulator, for every key of every table. The long one lays model and
simulation side by side wherever a changed key is answered without a new warning.
"""

import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from keys_of_models import (
    BASES,
    CHANGES,
    OF_NOBODY,
    Change,
    base,
    changes_of,
    keys,
    solved,
    value_of,
    values_of,
)
from scenario_strategy import scenarios
from scipy import stats

import btqueue as bt
from btqueue.network.answers import NoConvergence
from btqueue.network.certificates import ImpossibleAnswer
from btqueue.network.models import covering
from btqueue.scenario import NotBuiltYet, Scenario, ScenarioError, list_models
from btqueue.scenario.description import description
from btqueue.scenario.flow_patterns import flows_of
from btqueue.scenario.scope import in_tables
from btqueue.scenario.topology import topology

START = "the long run forgets how a connection begins"
EQUAL = "both ways of cutting give the same packets here"
NO_TIMEOUT = "no timer expires twice in a row"

TIMERS = dict.fromkeys(
    (f"transport.{key}" for key in ("initial_rto_s", "max_rto_s", "rto_backoff")), NO_TIMEOUT
)
OPENS_ONCE = {"transport.handshake": "a connection that stays opens once"}

CANNOT_MATTER: dict[str, dict[str, str]] = {
    "lossy ring": {
        "link.segmentation": EQUAL,
        "traffic.start_s": START,
        "transport.initial_ssthresh_segments": START,
        "transport.sack_blocks": "TCP's law has blocks for all holes, and the answer is in doubt as it is",
    },
    "sessions in a piconet": TIMERS
    | OPENS_ONCE
    | {
        "network.flows[].receive_window_segments": "a message is smaller than any window",
        "network.flows[].start_s": START,
        "traffic.start_s": START,
        "link.l2cap_header_bytes": EQUAL,
        "polling.limit": "a lone member is always visited",
        "transport.initial_window_segments": START,
        "transport.initial_ssthresh_segments": START,
        "transport.min_rto_s": NO_TIMEOUT,
        "transport.sack_blocks": "nothing is lost",
        "transport.timestamps": "nothing is sent twice",
        "transport.centaurus_header_bytes": EQUAL,
        "transport.centaurus_control_bytes": EQUAL,
        "transport.centaurus_watchdog_s": "nothing is lost",
    },
    "link": TIMERS
    | {
        "radio.bits": "radio.per stands for every bit",
        "link.node_buffer_bytes": "the window of Vegas fits",
        "polling.limit": "a lone member is always visited",
        "traffic.start_s": START,
        "transport.initial_window_segments": START,
        "transport.initial_ssthresh_segments": START,
        "transport.alpha": "the whole windows between the bounds are the same",
        "transport.gamma": START,
        **dict.fromkeys(
            (f"transport.{key}" for key in ("clock_granularity_s", "hold_ssthresh", "timestamps")), NO_TIMEOUT
        ),
        **dict.fromkeys(
            (f"transport.{key}" for key in ("limited_transmit", "rate_reduction")), "nothing is lost"
        ),
    },
}
"""For each base the keys that leave its answer as it is, and why they leave the network as it is, too."""

QUICK = ("sessions in a piconet", "link")
"""Bases that answer in milliseconds. The others compile queues or solve large chains for each
change: they are for the long tests."""

TOLERANCE = {"goodput_kbps": 0.10, "rtt_s": 0.20, "session_time_s": 0.20}
"""Relative errors that are not silent: an answer beyond them must warn."""

CONFIDENCE = 0.9999
"""Of an interval: of a thousand metrics that are off by just the tolerance, one in ten tests fails."""


def silent(name: str) -> set[str]:
    """Return the keys that no value makes a model notice, those left aside that the description leaves out.

    What it leaves out changes no simulation (`test_description`).
    """
    ignored, noticed = set(), set()
    for change in changes_of(name):
        if change.key in noticed:
            continue
        if change.after is not None and description(change.after) == description(change.before):
            continue
        (noticed if change.after is None or is_noticed(change) else ignored).add(change.key)
    return ignored - noticed


def is_noticed(change: Change) -> bool:
    """Whether the answer is another one, is warned of, or there is none."""
    assert change.after is not None
    before, after = solved(change.before.to_toml()), solved(change.after.to_toml())
    if isinstance(before, str) or isinstance(after, str):
        return True
    return after[1] != before[1] or not after[0].equals(before[0])


def test_every_key_is_asked_about():
    """A new key needs a value to try, or a reason to have none."""
    for key in keys():
        if key in OF_NOBODY or CHANGES.get(key) == ():
            continue
        assert any(values_of(key, value_of(base(name), key)) for name in BASES), key


@pytest.mark.parametrize("name", QUICK)
def test_no_key_is_ignored_in_silence(name: str):
    assert silent(name) == set(CANNOT_MATTER[name])


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(set(CANNOT_MATTER) - set(QUICK)))
def test_no_key_is_ignored_in_silence_elsewhere(name: str):
    assert silent(name) == set(CANNOT_MATTER[name])


SECONDS = {
    "ring with radio errors": 3000,
    "lossy ring": 3000,
    "bulk with losses": 4000,
    "sessions": 5000,
    "CentaurusComm": 5000,
}
"""How long bases are simulated, if not for 500 s."""


@pytest.mark.long
@pytest.mark.parametrize("name", BASES)
def test_a_changed_key_is_answered_right_or_with_a_warning(name: str):
    wrong, seconds = [], SECONDS.get(name, 500)
    for change in changes_of(name):
        if change.after is None:
            continue
        # a load schedule is answered for the run's duration: it has to be the one that is simulated
        changed = change.after.with_(run__duration_s=seconds, run__replications=6)
        before, after = solved(change.before.to_toml()), solved(changed.to_toml())
        if isinstance(before, str) or isinstance(after, str) or set(after[1]) - set(before[1]):
            continue
        if any(found := errors(after[0], changed)):
            wrong.append(f"{change.key} = {change.value}: {found}")
    assert not wrong, "\n".join(wrong)


def errors(answer: xr.Dataset, scenario: Scenario) -> dict[str, str]:
    """Return the metrics of which model and simulation differ by more than tolerance and interval."""
    simulated, found = bt.simulate(scenario, threads=1), {}
    for metric, tolerance in TOLERANCE.items():
        if metric not in answer or metric not in simulated:
            continue
        runs = simulated[metric].mean("flow").values
        runs, model = runs[np.isfinite(runs)], float(answer[metric].mean())
        if runs.size < 2 or not np.isfinite(model):
            continue
        mean = float(runs.mean())
        width = stats.t.ppf(0.5 + CONFIDENCE / 2, runs.size - 1) * runs.std(ddof=1) / np.sqrt(runs.size)
        if abs(model - mean) > tolerance * abs(mean) + width:
            found[metric] = f"{model:.4g} for {mean:.4g} ± {width:.2g}"
    return found


# ---------------------------------------------------------- keys of the tables, or the same of every flow

OF_HOSTS = {"tcp_delay_s", "ip_delay_s"}
"""Keys of `[transport]` that a flow cannot have of its own."""


def both_spellings(scenario: Scenario) -> tuple[Scenario, Scenario]:
    """Return a scenario with keys of traffic and transport in their tables, and with the same in every flow.

    Raises:
        ScenarioError: the flows of its pattern cannot be listed.
    """
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
    return Scenario.from_dict(data | {"network": tables}), Scenario.from_dict(
        data | left | {"network": entries}
    )


def compare_spellings(scenario: Scenario) -> tuple[Scenario, Scenario]:
    """Make sure that theory is asked the same thing."""
    try:
        tables, entries = both_spellings(scenario)
    except ScenarioError:
        assume(False)
    one, other = in_tables(tables), in_tables(entries)
    assert topology(one) == topology(other)
    assert (one.traffic, one.transport) == (other.traffic, other.transport)
    assert covering(one) == covering(other)
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
    assert one.attrs["warnings"] == other.attrs["warnings"] and one.attrs["model"] == other.attrs["model"]


DRAWN = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@settings(max_examples=200, derandomize=True, **DRAWN)
@given(st.one_of(scenarios(), st.sampled_from(list_models()).map(bt.load)))
def test_a_key_in_every_flow_is_that_key_of_the_table_for_models(scenario):
    compare_spellings(scenario)


@pytest.mark.parametrize("source", ["ibp", "poisson"])
def test_a_key_in_every_flow_is_that_key_of_the_table_for_answers_and_doubts(source):
    star = {"network.flows": "uplink", "network.peripherals": 3, "flow_control.enabled": False}
    load = {"traffic.source": source, "traffic.load_kbps": 100.0, "transport.receive_window_segments": 8}
    compare_answers(bt.load("venugopal-2006/piconet").changed(star | load))


@pytest.mark.long
@settings(max_examples=200, **DRAWN)
@given(st.one_of(scenarios(), st.sampled_from(list_models()).map(bt.load)))
def test_a_key_in_every_flow_is_that_key_of_the_table_for_many_answers(scenario):
    compare_answers(scenario)
