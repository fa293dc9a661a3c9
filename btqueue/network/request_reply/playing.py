"""Trains of packets on a way: compiled loops. Nothing is lost here.

The first of two moments is played; the second one stays as it is at rest.
"""

from btqueue.network.request_reply import entries, polled_hop, records, way
from btqueue.network.request_reply.entries import copy, set_alarm
from btqueue.network.request_reply.records import DATA, NONE
from btqueue.network.request_reply.way import (
    ARRIVED,
    MAY_BE_LOST,
    RUNG,
    UNDECIDED,
    catch,
    go_on,
    hand_over,
    post,
    release,
    step,
)
from btqueue.transport.compilation import compiled, part


@compiled(entries, polled_hop, records, way)
def play(net, state, direction, forms, offsets, first, answer, path):
    """Hand over the packets of a train from the first one on, and go on until the last has arrived.

    When packet 0 has arrived, a packet of form `answer` (NONE: none) is sent the other way. `path` holds
    processing delays and history, of what led to the train and then of its last packet.
    """
    send_and_wait(net, state, direction, forms, offsets, first, answer, path)


@compiled(entries, polled_hop, records, way)
def play_ends(net, state, direction, forms, offsets, longest, times):
    """Write when the last packet arrives if the train begins with its first packet, its second, and so on.

    Ends when that is so much sooner than for the whole train; what is behind stays as it is.
    """
    for first in range(len(forms)):
        copy(state, 1, state, 0)
        send_and_wait(net, state, direction, forms, offsets, first, NONE, times[:0])
        times[first] = state.clocks[0].now
        if times[0] - times[first] >= longest:
            return


@compiled(entries, polled_hop, records, way)
def hand_train(net, state, direction, forms, offsets):
    """Hand a train over now, which nobody waits for."""
    post_train(state, direction, forms, offsets, 0, NONE, 0, 0)
    hand_over(net, state, 0)


@compiled(entries, polled_hop, records, way)
def wait(net, state, until):
    """Go on until then."""
    set_alarm(net, state, 0, until, NONE, 0, 0)
    while net.counters[0].too_small == 0 and settled_step(net, state) != RUNG:
        pass


@part
def post_train(state, direction, forms, offsets, first, begun, delays, history):
    """Post the packets of a train, which are known by when it has begun."""
    for place in range(first, len(forms)):
        post(state, 0, direction, forms[place], DATA, begun, place, 0, delays, history)
        state.outgoing[0, state.clocks[0].outgoing - 1].place = offsets[place] - offsets[first]


@part
def send_and_wait(net, state, direction, forms, offsets, first, answer, path):
    """Do what `play` does; without a path nothing is noted."""
    begun, last = state.clocks[0].now, len(forms) - 1
    delays = path[0] if len(path) > 0 else 0
    history = path[1] if len(path) > 0 else 0
    post_train(state, direction, forms, offsets, first, begun, delays, history)
    hand_over(net, state, 0)
    while net.counters[0].too_small == 0:
        event, parcel = settled_step(net, state), state.current[0]
        if event != ARRIVED or parcel.epoch != begun or parcel.direction != direction:
            continue
        if parcel.number == last:
            if len(path) > 0:
                path[0], path[1] = parcel.delays, parcel.history
            return
        if parcel.number == 0 and answer != NONE:
            post(state, 0, 1 - direction, answer, DATA, begun, 0, 0, parcel.delays, parcel.history)
            hand_over(net, state, 0)


@part
def settled_step(net, state):
    """Go on to the next entry; nothing is lost, and the processing delay is that in the middle of its law."""
    event = step(net, state, 0)
    if event == MAY_BE_LOST:
        return go_on(net, state, 0)
    if event == UNDECIDED:
        direction, number = state.current[0].direction, 0
        total = catch(net, state.clocks[0], direction, 0)[0]
        while total < 0.5 and catch(net, state.clocks[0], direction, number + 1)[0] > 0.0:
            number += 1
            total += catch(net, state.clocks[0], direction, number)[0]
        release(net, state, 0, catch(net, state.clocks[0], direction, number)[1])
    return event
