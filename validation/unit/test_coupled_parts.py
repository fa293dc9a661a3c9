"""The parts of the coupled model of the ring, each against what defines it."""

from typing import Any

import numpy as np
import pytest

import btqueue as bt
from btqueue.channel import TwoStateChannel
from btqueue.channel.packet_trains import exchange_success, train_success
from btqueue.network.coupled import balance, passage
from btqueue.network.coupled.balance import (
    busy_share,
    doublings_beyond,
    expected_timeout,
    share_of_air,
    solve_balance,
)
from btqueue.network.coupled.bucket import Bucket, bucket_of
from btqueue.network.coupled.connection import Connection, solve_connection
from btqueue.network.coupled.counted import counted_rounds
from btqueue.network.coupled.path import Timing
from btqueue.network.coupled.radio import Crossing, crossing
from btqueue.network.coupled.rounds import Spacing, Timer, rounds_of
from btqueue.network.coupled.smooth import greater, longer, positive
from btqueue.network.ring_piconet.ring import ring_of
from btqueue.scenario import Scenario
from btqueue.transport import LossProcess, lockstep_rates

SLOT = 625e-6


def scenario(**changes: Any) -> Scenario:
    """Return the thesis's error-prone piconet, with greedy sources and a processing delay."""
    usual: dict[str, Any] = {"traffic__source": "greedy", "run__jitter_s": 0.005}
    return bt.load("venugopal-2006/piconet-errors").with_(**{**usual, **changes})


@pytest.mark.parametrize(("window", "loss", "backoff"), [(2, 0.2, True), (4, 0.05, True), (5, 0.3, False)])
def test_rounds_of_one_length_are_the_lock_step_chain(window: int, loss: float, backoff: bool):
    """Without waits for tokens or turns every round lasts a round trip: the chain without levels."""
    rtt, ack_loss = 0.1, 0.03
    expected = lockstep_rates(
        window=window, loss=LossProcess.independent(loss, ack_loss), rtt=rtt, rto_backoff=backoff, min_rto=0.7
    )
    found = without_waits(window, 1.0 - loss, 1.0 - ack_loss, rtt, Timer(0.7, 64.0, backoff))
    assert found.goodput == pytest.approx(expected.goodput, rel=1e-6)
    assert found.sends == pytest.approx(expected.sends, rel=1e-6)
    assert found.timeouts == pytest.approx(expected.timeouts, rel=1e-6)
    assert found.fast_retransmits == pytest.approx(expected.fast_retransmits, rel=1e-6)
    assert found.window == pytest.approx(expected.mean_window_found, rel=1e-6)
    assert found.rtt == pytest.approx(rtt, rel=1e-6)


@pytest.mark.parametrize("least", [0.2, 1.0])
def test_stop_and_wait_by_hand(least: float):
    """A segment is sent until it is acknowledged; each failure costs the timeout, doubled up to its cap."""
    rtt, through, back, most = 0.1, 0.4, 0.9, 64.0
    fails = 1.0 - through * back
    waits = [fails ** (k + 1) * min(least * 2.0**k, most) for k in range(400)]
    beyond = doublings_beyond(least, most)
    found = without_waits(1, through, back, rtt, Timer(least, most, True), beyond)
    assert beyond == {0.2: 3, 1.0: 0}[least]
    assert found.goodput == pytest.approx(1.0 / (rtt + sum(waits)), rel=1e-6)
    assert found.timeouts == pytest.approx(fails / (1.0 - fails) * found.goodput, rel=1e-6)


def without_waits(
    window: int, through: float, back: float, rtt: float, timer: Timer, beyond: int = 0
) -> Connection:
    prices = np.array([100.0])
    bucket = Bucket(1e12, prices, 1e4, 1000, False, np.linspace(-1e4, 0.0, 5))
    at_once = Spacing(
        lone=True, spacing_s=1e-12, head_s=0.0, behind_s=0.0, ack_wait_s=1e-3, start_apart_s=1e-12
    )
    ones, none = np.ones(2), np.zeros(0)
    path = Crossing(None, 0, np.ones((1, 2, 2)), none, None, ones, ones, (through, back), 0.0, none)
    counted = counted_rounds(window, windows=True, beyond=beyond)
    rounds = rounds_of(counted, bucket, at_once, timer, rtt)
    return solve_connection(counted, bucket, path, rounds, 0.0)


def test_compiled_passes_are_plain_python(monkeypatch: pytest.MonkeyPatch):
    small = scenario(transport__receive_window_segments=2)
    monkeypatch.setattr(balance, "TOLERANCE", 1e-2)
    compiled = solve_balance(small, 2, np.inf)
    monkeypatch.setattr(passage, "_pass", getattr(passage._pass, "function", passage._pass))
    plain = solve_balance(small, 2, np.inf)
    assert plain.iterations == compiled.iterations
    assert plain.given == pytest.approx(compiled.given, rel=1e-9)


def test_every_pass_keeps_all_probability():
    keep = {}
    ours, monkey = scenario(), passage.rows_from

    def spy(structure: Any, moves: Any, start: Any, visits: Any) -> Any:
        found = monkey(structure, moves, start, visits)
        states = structure.states
        ends = found.shape[0] - passage.index_passage(structure).ending.size
        keep[float(start.sum())] = float(found[states:ends].sum())
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passage, "rows_from", spy)
        solve_balance(ours, 3, np.inf)
    assert keep
    for before, after in keep.items():
        assert after == pytest.approx(before, abs=1e-9)


def test_a_segment_crosses_its_links_as_a_train_of_packets_does():
    ours = scenario()
    timing, radio = Timing(ring_of(ours)), ours.radio
    channel = TwoStateChannel(
        ber_good=radio.ber_good, ber_bad=radio.ber_bad, good_s=radio.good_s, bad_s=radio.bad_s
    )
    packets, ack = ([piece.packet for piece in pieces] for pieces in (timing.ring.data, timing.ring.ack))
    found = crossing(ours, timing)
    lost, acknowledged, ack_lost = found.fates(np.zeros(4), 0.0)
    law = found.transition(np.array(np.inf))[0]
    assert (lost + acknowledged + ack_lost).sum(axis=1) == pytest.approx(1.0)
    through = train_success(channel, packets, gap_s=SLOT, hops=2)
    assert float(law @ lost.sum(axis=1)) == pytest.approx(1.0 - through, rel=1e-12)
    waits = timing.ack_on_own_link_s, timing.ack_wait_s
    both = np.prod([exchange_success(channel, packets, ack, ack_delay_s=wait, gap_s=SLOT) for wait in waits])
    assert float(law @ acknowledged.sum(axis=1)) == pytest.approx(float(both), rel=1e-12)
    far = found.fates(np.full(4, 10.0), 0.0)[0]
    independent = np.prod([train_success(channel, [packet], hops=2) for packet in packets])
    assert float(law @ far.sum(axis=1)) == pytest.approx(1.0 - float(independent), rel=1e-9)


@pytest.mark.parametrize(
    ("changes", "slots"),
    [
        # half a cycle; five packets up, each down while the next goes up; POLL, DH3 up and down
        ({"network__peripherals": 1}, 1 + 46 + 2 + 6),
        # half a cycle; a visit up, one down; the next cycle; DH3 up, an empty frame, DH3 down
        ({"network__peripherals": 2}, 2 + 54 + 4 + 8),
        # as before with visits to four others between the acknowledgement's two, two in the cycle
        ({"network__peripherals": 4}, 4 + 54 + 8 + 8 + 4),
        # the visits go on: an empty frame more, and the acknowledgement goes up at once
        ({"network__peripherals": 2, "polling__limit": 9}, 2 + 56 + 2 + 8),
    ],
)
def test_lone_segment_slot_by_slot(changes: dict[str, Any], slots: int):
    timing = Timing(ring_of(scenario(run__jitter_s=0.0, **changes)))
    assert timing.round_trip_s == pytest.approx(slots * SLOT, rel=1e-12)


def test_the_share_of_the_air_is_all_of_it_at_its_capacity():
    ring = ring_of(scenario(network__peripherals=4))
    assert share_of_air(ring, 4, 0.0, 0.0) == 0.0
    assert share_of_air(ring, 4, ring.air_capacity, ring.air_capacity) == pytest.approx(1.0, rel=1e-12)


def test_levels_are_shared_out_with_their_mean():
    bucket = bucket_of(ring_of(scenario()), 4, 0.0)
    inside = np.linspace(bucket.levels[1], bucket.levels[-2], 301)
    first, shares = bucket.share(inside)
    assert shares.sum(axis=1) == pytest.approx(1.0)
    assert (shares >= 0.0).all()
    mean = (shares * bucket.levels[first[:, None] + np.arange(3)]).sum(axis=1)
    assert mean == pytest.approx(inside, abs=1e-6 * bucket.price)
    first, shares = bucket.share(np.array([-1e9, 1e9]))
    assert (first[0], first[1]) == (0, bucket.levels.size - 3)
    assert shares[0] == pytest.approx([1.0, 0.0, 0.0])
    assert shares[1] == pytest.approx([0.0, 0.0, 1.0])


def test_rounded_maxima():
    x = np.linspace(-3.0, 3.0, 601)
    assert np.abs(positive(x, 0.5) - np.maximum(x, 0.0)).max() == pytest.approx(0.125)
    assert np.abs(np.diff(positive(x, 0.5), 2)).max() < 2e-4  # no corner
    assert longer(np.array(2.0), np.array(1.0), 0.5) == 2.0
    assert greater(np.array([2.0, 0.0, 0.0]), np.array([0.0, 3.0, 0.0])) == pytest.approx([2.0, 3.0, 0.0])
    assert greater(np.array(2.0), np.array(2.0)) == pytest.approx(2.0 * 2 ** (1 / 8))


def test_who_finds_a_connection_busy():
    assert busy_share(1.0, 0.2) == 1.0
    assert busy_share(1.0 - 1e-9, 0.2) == pytest.approx(1.0, abs=1e-7)
    assert busy_share(0.5, 0.0) == 0.0
    assert busy_share(0.5, 0.5) == pytest.approx(1.0 / 3.0)


def test_expected_timeout_has_a_floor():
    assert expected_timeout(0.1, 0.0, 1.0, 64.0) == 1.0
    assert expected_timeout(0.1, 0.01, 1.0, 64.0) == pytest.approx(1.0, abs=1e-12)
    assert expected_timeout(3.0, 0.1, 1.0, 64.0) == pytest.approx(3.4, abs=1e-12)
    assert 1.0 < expected_timeout(0.4, 0.15, 1.0, 64.0) < 1.3
    assert expected_timeout(100.0, 1.0, 1.0, 64.0) == 64.0
