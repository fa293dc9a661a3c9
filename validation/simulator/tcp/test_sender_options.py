"""Rules of the TCP sender that are off by default: limited transmit, window-limited growth, ns-3's."""

import pytest

FLIGHT = {"cwnd": 8.0, "snd_una": 10, "in_flight": 8}

# ---------------------------------------------------------------- RFC 3042: limited transmit


def test_limited_transmit_sends_a_new_segment_for_each_of_the_first_two_duplicates(sender):
    tcp = sender(**FLIGHT, limited_transmit=True)
    assert tcp.acks(10, 10) == [[18], [19]]
    assert tcp.conn.cwnd == 8.0, "cwnd itself does not grow"
    assert tcp.ack(10) == [10]
    assert tcp.conn.ssthresh == 4.0, "18 and 19 are left out of the flight (RFC 5681, section 3.2, step 2)"


def test_limited_transmit_lets_a_small_window_recover_without_a_timeout(sender):
    tcp = sender(cwnd=2.0, ssthresh=2.0, snd_una=10, in_flight=2, limited_transmit=True)
    assert tcp.ack(10) == [12], "11 has arrived"
    assert tcp.ack(10) == [13], "12 has arrived"
    assert tcp.ack(10) == [10, 14], "13 has arrived: the third; window 2 + 3, flight 4"
    assert tcp.conn.ssthresh == 2.0


def test_limited_transmit_respects_the_receive_window_and_the_application(sender):
    assert sender(cwnd=4.0, rwnd=4, snd_una=10, in_flight=4, limited_transmit=True).ack(10) == []
    assert sender(cwnd=4.0, written=14, snd_una=10, in_flight=4, limited_transmit=True).ack(10) == []


# ---------------------------------------------------------------- rules of Linux and ns-3, off by default


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
        # the acknowledgement that ends recovery opens the window, the third duplicate counts once
        ("exit_grows", FLIGHT, (10, 10, 10, 18), 4.0 + 1 / 4),
        ("inflate_by_one", FLIGHT, (10, 10, 10), 4.0 + 1),
    ],
)
def test_how_far_acknowledgements_open_the_window(sender, option, state, numbers, cwnd):
    tcp = sender(**state, **{option: True})
    tcp.acks(*numbers)
    assert tcp.conn.cwnd == cwnd


def test_byte_counting_opens_by_whole_segments_in_congestion_avoidance(sender):
    tcp = sender(cwnd=4.0, ssthresh=4.0, in_flight=4, byte_counting=True)
    windows = []
    for number in (1, 2, 3, 4, 6, 8, 9):
        tcp.ack(number)
        windows.append(float(tcp.conn.cwnd))
    assert windows == [4, 4, 4, 5, 5, 5, 6], "after 4, then after 5 more"


@pytest.mark.parametrize(("reduction", "ssthresh"), [(0, 4.0), (1, 5.0), (2, 3.5), (3, 9.0)])
def test_the_rule_that_reduces_ssthresh_is_a_setting(sender, reduction, ssthresh):
    # flight 8, cwnd 10; by the third duplicate one segment counts as departed
    tcp = sender(cwnd=10.0, rwnd=8, snd_una=10, in_flight=8, reduction=reduction)
    tcp.acks(10, 10, 10)
    assert tcp.conn.ssthresh == ssthresh
