"""Single queues that the simulator's queueing-only mode cannot express, as plain loops over packets or slots.

They know nothing of btqueue: numpy's random numbers, laws as cumulative vectors. A packet's start follows
from the end of the service before it (Lindley's recursion); with priorities every slot is played.
"""

import numpy as np
from numba import njit

OFFERED, REFUSED, BATCHES, BATCHES_CUT, STARTED, WAITED, LATE, SOJOURNS, COUNTS = range(9)
"""Packets offered, refused, batches offered, cut; packets served, their waits, those late, their sojourns."""
RING = 1 << 16


@njit(cache=True, nogil=True)
def draw(random, cumulative):
    return np.searchsorted(cumulative, random.random(), side="right")


@njit(cache=True, nogil=True)
def gap(random, rate, bernoulli):
    """Time to the next batch."""
    if not bernoulli:
        return random.exponential(1.0 / rate)
    return 1.0 + (np.floor(np.log1p(-random.random()) / np.log1p(-rate)) if rate < 1.0 else 0.0)


@njit(cache=True, nogil=True)
def first_come_first_served(
    random, rate, bernoulli, sizes, service, capacity, whole, slotted, threshold, late_after, warmup, end
):
    """Counts of the packets that come between ``warmup`` and ``end``; ``capacity`` 0 is no limit.

    A server with ``threshold`` N goes to sleep when its queue is empty, until N packets are there. Packets
    that leave at the instant of an arrival are still found by it.
    """
    counts = np.zeros(COUNTS)
    leaving = np.zeros(max(capacity, 1))  # times at which those in the queue leave
    first, present = 0, 0
    came = np.zeros(threshold + len(sizes))  # arrival times of those that sleep's end is waiting for
    asleep = 0
    free, now = -1.0, 0.0
    while True:
        now += gap(random, rate, bernoulli)
        if now > end:
            return counts
        while present > 0 and leaving[first] < now:
            first = (first + 1) % capacity
            present -= 1
        size = draw(random, sizes)
        joining = size
        if capacity > 0 and size > capacity - present - asleep:
            joining = 0 if whole else capacity - present - asleep
        if now > warmup:
            counts[OFFERED] += size
            counts[REFUSED] += size - joining
            counts[BATCHES] += 1
            counts[BATCHES_CUT] += joining < size
        boundary = np.ceil(now) if slotted else now
        waiting = joining
        if asleep > 0 or free < now:
            came[asleep : asleep + joining] = now
            asleep += joining
            waiting = asleep if asleep >= threshold else 0
        for place in range(waiting):
            arrival = came[place] if asleep > 0 else now
            start = max(free, boundary)
            free = start + draw(random, service)
            if capacity > 0:
                leaving[(first + present) % capacity] = free
                present += 1
            if arrival > warmup:
                counts[STARTED] += 1
                counts[WAITED] += start - arrival
                counts[SOJOURNS] += free - arrival
                counts[LATE] += start - (np.ceil(arrival) if slotted else arrival) > late_after
        if asleep >= threshold:
            asleep = 0


@njit(cache=True, nogil=True)
def priorities(random, rates, sizes, services, preemptive, warmup, slots):
    """Slot by slot with Poisson batches, class 0 first; ``(classes, 3)``: packets, waits, sojourns."""
    classes = len(rates)
    sums = np.zeros((classes, 3))
    came = np.zeros((classes, RING))
    left = np.zeros((classes, RING), np.int64)  # slots of service left, 0 before the first start
    first, present = np.zeros(classes, np.int64), np.zeros(classes, np.int64)
    due = np.array([random.exponential(1.0 / rate) for rate in rates])
    current = -1
    for slot in range(slots):
        if preemptive or current < 0:
            current = -1
            for one in range(classes):
                if present[one] > 0:
                    current = one
                    break
        if current >= 0 and left[current, first[current]] == 0:
            left[current, first[current]] = draw(random, services[current])
            if came[current, first[current]] > warmup:
                sums[current, 0] += 1
                sums[current, 1] += slot - came[current, first[current]]
        for one in range(classes):
            while due[one] <= slot + 1:
                for _ in range(draw(random, sizes[one])):
                    if present[one] == RING:
                        raise ValueError("the ring is full")
                    place = (first[one] + present[one]) % RING
                    came[one, place], left[one, place] = due[one], 0
                    present[one] += 1
                due[one] += random.exponential(1.0 / rates[one])
        if current >= 0:
            place = first[current]
            left[current, place] -= 1
            if left[current, place] == 0:
                if came[current, place] > warmup:
                    sums[current, 2] += slot + 1 - came[current, place]
                first[current] = (place + 1) % RING
                present[current] -= 1
                current = -1
    return sums


@njit(cache=True, nogil=True)
def bulk_service(random, arrivals, bulk, capacity, warmup, epochs):
    """Sums over epochs: queue just before packets leave, packets offered, packets lost."""
    queue, total, offered, lost = 0, 0.0, 0.0, 0.0
    for epoch in range(epochs):
        more = draw(random, arrivals)
        filled = max(queue - bulk, 0) + more
        queue = min(filled, capacity)
        if epoch >= warmup:
            total += queue
            offered += more
            lost += filled - queue
    return total, offered, lost
