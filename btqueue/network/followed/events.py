"""The events to come, and the places of the pools.

Events stand in a binary heap, by their time; of those at the same time half-frames come first, piconet by
piconet, and others in the order of their actions and of being entered.
"""

from btqueue.network.compilation import part, subroutine
from btqueue.network.followed.world import FATES, INTACT, NONE

TURN, TOKENS, RELEASE, ARRIVAL, DELIVERY, TRANSMITTED, MESSAGE, ALARM, ACK_ALARM = range(9)
"""A half-frame of a piconet is over; a token bucket can pay; an item leaves its host, is at the far side of
an outside link, or has passed the layers of its last host; a medium is done; a message is written; the timers
of a sender and of a receiver."""
RANK = 1 << 40
"""Events at the same time are ordered by their kind first; more events than this never wait."""


@subroutine
def schedule(w, time, action, argument):
    """Enter an event."""
    clock, events = w.clock[0], w.events
    place = clock.events
    clock.order += 1
    clock.events += 1
    order = action * RANK + (argument if action == TURN else clock.order)
    while place > 0:
        above = events[(place - 1) // 2]
        if above.time < time or (above.time == time and above.order < order):
            break
        copy_event(events[place], above)
        place = (place - 1) // 2
    event = events[place]
    event.time, event.order, event.action, event.argument = time, order, action, argument


@part
def drop_first(w):
    """Remove the first event."""
    clock = w.clock[0]
    clock.events -= 1
    if clock.events > 0:
        copy_event(w.events[0], w.events[clock.events])
        sink(w)


@part
def put_off(w, time):
    """Let the first event happen later."""
    w.events[0].time = time
    sink(w)


@subroutine
def sink(w):
    """Let the first event sink to its place."""
    events, count, place = w.events, w.clock[0].events, 0
    top = events[0]
    time, order, action, argument = top.time, top.order, top.action, top.argument
    while 2 * place + 1 < count:
        child = 2 * place + 1
        if child + 1 < count and is_before(events[child + 1], events[child]):
            child += 1
        below = events[child]
        if time < below.time or (time == below.time and order < below.order):
            break
        copy_event(events[place], below)
        place = child
    event = events[place]
    event.time, event.order, event.action, event.argument = time, order, action, argument


@part
def is_before(event, other):
    """Return whether an event comes before another one."""
    return event.time < other.time or (event.time == other.time and event.order < other.order)


@part
def copy_event(target, source):
    """Copy all fields."""
    target.time, target.order = source.time, source.order
    target.action, target.argument = source.action, source.argument


@part
def next_but_first(w):
    """Return when the event behind the first one is due; the first one is in progress."""
    events, count = w.events, w.clock[0].events
    time = 1e300
    if count > 1:
        time = events[1].time
    if count > 2:
        time = min(time, events[2].time)
    return time


@part
def uniform(w):
    """Draw a number between 0 and 1."""
    clock = w.clock[0]
    clock.drawn += 1
    return w.random[clock.drawn & (len(w.random) - 1)]


@part
def new_item(w, flow, back, layout, number):
    """Take a place for an item of a flow."""
    clock = w.clock[0]
    place = clock.free_item
    item, own = w.items[place], w.flows[flow]
    clock.free_item = item.behind
    clock.items += 1
    item.flow, item.back, item.layout, item.number = flow, back, layout, number
    item.hop = own.back if back else own.forth
    item.parts, item.blocks, item.damaged = 0, 0, 0
    return place


@part
def free_item(w, place):
    """Give a place back."""
    clock = w.clock[0]
    w.items[place].behind = clock.free_item
    clock.free_item = place
    clock.items -= 1


@part
def new_packet(w, item):
    """Take a place for a packet of an item, at the hop that the item is at."""
    clock = w.clock[0]
    place = clock.free_packet
    packet = w.packets[place]
    clock.free_packet = packet.behind
    packet.owner, packet.hop = item, w.items[item].hop
    packet.transmissions, packet.damaged = 0, 0
    w.items[item].parts += 1
    return place


@part
def count(w, place, fate):
    """Count the fate of a packet."""
    w.fates[w.items[w.packets[place].owner].flow * FATES + fate] += 1


@part
def finish_packet(w, place, fate):
    """End the way of a packet; return its item if it was the last one and all came intact, or NONE."""
    clock, packet = w.clock[0], w.packets[place]
    number = packet.owner
    item = w.items[number]
    w.fates[item.flow * FATES + fate] += 1
    if fate != INTACT:
        item.damaged = 1
    item.parts -= 1
    packet.behind = clock.free_packet
    clock.free_packet = place
    if item.parts > 0:
        return NONE
    if item.damaged == 0:
        return number
    lose(w, number)
    return NONE


@part
def lose(w, number):
    """End the way of an item that is damaged."""
    item = w.items[number]
    if item.back == 0:
        own = w.flows[item.flow]
        own.ended += 1
        own.lost += 1
    free_item(w, number)
