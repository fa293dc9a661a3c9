"""Limits of the simulator that can be worked out slot by slot, with paper and pencil."""

import numpy as np
import pytest
from thesis import thesis

from btqueue.simulator.construction.state import new_state
from btqueue.simulator.engine import advance
from btqueue.simulator.records.conventions import SECOND, SLOT
from btqueue.simulator.records.run import ARRIVAL
from btqueue.simulator.replications import simulate

SHORT = {"run__duration_s": 20, "run__warmup_s": 5, "run__replications": 3}


LATE = {"transport__delayed_ack": True, "transport__ack_delay_s": 0.2005}


@pytest.mark.parametrize(("changes", "slots"), [({}, 66), (LATE, 386)], ids=["at once", "late"])
def test_the_round_trip_of_a_lone_segment(changes, slots):
    """Count slots from T, the end of the first POLL that finds the segment (polls come every 4 slots).

    Up: 5 packets in 5 frames, DH5 POLL DH5 POLL DH5 POLL DH5 POLL DH3, end at T + 27 and with them the visit.
    Down: 5 frames with NULL between, last packet received at T + 54; NULL and the end of the visit at T + 55.
    Back: POLL NULL at the source to T + 57, POLL to T + 58, the acknowledgement up to T + 61, POLL NULL to T
    + 63, the acknowledgement down to T + 66.

    Acknowledged late: as above up to T + 54, then 0.2005 s or 320.8 slots: T + 374.8. The receiver is polled
    every 4 slots, its POLLs end at T + 58, ..., T + 378: the acknowledgement is up at T + 381, POLL NULL to T
    + 383, and down at T + 386.
    """
    scenario = thesis().with_(traffic__load_kbps=0.05, **changes)
    checked = 0
    for replication in range(40):
        sim = new_state(scenario, replication)
        arrivals = sim.timers.due[sim.timers.kind == ARRIVAL]
        flow = int(arrivals.argmin())
        written = int(arrivals[flow])
        poll_ends = 1 + 2 * flow  # slots, modulo 4
        T = written + (poll_ends * SLOT - written) % (4 * SLOT)
        end = T + slots * SLOT
        if end >= arrivals.max():
            continue  # the other source comes between
        advance(sim, end - 1)
        assert sim.flow_statistics[flow].rtt_samples == 0
        advance(sim, end)
        assert sim.flow_statistics[flow].rtt_samples == 1
        assert sim.flow_statistics[flow].rtt_sum == end - written
        checked += 1
    assert checked > 30


@pytest.mark.parametrize(("segments", "acknowledgements"), [(1, 1), (2, 1), (3, 2), (4, 2)])
def test_every_second_segment_and_the_last_are_acknowledged_once(segments, acknowledgements):
    """RFC 5681, section 4.2: what a second segment has forced out is not sent again at the deadline."""
    scenario = thesis().with_(
        traffic__source="periodic",
        traffic__message_bytes=1460 * segments,
        traffic__load_kbps=0.5 * segments,
        transport__initial_window_segments=4,
        transport__delayed_ack=True,
        flow_control__enabled=False,
        flow_control__baseband_packets=1000,
    )
    sim = new_state(scenario, 0)
    advance(sim, 400 * SECOND)
    count = sim.flow_statistics
    assert count.messages.min() >= 400 // 24
    assert (count.messages_acknowledged == count.messages).all()
    assert (count.acks_sent == acknowledgements * count.messages).all()


@pytest.mark.parametrize("delayed", [False, True])
def test_where_nothing_is_lost_karns_rule_times_what_time_stamps_time(delayed):
    """The oldest segment acknowledged: its time stamp is echoed (RFC 7323, 4.3), its departure is noted."""
    scenario = thesis().with_(
        **SHORT,
        traffic__load_kbps=30,
        transport__delayed_ack=delayed,
        transport__receive_window_segments=3,
        flow_control__buffer_packets=100,
        flow_control__baseband_packets=100,
    )
    stamped, karn = (simulate(scenario.with_(transport__timestamps=one)) for one in (True, False))
    assert not stamped.timeouts_per_s.any()
    assert stamped.rtt_s.min() > 0
    for name in stamped.data_vars:
        np.testing.assert_array_equal(stamped[name], karn[name], err_msg=str(name))


def test_greedy_connections_share_the_slots_to_the_last_one():
    """A segment and its acknowledgement take 52 slots on each of 2 connections; 8 segments are in flight."""
    scenario = thesis().with_(
        traffic__source="greedy",
        flow_control__enabled=False,
        flow_control__buffer_packets=1000,
        flow_control__baseband_packets=1000,
    )
    result = simulate(scenario.with_(run__replications=1))
    pair = 2 * 52 * 625e-6
    # 480 s are no whole number of segments, nor of the rounds of 8 in which single round trips differ:
    # one segment more or less, and one round trip in all of the 7,384 that may be off by as much as itself.
    assert result.rtt_s.values == pytest.approx(8 * pair, rel=1 / 7384)
    assert result.goodput_kbps.values == pytest.approx(11.68 / pair, abs=11.68 / 480)
    assert float(result.goodput_kbps.mean()) == pytest.approx(179.68, abs=0.005)
