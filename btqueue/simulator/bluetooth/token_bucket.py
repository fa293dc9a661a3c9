"""L2CAP flow control as a token bucket (Venugopal 2006, section 1.1 and table 3.1).

Packets wait in a buffer of S for tokens, which gather at a constant rate up to the bucket's depth; the packet
at the head leaves for the baseband queue of its port as soon as the bucket holds its price. A full buffer
refuses the packet, or, if `whole_segments`, every packet of its segment; a full baseband queue refuses the
packet. A bucket has the number of its port.
"""

import numpy as np

from btqueue.simulator.bluetooth.baseband_queue import enter_queue, free_node_buffer
from btqueue.simulator.bluetooth.l2cap import finish_packet
from btqueue.simulator.machinery.numba_cache import compiled
from btqueue.simulator.machinery.queues import offer, serve
from btqueue.simulator.machinery.timers import later, schedule
from btqueue.simulator.traces.trace import PACKET_BUFFERED, PACKET_REFUSED_BY_BUFFER, packet_event


@compiled
def accrue(bucket, now):
    """Add the tokens of the time since the last look, up to the depth."""
    bucket.tokens = min(bucket.depth, bucket.tokens + bucket.rate * (now - bucket.updated_at))
    bucket.updated_at = now


@compiled
def enter_baseband(sim, port, packet, now):
    """Hand a packet to the baseband queue of the port, or lose it there."""
    flow = sim.segments[sim.packets[packet].segment].flow
    statistics = sim.flow_statistics[flow]
    statistics.offered_to_baseband += 1
    if not enter_queue(sim, port, packet, now):
        statistics.refused_at_baseband += 1
        free_node_buffer(sim, port, sim.packets[packet].bytes)
        finish_packet(sim, packet, True)


@compiled
def wait_for_tokens(sim, port, now):
    """Set the timer for the instant at which the head packet's price will be there."""
    bucket = sim.buckets[port]
    missing = sim.packets[sim.queues[bucket.queue].head].tokens - bucket.tokens
    schedule(sim, bucket.timer, later(now, np.ceil(missing / bucket.rate)))


@compiled
def admit_packet(sim, port, packet, now):
    """Let a packet pass at once if no packet waits and the tokens suffice; else it waits, or is refused."""
    bucket = sim.buckets[port]
    statistics = sim.flow_statistics[sim.segments[sim.packets[packet].segment].flow]
    passes = not bucket.enabled
    nobody_waits = False
    if bucket.enabled:
        nobody_waits = sim.queues[bucket.queue].length == 0
        if nobody_waits:
            accrue(bucket, now)
            if bucket.tokens >= sim.packets[packet].tokens:
                bucket.tokens -= sim.packets[packet].tokens
                passes = True
    if passes:
        enter_baseband(sim, port, packet, now)
    elif not offer(sim, bucket.queue, packet, now):
        packet_event(sim, PACKET_REFUSED_BY_BUFFER, port, packet, now)
        statistics.refused_at_token_buffer += 1
        free_node_buffer(sim, port, sim.packets[packet].bytes)
        finish_packet(sim, packet, True)
    else:
        packet_event(sim, PACKET_BUFFERED, port, packet, now)
        if nobody_waits:
            wait_for_tokens(sim, port, now)


@compiled
def has_room_for(sim, port, layout, now):
    """Whether a segment of this layout fits as a whole: tokens for its first packets, places for the rest."""
    bucket = sim.buckets[port]
    if not bucket.enabled:
        baseband = sim.queues[port]
        return layout.count <= baseband.limit - baseband.length
    buffer = sim.queues[bucket.queue]
    passing = 0
    if buffer.length == 0:
        accrue(bucket, now)
        tokens = bucket.tokens
        while passing < layout.count and tokens >= layout.tokens[passing]:
            tokens -= layout.tokens[passing]
            passing += 1
    return layout.count - passing <= buffer.limit - buffer.length


@compiled
def on_tokens(sim, port, now):
    """The head packet's tokens have come: release it, and further packets that the rest pays for."""
    bucket = sim.buckets[port]
    accrue(bucket, now)
    while sim.queues[bucket.queue].length > 0:
        head = sim.queues[bucket.queue].head
        if bucket.tokens < sim.packets[head].tokens:
            wait_for_tokens(sim, port, now)
            return
        bucket.tokens -= sim.packets[head].tokens
        enter_baseband(sim, port, serve(sim, bucket.queue, now), now)
