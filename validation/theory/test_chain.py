"""The model of chains: airtime worked out by hand, limits, and invariants."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from btqueue.network.chain.bridges import bridge_round, completed_law, exchange_slots
from btqueue.network.chain.link import Hop
from btqueue.network.chain.radio import Course, stretched
from btqueue.network.chain.window import Queues, in_one_piconet, over_bridges
from btqueue.network.models import MODELS

import btqueue as bt
from btqueue.baseband import SLOT_S
from btqueue.network.repetition import Train
from btqueue.scenario.scope import problems_of

PERFECT = Hop(Train(((5, 0.0), (5, 0.0))), Train(((5, 0.0),)))
"""544 bytes in two DH5, the acknowledgement in a third, no errors."""
HALF = Hop(Train(((5, 0.5), (5, 0.5))), Train(((5, 0.5),)))


def load(name: str, **changes):
    return bt.load(f"chen-2004/{name}", {key.replace("__", "."): value for key, value in changes.items()})


def solved(name: str, **changes):
    return bt.solve(load(name, **changes))


def test_airtime_of_a_segment_by_hand():
    # ACK and first DH5 share a frame of 10 slots, POLL and the second one take 6
    assert PERFECT.time == PERFECT.least == 16
    assert PERFECT.alone == 18
    assert PERFECT.variance == 0
    # every packet twice
    assert HALF.time == 32
    # attempts vary by e / s^2 = 2: each takes 6 slots for data, 4 more than POLL for the acknowledgement
    assert HALF.variance == 2 * 6**2 * 2 + 4**2 * 2


def test_all_are_answered_by_theory():
    for hops in (1, 2, 4):
        assert bt.solve(load("regular-4", network__hops=hops)).attrs["model"] == "chain"


def test_goodput_of_one_hop_is_the_rate_of_the_air():
    found = solved("regular-1", radio__ber=0.0)
    assert float(found.goodput_kbps.item()) == pytest.approx(4000 / (16 * SLOT_S) / 1000, rel=1e-9)
    assert float(found.slot_utilisation) == pytest.approx(15 / 16)


def followed_period(room: int) -> tuple[int, Fraction]:
    """Follow congestion avoidance by acknowledgements, with fractions, from one loss to the next on one hop.

    Returns the segments that are delivered, and the window at its end.
    """
    window, delivered = Fraction(room + 1, 2), 1  # the acknowledgement that ends the recovery
    while window < room + 1:
        window += 1 / window
        window = window.limit_denominator(10**6)
        delivered += 1
    return delivered + 2 * room, window  # the window before the lost one, and the duplicates after it


@pytest.mark.parametrize("room", [6, 11, 16, 25])
def test_period_of_one_hop(room: int):
    found = in_one_piconet(1, room, 64)
    assert found.delivered == pytest.approx(followed_period(room)[0], abs=1)
    assert found.losses == 1
    assert room / 2 < np.average(found.flights, weights=found.weights) < found.window < room + 2


def test_a_window_that_fits_loses_nothing():
    for hops in (1, 2, 4):
        found = solved(
            "regular-4", network__hops=hops, radio__ber=1e-4, transport__receive_window_segments=12
        )
        assert float(found.segment_loss.item()) == 0.0
        assert float(found.window_segments.item()) == pytest.approx(12)


@pytest.mark.parametrize("hops", [1, 2, 4])
@pytest.mark.parametrize("window", [3, 8, 14])
def test_little_where_nothing_is_lost(hops: int, window: int):
    found = solved("regular-1", network__hops=hops, transport__receive_window_segments=window)
    assert float(found.goodput_kbps.item() / 4 * found.rtt_s.item()) == pytest.approx(window, rel=1e-9)


@pytest.mark.parametrize("hops", [1, 2, 4])
def test_little(hops: int):
    """Mean round trip times rate is never more than the largest window."""
    found = solved("adaptive-4", network__hops=hops, radio__ber=3e-3)
    assert float(found.goodput_kbps.item() / 4 * found.rtt_s.item()) <= 20 * (1 + 1e-9)


def test_goodput_falls_with_the_bit_error_rate_and_the_hops():
    def goodput(hops: int, ber: float) -> float:
        return float(solved("regular-4", network__hops=hops, radio__ber=ber).goodput_kbps.item())

    rates = [[goodput(hops, ber) for ber in (1e-5, 2e-4, 5e-4)] for hops in (1, 2, 4)]
    assert np.all(np.diff(rates, axis=1) < 0)
    assert np.all(np.diff(rates, axis=0) < 0)


def test_delays_of_hosts_only_matter_to_a_window_that_does_not_cover_them():
    delays = {"link__l2cap_delay_s": 0.002, "transport__ip_delay_s": 0.001}
    slow = delays | {"transport__receive_window_segments": 1}
    apart = [solved("regular-1", **(slow | changes)) for changes in ({}, {"link__l2cap_delay_s": 0.0})]
    # on the way down and up, at both ends
    assert float((apart[0].rtt_s - apart[1].rtt_s).item()) == pytest.approx(4 * 0.002)
    wide = solved("regular-1", **delays, transport__receive_window_segments=12)
    plain = solved("regular-1", transport__receive_window_segments=12)
    assert float(wide.goodput_kbps.item()) == pytest.approx(float(plain.goodput_kbps.item()), rel=1e-9)


def test_exchange_and_completed_segments():
    assert exchange_slots(PERFECT, 5) == 2 + 5 * 8
    law = completed_law(PERFECT.data, 5)
    np.testing.assert_allclose(law[:4], [0, 0, 0.5, 0.5])
    for hop in (PERFECT, HALF):
        law = completed_law(hop.data, 5)
        assert law.sum() == pytest.approx(1)
        assert law @ np.arange(len(law)) == pytest.approx(5 / hop.data.frames)


def test_round_of_a_bridge_exceeds_its_exchanges():
    for hop in (PERFECT, HALF):
        found = bridge_round(hop, 5, ("end", "end"))
        assert 2 * exchange_slots(hop, 5) < found.slots < 4 * exchange_slots(hop, 5)


def test_visits_of_limited_length_are_interrupted_by_polls():
    """An exchange is a segment of five packets: its visit fills, and the acknowledgement takes another."""
    whole = Hop(Train(((5, 0.0),) * 5), Train(((5, 0.0),)))
    limited, endless = (bridge_round(whole, 5, ("end", "end"), visit).slots for visit in (5, np.inf))
    exchange = 2 + 4 * 6 + 10
    # a tour of 5 frames of 6 slots, the acknowledgement's of 6, and POLL and NULL: 2 more than the exchange
    assert endless == pytest.approx(2 * (exchange + 2), abs=2.1)
    assert endless < limited <= 2 * (exchange + 4)


QUEUES = Queues(count=2, packets=2, frames=5, success=0.6, rounds=3.0, capacity=16.0)


def test_moments_of_what_a_bridge_takes():
    """Five frames, each with a packet that gets through or not, and two packets a segment."""
    assert QUEUES.mean == pytest.approx(5 * 0.6 / 2)
    assert QUEUES.variance == pytest.approx(5 * 0.6 * 0.4 / 2**2)
    assert replace(QUEUES, success=1.0).busy(10) == 1.0


def test_loss_of_rate_of_two_queues_is_that_of_a_reflected_walk():
    """A walk of variance 2 v a step between 0 and N is pushed back by v / N a step at each end."""
    chance, size = 0.2, 12
    steps = np.diag(np.full(size, chance), 1) + np.diag(np.full(size, chance), -1)
    steps += np.diag(1 - steps.sum(axis=1))
    law = np.linalg.matrix_power(steps, 4096)[0]
    pushed = chance * law[0]
    queues = Queues(count=2, packets=1, frames=1, success=1 - chance, rounds=1.0, capacity=np.inf)
    lost = 1 / queues.busy(size + 1) - 1  # a share of the mean
    assert pushed == pytest.approx(chance / (size + 1), rel=1e-9)
    assert lost * queues.mean == pytest.approx(queues.variance / (size + 1), rel=1e-9)


def test_a_queue_without_chance_exceeds_its_node_by_growing_alone():
    certain = replace(QUEUES, success=1.0).exceeding(20)
    assert not certain[:17].any()
    random = QUEUES.exceeding(20)
    assert np.all(np.diff(random[:17]) >= -1e-12)  # beyond it has exceeded its node already
    assert 0 < random[14] < random[16]


def test_sawtooth_over_bridges():
    found = over_bridges(QUEUES, 20)
    assert 8 < found.window < 20
    assert found.losses >= 1
    assert over_bridges(replace(QUEUES, capacity=np.inf), 20).losses == 0
    assert over_bridges(replace(QUEUES, capacity=10.0), 20).delivered < found.delivered


def test_sawtooth_over_bridges_without_chance():
    """All that waits is in the first queue: the window is lost at what that holds, and what travels."""
    certain = replace(QUEUES, success=1.0)
    largest = 16 + certain.travelling + 1
    found = over_bridges(certain, 64)
    assert found.flights[found.weights > 0].max() == pytest.approx(largest, abs=1)
    # half a window, and two round trips until it is repaired
    assert found.delivered == pytest.approx(3 * largest**2 / 8 + 2 * largest, rel=0.1)


@pytest.mark.parametrize("turn_s", [0.01, 1.0, 30.0])
def test_round_trips_go_through_the_course_of_the_radio(turn_s: float):
    """Half of the time a round trip would last 1 s, half 2 s; as many segments are on their way in both."""
    course = Course((PERFECT, HALF), np.repeat([0, 1], 400), np.ones(800), turn_s / 800)
    trips = [(np.array([1.0]), np.ones(1)), (np.array([2.0]), np.ones(1))]
    _, means, weights = stretched(course, trips, np.array([10.0, 5.0]))
    # Little: 10 segments, 7.5 a second
    assert np.average(means, weights=weights) == pytest.approx(10 / 7.5, rel=1e-3)
    inside = means[weights > 1e-3 * weights.sum()]
    if turn_s == 0.01:
        assert np.ptp(inside) < 0.01
    if turn_s == 30.0:
        assert (inside.min(), inside.max()) == pytest.approx((1, 2), rel=0.01)
        # two thirds of the segments come in the good state, less those under way at its turns
        assert weights[means < 1.01].sum() / weights.sum() == pytest.approx(2 / 3, abs=0.05)


def test_a_radio_that_never_changes_is_a_constant_one():
    constant = solved("regular-2", radio__ber=2e-4)
    alternating = solved("alternating-regular", network__hops=2, radio__ber_good=2e-4, radio__ber_bad=2e-4)
    for metric in ("goodput_kbps", "rtt_s"):
        assert float(alternating[metric].item()) == pytest.approx(float(constant[metric].item()), rel=1e-6)
    assert float(alternating.rtt_p90_s.item()) == pytest.approx(float(constant.rtt_p90_s.item()), rel=0.01)


def test_a_dead_radio_stalls():
    found = solved("regular-4", radio__ber=0.01)
    assert float(found.goodput_kbps.item()) < 1e-3
    assert any("stalls" in warning for warning in found.attrs["warnings"])


def test_a_small_window_is_in_doubt():
    warnings = solved("regular-4", transport__receive_window_segments=3).attrs["warnings"]
    assert any("receive_window_segments" in warning for warning in warnings)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"network.bridge": "MS"}, "network.bridge"),
        ({"polling.residence": "cycle"}, "polling.residence"),
        ({"polling.bridge_limit": 100}, "polling.bridge_limit"),
        ({"link.arq_feedback": "lossy"}, "link.arq_feedback"),
        ({"flow_control.baseband_packets": 10}, "flow_control.baseband_packets"),
        ({"transport.variant": "sack"}, "transport.variant"),
        ({"transport.variant": "vegas"}, "transport.variant"),
        ({"polling.bridge_buffer_packets": 5}, "polling.bridge_buffer_packets"),
    ],
)
def test_what_is_not_covered_is_refused_by_name(changes, key: str):
    problems = problems_of(MODELS["chain"], bt.load("chen-2004/regular-4", changes))
    assert [problem.key for problem in problems] == [key]


def test_small_buffers_of_bridges_are_covered_where_nothing_is_left_in_them():
    """Five packets a segment and an exchange; an error, or another size, would leave some."""
    usual = {
        "link.adaptation": "fixed",
        "link.node_buffer_bytes": None,
        "polling.bridge_buffer_packets": None,
        "polling.limit": 5,
        "traffic.message_bytes": 1460,
        "transport.mss_bytes": 1460,
        "radio.ber": 0.0,
    }
    for changes, covered in (({}, True), ({"radio.ber": 1e-5}, False), ({"polling.limit": 4}, False)):
        scenario = bt.load("chen-2004/regular-4", usual | changes)
        assert bool(problems_of(MODELS["chain"], scenario)) != covered
