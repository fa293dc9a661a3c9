"""The NewReno sender as a textbook shows it: acknowledgements in, segments and windows out.

`recover` starts before the first segment, as RFC 6582 asks (section 3.2, step 1). Numbers count segments.
"""

import numpy as np
import pytest

MS = 1_000_000
SECOND = 1000 * MS


RING = 128


class Sender:
    """A connection with its statistics; every call happens at a given millisecond."""

    def __init__(
        self, plain, *, written=1000, cwnd=1.0, ssthresh=64.0, rwnd=64, snd_una=0, in_flight=0, **options
    ):
        self.tcp = plain.sender
        self.records = plain.records
        self.conn = np.zeros(1, plain.records.connection_dtype).view(np.recarray)[0]
        self.statistics = np.zeros(1, plain.records.flow_statistics_dtype).view(np.recarray)[0]
        self.board, self.sent_at = np.zeros(RING, np.uint8), np.zeros(RING, np.int64)
        self.histogram = np.zeros(plain.histograms.BINS, np.int64)
        conn = self.conn
        conn.variant, conn.timestamps, conn.backoff = plain.records.NEWRENO, True, True
        conn.written, conn.cwnd, conn.ssthresh, conn.rwnd = written, cwnd, ssthresh, rwnd
        conn.snd_una, conn.snd_nxt, conn.snd_max = snd_una, snd_una + in_flight, snd_una + in_flight
        conn.recover = -1
        conn.rto, conn.min_rto, conn.max_rto = 3 * SECOND, SECOND, 64 * SECOND
        conn.rto_deadline = 3 * SECOND if in_flight else plain.records.NEVER
        for name, value in options.items():
            setattr(conn, name, value)

    def send(self, at=0):
        """Send all that may be sent; return the numbers of the segments."""
        sent = []
        while True:
            number = self.tcp.next_segment(self.conn, self.board, self.sent_at, self.statistics, at * MS)
            if number == self.records.NOTHING:
                return sent
            sent.append(int(number))

    def ack(self, number, at=100, echo=0, blocks=(), kind=None):
        """Receive an acknowledgement that asks for `number`, then send; return what was sent."""
        segment = np.zeros(1, self.records.segment_dtype).view(np.recarray)[0]
        segment.kind = self.records.ACK if kind is None else kind
        segment.ack, segment.echo, segment.blocks = number, echo * MS, len(blocks)
        for place, (start, end) in enumerate(blocks):
            segment.block_start[place], segment.block_end[place] = start, end
        self.tcp.on_ack(
            self.conn, self.board, self.sent_at, self.statistics, self.histogram, segment, at * MS
        )
        return self.send(at)

    def acks(self, *numbers, at=100):
        return [self.ack(number, at) for number in numbers]

    def timeout(self, at):
        self.tcp.on_timeout(self.conn, self.board, self.statistics, at * MS)
        return self.send(at)


@pytest.fixture
def sender(plain):
    return lambda **state: Sender(plain, **state)


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


def test_slow_start_ends_at_ssthresh(sender):
    tcp = sender(cwnd=3.0, ssthresh=4.0, in_flight=3)
    tcp.ack(1)
    assert tcp.conn.cwnd == 4.0
    tcp.ack(2)
    assert tcp.conn.cwnd == 4.25


def test_one_ack_for_several_segments_opens_the_window_once(sender):
    tcp = sender(cwnd=4.0, in_flight=4)
    tcp.ack(4)
    assert tcp.conn.cwnd == 5.0


def test_the_receive_window_limits_flight_but_not_cwnd(sender):
    tcp = sender(cwnd=8.0, rwnd=8)
    assert tcp.send() == list(range(8))
    assert tcp.ack(1) == [8], "one leaves, one enters"
    assert tcp.conn.cwnd == 9.0
    assert tcp.tcp.send_window(tcp.conn) == 8.0


def test_a_fraction_of_a_segment_in_the_window_sends_nothing(sender):
    tcp = sender(cwnd=2.99)
    assert tcp.send() == [0, 1]


def test_only_what_the_application_has_written_is_sent(sender):
    tcp = sender(cwnd=8.0, written=3)
    assert tcp.send() == [0, 1, 2]
    assert tcp.acks(1, 2, 3) == [[], [], []]
    tcp.conn.written = 4
    assert tcp.send(200) == [3]


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


def test_ssthresh_is_at_least_two(sender):
    tcp = sender(cwnd=3.0, snd_una=10, in_flight=3)
    tcp.acks(10, 10, 10)
    assert tcp.conn.ssthresh == 2.0


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


def test_careful_variant_demands_more_than_recover(sender):
    # "check ... whether the Cumulative Acknowledgment field covers more than recover" (step 1)
    def third_duplicate(snd_una):
        tcp = sender(cwnd=8.0, snd_una=snd_una, in_flight=8)
        tcp.conn.recover = 17
        tcp.acks(snd_una, snd_una, snd_una)
        return bool(tcp.conn.in_recovery)

    assert [third_duplicate(snd_una) for snd_una in (17, 18, 19)] == [False, False, True]


def test_duplicates_count_again_from_zero_after_new_data(sender):
    tcp = sender(cwnd=8.0, snd_una=10, in_flight=8)
    tcp.acks(10, 10, 11, 11, 11)
    assert not tcp.conn.in_recovery
    tcp.ack(11)
    assert tcp.conn.in_recovery


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


def test_go_back_n_jumps_over_what_the_receiver_already_has(sender):
    tcp = sender(cwnd=8.0, snd_una=10, in_flight=8)
    tcp.timeout(3000)
    assert tcp.ack(18, at=3100) == [18, 19], "11 to 17 were only out of order: not sent again"


def test_a_timeout_ends_recovery_and_forgets_a_pending_retransmission(sender):
    tcp = sender(cwnd=8.0, snd_una=10, in_flight=8)
    tcp.acks(10, 10, 10)
    tcp.conn.retransmit = True
    assert tcp.timeout(4000) == [10]
    assert not tcp.conn.in_recovery
    assert tcp.conn.duplicate_acks == 0


def test_a_second_timeout_in_a_row_leaves_ssthresh_at_two(sender):
    tcp = sender(cwnd=8.0, snd_una=10, in_flight=8)
    tcp.timeout(3000)
    tcp.timeout(9000)
    assert tcp.conn.ssthresh == 2.0, "one segment was in flight"


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


def test_reno_halves_again_for_the_second_hole(sender, plain):
    tcp = sender(cwnd=8.0, snd_una=10, in_flight=8, variant=plain.records.RENO)
    tcp.acks(10, 10, 10, 10, 10, 10, 13)
    flight = tcp.conn.snd_nxt - 13
    assert tcp.acks(13, 13, 13)[-1] == [13]
    assert tcp.statistics.fast_retransmits == 2
    assert tcp.conn.ssthresh == flight / 2


# ---------------------------------------------------------------- RFC 3042: limited transmit


def test_limited_transmit_sends_a_new_segment_for_each_of_the_first_two_duplicates(sender):
    tcp = sender(cwnd=4.0, snd_una=10, in_flight=4, limited_transmit=True)
    assert tcp.acks(10, 10) == [[14], [15]]
    assert tcp.conn.cwnd == 4.0, "cwnd itself does not grow"
    assert tcp.ack(10) == [10]


def test_limited_transmit_lets_a_small_window_recover_without_a_timeout(sender):
    tcp = sender(cwnd=2.0, ssthresh=2.0, snd_una=10, in_flight=2, limited_transmit=True)
    assert tcp.ack(10) == [12], "11 has arrived"
    assert tcp.ack(10) == [13], "12 has arrived"
    assert tcp.ack(10) == [10, 14], "13 has arrived: the third; window 2 + 3, flight 4"
    assert tcp.conn.ssthresh == 2.0


def test_limited_transmit_is_left_out_of_the_flight_that_is_halved(sender):
    # RFC 5681, section 3.2, step 2
    tcp = sender(cwnd=8.0, snd_una=10, in_flight=8, limited_transmit=True)
    tcp.acks(10, 10, 10)
    assert tcp.conn.snd_max == 20
    assert tcp.conn.ssthresh == 4.0


def test_limited_transmit_respects_the_receive_window_and_the_application(sender):
    assert sender(cwnd=4.0, rwnd=4, snd_una=10, in_flight=4, limited_transmit=True).ack(10) == []
    assert sender(cwnd=4.0, written=14, snd_una=10, in_flight=4, limited_transmit=True).ack(10) == []


# ---------------------------------------------------------------- growth only when the window limits


def test_with_window_limited_growth_an_unused_window_does_not_grow(sender):
    tcp = sender(cwnd=8.0, ssthresh=4.0, rwnd=4, in_flight=4, window_limited_growth=True)
    tcp.acks(1, 2, 3)
    assert tcp.conn.cwnd == 8.0
    full = sender(cwnd=4.0, ssthresh=4.0, in_flight=4, window_limited_growth=True)
    full.ack(1)
    assert full.conn.cwnd == 4.25


def test_with_window_limited_growth_slow_start_needs_half_of_the_window_used(sender):
    tcp = sender(cwnd=8.0, in_flight=4, window_limited_growth=True)
    tcp.ack(1)
    assert tcp.conn.cwnd == 8.0
    tcp = sender(cwnd=8.0, in_flight=5, window_limited_growth=True)
    tcp.ack(1)
    assert tcp.conn.cwnd == 9.0


# ---------------------------------------------------------------- rules of Linux and ns-3, off by default


def test_byte_counting_opens_by_what_has_arrived(sender):
    tcp = sender(cwnd=4.0, in_flight=4, byte_counting=True)
    tcp.ack(4)
    assert tcp.conn.cwnd == 8.0, "slow start: one for each of the four"
    tcp = sender(cwnd=4.0, ssthresh=6.0, in_flight=4, byte_counting=True)
    tcp.ack(4)
    assert tcp.conn.cwnd == 6.0, "slow start ends at ssthresh"


def test_byte_counting_opens_by_whole_segments_in_congestion_avoidance(sender):
    tcp = sender(cwnd=4.0, ssthresh=4.0, in_flight=4, byte_counting=True)
    windows = []
    for number in (1, 2, 3, 4, 6, 8, 9):
        tcp.ack(number)
        windows.append(float(tcp.conn.cwnd))
    assert windows == [4, 4, 4, 5, 5, 5, 6], "after 4, then after 5 more"


def test_with_exit_grows_the_acknowledgement_that_ends_recovery_opens_the_window(sender):
    tcp = sender(cwnd=8.0, snd_una=10, in_flight=8, exit_grows=True)
    tcp.acks(10, 10, 10)
    tcp.ack(18)
    assert tcp.conn.cwnd == 4.0 + 1 / 4


def test_with_inflate_by_one_the_third_duplicate_counts_once(sender):
    tcp = sender(cwnd=8.0, snd_una=10, in_flight=8, inflate_by_one=True)
    tcp.acks(10, 10, 10)
    assert tcp.conn.cwnd == 4.0 + 1


@pytest.mark.parametrize(("reduction", "ssthresh"), [(0, 4.0), (1, 5.0), (2, 3.5), (3, 9.0)])
def test_the_rule_that_reduces_ssthresh_is_a_setting(sender, reduction, ssthresh):
    # flight 8, cwnd 10; by the third duplicate one segment counts as departed
    tcp = sender(cwnd=10.0, rwnd=8, snd_una=10, in_flight=8, reduction=reduction)
    tcp.acks(10, 10, 10)
    assert tcp.conn.ssthresh == ssthresh


# ---------------------------------------------------------------- what is measured


def test_an_acknowledgement_on_data_is_no_duplicate(sender, plain):
    # RFC 5681, section 2: "(b) the incoming acknowledgment carries no data"
    tcp = sender(cwnd=8.0, snd_una=10, in_flight=8)
    for _ in range(4):
        tcp.ack(10, kind=plain.records.DATA)
    assert tcp.conn.duplicate_acks == 0
    assert tcp.statistics.duplicate_acks_received == 0
    tcp.ack(11, kind=plain.records.DATA)
    assert tcp.conn.snd_una == 11


def test_retransmissions_and_duplicates_are_counted(sender):
    tcp = sender(cwnd=8.0, snd_una=10, in_flight=8)
    tcp.acks(10, 10, 10, 10)
    assert tcp.statistics.duplicate_acks_received == 4
    assert tcp.statistics.segments_retransmitted == 1
    tcp.timeout(3000)
    tcp.ack(11, at=3100)
    assert tcp.statistics.segments_retransmitted == 1 + 1 + 2


def test_the_spread_of_round_trip_times_is_kept(sender):
    tcp = sender(cwnd=8.0, in_flight=8)
    for number, echo in enumerate((10, 60, 30), start=1):
        tcp.ack(number, at=200, echo=echo)
    statistics = tcp.statistics
    assert (statistics.rtt_least, statistics.rtt_most) == (140 * MS, 190 * MS)
    assert statistics.rtt_squares == (190**2 + 140**2 + 170**2) * float(MS) ** 2
    assert tcp.histogram.sum() == 3


def test_without_timestamps_only_segments_sent_once_are_timed(sender):
    # Karn's algorithm (RFC 6298, section 3)
    tcp = sender(cwnd=2.0, ssthresh=2.0, timestamps=False)
    assert tcp.send(at=10) == [0, 1]
    tcp.ack(1, at=130)
    assert (tcp.statistics.rtt_samples, tcp.statistics.rtt_sum) == (1, 120 * MS)
    assert tcp.timeout(2000) == [1]
    assert tcp.ack(2, at=2100) == [2, 3]
    assert tcp.statistics.rtt_samples == 1, "of the first or the second transmission of 1?"
    tcp.ack(3, at=2180)
    assert tcp.statistics.rtt_samples == 1, "2 had been sent before the timeout as well"
    tcp.ack(4, at=2190)
    assert tcp.statistics.rtt_sum == (120 + 90) * MS, "3 was sent once"


def test_without_timestamps_a_filled_gap_gives_no_sample(sender):
    tcp = sender(cwnd=8.0, timestamps=False)
    assert tcp.send(at=0) == list(range(8))
    tcp.ack(1, at=100)
    tcp.ack(2, at=100)
    tcp.acks(2, 2, 2, at=110)
    samples = tcp.statistics.rtt_samples
    tcp.ack(8, at=210)
    assert tcp.statistics.rtt_samples == samples


def test_round_trip_times_are_taken_from_echoed_timestamps(sender):
    tcp = sender(cwnd=8.0, in_flight=8)
    tcp.ack(1, at=130, echo=10)
    tcp.ack(2, at=150, echo=20)
    tcp.ack(2, at=160, echo=20)
    assert tcp.statistics.rtt_samples == 2, "a duplicate gives no sample (RFC 7323, section 4.1)"
    assert tcp.statistics.rtt_sum == (120 + 130) * MS


def test_windows_are_sampled_before_the_acknowledgement_acts(sender):
    tcp = sender(cwnd=8.0, rwnd=8, in_flight=8)
    tcp.acks(1, 2)
    assert tcp.statistics.window_samples == 2
    assert tcp.statistics.cwnd_sum == 8.0 + 9.0
    assert tcp.statistics.window_sum == 8.0 + 8.0
