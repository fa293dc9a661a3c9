"""What the TCP sender measures: duplicates, retransmissions, round trips, windows."""

from tcp_sender_calls import MS, SECOND


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


def test_round_trip_times_are_taken_from_echoed_timestamps_and_their_spread_is_kept(sender):
    tcp = sender(cwnd=8.0, in_flight=8)
    for number, echo in enumerate((10, 60, 30), start=1):
        tcp.ack(number, at=200, echo=echo)
    tcp.ack(3, at=210, echo=30)
    statistics = tcp.statistics
    assert statistics.rtt_samples == 3, "a duplicate gives no sample (RFC 7323, section 4.1)"
    assert statistics.rtt_sum == (190 + 140 + 170) * MS
    assert (statistics.rtt_least, statistics.rtt_most) == (140 * MS, 190 * MS)
    assert statistics.rtt_squares == (190**2 + 140**2 + 170**2) * float(MS) ** 2
    assert tcp.histogram.sum() == 3


def test_without_timestamps_a_filled_gap_gives_no_sample(sender):
    tcp = sender(cwnd=8.0, timestamps=False)
    assert tcp.send(at=0) == list(range(8))
    tcp.ack(1, at=100)
    tcp.ack(2, at=100)
    tcp.acks(2, 2, 2, at=110)
    samples = tcp.statistics.rtt_samples
    tcp.ack(8, at=210)
    assert tcp.statistics.rtt_samples == samples


def test_a_doubled_timeout_stays_until_a_segment_that_was_sent_once_is_timed(sender):
    # RFC 6298, section 3 (Karn) and 5.7: the acknowledgement of the original comes late, when 0 was
    # sent again
    tcp = sender(cwnd=4.0, ssthresh=4.0, timestamps=False)
    assert tcp.send(at=0) == [0, 1, 2, 3]
    assert tcp.timeout(3000) == [0]
    assert tcp.ack(1, at=3100) == [1, 2], "goes back, though they are on their way"
    assert (tcp.statistics.rtt_samples, tcp.conn.rto) == (0, 6 * SECOND)
    assert tcp.ack(4, at=3200) == [4, 5]
    assert (tcp.statistics.rtt_samples, tcp.conn.rto) == (0, 6 * SECOND), "1 and 2 were sent twice, 3 once"
    tcp.ack(5, at=3300)
    # 2.2: SRTT = R, RTO = R + 4 R / 2
    assert (tcp.statistics.rtt_samples, tcp.conn.rto) == (1, SECOND)
    assert tcp.conn.srtt == 100 * MS


def test_expiries_in_a_row_double_on_until_new_data_are_timed(sender):
    tcp = sender(cwnd=1.0, ssthresh=2.0, timestamps=False)
    assert tcp.send(at=0) == [0]
    deadlines = []
    for _ in range(3):
        deadlines.append(int(tcp.conn.rto_deadline) // SECOND)
        assert tcp.timeout(deadlines[-1] * 1000) == [0]
    assert deadlines == [3, 9, 21]
    assert tcp.ack(1, at=21_500) == [1, 2]
    assert tcp.conn.rto_deadline == 21_500 * MS + 24 * SECOND, "5.3: with the RTO in force"
    tcp.ack(2, at=22_000)
    assert (tcp.conn.srtt, tcp.conn.rto) == (500 * MS, 1500 * MS)


def test_without_timestamps_a_hole_filled_by_retransmission_gives_no_sample_with_sack_either(sender):
    tcp = sender(cwnd=8.0, timestamps=False, sack=True)
    tcp.conn.variant = tcp.records.SACK
    assert tcp.send(at=0) == list(range(8))
    tcp.ack(1, at=100)
    for end in (3, 4, 5):
        sent = tcp.ack(1, at=100 + end, blocks=[(2, end)])
    assert 1 in sent, "sent again"
    samples = tcp.statistics.rtt_samples
    tcp.ack(5, at=210, blocks=[])
    assert tcp.statistics.rtt_samples == samples, "2 to 4 were sent once, but 1 twice"
    tcp.ack(6, at=220)
    assert tcp.statistics.rtt_samples == samples + 1
    assert tcp.statistics.rtt_most == 220 * MS, "5 was sent at 0 and never again"


def test_windows_are_sampled_before_the_acknowledgement_acts(sender):
    tcp = sender(cwnd=8.0, rwnd=8, in_flight=8)
    tcp.acks(1, 2)
    assert tcp.statistics.window_samples == 2
    assert tcp.statistics.cwnd_sum == 8.0 + 9.0
    assert tcp.statistics.window_sum == 8.0 + 8.0
