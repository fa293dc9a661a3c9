"""Small event-by-event simulations of bridges, independent of the package: slots, queues and polls only.

Ordinary visits last 2, 4, ..., 30 slots, each with equal probability; all packets take five slots.
"""

import numba
import numpy as np

PACKET = 5
MOST = 1 << 16
"""Packets that a queue may hold: the simulated queues are stable."""


@numba.njit
def tour(random, visits):
    slots = 0
    for _ in range(visits):
        slots += 2 * random.integers(1, 16)
    return slots


@numba.njit
def walk_in(random, visits, rates, limit, switch, tours_stayed, stays):
    """Two or more places visited in turn; packets go to one of the other places at random.

    Returns the mean slots of a period, of an exchange, missed polls for each exchange, and for each place of
    origin the mean wait for the bridge and the mean time held.
    """
    places = len(visits)
    waiting = np.zeros((places, MOST))
    first, last = np.zeros(places, np.int64), np.zeros(places, np.int64)
    held, origin = np.zeros((places, MOST)), np.zeros((places, MOST), np.int64)
    first_held, last_held = np.zeros(places, np.int64), np.zeros(places, np.int64)
    next_packet = np.array([random.exponential(1 / rate) for rate in rates])
    poll = np.array([float(tour(random, n)) for n in visits])
    now, place = 0.0, 0
    exchanges, slots, missed = 0, 0.0, 0
    waits, holds = np.zeros(places), np.zeros(places)
    taken, given = np.zeros(places, np.int64), np.zeros(places, np.int64)
    begun = 0.0
    for stay in range(stays):
        if stay == stays // 20:  # from here on it counts
            begun, exchanges, slots, missed = now, 0, 0.0, 0
            waits[:], holds[:], taken[:], given[:] = 0, 0, 0, 0
        while poll[place] < now:
            missed += 1
            poll[place] += 2 + tour(random, visits[place])
        now = poll[place]
        for turn in range(tours_stayed + 1):
            start = now
            for _ in range(limit):
                while next_packet[place] < now:
                    waiting[place, last[place] % MOST] = next_packet[place]
                    last[place] += 1
                    next_packet[place] += random.exponential(1 / rates[place])
                takes = first[place] < last[place]
                if takes:
                    now += PACKET
                    waits[place] += now - waiting[place, first[place] % MOST]
                    first[place] += 1
                    taken[place] += 1
                    to = (place + random.integers(1, places)) % places
                    held[to, last_held[to] % MOST] = now
                    origin[to, last_held[to] % MOST] = place
                    last_held[to] += 1
                else:
                    now += 1
                gives = first_held[place] < last_held[place]
                if gives:
                    now += PACKET
                    source = origin[place, first_held[place] % MOST]
                    holds[source] += now - held[place, first_held[place] % MOST]
                    given[source] += 1
                    first_held[place] += 1
                else:
                    now += 1
                if not takes and not gives:
                    break
            exchanges += 1
            slots += now - start
            if turn < tours_stayed:
                now += tour(random, visits[place])
        poll[place] = now + tour(random, visits[place])
        now += switch
        place = (place + 1) % places
    per_period = places * (tours_stayed + 1)
    return (
        (now - begun) / exchanges * per_period,
        slots / exchanges,
        missed / exchanges,
        waits / taken,
        holds / given,
    )


@numba.njit
def home(random, own_visits, gathering, visits, rate, limit, switch, cycles):
    """A bridge that tours its own customers between exchanges elsewhere: cycle, exchange, missed polls."""
    now, poll, seen = 0.0, 0.0, 0.0
    here, there, slots, missed = 0, 0, 0.0, 0
    for _ in range(cycles):
        own = tour(random, own_visits)
        here += random.poisson(gathering * own)
        now += own + switch
        while poll < now:
            missed += 1
            poll += 2 + tour(random, visits)
        now = poll
        for _ in range(limit):
            there += random.poisson(rate * (now - seen))
            seen = now
            takes, gives = there > 0, here > 0
            now += PACKET if takes else 1
            there -= takes
            now += PACKET if gives else 1
            here -= gives
            if not takes and not gives:
                break
        slots += now - poll
        poll = now + tour(random, visits)
        now += switch
    return now / cycles, slots / cycles, missed / cycles


@numba.njit
def network(random, places, ends, visits, rate, limit, switch, horizon):
    """Several bridges between two places each, polled in order of number: period, exchange, missed polls."""
    bridges = ends.shape[0]
    at, ready = np.zeros(bridges, np.int64), np.zeros(bridges)
    waiting, held = np.zeros((bridges, 2), np.int64), np.zeros((bridges, 2), np.int64)
    seen = np.zeros((bridges, 2))
    polled, clock = np.zeros(places, np.int64), np.zeros(places)
    of_place, count = np.zeros((places, bridges), np.int64), np.zeros(places, np.int64)
    for bridge in range(bridges):
        for end in range(2):
            place = ends[bridge, end]
            of_place[place, count[place]] = bridge
            count[place] += 1
    exchanges, slots, missed = np.zeros((bridges, 2)), np.zeros((bridges, 2)), np.zeros((bridges, 2))
    begin = horizon / 20
    while True:
        place = np.argmin(clock)
        now = clock[place]
        if now > horizon:
            break
        if polled[place] == count[place]:
            polled[place] = 0
            clock[place] += tour(random, visits)
            continue
        bridge = of_place[place, polled[place]]
        polled[place] += 1
        end = 0 if ends[bridge, 0] == place else 1
        if at[bridge] != end or ready[bridge] > now:
            missed[bridge, end] += now > begin
            clock[place] += 2
            continue
        start = now
        for _ in range(limit):
            waiting[bridge, end] += random.poisson(rate * (now - seen[bridge, end]))
            seen[bridge, end] = now
            takes, gives = waiting[bridge, end] > 0, held[bridge, end] > 0
            now += PACKET if takes else 1
            waiting[bridge, end] -= takes
            held[bridge, 1 - end] += takes
            now += PACKET if gives else 1
            held[bridge, end] -= gives
            if not takes and not gives:
                break
        if start > begin:
            exchanges[bridge, end] += 1
            slots[bridge, end] += now - start
        at[bridge], ready[bridge], clock[place] = 1 - end, now + switch, now
    return (horizon - begin) / exchanges, slots / exchanges, missed / exchanges
