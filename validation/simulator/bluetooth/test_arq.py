"""Stop-and-wait ARQ: limits of repetition, lost acknowledgements, segments cut at transmission.

The fate of packets and of acknowledgement bits is scripted.
"""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from state_tables import NOTHING, pool, tables

from btqueue.simulator.records.conventions import UNLIMITED

POOL = 40
SIZE = 100
"""Bytes of a packet on a port that is not adaptive."""
PORT, RETURN = 0, 1


def link(plain, *, most=UNLIMITED, flush=UNLIMITED, lossy=False, adaptive=False):
    """The two ports of a link, with ARQ."""
    ones = dict.fromkeys(["clock", "settings", "nodes", "piconets"], 1)
    twos = dict.fromkeys(["packet_types", "queues", "queue_statistics", "ports", "flow_statistics"], 2)
    sim = tables(plain.records, pools=3, **ones, **twos)
    sim.packets, sim.segments = (pool(plain.records, name, POOL) for name in ("packets", "segments"))
    sim.pools.left = POOL
    sim.settings.lossy_feedback = lossy
    sim.packet_types.payload = (100, 30)
    sim.queues.head = sim.queues.tail = NOTHING
    sim.queues.limit = 1000
    sim.ports.most_transmissions, sim.ports.flush = most, flush
    sim.ports.adaptive = adaptive
    return sim


def new_segment(plain, sim, packets, flow=0):
    index = plain.queues.take(sim.pools[1], sim.segments)
    segment = sim.segments[index]
    segment.flow, segment.kind, segment.travelling, segment.damaged = flow, plain.records.DATA, packets, False
    return index


def enqueue(plain, sim, segment, now=0, size=SIZE):
    packet = plain.queues.take(sim.pools[0], sim.packets)
    record = sim.packets[packet]
    record.segment, record.type, record.bytes, record.hop = segment, 0, size, 0
    record.transmissions = record.sent_bytes = 0
    record.corrupted = record.ghost = False
    plain.queues.offer(sim, PORT, packet, now)
    sim.piconets.waiting += 1
    return packet


def waiting(sim):
    """Return the packets in the port's queue, in order."""
    queue = sim.queues[PORT]
    found, packet = [], queue.head
    for _ in range(queue.length):
        found.append(int(packet))
        packet = sim.packets[packet].next
    assert not found or found[-1] == queue.tail
    assert sim.piconets[0].waiting == sim.queues.length.sum()
    return found


@pytest.fixture
def script(plain, monkeypatch):
    """Let the test say what is lost: `script.packets` and `script.bits` are read one by one."""
    fates = SimpleNamespace(packets=[], bits=[])

    def reception_fails(sim, port, kind, now):
        sim.piconets[0].hit = fates.packets.pop(0)
        return sim.piconets[0].hit

    monkeypatch.setattr(plain.arq, "reception_fails", reception_fails)
    monkeypatch.setattr(plain.arq, "feedback_is_hit", lambda sim, port, now: fates.bits.pop(0))
    return fates


def transmit(plain, sim, now=0):
    """Let the head packet go on the air and be received or not."""
    central, packet = sim.piconets[0], sim.packets[sim.queues[PORT].head]
    central.packet, central.on_air_type = sim.queues[PORT].head, 0
    central.on_air_bytes = min(sim.packet_types[0].payload, packet.bytes - packet.sent_bytes)
    return plain.arq.on_received(sim, PORT, now)


def test_the_rest_of_a_segment_is_given_up_with_its_packet(plain, script):
    sim = link(plain, most=1)
    lost, other = new_segment(plain, sim, 3), new_segment(plain, sim, 3, flow=1)
    # the packets of two segments mixed, as in a central's downlink queue
    _, b1, _, b2, b3, _ = (
        enqueue(plain, sim, segment) for segment in (lost, other, lost, other, other, lost)
    )
    script.packets = [True]
    transmit(plain, sim)
    assert waiting(sim) == [b1, b2, b3]
    assert sim.flow_statistics.given_up.tolist() == [3, 0]
    assert sim.pools.left[:2].tolist() == [POOL - 3, POOL - 1]
    assert sim.flow_statistics[0].segments_damaged == 1
    assert sim.queue_statistics[PORT].served == 3


@pytest.mark.parametrize(("now", "left"), [(1999, 1), (2000, 1), (2001, 0)])
def test_a_packet_older_than_the_flush_timeout_is_given_up_when_it_fails(plain, script, now, left):
    sim = link(plain, flush=1000)
    packet = enqueue(plain, sim, new_segment(plain, sim, 1), now=1000)
    script.packets = [True, False]
    assert transmit(plain, sim, now=now) == NOTHING
    assert len(waiting(sim)) == left
    assert sim.flow_statistics[0].given_up == 1 - left
    if left:
        assert transmit(plain, sim, now=10**9) == packet, "one that arrives is never too old"


def test_an_acknowledgement_that_comes_through_takes_the_ghost_away(plain, script):
    sim = link(plain, lossy=True)
    segment = new_segment(plain, sim, 1)
    original = enqueue(plain, sim, segment)
    script.packets, script.bits = [False], [False]
    copy = transmit(plain, sim)
    assert copy not in (NOTHING, original)
    assert sim.packets[original].ghost
    fields = ["ghost", "segment", "bytes", "transmissions"]
    assert sim.packets[copy][fields].tolist() == (False, segment, SIZE, 0)
    assert waiting(sim) == [original]
    plain.arq.on_return_packet(sim, PORT, RETURN, 5)
    assert waiting(sim) == []
    assert sim.pools[0].left == POOL - 1
    assert sim.segments[segment].travelling == 1


def test_what_a_bit_says_of_the_packet_before_is_not_taken_for_the_next(plain, script):
    sim = link(plain, lossy=True)
    _, second = (enqueue(plain, sim, new_segment(plain, sim, 1)) for _ in range(2))
    script.packets, script.bits = [False], [False]
    transmit(plain, sim)
    plain.arq.on_return_packet(sim, PORT, RETURN, 1)
    plain.arq.on_return_packet(sim, PORT, RETURN, 2)  # nothing was sent since: no bit is waited for or drawn
    plain.arq.on_feedback(sim, PORT, False, 2)
    assert waiting(sim) == [second]
    assert not sim.packets[second].ghost


def test_with_lossy_feedback_a_packet_is_given_up_when_its_last_answer_is_due(plain, script):
    sim = link(plain, lossy=True, most=2)
    enqueue(plain, sim, new_segment(plain, sim, 1))
    script.packets, script.bits = [True, True], [False, True]
    for left in (1, 0):
        transmit(plain, sim)
        assert len(waiting(sim)) == 1
        plain.arq.on_return_packet(sim, PORT, RETURN, 1)
        assert len(waiting(sim)) == left
    count = sim.flow_statistics[0]
    assert (count.given_up, count.transmissions) == (1, 2)
    assert list(sim.pools.left[:2]) == [POOL, POOL]


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_every_packet_arrives_once_or_is_given_up(plain, data):
    """Whatever is lost: packets arrive in order, at most once, and every one is accounted for."""
    lossy, adaptive = data.draw(st.booleans()), data.draw(st.booleans())
    sim = link(plain, lossy=lossy, adaptive=adaptive, most=data.draw(st.integers(1, 4)))
    sizes = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    expected, segments = [], []
    for packets in sizes:
        segment = new_segment(plain, sim, packets)
        segments.append(segment)
        for _ in range(packets):
            enqueue(plain, sim, segment, size=230 if adaptive else SIZE)
            expected.append(segment)
    arrived, probability = [], data.draw(st.floats(0, 0.8))
    fates = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain.arq, "reception_fails", lambda *_: bool(fates.random() < probability))
        while waiting(sim):
            copy = transmit(plain, sim)
            if copy != NOTHING:
                arrived.append(int(sim.packets[copy].segment))
                plain.queues.give_back(sim.pools[0], sim.packets, copy)
            if lossy:
                plain.arq.on_feedback(sim, PORT, bool(fates.random() < probability), 0)
    assert arrived == sorted(arrived)
    for segment in segments:
        assert arrived.count(segment) <= expected.count(segment)
    assert len(arrived) + sim.flow_statistics[0].given_up == len(expected)
    assert sim.pools[0].left == POOL
