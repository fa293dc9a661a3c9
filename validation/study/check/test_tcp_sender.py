"""What a sender did, told from hand-made packets: round trips, repairs, timeouts, back-off."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from btqueue.captures.packets import WRAP, Packet
from btqueue.study.check.tcp_sender import SenderLog, SenderObserver

A, B = (b"\n\0\0\1", 1000), (b"\n\0\0\2", 2000)
SIZE = 100


def data(time: float, number: int, first: int = 0, stamp: int = -1) -> Packet:
    return Packet(time, A, B, (first + number * SIZE) % WRAP, 1, True, False, SIZE, stamp, -1)


def ack(time: float, number: int, first: int = 0, echo: int = -1) -> Packet:
    return Packet(time, B, A, 1, (first + number * SIZE) % WRAP, True, False, 0, -1, echo)


def first(count: int) -> list[Packet]:
    """Return the first segments, a hundredth of a second apart."""
    return [data(0.01 * number, number) for number in range(count)]


DUPLICATES = [ack(0.3 + 0.01 * number, 0) for number in range(3)]


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


def test_three_duplicates_answered_at_once_are_a_fast_retransmit():
    log = followed(*first(5), *DUPLICATES, data(0.321, 0), ack(0.7, 5))
    assert (log.fast_retransmits, log.timeouts) == ([0.321], [])


def test_an_early_retransmit_is_no_timeout():
    # RFC 5827 and RFC 8985 wait for fewer than three duplicates; a first timer takes 1 s
    log = followed(*first(5), *DUPLICATES[:2], data(0.311, 0))
    assert (log.fast_retransmits, log.timeouts) == ([0.311], [])


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


def selected(time: float, number: int, *blocks: tuple[int, int]) -> Packet:
    return ack(time, number)._replace(blocks=tuple((SIZE * a, SIZE * b) for a, b in blocks))


OPENING = (
    Packet(-0.1, A, B, WRAP - 1, 0, False, True, 0, selective=True),
    Packet(0.0, B, A, 0, 0, True, True, 0, selective=True),
)
"""Round trip 0.1 s; both ends permit selective acknowledgements."""


def test_the_last_of_several_segments_is_probed():
    sent = [data(0, number) for number in range(3)]
    log = followed(*OPENING, *sent, data(0.2, 2), selected(0.3, 0, (2, 3)), data(0.301, 0), ack(0.4, 3))
    assert (log.probes, log.timeouts, log.fast_retransmits) == ([0.2], [], [0.301])


def test_a_single_segment_is_probed_by_a_sender_with_short_timers_unless_it_lets_several_wait():
    alone = data(0, 0), data(0.4, 0), ack(0.5, 1)
    assert followed(*OPENING, *alone).probes == [0.4]
    assert followed(*alone).timeouts == [] == followed(*alone).probes  # too early for a first timeout of 1 s
    late = data(0, 0), data(1.2, 0), ack(1.3, 1)
    assert followed(*OPENING, *late).timeouts == [1.2]
    waited = data(1, 1), data(1, 2), data(1.4, 1), ack(1.5, 3)
    assert followed(*OPENING, *alone, *waited).timeouts == [0.4, 1.4]


def test_a_timer_that_doubles_after_a_single_segment_was_no_probe():
    def waits(*times: float) -> SenderLog:
        return followed(*OPENING, data(0, 0), *(data(time, 0) for time in times), ack(9, 1))

    assert waits(0.4, 1.2, 2.8).timeouts == [0.4, 1.2, 2.8]
    assert (waits(0.4, 0.8, 1.6).probes, waits(0.4, 0.8, 1.6).timeouts) == ([0.4], [0.8, 1.6])


def test_one_selective_acknowledgement_may_begin_a_recovery_that_a_timer_of_reordering_delays():
    # RACK (RFC 8985): 20 ms of silence after the selective acknowledgement, far less than a timeout
    log = followed(*OPENING, *first(4), selected(0.11, 0, (1, 2)), data(0.13, 0), ack(0.3, 4))
    assert (log.fast_retransmits, log.timeouts) == ([0.13], [])


def test_twenty_thousand_segments_on_their_way_with_one_hole_or_with_as_many_as_there_can_be():
    # A reader that looks through all of them for each acknowledgement takes half a minute.
    count, step = 20_000, 1e-6
    sent = [data(step * number, number, stamp=number) for number in range(count)]
    told = [selected(0.1 + step * k, 0, *((j, j + 1) for j in (k, k - 2, 1))) for k in range(3, count, 2)]
    repairs = [(data(0.161 + step * k, k), ack(0.161 + step * k, k + 2)) for k in range(0, count, 2)]
    log = followed(*OPENING, *sent, *told, *(packet for pair in repairs for packet in pair))
    assert len(log.retransmissions) == len(log.acknowledged) == count // 2
    assert (len(log.fast_retransmits), log.timeouts) == (1, [])
    grown = [selected(0.1 + step * k, 0, (1, k + 1)) for k in range(1, count)]
    log = followed(*OPENING, *sent, *grown, data(0.161, 0), ack(0.162, count))
    assert log.acknowledged == [(0.162, count * SIZE)] and log.fast_retransmits == [0.161]


def test_a_repair_lost_again_and_again_times_out_though_duplicates_arrive():
    duplicates = [ack(0.1 + 0.02 * number, 0) for number in range(40)]
    stream = sorted([*first(40), *duplicates, data(0.141, 0), data(0.801, 0)], key=lambda packet: packet.time)
    log = followed(OPENING[0]._replace(selective=False), OPENING[1]._replace(selective=False), *stream)
    assert (log.fast_retransmits, log.timeouts) == ([0.141], [0.801])


def acks(time: float, number: int, count: int) -> list[Packet]:
    """Return an acknowledgement and its duplicates, a hundredth of a second apart."""
    return [ack(time + 0.01 * again, number) for again in range(count)]


def with_a_lost_repair(*sacked: tuple[int, int]) -> list[Packet]:
    """Segments 0 and 6 are lost; the repair of 6 is, too, when the recovery of 0 ends."""
    begin = [*first(6), selected(0.11, 0, *sacked), data(0.13, 0), data(0.135, 6), data(0.136, 7)]
    return [*begin, selected(0.24, 0, (1, 6), (7, 8)), data(0.241, 6), selected(0.25, 6, (7, 8))]


TWO_HOLES = [selected(0.11, 0, (1, 2), (3, 4)), data(0.13, 0), data(0.135, 5), selected(0.23, 2, (3, 5))]
EXPIRED = [data(1.0, 0), ack(1.1, 1), data(1.101, 1), data(1.102, 2)]
REPAIRED = [*first(5), *DUPLICATES, data(0.321, 0)]
RECOVERIES = {
    # RFC 8985: a sender that takes losses from the order of time sees at the end what is still missing
    "RACK": ([*OPENING, *with_a_lost_repair((1, 2))], [0.13, 0.25]),
    "three had arrived, so that nothing tells of RACK": ([*OPENING, *with_a_lost_repair((1, 4))], [0.13]),
    "a segment older than a repair that has arrived": (
        [*OPENING, *first(5), *TWO_HOLES, data(0.24, 2), ack(0.35, 5), data(0.351, 5)],
        [0.13, 0.351],
    ),
    "a repair by slow start that is lost again": (
        [*OPENING, *first(4), *EXPIRED, selected(1.2, 1, (2, 3)), data(1.21, 1)],
        [1.21],
    ),
    # RFC 5681: Reno leaves at the first new acknowledgement; three further duplicates begin another recovery
    "another hole of Reno": ([*REPAIRED, *acks(0.42, 1, 4), data(0.451, 1)], [0.321, 0.451]),
    # RFC 6582: it lasts until more than `recover` is acknowledged
    "two duplicates of its end": (
        [*REPAIRED, data(0.33, 5), data(0.331, 6), *acks(0.42, 5, 3), data(0.441, 5)],
        [0.321],
    ),
}


@pytest.mark.parametrize(("packets", "begun"), RECOVERIES.values(), ids=RECOVERIES)
def test_a_recovery_begins_within_or_behind_another_by_the_rules_of_its_sender(packets, begun):
    assert followed(*packets).fast_retransmits == begun


def test_repairs_in_the_slow_start_after_a_timeout_are_neither():
    sent = [data(0, number) for number in range(4)]
    after_one = ack(1.1, 1), data(1.101, 1), data(1.102, 2)
    after_three = ack(1.2, 2), ack(1.3, 3), data(1.301, 3), ack(1.4, 4)
    log = followed(*OPENING, *sent, data(1.0, 0), *after_one, *after_three)
    assert (log.timeouts, log.fast_retransmits) == ([1.0], [])
    assert len(log.retransmissions) == 4


def test_what_a_capture_has_out_of_order_was_not_sent_twice():
    log = followed(data(0, 0), data(0.002, 2), data(0.0021, 1), ack(0.1, 3))
    assert log.retransmissions == [] and log.unseen_bytes == 0
    gap = followed(data(0, 0), data(0.002, 2), ack(0.1, 3))
    assert gap.unseen_bytes == SIZE
