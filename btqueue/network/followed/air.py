"""Polled piconets, half-frame by half-frame.

A frame is a packet down, or POLL, and the packet up, or NULL, that answers it. A packet stays in its queue
until its transmission ends, and a peripheral answers with what it had ready. A visit ends with its limit, or
when POLL is answered by NULL. With every queue of a piconet empty its visits go on unseen until a packet
comes; so do the visits to single members without packets up to the next event.
"""

from btqueue.network.compilation import part, subroutine
from btqueue.network.followed.bridges import (
    FOR_EVER,
    central_leaves,
    is_present,
    leave_after_exchange,
    may_poll,
    next_meeting,
    room_for,
)
from btqueue.network.followed.events import TURN, finish_packet, schedule
from btqueue.network.followed.radio import is_hit
from btqueue.network.followed.world import DAMAGED, GIVEN_UP, INTACT, NONE, ON_THE_WAY, RELAY, UNLIMITED

VISIT, FRAME, ANSWER, END, SEARCH = range(5)
"""What is due: a visit, a frame, the end of the packet down, that of the packet up, or the next member, after
all were known to be elsewhere."""
E_LIMITED, EXHAUSTIVE, GATED, FEP, LWRR, SLQ, LDQ = range(7)
IDLE = 2.0
"""An idle visit: POLL and NULL (slots)."""


@part
def turn(w, p, until):
    """Play what is due in piconet `p`, and on until its next time; return an item that came whole, or NONE.

    Visits without packets are played up to `until`, when something else happens.
    """
    own, now, done = w.piconets[p], w.clock[0].now, NONE
    if own.phase == ANSWER:
        link = w.links[own.first_link + own.station]
        packet = received(w, own, link.down, own.down_packet, now) if own.down_packet != NONE else NONE
        answer(w, p, own, link, now)
        if packet != NONE:
            done = pass_on(w, packet, now)
    elif own.phase == END:
        link = w.links[own.first_link + own.station]
        if own.up_packet != NONE:
            packet = received(w, own, link.up, own.up_packet, now)
            if packet != NONE:
                done = pass_on(w, packet, now)
                until = now  # something may happen because of it
        end_frame(w, p, own, now, until)
    elif own.phase == FRAME:
        start_frame(w, p, own, now)
    elif own.phase == VISIT:
        visits(w, p, own, now, until)
    else:
        next_visit(w, p, own, now, until)
    return done


@part
def answer(w, p, own, link, now):
    """Let the member answer with the packet that it has ready, or NULL."""
    own.up_packet = NONE
    if own.probing == 0:
        own.up_packet = ready(w, p, own, link.up, 0.0, now)
    own.phase, own.time = END, now + on_air(w, own, own.up_packet)


@part
def on_air(w, own, packet):
    """Return how long a half-frame takes with this packet, or without (slots)."""
    if packet == NONE:
        return 1.0
    slots = w.packets[packet].slots
    own.data_slots += slots
    return float(slots)


@part
def ready(w, p, own, port, reply, now):
    """Return the packet at the head of a port that can be sent now, or NONE; `reply`: slots of its answer."""
    packet = NONE
    if w.ports[port].waiting > 0:
        packet = w.ports[port].first
        if own.period + own.windows > 0 or w.packets[packet].ready > now:
            free = free_air(own, now)
            if own.windows:
                free = min(free, room_for(w, p, own.first_link + own.station, now))
            if w.packets[packet].ready > now or w.packets[packet].slots + reply > free:
                packet = NONE
    return packet


@part
def received(w, own, number, packet, now):
    """End a transmission; return the packet, taken off its queue, or NONE if it stays or is given up."""
    port, sent = w.ports[number], w.packets[packet]
    hit = is_hit(w, port.channel, sent.kind, now)
    if own.discipline == GATED:
        if own.phase == ANSWER:
            own.gate_down -= 1
        else:
            own.gate_up -= 1
    if hit:
        if port.most > 0:
            sent.transmissions += 1
            if sent.transmissions >= port.most or now - sent.since > port.flush:
                give_up(w, own, port, sent.owner, now)
            return NONE
        sent.damaged = 1
    take_first(w, own, port, now)
    return packet


@part
def take_first(w, own, port, now):
    """Take the packet at the head of a port off its queue, and out of the buffer of its node."""
    packet = w.packets[port.first]
    port.age += now
    w.nodes[port.node].held -= packet.carried
    port.first = packet.behind
    port.waiting -= 1
    own.waiting -= 1


@subroutine
def give_up(w, own, port, item, now):
    """Give up all packets of an item in the queue of a port, of which the first is at its head."""
    place, before, count = port.first, NONE, port.waiting
    for _ in range(count):
        packet = w.packets[place]
        behind = packet.behind
        if packet.owner == item:
            if before == NONE:
                port.first = behind
            else:
                w.packets[before].behind = behind
            if port.last == place:
                port.last = before
            port.age += now
            w.nodes[port.node].held -= packet.carried
            port.waiting -= 1
            own.waiting -= 1
            finish_packet(w, place, GIVEN_UP)
        else:
            before = place
        place = behind


@part
def pass_on(w, place, now):
    """Let a packet that has crossed a link into the next queue; return its item if that has come whole."""
    packet = w.packets[place]
    following = w.routes[packet.hop + 1]
    if following == NONE or w.sizes[RELAY] == 1:
        w.items[packet.owner].hop = packet.hop
        return finish_packet(w, place, DAMAGED if packet.damaged else INTACT)
    packet.hop += 1
    packet.transmissions = 0
    node = w.nodes[w.ports[following].node]
    if node.held + packet.carried <= node.room and enter_queue(w, following, place, now):
        node.held += packet.carried
    else:
        finish_packet(w, place, ON_THE_WAY)
    return NONE


@part
def enter_queue(w, number, place, now):
    """Append a packet to the queue of a port in a piconet, which may wake it; return whether it had room."""
    port, packet = w.ports[number], w.packets[place]
    if port.waiting >= port.limit:
        return False
    port.age -= now
    packet.since, packet.ready = now, now + port.delay
    if port.waiting == 0:
        port.first = place
    else:
        w.packets[port.last].behind = place
    port.last = place
    port.waiting += 1
    own = w.piconets[port.piconet]
    own.waiting += 1
    if own.asleep:
        wake(w, port.piconet, now)
    return True


@part
def end_frame(w, p, own, now, until):
    """A frame is over: go on with the visit, or with the next one."""
    null = own.down_packet == NONE and own.up_packet == NONE
    link = own.first_link + own.station
    if own.probing:
        over = own.probing == 1  # nobody was there
        own.probing = 0
        own.frame = 0
    else:
        own.frame += 1
        if not null:
            own.carried = 1
        over = null or own.frame >= own.visit_limit
        if own.discipline == GATED and own.gate_down <= 0 and own.gate_up <= 0:
            over = True
        if over and w.links[link].bridge != NONE:
            leave_after_exchange(w, w.links[link].bridge, null, now)
            until = now
    if over:
        own.visits += 1
        next_visit(w, p, own, now, until)
    else:
        start_frame(w, p, own, now)


@part
def start_frame(w, p, own, now):
    """Start a frame, when voice leaves room for it, with a packet down or POLL."""
    link = own.first_link + own.station
    start = free_from(own, now)
    if start > now:
        own.phase, own.time = FRAME, start
        return
    if own.windows and not may_poll(w, p, link, now):
        own.phase, own.time = SEARCH, now  # a window ends, and the visit with it
        return
    own.down_packet = NONE
    if own.probing == 0:
        own.down_packet = ready(w, p, own, w.links[link].down, 1.0, now)
    own.phase, own.time = ANSWER, now + on_air(w, own, own.down_packet)


@part
def next_visit(w, p, own, now, until):
    """Go on to the next visit; unless no member is there, or the central leaves at the end of its cycle."""
    cycles = own.cycles
    if not go_to_next(w, p, own, now):
        own.phase, own.time = SEARCH, max(next_meeting(w, p, now), now + IDLE)
    elif own.bridge != NONE and own.cycles != cycles and central_leaves(w, p, now):
        own.phase, own.time = VISIT, FOR_EVER
    else:
        visits(w, p, own, now, until)


@subroutine
def visits(w, p, own, now, until):
    """Begin the visit to the member chosen; go over visits without packets that are over by `until`."""
    at = now
    while True:
        if own.waiting == 0 and own.can_sleep:
            own.asleep, own.idle_since, own.time = 1, free_from(own, at), FOR_EVER
            return
        place = own.first_link + own.station
        link = w.links[place]
        start = free_from(own, at)
        if link.bridge == NONE:
            idle = w.ports[link.up].waiting + w.ports[link.down].waiting == 0
        else:
            idle = own.windows == 0 and not is_present(w, link.bridge, p, start)
        if not idle or own.windows or start + IDLE > until:
            break
        at = start + IDLE
        own.visiting, own.carried = 1, 0
        own.visits += 1
        w.clock[0].idle += 1
        cycles = own.cycles
        if not go_to_next(w, p, own, at):
            own.phase, own.time = SEARCH, at
            return
        if own.bridge != NONE and own.cycles != cycles and central_leaves(w, p, at):
            own.phase, own.time = VISIT, FOR_EVER
            return
    if at > now:
        own.phase, own.time = VISIT, at
        return
    begin_visit(w, own, link)
    if link.bridge != NONE and own.windows == 0:
        own.probing = 1
        if is_present(w, link.bridge, p, free_from(own, now)):
            own.probing = 2
    start_frame(w, p, own, now)


@part
def begin_visit(w, own, link):
    """Note how many frames a visit may last, and how many packets gated service takes."""
    own.frame, own.carried, own.visiting, own.probing = 0, 0, 1, 0
    if link.bridge != NONE:
        own.visit_limit = link.limit
        own.gate_down = own.gate_up = UNLIMITED
    elif own.discipline == EXHAUSTIVE or own.discipline == GATED:
        own.visit_limit = UNLIMITED
        own.gate_down, own.gate_up = w.ports[link.down].waiting, w.ports[link.up].waiting
    elif own.discipline == FEP:
        own.visit_limit = 1
    else:
        own.visit_limit = own.limit


@part
def go_to_next(w, p, own, now):
    """Choose the next member; return False if every one is known to be elsewhere."""
    if own.discipline > GATED or own.windows:
        return choose(w, p, own, now)
    if own.visiting and own.carried:
        own.cycle_carried = 1
    own.visiting = 0
    own.station += 1
    if own.station == own.links:
        own.station = 0
        own.cycles += 1
    return True


@subroutine
def choose(w, p, own, now):
    """Choose the next member by a discipline that looks at more than the order, or among absent bridges."""
    if own.visiting:
        link = w.links[own.first_link + own.station]
        link.active = own.carried
        link.weight = own.max_weight if own.carried else max(1, link.weight - 1)
        if link.weight == 1 and own.carried == 0:
            link.skip = own.cycles + own.max_weight
        if own.carried:
            own.cycle_carried = 1
    own.visiting = 0
    if own.discipline == FEP:
        return next_active(w, p, own, now)
    chosen, best = NONE, -FOR_EVER
    for step in range(1, own.links + 1):
        station = (own.station + step) % own.links
        link = own.first_link + station
        worth = 0.0  # the first in turn
        if own.discipline == LWRR:
            cycle = own.cycles + 1 if station <= own.station else own.cycles
            worth = -float(max(cycle, w.links[link].skip))
        elif own.discipline == SLQ or own.discipline == LDQ:
            worth = float(w.ports[w.links[link].down].waiting)
            if own.discipline == SLQ:
                worth += w.ports[w.links[link].up].waiting
            if step == own.links and own.carried == 0:
                worth = 0.0
        if worth > best and may_poll(w, p, link, now):
            chosen, best = station, worth
    if chosen == NONE:
        return False
    if own.discipline == LWRR:
        own.cycles = int(-best)
    elif chosen <= own.station:
        own.cycles += 1
    own.station = chosen
    return True


@part
def next_active(w, p, own, now):
    """Fair exhaustive polling: the next member with data down, or whose last visit brought something."""
    for _ in range(2):
        for step in range(1, own.links + 1):
            station = (own.station + step) % own.links
            link = w.links[own.first_link + station]
            if w.ports[link.down].waiting > 0:
                link.active = 1
            if link.active and may_poll(w, p, own.first_link + station, now):
                if station <= own.station:
                    own.cycles += 1
                own.station = station
                return True
        for place in range(own.first_link, own.first_link + own.links):
            w.links[place].active = 1
    return False


# ------------------------------------------------------------------------------------- voice, and idle times


@part
def free_from(own, now):
    """Return from when on POLL and NULL fit between the slots of voice links."""
    if own.period == 0:
        return now
    phase = now % own.period
    if phase < own.reserved:
        return now + own.reserved - phase
    if phase + IDLE <= own.period:
        return now
    return now + own.period - phase + own.reserved


@part
def free_air(own, now):
    """Return how many slots are free from now on, for voice."""
    return FOR_EVER if own.period == 0 else own.period - now % own.period


@subroutine
def settle(own, now):
    """Count the idle visits of a piconet asleep that are over now; the next one begins at `idle_since`."""
    passed = 0
    if own.period == 0:
        passed = max(int((now - own.idle_since) / IDLE), 0)
        own.idle_since += passed * IDLE
    else:
        of_period = (own.period - own.reserved) // 2
        periods = max(int((now - own.idle_since) / own.period) - 1, 0)
        own.idle_since += periods * own.period
        passed = periods * of_period
        while own.idle_since + IDLE <= now:
            own.idle_since = free_from(own, own.idle_since + IDLE)
            passed += 1
    own.visits += passed
    own.cycles += (own.station + passed) // own.links
    own.station = (own.station + passed) % own.links


@subroutine
def wake(w, p, now):
    """Go on in the middle of the idle visit that is in progress now."""
    own = w.piconets[p]
    settle(own, now)
    start = own.idle_since
    own.asleep, own.down_packet, own.up_packet = 0, NONE, NONE
    begin_visit(w, own, w.links[own.first_link + own.station])
    own.gate_down = own.gate_up = 0
    if now < start:
        own.phase, own.time = FRAME, start
    elif now < start + 1.0:
        own.phase, own.time = ANSWER, start + 1.0
    else:
        own.phase, own.time = END, start + IDLE
    schedule(w, own.time, TURN, p)
