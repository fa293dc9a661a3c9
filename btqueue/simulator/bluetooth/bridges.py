"""Bridges: devices in several piconets, one at a time (Venugopal 2006, sections 2.1.1, 2.3.2 and 4.1.2).

A walk-in bridge comes and goes without rendezvous. Each central polls it in every cycle. Absent, it costs
two slots. Present, it answers the first POLL with NULL and exchanges up to `limit` frames; its residence rule
says when it goes to the next of its piconets, cyclically. A bridge with windows is in one piconet for a
window of time and then in another; both ends know the schedule, so no poll is wasted.

A bridge may be the central of one of its piconets. That piconet is silent (`away`) while it is elsewhere.

Deadlock: if the centrals of two piconets are walk-in bridges into each other's, or of several in a ring, all
can be away at once, each waiting to be polled by the other for ever.
"""

import numpy as np

from btqueue.simulator.machinery.numba_cache import compiled, outlined
from btqueue.simulator.machinery.random_streams import uniform
from btqueue.simulator.machinery.timers import cancel, schedule
from btqueue.simulator.records import piconets
from btqueue.simulator.records.conventions import NEVER, NOTHING, SHORTEST_FRAME, SLOT, UNLIMITED

GUARD = 2 * SLOT
"""The end of a window, left for a bridge to align to the clock of another piconet (0 to 2 slots)."""
LOOK_AHEAD = 64
"""Windows that are searched for a meeting before the search is left for later."""


# --------------------------------------------------------------------------------------------------- presence


@outlined
def is_present(sim, b, p, now):
    """Whether bridge `b` answers a POLL that starts now in piconet `p`."""
    bridge = sim.bridges[b]
    if bridge.schedule == piconets.WALK_IN:
        return bridge.piconets[bridge.current] == p and bridge.present_from <= now
    return time_in_window(bridge, p, now) >= SHORTEST_FRAME


@outlined
def may_poll(sim, link, now):
    """Whether the central may start a visit to the link now, as far as it knows the schedules of bridges."""
    p = sim.links[link].piconet
    return keeps_appointment(sim, sim.links[link].bridge, p, now) and keeps_appointment(
        sim, sim.piconets[p].bridge, p, now
    )


@compiled
def keeps_appointment(sim, b, p, now):
    """Whether device `b` (NOTHING: no bridge) may be in piconet `p` now, as far as schedules tell."""
    return b == NOTHING or sim.bridges[b].schedule == piconets.WALK_IN or is_present(sim, b, p, now)


@compiled
def room(sim, link, now):
    """Return how long frames on the link may last from now on (ns); UNLIMITED without windows.

    A longer frame would keep the bridge from its next window.
    """
    p = sim.links[link].piconet
    return min(
        room_of_device(sim, sim.links[link].bridge, p, now),
        room_of_device(sim, sim.piconets[p].bridge, p, now),
    )


@compiled
def room_of_device(sim, b, p, now):
    """Return how long device `b` (or NOTHING) stays in piconet `p` (ns); UNLIMITED without windows."""
    if b == NOTHING or sim.bridges[b].schedule == piconets.WALK_IN:
        return UNLIMITED
    return time_in_window(sim.bridges[b], p, now)


# ---------------------------------------------------------------------------------------------------- windows


@compiled
def time_in_window(bridge, p, now):
    """Return how long the bridge still listens in piconet `p` in the present window (ns), 0 if elsewhere."""
    clock = now + bridge.offset
    if bridge.piconets[turn_of_window(bridge, clock // bridge.window)] != p:
        return 0
    return max(0, bridge.window - clock % bridge.window - GUARD)


@compiled
def turn_of_window(bridge, window):
    """Return which of its piconets the bridge visits in this window: in turn, or as a hash of its number.

    Both ends can compute the hash, as in pseudo-random coordinated scatternet scheduling.
    """
    if bridge.schedule == piconets.SNIFF:
        return window % bridge.count
    return np.int64(scramble(bridge.seed, window) >> np.uint64(33)) % bridge.count


@compiled
def scramble(seed, number):
    """Return 64 pseudo-random bits: the output function of SplitMix64 (Steele, Lea and Flood 2014)."""
    word = np.uint64(seed) + np.uint64(number) * np.uint64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@outlined
def next_meeting(sim, p, now):
    """Return the earliest time from now on at which the central may poll some link of piconet `p`.

    If there is none within `LOOK_AHEAD` windows, return the end of these windows.
    """
    central = sim.piconets[p]
    earliest = NEVER
    for link in range(central.first_link, central.first_link + central.links):
        earliest = min(earliest, next_meeting_on(sim, link, now))
    return earliest


@outlined
def next_meeting_on(sim, link, now):
    """Return when the link may be polled: the devices at both its ends are there."""
    p = sim.links[link].piconet
    at = now
    for _ in range(LOOK_AHEAD):
        if may_poll(sim, link, at):
            break
        at = max(
            next_window(sim, sim.links[link].bridge, p, at),
            next_window(sim, sim.piconets[p].bridge, p, at),
        )
    return at


@compiled
def next_window(sim, b, p, now):
    """Return when device `b` is next in piconet `p`, as far as its windows say; now if it is there."""
    if keeps_appointment(sim, b, p, now):
        return now
    bridge = sim.bridges[b]
    window = (now + bridge.offset) // bridge.window + 1
    for _ in range(LOOK_AHEAD):
        if bridge.piconets[turn_of_window(bridge, window)] == p:
            break
        window += 1
    return window * bridge.window - bridge.offset


# ------------------------------------------------------------------------------------------- coming and going


@outlined
def start(sim, b):
    """Put the bridge into its first piconet at time 0; its own piconet is silent until it comes there.

    Pseudo-random windows are drawn anew in every replication.
    """
    bridge = sim.bridges[b]
    if bridge.schedule == piconets.PSEUDO_RANDOM:
        bridge.seed = np.int64(uniform(sim.streams[bridge.stream]) * 2.0**53)
    if bridge.schedule != piconets.WALK_IN:
        return
    for k in range(bridge.count):
        if bridge.links[k] == NOTHING and k != bridge.current:
            sim.piconets[bridge.piconets[k]].away = True


@outlined
def on_exchange_over(sim, link, ended_by_null, now):
    """An exchange with a bridge that was present is over: the bridge leaves if its residence rule says so.

    VISIT: after every exchange. WHOLE_CYCLES: after `residence_cycles` cycles, so after one exchange more.
    COMPLETE: when the queues of both ends are empty; under overload it never leaves.
    """
    b = sim.links[link].bridge
    bridge = sim.bridges[b]
    bridge.visits_here += 1
    if bridge.schedule != piconets.WALK_IN:
        return
    if (
        bridge.residence == piconets.VISIT
        or (bridge.residence == piconets.WHOLE_CYCLES and bridge.visits_here > bridge.residence_cycles)
        or (bridge.residence == piconets.COMPLETE and ended_by_null)
    ):
        move_on(sim, b, now)


@outlined
def on_cycle_over(sim, p, now):
    """A cycle of piconet `p` is over: its central leaves, if it is a walk-in bridge whose stay is over.

    Its own piconet is silent until it returns. VISIT: after every cycle. WHOLE_CYCLES: after that many.
    COMPLETE: after a cycle without data; under overload it never leaves. Returns whether it has left.
    """
    central = sim.piconets[p]
    idle = not central.cycle_carried_data
    central.cycle_carried_data = False
    b = central.bridge
    if b == NOTHING or sim.bridges[b].schedule != piconets.WALK_IN:
        return False
    bridge = sim.bridges[b]
    bridge.visits_here += 1
    over = (
        bridge.residence == piconets.VISIT
        or (bridge.residence == piconets.WHOLE_CYCLES and bridge.visits_here >= bridge.residence_cycles)
        or (bridge.residence == piconets.COMPLETE and idle)
    )
    if over:
        central.away = True
        cancel(sim, central.timer)
        move_on(sim, b, now)
    return over


@outlined
def move_on(sim, b, now):
    """Send the bridge to the next of its piconets; its own piconet wakes when it comes there."""
    bridge = sim.bridges[b]
    bridge.current = (bridge.current + 1) % bridge.count
    bridge.visits_here = 0
    bridge.present_from = now
    if bridge.switch_delay:
        bridge.present_from = now + int(uniform(sim.streams[bridge.stream]) * 2 * SLOT)
    if bridge.links[bridge.current] == NOTHING:
        central = sim.piconets[bridge.piconets[bridge.current]]
        central.away = False
        schedule(sim, central.timer, bridge.present_from)
