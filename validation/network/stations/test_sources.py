"""Sources, delayed acknowledgements and short windows: exact values, hand calculations, limits."""

from itertools import combinations
from math import factorial, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import poisson

import btqueue as bt
from btqueue.baseband import SLOT_S
from btqueue.network.stations.network import network_of
from btqueue.network.stations.queues import MOST_LOAD, growth
from btqueue.network.stations.transport import received

from .test_piconet import mean, star

SHARES = st.lists(st.floats(0.0, 0.3), min_size=1, max_size=7)
SLOTS, ACK = 23 + 5, 3 + 1
"""Of a segment of five packets in frames of their own, and of its acknowledgement."""
DELAY_S = 0.2


def found_by(rate: float, segments: int, every: int, *, tick: bool, apart_s: float = 0.0):
    """Return how a receiver acknowledges messages of so many segments."""
    late = {
        "transport__delayed_ack": True, "transport__ack_every_segments": every,
        "transport__ack_delay_s": DELAY_S, "transport__ack_clock": "tick" if tick else "timer",
        "transport__receive_window_segments": 40, "traffic__message_bytes": 1460 * segments,
    }  # fmt: skip
    (flow, *_) = network_of(star(**late)).flows
    return received(flow, rate * segments, apart_s, carried=True)


@given(st.floats(0.01, 60.0), st.integers(1, 9), st.booleans())
def test_delayed_answers_count_segments(rate, every, tick):
    """From the law of the segments in a timer, or since a tick."""
    number = np.arange(200)
    law, beyond = poisson.pmf(number, rate * DELAY_S), poisson.sf(number, rate * DELAY_S)
    if tick:
        sent, waiting = law @ np.ceil(number / every), beyond[number % every != 0].sum() / rate
        share, wait = sent / (rate * DELAY_S), waiting / sent
    else:
        more = law @ np.minimum(number, every - 1)
        share, wait = 1.0 / (1.0 + more), more / rate
    found = found_by(rate, 1, every, tick=tick)
    assert found.share == pytest.approx(share, rel=1e-8)
    assert found.wait_s == pytest.approx(wait, rel=1e-8, abs=1e-12)


@given(SHARES)
def test_periodic_streams_beget_falling_factorials_of_work(shares):
    expected = sum(
        factorial(j) * sum(prod(c) for c in combinations(shares, j)) for j in range(len(shares) + 1)
    )
    found = growth(np.array(shares), np.ones(len(shares)))
    assert found == pytest.approx(expected, rel=1e-9)
    if (total := sum(shares)) < 0.9:
        assert found <= 1.0 / (1.0 - total) * (1.0 + 1e-9)  # Poisson streams are never more regular
    least = 1.0 - min(total, MOST_LOAD)
    assert growth(np.array(shares), np.zeros(len(shares))) == pytest.approx(1.0 / least)


def test_two_periodic_streams_before_a_third():
    """The wait that a message finds, over all phases of two others: (s / 2) (growth - 1)."""
    service, steps = 0.3, 600
    phases = (np.arange(steps) + 0.5) / steps  # time since they came, of a period 1
    first, second = np.meshgrid(phases, phases)
    late, early = np.minimum(first, second), np.maximum(first, second)
    work = np.maximum(np.maximum(service - (early - late), 0.0) + service - late, 0.0)
    found = growth(np.full(2, service), np.ones(2))
    assert work.mean() == pytest.approx(service / 2 * (found - 1.0), rel=1e-4)


def test_bursts_of_bursty_sources_wait_behind_themselves():
    # an acknowledged window of 8: in long bursts each segment waits for seven others
    long = star(traffic__source="ibp", traffic__scv=2000.0, traffic__load_kbps=5.0)
    alone = mean(star(traffic__load_kbps=0.01), "rtt_s")
    seconds = mean(long, "rtt_s")
    assert 0.9 * 8 * (SLOTS + 2) * SLOT_S < seconds < 8 * (SLOTS + ACK) * SLOT_S + alone
    poisson_like = mean(long.with_(traffic__scv=1.0), "rtt_s")
    assert poisson_like == pytest.approx(mean(star(traffic__load_kbps=5.0), "rtt_s"), rel=0.01)


def test_gated_service_lies_between_exhaustive_and_limited_to_one():
    delays = [
        mean(star(network__peripherals=4, traffic__load_kbps=60.0, polling__discipline=name), "delay_s")
        for name in ("exhaustive", "gated", "1-limited")
    ]
    assert delays == sorted(delays)


@pytest.mark.parametrize(
    ("size", "slots"), [(1000, [25]), (4000, [29, 51, 73, 91]), (4096, [29, 51, 73, 93, 97])]
)
@pytest.mark.parametrize("flows", ["downlink", "uplink"])
def test_acknowledgements_of_a_lone_link_go_beside_the_next_segment(size, slots, flows):
    """By hand, in slots: a segment is three DH5 and a DH1, its acknowledgement a DH3, 96 bytes too.

    A frame of the next segment takes two slots more beside an acknowledgement, which waits for its five.
    """
    scenario = bt.Scenario().changed({
        "network.peripherals": 1, "network.flows": flows, "traffic.load_kbps": 0.1,
        "traffic.message_bytes": size, "transport.windows": "segments", "transport.mss_bytes": 1000,
        "transport.delayed_ack": False, "transport.receive_window_segments": 24,
    })  # fmt: skip
    found = bt.solve(scenario)["rtt_s"].values.mean() / SLOT_S
    assert found == pytest.approx(np.mean(slots), rel=0.02)
