"""Datagrams: each segment leaves once, and a message counts when all of its segments have come."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from state_tables import NOTHING, pool, tables
from thesis import thesis

from btqueue.network import solve
from btqueue.simulator import simulate

POOL = 100


def new_flow(plain):
    """A flow without transport; its segments have the layouts 0 and 1 in turn, of 1000 and 100 user bytes."""
    records = plain.records
    sim = tables(records, clock=1, pools=3, layouts=2, connections=1, flow_statistics=1)
    sim.segments, sim.messages = (pool(records, name, POOL) for name in ("segments", "messages"))
    sim.patterns, sim.starts = np.array([-1, 0, 1]), np.zeros((1, 1), np.int64)
    sim.delay_histogram = np.zeros((1, plain.histograms.BINS), np.int64)
    sim.pools.left = POOL
    sim.layouts.application = 1000, 100
    conn = sim.connections[0]
    conn.unit = 1
    conn.protocol, conn.pattern, conn.pattern_length = records.NO_TRANSPORT, 1, 2
    conn.message_head = conn.message_tail = conn.message_undelivered = conn.session = NOTHING
    return sim


def send(plain, sim, segments, now):
    """Write a message and return the indices of the segments that leave."""
    plain.application.write_message(sim, 0, segments, now)
    left = []
    while (index := plain.datagram.next_output(sim, 0, now)) != NOTHING:
        left.append(index)
    return left


@given(
    messages=st.lists(st.integers(1, 4), max_size=12),
    lost=st.sets(st.integers(0, 48)),
    travel=st.integers(0, 10_000),
)
def test_a_message_counts_when_none_of_its_segments_is_lost(plain, messages, lost, travel):
    sim = new_flow(plain)
    first, whole, received = 0, 0, []
    for now, segments in enumerate(messages):
        whole += not lost & set(range(first, first + segments))
        first += segments
        for index in send(plain, sim, segments, now):
            segment = sim.segments[index]
            if int(segment.number) not in lost:
                received.append(int(segment.layout))
                plain.datagram.on_segment(sim, 0, segment, now + travel)
    count = sim.flow_statistics[0]
    assert (count.messages, count.delivered_in_order) == (len(messages), len(received))
    assert count.bytes_delivered == sum(100 if layout else 1000 for layout in received)
    assert count.messages_delivered == sim.delay_histogram.sum() == whole
    assert (count.delay_sum, count.delay_squares) == (whole * travel, whole * travel**2)


def test_both_engines_count_the_headers_of_datagrams():
    scenario = thesis(
        network={"peripherals": 1, "flows": "uplink"},
        flow_control={"enabled": False},
        link={"packets": ["DH5", "DH1"]},
        traffic={"message_bytes": 335, "load_kbps": 20.0},
        transport={"protocol": "none"},
        run={"duration_s": 20.0, "warmup_s": 1.0, "replications": 2},
    )
    for headers, packet in ((0, "DH5"), (1, "DH5 and DH1")):  # 335 bytes and L2CAP's 4 fill a DH5
        changed = scenario.with_(transport__header_bytes=headers)
        slots = float(solve(changed)["slot_utilisation"]), float(simulate(changed)["slot_utilisation"].mean())
        share = 20_000 / (335 * 8) * (5 + headers) * 625e-6
        assert slots[0] == pytest.approx(share, rel=1e-6), packet
        # 280 messages: 4 deviations of their number are 24 %
        assert slots[1] == pytest.approx(share, rel=0.24), packet
