"""Token bucket and uplink of a peripheral in the model: by hand, limits, conservation."""

from dataclasses import replace
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

import btqueue as bt
from btqueue.baseband import SLOT_S
from btqueue.network.ring_piconet.ring import Ring, ring_of
from btqueue.network.ring_piconet.sender_path import Air, SenderPath

RING = ring_of(bt.load("venugopal-2006/piconet"))
AIR = Air(stretch=1.0, companion=0.0, poll_wait_s=0.0, data_relay_s=0.0, ack_relay_s=0.0)


def path_of(**changes: object) -> SenderPath:
    """Return a fresh path of the thesis's ring with some attributes changed."""
    return SenderPath(replace(RING, **changes), AIR)  # type: ignore[arg-type]


def test_thesis_ring_has_52_slots_and_1722_bytes_an_exchange():
    assert (RING.exchange_slots, RING.exchange_packets, RING.exchange_bytes) == (52, 6, 4 * 339 + 183 + 183)
    assert RING.air_capacity * 11.68 == pytest.approx(359.38 / 2, rel=1e-4)


def test_first_segment_finds_tokens_and_takes_its_frames():
    # 4 DH5 and a DH3, each with a NULL: 6 + 6 + 6 + 6 + 4 slots
    assert path_of().send(RING.data, 0.0) == pytest.approx(28 * SLOT_S, rel=1e-12)


def test_packets_wait_for_their_tokens():
    path = path_of(bucket_bytes=339, token_rate=1000.0)
    departure = path.send(RING.data, 0.0)
    waits = [0.0, 0.339, 0.678, 1.017, 1.017 + 0.183]
    assert departure == pytest.approx(waits[-1] + 4 * SLOT_S, rel=1e-12)
    assert list(path.releases) == pytest.approx(waits[1:], rel=1e-12)


def test_full_buffer_refuses_packets_one_by_one():
    path = path_of(bucket_bytes=339, token_rate=1000.0, buffer=2)
    assert path.send(RING.data, 0.0) == inf
    assert (path.counts.offered_to_buffer, path.counts.refused_at_buffer) == (5, 2)


def test_whole_segments_are_refused_without_a_trace():
    path = path_of(bucket_bytes=339, token_rate=1000.0, buffer=3, whole_segments=True)
    assert path.send(RING.data, 0.0) == inf
    assert (path.counts.refused_at_buffer, path.tokens, len(path.releases)) == (5, 339.0, 0)
    assert path.send(RING.ack, 0.0) < inf


def test_full_uplink_refuses():
    path = path_of(token_rate=inf, baseband=3)
    assert path.send(RING.data, 0.0) == inf
    assert (path.counts.offered_to_baseband, path.counts.refused_at_baseband) == (5, 2)


@given(
    gaps=st.lists(st.floats(0.0, 0.5), min_size=1, max_size=40),
    buffer=st.integers(1, 30),
    baseband=st.integers(1, 30),
    rate=st.floats(500.0, 50_000.0),
    jitter=st.sampled_from([0.0, 0.01]),
)
def test_queues_stay_within_their_limits_and_in_order(
    gaps: list[float], buffer: int, baseband: int, rate: float, jitter: float
):
    ring: Ring = replace(RING, buffer=buffer, baseband=baseband, token_rate=rate, jitter_s=jitter)
    path, now, last = SenderPath(ring, AIR), 0.0, 0.0
    for index, gap in enumerate(gaps):
        now += gap
        path.send(ring.ack if index % 3 == 0 else ring.data, now)
        departures = list(path.departures)
        assert departures == sorted(departures)
        assert list(path.releases) == sorted(path.releases)
        assert len(path.releases) <= buffer and len(departures) <= baseband
        if departures:
            assert departures[-1] >= last
            last = departures[-1]
    counts = path.counts
    passed = counts.offered_to_buffer - counts.refused_at_buffer
    assert passed == counts.offered_to_baseband
