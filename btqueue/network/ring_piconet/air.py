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


@compiled(newreno_sender, ends, radio, records, sequences, stations, voice)
def play(state, rules, errors, reserved, sent, frames, end):
    """Follow cycle after cycle until so many data segments and frames have been sent, or it is so late.

    Ends early, with `too_small` set, if a queue needs more places.

    Args:
        state: of `ring_piconet.records`.
        rules: likewise.
        errors: `RadioErrors` of `ring_piconet.network`.
        reserved: `VoiceSlots`, likewise.
        sent: data segments since `sent` of the peripherals was 0.
        frames: frames that were followed, of `clock`.
        end: a time (s).
    """
    clock = state.clock[0]
    while clock.frames < frames and clock.now < end and not clock.too_small:
        skip_idle_cycles(state, reserved, end)
        total = 0
        for k in range(len(state.peripherals)):
            visit(state, rules, errors, reserved, k)
            total += state.peripherals[k].sent
        clock.cycles += 1
        if total >= sent:
            return


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

    A peripheral answers with what it had ready: what a packet makes it send comes too late.
    """
    clock, frames = state.clock[0], 0
    while frames < rules.limit:
        clock.now += wait(reserved, clock.now) * SLOT_S
        catch_up(state, rules, k, clock.now)
        down = slots_to_send(state, k, DOWNLINK, room(reserved, clock.now) - 1)
        clock.now += max(down, 1) * SLOT_S
        catch_up(state, rules, k, clock.now)
        up = slots_to_send(state, k, UPLINK, room(reserved, clock.now))
        if down > 0:
            suffer(state, errors, k, DOWNLINK, clock.now)
            arrive(state, rules, k, clock.now)
        clock.now += max(up, 1) * SLOT_S
        if up > 0:
            catch_up(state, rules, k, clock.now)  # until now the packet has taken a place of its queue
            suffer(state, errors, k, UPLINK, clock.now)
            relay(state, k, clock.now)
        clock.data_slots += down + up
        clock.frames += 1
        frames += 1
        if down + up == 0:
            return


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
        packet.damaged = True


@part
def relay(state, k, now):
    """Pass the packet that a peripheral has sent on to the queue for its target."""
    packet = oldest(state, k, UPLINK)
    state.peripherals[k].time_in_uplink += now - packet.since
    target = (packet.stream // 2 + 1 - packet.stream % 2) % len(state.peripherals)
    move(state, k, UPLINK, target, DOWNLINK, now)
    drop_oldest(state, k, UPLINK)


@part
def catch_up(state, rules, k, now):
    """Let happen at a peripheral what was due up to now."""
    own = state.peripherals[k]
    if own.due > now:
        return
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
    own.pieces[kind] += not packet.damaged
    whole = own.pieces[kind] == rules.pieces[kind]
    stream, number, stamp = packet.stream, packet.number, packet.stamp
    drop_oldest(state, k, DOWNLINK)
    if whole:
        if kind == 0:
            own.lost += own.serial[0] - own.complete[0] - 1
        own.complete[kind] = own.serial[kind]
        receive(state, rules, k, stream, number, stamp, now)
        own.due = now  # what it sends, and its timer, are yet to be looked at
