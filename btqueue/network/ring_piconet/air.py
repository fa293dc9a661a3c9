"""The polled air of a ring piconet, followed visit by visit; nothing here is random.

A frame is a packet or POLL, then a packet or NULL; a visit ends with its limit or when POLL is answered by
NULL. What a peripheral sends is at the central at once, in the queue for its target, damaged or not. A
peripheral sees nothing of the others between its visits, so what happened there meanwhile (tokens, timers,
messages) is worked out at the next one, in order of time.
"""

from math import floor

from btqueue.baseband import SLOT_S
from btqueue.network.ring_piconet import ends, radio, records, sequences, stations, voice
from btqueue.network.ring_piconet.ends import expire, next_deadline, receive
from btqueue.network.ring_piconet.network import EMPTY_FRAME_SLOTS
from btqueue.network.ring_piconet.radio import is_hit
from btqueue.network.ring_piconet.records import BUFFER, DOWNLINK, ENTERING, UPLINK
from btqueue.network.ring_piconet.stations import drop_oldest, head_time, move, offer, oldest, release
from btqueue.network.ring_piconet.voice import room, wait
from btqueue.transport import newreno_sender
from btqueue.transport.compilation import compiled, part

BEGIN, TURN, END = range(3)
"""Moments of a frame."""


@compiled(newreno_sender, ends, radio, records, sequences, stations, voice)
def play(state, rules, errors, reserved, batches, segments, frames, end):
    """Follow cycle after cycle for so many batches of data segments sent, and note the clock after each.

    Ends early, with `too_small` set, if a queue needs more places; and after so many frames, or when it is so
    late, with what was followed since the last note as a batch of its own.

    Args:
        state: of `ring_piconet.records`.
        rules: likewise.
        errors: `RadioErrors` of `ring_piconet.network`.
        reserved: `VoiceSlots`, likewise.
        batches: how many.
        segments: data segments that are sent in a batch.
        frames: frames that were followed, of `clock`.
        end: a time (s).
    """
    clock = state.clock[0]
    sent = 0
    for own in state.peripherals:
        sent += own.sent
    for batch in range(1, batches + 1):
        total = sent
        while total < sent + batch * segments and clock.frames < frames and clock.now < end:
            skip_idle_cycles(state, reserved, end)
            total = 0
            for k in range(len(state.peripherals)):
                visit(state, rules, errors, reserved, k)
                total += state.peripherals[k].sent
            clock.cycles += 1
            if clock.too_small:
                return
        note(state)
        if clock.frames >= frames or clock.now >= end:
            return


@part
def note(state):
    """Note the clock, as `NOTED` says; the last place is for all further notes."""
    clock = state.clock[0]
    place = min(clock.notes, len(state.notes) - 1)
    state.notes[place, 0], state.notes[place, 1] = clock.now, clock.delivered
    state.notes[place, 2], state.notes[place, 3] = clock.round_trips, clock.trip_time
    state.notes[place, 4], state.notes[place, 5] = clock.bad_surprise, clock.hit_surprise
    clock.notes += 1


@part
def skip_idle_cycles(state, reserved, end):
    """Pass over whole cycles in which nothing can happen, and over whole periods of the voice links."""
    clock, until, count = state.clock[0], end, len(state.peripherals)
    for k in range(count):
        if state.marks[k, UPLINK, 1] > 0 or state.marks[k, DOWNLINK, 1] > 0:
            return
        until = min(until, state.peripherals[k].due)
    step = reserved.period * count  # in that many slots each peripheral is visited equally often
    steps = floor((until - clock.now) / (step * SLOT_S))
    if steps > 0:
        clock.now += steps * step * SLOT_S
        clock.cycles += steps * ((reserved.period - reserved.reserved) // EMPTY_FRAME_SLOTS)


@part
def visit(state, rules, errors, reserved, k):
    """Visit a peripheral, frame by frame.

    A frame begins; the peripheral's turn comes, when it has received; the frame ends, when the central has.
    A peripheral answers with what it had ready: what a packet makes it send comes too late.
    """
    clock, own = state.clock[0], state.peripherals[k]
    now, frames, slots = clock.now, 0, 0
    down, up, moment = 0, 0, BEGIN
    while True:
        if moment == BEGIN:
            now += wait(reserved, now) * SLOT_S
        if own.due <= now:
            catch_up(state, rules, k, now)  # a packet up has taken a place of its queue until now
        if moment == BEGIN:
            down = slots_to_send(state, k, DOWNLINK, room(reserved, now) - 1)
            now += max(down, 1) * SLOT_S
            moment = TURN
            continue
        if moment == TURN:
            up = slots_to_send(state, k, UPLINK, room(reserved, now))
        queue, packet_slots = (DOWNLINK, down) if moment == TURN else (UPLINK, up)
        if packet_slots > 0:
            suffer(state, errors, k, queue, now)
            if queue == DOWNLINK:
                arrive(state, rules, k, now)
            else:
                relay(state, k, now)
        if moment == TURN:
            now += max(up, 1) * SLOT_S
            moment = END
            if up > 0:
                continue
        slots += down + up
        frames += 1
        moment = BEGIN
        if down + up == 0 or frames == rules.limit:
            break
    clock.now = now
    clock.frames += frames
    clock.data_slots += slots


@part
def slots_to_send(state, k, queue, free):
    """Return the slots of the packet at the head of a queue; 0 if there is none, or not so many are free."""
    if state.marks[k, queue, 1] == 0:
        return 0
    slots = oldest(state, k, queue).slots
    return slots if slots <= free else 0


@part
def suffer(state, errors, k, queue, now):
    """Let the radio damage the packet at the head of a queue, whose reception ends now."""
    packet = oldest(state, k, queue)
    if is_hit(state, errors, k, packet, now):
        packet.damaged = 1


@part
def relay(state, k, now):
    """Pass the packet that a peripheral has sent on to the queue for its target."""
    packet = oldest(state, k, UPLINK)
    state.peripherals[k].time_in_uplink += now - packet.since
    target = (packet.stream >> 1) + 1 - (packet.stream & 1)
    if target == len(state.peripherals):
        target = 0
    move(state, k, UPLINK, target, DOWNLINK, now)
    drop_oldest(state, k, UPLINK)


@part
def catch_up(state, rules, k, now):
    """Let happen at a peripheral what was due up to now."""
    own = state.peripherals[k]
    while True:
        entering, deadline = head_time(state, k, ENTERING), next_deadline(state, k)
        if min(entering, deadline) > now:
            break
        if deadline < entering:
            expire(state, rules, k, deadline)
        else:
            offer(state, rules, k)
    release(state, rules, k, now)
    own.due = min(head_time(state, k, ENTERING), head_time(state, k, BUFFER), next_deadline(state, k))


@part
def arrive(state, rules, k, now):
    """Deliver the head of the downlink queue; its segment, if it is the last packet of a whole one."""
    packet, own = oldest(state, k, DOWNLINK), state.peripherals[k]
    own.time_in_downlink += now - packet.since
    kind = packet.stream & 1
    if own.serial[kind] != packet.serial:
        own.serial[kind], own.pieces[kind] = packet.serial, 0
    own.received += 1
    own.damaged += packet.damaged
    own.pieces[kind] += 1 - packet.damaged
    whole = own.pieces[kind] == rules.pieces[kind]
    stream, number, stamp = packet.stream, packet.number, packet.stamp
    drop_oldest(state, k, DOWNLINK)
    if whole:
        if kind == 0:
            own.lost += own.serial[0] - own.complete[0] - 1
        own.complete[kind] = own.serial[kind]
        receive(state, rules, k, stream, number, stamp, now)
        own.due = now  # what it sends, and its timer, are yet to be looked at
