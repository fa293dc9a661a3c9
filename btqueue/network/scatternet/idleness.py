"""Time in which nothing is to be sent: bridges come and go in a pattern, whose periods are passed over.

How things stand repeats exactly, since everything takes whole slots, unless switches between piconets take
time. Parts of the compiled loop in `scatternet.air`.
"""

from math import floor, inf

from btqueue.baseband import SLOT_S
from btqueue.network.ring_piconet.records import DOWNLINK, UPLINK
from btqueue.transport.compilation import part

STEP_SLOTS = 2
"""How far piconets are followed between looks while no period is known."""
ENOUGH_LOOKS = 8
"""Looks, a period apart, after which another period is sought."""


@part
def skip_idle_periods(state, paths, end):
    """Pass over whole periods of a network with nothing to send, up to when something is due.

    Return how far to follow the piconets before the next look.

    How things stand is noted at the 1st, 2nd, 4th, 8th, ... look, and compared at each: so a period of any
    length is found (Brent, BIT 20 (1980)). It is mostly that of the last time, so looks are as far apart.
    """
    clock, idle = state.clock[0], min(idle_until(state), end)
    until = floor(max(idle, clock.now) / SLOT_S) - lead(state)
    if until <= clock.slot + clock.period:
        clock.looks = 0
        return 0.0
    if clock.looks > 0 and stands_as_noted(state, paths):
        clock.period = clock.slot - clock.noted_slot
        pass_over(state, floor((until - clock.slot) / clock.period))
        clock.looks = 0
        return 0.0
    if clock.period > 0.0 and clock.looks == ENOUGH_LOOKS:
        clock.looks, clock.period = 0, 0.0
    clock.looks += 1
    if clock.looks & (clock.looks - 1) == 0:
        note_stance(state, paths)
    return clock.period if clock.period > 0.0 else STEP_SLOTS


@part
def idle_until(state):
    """Return when something is due; before all times if there is something to send."""
    until = inf
    for link in range(len(state.peripherals)):
        if state.marks[link, UPLINK, 1] > 0 or state.marks[link, DOWNLINK, 1] > 0:
            return -inf
        until = min(until, state.peripherals[link].due)
    return until


@part
def lead(state):
    """Return how many slots the piconet that has been followed furthest is ahead of the clock."""
    most = 0.0
    for piconet in state.piconets:
        most = max(most, piconet.slot - state.clock[0].slot)
    return most


@part
def stance(piconet):
    """Return where a piconet stands in its cycle, as a number."""
    idle = piconet.data_slots == piconet.slots_before
    return ((piconet.station * 2 + piconet.ready) * 2 + piconet.away) * 2 + idle


@part
def whereabouts(bridge):
    """Return where a bridge is and how long it stays, as a number."""
    return (bridge.exchanges * 64 + bridge.current) * (1 << 20) + bridge.origin


@part
def arrived(state, paths, b):
    """Return the slot of a bridge's coming, as far as it still matters."""
    bridge = state.bridges[b]
    where = state.piconets[paths.piconets[b, bridge.current]]
    return bridge.since if bridge.since >= where.slot else -inf


@part
def note_stance(state, paths):
    """Note how things stand, by the time of the clock."""
    clock = state.clock[0]
    clock.noted_slot = clock.slot
    for piconet in state.piconets:
        piconet.noted_slot, piconet.noted_cycles = piconet.slot - clock.slot, piconet.cycles
        piconet.noted_stance = stance(piconet)
    for b in range(paths.piconets.shape[0]):
        state.bridges[b].noted_since = arrived(state, paths, b) - clock.slot
        state.bridges[b].noted_whereabouts = whereabouts(state.bridges[b])


@part
def stands_as_noted(state, paths):
    """Return whether things stand as they were noted."""
    clock = state.clock[0]
    for piconet in state.piconets:
        if piconet.noted_slot != piconet.slot - clock.slot or piconet.noted_stance != stance(piconet):
            return False
    for b in range(paths.piconets.shape[0]):
        bridge = state.bridges[b]
        if bridge.noted_whereabouts != whereabouts(bridge):
            return False
        if bridge.noted_since != arrived(state, paths, b) - clock.slot:
            return False
    return True


@part
def pass_over(state, periods):
    """Let so many periods go by."""
    clock = state.clock[0]
    slots = periods * (clock.slot - clock.noted_slot)
    for piconet in state.piconets:
        piconet.slot += slots
        piconet.now = piconet.slot * SLOT_S
        piconet.cycles += periods * (piconet.cycles - piconet.noted_cycles)
    for bridge in state.bridges:
        bridge.since += slots
    clock.slot += slots
    clock.now = clock.slot * SLOT_S
