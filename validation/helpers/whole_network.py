"""Play a whole network, take its fingerprint, and check what must hold in any network."""

import hashlib

import numpy as np

from btqueue.simulator.construction.state import grow, new_state
from btqueue.simulator.engine import REACHED, advance
from btqueue.simulator.records.connections import GREEDY, NO_TRANSPORT, TCP
from btqueue.simulator.records.conventions import NOTHING, SECOND, SLOT
from btqueue.simulator.records.nodes import OUTSIDE
from btqueue.simulator.records.packets import DATA, DATAGRAM
from btqueue.simulator.records.run import SEGMENTS
from btqueue.simulator.statistics.backlog import plan_looks
from btqueue.simulator.statistics.invariants import check_invariants

LONGEST = 5
"""Slots of the longest packet."""


def play(scenario, until_s, *, pieces=1, replication=0, measured_from_s=None):
    """Advance to a time in this many pieces of random length, measure from another on; return the state."""
    ends = np.sort(np.random.default_rng(1).integers(0, round(until_s * SECOND), pieces - 1))
    with np.errstate(over="ignore"):
        sim = new_state(scenario, replication)
        if measured_from_s is not None:
            plan_looks(sim, round(measured_from_s * SECOND), until_s)
        for end in [*ends, round(until_s * SECOND)]:
            sim = go_on(sim, end)
    return sim


def go_on(sim, until):
    """Advance to a time (ns); return the state."""
    while advance(sim, int(until)) != REACHED:
        sim = grow(sim)
    return sim


def measure_from_now(sim):
    """Let a measurement begin now, and check what has been seen to wait of flows without a transport."""
    now = int(sim.clock[0].now)
    plan_looks(sim, now, now / SECOND + 1)
    sim = go_on(sim, now)
    assert sim.clock[0].look == 1
    _, _, segments, _ = check_invariants(sim)
    inside = (segments > 0) & (sim.segments.kind == DATAGRAM)
    datagrams = np.bincount(sim.segments.flow[inside], minlength=len(sim.connections))
    for flow, conn in enumerate(sim.connections):
        if conn.protocol == NO_TRANSPORT:
            unsent = 0 if conn.application == GREEDY else conn.written - conn.snd_max
            assert sim.seen[0, flow] == unsent + datagrams[flow]
    return sim


def digest(sim):
    """Return a digest of every field of the state; the bytes between fields of a record are not defined."""
    whole = hashlib.sha256()
    for array in sim.arrays().values():
        for field in array.dtype.names or [...]:
            whole.update(np.ascontiguousarray(array[field]).tobytes())
    return whole.hexdigest()


def sane(sim):
    """Check the invariants, and what they leave open: windows, counts, buffers, radio time."""
    check_invariants(sim)
    check_connections(sim)
    check_counts(sim)
    check_places(sim)
    check_radio_time(sim)


def check_connections(sim):
    """Check the order of a connection's sequence numbers, its windows and timers."""
    conn = sim.connections[sim.connections.protocol == TCP]
    assert (conn.snd_una <= conn.rcv_nxt).all(), "acknowledged before it arrived"
    assert (conn.last_ack_sent <= conn.rcv_nxt).all()
    assert (conn.rcv_nxt <= conn.snd_max).all(), "arrived before it was sent"
    assert ((conn.snd_una <= conn.snd_nxt) & (conn.snd_nxt <= conn.snd_max)).all()
    assert (conn.snd_max <= conn.written).all(), "sent before it was written"
    assert (conn.snd_max - conn.snd_una <= conn.rwnd).all(), "more than the receiver allows"
    assert (conn.cwnd >= 1).all()
    assert (conn.ssthresh >= 1).all()
    assert ((conn.min_rto <= conn.rto) & (conn.rto <= conn.max_rto))[conn.measured].all()
    assert ((conn.held >= 0) & (conn.held < conn.rwnd)).all()
    assert (conn.pipe >= 0).all()
    held = sim.out_of_order[sim.connections.protocol == TCP].sum(axis=1)
    assert (held == conn.held).all(), "what is held out of order"


def check_counts(sim):
    """Check that no count is negative, and none exceeds what it is a part of."""
    count = sim.flow_statistics
    for table in (count, sim.queue_statistics):
        for field in table.dtype.names:
            assert (table[field] >= 0).all(), field
    assert (count.refused_at_token_buffer <= count.offered_to_token_buffer).all()
    assert (count.refused_at_baseband <= count.offered_to_baseband).all()
    assert (count.packets_corrupted <= count.packets_delivered).all()
    assert (count.segments_damaged <= count.segments_finished).all()
    if sim.clock[0].statistics_since == 0:
        assert (count.bytes_delivered + count.bytes_wasted <= count.bytes_sent).all(), "not sent"
        assert (count.messages_delivered <= count.messages - count.messages_refused).all()
        assert (count.segments_retransmitted <= count.segments_sent).all()
        tcp = sim.connections.protocol == TCP
        assert (count.messages_acknowledged <= count.messages_delivered)[tcp].all()
        # A segment that was sent has finished its travel, or is still on it.
        travelling = segments_travelling(sim)
        sent = count.segments_sent
        assert (count.segments_finished + travelling == sent).all(), "segments are not conserved"


def segments_travelling(sim):
    """Return how many segments with user data each flow has in queues and delay lines."""
    free = np.zeros(len(sim.segments), bool)
    index = sim.pools[SEGMENTS].free
    while index != NOTHING:
        free[index] = True
        index = sim.segments.next[index]
    used = sim.segments[~free]
    data = used[np.isin(used.kind, (DATA, DATAGRAM))]
    return np.bincount(data.flow, minlength=len(sim.connections))


def check_places(sim):
    """Check that queues, buckets and buffers hold no more than they can."""
    # The packet on the wire of an outside link takes no place.
    assert (sim.queues.length <= sim.queues.limit + (sim.queues.kind == OUTSIDE)).all()
    assert ((sim.buckets.tokens >= 0) & (sim.buckets.tokens <= sim.buckets.depth)).all()
    assert ((sim.nodes.buffer_used >= 0) & (sim.nodes.buffer_used <= sim.nodes.buffer_limit)).all()


def check_radio_time(sim):
    """Check that no piconet sends more than time allows; the packet on the air is counted when it starts."""
    slots = (sim.clock[0].now - sim.clock[0].statistics_since) // SLOT
    for index, central in enumerate(sim.piconets):
        mine = sim.links[sim.links.piconet == index]
        assert mine.data_slots.sum() <= slots + LONGEST + 1
        assert central.visits == mine.visits.sum()
