"""Rules of the TCP sender that are off by default: limited transmit, window-limited growth, ns-3's."""

import pytest

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


@pytest.mark.parametrize(("holds", "windows"), [(False, (2.0, 3.0)), (True, (1.0, 2.0))])
def test_the_end_of_the_slow_start_after_a_timeout_may_open_nothing(sender, holds, windows):
    # ns-3: the acknowledgement of all that was outstanding at the timeout does not count; later ones do
    tcp = sender(cwnd=4.0, ssthresh=64.0, snd_una=10, in_flight=1, timeout_exit_holds=holds)
    tcp.timeout(at=3000)
    tcp.conn.ssthresh = 64.0
    found = []
    for number in (11, 12):
        tcp.ack(number, at=3100)
        found.append(float(tcp.conn.cwnd))
    assert tuple(found) == windows


def test_what_was_sent_after_the_timeout_counts(sender):
    tcp = sender(cwnd=4.0, ssthresh=64.0, snd_una=10, in_flight=2, timeout_exit_holds=True)
    tcp.timeout(at=3000)
    tcp.conn.ssthresh = 64.0
    tcp.ack(11, at=3100)
    assert tcp.conn.cwnd == 2.0, "within the slow start every acknowledgement counts"
    tcp.ack(13, at=3200)
    assert tcp.conn.cwnd == 3.0, "12 was sent after the timeout"
