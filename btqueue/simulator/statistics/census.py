"""Count what is inside the network, by walking its queues and lists: conservation is checked against this."""

import numpy as np

from btqueue.simulator.machinery.compilation import entry_point
from btqueue.simulator.records.arrays import State
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


def packets_inside(sim: State) -> np.ndarray:
    """Return the packets of each flow now in some queue, shape (flows,).

    Ghosts are left out: the far side has counted them.
    """
    inside = np.zeros(len(sim.connections), np.int64)
    walk_packets(sim, inside)
    return inside


@entry_point
def walk_packets(sim, inside):
    """Add the packets of each flow in all queues to `inside`, shape (flows,)."""
    for index in range(len(sim.queues)):
        packet = sim.queues[index].head
        for _ in range(sim.queues[index].length):
            if not sim.packets[packet].ghost:
                inside[sim.segments[sim.packets[packet].segment].flow] += 1
            packet = sim.packets[packet].next


def sojourn_inside(sim: State) -> np.ndarray:
    """Return the time (ns) that the packets inside each queue have spent there since the statistics began."""
    spent = np.zeros(len(sim.queues), np.int64)
    walk_queues(sim, spent)
    return spent


@entry_point
def walk_queues(sim, spent):
    """Add the times that packets have spent in each queue to `spent`, shape (queues,)."""
    clock = sim.clock[0]
    for index in range(len(sim.queues)):
        packet = sim.queues[index].head
        for _ in range(sim.queues[index].length):
            spent[index] += clock.now - max(sim.packets[packet].enqueued_at, clock.statistics_since)
            packet = sim.packets[packet].next


@entry_point
def segments_inside(sim, seen):
    """Mark the segments in delay lines and those whose packets are in queues; `seen` is 0, shape (segments,).

    Returns how many there are. The segment of a ghost may be gone already.
    """
    for index in range(len(sim.queues)):
        packet = sim.queues[index].head
        for _ in range(sim.queues[index].length):
            if not sim.packets[packet].ghost:
                seen[sim.packets[packet].segment] = 1
            packet = sim.packets[packet].next
    for index in range(len(sim.lines)):
        segment = sim.lines[index].head
        for _ in range(sim.lines[index].length):
            seen[segment] = 1
            segment = sim.segments[segment].next
    count = 0
    for index in range(len(seen)):
        count += seen[index]
    return count


@entry_point
def messages_listed(sim):
    """Return the number of messages in the lists of all flows."""
    count = 0
    for flow in range(len(sim.connections)):
        index = sim.connections[flow].message_head
        while index != NOTHING:
            count += 1
            index = sim.messages[index].next
    return count
