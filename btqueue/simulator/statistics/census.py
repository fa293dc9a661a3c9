"""Count the packets and segments inside the network by walking its queues, to check conservation."""

from typing import NamedTuple

import numpy as np

from btqueue.simulator.bluetooth.sleep import settle_all
from btqueue.simulator.machinery.numba_cache import outlined
from btqueue.simulator.records.conventions import NOTHING


def packets_lost(flow: np.recarray) -> np.ndarray:
    """Return the packets of each flow that were lost, by every cause."""
    return (
        flow.refused_at_token_buffer
        + flow.refused_at_baseband
        + flow.refused_at_node
        + flow.refused_on_the_way
        + flow.given_up
        + flow.lost_outside
    )


class Census(NamedTuple):
    """The packets, segments and messages inside the network, to check conservation.

    `packets` of each flow in some queue, shape (flows,), without ghosts: the far side has counted them;
    `sojourn`: time (ns) that the packets in each queue have spent there since the statistics began, shape
    (queues,); `segments`: 1 for each in a delay line, or with a packet in a queue, shape (segments,);
    `messages`: number of listed messages of each flow, shape (flows,).
    """

    packets: np.ndarray
    sojourn: np.ndarray
    segments: np.ndarray
    messages: np.ndarray


@outlined
def walk(sim, packets, sojourn, segments, messages):
    """Write the `Census` into arrays of zeros. The segment of a ghost may be gone already."""
    clock = sim.clock[0]
    for index in range(len(sim.queues)):
        packet = sim.queues[index].head
        for _ in range(sim.queues[index].length):
            sojourn[index] += clock.now - max(sim.packets[packet].enqueued_at, clock.statistics_since)
            if not sim.packets[packet].ghost:
                segment = sim.packets[packet].segment
                packets[sim.segments[segment].flow] += 1
                segments[segment] = 1
            packet = sim.packets[packet].next
    for index in range(len(sim.lines)):
        segment = sim.lines[index].head
        for _ in range(sim.lines[index].length):
            segments[segment] = 1
            segment = sim.segments[segment].next
    for flow in range(len(sim.connections)):
        message = sim.connections[flow].message_head
        while message != NOTHING:
            messages[flow] += 1
            message = sim.messages[message].next


@outlined
def forget_statistics(sim):
    """Start measuring now (end of the warm-up): clear every count, keep the packets inside the network."""
    clock = sim.clock[0]
    settle_all(sim, clock.now)
    clock.statistics_since = clock.now
    clock.pause_at -= clock.events
    clock.events = 0
    sim.halfway[:] = sim.flow_statistics
    sim.flow_statistics[:] = 0
    for flow in range(len(sim.connections)):
        before = sim.halfway[flow]
        sim.flow_statistics[flow].finished_before = before.finished_before + before.segments_finished
    sim.queue_statistics[:] = 0
    for index in range(len(sim.queues)):
        queue = sim.queues[index]
        sim.queue_statistics[index].inside_at_start = queue.length
        sim.queue_statistics[index].changed_at = clock.now
        packet = queue.head
        for _ in range(queue.length):
            if not sim.packets[packet].ghost:
                sim.flow_statistics[sim.segments[sim.packets[packet].segment].flow].inside_at_start += 1
            packet = sim.packets[packet].next
    for index in range(len(sim.piconets)):
        sim.piconets[index].visits = 0
        sim.piconets[index].voice_repeated = 0
    for index in range(len(sim.links)):
        sim.links[index].visits = 0
        sim.links[index].data_slots = 0
    for index in range(len(sim.bridges)):
        sim.bridges[index].switches = 0
    for index in range(len(sim.le_links)):
        link = sim.le_links[index]
        link.events = link.missed = link.taken = link.exchanged = link.disconnections = 0
        link.on_air = link.wakes = link.sent = link.heard = link.spaces = 0
    sim.rtt_histogram[:] = 0
    sim.delay_histogram[:] = 0
