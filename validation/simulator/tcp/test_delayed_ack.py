"""Delayed acknowledgements: every second segment, a deadline, a free-running clock, and what may not wait."""

import pytest
from tcp_receiver_calls import Receiver

from btqueue.simulator.records.connections import ADAPTIVE
from btqueue.simulator.records.conventions import NOTHING

MS = 1_000_000


class Waiting(Receiver):
    """Segments in; whether an acknowledgement has to leave at once."""

    def __init__(self, plain, **options):
        usual = {"rwnd": 32, "delayed_ack": True, "ack_every_segments": 2, "ack_delay": 500 * MS}
        super().__init__(plain, **usual | options)
        self.delayed_ack = plain.delayed_ack

    def receive(self, number):
        """Receive a segment; return the acknowledgement if it leaves at once, or None."""
        self.take(number)
        return self.leave() if self.conn.ack_now else None

    def leave(self):
        return int(self.answer().ack)


@pytest.fixture
def receiver(plain):
    return lambda **options: Waiting(plain, **options)


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
def test_which_segments_are_acknowledged_at_once(receiver, options, numbers, answers):
    tcp = receiver(**options)
    assert [tcp.receive(number) for number in numbers] == answers


def test_an_acknowledgement_that_data_has_carried_is_not_sent_again(receiver):
    tcp = receiver()
    tcp.receive(0)
    assert tcp.leave() == 1, "carried by data the other way"
    assert tcp.conn.unacknowledged == 0
    tcp.delayed_ack.on_timer(tcp.conn)
    assert not tcp.conn.ack_now, "nothing waits"
    assert tcp.receive(1) is None, "it is the first to wait"


def test_an_adaptive_wait_follows_the_gaps(receiver):
    # Linux: half the old wait (in whole ticks of 4 ms) and the gap; for a gap below 20 ms, 20 ms
    tcp = receiver(
        ack_clock=ADAPTIVE, ack_delay=40 * MS, ack_wait=40 * MS, timer_tick=4 * MS, min_rto=200 * MS
    )
    tcp.conn.receiver_rtt = tcp.conn.in_order_at = NOTHING
    waits = []
    for now in (0, 32, 64, 96, 128, 130):
        tcp.delayed_ack.follow_gap(tcp.conn, now * MS)
        waits.append(int(tcp.conn.ack_wait) // MS)
    assert waits == [40, 52, 56, 60, 60, 48], "20 + 32, 24 + 32, 28 + 32, 28 + 32, 28 + 20"


@pytest.mark.parametrize(("round_trip", "due"), [(NOTHING, 1120), (60 * MS, 1060), (20 * MS, 1040)])
def test_an_adaptive_wait_is_no_longer_than_the_round_trip_that_the_receiver_knows(receiver, round_trip, due):
    tcp = receiver(
        ack_clock=ADAPTIVE, ack_delay=40 * MS, ack_wait=117 * MS, timer_tick=4 * MS, min_rto=200 * MS
    )
    tcp.conn.receiver_rtt = round_trip
    assert tcp.delayed_ack.deadline(tcp.conn, 1000 * MS) == due * MS


def test_an_adaptive_wait_that_was_too_short_doubles(receiver):
    tcp = receiver(
        ack_clock=ADAPTIVE, ack_delay=40 * MS, ack_wait=40 * MS, timer_tick=4 * MS, min_rto=200 * MS
    )
    tcp.conn.receiver_rtt = 10 * MS
    tcp.receive(0)
    for doubled in (80, 160, 210, 210):  # 10 ms and 200 ms: the receiver's timeout
        tcp.delayed_ack.on_timer(tcp.conn)
        assert int(tcp.conn.ack_wait) == doubled * MS
