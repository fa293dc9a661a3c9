"""Voice beside data: slots reserved by synchronous links, and the slots left to the polling cycle.

A synchronous (SCO) link owns a pair of slots in every period: HV1 in every 2 slots, HV2 in every 4, HV3 in
every 6 (Bluetooth Core specification, vol. 2, part B; Venugopal 2006, section 2.1.1). An extended (eSCO) link
owns a pair of EV packets and may repeat the damaged ones in its window. The links of a piconet lie side by
side at the start of the period, and then come the repetitions of the first link, of the second, and so on. A
frame of data has to fit into the gap that is left of the period, else its visit goes on in the next gap. A
central without voice has `voice_period` 0. Times are in ns.
"""

from btqueue.simulator.bluetooth.radio import is_hit
from btqueue.simulator.machinery.numba_cache import compiled
from btqueue.simulator.records.conventions import NEVER, SHORTEST_FRAME, SLOT, UNLIMITED


@compiled
def next_start(central, now):
    """Return the earliest time from `now` on at which POLL and NULL fit; NEVER if voice leaves no room."""
    if central.voice_period == 0:
        return now
    if central.voice_period - central.voice_reserved < SHORTEST_FRAME:
        return NEVER
    phase = now % central.voice_period
    if phase < central.voice_reserved:
        return now + central.voice_reserved - phase
    if phase + SHORTEST_FRAME <= central.voice_period:
        return now
    return now + central.voice_period - phase + central.voice_reserved


@compiled
def next_free(sim, index, now):
    """As `next_start`, but behind the repetitions of the period, which are drawn when it is first asked.

    Data follow when the last repetition is over, so the radio is looked up in the order of time.
    """
    central = sim.piconets[index]
    start = next_start(central, now)
    if central.voice_links == 0 or start > now:
        return start
    begin = now - now % central.voice_period
    if central.voice_over <= begin:
        first = begin + central.voice_reserved
        central.voice_over = first + repetitions(sim, index, max(first, now))
    if now >= central.voice_over:
        return now
    if central.voice_over + SHORTEST_FRAME <= begin + central.voice_period:
        return central.voice_over
    return begin + central.voice_period + central.voice_reserved


@compiled
def repetitions(sim, index, now):
    """Draw which voice packets of the period are damaged; return how long (ns) they are repeated.

    In the place of a packet that has arrived POLL or NULL is sent, and no exchange begins that does not fit
    into the rest of the window. Voice link k belongs to member k; if there are more links than members, they
    are counted from the first member again.
    """
    central = sim.piconets[index]
    used = 0
    for number in range(central.voice_links):
        link = sim.links[central.first_link + number % central.links]
        down = is_hit(sim, link.down, central.voice_type, now + used)
        up = is_hit(sim, link.up, central.voice_type, now + used)
        left = central.voice_window
        while down or up:
            slots = (central.voice_slots if down else 1) + (central.voice_slots if up else 1)
            if slots > left:
                break
            left -= slots
            used += slots * SLOT
            central.voice_repeated += slots
            down = down and is_hit(sim, link.down, central.voice_type, now + used)
            up = up and is_hit(sim, link.up, central.voice_type, now + used)
    return used


@compiled
def next_gap(central, now):
    """Return when the gap of the next period begins."""
    return now - now % central.voice_period + central.voice_period + central.voice_reserved


@compiled
def room(central, start):
    """Return how long the air is free from `start` on; UNLIMITED without voice."""
    if central.voice_period == 0:
        return UNLIMITED
    phase = start % central.voice_period
    return 0 if phase < central.voice_reserved else central.voice_period - phase
