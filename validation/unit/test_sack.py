"""Selective acknowledgements: what the receiver reports (RFC 2018), and what the sender does (RFC 6675)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

MS = 1_000_000
SECOND = 1000 * MS
RING = 128


def record(dtype):
    return np.zeros(1, dtype).view(np.recarray)[0]


# ---------------------------------------------------------------- RFC 2018, section 4: the receiver


class Receiver:
    def __init__(self, plain, rwnd=32, blocks=3):
        self.tcp, self.records = plain.receiver, plain.records
        self.conn = record(plain.records.connection_dtype)
        self.statistics = record(plain.records.flow_statistics_dtype)
        self.out_of_order = np.zeros(RING, np.uint8)
        self.starts = np.zeros(1, np.int64)
        self.conn.unit = 1
        self.conn.rwnd, self.conn.sack, self.conn.sack_blocks = rwnd, True, blocks

    def receive(self, number):
        """Receive a segment; return the acknowledgement and the blocks that it reports."""
        segment = record(self.records.segment_dtype)
        segment.number = number
        self.tcp.on_segment(self.conn, self.out_of_order, self.starts, self.statistics, segment, 0)
        answer = record(self.records.segment_dtype)
        answer.kind = self.records.ACK
        self.tcp.fill_acknowledgement(self.conn, self.out_of_order, self.starts, answer, 0)
        blocks = [(int(answer.block_start[i]), int(answer.block_end[i])) for i in range(answer.blocks)]
        return int(answer.ack), blocks


def test_in_order_nothing_is_reported(plain):
    tcp = Receiver(plain)
    assert [tcp.receive(n) for n in range(2)] == [(1, []), (2, [])]


def test_the_first_block_holds_the_segment_just_received(plain):
    tcp = Receiver(plain)
    assert tcp.receive(2) == (0, [(2, 3)])
    assert tcp.receive(3) == (0, [(2, 4)])
    assert tcp.receive(6) == (0, [(6, 7), (2, 4)])
    assert tcp.receive(4) == (0, [(2, 5), (6, 7)]), "the block that grew comes first again"


def test_joined_blocks_are_one(plain):
    tcp = Receiver(plain)
    tcp.receive(2)
    tcp.receive(4)
    assert tcp.receive(3) == (0, [(2, 5)])


def test_the_oldest_blocks_give_way(plain):
    tcp = Receiver(plain, blocks=3)
    for number in (2, 4, 6, 8, 10):
        answer = tcp.receive(number)
    assert answer == (0, [(10, 11), (8, 9), (6, 7)])
    tcp = Receiver(plain, blocks=4)
    for number in (2, 4, 6, 8, 10):
        answer = tcp.receive(number)
    assert answer == (0, [(10, 11), (8, 9), (6, 7), (4, 5)])


def test_what_the_acknowledgement_covers_is_no_longer_reported(plain):
    tcp = Receiver(plain)
    tcp.receive(1)
    tcp.receive(3)
    assert tcp.receive(0) == (2, [(3, 4)])
    assert tcp.receive(2) == (4, [])


def test_a_repeated_segment_brings_its_block_to_the_front(plain):
    tcp = Receiver(plain)
    tcp.receive(2)
    tcp.receive(5)
    assert tcp.receive(2) == (0, [(2, 3), (5, 6)])


@given(numbers=st.lists(st.integers(0, 25), max_size=80))
def test_blocks_are_true_whole_and_apart(plain, numbers):
    tcp = Receiver(plain, blocks=4)
    arrived = set()
    for number in numbers:
        arrived.add(number)
        ack, blocks = tcp.receive(number)
        for start, end in blocks:
            assert ack < start < end
            assert set(range(start, end)) <= arrived
            assert start - 1 not in arrived
            assert end not in arrived
        assert len(set(blocks)) == len(blocks)
        if number > ack:
            assert blocks[0][0] <= number < blocks[0][1]


# ---------------------------------------------------------------- RFC 6675: the sender


class Sender:
    def __init__(self, plain, *, cwnd=8.0, snd_una=10, in_flight=8, rwnd=64, written=1000, **options):
        self.tcp, self.sack, self.records = plain.sender, plain.sack, plain.records
        self.conn = record(plain.records.connection_dtype)
        self.statistics = record(plain.records.flow_statistics_dtype)
        self.board, self.sent_at = np.zeros(RING, np.uint8), np.zeros(RING, np.int64)
        self.starts = np.zeros(RING, np.int64)
        self.rings = self.board, self.sent_at, self.starts
        self.histogram = np.zeros(plain.histograms.BINS, np.int64)
        conn = self.conn
        conn.variant, conn.sack, conn.timestamps, conn.unit = plain.records.SACK, True, True, 1
        conn.written, conn.cwnd, conn.ssthresh, conn.rwnd = written, cwnd, 64.0, rwnd
        conn.snd_una, conn.snd_nxt, conn.snd_max = snd_una, snd_una + in_flight, snd_una + in_flight
        conn.pipe, conn.recover, conn.backoff = in_flight, -1, True
        conn.rto, conn.min_rto, conn.max_rto = 3 * SECOND, SECOND, 64 * SECOND
        conn.rto_deadline = 3 * SECOND
        for name, value in options.items():
            setattr(conn, name, value)

    def send(self):
        sent = []
        while True:
            number = self.tcp.next_segment(self.conn, *self.rings, self.statistics, 0)
            if number == self.records.NOTHING:
                return sent
            sent.append(int(number))

    def ack(self, number, *blocks):
        segment = record(self.records.segment_dtype)
        segment.kind, segment.ack, segment.blocks = self.records.ACK, number, len(blocks)
        for place, (start, end) in enumerate(blocks):
            segment.block_start[place], segment.block_end[place] = start, end
        self.tcp.on_ack(
            self.conn,
            self.board,
            self.sent_at,
            self.starts,
            self.statistics,
            self.histogram,
            segment,
            100 * MS,
        )
        return self.send()

    def timeout(self):
        self.tcp.on_timeout(self.conn, self.board, self.sent_at, self.starts, self.statistics, 3 * SECOND)
        return self.send()


@pytest.fixture
def sender(plain):
    return lambda **state: Sender(plain, **state)


def test_three_acks_with_news_start_recovery_at_half_the_flight(sender):
    # 10 is lost, 11 to 17 arrive.
    tcp = sender()
    assert tcp.ack(10, (11, 12)) == []
    assert tcp.ack(10, (11, 13)) == []
    assert tcp.ack(10, (11, 14)) == [10]
    assert tcp.conn.in_recovery
    assert (tcp.conn.cwnd, tcp.conn.ssthresh, tcp.conn.recover) == (4.0, 4.0, 17)
    # 14 to 17 and the retransmission of 10 are in the network
    assert tcp.conn.pipe == 5


def test_in_recovery_new_segments_follow_when_pipe_falls_below_cwnd(sender):
    tcp = sender()
    for end in (12, 13, 14):
        tcp.ack(10, (11, end))
    assert tcp.ack(10, (11, 15)) == [], "pipe 4"
    assert tcp.ack(10, (11, 16)) == [18], "pipe 3: one new segment"
    assert tcp.ack(18) == [19, 20, 21], "recovered: 18 in flight, window 4"


def test_an_ack_without_news_is_no_duplicate(sender):
    # RFC 6675, section 2
    tcp = sender()
    for _ in range(5):
        tcp.ack(10)
    assert tcp.conn.duplicate_acks == 0
    tcp.ack(10, (11, 12))
    tcp.ack(10, (11, 12))
    assert tcp.conn.duplicate_acks == 1


def test_one_ack_that_reports_three_segments_is_enough(sender):
    # section 5, step 2: IsLost (HighACK + 1), although DupAcks is 1
    assert sender().ack(10, (11, 14)) == [10]


def test_a_cumulative_ack_with_news_counts_as_the_first_duplicate(sender):
    tcp = sender()
    tcp.ack(11, (12, 13))
    assert tcp.conn.duplicate_acks == 1


def test_holes_are_retransmitted_before_new_segments(sender):
    # 10, 12, 14 are lost of a flight of 16.
    tcp = sender(cwnd=16.0, in_flight=16)
    tcp.ack(10, (11, 12))
    tcp.ack(10, (13, 14), (11, 12))
    sent = tcp.ack(10, (15, 16), (13, 14), (11, 12))
    for end in (17, 18, 19, 20, 21, 22):
        sent += tcp.ack(10, (15, end), (13, 14), (11, 12))
    assert sent[:3] == [10, 12, 14]
    assert all(number >= 26 for number in sent[3:])
    assert tcp.statistics.segments_retransmitted == 3


def test_pipe_leaves_out_what_is_lost_and_what_has_arrived(sender):
    tcp = sender(in_flight=10)
    tcp.conn.in_recovery, tcp.conn.high_rxt = True, 10
    for number in (12, 14, 15):
        tcp.board[number] |= 1
    tcp.conn.high_sacked = 15
    # Lost are 10 and 11 (three reported above), of which 10 is sent again; 13 and 16 to 19 are on their way.
    assert tcp.sack.lost_below(tcp.conn, tcp.board, tcp.starts) == 12
    assert tcp.sack.pipe(tcp.conn, tcp.board, tcp.starts) == 1 + 5
    assert [bool(tcp.sack.is_lost(tcp.conn, tcp.board, tcp.starts, n)) for n in (10, 11, 13)] == [
        True,
        True,
        False,
    ]


def test_next_segment_follows_the_four_rules(sender):
    tcp = sender(in_flight=8, written=19)
    conn = tcp.conn
    conn.in_recovery, conn.recover, conn.high_rxt, conn.rescue_rxt = True, 17, 10, 9
    for number in (12, 13, 15, 16):
        tcp.board[number] |= 1
    conn.high_sacked = 16
    rules = [int(tcp.sack.next_segment(conn, tcp.board, tcp.starts)) for _ in range(5)]
    # (1) 11 is lost; (2) 18 is new; (3) 14 lies below what has arrived; (4) 18 is the highest not reported
    assert rules == [11, 18, 14, 18, tcp.records.NOTHING]
    assert conn.high_rxt == 14, "a rescue does not move it"


@pytest.mark.parametrize(("arrived", "begins"), [(13, False), (14, True)])
def test_by_forward_ack_one_segment_far_above_begins_a_recovery(sender, arrived, begins):
    # Linux: the highest that has arrived begins more than three segments above the first that is missing
    tcp = sender(forward_ack=True)
    tcp.ack(10, (arrived, arrived + 1))
    assert tcp.conn.in_recovery == begins
    usual = sender()
    usual.ack(10, (arrived, arrived + 1))
    assert not usual.conn.in_recovery


def test_only_what_is_lost_is_sent_again_if_so_set(sender):
    tcp = sender(in_flight=8, rwnd=8, only_lost=True)
    conn = tcp.conn
    conn.in_recovery, conn.recover, conn.high_rxt, conn.rescue_rxt = True, 17, 10, 9
    for number in (12, 14, 17):
        tcp.board[number] |= 1
    conn.high_sacked = 17
    rules = [int(tcp.sack.next_segment(conn, tcp.board, tcp.starts)) for _ in range(3)]
    assert rules == [11, tcp.records.NOTHING, tcp.records.NOTHING], (
        "13 has two above it, and no window is left"
    )


def test_rule_2_respects_the_receive_window(sender):
    tcp = sender(in_flight=8, rwnd=8)
    conn = tcp.conn
    conn.in_recovery, conn.recover, conn.high_rxt, conn.rescue_rxt = True, 17, 10, 10
    tcp.board[12] |= 1
    conn.high_sacked = 12
    assert tcp.sack.next_segment(conn, tcp.board, tcp.starts) == 11, "rule 3"


def test_recovery_ends_when_all_of_before_is_acknowledged(sender):
    tcp = sender()
    tcp.ack(10, (11, 14))
    tcp.ack(17)
    assert tcp.conn.in_recovery, "17 is missing"
    tcp.ack(18)
    assert not tcp.conn.in_recovery
    assert tcp.conn.cwnd == 4.0


def test_after_a_timeout_reports_are_forgotten_and_arrived_segments_left_out(sender):
    tcp = sender()
    tcp.ack(10, (11, 13))
    assert tcp.timeout() == [10]
    assert not (tcp.board & 1).any()
    # the acknowledgement of the retransmission tells again what the receiver holds
    assert tcp.ack(13, (15, 17)) == [13, 14]
    assert tcp.ack(14, (15, 17)) == [17, 18], "15 and 16 are left out; 14 is in flight, window 3"


def test_no_recovery_starts_before_what_the_timeout_found_is_acknowledged(sender):
    # section 5.1
    tcp = sender()
    tcp.timeout()
    tcp.ack(11, (13, 16))
    assert not tcp.conn.in_recovery
    for number in (18, 19, 20):
        tcp.ack(number)
    tcp.ack(20, (21, 24))
    assert tcp.conn.in_recovery


def test_limited_transmit_goes_by_pipe(sender):
    tcp = sender(limited_transmit=True)
    assert tcp.ack(10, (11, 12)) == [18]
    assert tcp.ack(10, (11, 13)) == [19]
    assert tcp.ack(10, (11, 14)) == [10]
    assert tcp.conn.ssthresh == 4.0, "18 and 19 are not counted"


@pytest.mark.parametrize(("reduction", "ssthresh"), [(0, 6.0), (1, 7.0), (2, 4.0), (3, 13.0)])
def test_the_rule_that_reduces_ssthresh_is_a_setting(sender, reduction, ssthresh):
    # flight 12, cwnd 14; at the loss three have arrived and one is lost: 8 in the network
    tcp = sender(cwnd=14.0, in_flight=12, rwnd=12, reduction=reduction)
    tcp.ack(10, (11, 14))
    assert tcp.conn.ssthresh == ssthresh


@given(losses=st.sets(st.integers(0, 39), max_size=12), rwnd=st.integers(8, 32))
def test_every_pattern_of_single_losses_is_repaired(plain, losses, rwnd):
    """Send 40 segments over a path that loses the first copy of some; all must arrive."""
    tcp = Sender(plain, cwnd=4.0, snd_una=0, in_flight=0, rwnd=rwnd, written=40, sack_blocks=3)
    receiver = Receiver(plain, rwnd=rwnd)
    to_lose, network, rounds = set(losses), tcp.send(), 0
    while tcp.conn.snd_una < 40:
        rounds += 1
        assert rounds < 200
        sent = []
        for number in network:
            if number in to_lose:
                to_lose.remove(number)
                continue
            ack, blocks = receiver.receive(number)
            sent += tcp.ack(ack, *blocks)
            assert tcp.conn.pipe <= tcp.conn.snd_max - tcp.conn.snd_una + len(losses)
        network = sent or tcp.timeout() if tcp.conn.snd_una < 40 else []
    assert receiver.conn.rcv_nxt == 40
    assert receiver.conn.held == 0
