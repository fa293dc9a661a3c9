"""The two ends of the flows of a ring: TCP and its messages.

Parts of the compiled loop in `btqueue.network.ring_piconet.air`.
"""

from math import inf

from btqueue.network.ring_piconet.sequences import MESSAGES, gap
from btqueue.network.ring_piconet.stations import emit
from btqueue.transport.compilation import part
from btqueue.transport.newreno_sender import NO_SEGMENT, answer, go_back, sent_up_to, smooth, timeout

NO_END = 1 << 60


@part
def window_end(own):
    """Return the first segment that the window does not let out."""
    return int(own.una + min(own.cwnd, float(own.receive_window)))


@part
def next_message(own):
    """Return when a message comes that can be sent at once; of others there is no need to know yet."""
    return own.message if own.nxt >= own.messages and own.messages < window_end(own) else inf


@part
def next_deadline(state, k):
    """Return when something is to be sent without an arrival: a message or a retransmission."""
    own = state.peripherals[k]
    return min(own.deadline, next_message(own))


@part
def expire(state, rules, k, now):
    """Do what is due at a deadline."""
    own = state.peripherals[k]
    if own.deadline <= now and own.deadline <= next_message(own):
        sample_window(own)
        go_back(own, now)
    send_new(state, rules, k, now)


@part
def receive(state, rules, k, stream, number, stamp, now):
    """Take a segment: acknowledge data, or send what an acknowledgement lets out."""
    own = state.peripherals[k]
    resend = NO_SEGMENT
    if stream & 1 == 0:
        number, stamp = take(state, k, number, stamp)
        emit(state, rules, k, stream + 1, number, stamp, now)
        return
    sample_window(own)
    if number > own.una:
        sample_round_trip(state, now - stamp)
        own.smoothed, own.variation = smooth(own.smoothed, own.variation, now - stamp)
        own.rto = timeout(own, own.smoothed, own.variation)
    resend = answer(own, number, now)
    if resend != NO_SEGMENT:
        emit(state, rules, k, stream - 1, resend, now, now)
    send_new(state, rules, k, now)


@part
def take(state, k, number, stamp):
    """Take data; return the cumulative acknowledgement and the timestamp of RFC 7323 that it echoes."""
    own, early = state.peripherals[k], state.early[k]
    width = len(early)
    if number <= own.expected:
        own.echo = max(own.echo, stamp)
    if number >= own.expected:
        early[number & (width - 1)] = True
    while early[own.expected & (width - 1)]:
        early[own.expected & (width - 1)] = False
        own.expected += 1
        state.clock[0].delivered += 1
    return own.expected, own.echo


@part
def send_new(state, rules, k, now):
    """Send the new segments that window and messages let out.

    Messages that the window leaves no room for are not looked at before it does.
    """
    own = state.peripherals[k]
    first, last = own.nxt, window_end(own)
    while own.messages < last and own.message <= now:
        if own.interval == 0.0:
            own.messages, own.message = NO_END, inf
        else:
            own.messages += 1
            own.message += own.interval * gap(own.sequence, MESSAGES, own.messages)
    last = min(last, own.messages)
    if last > first:
        sent_up_to(own, last, now)
    for number in range(first, last):
        emit(state, rules, k, 2 * k, number, now, now)


@part
def sample_round_trip(state, rtt):
    """Keep a sample of the round-trip time."""
    clock = state.clock[0]
    state.rtts[clock.round_trips & (len(state.rtts) - 1)] = rtt
    clock.round_trips += 1
    clock.trip_time += rtt


@part
def sample_window(own):
    """Count the window in force when an acknowledgement or a timeout comes."""
    own.samples += 1
    own.window_sum += min(own.cwnd, float(own.receive_window))
    own.cwnd_sum += own.cwnd
