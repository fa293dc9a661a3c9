"""What the TCP sender measures: duplicates, retransmissions, round trips, windows."""

from .tcp_sender_calls import MS


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
