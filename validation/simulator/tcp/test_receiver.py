"""The receiver: cumulative acknowledgements, segments out of order, echoed timestamps (RFC 7323, 4.3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tcp_receiver_calls import Receiver


@pytest.fixture
def receiver(plain):
    return Receiver(plain)


def test_beyond_the_receive_window_nothing_is_kept(receiver):
    assert receiver.acks(8, 7) == [0, 0], "the window is 0 to 7"
    assert receiver.acks(0, 1, 2, 3, 4, 5, 6) == [1, 2, 3, 4, 5, 6, 8]
    assert receiver.acks(8) == [9]


def test_what_arrives_twice_is_counted(receiver):
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
def test_a_timestamp_is_echoed_by_the_rules_of_rfc_7323(receiver, numbers, echo):
    """Section 4.3; segments are sent at 10, 20, 30."""
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
