"""What the TCP sender measures: duplicates, retransmissions, round trips, windows."""

from tcp_sender_calls import MS


def test_an_acknowledgement_on_data_is_no_duplicate(sender, plain):
    # RFC 5681, section 2: "(b) the incoming acknowledgment carries no data"
    tcp = sender(cwnd=8.0, snd_una=10, in_flight=8)
    for _ in range(4):
        tcp.ack(10, kind=plain.records.DATA)
    assert tcp.conn.duplicate_acks == 0
    assert tcp.statistics.duplicate_acks_received == 0
    tcp.ack(11, kind=plain.records.DATA)
    assert tcp.conn.snd_una == 11


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
