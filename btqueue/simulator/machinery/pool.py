"""Packets, segments and messages live in pools: taken from a free list, given back when delivered or lost.

A queue is a chain of `next` links through the packets, so queues need no separate memory, and memory grows
with the packets inside the network. The event loop stops for `grow` (in `construction`) before a pool can run
out.
"""

from btqueue.simulator.machinery.numba_cache import compiled
from btqueue.simulator.records.conventions import NOTHING


@compiled
def take_packet(sim):
    """Return the index of a free packet, now in use."""
    clock = sim.clock[0]
    index = clock.free_packet
    clock.free_packet = sim.packets[index].next
    clock.free_packets -= 1
    sim.packets[index].next = NOTHING
    return index


@compiled
def free_packet(sim, index):
    """Give a packet back."""
    clock = sim.clock[0]
    sim.packets[index].next = clock.free_packet
    clock.free_packet = index
    clock.free_packets += 1


@compiled
def take_segment(sim):
    """Return the index of a free segment, now in use."""
    clock = sim.clock[0]
    index = clock.free_segment
    clock.free_segment = sim.segments[index].next
    clock.free_segments -= 1
    sim.segments[index].next = NOTHING
    return index


@compiled
def free_segment(sim, index):
    """Give a segment back."""
    clock = sim.clock[0]
    sim.segments[index].next = clock.free_segment
    clock.free_segment = index
    clock.free_segments += 1


@compiled
def take_message(sim):
    """Return the index of a free message, now in use."""
    clock = sim.clock[0]
    index = clock.free_message
    clock.free_message = sim.messages[index].next
    clock.free_messages -= 1
    sim.messages[index].next = NOTHING
    return index


@compiled
def free_message(sim, index):
    """Give a message back."""
    clock = sim.clock[0]
    sim.messages[index].next = clock.free_message
    clock.free_message = index
    clock.free_messages += 1
