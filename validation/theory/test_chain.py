"""The model of chains: airtime worked out by hand, limits, and invariants."""

import numpy as np
import pytest

import btqueue as bt
from btqueue.baseband import SLOT_S
from btqueue.network.chain.bridges import bridge_round, completed_law, exchange_slots
from btqueue.network.chain.link import HopService, Piece
from btqueue.network.chain.pipes import Pace
from btqueue.network.chain.radio import RadioCourse, RadioState, stretched
from btqueue.network.chain.sawtooth import sawtooth
from btqueue.network.chain.window import busy_share, loop_of, one_round, taken_law
from btqueue.network.models import MODELS
from btqueue.scenario.scope import problems_of

PERFECT = HopService((Piece(5, 1.0), Piece(5, 1.0)), (Piece(5, 1.0),))
"""544 bytes in two DH5, the acknowledgement in a third, no errors."""
HALF = HopService((Piece(5, 0.5), Piece(5, 0.5)), (Piece(5, 0.5),))


def load(name: str, **changes):
    return bt.load(f"chen-2004/{name}", {key.replace("__", "."): value for key, value in changes.items()})


def test_airtime_of_a_segment_by_hand():
    # ACK and first DH5 share a frame of 10 slots, POLL and the second one take 6
    assert PERFECT.segment_slots == 16
    assert PERFECT.alone_slots == 18
    assert PERFECT.variance == 0
    # every packet twice
    assert HALF.segment_slots == 32


def test_goodput_of_one_hop_is_the_rate_of_the_air():
    solved = bt.solve(load("regular-1", radio__ber=0.0))
    assert float(solved.goodput_kbps.item()) == pytest.approx(4000 / (16 * SLOT_S) / 1000, rel=1e-9)
    assert float(solved.slot_utilisation) == pytest.approx(15 / 16)


def test_sawtooth_of_one_hop():
    """9,000 bytes hold 16 segments: the window grows from 8.5 to 17, one loss a period."""
    solved = bt.solve(load("regular-1", radio__ber=0.0))
    period = (17**2 - 8.5**2) / 2 + 2 * 17
    assert float(solved.segment_loss.item()) == pytest.approx(1 / period, rel=0.02)
    assert float(solved.rtt_s.item()) < 16 * 16 * SLOT_S


def test_visits_of_two_hops_by_hand():
    """A window of n: n - 1 frames of ACK and DH5, one of ACK alone, n + 1 after POLL, and POLL and NULL."""
    assert Pace(PERFECT, 2).visit(7) == pytest.approx((6 * 10 + 6 + 8 * 6 + 2) * SLOT_S)


def test_a_window_that_fits_loses_nothing():
    for hops in (1, 2, 4):
        solved = bt.solve(
            load("regular-4", network__hops=hops, radio__ber=1e-4, transport__receive_window_segments=12)
        )
        assert float(solved.segment_loss.item()) < 1e-9
        assert float(solved.window_segments.item()) == pytest.approx(12)


@pytest.mark.parametrize("hops", [1, 2])
@pytest.mark.parametrize("window", [3, 8, 14])
def test_little_where_the_orbit_repeats(hops: int, window: int):
    """A window that stays full is in the network all the time: whole periods are counted."""
    solved = bt.solve(load("regular-1", network__hops=hops, transport__receive_window_segments=window))
    assert float(solved.goodput_kbps.item() / 4 * solved.rtt_s.item()) == pytest.approx(window, rel=1e-9)


@pytest.mark.parametrize("hops", [1, 2, 4])
def test_little(hops: int):
    """Mean round trip times rate is never more than the largest window."""
    solved = bt.solve(load("adaptive-4", network__hops=hops, radio__ber=3e-3))
    assert float(solved.goodput_kbps.item() / 4 * solved.rtt_s.item()) <= 20 * (1 + 1e-9)


def test_goodput_falls_with_the_bit_error_rate_and_the_hops():
    rates = [
        [
            float(bt.solve(load("regular-4", network__hops=h, radio__ber=b)).goodput_kbps.item())
            for b in (1e-5, 2e-4, 5e-4)
        ]
        for h in (1, 2, 4)
    ]
    assert np.all(np.diff(rates, axis=1) < 0)
    assert np.all(np.diff(rates, axis=0) < 0)


def test_exchange_and_completed_segments():
    assert exchange_slots(PERFECT, 5) == 2 + 5 * 8
    law = completed_law(PERFECT, 5)
    np.testing.assert_allclose(law[:4], [0, 0, 0.5, 0.5])
    for service in (PERFECT, HALF):
        law = completed_law(service, 5)
        assert law.sum() == pytest.approx(1)
        assert law @ np.arange(len(law)) == pytest.approx(5 / service.data_frames)


def test_round_of_a_bridge_exceeds_its_exchanges():
    for service in (PERFECT, HALF):
        found = bridge_round(service, 5, ("end", "end"))
        assert 2 * exchange_slots(service, 5) < found.slots < 4 * exchange_slots(service, 5)


def test_a_bridge_takes_no_more_than_there_is():
    law = taken_law(5, 0.7, 8)
    np.testing.assert_allclose(law.sum(axis=1), 1)
    assert law[0, 0] == pytest.approx(1)
    assert np.all(np.triu(law, 1) == 0)


def test_ring_of_bernoulli_servers():
    """One piece in a ring of three is at a given station with probability 1/3; many keep it busy."""
    busy = busy_share(3, 0.4, 200)
    assert busy[0] == pytest.approx(0)
    assert busy[1] == pytest.approx(1 / 3)
    assert np.all(np.diff(busy) >= -1e-12)
    assert busy[-1] > 0.98


def loop(**changes):
    usual = {
        "pieces": 2,
        "success": 0.6,
        "frames": 5,
        "queues": 2,
        "rounds": 3.0,
        "capacity": 16.0,
        "limit": 20,
    }
    return loop_of(**(usual | changes))


def test_a_round_moves_every_state_somewhere():
    step = one_round(loop(), 20)
    np.testing.assert_allclose((step.kept + step.lost).sum(axis=1), 1)


def test_sawtooth_conserves():
    found = sawtooth(loop())
    assert found.time.sum() == pytest.approx(1)
    assert found.losses >= found.recoveries > 0
    assert sawtooth(loop(capacity=np.inf)).losses == 0
    assert sawtooth(loop(capacity=10.0)).recoveries > found.recoveries


@pytest.mark.parametrize("turn_s", [0.01, 1.0, 30.0])
def test_round_trips_go_through_the_course_of_the_radio(turn_s: float):
    """Half of the time a round trip would last 1 s, half 2 s; as many segments are on their way in both."""
    states = (RadioState(0.5, PERFECT), RadioState(0.5, HALF))
    course = RadioCourse(states, np.repeat([0, 1], 400), np.ones(800), turn_s / 800)
    trips = [np.array([[1.0], [0.0], [1.0]]), np.array([[2.0], [0.0], [1.0]])]
    means, deviations, weights = stretched(course, trips, [10.0, 5.0])
    # Little: 10 segments, 7.5 a second
    assert np.average(means, weights=weights) == pytest.approx(10 / 7.5, rel=1e-3)
    assert not deviations.any()
    inside = means[weights > 1e-3 * weights.sum()]
    if turn_s == 0.01:
        assert np.ptp(inside) < 0.01
    if turn_s == 30.0:
        assert (inside.min(), inside.max()) == pytest.approx((1, 2), rel=0.01)
        # two thirds of the segments come in the good state, less those under way at its turns
        assert weights[means < 1.01].sum() / weights.sum() == pytest.approx(2 / 3, abs=0.05)


def test_a_radio_that_never_changes_is_a_constant_one():
    constant = bt.solve(load("regular-2", radio__ber=2e-4))
    alternating = bt.solve(
        load("alternating-regular", network__hops=2, radio__ber_good=2e-4, radio__ber_bad=2e-4)
    )
    for metric in ("goodput_kbps", "rtt_s", "rtt_p90_s"):
        assert float(alternating[metric].item()) == pytest.approx(float(constant[metric].item()), rel=1e-6)


def test_a_dead_radio_stalls():
    solved = bt.solve(load("regular-4", radio__ber=0.01))
    assert float(solved.goodput_kbps.item()) < 1e-3
    assert any("stalls" in warning for warning in solved.attrs["warnings"])


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"network.bridge": "MS"}, "network.bridge"),
        ({"polling.residence": "cycle"}, "polling.residence"),
        ({"polling.bridge_limit": 100}, "polling.bridge_limit"),
        ({"link.arq_feedback": "lossy"}, "link.arq_feedback"),
        ({"flow_control.baseband_packets": 10}, "flow_control.baseband_packets"),
        ({"transport.variant": "sack"}, "transport.variant"),
    ],
)
def test_what_is_not_covered_is_refused_by_name(changes, key: str):
    problems = problems_of(MODELS["chain"], bt.load("chen-2004/regular-4", changes))
    assert [problem.key for problem in problems] == [key]
