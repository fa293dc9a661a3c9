"""Selective acknowledgements: what the receiver reports (RFC 2018), and what the sender does (RFC 6675)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tcp_receiver_calls import Receiver
from tcp_sender_calls import Sender


def reporter(plain, rwnd=32, blocks=3):
    """Return a function that receives a segment and gives the acknowledgement and the blocks it reports."""
    tcp = Receiver(plain, rwnd, sack=True, sack_blocks=blocks)

    def receive(number):
        tcp.take(number)
        answer = tcp.answer()
        blocks = zip(answer.block_start.tolist(), answer.block_end.tolist(), strict=True)
        return int(answer.ack), list(blocks)[: answer.blocks]

    return tcp, receive


# RFC 2018, section 4
@pytest.mark.parametrize(
    ("numbers", "answer"),
    [
        ([0, 1], (2, [])),
        ([2, 3], (0, [(2, 4)])),
        ([2, 3, 6], (0, [(6, 7), (2, 4)])),  # the segment just received is in the first block
        ([2, 3, 6, 4], (0, [(2, 5), (6, 7)])),  # the block that grew comes first again
        ([2, 4, 3], (0, [(2, 5)])),
        ([2, 4, 6, 8, 10], (0, [(10, 11), (8, 9), (6, 7)])),  # the oldest give way
        ([1, 3, 0], (2, [(3, 4)])),
        ([1, 3, 0, 2], (4, [])),
        ([2, 5, 2], (0, [(2, 3), (5, 6)])),  # repeated
    ],
)
def test_the_last_answer_reports_the_latest_blocks_first(plain, numbers, answer):
    _, receive = reporter(plain)
    assert [receive(number) for number in numbers][-1] == answer


@given(numbers=st.lists(st.integers(0, 25), max_size=80))
def test_blocks_are_true_whole_and_apart(plain, numbers):
    _, receive = reporter(plain, blocks=4)
    arrived = set()
    for number in numbers:
        arrived.add(number)
        ack, blocks = receive(number)
        for start, end in blocks:
            assert ack < start < end
            assert set(range(start, end)) <= arrived
            assert start - 1 not in arrived
            assert end not in arrived
        assert len(set(blocks)) == len(blocks)
        if number > ack:
            assert blocks[0][0] <= number < blocks[0][1]


class SackSender(Sender):
    """By default eight segments are in flight, 10 to 17."""

    def __init__(self, plain, *, in_flight=8, **options):
        usual = {"cwnd": 8.0, "snd_una": 10, "variant": plain.records.SACK, "sack": True}
        super().__init__(plain, in_flight=in_flight, pipe=in_flight, **usual | options)

    def ack(self, number, *blocks):
        return super().ack(number, blocks=blocks)

    def next_by_rule(self, times, arrived, **state):
        """Ask so many times for the next segment of a recovery in which these have arrived."""
        for name, value in {"in_recovery": True, "recover": 17, "high_rxt": 10, **state}.items():
            setattr(self.conn, name, value)
        for number in arrived:
            self.board[number] |= 1
        self.conn.high_sacked = max(arrived)
        return [int(self.sack.next_segment(self.conn, self.board, self.starts)) for _ in range(times)]


def test_three_acks_with_news_start_recovery_at_half_the_flight(plain):
    # 10 is lost, 11 to 17 arrive.
    tcp = SackSender(plain)
    assert tcp.ack(10, (11, 12)) == []
    assert tcp.ack(10, (11, 13)) == []
    assert tcp.ack(10, (11, 14)) == [10]
    assert tcp.conn.in_recovery
    assert (tcp.conn.cwnd, tcp.conn.ssthresh, tcp.conn.recover) == (4.0, 4.0, 17)
    assert tcp.conn.pipe == 5, "14 to 17 and the retransmission of 10 are in the network"
    # new segments follow when pipe falls below cwnd
    assert tcp.ack(10, (11, 15)) == [], "pipe 4"
    assert tcp.ack(10, (11, 16)) == [18], "pipe 3: one new segment"
    assert tcp.ack(18) == [19, 20, 21], "recovered: 18 in flight, window 4"


def test_next_segment_follows_the_four_rules(plain):
    tcp = SackSender(plain, written=19)
    found = tcp.next_by_rule(5, (12, 13, 15, 16), rescue_rxt=9)
    # (1) 11 is lost; (2) 18 is new; (3) 14 lies below what has arrived; (4) 18 is the highest not reported
    assert found == [11, 18, 14, 18, tcp.records.NOTHING]
    assert tcp.conn.high_rxt == 14, "a rescue does not move it"
    # without a place in the receive window rule 2 is passed over for rule 3
    assert SackSender(plain, rwnd=8).next_by_rule(1, (12,), rescue_rxt=10) == [11]
    # if so set only what is lost is sent again: 13 has two above it, and no window is left
    tcp = SackSender(plain, rwnd=8, retransmit_only_lost=True)
    assert tcp.next_by_rule(3, (12, 14, 17), rescue_rxt=9) == [11, tcp.records.NOTHING, tcp.records.NOTHING]


def test_after_a_timeout_reports_are_forgotten_and_arrived_segments_left_out(plain):
    tcp = SackSender(plain)
    tcp.ack(10, (11, 13))
    assert tcp.timeout(3000) == [10]
    assert not (tcp.board & 1).any()
    # the acknowledgement of the retransmission tells again what the receiver holds
    assert tcp.ack(13, (15, 17)) == [13, 14]
    assert tcp.ack(14, (15, 17)) == [17, 18], "15 and 16 are left out; 14 is in flight, window 3"


@settings(max_examples=40)
@given(losses=st.sets(st.integers(0, 39), max_size=12), rwnd=st.integers(8, 32))
def test_every_pattern_of_single_losses_is_repaired(plain, losses, rwnd):
    """Send 40 segments over a path that loses the first copy of some; all must arrive."""
    tcp = SackSender(plain, cwnd=4.0, snd_una=0, in_flight=0, rwnd=rwnd, written=40, sack_blocks=3)
    receiver, receive = reporter(plain, rwnd)
    to_lose, network, rounds = set(losses), tcp.send(), 0
    while tcp.conn.snd_una < 40:
        rounds += 1
        assert rounds < 200
        sent = []
        for number in network:
            if number in to_lose:
                to_lose.remove(number)
                continue
            ack, blocks = receive(number)
            sent += tcp.ack(ack, *blocks)
            assert tcp.conn.pipe <= tcp.conn.snd_max - tcp.conn.snd_una + len(losses)
        network = sent or tcp.timeout(3000) if tcp.conn.snd_una < 40 else []
    assert receiver.conn.rcv_nxt == 40
    assert receiver.conn.held == 0
