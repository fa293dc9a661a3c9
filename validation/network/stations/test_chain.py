"""One connection over a chain of hops: airtime worked out by hand, limits, and invariants of the answer."""

from fractions import Fraction

import numpy as np
import pytest
from beside import doubted

import btqueue as bt
from btqueue.baseband import SLOT_S
from btqueue.network.stations.network import network_of
from btqueue.network.stations.transport import saw
from btqueue.scenario.traits import in_tables


def load(name: str, **changes):
    return bt.load(f"chen-2004/{name}", {key.replace("__", "."): value for key, value in changes.items()})


def solved(name: str, **changes):
    return bt.solve(load(name, **changes))


def connection(window: int):
    """Return a connection that always has data, with this window."""
    scenario = load("regular-4", transport__receive_window_segments=window)
    return network_of(in_tables(scenario)).flows[0]


def test_goodput_of_one_hop_is_the_rate_of_the_air():
    """ACK and first DH5 share a frame of 10 slots, POLL and the second one take 6."""
    found = solved("regular-1", radio__ber=0.0)
    assert float(found.goodput_kbps.item()) == pytest.approx(4000 / (16 * SLOT_S) / 1000, rel=1e-3)


def test_repetition_halves_the_rate_of_one_hop():
    found = [
        float(solved("regular-1", radio__ber=0.0, radio__per=per).goodput_kbps.item()) for per in (0.0, 0.5)
    ]
    assert found[1] == pytest.approx(found[0] / 2.0, rel=0.01)


def followed_period(room: int) -> int:
    """Follow congestion avoidance by acknowledgements, with fractions, from one loss to the next on one hop.

    Returns the segments that are delivered.
    """
    window, delivered = Fraction(room + 1, 2), 1  # the acknowledgement that ends the recovery
    while window < room + 1:
        window += 1 / window
        window = window.limit_denominator(10**6)
        delivered += 1
    return delivered + 2 * room  # the window before the lost one, and the duplicates after it


@pytest.mark.parametrize("room", [4, 6, 11, 16, 25])
def test_period_of_a_saw(room: int):
    found = saw(connection(64), 0.5, 1.0, room, 0.0, 0.0, batch=False)
    in_vain = saw(connection(64), 0.5, 1.0, room, 0.5, 0.0, batch=False)
    assert 1.0 / in_vain.fast_retransmits - 1.0 / found.fast_retransmits == pytest.approx(0.5)
    assert found.goodput / found.fast_retransmits == pytest.approx(followed_period(room), abs=1)
    assert found.losses == pytest.approx(1.0 / (followed_period(room) + 1.0), rel=0.02)
    assert room / 2 < found.rtt_s < found.window < room + 2


def test_a_window_that_fits_loses_nothing():
    for hops in (1, 2, 4):
        found = solved(
            "regular-4", network__hops=hops, radio__ber=1e-4, transport__receive_window_segments=12
        )
        assert float(found.segment_loss.item()) == 0.0


@pytest.mark.parametrize("hops", [1, 2, 4])
@pytest.mark.parametrize("window", [3, 8, 14])
def test_little_where_nothing_is_lost(hops: int, window: int):
    found = solved("regular-1", network__hops=hops, transport__receive_window_segments=window)
    assert float(found.goodput_kbps.item() / 4 * found.rtt_s.item()) == pytest.approx(window, rel=1e-3)


def test_a_radio_that_never_changes_is_a_constant_one():
    constant = solved("regular-2", radio__ber=2e-4)
    alternating = solved("alternating-regular", network__hops=2, radio__ber_good=2e-4, radio__ber_bad=2e-4)
    for metric in ("goodput_kbps", "rtt_s"):
        assert float(alternating[metric].item()) == pytest.approx(float(constant[metric].item()), rel=1e-6)


def test_states_of_a_radio_share_the_time():
    """A segment of one hop goes by in the time of each state: rates are averaged over time."""
    rates = [float(solved("regular-1", radio__ber=ber).goodput_kbps.item()) for ber in (1e-5, 5e-4)]
    alternating = solved("alternating-regular", radio__ber_good=1e-5, radio__ber_bad=5e-4)
    assert float(alternating.goodput_kbps.item()) == pytest.approx(np.mean(rates), rel=2e-3)


def test_windows_that_wander_between_bridges_with_less_room_are_in_doubt():
    """States of a radio of 0.4 s move a whole window to one bridge: goodput was 12 % too high."""
    scenario = bt.load("chen-2004/adaptive-4").with_(
        radio__model="gilbert-elliott", radio__ber_bad=5e-3, radio__bad_s=0.4
    )
    assert doubted(scenario, "overflow a buffer")
    assert not doubted(scenario.with_(transport__receive_window_segments=7), "overflow a buffer")
