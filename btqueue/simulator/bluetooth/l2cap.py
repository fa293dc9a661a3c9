"""Segmentation and reassembly: a segment becomes packets, and is intact if every one of them arrives intact.

Packets of a segment travel in order on one path. `segment.travelling` counts the packets not yet delivered or
lost; when it reaches zero the receiving side either has the whole segment or discards it (no repair at this
layer).
"""

from btqueue.simulator.machinery.numba_cache import compiled, outlined
from btqueue.simulator.machinery.queues import give_back, take
from btqueue.simulator.records.conventions import NOTHING
from btqueue.simulator.records.packets import DATA, DATAGRAM
from btqueue.simulator.records.run import PACKETS, SEGMENTS


@outlined
def new_segment(sim, flow, kind, backward, layout, number):
    """Make a segment of the flow, at the start of its route, and return its index."""
    index = take(sim.pools[SEGMENTS], sim.segments)
    segment = sim.segments[index]
    conn = sim.connections[flow]
    segment.flow = flow
    segment.kind = kind
    segment.backward = backward
    segment.layout = layout
    segment.hop = conn.back_route if backward else conn.route
    segment.number = number
    segment.message = NOTHING
    segment.incarnation = conn.incarnation
    segment.ack = segment.timestamp = segment.echo = segment.window = segment.blocks = segment.travelling = 0
    segment.acknowledges = segment.pushed = segment.damaged = False
    return index


@compiled
def new_packet(sim, segment, position):
    """Make the packet at this position of the segment and return its index."""
    layout = sim.layouts[sim.segments[segment].layout]
    return _packet(sim, segment, layout.types[position], layout.bytes[position], layout.tokens[position])


@compiled
def whole_packet(sim, segment, size):
    """Make one packet of the whole segment: for outside links, and where it is cut at each transmission."""
    return _packet(sim, segment, 0, size, sim.layouts[sim.segments[segment].layout].all_tokens)


@compiled
def _packet(sim, segment, packet_type, size, tokens):
    index = take(sim.pools[PACKETS], sim.packets)
    packet = sim.packets[index]
    packet.segment = segment
    packet.type = packet_type
    packet.bytes = size
    packet.tokens = tokens
    packet.hop = sim.segments[segment].hop
    packet.transmissions = 0
    packet.sent_bytes = 0
    packet.corrupted = False
    packet.ghost = False
    return index


@compiled
def finish_packet(sim, packet, lost):
    """Account for a packet that was delivered or lost and give it back.

    Returns whether it was the last of its segment still travelling. An intact segment then stays in use, as
    its node still has to read or forward it; a damaged one is freed here.
    """
    index = sim.packets[packet].segment
    segment = sim.segments[index]
    if lost:
        segment.damaged = True
    segment.travelling -= 1
    give_back(sim.pools[PACKETS], sim.packets, packet)
    if segment.travelling > 0:
        return False
    if segment.damaged:
        count_end_of_travel(sim, segment)
        give_back(sim.pools[SEGMENTS], sim.segments, index)
    return True


@compiled
def count_end_of_travel(sim, segment):
    """Count a segment that carries user data and was lost or has come whole to its last node."""
    statistics = sim.flow_statistics[segment.flow]
    if segment.kind == DATA or segment.kind == DATAGRAM:
        statistics.segments_finished += 1
        if segment.damaged:
            statistics.segments_damaged += 1
            # A datagram is never repeated. A packet of a real program has no incarnation and no counted
            # bytes.
            if segment.kind == DATAGRAM and segment.incarnation != NOTHING:
                statistics.bytes_wasted += sim.layouts[segment.layout].application
