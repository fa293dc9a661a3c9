"""Piconets with nothing to send are not played: they sleep, and the next packet wakes them.

With every queue empty a visit is POLL and NULL, two slots, then the next member's turn. When a packet comes,
the visits that took place meanwhile are counted and the half-frame in progress is found, so a run with sleep
has the same results as one without. Piconets with voice links do not sleep.
"""

from btqueue.simulator.bluetooth.disciplines import begin_visit
from btqueue.simulator.machinery.numba_cache import outlined
from btqueue.simulator.machinery.timers import schedule
from btqueue.simulator.records.conventions import NOTHING, SHORTEST_FRAME, SLOT
from btqueue.simulator.records.piconets import DOWNLINK_HALF, UPLINK_HALF


@outlined
def settle(sim, index, now):
    """Count the idle visits of a sleeping piconet that are over by now."""
    central = sim.piconets[index]
    visits = (now - central.idle_since) // SHORTEST_FRAME
    rounds = visits // central.links
    for place in range(central.links):
        more = (place - central.station) % central.links < visits % central.links
        sim.links[central.first_link + place].visits += rounds + more
    central.visits += visits
    central.cycle += (central.station + visits) // central.links
    central.station = (central.station + visits) % central.links
    central.idle_since += visits * SHORTEST_FRAME


@outlined
def settle_all(sim, now):
    """Count the idle visits of all sleeping piconets that are over by now."""
    for index in range(len(sim.piconets)):
        if sim.piconets[index].asleep:
            settle(sim, index, now)


@outlined
def wake(sim, index, now):
    """Go on in the middle of the idle visit that is in progress now."""
    settle(sim, index, now)
    central = sim.piconets[index]
    start = central.idle_since
    central.asleep = False
    central.packet = NOTHING
    central.polled = True
    begin_visit(sim, index, now)
    # The gates of gated service closed before the packet came that wakes the piconet.
    central.gate_down = 0
    central.gate_up = 0
    if now < start + SLOT:
        central.phase = DOWNLINK_HALF
        schedule(sim, central.timer, start + SLOT)
    else:
        central.phase = UPLINK_HALF
        schedule(sim, central.timer, start + 2 * SLOT)
