"""What of a moment matters for the future of sessions, as a number: stages that agree in it are one state.

All that is discrete is told apart exactly, windows to parts of a segment; what is under way by its order, and
not by its times. Of the timers the doublings count; the timeouts themselves are known to each state in
the mean (`request_reply.stationary`). So no time is rounded, and the answer jumps with one only where
the order of events changes. Where nothing can be lost, times are told apart too, and timers do not matter.
"""

from math import inf

from btqueue.network.request_reply.plan import CLIENT, SERVER
from btqueue.network.request_reply.records import (
    ACK,
    ALARM,
    ARRIVING,
    DATA,
    HANDED,
    NONE,
    TIMER,
)
from btqueue.transport.compilation import part
from btqueue.transport.request_reply_transfer import DUPLICATES, TWICE

WINDOW_PARTS = 8
"""Parts of a segment to which windows are told apart: a session must open its window by more than that."""

SEED = 1
NOTHING = -7

LEVELS = 5
"""Keys of a stage: the exact one, and others that say less and less."""


@part
def mixed(key, value):
    """Return the key with one more value in it: a polynomial, modulo a prime, in two halves."""
    high, low = key // 2147483648, key % 2147483648
    value = value % 2147483647
    high = (high * 1103515245 + value + 12345) % 2147483647
    low = (low * 69621 + value * 7 + 1) % 2147483647
    return high * 2147483648 + low


@part
def write_keys(net, plan, state, s, keys):
    """Write the keys of a moment, the exact one first."""
    session = state.sessions[s]
    found = mixed(mixed(mixed(SEED, session.phase), session.action), session.action_flow)
    roughly = found
    exact = found
    if not session.open:
        exact = mixed(mixed(exact, int(session.syn_rto)), state.clocks[s].now - session.connecting_since)
    left, windows, doublings = SEED, SEED, SEED
    for flow in (CLIENT, SERVER):
        sender, receiver, base = state.senders[s, flow], state.receivers[s, flow], state.ends[s, flow].first
        exact = with_end(plan, state, s, flow, exact)
        left = mixed(left, sender.written - sender.una)
        windows = mixed(windows, receiver.expected - base)
        windows = mixed(windows, window_of(plan, state, s, flow) // WINDOW_PARTS)
        if plan.lossy:
            doublings = mixed(doublings, sender.doublings)
    exact = with_pending(net, plan, state, s, exact)
    keys[0] = mixed(exact, doublings)
    keys[1] = exact
    keys[2] = mixed(mixed(roughly, left), windows)
    keys[3] = mixed(roughly, left)
    keys[4] = roughly


@part
def window_of(plan, state, s, flow):
    """Return the window in parts of a segment, as far as it matters; after an expiry, the flight halved."""
    sender, session = state.senders[s, flow], state.sessions[s]
    if session.action == TIMER and session.action_flow == flow:
        return max(sender.nxt - sender.una, 4)
    return int(WINDOW_PARTS * min(sender.cwnd, plan.bursts[flow]))


@part
def with_end(plan, state, s, flow, key):
    """Return a key with what matters of an end."""
    session, now = state.sessions[s], state.clocks[s].now
    sender, receiver, base = state.senders[s, flow], state.receivers[s, flow], state.ends[s, flow].first
    key = mixed(mixed(key, window_of(plan, state, s, flow)), sender.una - base)
    key = mixed(mixed(key, sender.highest - base), sender.written - base)
    key = mixed(mixed(key, receiver.expected - base), receiver.waiting)
    early, missing = state.early[s, flow], receiver.held
    number = receiver.expected
    while missing > 0:
        if early[number % len(early)]:
            key, missing = mixed(key, number - base), missing - 1
        number += 1
    expired = session.action == TIMER and session.action_flow == flow
    if not expired:
        key = mixed(key, int(2.0 * min(sender.ssthresh, plan.bursts[flow])))
        key = mixed(key, sender.nxt - base)
        if plan.bursts[flow] > DUPLICATES:  # else nothing is ever resent fast
            key = mixed(key, sender.recover - base if sender.recover >= sender.una - 1 else NOTHING)
            key = mixed(mixed(key, 1 if sender.recovering else 0), min(sender.duplicates, DUPLICATES))
    if plan.lossy:
        key = mixed(key, 1 if sender.smoothed > 0.0 else 0)
        if expired:  # everything under way is sent again, and not timed
            return key
        key = mixed(key, 1 if sender.deadline < inf else 0)
    timed = state.timed[s, flow]
    for number in range(sender.una, sender.highest):
        sent = timed[number % len(timed)]
        if not plan.lossy:
            key = mixed(key, now - int(sent))
        elif sent == TWICE:
            key = mixed(key, number - base)
    return key


@part
def with_pending(net, plan, state, s, key):
    """Return a key with what is under way, alarms apart, and in the queues."""
    clock, entries = state.clocks[s], state.entries[s]
    last_when, last_order = -1, -1
    for _ in range(clock.entries):
        first = NONE
        for i in range(clock.entries):
            entry = entries[i]
            later = entry.when > last_when or (entry.when == last_when and entry.order > last_order)
            if later and (
                first == NONE
                or entry.when < entries[first].when
                or (entry.when == entries[first].when and entry.order < entries[first].order)
            ):
                first = i
        entry = entries[first]
        last_when, last_order = entry.when, entry.order
        if entry.what == ALARM:
            continue
        key = mixed(mixed(key, 0 if plan.lossy else entry.when - clock.now), entry.what)
        if entry.what == ARRIVING or entry.what == HANDED:
            key = with_parcel(state, s, entry, key)
        else:
            key = mixed(key, entry.place)
    for port in range(state.lengths.shape[1]):
        key = mixed(key, state.lengths[s, port])
        for i in range(state.lengths[s, port]):
            key = with_parcel(state, s, state.queues[s, port, i], key)
    for medium in range(net.turns.shape[0]):
        own = state.media[s, medium]
        key = mixed(mixed(key, own.serving), 0 if plan.lossy else own.turn)
    if net.polled != NONE:
        cycle = (2 + net.pause_slots) * net.slot_ns
        into = (clock.now - clock.anchor) % cycle if clock.asleep else clock.now - clock.started
        key = mixed(mixed(key, 1 if clock.asleep else 0), 0 if plan.lossy else into)
        key = mixed(mixed(key, state.directions[s, 0].crossed), state.directions[s, 1].crossed)
    return key


@part
def with_parcel(state, s, parcel, key):
    """Return a key with what matters of a parcel."""
    key = mixed(mixed(key, parcel.kind), 1 if parcel.epoch == state.sessions[s].epoch else 0)
    if parcel.kind == ACK:
        key = mixed(key, parcel.number - state.ends[s, 1 - parcel.direction].first)
    elif parcel.kind == DATA:
        key = mixed(key, parcel.number - state.ends[s, parcel.direction].first)
    return mixed(mixed(key, parcel.direction), parcel.hop)
