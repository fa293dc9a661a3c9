"""Limits of the simulator that can be worked out slot by slot, with paper and pencil."""

import pytest

from btqueue.scenario import Scenario
from btqueue.simulator.construction.state import new_state
from btqueue.simulator.engine import advance
from btqueue.simulator.records.conventions import SLOT
from btqueue.simulator.records.run import ARRIVAL
from btqueue.simulator.replications import simulate

SHORT = {"run__duration_s": 20, "run__warmup_s": 5, "run__replications": 3}


def test_with_places_for_one_packet_no_segment_of_five_gets_through():
    # Tokens for all five are there at first, the uplink queue holds one: four are lost, again and again.
    result = simulate(
        Scenario().with_(**SHORT, flow_control__buffer_packets=1, flow_control__baseband_packets=1)
    )
    assert not result.goodput_kbps.any()
    assert (result.loss_baseband_buffer > 0.5).all()


def test_the_round_trip_of_a_lone_segment():
    """Count slots from T, the end of the first POLL that finds the segment (polls come every 4 slots).

    Up: 5 packets in 5 frames, DH5 POLL DH5 POLL DH5 POLL DH5 POLL DH3, end at T + 27 and with them the visit.
    Down: 5 frames with NULL between, last packet received at T + 54; NULL and the end of the visit at T + 55.
    Back: POLL NULL at the source to T + 57, POLL to T + 58, the acknowledgement up to T + 61, POLL NULL to T
    + 63, the acknowledgement down to T + 66.
    """
    scenario = Scenario().with_(traffic__load_kbps=0.05)
    checked = 0
    for replication in range(40):
        sim = new_state(scenario, replication)
        arrivals = sim.timers.due[sim.timers.kind == ARRIVAL]
        flow = int(arrivals.argmin())
        written = int(arrivals[flow])
        poll_ends = 1 + 2 * flow  # slots, modulo 4
        T = written + (poll_ends * SLOT - written) % (4 * SLOT)
        end = T + 66 * SLOT
        if end >= arrivals.max():
            continue  # the other source comes between
        advance(sim, end - 1)
        assert sim.flow_statistics[flow].rtt_samples == 0
        advance(sim, end)
        assert sim.flow_statistics[flow].rtt_samples == 1
        assert sim.flow_statistics[flow].rtt_sum == end - written
        checked += 1
    assert checked > 30


def test_greedy_connections_share_the_slots_to_the_last_one():
    """A segment and its acknowledgement take 52 slots on each of 2 connections; 8 segments are in flight."""
    scenario = Scenario().with_(
        traffic__source="greedy",
        flow_control__enabled=False,
        flow_control__buffer_packets=1000,
        flow_control__baseband_packets=1000,
    )
    result = simulate(scenario.with_(run__replications=1, run__intervals="replications"))
    pair = 2 * 52 * 625e-6
    # 480 s are no whole number of segments, nor of the rounds of 8 in which single round trips differ:
    # one segment more or less, and one round trip in all of the 7,384 that may be off by as much as itself.
    assert result.rtt_s.values == pytest.approx(8 * pair, rel=1 / 7384)
    assert result.goodput_kbps.values == pytest.approx(11.68 / pair, abs=11.68 / 480)
    assert float(result.goodput_kbps.mean()) == pytest.approx(179.68, abs=0.005)


@pytest.mark.parametrize("window", [1, 2, 4])
def test_a_small_window_gives_window_over_round_trip(window):
    # Little's law of a connection that always has data and loses nothing.
    scenario = Scenario().with_(
        **SHORT,
        traffic__source="greedy",
        transport__receive_window_segments=window,
        transport__initial_ssthresh_segments=2,
    )
    result = simulate(scenario)
    product = result.goodput_kbps.values / 11.68 * result.rtt_s.values
    assert product == pytest.approx(window, rel=0.01)
