"""What holds for every scenario: conservation, Little's law, results of scenario and seed only."""

import json
import os
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from any_scenario import scenarios
from hypothesis import given, settings
from hypothesis import strategies as st
from thesis import thesis, thesis_of
from whole_network import digest, go_on, measure_from_now, play, sane

from btqueue.scenario import Scenario, ScenarioError
from btqueue.simulator import InvariantViolated
from btqueue.simulator.construction import state as state_module
from btqueue.simulator.construction.state import network_of, new_state
from btqueue.simulator.records.conventions import SECOND
from btqueue.simulator.records.run import ARRIVAL
from btqueue.simulator.replications import run_replication, simulate
from btqueue.simulator.statistics.backlog import LOOKS
from btqueue.simulator.statistics.invariants import check_invariants
from btqueue.simulator.statistics.measurement import measure

ROOT = Path(__file__).resolve().parents[2]

ERRORS = {"radio__model": "gilbert-elliott"}
SHORT = {"run__duration_s": 20, "run__warmup_s": 5, "run__replications": 3}
TWO_WAY = {"traffic__two_way": True, "transport__piggyback": True, "transport__delayed_ack": True}
LAN = {"name": "lan", "from": "c1", "to": "h", "kind": "wlan", "delay_s": 0.002, "loss": 0.02}
GATEWAY = {"outside_links": [LAN], "flows": [{"from": "p1.1", "to": "h"}, {"from": "h", "to": "p1.2"}]}
LINUX = (
    {"network": GATEWAY, "transport": {"preset": "linux"}},
    {
        "radio": {"model": "gilbert-elliott"},
        "traffic": {"two_way": True},
        "transport": {"preset": "linux", "variant": "sack", "piggyback": True, "delayed_ack": True},
    },
)
"""Senders that `scenarios` does not draw."""
LOSSY_LE = {
    "link": {"bearer": "le", "flush_timeout_s": 0.5},
    "radio": {"model": "gilbert-elliott", "ber_bad": 1e-3, "bits": "on-air"},
}
LOW_ENERGY = (
    LOSSY_LE
    | {
        "network": {"peripherals": 5},
        "le": {
            **{"interval_s": 0.015, "event_length_s": 0.004, "clock_ppm": 50, "anchors": "random"},
            **{"mps_bytes": 600, "credits": 3, "channel_classes": [{"channels": 37, "ber": 1e-5}]},
        },
        "traffic": {"source": "greedy"},
    },
    LOSSY_LE
    | {
        "network": {"topology": "chain", "hops": 3},
        "le": {
            **{"interval_s": 0.0075, "interval_spread_s": 0.00125, "latency": 2, "acl_buffers": 4},
            **{"transfer": "notifications", "iso_interval_s": 0.01, "iso_length_s": 0.001, "phy": "2M"},
        },
        "traffic": {"source": "poisson", "load_kbps": 50, "message_bytes": 300, "two_way": True},
    },
)
"""Links of Bluetooth Low Energy with every mechanism."""
NOT_DRAWN = [*map(thesis_of, LINUX), *map(Scenario.from_dict, LOW_ENERGY)]


def is_playable(scenario: Scenario) -> bool:
    """Return whether it can be: an interrupted Bernoulli process, for one, may be none."""
    try:
        network_of(scenario)
    except ScenarioError:
        return False
    return True


def some(count: int) -> list[Scenario]:
    """Return random scenarios, always the same."""
    found = []

    @settings(max_examples=count)
    @given(scenario=scenarios().filter(is_playable))
    def draw(scenario):
        found.append(scenario)

    draw()
    return found


def measured(scenario):
    """Return one replication."""
    found = run_replication(scenario, 0)
    assert found is not None
    return found


def metrics_of(scenario):
    return measure(network_of(scenario), [measured(scenario).counts])


def same_metrics(first, second):
    return all(np.array_equal(first[name], second[name], equal_nan=True) for name in first)


# -------------------------------------------------------------------- cutting segments, counting their bytes


@pytest.mark.parametrize("arq", ["none", 3, "unlimited"])
def test_a_segment_cut_at_each_transmission_is_one_cut_before_where_there_is_one_packet_type(arq):
    before = thesis(
        network={"relay": "segment"},
        link={"packets": ["DH1"], "adaptation_packets": ["DH1"], "arq": arq},
        flow_control={"enabled": False, "baseband_packets": 1000},
        radio={"model": "constant", "ber": 1e-5},
        traffic={"source": "greedy", "message_bytes": 500},
        transport={"mss_bytes": 500},
    ).with_(**SHORT)
    at_transmission = simulate(before.with_(link__adaptation="best"))
    expected = simulate(before)
    # losses and queues count other packets: whole segments in place of their parts
    for name in ("goodput_kbps", "throughput_kbps", "rtt_s", "slot_utilisation", "polls_per_s"):
        np.testing.assert_array_equal(at_transmission[name], expected[name], err_msg=name)
    assert expected.goodput_kbps.min() > 10


# ---------------------------------------------------------------- results depend on scenario and seed only


@pytest.mark.parametrize("changes", [{}, {"run__jitter_s": 0.02}, ERRORS | {"radio__fading": "per-piconet"}])
def test_results_do_not_depend_on_the_number_of_threads(changes):
    scenario = thesis().with_(**SHORT, **changes)
    one, two, many = (simulate(scenario, threads=threads) for threads in (1, 2, 7))
    assert one.identical(two)
    assert one.identical(many)


def test_more_replications_leave_the_first_ones_as_they_were():
    scenario = thesis().with_(**SHORT)
    more = simulate(scenario.with_(run__replications=5))
    assert same_metrics(simulate(scenario).data_vars, more.isel(replication=slice(3)).data_vars)


def test_an_interruption_stops_all_threads():
    def interrupt(share):
        raise KeyboardInterrupt

    scenario = thesis().with_(run__duration_s=1e6, run__replications=4)
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        simulate(scenario, threads=2, progress=interrupt)
    assert threading.active_count() == before


UNCOMPILED = """
import json, sys
sys.path.insert(0, sys.argv[1])
from btqueue.scenario import Scenario
from btqueue.simulator.engine import advance
from whole_network import digest, play
assert not hasattr(advance, "function"), "compiled"
for tables in json.load(sys.stdin):
    print(digest(play(Scenario.from_dict(tables), 0.3, measured_from_s=0.15)))
"""


@pytest.mark.parametrize("count", [12, pytest.param(300, marks=pytest.mark.long)])
def test_compiled_and_plain_python_give_the_same_state_to_the_last_bit(count):
    """The short suite keeps the first twelve scenarios: plain Python is a hundred times as slow."""
    compared = [*some(count), *NOT_DRAWN]
    answer = subprocess.run(
        [sys.executable, "-c", UNCOMPILED, str(ROOT / "validation" / "helpers")],
        input=json.dumps([scenario.to_dict(resolved=False) for scenario in compared]),
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    compiled = [digest(play(scenario, 0.3, measured_from_s=0.15)) for scenario in compared]
    assert answer.stdout.split() == compiled


def test_pools_that_grow_on_the_way_change_nothing(monkeypatch):
    scenario = thesis().with_(**SHORT, network__peripherals=6, flow_control__buffer_packets=200)
    roomy = metrics_of(scenario)
    monkeypatch.setattr(state_module, "FIRST_POOL", 1)
    state_module.keep.cache_clear()
    small = len(new_state(scenario, 0).packets)
    assert small < 100, "starts small"
    needed = len(play(scenario, 25).packets)
    assert needed > small, "and has to grow"
    assert same_metrics(roomy, metrics_of(scenario))
    assert len(new_state(scenario, 0).packets) == needed, "the next one begins with what this one needed"
    assert same_metrics(roomy, metrics_of(scenario))


ISLANDS = {
    "network__topology": "custom",
    "network__relay": "segment",
    "network__piconet_list": [
        {"name": "0", "central": "a", "peripherals": ["b", "c", "d"]},
        {"name": "1", "central": "e", "peripherals": ["f", "g"]},
        {"name": "2", "central": "h", "peripherals": ["i"]},
    ],
    "network__outside_links": [
        {"name": "x", "from": "h", "to": "s", "rate_kbps": 500, "delay_s": 0.01, "medium": "air"},
        {"name": "y", "from": "j", "to": "k", "rate_kbps": 500, "delay_s": 0.02, "medium": "air"},
    ],
    "network__flows": [
        {"from": "b", "to": "c"},
        {"from": "d", "to": "b"},
        {"from": "f", "to": "g"},
        {"from": "i", "to": "s"},
        {"from": "j", "to": "k"},
    ],
}


def forget_networks():
    state_module.keep.cache_clear()
    state_module.Skeleton.of.cache_clear()


@pytest.mark.parametrize("changes", [{}, ERRORS, TWO_WAY], ids=["quiet", "errors", "two ways"])
def test_islands_one_after_the_other_are_as_in_one_heap(monkeypatch, changes):
    scenario = thesis().with_(**ISLANDS, **changes, **SHORT)
    apart = measured(scenario)
    sizes = np.diff([*network_of(scenario).islands, len(network_of(scenario).timers)])
    assert len(sizes) == 3, "the links x and y share a medium"
    forget_networks()
    monkeypatch.setattr(state_module.Topology, "islands", lambda plan: [0] * len(plan.nodes))
    together = measured(scenario)
    assert len(network_of(scenario).islands) == 1
    forget_networks()
    assert apart.events == together.events
    metrics = measure(network_of(scenario), [apart.counts, together.counts])
    for name, (values, others) in metrics.items():
        np.testing.assert_array_equal(values, others, err_msg=name)


@pytest.mark.parametrize(
    "changes",
    [{}, {"transport__send_buffer_segments": 100}, {"traffic__source": "greedy"}],
    ids=["overload", "send buffer", "greedy"],
)
def test_memory_does_not_grow_with_simulated_time(changes):
    """Messages of an overloaded source wait for ever, and the more the longer it lasts."""
    scenario = thesis().with_(traffic__load_kbps=400, **changes)
    sizes = []
    for seconds in (100, 3000):
        tracemalloc.start()
        sim = play(scenario, seconds, pieces=10)
        sizes.append(
            (sum(array.nbytes for array in sim.arrays().values()), tracemalloc.get_traced_memory()[1])
        )
        tracemalloc.stop()
    assert sizes[0][0] == sizes[1][0], "the state"
    assert sizes[1][1] < 1.5 * sizes[0][1], "and everything around it, at its highest"


@pytest.mark.parametrize("changes", [ERRORS, {"run__jitter_s": 0.05}, {"polling__limit": 1}])
def test_common_random_numbers_arrivals_stay_when_something_else_changes(changes):
    scenario = thesis().with_(traffic__load_kbps=60)
    first, second = play(scenario, 60), play(scenario.with_(**changes), 60)
    assert (first.flow_statistics.messages == second.flow_statistics.messages).all()
    assert (first.streams[:2] == second.streams[:2]).all()
    due = [sim.timers.due[sim.timers.kind == ARRIVAL].tolist() for sim in (first, second)]
    assert due[0] == due[1]
    assert not (first.flow_statistics == second.flow_statistics).all(), "something did change"


# ---------------------------------------------------------------- conservation


@pytest.mark.parametrize(
    "array", ["flow_statistics.packets_delivered", "queue_statistics.served", "queue_statistics.area"]
)
def test_a_lost_count_is_noticed(array):
    sim = play(thesis().with_(**ERRORS), 5)
    check_invariants(sim)
    records, _, field = array.partition(".")
    getattr(sim, records)[field][0] += 1
    with pytest.raises(InvariantViolated):
        check_invariants(sim)


def test_a_packet_lost_from_the_pool_is_noticed():
    sim = play(thesis(), 5)
    sim.pools.left[0] -= 1
    with pytest.raises(InvariantViolated, match="packets are in use"):
        check_invariants(sim)


@pytest.fixture(scope="module")
def arrival_file(tmp_path_factory):
    file = tmp_path_factory.mktemp("arrivals") / "arrivals.txt"
    file.write_text("0.0 100\n0.1 3000\n0.1 20\n0.7 9000\n")
    return file


def keeps_its_counts(scenario, until_s):
    """Counts hold at all times, and stopping on the way, or measuring anew, changes nothing."""
    sim = play(scenario, until_s, measured_from_s=until_s / 4)
    assert sim.clock[0].look == LOOKS + 1
    assert sim.clock[0].events < MOST_EVENTS_A_SECOND * (1 + until_s)
    assert digest(sim) == digest(play(scenario, until_s, pieces=30, measured_from_s=until_s / 4))
    sane(sim)
    sim = measure_from_now(sim)
    sane(sim)
    sane(go_on(sim, round((until_s + 1) * SECOND)))


MOST_EVENTS_A_SECOND = 40_000
"""1600 half-frames of each of 4 piconets, and what sources, hosts and outside links can do."""


@settings(max_examples=100)
@given(data=st.data(), until_s=st.floats(0.001, 4))
def test_every_valid_scenario_keeps_its_counts(arrival_file, data, until_s):
    keeps_its_counts(data.draw(scenarios({"arrival_file": [str(arrival_file)]}).filter(is_playable)), until_s)


@pytest.mark.parametrize("scenario", NOT_DRAWN)
def test_low_energy_and_linux_keep_their_counts(scenario):
    keeps_its_counts(scenario, 8)


@pytest.mark.long
@settings(max_examples=5000)
@given(data=st.data(), until_s=st.floats(0.001, 10))
def test_very_many_valid_scenarios_keep_their_counts(arrival_file, data, until_s):
    keeps_its_counts(data.draw(scenarios({"arrival_file": [str(arrival_file)]}).filter(is_playable)), until_s)


def test_the_send_buffer_of_a_greedy_source_is_a_window():
    """A program that always has data refills the buffer at once: no more than it holds is under way."""
    scenario = thesis().with_(traffic__source="greedy")
    buffer, window = (
        play(scenario.with_(**{f"transport__{key}": 3}), 60)
        for key in ("send_buffer_segments", "receive_window_segments")
    )
    assert (buffer.flow_statistics == window.flow_statistics).all()
    assert not (buffer.flow_statistics == play(scenario, 60).flow_statistics).all()
