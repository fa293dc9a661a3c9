"""Segmentation and reassembly: a segment becomes packets, and is intact if every one of them arrives intact.

Packets of a segment travel in order on one path. `segment.travelling` counts those not yet delivered or lost;
when it comes to zero the receiver either has the segment whole or throws the rest away (no repair at this
layer).
"""

from btqueue.simulator.compilation import compiled
from btqueue.simulator.pool import free_packet, free_segment, take_packet, take_segment
from btqueue.simulator.records import DATA


@compiled
def new_segment(sim, flow, kind, number, timestamp):
    """Make a segment and return its index."""
    index = take_segment(sim)
    segment = sim.segments[index]
    segment.flow = flow
    segment.kind = kind
    segment.number = number
    segment.timestamp = timestamp
    segment.damaged = False
    segment.travelling = sim.layouts[kind].count
    return index


@compiled
def new_packet(sim, segment, position):
    """Make the packet at this position of the segment and return its index."""
    layout = sim.layouts[sim.segments[segment].kind]
    index = take_packet(sim)
    packet = sim.packets[index]
    packet.segment = segment
    packet.type = layout.types[position]
    packet.tokens = layout.tokens[position]
    packet.corrupted = False
    return index


@compiled
def finish_packet(sim, packet, lost):
    """Account for a packet that was delivered or lost and give it back.

    Returns whether it was the last of its segment still travelling. An intact segment then stays in use,
    because the receiver has to read it; a damaged one is given back here.
    """
    index = sim.packets[packet].segment
    segment = sim.segments[index]
    if lost:
        segment.damaged = True
    segment.travelling -= 1
    free_packet(sim, packet)
    if segment.travelling > 0:
        return False
    if segment.kind == DATA:
        sim.flow_statistics[segment.flow].segments_finished += 1
    if segment.damaged:
        if segment.kind == DATA:
            sim.flow_statistics[segment.flow].segments_damaged += 1
        free_segment(sim, index)
    return True
