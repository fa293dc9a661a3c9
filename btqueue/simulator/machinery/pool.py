"""Packets, segments and messages live in pools: taken from a free list, given back when delivered or lost.

A queue is a chain of `next` links through the packets, so queues need no separate memory, and memory grows
with the packets inside the network. The event loop stops for `grow` (in `construction`) before a pool can run
out.
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
