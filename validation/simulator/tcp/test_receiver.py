"""The receiver: cumulative and delayed acknowledgements, segments out of order, echoed timestamps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tcp_receiver_calls import Receiver

from btqueue.simulator.records.connections import ADAPTIVE
from btqueue.simulator.records.conventions import NOTHING

MS = 1_000_000


def test_beyond_the_receive_window_nothing_is_kept(plain):
    receiver = Receiver(plain)
    assert receiver.acks(8, 7) == [0, 0], "the window is 0 to 7"
    assert receiver.acks(0, 1, 2, 3, 4, 5, 6) == [1, 2, 3, 4, 5, 6, 8]
    assert receiver.acks(8) == [9]


def test_what_arrives_twice_is_counted(plain):
    receiver = Receiver(plain)
    receiver.acks(0, 0, 2, 2, 9)
    assert receiver.statistics.duplicates_received == 2, "9 is beyond the window: refused, not a duplicate"


@pytest.mark.parametrize(
    ("numbers", "echo"),
    [
        # (a) in order: the segment's own timestamp
        ([0, 1, 2], 30),
        # (b) out of order: that of the last segment that advanced the window
        ([0, 2], 10),
        ([0, 2, 3], 10),
        # (c) a hole is filled: that of the retransmission, the most recent one, for no inflated round trip
        ([0, 2, 1], 30),
    ],
)
def test_a_timestamp_is_echoed_by_the_rules_of_rfc_7323(plain, numbers, echo):
    """Section 4.3; segments are sent at 10, 20, 30."""
    receiver = Receiver(plain)
    echoes = [receiver.receive(number, 10 * place)[1] for place, number in enumerate(numbers, start=1)]
    assert echoes[-1] == echo


@given(numbers=st.lists(st.integers(0, 30), max_size=80))
def test_whatever_arrives_again_and_again_in_any_order_is_acknowledged_and_read_once(plain, numbers):
    tcp = Receiver(plain, rwnd=64)
    arrived, readable = set(), 0
    for number in [*numbers, *range(31)]:
        arrived.add(number)
        ack, _, new = tcp.receive(number)
        readable += new
        assert ack == readable == next(n for n in range(32) if n not in arrived)
    assert not tcp.out_of_order.any()
    assert tcp.conn.held == 0


class Waiting(Receiver):
    """Segments in; whether an acknowledgement has to leave at once."""

    def __init__(self, plain, **options):
        usual = {"rwnd": 32, "delayed_ack": True, "ack_every_segments": 2, "ack_delay": 500 * MS}
        super().__init__(plain, **usual | options)
        self.delayed_ack = plain.delayed_ack

    def receive(self, number):
        """Receive a segment; return the acknowledgement if it leaves at once, or None."""
        self.take(number)
        return int(self.answer().ack) if self.conn.ack_now else None


def adaptive(plain, wait_ms, round_trip_ms=None):
    """Return a receiver that waits as Linux does, now for so long."""
    times = {"ack_delay": 40 * MS, "ack_wait": wait_ms * MS, "timer_tick": 4 * MS, "min_rto": 200 * MS}
    tcp = Waiting(plain, ack_clock=ADAPTIVE, **times)
    tcp.conn.receiver_rtt = NOTHING if round_trip_ms is None else round_trip_ms * MS
    return tcp


@pytest.mark.parametrize(
    ("options", "numbers", "answers"),
    [
        pytest.param({}, range(6), [None, 2, None, 4, None, 6], id="every second"),
        pytest.param({"ack_every_segments": 3}, range(6), [None, None, 3, None, None, 6], id="every third"),
        pytest.param({"delayed_ack": False}, range(3), [1, 2, 3], id="without delay"),
        # RFC 5681, section 4.2: segments out of order or that fill a part of a gap do not wait
        pytest.param({}, (1, 3, 0, 2, 4), [0, 0, 2, 4, None], id="gaps"),
        pytest.param({}, (3, 0, 1), [0, 1, 2], id="in order below a gap"),
        pytest.param({}, (0, 0), [None, 1], id="an old segment"),
        # Linux: 16 quick acknowledgements at the start; here 3
        pytest.param({"quick_acks": 3, "quick_left": 3}, range(6), [1, 2, 3, None, 5, None], id="quick"),
        # the records of Linux: one that comes twice makes them quick again, a gap that is filled does not
        # ("shallow", 0.23 s)
        pytest.param(
            {"quick_acks": 2},
            (0, 2, 1, 3, 4, 4, 5, 6, 7, 8),
            [None, 1, 3, None, 5, 5, 6, 7, None, 9],
            id="quick again",
        ),
    ],
)
def test_which_segments_are_acknowledged_at_once(plain, options, numbers, answers):
    tcp = Waiting(plain, **options)
    assert [tcp.receive(number) for number in numbers] == answers


def test_an_acknowledgement_that_data_has_carried_is_not_sent_again(plain):
    tcp = Waiting(plain)
    tcp.receive(0)
    assert tcp.answer().ack == 1, "carried by data the other way"
    assert tcp.conn.unacknowledged == 0
    tcp.delayed_ack.on_timer(tcp.conn)
    assert not tcp.conn.ack_now, "nothing waits"
    assert tcp.receive(1) is None, "it is the first to wait"


def test_an_adaptive_wait_follows_the_gaps(plain):
    # Linux: half the old wait (in whole ticks of 4 ms) and the gap; for a gap below 20 ms, 20 ms
    tcp = adaptive(plain, 40)
    tcp.conn.in_order_at = NOTHING
    waits = []
    for now in (0, 32, 64, 96, 128, 130):
        tcp.delayed_ack.follow_gap(tcp.conn, now * MS)
        waits.append(int(tcp.conn.ack_wait) // MS)
    assert waits == [40, 52, 56, 60, 60, 48], "20 + 32, 24 + 32, 28 + 32, 28 + 32, 28 + 20"


@pytest.mark.parametrize(("round_trip", "due"), [(None, 1120), (60, 1060), (20, 1040)])
def test_an_adaptive_wait_is_no_longer_than_the_round_trip_that_the_receiver_knows(plain, round_trip, due):
    tcp = adaptive(plain, 117, round_trip)
    assert tcp.delayed_ack.deadline(tcp.conn, 1000 * MS) == due * MS


def test_an_adaptive_wait_that_was_too_short_doubles(plain):
    tcp = adaptive(plain, 40, 10)
    tcp.receive(0)
    for doubled in (80, 160, 210, 210):  # 10 ms and 200 ms: the receiver's timeout
        tcp.delayed_ack.on_timer(tcp.conn)
        assert int(tcp.conn.ack_wait) == doubled * MS
