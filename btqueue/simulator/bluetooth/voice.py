"""Voice beside data: slots reserved by synchronous links, and the slots left to the polling cycle.

A synchronous (SCO) link owns a pair of slots in every period: HV1 in every 2 slots, HV2 in every 4, HV3 in
every 6 (Bluetooth Core specification, vol. 2, part B; Venugopal 2006, section 2.1.1). The links of a piconet
lie side by side at the start of the period, so a frame of data has to fit into the gap that is left of the
period. A central without voice has `voice_period` 0. Times are in ns.
"""

from btqueue.baseband.voice import VOICE_PERIOD_SLOTS
from btqueue.simulator.machinery.numba_cache import compiled
from btqueue.simulator.records.conventions import NEVER, SLOT, UNLIMITED

IDLE_VISIT = 2 * SLOT
"""POLL and NULL, the shortest frame."""


@compiled
def next_start(central, now):
    """Return the earliest time from `now` on at which POLL and NULL fit; NEVER if voice leaves no room."""
    if central.voice_period == 0:
        return now
    if central.voice_period - central.voice_reserved < IDLE_VISIT:
        return NEVER
    phase = now % central.voice_period
    if phase < central.voice_reserved:
        return now + central.voice_reserved - phase
    if phase + IDLE_VISIT <= central.voice_period:
        return now
    return now + central.voice_period - phase + central.voice_reserved


@compiled
def room(central, start):
    """Return how long the air is free from `start` on; UNLIMITED without voice."""
    if central.voice_period == 0:
        return UNLIMITED
    phase = start % central.voice_period
    return 0 if phase < central.voice_reserved else central.voice_period - phase


@compiled
def idle_visits(central, since, until):
    """Return how many idle visits, back to back in the free slots from `since` on, are over by `until`."""
    first = next_start(central, since)
    if until < first + IDLE_VISIT:
        return 0
    if central.voice_period == 0:
        return (until - first) // IDLE_VISIT
    phase = first % central.voice_period
    next_period = first - phase + central.voice_period
    if until <= next_period:
        return (until - first) // IDLE_VISIT
    periods = (until - next_period) // central.voice_period
    free = max(0, (until - next_period) % central.voice_period - central.voice_reserved)
    return (next_period - first) // IDLE_VISIT + periods * visits_a_period(central) + free // IDLE_VISIT


@compiled
def start_of_idle_visit(central, since, count):
    """Return when the idle visit starts that follows `count` others, the first of them from `since` on."""
    first = next_start(central, since)
    if first == NEVER:
        return NEVER
    if central.voice_period == 0:
        return first + count * IDLE_VISIT
    next_period = first - first % central.voice_period + central.voice_period
    in_first_period = (next_period - first) // IDLE_VISIT
    if count < in_first_period:
        return first + count * IDLE_VISIT
    later = count - in_first_period
    periods = later // visits_a_period(central)
    position = later % visits_a_period(central)
    return next_period + periods * central.voice_period + central.voice_reserved + position * IDLE_VISIT


@compiled
def visits_a_period(central):
    """Return how many idle visits fit between two reservations."""
    return (central.voice_period - central.voice_reserved) // IDLE_VISIT


def reservation(packet: str, links: int) -> tuple[int, int]:
    """Return the period of the voice links and their part of it (ns); (0, 0) without voice."""
    if links == 0:
        return 0, 0
    return VOICE_PERIOD_SLOTS[packet] * SLOT, 2 * links * SLOT
