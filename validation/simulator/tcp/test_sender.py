"""The TCP sender as a textbook shows it: acknowledgements in, segments and windows out.

`recover` starts before the first segment, as RFC 6582 asks (section 3.2, step 1). Numbers count segments.
"""

import pytest
from tcp_sender_calls import MS, Sender

from btqueue.simulator.records.connections import RENO, TAHOE

FLIGHT = {"cwnd": 8.0, "snd_una": 10, "in_flight": 8}
"""Segments 10 to 17 are under way."""
LIMITED = {"cwnd": 4.0, "snd_una": 10, "in_flight": 4, "limited_transmit": True}
SILENT = [[], [], []]

SCRIPTS = {
    # RFC 5681, section 3.1
    "slow start sends two segments for each ACK, and doubles in a round trip": (
        {"in_flight": 1},
        range(1, 8),
        [[1, 2], [3, 4], [5, 6], [7, 8], [9, 10], [11, 12], [13, 14]],
        {"cwnd": 8.0},
    ),
    # a window of 4.92 after four of them: the fifth segment waits for one more acknowledgement
    "congestion avoidance opens by about one segment a round trip": (
        {"cwnd": 4.0, "ssthresh": 4.0, "in_flight": 4},
        range(1, 6),
        [[4], [5], [6], [7], [8, 9]],
        {"cwnd": pytest.approx(5.12387, abs=1e-5)},
    ),
    "the receive window limits flight but not cwnd": (
        {"cwnd": 8.0, "rwnd": 8, "in_flight": 8},
        (1,),
        [[8]],
        {"cwnd": 9.0},
    ),
    # RFC 6582, section 3.2: segment 10 is lost, 11 to 17 arrive
    "the third duplicate starts a recovery, further ones inflate the window": (
        FLIGHT,
        [10] * 5,
        [[], [], [10], [], [18]],
        # half the flight; three for the segments that have left the network, and two more
        {"ssthresh": 4.0, "cwnd": 9.0, "recover": 17, "in_recovery": True, "fast_retransmits": 1},
    ),
    "a full ACK deflates to ssthresh and ends the recovery": (
        FLIGHT,
        [*[10] * 7, 18],
        [[], [], [10], [], [18], [19], [20], [21]],
        {"cwnd": 4.0, "in_recovery": False},
    ),
    # 13 is lost, too: a window of 10, less what was acknowledged, and one more
    "a partial ACK retransmits the next hole and deflates": (
        FLIGHT,
        [*[10] * 6, 13],
        [[], [], [10], [], [18], [19], [13, 20]],
        {"cwnd": 8.0, "in_recovery": True, "fast_retransmits": 1},
    ),
    "the ACK of exactly `recover` is still partial": (
        FLIGHT,
        (10, 10, 10, 17),
        [[], [], [10], [17]],
        {"cwnd": 1.0, "in_recovery": True},
    ),
    # "check ... whether the Cumulative Acknowledgment field covers more than recover" (step 1)
    "no recovery below `recover`": (FLIGHT | {"snd_una": 17, "recover": 17}, [17] * 3, SILENT, {}),
    "no recovery at `recover`": (FLIGHT | {"snd_una": 18, "recover": 17}, [18] * 3, SILENT, {}),
    "a recovery above `recover`": (
        FLIGHT | {"snd_una": 19, "recover": 17},
        [19] * 3,
        [[], [], [19]],
        {"in_recovery": True},
    ),
    "an old ACK is no duplicate": (FLIGHT, [9] * 3, SILENT, {"duplicate_acks": 0}),
    "with nothing outstanding there is no duplicate": (
        {"cwnd": 8.0, "snd_una": 10, "written": 10},
        [10] * 3,
        SILENT,
        {"duplicate_acks": 0},
    ),
    "Tahoe starts slowly, does not inflate, and does not send again what had arrived": (
        FLIGHT | {"variant": TAHOE},
        [*[10] * 5, 18],
        [[], [], [10], [], [], [18, 19]],
        {"cwnd": 2.0, "ssthresh": 4.0},
    ),
    "Tahoe ignores the duplicates of what it sends twice": (
        FLIGHT | {"variant": TAHOE},
        [*[10] * 3, *[11] * 4],
        [[], [], [10], [11, 12], *SILENT],
        {"fast_retransmits": 1},
    ),
    # 10 and 13 are lost: no retransmission of 13; flight 7, window 4
    "Reno leaves the recovery at the first new ACK": (
        FLIGHT | {"variant": RENO},
        [*[10] * 6, 13],
        [[], [], [10], [], [18], [19], []],
        {"cwnd": 4.0, "in_recovery": False},
    ),
    # RFC 3042; 18 and 19 are left out of the flight (RFC 5681, section 3.2, step 2)
    "limited transmit sends a segment for each of the first two duplicates": (
        FLIGHT | {"limited_transmit": True},
        [10] * 3,
        [[18], [19], [10]],
        {"cwnd": 7.0, "ssthresh": 4.0},
    ),
    "limited transmit lets a small window recover without a timeout": (
        LIMITED | {"cwnd": 2.0, "ssthresh": 2.0, "in_flight": 2},
        [10] * 3,
        [[12], [13], [10, 14]],
        {"ssthresh": 2.0},
    ),
    "limited transmit respects the receive window": (LIMITED | {"rwnd": 4}, (10,), [[]], {}),
    "limited transmit respects the application": (LIMITED | {"written": 14}, (10,), [[]], {}),
}


@pytest.mark.parametrize(("state", "acks", "sent", "after"), SCRIPTS.values(), ids=SCRIPTS)
def test_what_acknowledgements_send_and_leave(plain, state, acks, sent, after):
    tcp = Sender(plain, **state)
    assert tcp.acks(*acks) == sent
    for name, value in after.items():
        assert getattr(tcp.conn if name in tcp.conn.dtype.names else tcp.statistics, name) == value, name


@pytest.mark.parametrize(
    ("option", "state", "numbers", "cwnd"),
    [
        # growth only when the window limits, and in slow start when more than half of it is used
        ("window_limited_growth", {"cwnd": 8.0, "ssthresh": 4.0, "rwnd": 4, "in_flight": 4}, (1, 2, 3), 8.0),
        ("window_limited_growth", {"cwnd": 4.0, "ssthresh": 4.0, "in_flight": 4}, (1,), 4.25),
        ("window_limited_growth", {"cwnd": 8.0, "in_flight": 4}, (1,), 8.0),
        ("window_limited_growth", {"cwnd": 8.0, "in_flight": 5}, (1,), 9.0),
        # one for each segment that has arrived, and slow start ends at ssthresh
        ("byte_counting", {"cwnd": 4.0, "in_flight": 4}, (4,), 8.0),
        ("byte_counting", {"cwnd": 4.0, "ssthresh": 6.0, "in_flight": 4}, (4,), 6.0),
        # whole segments in congestion avoidance: after 4, then after 5 more
        ("byte_counting", {"cwnd": 4.0, "ssthresh": 4.0, "in_flight": 4}, (1, 2, 3), 4.0),
        ("byte_counting", {"cwnd": 4.0, "ssthresh": 4.0, "in_flight": 4}, (1, 2, 3, 4, 6, 8), 5.0),
        ("byte_counting", {"cwnd": 4.0, "ssthresh": 4.0, "in_flight": 4}, (1, 2, 3, 4, 6, 8, 9), 6.0),
        # the acknowledgement that ends recovery opens the window, the third duplicate counts once
        ("recovery_exit_grows", FLIGHT, (10, 10, 10, 18), 4.0 + 1 / 4),
        ("inflate_by_one", FLIGHT, (10, 10, 10), 4.0 + 1),
    ],
)
def test_how_far_rules_of_linux_and_ns3_open_the_window(plain, option, state, numbers, cwnd):
    tcp = Sender(plain, **state, **{option: True})
    tcp.acks(*numbers)
    assert tcp.conn.cwnd == cwnd


@pytest.mark.parametrize(("reduction", "ssthresh"), [(0, 4.0), (1, 5.0), (2, 3.5), (3, 9.0)])
def test_the_rule_that_reduces_ssthresh_is_a_setting(plain, reduction, ssthresh):
    # flight 8, cwnd 10; by the third duplicate one segment counts as departed
    tcp = Sender(plain, cwnd=10.0, rwnd=8, snd_una=10, in_flight=8, ssthresh_rule=reduction)
    tcp.acks(10, 10, 10)
    assert tcp.conn.ssthresh == ssthresh


def test_a_timeout_goes_back_to_the_first_unacknowledged_segment(plain):
    tcp = Sender(plain, **FLIGHT)
    tcp.acks(10, 10, 10)
    assert tcp.timeout(3000) == [10], "one segment, whatever was in flight"
    assert (tcp.conn.cwnd, tcp.conn.ssthresh, tcp.conn.in_recovery) == (1.0, 4.0, False)
    assert tcp.conn.rto_deadline == (3000 + 6000) * MS, "restarted with the doubled timeout"
    assert tcp.ack(11, at=3100) == [11, 12], "slow start goes over the old flight again: go-back-N"
    assert tcp.acks(11, 11, 11, at=3150) == SILENT, "duplicates of what may be sent twice mean nothing"
    assert tcp.ack(13, at=3200) == [13, 14, 15]
    assert (tcp.statistics.timeouts, tcp.statistics.fast_retransmits) == (1, 1)
    assert tcp.ack(18, at=3300) == [18, 19, 20, 21], "16 and 17 were only out of order: not sent again"


def test_with_hold_ssthresh_a_segment_that_the_timer_sent_again_does_not_lower_it_further(plain):
    # RFC 5681, section 3.1: "the value of ssthresh is held constant"
    tcp = Sender(plain, cwnd=16.0, snd_una=10, in_flight=16, hold_ssthresh=True)
    for at in (3000, 9000):
        tcp.timeout(at)
        assert tcp.conn.ssthresh == 8.0
    tcp.acks(*range(26, 40), at=9200)
    flight = tcp.conn.snd_nxt - tcp.conn.snd_una
    tcp.timeout(20000)
    assert tcp.conn.ssthresh == flight / 2, "another segment, sent once"


def test_an_acknowledgement_on_data_is_no_duplicate(plain):
    # RFC 5681, section 2: "(b) the incoming acknowledgment carries no data"
    tcp = Sender(plain, **FLIGHT)
    for _ in range(4):
        tcp.ack(10, kind=plain.records.DATA)
    assert tcp.conn.duplicate_acks == tcp.statistics.duplicate_acks_received == 0
    tcp.ack(11, kind=plain.records.DATA)
    assert tcp.conn.snd_una == 11


def test_round_trip_times_are_taken_from_echoed_timestamps_and_their_spread_is_kept(plain):
    tcp = Sender(plain, cwnd=8.0, in_flight=8)
    for number, echo in enumerate((10, 60, 30), start=1):
        tcp.ack(number, at=200, echo=echo)
    tcp.ack(3, at=210, echo=30)
    statistics = tcp.statistics
    assert statistics.rtt_samples == 3, "a duplicate gives no sample (RFC 7323, section 4.1)"
    assert statistics.rtt_sum == (190 + 140 + 170) * MS
    assert (statistics.rtt_least, statistics.rtt_most) == (140 * MS, 190 * MS)
    assert statistics.rtt_squares == (190**2 + 140**2 + 170**2) * float(MS) ** 2
    assert tcp.histogram.sum() == 3
