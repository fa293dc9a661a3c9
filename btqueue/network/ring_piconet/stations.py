"""A peripheral's way into the air, as exact recursions: processing delay, token bucket, both buffers.

Nothing here is random. When a packet leaves the token bucket follows from those before it, so it is known as
soon as the packet comes. These are parts of the compiled loop in `ring_piconet.air`; the same rules
in plain Python, against which the loop of scatternets is tested, stand in validation/theory.
"""

from math import inf

from btqueue.network.ring_piconet.records import BUFFER, ENTERING, UPLINK
from btqueue.network.ring_piconet.sequences import DELAYS, quantile
from btqueue.transport.compilation import part


@part
def new_item(state, k, queue):
    """Return the place behind the newest entry of a queue, which now counts as taken."""
    marks, places = state.marks[k, queue], state.queues.shape[2]
    if marks[1] >= places - 1:
        state.clock[0].too_small = True
        marks[1] -= 1
    place = (marks[0] + marks[1]) & (places - 1)
    marks[1] += 1
    return state.queues[k, queue, place]


@part
def oldest(state, k, queue):
    """Return the oldest entry of a queue that is not empty."""
    return state.queues[k, queue, state.marks[k, queue, 0]]


@part
def drop_oldest(state, k, queue):
    """Remove it."""
    state.marks[k, queue, 0] = (state.marks[k, queue, 0] + 1) & (state.queues.shape[2] - 1)
    state.marks[k, queue, 1] -= 1


@part
def head_time(state, k, queue):
    """Return when the oldest entry of a queue can leave it."""
    return oldest(state, k, queue).at if state.marks[k, queue, 1] > 0 else inf


@part
def emit(state, rules, k, stream, number, stamp, now):
    """Send a segment into L2CAP; its processing delay comes from a fixed sequence."""
    own, kind = state.peripherals[k], stream & 1
    at = now
    if rules.jitter_s > 0.0:
        own.emitted += 1
        at += rules.jitter_s * quantile(own.sequence, DELAYS, own.emitted)
    marks, places = state.marks[k, ENTERING], state.queues.shape[2]
    if marks[1] > 0:
        at = max(at, state.queues[k, ENTERING, (marks[0] + marks[1] - 1) & (places - 1)].at)
    own.sent_serial[kind] += 1
    own.sent += 1 - kind
    item = new_item(state, k, ENTERING)
    item.at, item.stamp, item.stream, item.number = at, stamp, stream, number
    item.serial = own.sent_serial[kind]


@part
def offer(state, rules, k):
    """Offer the packets of the segment that enters L2CAP to the token bucket."""
    entering, own = oldest(state, k, ENTERING), state.peripherals[k]
    now, stream, number = entering.at, entering.stream, entering.number
    stamp, serial = entering.stamp, entering.serial
    drop_oldest(state, k, ENTERING)
    kind = stream & 1
    pieces = rules.pieces[kind]
    own.offered_to_buffer += pieces
    release(state, rules, k, now)
    if rules.whole_segments and not fits(state, rules, k, kind, now):
        own.refused_at_buffer += pieces
        return
    for piece in range(pieces):
        release(state, rules, k, now)
        at, tokens = release_of(rules, own.tokens, own.updated_at, rules.prices[kind, piece], now)
        if at > now and state.marks[k, BUFFER, 1] >= rules.buffer:
            own.refused_at_buffer += 1
            continue
        own.tokens, own.updated_at = tokens, at
        own.time_in_buffer += at - now
        item = new_item(state, k, BUFFER)
        item.at, item.stamp, item.stream, item.number = at, stamp, stream, number
        item.serial, item.slots = serial, rules.slots[kind, piece]
        item.piece, item.damaged = piece, 0


@part
def release(state, rules, k, now):
    """Let packets whose tokens have come enter the uplink queue, or be refused there."""
    own = state.peripherals[k]
    while head_time(state, k, BUFFER) <= now:
        own.offered_to_baseband += 1
        if state.marks[k, UPLINK, 1] >= rules.baseband:
            own.refused_at_baseband += 1
        else:
            move(state, k, BUFFER, k, UPLINK, oldest(state, k, BUFFER).at)
        drop_oldest(state, k, BUFFER)


@part
def move(state, k, queue, other, target, now):
    """Copy the oldest entry of a queue to the end of another one, where it is since now."""
    packet, copy = oldest(state, k, queue), new_item(state, other, target)
    copy.since, copy.stamp, copy.stream = now, packet.stamp, packet.stream
    copy.number, copy.serial, copy.slots = packet.number, packet.serial, packet.slots
    copy.piece, copy.damaged = packet.piece, packet.damaged


@part
def release_of(rules, tokens, updated_at, price, now):
    """Return when the next packet of this price can leave the token bucket, and the tokens left then."""
    if rules.token_rate == inf:
        return now, tokens
    start = max(now, updated_at)
    tokens = min(rules.depth, tokens + rules.token_rate * (start - updated_at))
    if tokens >= price:
        return start, tokens - price
    return start + (price - tokens) / rules.token_rate, 0.0


@part
def fits(state, rules, k, kind, now):
    """Return whether the token buffer has places for all packets of a segment that have to wait."""
    own = state.peripherals[k]
    tokens, updated_at, waiting = own.tokens, own.updated_at, state.marks[k, BUFFER, 1]
    for piece in range(rules.pieces[kind]):
        updated_at, tokens = release_of(rules, tokens, updated_at, rules.prices[kind, piece], now)
        waiting += updated_at > now
    return waiting <= rules.buffer
