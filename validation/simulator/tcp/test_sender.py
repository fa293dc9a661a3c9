"""The NewReno sender as a textbook shows it: acknowledgements in, segments and windows out.

`recover` starts before the first segment, as RFC 6582 asks (section 3.2, step 1). Numbers count segments.
"""

import pytest
from tcp_sender_calls import MS

# ---------------------------------------------------------------- RFC 5681, section 3.1


def test_slow_start_sends_two_segments_for_each_ack(sender):
    tcp = sender()
    assert tcp.send() == [0]
    assert tcp.ack(1) == [1, 2]
    assert tcp.acks(2, 3) == [[3, 4], [5, 6]]
    assert tcp.acks(4, 5, 6, 7) == [[7, 8], [9, 10], [11, 12], [13, 14]]
    assert tcp.conn.cwnd == 8.0, "doubled in each of three round trips"


def test_congestion_avoidance_opens_by_about_one_segment_a_round_trip(sender):
    tcp = sender(cwnd=4.0, ssthresh=4.0, in_flight=4)
    assert tcp.acks(1, 2, 3, 4) == [[4], [5], [6], [7]]
    # just below 5, so that the fifth segment waits for one more acknowledgement
    window = 4.0
    for _ in range(4):
        window += 1 / window
    assert tcp.conn.cwnd == pytest.approx(window) == pytest.approx(4.92, abs=0.001)
    assert tcp.ack(5) == [8, 9]


def test_the_receive_window_limits_flight_but_not_cwnd(sender):
    tcp = sender(cwnd=8.0, rwnd=8)
    assert tcp.send() == list(range(8))
    assert tcp.ack(1) == [8], "one leaves, one enters"
    assert tcp.conn.cwnd == 9.0
    assert tcp.tcp.send_window(tcp.conn) == 8.0
    assert sender(cwnd=2.99).send() == [0, 1], "a fraction of a segment sends nothing"


# ---------------------------------------------------------------- RFC 6582, section 3.2


def test_the_third_duplicate_ack_starts_fast_retransmit(sender):
    # Segment 10 is lost, 11 to 17 arrive.
    tcp = sender(cwnd=8.0, snd_una=10, in_flight=8)
    assert tcp.acks(10, 10) == [[], []]
    assert not tcp.conn.in_recovery
    assert tcp.ack(10) == [10], "step 2: retransmit the lost segment"
    assert tcp.conn.in_recovery
    assert tcp.conn.ssthresh == 4.0, "half the flight"
    assert tcp.conn.cwnd == 7.0, "ssthresh and three for the segments that have left the network"
    assert tcp.conn.recover == 17, "the highest segment sent"
    assert tcp.statistics.fast_retransmits == 1


def test_further_duplicates_inflate_the_window_and_release_new_segments(sender):
    tcp = sender(cwnd=8.0, snd_una=10, in_flight=8)
    tcp.acks(10, 10, 10)
    assert tcp.acks(10, 10) == [[], [18]], "cwnd 8, then 9: room for a ninth segment"
    assert tcp.conn.cwnd == 9.0


def test_a_full_ack_deflates_to_ssthresh_and_ends_recovery(sender):
    tcp = sender(cwnd=8.0, snd_una=10, in_flight=8)
    tcp.acks(10, 10, 10, 10, 10, 10, 10)
    assert tcp.conn.snd_nxt == 21
    assert tcp.ack(18) == [21], "flight 3, window 4"
    assert not tcp.conn.in_recovery
    assert tcp.conn.cwnd == 4.0


def test_a_partial_ack_retransmits_the_next_hole_and_deflates(sender):
    # 10 and 13 are lost.
    tcp = sender(cwnd=8.0, snd_una=10, in_flight=8)
    tcp.acks(10, 10, 10, 10, 10, 10)
    assert (tcp.conn.cwnd, tcp.conn.snd_nxt) == (10.0, 20)
    assert tcp.ack(13) == [13, 20], "the hole at once, and one new segment"
    assert tcp.conn.cwnd == 10.0 - 3 + 1, "less what was acknowledged, and one more"
    assert tcp.conn.in_recovery
    assert tcp.statistics.fast_retransmits == 1
    tcp.ack(18)
    assert not tcp.conn.in_recovery


def test_the_ack_of_exactly_recover_is_still_partial(sender):
    tcp = sender(cwnd=8.0, snd_una=10, in_flight=8)
    tcp.acks(10, 10, 10)
    assert tcp.ack(17) == [17], "17 is the highest of before: it is itself missing"
    assert tcp.conn.cwnd == 7.0 - 7 + 1
    assert tcp.conn.in_recovery


def test_careful_variant_ignores_duplicates_of_go_back_n(sender):
    # After a timeout everything up to `recover` may be sent twice; the duplicates that this causes mean
    # nothing.
    tcp = sender(cwnd=8.0, snd_una=10, in_flight=8)
    assert tcp.timeout(3000) == [10]
    assert tcp.conn.recover == 17
    tcp.ack(11, at=3100)
    assert tcp.acks(11, 11, 11, at=3200) == [[], [], []]
    assert not tcp.conn.in_recovery
    assert tcp.statistics.fast_retransmits == 0


@pytest.mark.parametrize(("snd_una", "begins"), [(17, False), (18, False), (19, True)])
def test_careful_variant_demands_more_than_recover(sender, snd_una, begins):
    # "check ... whether the Cumulative Acknowledgment field covers more than recover" (step 1)
    tcp = sender(cwnd=8.0, snd_una=snd_una, in_flight=8)
    tcp.conn.recover = 17
    tcp.acks(snd_una, snd_una, snd_una)
    assert tcp.conn.in_recovery == begins


def test_an_old_ack_and_an_ack_with_nothing_outstanding_are_no_duplicates(sender):
    tcp = sender(cwnd=8.0, snd_una=10, in_flight=8)
    tcp.acks(9, 9, 9)
    assert tcp.conn.duplicate_acks == 0
    idle = sender(cwnd=8.0, snd_una=10, written=10)
    idle.acks(10, 10, 10)
    assert idle.conn.duplicate_acks == 0


# ---------------------------------------------------------------- RFC 5681, 3.1; RFC 6298, 5.4 to 5.7


def test_a_timeout_goes_back_to_the_first_unacknowledged_segment(sender):
    tcp = sender(cwnd=8.0, snd_una=10, in_flight=8)
    assert tcp.timeout(3000) == [10], "one segment, whatever was in flight"
    assert (tcp.conn.cwnd, tcp.conn.ssthresh) == (1.0, 4.0)
    assert tcp.conn.rto_deadline == (3000 + 6000) * MS, "restarted with the doubled timeout"
    assert tcp.ack(11, at=3100) == [11, 12], "slow start goes over the old flight again: go-back-N"
    assert tcp.ack(13, at=3200) == [13, 14, 15]
    assert tcp.statistics.timeouts == 1
    assert tcp.ack(18, at=3300) == [18, 19, 20, 21], "16 and 17 were only out of order: not sent again"


def test_a_timeout_ends_recovery_and_forgets_a_pending_retransmission(sender):
    tcp = sender(cwnd=8.0, snd_una=10, in_flight=8)
    tcp.acks(10, 10, 10)
    tcp.conn.retransmit = True
    assert tcp.timeout(4000) == [10]
    assert not tcp.conn.in_recovery
    assert tcp.conn.duplicate_acks == 0


def test_with_hold_ssthresh_a_segment_that_the_timer_sent_again_does_not_lower_it_further(sender):
    # RFC 5681, section 3.1: "the value of ssthresh is held constant"
    tcp = sender(cwnd=16.0, snd_una=10, in_flight=16, hold_ssthresh=True)
    tcp.timeout(3000)
    assert tcp.conn.ssthresh == 8.0
    tcp.timeout(9000)
    assert tcp.conn.ssthresh == 8.0
    tcp.ack(26, at=9100)
    tcp.acks(*range(27, 40), at=9200)
    flight = tcp.conn.snd_nxt - tcp.conn.snd_una
    tcp.timeout(20000)
    assert tcp.conn.ssthresh == flight / 2, "another segment, sent once"


# ---------------------------------------------------------------- Tahoe and Reno


def test_tahoe_starts_slowly_after_a_fast_retransmit(sender, plain):
    tcp = sender(cwnd=8.0, snd_una=10, in_flight=8, variant=plain.records.TAHOE)
    assert tcp.acks(10, 10, 10) == [[], [], [10]]
    assert (tcp.conn.cwnd, tcp.conn.ssthresh) == (1.0, 4.0)
    assert tcp.acks(10, 10) == [[], []], "no inflation"
    assert tcp.ack(18) == [18, 19], "what had arrived is not sent again"


def test_tahoe_ignores_the_duplicates_of_what_it_sends_twice(sender, plain):
    tcp = sender(cwnd=8.0, snd_una=10, in_flight=8, variant=plain.records.TAHOE)
    tcp.acks(10, 10, 10)
    assert tcp.ack(11) == [11, 12]
    assert tcp.acks(11, 11, 11) == [[], [], []]
    assert tcp.statistics.fast_retransmits == 1


def test_reno_leaves_recovery_at_the_first_new_acknowledgement(sender, plain):
    # 10 and 13 are lost
    tcp = sender(cwnd=8.0, snd_una=10, in_flight=8, variant=plain.records.RENO)
    tcp.acks(10, 10, 10, 10, 10, 10)
    assert tcp.ack(13) == [], "no retransmission of 13; flight 7, window 4"
    assert not tcp.conn.in_recovery
    assert tcp.conn.cwnd == 4.0
