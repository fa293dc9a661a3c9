"""Pools of packets, segments and messages, and first-in-first-out queues of packets: chains of `next` links.

An entry is taken from the free list of its pool, and given back when it is delivered or lost. So queues need
no separate memory, and memory grows with the packets inside the network. The event loop stops for `grow` (in
`construction`) before a pool can run out.

A queue has a limit, and the counts that Little's law is checked with: the area under the queue length and the
sum of the packets' sojourn times are gathered independently of each other.
"""

from btqueue.simulator.machinery.numba_cache import compiled
from btqueue.simulator.records.conventions import NOTHING


@compiled
def take(pool, entries):
    """Return the index of a free entry of the pool, now in use."""
    index = pool.free
    pool.free = entries[index].next
    pool.left -= 1
    entries[index].next = NOTHING
    return index


@compiled
def give_back(pool, entries, index):
    """Give an entry back to its pool."""
    entries[index].next = pool.free
    pool.free = index
    pool.left += 1


@compiled
def count_area(statistics, length, now):
    """Bring the integral of the length, and the time not empty, up to now: of a queue that is not empty."""
    since = now - statistics.changed_at
    statistics.area += length * since
    statistics.busy += since
    statistics.changed_at = now


@compiled
def offer(sim, queue, packet, now):
    """Append the packet; return False, with the queue unchanged, when the queue's limit is reached."""
    return offer_up_to(sim, queue, packet, sim.queues[queue].limit, now)


@compiled
def offer_up_to(sim, queue, packet, limit, now):
    """Append the packet; return False, with the queue unchanged, when it has `limit` packets already."""
    line = sim.queues[queue]
    statistics = sim.queue_statistics[queue]
    statistics.offered += 1
    if line.length >= limit:
        statistics.refused += 1
        return False
    sim.packets[packet].enqueued_at = now
    sim.packets[packet].next = NOTHING
    if line.length == 0:
        line.head = packet
        statistics.changed_at = now
    else:
        count_area(statistics, line.length, now)
        sim.packets[line.tail].next = packet
    line.tail = packet
    line.length += 1
    return True


@compiled
def serve(sim, queue, now):
    """Remove and return the packet at the head of a queue that is not empty."""
    line = sim.queues[queue]
    statistics = sim.queue_statistics[queue]
    count_area(statistics, line.length, now)
    packet = line.head
    line.head = sim.packets[packet].next
    line.length -= 1
    statistics.served += 1
    statistics.sojourn += now - max(sim.packets[packet].enqueued_at, sim.clock[0].statistics_since)
    return packet
