"""Bulk transfers, followed event by event; nothing here is random.

A step is an event, or a half-frame of the piconet. It may bring an item to the far side of a link; an item at
the end of its way, or a timer, may let a sender send and a receiver acknowledge, in this order: what an
application says because of a segment leaves before its acknowledgement.
"""

from math import inf, isnan

from btqueue.network.bulk_transfer import (
    events,
    medium,
    piconet,
    receiver,
    records,
    rules,
    scoreboard,
    sender,
    sessions,
    transit,
)
from btqueue.network.bulk_transfer.events import (
    ALARM,
    ARRIVAL,
    BEGIN,
    RELEASE,
    SPARE,
    TRANSMITTED,
    drop_first,
    first_time,
    free_item,
    schedule,
)
from btqueue.network.bulk_transfer.medium import transmitted
from btqueue.network.bulk_transfer.piconet import end_frame, half_frame
from btqueue.network.bulk_transfer.receiver import take
from btqueue.network.bulk_transfer.records import END, ROUND_TRIP
from btqueue.network.bulk_transfer.rules import NONE
from btqueue.network.bulk_transfer.sender import acknowledge, expire
from btqueue.network.bulk_transfer.sessions import add_sample, begin, delivered
from btqueue.network.bulk_transfer.transit import answer, emit, enter, is_at_its_end, keep_ack_alarm, lose
from btqueue.transport import newreno_sender
from btqueue.transport.compilation import compiled, part
from btqueue.transport.newreno_sender import NO_SEGMENT

STEPS = 50
"""Steps between two looks at whether the orbit has been followed far enough."""


@compiled(
    newreno_sender, events, medium, piconet, receiver, records, rules, scoreboard, sender, sessions, transit
)
def play(state, rules, segments, end, congested):
    """Play until so many segments have ended their way in all, or it is so late.

    Ends early, with `cramped` set, if an array needs more places.

    Args:
        state: of `bulk_transfer.records`.
        rules: of `bulk_transfer.rules`.
        segments: at the end of their way, of `clock`.
        end: a time (s).
        congested: losses for congestion of the first flow that end it as well; none if it is negative.
    """
    clock, first = state.clock[0], state.senders[0]
    while not clock.cramped:
        if clock.steps_left == 0:
            if clock.ended >= segments or clock.now >= end:
                return
            if congested >= 0 and clock.ended > clock.looked_at:
                if first.timeouts + first.fast_retransmits > congested:
                    return
                clock.looked_at = clock.ended
            clock.steps_left = STEPS
        step(state, rules)
        clock.steps_left -= 1
        if clock.items + rules.burst > len(state.items):
            clock.cramped = True
        if clock.events + rules.burst + SPARE > len(state.events):
            clock.cramped = True


@part
def step(state, rules):
    """Play an event or a half-frame, whichever comes first, and what follows from it at once."""
    clock, central = state.clock[0], state.piconet[0]
    first = first_time(state)
    arrived, speaker, resend, listener, urgent, framed = NONE, NONE, NO_SEGMENT, NONE, False, False
    if central.time <= first:
        clock.now = central.time
        if clock.now == inf:
            return
        framed = central.phase == END
        arrived = half_frame(state, rules, first)
    else:
        clock.now = first
        action, argument = state.events[0].action, state.events[0].argument
        drop_first(state)
        if action == RELEASE:
            enter(state, rules, argument)
        elif action == ARRIVAL:
            arrived = argument
        elif action == TRANSMITTED:
            arrived = off_the_wire(state, rules, argument)
        elif action == BEGIN:
            speaker = begin(state, rules, argument)
        elif action == ALARM:
            speaker = alarm(state, argument)
        else:
            listener, urgent = ack_alarm(state, argument)
    if arrived != NONE:
        item = state.items[arrived]
        flow = item.flow
        item.hop += 1
        if item.damaged:
            lose(state, arrived)
        elif not is_at_its_end(rules, item):
            enter(state, rules, arrived)
        elif item.acknowledgement:
            speaker, resend = flow, acknowledged(state, arrived)
        else:
            speaker, urgent = segment_in(state, rules, arrived)
            listener = flow
    if speaker != NONE:
        emit(state, rules, speaker, resend)
    if listener != NONE:
        if urgent:
            answer(state, rules, listener)
        else:
            keep_ack_alarm(state, listener)
    if framed:
        end_frame(state, rules, not central.sent and not central.answered)


@part
def off_the_wire(state, rules, medium):
    """A transmission has ended; return its item if it is at the far side at once, or NONE."""
    item, arrival = transmitted(state, rules, medium)
    if arrival > state.clock[0].now:
        schedule(state, arrival, ARRIVAL, item)
        return NONE
    return item


@part
def segment_in(state, rules, place):
    """Take a segment to its receiver; return the flow in which the application answers, and whether at once.

    The second value tells whether an acknowledgement has to leave at once.
    """
    item = state.items[place]
    flow = item.flow
    sent, own, speaker = state.senders[flow], state.receivers[flow], NONE
    state.clock[0].ended += 1
    sent.ended += 1
    before = own.expected
    urgent = take(own, state.early[flow], item.number, item.stamp, state.clock[0].now)
    path = rules.flows[flow]
    for number in range(before, own.expected):
        sent.delivered_bytes += rules.layouts[path.first_layout + number % path.layouts].user_bytes
    if own.expected > before:
        speaker = delivered(state, rules, flow)
    free_item(state, place)
    return speaker, urgent


@part
def acknowledged(state, place):
    """Take an acknowledgement to its sender; return the segment to send again, or NO_SEGMENT."""
    item = state.items[place]
    own, flight, now = state.senders[item.flow], state.flight[item.flow], state.clock[0].now
    blocks = state.reports[place, : item.blocks]
    resend, rtt = acknowledge(own, flight, item.number, item.stamp, blocks, now)
    if not isnan(rtt):
        add_sample(state, item.flow, ROUND_TRIP, rtt)
    free_item(state, place)
    return resend


@part
def alarm(state, flow):
    """The retransmission timer of a flow, unless it has been put off since; return the flow."""
    own, now = state.senders[flow], state.clock[0].now
    own.alarm = inf
    if own.deadline <= now:
        expire(own, state.flight[flow], now)
    return flow


@part
def ack_alarm(state, flow):
    """The timer of a delayed acknowledgement, unless another one has left since; return flow and whether."""
    own = state.receivers[flow]
    own.alarm = inf
    return flow, own.deadline <= state.clock[0].now
