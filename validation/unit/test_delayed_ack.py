"""Delayed acknowledgements: every second segment, a deadline, a free-running clock, and what may not wait."""

import numpy as np
import pytest

MS = 1_000_000


class Receiver:
    """Segments in; whether an acknowledgement has to leave at once."""

    def __init__(self, plain, **options):
        self.tcp, self.delayed_ack, self.records = plain.receiver, plain.delayed_ack, plain.records
        self.conn = np.zeros(1, plain.records.connection_dtype).view(np.recarray)[0]
        self.statistics = np.zeros(1, plain.records.flow_statistics_dtype).view(np.recarray)[0]
        self.out_of_order = np.zeros(64, np.uint8)
        self.starts = np.zeros(1, np.int64)
        self.conn.unit = 1
        self.conn.rwnd, self.conn.delayed_ack, self.conn.ack_every = 32, True, 2
        self.conn.ack_delay = 500 * MS
        for name, value in options.items():
            setattr(self.conn, name, value)

    def segment(self):
        return np.zeros(1, self.records.segment_dtype).view(np.recarray)[0]

    def receive(self, number):
        """Receive a segment; return the acknowledgement if it leaves at once, or None."""
        segment = self.segment()
        segment.number = number
        self.tcp.on_segment(self.conn, self.out_of_order, self.starts, self.statistics, segment, 0)
        return self.leave() if self.conn.ack_now else None

    def leave(self):
        segment = self.segment()
        segment.kind = self.records.ACK
        self.tcp.fill_acknowledgement(self.conn, self.out_of_order, self.starts, segment, 0)
        return int(segment.ack)


@pytest.fixture
def receiver(plain):
    return lambda **options: Receiver(plain, **options)


def test_every_second_segment_is_acknowledged(receiver):
    tcp = receiver()
    assert [tcp.receive(number) for number in range(6)] == [None, 2, None, 4, None, 6]


def test_the_number_is_a_setting(receiver):
    tcp = receiver(ack_every=3)
    assert [tcp.receive(number) for number in range(6)] == [None, None, 3, None, None, 6]


def test_without_delay_each_segment_is_acknowledged(receiver):
    tcp = receiver(delayed_ack=False)
    assert [tcp.receive(number) for number in range(3)] == [1, 2, 3]


def test_an_acknowledgement_that_data_has_carried_is_not_sent_again(receiver):
    tcp = receiver()
    tcp.receive(0)
    assert tcp.leave() == 1, "carried by data the other way"
    assert tcp.conn.unacknowledged == 0
    tcp.delayed_ack.on_timer(tcp.conn)
    assert not tcp.conn.ack_now, "nothing waits"
    assert tcp.receive(1) is None, "it is the first to wait"


def test_out_of_order_and_gap_filling_segments_do_not_wait(receiver):
    # RFC 5681, section 4.2
    tcp = receiver()
    assert tcp.receive(1) == 0
    assert tcp.receive(3) == 0
    assert tcp.receive(0) == 2, "fills a part of the gap"
    assert tcp.receive(2) == 4
    assert tcp.receive(4) is None, "no gap any more"


def test_a_segment_in_order_below_a_gap_does_not_wait(receiver):
    tcp = receiver()
    assert tcp.receive(3) == 0
    assert [tcp.receive(0), tcp.receive(1)] == [1, 2]


def test_an_old_segment_is_acknowledged_at_once(receiver):
    tcp = receiver()
    assert [tcp.receive(0), tcp.receive(0)] == [None, 1]


def test_the_deadline_counts_from_the_first_segment_that_waits(receiver):
    tcp = receiver(ack_delay=200 * MS)
    tcp.receive(0)
    assert tcp.delayed_ack.deadline(tcp.conn, 30 * MS) == 230 * MS
    tcp.delayed_ack.on_timer(tcp.conn)
    assert tcp.conn.ack_now
    assert tcp.leave() == 1


@pytest.mark.parametrize(
    ("now", "tick"), [(0, 120), (119, 120), (120, 620), (121, 620), (619, 620), (620, 1120), (5000, 5120)]
)
def test_a_free_running_clock_ticks_whatever_arrives(receiver, now, tick):
    # Johansson 2000, section 4.1: the next tick of a 500 ms clock; here it ticks at 120 ms, 620 ms, ...
    tcp = receiver(ack_tick=True, tick_phase=120 * MS)
    assert tcp.delayed_ack.deadline(tcp.conn, now * MS) == tick * MS


def test_the_first_segments_are_acknowledged_at_once(receiver):
    # Linux: 16 quick acknowledgements at the start; here 3
    tcp = receiver(quick_acks=3, quick_left=3)
    assert [tcp.receive(n) for n in range(6)] == [1, 2, 3, None, 5, None]


def test_after_a_segment_that_comes_twice_acknowledgements_are_quick_again(receiver):
    # the records of Linux: a gap that is filled does not bring them back ("shallow", 0.23 s)
    tcp = receiver(quick_acks=2)
    assert [tcp.receive(n) for n in (0, 2, 1, 3, 4)] == [None, 1, 3, None, 5]
    assert [tcp.receive(n) for n in (4, 5, 6, 7, 8)] == [5, 6, 7, None, 9]
