"""The events of an orbit, and the places of its pools: parts of the compiled loop in `bulk_transfer.steps`.

Events stand in a binary heap, by their time and then in the order in which they were entered.
"""

from math import inf

from btqueue.transport.compilation import part

BEGIN, RELEASE, TRANSMITTED, ARRIVAL, ALARM, ACK_ALARM = range(6)
"""A flow begins; an item leaves its host; a medium is done; an item is at the far side of its link; the
timers of a sender and of a receiver."""
SPARE = 16
"""Events that a step can bring besides one for each item."""


@part
def schedule(state, time, action, argument):
    """Enter an event."""
    clock, events = state.clock[0], state.events
    place = clock.events
    clock.order += 1
    clock.events += 1
    while place > 0 and events[(place - 1) // 2].time > time:
        copy_event(events[place], events[(place - 1) // 2])
        place = (place - 1) // 2
    event = events[place]
    event.time, event.order, event.action, event.argument = time, clock.order, action, argument


@part
def first_time(state):
    """Return the time of the first event; infinite without one."""
    return state.events[0].time if state.clock[0].events > 0 else inf


@part
def drop_first(state):
    """Remove the first event: the last one of the heap sinks from its place."""
    clock, events = state.clock[0], state.events
    clock.events -= 1
    count, place = clock.events, 0
    sinking = events[count]
    while 2 * place + 1 < count:
        child = 2 * place + 1
        if child + 1 < count and is_before(events[child + 1], events[child]):
            child += 1
        if not is_before(events[child], sinking):
            break
        copy_event(events[place], events[child])
        place = child
    copy_event(events[place], sinking)


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
def new_item(state, flow):
    """Take a place for an item of a flow."""
    clock = state.clock[0]
    place = clock.free_item
    item = state.items[place]
    clock.free_item = item.behind
    clock.items += 1
    item.flow, item.hop, item.parts, item.blocks, item.damaged = flow, 0, 0, 0, False
    return place


@part
def free_item(state, place):
    """Give a place back."""
    clock = state.clock[0]
    state.items[place].behind = clock.free_item
    clock.free_item = place
    clock.items -= 1


@part
def append(queue, pool, place):
    """Put an entry of a pool at the end of a queue."""
    if queue.waiting == 0:
        queue.first = place
    else:
        pool[queue.last].behind = place
    queue.last = place
    queue.waiting += 1


@part
def take_first(queue, pool):
    """Remove the first entry of a queue; return its place."""
    place = queue.first
    queue.first = pool[place].behind
    queue.waiting -= 1
    return place
