"""What holds for every scenario: conservation, Little's law, results of scenario and seed only."""

import hashlib
import json
import os
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import btqueue as bt
from btqueue.scenario import Scenario
from btqueue.simulator import InvariantViolated
from btqueue.simulator import state as state_module
from btqueue.simulator.engine import NEEDS_SPACE, advance
from btqueue.simulator.invariants import check_invariants
from btqueue.simulator.records import ARRIVAL, SECOND, SLOT
from btqueue.simulator.replications import run_replication, simulate
from btqueue.simulator.state import forget_statistics, grow, new_state

ROOT = Path(__file__).resolve().parents[2]

ERRORS = {"radio__model": "gilbert-elliott"}
SHORT = {"run__duration_s": 20, "run__warmup_s": 5, "run__replications": 3}

VARIANTS = {
    "standard": {},
    "light": {"traffic__load_kbps": 20},
    "jitter": {"run__jitter_s": 0.02},
    "errors": ERRORS,
    "one fading process": {**ERRORS, "radio__fading": "per-piconet"},
    "constant errors": {"radio__model": "constant", "radio__ber": 2e-5},
    "whole segments": {"flow_control__drop": "segment", "flow_control__buffer_packets": 10},
    "no flow control": {"flow_control__enabled": False},
    "greedy": {"traffic__source": "greedy"},
    "four peripherals": {"network__peripherals": 4, "flow_control__token_rate_kbps": 110},
    "no back-off": {**ERRORS, "transport__rto_backoff": False},
    "DM packets, charged as used": {"link__packets": ["DM5", "DM3", "DM1"], "flow_control__charge": "actual"},
}
variants = pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS.keys())


def play(scenario, until_s, *, pieces=1, replication=0):
    """Advance to a time in this many pieces of random length; return the state."""
    ends = np.sort(np.random.default_rng(1).integers(0, round(until_s * SECOND), pieces - 1))
    with np.errstate(over="ignore"):
        sim = new_state(scenario, replication)
        for end in [*ends, round(until_s * SECOND)]:
            while advance(sim, int(end)) == NEEDS_SPACE:
                sim = grow(sim)
    return sim


def digest(sim):
    """Return a digest of every byte of the state."""
    return hashlib.sha256(b"".join(array.tobytes() for array in sim)).hexdigest()


def same_metrics(first, second):
    return all(np.array_equal(first[name], second[name], equal_nan=True) for name in first)


# ---------------------------------------------------------------- results depend on scenario and seed only


@variants
def test_results_do_not_depend_on_the_number_of_threads(changes):
    scenario = Scenario().with_(**SHORT, **changes)
    one, two, many = (simulate(scenario, threads=threads) for threads in (1, 2, 7))
    assert one.identical(two)
    assert one.identical(many)


def test_replications_and_seeds_differ():
    scenario = Scenario().with_(**SHORT)
    round_trips = [simulate(scenario.with_(run__seed=seed)).rtt_s.values for seed in (1, 2)]
    assert len(np.unique(round_trips)) == 2 * 3 * 2, "seeds, replications, flows"


def test_more_replications_leave_the_first_ones_as_they_were():
    scenario = Scenario().with_(**SHORT)
    more = simulate(scenario.with_(run__replications=5))
    assert same_metrics(simulate(scenario).data_vars, more.isel(replication=slice(3)).data_vars)


def test_run_until_precision_goes_on_until_the_interval_is_narrow_enough():
    scenario = Scenario().with_(**SHORT, run__precision=0.01)
    result = simulate(scenario)
    assert result.sizes["replication"] > 3, "three short runs are not enough"
    assert result.attrs["relative_half_width"] <= 0.01
    fixed = simulate(scenario.with_(run__precision=None))
    assert same_metrics(fixed.data_vars, result.isel(replication=slice(3)).data_vars)


def test_an_interruption_stops_all_threads():
    def interrupt(share):
        raise KeyboardInterrupt

    scenario = Scenario().with_(run__duration_s=1e6, run__replications=4)
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        simulate(scenario, threads=2, progress=interrupt)
    assert threading.active_count() == before


UNCOMPILED = """
import hashlib, json, sys
import numpy as np
from btqueue.scenario import Scenario
from btqueue.simulator.engine import NEEDS_SPACE, advance
from btqueue.simulator.state import grow, new_state
assert not hasattr(advance, "py_func"), "compiled"
digests = {}
for name, changes in json.load(sys.stdin).items():
    with np.errstate(over="ignore"):
        sim = new_state(Scenario().with_(**changes), 0)
        while advance(sim, 2_000_000_000) == NEEDS_SPACE:
            sim = grow(sim)
    digests[name] = hashlib.sha256(b"".join(array.tobytes() for array in sim)).hexdigest()
print(json.dumps(digests))
"""


def test_compiled_and_plain_python_give_the_same_state_to_the_last_bit():
    answer = subprocess.run(
        [sys.executable, "-c", UNCOMPILED],
        input=json.dumps(VARIANTS),
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    plain = json.loads(answer.stdout)
    compiled = {name: digest(play(Scenario().with_(**changes), 2)) for name, changes in VARIANTS.items()}
    assert [name for name in VARIANTS if plain[name] != compiled[name]] == []


@variants
def test_stopping_on_the_way_changes_nothing(changes):
    scenario = Scenario().with_(**changes)
    assert digest(play(scenario, 15)) == digest(play(scenario, 15, pieces=500))


def test_pools_that_grow_on_the_way_change_nothing(monkeypatch):
    scenario = Scenario().with_(**SHORT, network__peripherals=6, flow_control__buffer_packets=200)
    roomy = run_replication(scenario, 0)
    monkeypatch.setattr(state_module, "FIRST_POOL", 1)
    assert len(new_state(scenario, 0).packets) < 400, "starts small"
    assert len(play(scenario, 25).packets) > len(new_state(scenario, 0).packets), "and has to grow"
    assert same_metrics(roomy, run_replication(scenario, 0))


@pytest.mark.parametrize("changes", [{}, {"traffic__source": "greedy"}], ids=["overload", "greedy"])
def test_memory_does_not_grow_with_simulated_time(changes):
    scenario = Scenario().with_(traffic__load_kbps=400, **changes)
    sizes = []
    for seconds in (100, 3000):
        tracemalloc.start()
        sim = play(scenario, seconds, pieces=10)
        sizes.append((sum(array.nbytes for array in sim), tracemalloc.get_traced_memory()[1]))
        tracemalloc.stop()
    assert sizes[0][0] == sizes[1][0], "the state"
    assert sizes[1][1] < 1.5 * sizes[0][1], "and everything around it, at its highest"


@pytest.mark.parametrize("changes", [ERRORS, {"run__jitter_s": 0.05}, {"polling__limit": 1}])
def test_common_random_numbers_arrivals_stay_when_something_else_changes(changes):
    scenario = Scenario().with_(traffic__load_kbps=60)
    first, second = play(scenario, 60), play(scenario.with_(**changes), 60)
    assert (first.flow_statistics.messages == second.flow_statistics.messages).all()
    assert (first.streams[:2] == second.streams[:2]).all()
    arrivals = first.timers.kind == ARRIVAL
    assert (first.timers.due[arrivals] == second.timers.due[arrivals]).all()
    assert not (first.flow_statistics == second.flow_statistics).all(), "something did change"


# ---------------------------------------------------------------- conservation


@pytest.mark.parametrize(
    "array", ["flow_statistics.packets_delivered", "queue_statistics.served", "queue_statistics.area"]
)
def test_a_lost_count_is_noticed(array):
    sim = play(Scenario().with_(**ERRORS), 5)
    check_invariants(sim)
    records, _, field = array.partition(".")
    getattr(sim, records)[field][0] += 1
    with pytest.raises(InvariantViolated):
        check_invariants(sim)


def test_a_packet_lost_from_the_pool_is_noticed():
    sim = play(Scenario(), 5)
    sim.clock.free_packets -= 1
    with pytest.raises(InvariantViolated, match="pool"):
        check_invariants(sim)


def sane(sim, scenario):
    """Check what packets and Little's law leave open: segments, windows, radio time."""
    check_invariants(sim)
    conn, count, central = sim.connections, sim.flow_statistics, sim.central[0]
    assert (conn.snd_una <= conn.rcv_nxt).all(), "acknowledged before it arrived"
    assert (conn.rcv_nxt <= conn.snd_max).all(), "arrived before it was sent"
    assert (conn.snd_nxt <= conn.snd_max).all()
    assert (conn.snd_max <= conn.written).all(), "sent before it was written"
    assert (conn.snd_max - conn.snd_una <= conn.rwnd).all(), "more than the receiver allows"
    assert (conn.cwnd >= 1).all()
    assert (conn.ssthresh >= 2).all()
    assert ((conn.min_rto <= conn.rto) & (conn.rto <= conn.max_rto)).all()
    assert (count.refused_at_token_buffer <= count.offered_to_token_buffer).all()
    assert (count.packets_corrupted <= count.packets_delivered).all()
    assert (sim.queues.length <= sim.queues.limit).all()
    assert ((sim.buckets.tokens >= 0) & (sim.buckets.tokens <= sim.buckets.depth)).all()
    # The packet on the air is counted when it starts.
    elapsed = sim.clock[0].now - sim.clock[0].statistics_since
    assert central.data_slots * SLOT <= elapsed + 5 * SLOT
    assert central.waiting == sim.queues.length[scenario.network.peripherals :].sum()


@variants
def test_conservation_holds_at_any_time(changes):
    scenario = Scenario().with_(**changes)
    sim = play(scenario, 3)
    for millisecond in range(3000, 8000, 97):
        while advance(sim, millisecond * 1_000_000) == NEEDS_SPACE:
            sim = grow(sim)
        sane(sim, scenario)
        if millisecond % 5 == 0:
            forget_statistics(sim)
            sane(sim, scenario)


@st.composite
def scenarios(draw):
    bers = st.sampled_from([0.0, 1e-6, 2e-5, 3e-4, 0.01])
    window = draw(st.integers(1, 64))
    ber_good, ber_bad = sorted([draw(bers), draw(bers)])
    changes = {
        "network__peripherals": draw(st.integers(2, 7)),
        "polling__limit": draw(st.integers(1, 20)),
        "polling__discipline": draw(st.sampled_from(["e-limited", "1-limited", "exhaustive"])),
        "link__packets": draw(
            st.sampled_from(
                [["DH5", "DH3"], ["DH5", "DH3", "DH1"], ["DM5", "DM3", "DM1"], ["DH1"], ["DM3", "DH5"]]
            )
        ),
        "flow_control__enabled": draw(st.booleans()),
        "flow_control__token_rate_kbps": draw(st.floats(5, 700)),
        "flow_control__bucket_bytes": draw(st.integers(339, 6000)),
        "flow_control__buffer_packets": draw(st.integers(1, 100)),
        "flow_control__baseband_packets": draw(st.integers(1, 60)),
        "flow_control__drop": draw(st.sampled_from(["packet", "segment"])),
        "flow_control__charge": draw(st.sampled_from(["payload", "actual"])),
        "radio__model": draw(st.sampled_from(["perfect", "constant", "gilbert-elliott"])),
        "radio__ber": draw(bers),
        "radio__ber_good": ber_good,
        "radio__ber_bad": ber_bad,
        "radio__fading": draw(st.sampled_from(["per-link", "per-piconet"])),
        "traffic__source": draw(st.sampled_from(["poisson", "poisson", "greedy"])),
        "traffic__load_kbps": draw(st.floats(1, 500)),
        "traffic__message_bytes": draw(st.integers(1, 1460)),
        "transport__receive_window_segments": window,
        "transport__initial_window_segments": draw(st.integers(1, min(window, 4))),
        "transport__initial_ssthresh_segments": draw(st.integers(2, 64)),
        "transport__rto_backoff": draw(st.booleans()),
        "run__jitter_s": draw(st.sampled_from([0.0, 0.001, 0.1])),
        "run__seed": draw(st.integers(0, 2**40)),
    }
    return Scenario().with_(**changes)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(scenario=scenarios(), until_s=st.floats(0.001, 20))
def test_every_valid_scenario_keeps_its_counts(scenario, until_s):
    sim = play(scenario, until_s)
    sane(sim, scenario)
    forget_statistics(sim)
    sane(sim, scenario)
    while advance(sim, round((until_s + 2) * SECOND)) == NEEDS_SPACE:
        sim = grow(sim)
    sane(sim, scenario)


@pytest.mark.parametrize("peripherals", range(2, 8))
def test_any_number_of_peripherals(peripherals):
    result = simulate(Scenario().with_(**SHORT, network__peripherals=peripherals, traffic__load_kbps=20))
    assert result.sizes["flow"] == peripherals
    # 20 kbit/s pass everywhere: 1.5 % is 4 deviations of 3 x 2 x 43 messages or more.
    assert float(result.goodput_kbps.mean()) == pytest.approx(20, rel=4 / np.sqrt(6 * 20 * 20 / 11.68))


@pytest.mark.parametrize(
    "changes",
    [
        {"flow_control__buffer_packets": 1, "flow_control__baseband_packets": 1},
        {"polling__limit": 1},
        {"transport__receive_window_segments": 1},
    ],
    ids=["S = L = 1", "M = 1", "window 1"],
)
def test_smallest_values(changes):
    scenario = Scenario().with_(**changes)
    sane(play(scenario, 60), scenario)


def test_the_package_simulates_by_its_public_name():
    assert bt.simulate is simulate
