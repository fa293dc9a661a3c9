"""The receiver: cumulative acknowledgements, segments out of order, echoed timestamps (RFC 7323, 4.3)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

RING = 128


class Receiver:
    """Segments in; for each one (acknowledgement, echoed timestamp, segments that become readable) out."""

    def __init__(self, plain, rwnd=8, **options):
        self.tcp, self.records = plain.receiver, plain.records
        self.conn = np.zeros(1, plain.records.connection_dtype).view(np.recarray)[0]
        self.statistics = np.zeros(1, plain.records.flow_statistics_dtype).view(np.recarray)[0]
        self.out_of_order = np.zeros(RING, np.uint8)
        self.starts = np.zeros(1, np.int64)
        self.conn.unit = 1
        self.conn.rwnd = rwnd
        for name, value in options.items():
            setattr(self.conn, name, value)

    def take(self, number, timestamp=0):
        """Receive a segment; return how many become readable."""
        segment = np.zeros(1, self.records.segment_dtype).view(np.recarray)[0]
        segment.number, segment.timestamp = number, timestamp
        return int(
            self.tcp.on_segment(self.conn, self.out_of_order, self.starts, self.statistics, segment, 0)
        )

    def answer(self, kind=None):
        """Return the acknowledgement that leaves now."""
        segment = np.zeros(1, self.records.segment_dtype).view(np.recarray)[0]
        segment.kind = self.records.ACK if kind is None else kind
        self.tcp.fill_acknowledgement(self.conn, self.out_of_order, self.starts, segment, 0)
        return segment

    def receive(self, number, timestamp=0):
        readable = self.take(number, timestamp)
        assert self.conn.ack_now
        answer = self.answer()
        assert answer.acknowledges
        assert not self.conn.ack_now
        return int(answer.ack), int(answer.echo), readable

    def acks(self, *numbers):
        return [self.receive(number)[0] for number in numbers]


@pytest.fixture
def receiver(plain):
    return Receiver(plain)


def test_every_segment_in_order_is_acknowledged_at_once(receiver):
    assert receiver.acks(0, 1, 2) == [1, 2, 3]


def test_a_gap_gives_duplicates_and_filling_it_one_jump(receiver):
    assert receiver.acks(0, 2, 3, 4) == [1, 1, 1, 1]
    assert receiver.receive(1) == (5, 0, 4), "the missing one and the three kept"


def test_two_gaps_are_filled_one_after_the_other(receiver):
    assert receiver.acks(1, 3, 0, 2) == [0, 0, 2, 4]


def test_an_old_segment_is_acknowledged_again_and_read_only_once(receiver):
    receiver.acks(0, 1)
    assert receiver.receive(0) == (2, 0, 0)


def test_the_same_segment_out_of_order_twice_counts_once(receiver):
    receiver.acks(1, 1)
    assert receiver.receive(0)[2] == 2


def test_beyond_the_receive_window_nothing_is_kept(receiver):
    assert receiver.acks(8, 7) == [0, 0], "the window is 0 to 7"
    assert receiver.acks(0, 1, 2, 3, 4, 5, 6) == [1, 2, 3, 4, 5, 6, 8]
    assert receiver.acks(8) == [9]


def test_what_arrives_twice_is_counted(receiver):
    receiver.acks(0, 0, 2, 2, 9)
    assert receiver.statistics.duplicates_received == 2, "9 is beyond the window: refused, not a duplicate"


def test_data_carries_an_acknowledgement_but_not_a_duplicate(receiver):
    # RFC 5681, section 2 (b): only one without data counts as a duplicate at the sender
    data = receiver.records.DATA
    receiver.take(0)
    receiver.answer(data)
    assert not receiver.conn.ack_now
    receiver.take(2)
    receiver.answer(data)
    assert receiver.conn.ack_now, "the gap has to be told"
    receiver.answer()
    assert not receiver.conn.ack_now


def test_with_sack_data_carries_a_duplicate_too(plain):
    tcp = Receiver(plain, sack=True, sack_blocks=3)
    tcp.take(2)
    assert tcp.answer(tcp.records.DATA).blocks == 1
    assert not tcp.conn.ack_now


# RFC 7323, section 4.3, gives three cases for the timestamp to echo:


def test_case_a_in_order_the_segments_own_timestamp_is_echoed(receiver):
    assert [receiver.receive(n, t)[1] for n, t in ((0, 10), (1, 20), (2, 30))] == [10, 20, 30]


def test_case_b_out_of_order_the_last_segment_that_advanced_the_window_is_echoed(receiver):
    receiver.receive(0, 10)
    assert receiver.receive(2, 30)[1] == 10
    assert receiver.receive(3, 40)[1] == 10


def test_case_c_the_segment_that_fills_a_hole_is_echoed(receiver):
    receiver.receive(0, 10)
    receiver.receive(2, 30)
    assert receiver.receive(1, 50)[1] == 50, (
        "the retransmission is the most recent one: no inflated round trip"
    )


def test_a_timestamp_never_goes_back(receiver):
    receiver.receive(0, 50)
    receiver.receive(1, 40)
    assert receiver.conn.ts_recent == 50


@given(order=st.permutations(range(8)))
def test_any_order_within_the_window_is_put_right(plain, order):
    tcp = Receiver(plain)
    arrived = set()
    readable = 0
    for number in order:
        arrived.add(number)
        ack, _, new = tcp.receive(number)
        readable += new
        assert ack == readable == next(n for n in range(9) if n not in arrived)
    assert readable == 8
    assert not tcp.out_of_order.any()
    assert tcp.conn.held == 0


@given(numbers=st.lists(st.integers(0, 30), max_size=120))
def test_acknowledgements_never_pass_what_has_arrived(plain, numbers):
    tcp = Receiver(plain, rwnd=64)
    arrived = set()
    for number in numbers:
        arrived.add(number)
        ack, _, _ = tcp.receive(number)
        assert ack == next(n for n in range(32) if n not in arrived)
