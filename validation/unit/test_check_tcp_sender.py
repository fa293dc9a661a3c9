"""What a sender did, told from hand-made packets: round trips, repairs, timeouts, back-off."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from btqueue.study.check.tcp_sender import WRAP, Packet, SenderLog, SenderObserver

A, B = (b"\n\0\0\1", 1000), (b"\n\0\0\2", 2000)
SIZE = 100


def data(time: float, number: int, first: int = 0, stamp: int = -1) -> Packet:
    return Packet(time, A, B, (first + number * SIZE) % WRAP, 1, True, False, SIZE, stamp, -1)


def ack(time: float, number: int, first: int = 0, echo: int = -1) -> Packet:
    return Packet(time, B, A, 1, (first + number * SIZE) % WRAP, True, False, 0, -1, echo)


def followed(*packets: Packet) -> SenderLog:
    return SenderObserver(A, B, reaction_s=0.005).follow(packets)


def test_round_trips_of_segments_sent_once():
    log = followed(data(0, 0), data(0.1, 1), ack(0.3, 1), ack(0.5, 2))
    assert log.round_trips == [(0.3, 0.3), (0.5, pytest.approx(0.4))]
    assert log.acknowledged == [(0.3, SIZE), (0.5, SIZE)]
    assert log.near


def test_karn_leaves_out_what_was_sent_twice_and_time_stamps_do_not():
    packets = data(0, 0), data(1.2, 0), ack(1.5, 1)
    assert followed(*packets).round_trips == []
    stamped = data(0, 0, stamp=0), data(1.2, 0, stamp=1200), ack(1.5, 1, echo=1200)
    assert followed(*stamped).round_trips == [(1.5, pytest.approx(0.3))]


def test_a_silent_gap_before_the_oldest_segment_is_a_timeout():
    log = followed(data(0, 0), data(0.1, 1), data(1.2, 0), ack(1.5, 2))
    assert log.timeouts == [1.2]
    assert log.fast_retransmits == []
    assert log.retransmissions == [1.2]


def test_three_duplicates_answered_at_once_are_a_fast_retransmit():
    sent = [data(0.01 * number, number) for number in range(5)]
    duplicates = [ack(0.3 + 0.01 * number, 0) for number in range(3)]
    log = followed(*sent, *duplicates, data(0.321, 0), ack(0.7, 5))
    assert log.fast_retransmits == [0.321]
    assert log.timeouts == []


def test_two_duplicates_are_not_enough():
    sent = [data(0.01 * number, number) for number in range(5)]
    log = followed(*sent, ack(0.3, 0), ack(0.31, 0), data(0.311, 0))
    assert (log.fast_retransmits, log.timeouts) == ([], [0.311])


def test_the_answer_to_a_partial_acknowledgement_is_neither():
    sent = [data(0.01 * number, number) for number in range(6)]
    duplicates = [ack(0.3 + 0.01 * number, 0) for number in range(3)]
    partial = ack(0.7, 2), data(0.701, 2)
    log = followed(*sent, *duplicates, data(0.321, 0), *partial, ack(1.0, 6))
    assert log.fast_retransmits == [0.321]
    assert log.timeouts == []
    assert log.retransmissions == [0.321, 0.701]


def test_gaps_of_a_timer_that_doubles():
    log = followed(data(0, 0), data(1, 0), data(3, 0), data(7, 0), ack(7.5, 1), data(8, 1), data(9, 1))
    assert log.backoff_gaps == [(1.0, 2.0), (2.0, 4.0)]
    assert log.timeouts == [1, 3, 7, 9]


@given(st.integers(0, WRAP - 1))
def test_sequence_numbers_may_wrap_around(first):
    sent = [data(0.01 * number, number, first) for number in range(60)]
    log = followed(*sent, ack(1.0, 30, first), ack(1.1, 60, first))
    assert sum(count for _, count in log.acknowledged) == 60 * SIZE
    assert log.retransmissions == []


def test_at_a_receiver_data_is_answered_at_once():
    log = followed(data(0.1, 0), ack(0.1001, 1), data(0.5, 1), ack(0.5001, 2))
    assert not log.near
