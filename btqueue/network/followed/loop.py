"""The follower's loop: an event, and what follows from it at once.

An event may bring an item to the end of a link. At the end of its way it may let a sender send and a receiver
acknowledge, in this order: what an application says because of a segment leaves before its acknowledgement.
"""

from btqueue.network.compilation import part, subroutine
from btqueue.network.followed.air import turn
from btqueue.network.followed.events import (
    ACK_ALARM,
    ALARM,
    ARRIVAL,
    DELIVERY,
    MESSAGE,
    RELEASE,
    TOKENS,
    TRANSMITTED,
    TURN,
    drop_first,
    free_item,
    new_item,
    next_but_first,
    put_off,
    schedule,
)
from btqueue.network.followed.receiver import take
from btqueue.network.followed.sender import acknowledge, expire, next_number, note_sent
from btqueue.network.followed.sources import delivered, due, expect, write_due
from btqueue.network.followed.stations import enter_port, leave, pay, rise, transmitted
from btqueue.network.followed.stream import bytes_between, layout_of
from btqueue.network.followed.world import BURST, MOST_BLOCKS, NEVER, NONE, WIDTH

STEPS = 32
"""Events between two looks at whether the network has been followed far enough."""
LOOKS = 4096
"""Looks at most before Python goes on for a moment, in which Ctrl-C is heard."""
SPARE = 64
HALF_FRAMES = 64
"""Half-frames that are followed as one event at most."""


@subroutine
def play(w, segments, end):
    """Play until so many segments are delivered in all, or it is so late (slots).

    Ends early if an array may be full after the next step, with `cramped` set, or if the random numbers are
    used up, or after `LOOKS` looks.

    Args:
        w: a `World`.
        segments: delivered, of `clock`.
        end: a time (slots).
    """
    clock = w.clock[0]
    for _ in range(LOOKS):
        if clock.delivered >= segments or clock.now >= end or clock.drawn >= len(w.random):
            return
        for _ in range(STEPS):
            if clock.items + w.sizes[BURST] > len(w.items):
                clock.cramped = 1
            if clock.events + w.sizes[BURST] + SPARE > len(w.events):
                clock.cramped = 1
            if clock.cramped or clock.events == 0 or w.events[0].time > end:
                clock.now = max(clock.now, end) if clock.cramped == 0 else clock.now
                return
            step(w, end)


@part
def step(w, end):
    """Play the first event, and what follows from it at once; half-frames up to the next event as one."""
    clock, event = w.clock[0], w.events[0]
    action, argument = event.action, event.argument
    clock.now = event.time
    clock.steps += 1
    done, speaker, listener, urgent = NONE, NONE, NONE, False
    if action == TURN:
        event.time = -1.0  # it stays the first, whatever is entered
        own = w.piconets[argument]
        for _ in range(HALF_FRAMES):
            done = turn(w, argument, min(next_but_first(w), end))
            if done != NONE or own.time >= min(next_but_first(w), end):
                break
            clock.now = own.time
            clock.steps += 1
        if own.time >= NEVER:
            drop_first(w)
        else:
            put_off(w, own.time)
    else:
        drop_first(w)
        if action == TOKENS:
            pay(w, argument)
        elif action == RELEASE:
            enter_port(w, argument)
        elif action == ARRIVAL:
            done = argument
        elif action == TRANSMITTED:
            done = transmitted(w, argument)
        elif action == MESSAGE:
            due(w, argument, clock.now)
            speaker = argument
        elif action == ALARM:
            alarm(w, argument)
            speaker = argument
        elif action == ACK_ALARM:
            own_flow = w.flows[argument]
            own_flow.ack_alarm = NEVER
            listener, urgent = argument, own_flow.ack_deadline <= clock.now
    if action == DELIVERY or done != NONE:
        number = argument if action == DELIVERY else done
        if action == DELIVERY or crossed(w, number):
            item = w.items[number]
            if item.back:
                speaker = item.flow
                acknowledge(w, speaker, number, clock.now)
                free_item(w, number)
            else:
                listener = item.flow
                urgent, speaker = segment_in(w, number)
    if speaker != NONE:
        emit(w, speaker)
    if listener != NONE:
        if urgent:
            answer(w, listener)
        else:
            keep_ack_alarm(w, listener)


@part
def crossed(w, number):
    """An item has crossed a link whole: let it enter the next port; return whether its way is at its end."""
    item = w.items[number]
    item.hop += 1
    if w.routes[item.hop] != NONE:
        enter_port(w, number)
        return False
    own = w.flows[item.flow]
    return rise(w, own.source if item.back else own.target, number)


@part
def segment_in(w, number):
    """Take a segment to its receiver; return whether it is acknowledged at once, and who answers, or NONE."""
    clock, item = w.clock[0], w.items[number]
    flow = item.flow
    own, speaker = w.flows[flow], NONE
    own.ended += 1
    before = own.expected
    urgent = take(w, flow, item.number, item.stamp, clock.now)
    if own.expected > before:
        clock.delivered += own.expected - before
        own.delivered_bytes += bytes_between(w, flow, before, own.expected)
        speaker = delivered(w, flow, before, clock.now)
    free_item(w, number)
    return urgent, speaker


@subroutine
def emit(w, flow):
    """Send all that the windows let out; keep the alarms of the sender and of its application."""
    own, now = w.flows[flow], w.clock[0].now
    write_due(w, flow, now)
    while True:
        number = next_number(w, flow)
        if number == NONE:
            break
        again = note_sent(w, flow, number, now)
        place = new_item(w, flow, 0, layout_of(w, flow, number), number)
        item = w.items[place]
        item.stamp = now
        if again:
            own.repeated_bytes += w.layouts[item.layout].user
        leave(w, own.source, place)
    if own.deadline < own.alarm:
        own.alarm = own.deadline
        schedule(w, own.alarm, ALARM, flow)
    expect(w, flow)


@part
def alarm(w, flow):
    """The retransmission timer of a flow expires, unless it has been put off since, or was set anew."""
    own, now = w.flows[flow], w.clock[0].now
    if own.alarm <= now:
        own.alarm = NEVER
    if own.deadline <= now:
        expire(w, flow, now)


@subroutine
def answer(w, flow):
    """Acknowledge all that a receiver has."""
    own = w.flows[flow]
    own.waiting, own.ack_deadline, own.acknowledged = 0, NEVER, own.expected
    place = new_item(w, flow, 1, own.ack_layout, own.expected)
    item = w.items[place]
    item.stamp = own.echo
    item.blocks = min(own.blocks, own.most_blocks)
    for spot in range(2 * item.blocks):
        w.reports[2 * place * MOST_BLOCKS + spot] = w.early[2 * flow * w.sizes[WIDTH] + spot]
    leave(w, own.target, place)


@part
def keep_ack_alarm(w, flow):
    """Look at a delayed acknowledgement when it has to leave."""
    own = w.flows[flow]
    if own.ack_deadline < own.ack_alarm:
        own.ack_alarm = own.ack_deadline
        schedule(w, own.ack_alarm, ACK_ALARM, flow)
