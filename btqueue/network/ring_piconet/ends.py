"""The two ends of the flows of a ring: TCP and its messages, or the senders of a closed population.

Parts of the compiled loop in `btqueue.network.ring_piconet.air`.
"""

from math import inf, log

from btqueue.network.ring_piconet.records import DUE
from btqueue.network.ring_piconet.stations import GOLDEN_RATIO, drop_oldest, emit, head_time, new_item
from btqueue.transport.compilation import part
from btqueue.transport.newreno_sender import NO_SEGMENT, answer, go_back, sent_up_to, smooth, timeout

NO_END = 1 << 60
PERIOD = 3329
"""Gaps after which a sequence of messages repeats: a prime, 2 modulo 3, so that cubing is one-to-one."""


@part
def next_deadline(state, k):
    """Return when something is to be sent without an arrival: a message, a retransmission, a pause's end."""
    own = state.peripherals[k]
    message = own.message if own.nxt >= own.messages else inf
    return min(own.deadline, message, head_time(state, k, DUE))


@part
def expire(state, rules, k, now):
    """Do what is due at a deadline."""
    own = state.peripherals[k]
    if rules.active > 0:
        drop_oldest(state, k, DUE)
        emit(state, rules, k, 2 * k, 0, now, now)
        return
    if own.deadline <= now and (own.nxt < own.messages or own.deadline <= own.message):
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
    if rules.active > 0:
        own.outstanding -= 1
        sample_round_trip(state, now - stamp)
        launch(state, rules, now)
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
    """Send the new segments that window and messages let out."""
    own = state.peripherals[k]
    while own.message <= now:
        if own.interval == 0.0:
            own.messages, own.message = NO_END, inf
        else:
            own.messages += 1
            own.message += own.interval * gap(own.sequence, own.messages)
    window = min(own.cwnd, float(own.receive_window))
    first = own.nxt
    last = min(int(own.una + window), own.messages)
    if last > first:
        sent_up_to(own, last, now)
    for number in range(first, last):
        emit(state, rules, k, 2 * k, number, now, now)


@part
def gap(sequence, count):
    """Return a gap between messages of a sequence, exponential with mean 1.

    The gaps of a sequence run through `PERIOD` quantiles of the exponential law, each once, in the order of
    the cubes modulo that prime: an irregular order, another one for each sequence, with the exact mean.
    """
    cube = ((count * count) % PERIOD * count) % PERIOD
    place = cube * sequence % PERIOD
    return -log((place + 0.5) / PERIOD)


@part
def launch(state, rules, now):
    """Let the sender that the quadratic Weyl sequence names, or the next one with room, send a segment.

    It pauses before; the turns have no memory of who is served, so that the segments divide among the flows
    as the network makes them.
    """
    clock = state.clock[0]
    clock.launched += 1
    count = float(clock.launched)
    share = count * GOLDEN_RATIO % 1.0
    k = int(rules.active * ((count * share) % 1.0))
    while state.peripherals[k].outstanding >= rules.window:
        k = (k + 1) % rules.active
    state.peripherals[k].outstanding += 1
    marks, places = state.marks[k, DUE], state.queues.shape[2]
    at = now + rules.pause_s * share
    if marks[1] > 0:
        at = max(at, state.queues[k, DUE, (marks[0] + marks[1] - 1) & (places - 1)].at)
    new_item(state, k, DUE).at = at


@part
def sample_round_trip(state, rtt):
    """Keep a sample of the round-trip time."""
    clock = state.clock[0]
    state.rtts[clock.round_trips % len(state.rtts)] = rtt
    clock.round_trips += 1


@part
def sample_window(own):
    """Count the window in force when an acknowledgement or a timeout comes."""
    own.samples += 1
    own.window_sum += min(own.cwnd, float(own.receive_window))
    own.cwnd_sum += own.cwnd
