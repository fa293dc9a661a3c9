"""The deterministic NewReno sender of the saturation model (RFC 5681, 6582, 6298)."""

from math import inf

import pytest
from greedy_sender import Sender


def new_sender(**changes: float) -> Sender:
    """Return a sender with the thesis's parameters."""
    parameters = {"receive_window": 8, "ssthresh": 64.0, "min_rto": 1.0, "max_rto": 64.0, "rto": 3.0}
    return Sender(**{**parameters, **changes})


def acknowledged_up_to(sender: Sender, number: int) -> None:
    """Let every segment up to `number` be acknowledged one by one, 0.1 s after the last."""
    sender.sendable(0.0)
    for ack in range(1, number + 1):
        sender.acknowledge(ack, 0.1 * (ack - 1), 0.1 * ack)


def test_third_duplicate_retransmits_and_full_acknowledgement_deflates_to_ssthresh():
    sender = new_sender()
    acknowledged_up_to(sender, 10)  # in flight: 10 to 17
    assert [sender.acknowledge(10, 0.9, 1.1) for _ in range(2)] == [[], []]
    assert sender.acknowledge(10, 0.9, 1.1)[0] == 10
    assert (sender.ssthresh, sender.cwnd, sender.recover, sender.fast_retransmits) == (4.0, 7.0, 17, 1)
    sender.acknowledge(18, 0.9, 1.3)
    assert (sender.recovering, sender.cwnd) == (False, 4.0)


def test_partial_acknowledgement_retransmits_the_next_hole_and_deflates():
    sender = new_sender()
    acknowledged_up_to(sender, 10)
    for _ in range(3):
        sender.acknowledge(10, 0.9, 1.1)
    assert sender.acknowledge(12, 0.9, 1.3)[0] == 12
    assert (sender.recovering, sender.cwnd) == (True, 6.0)  # 7 - 2 acknowledged + 1


def test_duplicates_after_a_timeout_do_not_start_recovery_until_recover_is_passed():
    sender = new_sender()
    acknowledged_up_to(sender, 10)
    assert sender.expire(5.0) == [10]
    for _ in range(5):
        assert sender.acknowledge(10, 0.9, 5.1) == []
    assert (sender.cwnd, sender.ssthresh, sender.fast_retransmits) == (1.0, 4.0, 0)


def test_timer_doubles_to_its_maximum_and_idles_127_seconds_from_one():
    sender = new_sender(rto=1.0)
    sender.sendable(0.0)
    now, waits = 0.0, []
    for _ in range(8):
        waits.append(sender.deadline - now)
        now = sender.deadline
        sender.expire(now)
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 64.0]
    assert sum(waits[:7]) == 127.0


def test_timer_stops_when_all_is_acknowledged_and_follows_rfc_6298():
    sender = new_sender(receive_window=1, min_rto=0.2)
    sender.sendable(0.0)
    sender.receive_window = 0
    sender.acknowledge(1, 0.0, 0.5)
    assert sender.deadline == inf
    assert sender.rto == pytest.approx(0.5 + 4 * 0.25, rel=1e-12)
