"""Media whose queues take turns: exact limits, and cells beside the simulator."""

import numpy as np
import pytest
from beside import doubted
from hypothesis import assume, example, given
from hypothesis import strategies as st

import btqueue as bt
from btqueue.network.stations.description import network_of
from btqueue.network.stations.point import operating_point
from btqueue.network.stations.queues import MOST_LOAD, stretch
from btqueue.scenario.traits import in_tables

CELL = bt.load("avancha-2002/wlan-chargen").changed(
    {"traffic.source": "poisson", "traffic.load_kbps": 100.0, "run.duration_s": 200.0, "run.warmup_s": 5.0}
)


def cell(*flows, **changes):
    return CELL.changed({"network.flows": list(flows), **changes})


def flow(begin, end, **more):
    return {"from": begin, "to": end, **more}


positive = st.floats(1e-3, 10.0)


@given(st.lists(st.tuples(positive, st.floats(0.0, 0.9), st.floats(0.0, 1.0)), min_size=1, max_size=6))
@example([(1.0, 8e-225, 1.0), (1.0, 0.5, 1.0)])  # a part at its bound from the begin, with hardly a load
@example([(1.0, 0.5, 0.5), (1.0, 8e-225, 1.0)])
def test_the_sum_of_bounded_parts_is_a_fixed_point(queues):
    most, load, share = np.array(queues).T
    begun = share * most
    x = stretch(float(begun.sum()), 1.0, list(zip(load.tolist(), (most - begun).tolist(), strict=True)))
    assume(float(load[begun + load * x < most].sum()) <= MOST_LOAD)  # beyond, formulas take this load
    assert x == pytest.approx(float(np.minimum(most, begun + load * x).sum()), rel=1e-9)


@given(st.integers(2, 4), st.floats(0.05, 0.9))
def test_queues_alike_wait_as_in_one_queue(count, use):
    """Datagrams of one size from several stations: M/D/1."""
    stations = [flow(f"laptop-{n + 1}", "ap") for n in range(count)]
    rate = 4000.0 * 1460 / 1500 * use / count
    scenario = cell(*stations, **{"transport.protocol": "none", "traffic.load_kbps": rate})
    point = operating_point(network_of(in_tables(scenario)))
    turns = point.links.turns
    service_s, load = float(turns.each[0]), float(turns.rate @ turns.each)
    waits = turns.before[0] + turns.waits(
        point.rate, np.zeros(count), np.full((count, 9), 1e9), steady=np.zeros(count, bool)
    ).sum(axis=0)
    assert waits == pytest.approx([load * service_s / (2.0 * (1.0 - load))] * count, rel=1e-6)


@pytest.mark.parametrize("windows", [(4, 22), (8, 8), (2, 16)])
def test_stations_of_unequal_windows_have_equal_shares(windows):
    """Nothing is random but the start: 1 and 2 % are for the time until windows are open."""
    senders = [
        flow(f"laptop-{2 * n + 1}", f"laptop-{2 * n + 2}", law="greedy", receive_window_segments=window)
        for n, window in enumerate(windows)
    ]
    solved, simulated = bt.solve(cell(*senders)), bt.simulate(cell(*senders))
    assert solved["goodput_kbps"].values == pytest.approx(
        simulated["goodput_kbps"].mean("replication").values, rel=0.01
    )
    assert solved["rtt_s"].values == pytest.approx(simulated["rtt_s"].mean("replication").values, rel=0.02)


def test_a_light_flow_does_not_wait_behind_the_queue_of_a_transfer():
    """It was 4.6 times too long. The doubt claims a third; 10 % were chosen after 0.3 % were seen."""
    scenario = cell(flow("laptop-1", "laptop-2"), flow("laptop-3", "laptop-4", law="greedy"))
    solved, simulated = bt.solve(scenario), bt.simulate(scenario)
    trips = simulated["rtt_s"].mean("replication").values
    assert solved["rtt_s"].values == pytest.approx(trips, rel=0.1)
    assert doubted(scenario, "the turns of other stations")


def test_segments_that_are_lost_on_their_way_take_no_turns():
    """Of the segments sent a half comes to the medium: its queues have half of the rate."""
    scenario = cell(
        flow("laptop-1", "laptop-2"),
        flow("laptop-2", "laptop-1"),
        **{"transport.protocol": "none", "traffic.load_kbps": 50.0},
    )
    laws = operating_point(network_of(in_tables(scenario))).links
    rate, none = np.full(2, 10.0), np.zeros(2)
    rates = []
    for share in (1.0, 0.5):
        laws.turns.update(rate, np.ones(2), none, np.full_like(laws.comes, share))
        rates.append(laws.turns.rate)
    assert (rates[0] > 0.0).all()
    assert rates[1] == pytest.approx(0.5 * rates[0])
