"""The compiled loop of greedy connections round a ring: the same as plain Python, whatever room it has."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import btqueue as bt
from btqueue.network.ring_piconet import connections, orbit
from btqueue.network.ring_piconet.orbit import RingOfConnections, follow, slow_start
from btqueue.network.ring_piconet.ring import Ring, ring_of
from btqueue.network.ring_piconet.saturation import air_at, new_sender

SCENARIO = bt.load("venugopal-2006/piconet")
RING = ring_of(SCENARIO)
RINGS = {
    "thesis": RING,
    "four peripherals with jitter": replace(RING, peripherals=4, jitter_s=0.02),
    "small buffers": replace(RING, peripherals=3, buffer=6, baseband=7),
    "whole segments": replace(RING, buffer=12, whole_segments=True, token_rate=12_500.0),
    "without flow control": replace(RING, token_rate=float("inf")),
}


def connections_of(ring: Ring) -> RingOfConnections:
    """Return the ring's connections at their start, on an air that is in use."""
    senders = [new_sender(SCENARIO) for _ in range(ring.peripherals)]
    return RingOfConnections(ring, air_at(ring, 0.6 * ring.air_capacity), senders, 0.37, samples=20)


def assert_same(one: RingOfConnections, other: RingOfConnections) -> None:
    """Assert that clocks, connections and paths agree to the last bit."""
    for name in ("clock", "ends"):
        np.testing.assert_array_equal(getattr(one.state, name), getattr(other.state, name))
    np.testing.assert_array_equal(one.state.paths.states, other.state.paths.states)
    np.testing.assert_array_equal(one.state.rtts, other.state.rtts)


@pytest.mark.parametrize("ring", RINGS.values(), ids=RINGS)
def test_compiled_loop_is_plain_python(ring: Ring, monkeypatch: pytest.MonkeyPatch):
    compiled, plain = connections_of(ring), connections_of(ring)
    compiled.play(1000.0, exchanges=250)
    monkeypatch.setattr(orbit, "play", getattr(connections.play, "py_func", connections.play))
    plain.play(1000.0, exchanges=250)
    assert compiled.state.clock["delivered"][0] >= 250
    assert compiled.state.ends["lost"].sum() > 0 or ring.token_rate == float("inf")
    assert_same(compiled, plain)


@pytest.mark.parametrize("ring", RINGS.values(), ids=RINGS)
def test_more_room_changes_nothing(ring: Ring):
    one, other = connections_of(ring), connections_of(ring)
    one.play(1000.0, exchanges=200)
    other.play(1000.0, exchanges=77)
    other._make_room()
    other.play(1000.0, exchanges=200 - int(other.state.clock["delivered"][0]))
    one.state.clock["longest"] = other.state.clock["longest"] = 0
    assert_same(one, other)


def test_queues_grow_when_they_run_full():
    cramped = connections_of(RING)
    cramped.room = cramped.state.deliveries.shape[1] - 3
    cramped.play(1000.0, exchanges=200)
    assert cramped.state.deliveries.shape[1] > connections_of(RING).state.deliveries.shape[1]
    one = connections_of(RING)
    one.play(1000.0, exchanges=200)
    assert_same(one, cramped)


def test_orbit_has_known_values():
    # as an earlier version found them, with objects and a heap of events
    known = 16.021913990660956, 0.1936836032942682, 5.484836170453468
    found = follow(RING, air_at(RING, 0.0), partial(new_sender, SCENARIO))
    assert (found.goodput, found.rtt, found.cwnd) == pytest.approx(known, rel=1e-12)


def test_slow_start_returns_what_was_asked_for():
    rtts, losses = slow_start(RING, air_at(RING, 0.0), new_sender(SCENARIO), 30)
    assert len(rtts) == len(losses) == 30
    # one segment, then two: the second of them waits for the first
    assert rtts[0] < rtts[2]
