"""Polling disciplines: how long a visit lasts and which link is next (Venugopal 2006, section 2.3.1).

A visit is a row of frames; it ends early when a POLL is answered by NULL. In cyclic order every link is
visited in turn: E-limited (at most `limit` frames; 1 is pure round robin), exhaustive, or gated (the packets
present when the visit began). The other disciplines change the order or leave idle links out. The longest
wait of an uplink, whose queue the central cannot see, is stated below for each discipline. A visit to a
bridge has the bridge's limit.
"""

from btqueue.simulator.bluetooth.bridges import may_poll
from btqueue.simulator.machinery.numba_cache import compiled, outlined
from btqueue.simulator.machinery.random_streams import uniform
from btqueue.simulator.records.conventions import NOTHING, SLOT, UNLIMITED
from btqueue.simulator.records.piconets import EXHAUSTIVE, FEP, GATED, LDQ, LWRR, PRC_LWRR, SLQ, WALK_IN

LAST_CYCLIC = GATED
"""E_LIMITED, EXHAUSTIVE and GATED visit every link in turn."""


@outlined
def start(sim, p):
    """Make ready for the first visit of piconet `p`, at time 0: every link active, with full weight."""
    central = sim.piconets[p]
    central.rendezvous = keeps_windows(sim, central.bridge)
    for station in range(central.links):
        link = sim.links[central.first_link + station]
        link.active = True
        link.weight = central.max_weight
        central.rendezvous = central.rendezvous or keeps_windows(sim, link.bridge)
    central.station = 0
    if central.discipline == PRC_LWRR:
        for place in range(central.links):
            central.order[place] = place
        shuffle(sim, p)
        central.cycle_position = 0
        central.station = central.order[0]


@compiled
def keeps_windows(sim, b):
    """Whether device `b` (NOTHING: no bridge) is a bridge that keeps to windows of time."""
    return b != NOTHING and sim.bridges[b].schedule != WALK_IN


# ---------------------------------------------------------------------------------------------------- a visit


@compiled
def begin_visit(sim, p, now):
    """Open a visit to the station: how many frames it may last, how many packets gated service takes."""
    central = sim.piconets[p]
    link = sim.links[central.first_link + central.station]
    central.frame = 0
    central.carried_data = False
    central.visiting = True
    if link.bridge != NOTHING:
        central.visit_limit = link.limit
        central.gate_down = UNLIMITED
    elif central.discipline in (EXHAUSTIVE, GATED):
        central.visit_limit = UNLIMITED
        # only gated service looks at its gates
        central.gate_down = sim.queues[link.down].length
        central.gate_up = sim.queues[link.up].length
    elif central.discipline == FEP:
        central.visit_limit = 1
    else:
        central.visit_limit = central.limit


@compiled
def visit_is_over(sim, p, null_frame):
    """Whether the visit ends with the frame just played; `null_frame`: it was a POLL answered by NULL."""
    central = sim.piconets[p]
    gates_closed = central.discipline == GATED and central.gate_down <= 0 and central.gate_up <= 0
    return null_frame or central.frame >= central.visit_limit or gates_closed


# --------------------------------------------------------------------------------------------- the next visit


@compiled
def next_station(sim, p, now):
    """Choose the station of the next visit; `central.cycle` counts how often the order has begun anew.

    Returns False, and changes no station, if every link leads to a bridge known to be elsewhere now.
    """
    central = sim.piconets[p]
    if central.discipline > LAST_CYCLIC or central.rendezvous:
        return choose_station(sim, p, now)
    close_visit(central)
    central.station += 1
    if central.station == central.links:
        central.station = 0
        central.cycle += 1
    return True


@compiled
def close_visit(central):
    """Note that the visit is over; asking twice for the next station then counts it once."""
    if central.visiting and central.carried_data:
        central.cycle_carried_data = True
    central.visiting = False


@outlined
def choose_station(sim, p, now):
    """Choose the next station by a discipline that looks at more than the order, or among absent bridges."""
    central = sim.piconets[p]
    if central.visiting:
        learn_from_visit(sim, p, now)
    close_visit(central)
    if central.discipline == PRC_LWRR:
        return next_in_random_order(sim, p, now)
    chosen = lowest_rank(sim, p, now)
    if chosen == NOTHING and central.discipline == FEP:
        for station in range(central.links):
            sim.links[central.first_link + station].active = True
        chosen = lowest_rank(sim, p, now)
    if chosen == NOTHING:
        return False
    if central.discipline == LWRR:
        central.cycle = cycle_by_weight(sim, p, chosen)
    elif chosen <= central.station:
        central.cycle += 1
    central.station = chosen
    return True


@compiled
def learn_from_visit(sim, p, now):
    """Remember of the link just visited whether it had data in either direction."""
    central = sim.piconets[p]
    link = sim.links[central.first_link + central.station]
    link.active = central.carried_data
    link.weight = central.max_weight if central.carried_data else max(1, link.weight - 1)
    if link.weight == 1 and not central.carried_data:
        link.skip_until_cycle = central.cycle + central.max_weight
    link.skip_until = now + (central.max_weight - link.weight) * 2 * central.links * SLOT


@compiled
def lowest_rank(sim, p, now):
    """Return the station of the lowest rank whose bridge, if it is one, is not known to be elsewhere.

    Of stations of equal rank the next in cyclic order is taken; NOTHING if there is no station.
    """
    central = sim.piconets[p]
    chosen = NOTHING
    lowest = UNLIMITED
    for step in range(1, central.links + 1):
        station = (central.station + step) % central.links
        rank = rank_of(sim, p, station)
        if rank < lowest and may_poll(sim, central.first_link + station, now):
            chosen = station
            lowest = rank
    return chosen


@compiled
def rank_of(sim, p, station):
    """Return the rank of a station by the discipline of its piconet; UNLIMITED if it is not to be visited.

    In cyclic order all stations have the same rank.

    Fair exhaustive polling: rounds of one frame each over the active links. A link whose poll brought no data
    is inactive until the central has data for it, or until no active link is left and all become active. Not
    fair: while some other link always has data, the uplink of an inactive one waits without bound.

    Largest queue first: the sum of downlink and uplink queue (SLQ), or the downlink queue alone (LDQ). Empty
    queues go to the next link in cyclic order. SLQ assumes that the uplink queues are reported to the
    central. Neither is fair: a link with few packets waits without bound while others have more; LDQ visits
    an uplink whose downlink is empty only when all downlinks are. A link whose last visit carried no data
    though packets wait (an absent bridge) counts as empty once, so that others get their turn.
    """
    central = sim.piconets[p]
    link = sim.links[central.first_link + station]
    if central.discipline == FEP:
        if sim.queues[link.down].length > 0:
            link.active = True
        return 0 if link.active else UNLIMITED
    if central.discipline == LWRR:
        return cycle_by_weight(sim, p, station) * central.links + station
    if central.discipline != SLQ and central.discipline != LDQ:
        return 0
    if station == central.station and not central.carried_data:
        return 0
    packets = sim.queues[link.down].length
    if central.discipline == SLQ:
        packets += sim.queues[link.up].length
    return -packets


@compiled
def cycle_by_weight(sim, p, station):
    """Return the next cycle of a station by limited and weighted round robin.

    Links without recent data are left out of some cycles. The weight of a link is set to `max_weight` by a
    visit with data and lowered by one, not below 1, by a visit without; with weight 1 it is left out of the
    next `max_weight` - 1 cycles, even if the central gets data for it. Cycles that leave every link out take
    no time. Every uplink is polled at least once in `max_weight` cycles.
    """
    central = sim.piconets[p]
    cycle = central.cycle + 1 if station <= central.station else central.cycle
    return max(cycle, sim.links[central.first_link + station].skip_until_cycle)


@compiled
def next_in_random_order(sim, p, now):
    """Pseudo-random cyclic limited slot-weighted round robin: each cycle has a fresh random order.

    Weights are as in the weighted round robin, but time is counted in slots: after a visit without data a
    link is not polled for 2 x links x (`max_weight` - weight) slots, that is for as many cycles of POLL and
    NULL as visits without data have come in a row, at most `max_weight` - 1. If every link is to be left out,
    the link whose time is up first is polled at once. An uplink waits that time and two cycles at most.
    """
    central = sim.piconets[p]
    for place in range(central.cycle_position + 1, central.links):
        link = central.first_link + central.order[place]
        if sim.links[link].skip_until <= now and may_poll(sim, link, now):
            central.cycle_position = place
            central.station = central.order[place]
            return True
    shuffle(sim, p)
    central.cycle += 1
    central.cycle_position = soonest_place(sim, p, now)
    if central.cycle_position == NOTHING:
        return False
    central.station = central.order[central.cycle_position]
    return True


@compiled
def soonest_place(sim, p, now):
    """Return the place of the link whose time is up first, the first in the order if several; or NOTHING."""
    central = sim.piconets[p]
    chosen = NOTHING
    chosen_at = UNLIMITED
    for place in range(central.links):
        link = central.first_link + central.order[place]
        at = max(now, sim.links[link].skip_until)
        if at < chosen_at and may_poll(sim, link, now):
            chosen = place
            chosen_at = at
    return chosen


@compiled
def shuffle(sim, p):
    """Draw a new order of the links, each with the same probability (Fisher and Yates)."""
    central = sim.piconets[p]
    for last in range(central.links - 1, 0, -1):
        place = int(uniform(sim.streams[central.stream]) * (last + 1))
        station = central.order[place]
        central.order[place] = central.order[last]
        central.order[last] = station
