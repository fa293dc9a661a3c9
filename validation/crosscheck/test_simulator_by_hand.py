"""The simulator in networks that can be worked out slot by slot, with paper and pencil."""

import numpy as np
import pytest
from thesis import over_wires, thesis, thesis_of
from whole_network import go_on, play

from btqueue.simulator.construction.state import new_state
from btqueue.simulator.engine import advance
from btqueue.simulator.records.conventions import SECOND, SLOT
from btqueue.simulator.records.run import ARRIVAL
from btqueue.simulator.replications import simulate

SHORT = {"run__duration_s": 20, "run__warmup_s": 5, "run__replications": 3}
ACKNOWLEDGED_LATE = {"transport__delayed_ack": True, "transport__ack_delay_s": 0.2005}


@pytest.mark.parametrize(("changes", "slots"), [({}, 66), (ACKNOWLEDGED_LATE, 386)], ids=["at once", "late"])
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
        written_at = sim.timers.due[sim.timers.kind == ARRIVAL]
        flow = int(written_at.argmin())
        written = int(written_at[flow])
        poll_ends = 1 + 2 * flow  # slots, modulo 4
        T = written + (poll_ends * SLOT - written) % (4 * SLOT)
        end = T + slots * SLOT
        if end >= written_at.max():
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
    scenario = thesis(
        traffic={"source": "periodic", "message_bytes": 1460 * segments, "load_kbps": 0.5 * segments},
        transport={"initial_window_segments": 4, "delayed_ack": True},
        flow_control={"enabled": False, "baseband_packets": 1000},
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
    buffers = {"flow_control__buffer_packets": 100, "flow_control__baseband_packets": 100}
    keys = {"transport__delayed_ack": delayed, "transport__receive_window_segments": 3}
    scenario = thesis().with_(**SHORT, traffic__load_kbps=30, **keys, **buffers)
    stamped, karn = (simulate(scenario.with_(transport__timestamps=one)) for one in (True, False))
    assert not stamped.timeouts_per_s.any()
    assert stamped.rtt_s.min() > 0
    for name in stamped.data_vars:
        np.testing.assert_array_equal(stamped[name], karn[name], err_msg=str(name))


def test_greedy_connections_share_the_slots_to_the_last_one():
    """A segment and its acknowledgement take 52 slots on each of 2 connections; 8 segments are in flight."""
    buffers = {"enabled": False, "buffer_packets": 1000, "baseband_packets": 1000}
    result = simulate(thesis(traffic={"source": "greedy"}, flow_control=buffers, run={"replications": 1}))
    pair = 2 * 52 * 625e-6
    # 480 s are no whole number of segments, nor of the rounds of 8 in which single round trips differ:
    # one segment more or less, and one round trip in all of the 7,384 that may be off by as much as itself.
    assert result.rtt_s.values == pytest.approx(8 * pair, rel=1 / 7384)
    assert result.goodput_kbps.values == pytest.approx(11.68 / pair, abs=11.68 / 480)
    assert float(result.goodput_kbps.mean()) == pytest.approx(179.68, abs=0.005)


# ------------------------------------------------------------------------------ parts of a network


DATAGRAMS = {"transport__protocol": "none", "link__packets": ["DH5"], "link__l2cap_header_bytes": 0}


def arrivals(tmp_path, *lines):
    """Write an arrival file of these (time in s, bytes) and return the settings that use it."""
    file = tmp_path / "arrivals.txt"
    file.write_text("\n".join(f"{time} {size}" for time, size in lines))
    return {"traffic__source": "file", "traffic__arrival_file": str(file)}


def delivery_times(scenario, until_s=1.0):
    """Return when each segment of flow 0 was delivered in order (ns), event by event."""
    times, seen = [], 0
    with np.errstate(over="ignore"):
        sim = new_state(scenario, 0)
        while (now := int(sim.timers.due.min())) < until_s * SECOND:
            sim = go_on(sim, now)
            delivered = int(sim.flow_statistics[0].delivered_in_order)
            times += [now] * (delivered - seen)
            seen = delivered
    return times


# -------------------------------------------------------------------------------------------------------- ARQ


def lone_packet(tmp_path, **changes):
    """A datagram that fits into two DH1, from the peripheral to the central, there from the start."""
    return thesis().with_(
        network__peripherals=1,
        network__flows=[{"from": "p1.1", "to": "c1"}],
        flow_control__enabled=False,
        **arrivals(tmp_path, (0.0, 1)),
        **{**DATAGRAMS, "link__packets": ["DH1"], "link__arq": "unlimited", **changes},
    )


def test_each_error_costs_exactly_one_frame_more(tmp_path):
    """A packet that is hit is sent again in the next frame: POLL and DH1, two slots later.

    28 bytes of UDP and IP and one of data are two packets: without an error POLL and DH1, POLL and DH1.
    """
    scenario = lone_packet(tmp_path, radio__model="constant", radio__per=0.5)
    seen = set()
    for seed in range(20):
        times = delivery_times(scenario.with_(run__seed=seed), until_s=0.1)
        sim = play(scenario.with_(run__seed=seed), 0.1)
        errors = int(sim.flow_statistics[0].transmissions) - 2
        # POLL and NULL have no payload of their own; a lost POLL does not matter to this model
        assert times == [(4 + 2 * errors) * SLOT]
        seen.add(errors)
    assert {0, 1, 2} <= seen


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_the_limit_counts_all_transmissions(tmp_path, limit):
    scenario = lone_packet(tmp_path, radio__model="constant", radio__per=1.0).with_(link__arq=limit)
    count = play(scenario, 1.0).flow_statistics[0]
    # the second packet of the segment is given up with the first
    assert (count.transmissions, count.given_up, count.segments_damaged) == (limit, 2, 1)


# ---------------------------------------------------------------------------------------------- outside links


LAN = {"name": "lan", "from": "c1", "to": "h", "rate_kbps": 8000.0, "delay_s": 0.003, "header_bytes": 60}
LAN |= {"half_duplex": False}


def over_lan(tmp_path, *lines, flow=("c1", "h"), link=LAN, **changes):
    """These arrivals of a flow over the link, without tokens."""
    source, target = flow
    common = {"network__outside_links": [link], "network__flows": [{"from": source, "to": target}]}
    common |= {"flow_control__enabled": False, **arrivals(tmp_path, *lines)}
    return thesis().with_(**common | changes)


def test_ten_segments_through_a_wired_link(tmp_path):
    """1500 bytes with their header take 1.5 ms at 8 Mbit/s, 3 ms on the way; the window is never full.

    An acknowledgement is 40 + 60 bytes, 0.1 ms. Slow start from one segment (T = 1.5 ms): the first arrives
    at T + 3 ms, its acknowledgement at T + 6.1 ms; then two leave, and so on; in each later round they come
    T apart, and so do their acknowledgements, which is less than the 7.6 ms of the round trip: rounds of 1,
    2 and 4 segments, then three of the eight that the window would allow.
    """
    keys = {"transport__mss_bytes": 1400, "transport__receive_window_segments": 20}
    scenario = over_lan(tmp_path, (0.0, 14_000), **keys)
    transmission, way, ack = 1_500_000, 3_000_000, 100_000
    round_trip = transmission + way + ack + way
    expected = []
    for number, segments in enumerate((1, 2, 4, 3)):
        first = number * round_trip + transmission + way
        expected += [first + place * transmission for place in range(segments)]
    assert delivery_times(scenario) == expected


def test_the_directions_of_a_half_duplex_link_take_turns(tmp_path):
    """The next transmission is chosen at the end of the last, before what that brought is answered.

    Segments (1.5 ms) 0 and 1 go first, to 1.5 and 3.0 ms. The acknowledgement of 0 (0.1 ms) waits since 1.5,
    to 3.1; that of 1 since 3.0, to 3.2. Segment 2 was made at 3.1, to 4.7; segment 3 at 3.2: when 2 ends it
    alone is waiting: to 6.2 ms.
    """
    link = LAN | {"half_duplex": True, "delay_s": 0.0}
    windows = {"transport__initial_window_segments": 2, "transport__receive_window_segments": 2}
    scenario = over_lan(tmp_path, (0.0, 1400 * 4), link=link, transport__mss_bytes=1400, **windows)
    assert delivery_times(scenario) == [1_500_000, 3_000_000, 4_700_000, 6_200_000]


def test_a_gateway_hands_segments_on_when_they_are_whole(tmp_path):
    """Up: DH5 in 5 frames of 6 slots less the last one's, then the wire; nothing is cut through."""
    scenario = over_lan(tmp_path, (0.0, 1460), flow=("p1.1", "h"), network__peripherals=1, **DATAGRAMS)
    # 1488 bytes are 5 DH5, each after a POLL: 30 slots; then 1548 bytes at 8 Mbit/s and 3 ms
    assert delivery_times(scenario) == [30 * SLOT + 1_548_000 + 3_000_000]


# ----------------------------------------------------------------------------------------------------- chains


@pytest.mark.parametrize("packets", [1, 3])
def test_a_chain_of_two_hops_puts_a_segment_together_before_it_goes_on(tmp_path, packets):
    """n0 is polled first and needs a frame of 6 slots for each DH5; then the central sends to n2.

    The visit to n0 ends with the limit or with POLL and NULL; the downlink packet to n2 comes next. Its first
    packet is then on the air for 5 slots, and each further one follows after the NULL of n2.
    """
    chain = {"network__topology": "chain", "network__hops": 2, "flow_control__enabled": False}
    keys = {**DATAGRAMS, **arrivals(tmp_path, (0.0, 339 * packets - 28)), "polling__limit": 5}
    scenario = thesis().with_(**chain, **keys)
    up = 6 * packets
    idle = 2  # POLL and NULL end the visit to n0
    down = 6 * (packets - 1) + 5
    assert delivery_times(scenario) == [(up + idle + down) * SLOT]


# ------------------------------------------------------------------------------------------- acknowledgements


FAR = LAN | {"delay_s": 0.01}


def test_data_that_come_before_the_delayed_acknowledgement_carry_it(tmp_path):
    """Segments that both hosts write at the same times cross; the next one, 0.1 s later, carries the ACK.

    An acknowledgement may wait 0.2 s, so that only the last of ten finds no data to ride. (With Nagle's
    algorithm, or from a window of one segment, both ends would wait for each other's acknowledgement.)
    """
    keys = {"delayed_ack": True, "piggyback": True, "nagle": False, "initial_window_segments": 4}
    keys = {f"transport__{key}": value for key, value in keys.items()}
    both = [(0.1 * k, 1000) for k in range(10)]
    scenario = over_lan(tmp_path, *both, link=FAR, traffic__two_way=True, **keys)
    count = play(scenario, 2.0).flow_statistics
    assert count.acks_piggybacked.tolist() == [9, 9]
    assert count.acks_sent.tolist() == [1, 1]
    assert count.timeouts.tolist() == [0, 0]


def test_the_acknowledgement_leaves_at_the_tick_of_the_receivers_clock(tmp_path):
    """A segment over a wire of 10 ms, with delayed acknowledgements."""
    period, way, waits = round(0.2 * SECOND), round(0.01 * SECOND), set()
    keys = {"transport__delayed_ack": True, "transport__ack_clock": "tick"}
    scenario = over_lan(tmp_path, (0.0, 1000), link=FAR, transport__initial_window_segments=4, **keys)
    for replication in range(5):
        sim = play(scenario, 1.0, replication=replication)
        assert sim.flow_statistics[0].rtt_samples == 1
        # 1000 + 40 + 60 bytes, and 40 + 60, at 1 byte a microsecond
        arrived, left_at = 1_100_000 + way, int(sim.flow_statistics[0].rtt_sum) - 100_000 - way
        assert left_at % period == sim.connections[0].tick_phase
        assert arrived < left_at <= arrived + period
        waits.add(left_at - arrived)
    assert len(waits) == 5, "every run has a clock of its own"


# ---------------------------------------------------------------------------------------------- token buckets


def test_a_gateway_charges_tokens_for_what_it_sends_on(tmp_path):
    """From the wire into the piconet: the bucket holds 678 bytes, two DH5.

    The 339 tokens of a further one take 80 ms at 33.9 kbit/s. Of four packets two pass at once, one after 80
    ms, one after 160 ms. By then the central is idle: POLL and NULL in turn, so that the last packet goes out
    at the next even slot and takes five.
    """
    tokens = {"enabled": True, "token_rate_kbps": 33.9, "bucket_bytes": 678}
    keys = {"network__peripherals": 1, **{f"flow_control__{key}": value for key, value in tokens.items()}}
    link = LAN | {"delay_s": 0.0, "header_bytes": 0}
    scenario = over_lan(tmp_path, (0.0, 339 * 4 - 28), flow=("h", "p1.1"), link=link, **DATAGRAMS, **keys)
    released = 339 * 4 * 1000 + 160_000_000
    starts = -(-released // (2 * SLOT)) * 2 * SLOT
    assert delivery_times(scenario) == [starts + 5 * SLOT]


@pytest.mark.parametrize(("handshake", "trips"), [(False, 0), (True, 1)])
def test_a_handshake_takes_a_round_trip_and_is_the_first_that_is_measured(handshake, trips):
    """1000 kbit/s, 50 ms each way: 1 ms a kilobit; SYN and SYN-ACK have 42 bytes, data 1002."""
    link = {"name": "w", "from": "a", "to": "b", "kind": "wired", "rate_kbps": 1000, "delay_s": 0.05}
    scenario = thesis_of(
        {
            "network": over_wires({**link, "header_bytes": 2}),
            "traffic": {"source": "greedy"},
            "transport": {"handshake": handshake, "mss_bytes": 960, "initial_window_segments": 2},
            "run": {"warmup_s": 0},
        }
    )
    opening_s, data_s = trips * 2 * (0.05 + 42 * 8e-6), 0.05 + 1002 * 8e-6
    comes_s = opening_s + data_s
    sim = play(scenario, comes_s - 1e-6)
    assert sim.flow_statistics[0].delivered_in_order == 0
    sim = go_on(sim, (comes_s + 1e-6) * SECOND)
    statistics, conn = sim.flow_statistics[0], sim.connections[0]
    assert statistics.delivered_in_order == 1
    assert bool(conn.measured) == handshake
    if handshake:
        assert conn.srtt == pytest.approx(opening_s * SECOND)
        assert (statistics.connects, statistics.connect_time_sum) == (1, round(opening_s * SECOND))
