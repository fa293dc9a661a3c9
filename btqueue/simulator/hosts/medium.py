"""An outside link (WLAN, cable, CDPD): one transmitter, shared by the ports that send over it.

A full-duplex link has a medium for each direction; the directions of a half-duplex link, or the stations of
a cell, share one. It sends one packet at a time, round robin over the ports with a packet to send. The packet
on the wire stays in its port's queue until it is sent, so that Little's law holds for the time in the system,
but it takes no place there: the limit is the size of a drop-tail buffer in front of the wire.

A medium with interruptions is up and down in turn, for exponential times; while it is down no transmission
starts, and one in progress goes on. At a transmission its state is drawn: `up_at` is the last time at which
it was known to be up, and the two-state Markov chain gives the exact transition probability over the time
since then. The rest of its time down is exponential again. It is up at time 0.
"""

import math

from btqueue.simulator.bluetooth.l2cap import finish_packet
from btqueue.simulator.hosts import delay_line
from btqueue.simulator.hosts.delay_line import on_segment_crossed
from btqueue.simulator.machinery.numba_cache import compiled, outlined
from btqueue.simulator.machinery.queues import offer_up_to, serve
from btqueue.simulator.machinery.random_streams import exponential, uniform
from btqueue.simulator.machinery.timers import later, schedule
from btqueue.simulator.records.conventions import NOTHING, SECOND
from btqueue.simulator.traces import trace
from btqueue.simulator.traces.trace import packet_event


@outlined
def enter(sim, port_index, packet_index, now):
    """A packet comes to the port: it waits for the medium, or is dropped if the queue is full."""
    port = sim.ports[port_index]
    medium = sim.media[port.medium]
    on_wire = 1 if medium.serving == port_index else 0
    if not offer_up_to(sim, port_index, packet_index, sim.queues[port_index].limit + on_wire, now):
        flow = sim.segments[sim.packets[packet_index].segment].flow
        packet_event(sim, trace.PACKET_REFUSED, port_index, packet_index, now)
        sim.flow_statistics[flow].refused_on_the_way += 1
        finish_packet(sim, packet_index, True)
    elif medium.serving == NOTHING:
        start_next(sim, port.medium, now)


@outlined
def on_timer(sim, medium_index, now):
    """A transmission is over, or the medium comes up while packets wait."""
    port_index = sim.media[medium_index].serving
    if port_index == NOTHING:
        start_next(sim, medium_index, now)
        return
    port = sim.ports[port_index]
    packet_index = serve(sim, port_index, now)
    segment_index = sim.packets[packet_index].segment
    start_next(sim, medium_index, now)
    statistics = sim.flow_statistics[sim.segments[segment_index].flow]
    statistics.sent_outside += 1
    if is_lost(sim, port, size_on_wire(sim, medium_index, packet_index)):
        statistics.lost_outside += 1
        packet_event(sim, trace.PACKET_LOST, port_index, packet_index, now)
        finish_packet(sim, packet_index, True)
        return
    statistics.packets_delivered += 1
    packet_event(sim, trace.PACKET_DELIVERED, port_index, packet_index, now)
    finish_packet(sim, packet_index, False)
    if port.line == NOTHING:
        on_segment_crossed(sim, segment_index, now)
    else:
        delay_line.enter(sim, port.line, segment_index, now)


@compiled
def start_next(sim, medium_index, now):
    """Begin the next transmission; or wait until the medium comes up, or for a packet."""
    medium = sim.media[medium_index]
    port_index = next_in_turn(sim, medium)
    medium.serving = NOTHING
    if port_index == NOTHING:
        return
    if not is_up(sim, medium, now):
        schedule(sim, medium.timer, medium.up_at)
        return
    medium.serving = port_index
    medium.next_port = (port_index - medium.first_port + 1) % medium.ports
    packet_index = sim.queues[port_index].head
    packet_event(sim, trace.PACKET_TRANSMITTED, port_index, packet_index, now)
    bits = 8 * size_on_wire(sim, medium_index, packet_index)
    schedule(sim, medium.timer, later(now, bits * SECOND / medium.rate + 0.5))


@compiled
def next_in_turn(sim, medium):
    """Return the next port in turn, after the last one served, that has a packet to send, or NOTHING."""
    for step in range(medium.ports):
        port_index = medium.first_port + (medium.next_port + step) % medium.ports
        if sim.queues[port_index].length > 0:
            return port_index
    return NOTHING


@compiled
def size_on_wire(sim, medium_index, packet_index):
    """Return the bytes that the medium transmits for the packet, its own header included."""
    return sim.packets[packet_index].bytes + sim.media[medium_index].header


@compiled
def is_up(sim, medium, now):
    """Whether a transmission may start now; if not, `up_at` is the time from which on it may."""
    if medium.down_mean == 0.0:
        return True
    if medium.up_at > now:
        return False
    stream = sim.streams[medium.stream]
    memory = math.exp(-(now - medium.up_at) * (1.0 / medium.up_mean + 1.0 / medium.down_mean))
    stationary_up = medium.up_mean / (medium.up_mean + medium.down_mean)
    if now == medium.up_at or uniform(stream) < stationary_up + (1.0 - stationary_up) * memory:
        medium.up_at = now
        return True
    medium.up_at = later(now, exponential(stream, medium.down_mean))
    return False


@compiled
def is_lost(sim, port, size):
    """Draw whether a packet of `size` bytes on the wire is lost; a port without loss draws nothing."""
    if port.loss == 0.0:
        return False
    return uniform(sim.streams[port.stream]) < loss_probability(port.loss, port.loss_block, size)


@compiled
def loss_probability(loss, block, size):
    """Return the probability that any block of `block` bytes is lost; 0: the packet is one block."""
    if block == 0:
        return loss
    blocks = (size + block - 1) // block
    return 1.0 - (1.0 - loss) ** blocks
