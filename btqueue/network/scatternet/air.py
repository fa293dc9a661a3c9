"""Polled piconets and the bridges between them, followed visit by visit; nothing here is random.

Each piconet has its own time. A piconet learns of the others by its bridges only, so it can be followed up
to a visit to a bridge that, as far as is known, is elsewhere, and might have come by then; the others are
followed up to there first. Nothing is approximated by that. A frame is a packet or POLL, then a packet or
NULL; a visit ends with its limit or when POLL is answered by NULL.
"""

from math import ceil

from btqueue.baseband import SLOT_S
from btqueue.network.ring_piconet import air, ends, radio, sequences, stations, voice
from btqueue.network.ring_piconet import records as ring_records
from btqueue.network.ring_piconet.air import BEGIN, END, TURN, arrive, catch_up, note, slots_to_send
from btqueue.network.ring_piconet.network import EMPTY_FRAME_SLOTS
from btqueue.network.ring_piconet.radio import is_hit
from btqueue.network.ring_piconet.records import DOWNLINK, NOTED, UPLINK
from btqueue.network.ring_piconet.stations import drop_oldest, move, oldest
from btqueue.network.ring_piconet.voice import ENDLESS
from btqueue.network.scatternet import bridges, idleness, records
from btqueue.network.scatternet.bridges import (
    is_back,
    is_present,
    known_until,
    leave_after_cycle,
    leave_after_exchange,
)
from btqueue.network.scatternet.idleness import skip_idle_periods
from btqueue.network.scatternet.records import NONE
from btqueue.transport import newreno_sender
from btqueue.transport.compilation import compiled, part

STEP_SLOTS = 32
"""How far piconets are followed before the next look at all of them."""
NEARLY = 1e-6
"""Part of a slot that is no more than rounding."""


@compiled(
    newreno_sender, stations, ends, air, radio, sequences, bridges, idleness, records, ring_records, voice
)
def play(state, rules, errors, paths, batches, segments, end):
    """Follow every piconet for so many batches of segments delivered, and note the clock after each.

    Ends early, with `too_small` set, if a queue needs more places, and with `stuck` set if bridges wait for
    each other for ever; and when it is so late, with what was followed since the last note as a batch of its
    own.
    """
    clock = state.clock[0]
    delivered, last = clock.delivered, ceil(end / SLOT_S - NEARLY)
    for batch in range(1, batches + 1):
        while clock.delivered < delivered + batch * segments and clock.now < end:
            idle_step = skip_idle_periods(state, paths, end)
            step = STEP_SLOTS if clock.looks == 0 else idle_step
            follow_until(state, rules, errors, paths, min(clock.slot + step, last))
            if clock.too_small or clock.stuck:
                return
        note(state)
        for kind in range(len(state.counts)):
            state.notes[min(clock.notes, len(state.notes)) - 1, NOTED + kind] = state.counts[kind]
        if clock.now >= end:
            return


@part
def follow_until(state, rules, errors, paths, until):
    """Follow every piconet up to a slot."""
    clock, moved, late = state.clock[0], True, True
    while moved and late and not clock.too_small:
        moved = late = False
        for p in range(len(state.piconets)):
            before = state.piconets[p].slot
            advance(state, rules, errors, paths, p, until)
            moved = moved or state.piconets[p].slot > before
            late = late or state.piconets[p].slot < until
    clock.slot, clock.now = until, until * SLOT_S
    clock.stuck = late and not clock.too_small


@part
def advance(state, rules, errors, paths, p, until):
    """Follow a piconet as far as it can be known, and not beyond the visit in which slot `until` comes.

    A bridge is polled by an empty frame, and visited if it is there.
    """
    piconet = state.piconets[p]
    while piconet.slot < until and not state.clock[0].too_small:
        if piconet.away and not is_back(state, paths, p):
            return
        if not piconet.ready:
            spend(piconet, paths.idle_slots[p, piconet.station])
            piconet.ready = True
        link = paths.members[p, piconet.station]
        b = paths.bridge_of[link]
        present, nothing_left = True, True
        if b != NONE:
            if known_until(state, paths, b, p) < piconet.slot:
                return
            present = is_present(state, paths, b, p)
            spend(piconet, EMPTY_FRAME_SLOTS)
        if present and nothing_for(state, link, (piconet.slot + 1) * SLOT_S):
            spend(piconet, EMPTY_FRAME_SLOTS)
        elif present:
            nothing_left = visit(state, rules, errors, paths, p, link)
        if present and b != NONE:
            leave_after_exchange(state, paths, b, nothing_left, p)
        go_to_next(state, paths, p)


@part
def nothing_for(state, link, turn):
    """Return whether a member's queues are empty up to its turn to answer."""
    marks = state.marks[link]
    return marks[DOWNLINK, 1] == 0 and marks[UPLINK, 1] == 0 and state.peripherals[link].due > turn


@part
def go_to_next(state, paths, p):
    """Go to the next member; behind the last one the cycle ends."""
    piconet = state.piconets[p]
    piconet.station += 1
    piconet.ready = False
    if paths.members[p, piconet.station] == NONE:
        spend(piconet, paths.idle_slots[p, piconet.station])
        piconet.station = 0
        piconet.cycles += 1
        leave_after_cycle(state, paths, p)


@part
def visit(state, rules, errors, paths, p, link):
    """Visit a member, frame by frame; return whether the visit ended with POLL and NULL.

    A frame begins; the member's turn comes, when it has received; the frame ends, when the central has. A
    peripheral answers with what it had ready: what a packet makes it send comes too late.
    """
    piconet, own = state.piconets[p], state.peripherals[link]
    slot, now, data_slots, frames = piconet.slot, piconet.now, 0, 0
    down, up, moment = 0, 0, BEGIN
    while True:
        if own.due <= now:
            catch_up(state, rules, link, now)  # a packet up has taken a place of its queue until now
        if moment == BEGIN:
            down = slots_to_send(state, link, DOWNLINK, ENDLESS)
            slot += max(down, 1)
            moment = TURN
        else:
            if moment == TURN:
                up = slots_to_send(state, link, UPLINK, ENDLESS)
            queue = DOWNLINK if moment == TURN else UPLINK
            if (down if moment == TURN else up) > 0:
                suffer(state, errors, paths, link, queue, now)
                pass_on(state, rules, paths, p, link, queue, now)
            if moment == TURN:
                slot += max(up, 1)
            if moment == TURN and up > 0:
                moment = END
            else:
                data_slots += down + up
                frames += 1
                moment = BEGIN
        now = slot * SLOT_S
        if moment == BEGIN and (down + up == 0 or frames == paths.limit[link]):
            break
    piconet.slot, piconet.now = slot, now
    piconet.data_slots += data_slots
    return down + up == 0


@part
def suffer(state, errors, paths, link, queue, now):
    """Let the radio damage the packet at the head of a queue, whose reception ends now."""
    packet = oldest(state, link, queue)
    if is_hit(state, errors, paths.channel_of[link], packet, now):
        packet.damaged = 1


@part
def spend(piconet, slots):
    """Let slots pass without data."""
    piconet.slot += slots
    piconet.now = piconet.slot * SLOT_S


@part
def pass_on(state, rules, paths, p, link, queue, now):
    """Let the packet whose transmission ends now go into its next queue, or arrive."""
    packet = oldest(state, link, queue)
    hop = packet.hop if queue == DOWNLINK or paths.bridge_of[link] != NONE else 0
    behind = paths.routes[packet.stream, hop]
    if behind == NONE:
        deliver(state, rules, link, packet.stream, now)
        return
    own = state.peripherals[link]
    if queue == UPLINK:
        own.time_in_uplink += now - packet.since
    else:
        own.time_in_downlink += now - packet.since
    target, to = behind >> 1, DOWNLINK if behind & 1 == 1 else UPLINK
    if to == UPLINK and state.marks[target, UPLINK, 1] >= paths.room[target]:
        state.piconets[p].relay_losses += 1
    else:
        move(state, link, queue, target, to, now)
        marks, places = state.marks[target, to], state.queues.shape[2]
        state.queues[target, to, (marks[0] + marks[1] - 1) & (places - 1)].hop = hop + 1
    drop_oldest(state, link, queue)


@part
def deliver(state, rules, link, stream, now):
    """Let a peripheral take a packet; keep the round-trip time, if it completes one."""
    clock = state.clock[0]
    before = clock.round_trips
    arrive(state, rules, link, now)
    if clock.round_trips > before:
        kind = state.class_of[stream >> 1]
        count = state.counts[kind]
        state.samples[kind, count & (state.samples.shape[1] - 1)] = state.rtts[0]
        state.counts[kind] = count + 1
