"""Polled piconets and the bridges between them, followed visit by visit; nothing here is random.

Each piconet has its own time. A piconet learns of the others by its bridges only, so it can be followed up
to a visit to a bridge that, as far as is known, is elsewhere, and might have come by then; the others are
followed up to there first. Nothing is approximated by that. A frame is a packet or POLL, then a packet or
NULL; a visit ends with its limit or when POLL is answered by NULL.
"""

from math import ceil

from btqueue.baseband import SLOT_S
from btqueue.network.ring_piconet import air, ends, radio, sequences, stations
from btqueue.network.ring_piconet import records as ring_records
from btqueue.network.ring_piconet.air import arrive, catch_up
from btqueue.network.ring_piconet.network import EMPTY_FRAME_SLOTS
from btqueue.network.ring_piconet.radio import is_hit
from btqueue.network.ring_piconet.records import DOWNLINK, UPLINK
from btqueue.network.ring_piconet.stations import drop_oldest, move, oldest
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

STEP_SLOTS, IDLE_STEP_SLOTS = 32, 8
"""How far piconets are followed before the next look at all of them; with nothing to send."""
NEARLY = 1e-6
"""Part of a slot that is no more than rounding."""


@compiled(newreno_sender, stations, ends, air, radio, sequences, bridges, idleness, records, ring_records)
def play(state, rules, errors, paths, delivered, end):
    """Follow every piconet until so much is delivered, or it is so late.

    Ends early, with `too_small` set, if a queue needs more places, and with `stuck` set if bridges wait for
    each other for ever.
    """
    clock = state.clock[0]
    while clock.delivered < delivered and clock.now < end and not clock.too_small and not clock.stuck:
        skip_idle_periods(state, paths, end)
        step = STEP_SLOTS if clock.looks == 0 else IDLE_STEP_SLOTS
        follow_until(state, rules, errors, paths, min(clock.slot + step, ceil(end / SLOT_S - NEARLY)))


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
    """Follow a piconet as far as it can be known, and not beyond the visit in which slot `until` comes."""
    piconet = state.piconets[p]
    while piconet.slot < until and not state.clock[0].too_small:
        if piconet.away and not is_back(state, paths, p):
            return
        if not piconet.ready:
            spend(piconet, paths.idle_slots[p, piconet.station], 0)
            piconet.ready = True
        link = paths.members[p, piconet.station]
        b = paths.bridge_of[link]
        if b == NONE:
            visit(state, rules, errors, paths, p, link)
        elif known_until(state, paths, b, p) < piconet.slot:
            return
        else:
            meet(state, rules, errors, paths, p, link, b)
        go_to_next(state, paths, p)


@part
def go_to_next(state, paths, p):
    """Go to the next member; behind the last one the cycle ends."""
    piconet = state.piconets[p]
    piconet.station += 1
    piconet.ready = False
    if piconet.station == paths.members.shape[1] or paths.members[p, piconet.station] == NONE:
        spend(piconet, paths.idle_slots[p, piconet.station], 0)
        piconet.station = 0
        piconet.cycles += 1
        leave_after_cycle(state, paths, p)


@part
def meet(state, rules, errors, paths, p, link, b):
    """Poll a bridge: an empty frame, and an exchange if it is there."""
    piconet = state.piconets[p]
    present = is_present(state, paths, b, p)
    spend(piconet, EMPTY_FRAME_SLOTS, 0)
    if present:
        nothing_left = visit(state, rules, errors, paths, p, link)
        leave_after_exchange(state, paths, b, nothing_left, p)


@part
def visit(state, rules, errors, paths, p, link):
    """Visit a member; return whether the visit ended with POLL and NULL.

    A peripheral answers with what it had ready: what a packet makes it send comes too late.
    """
    piconet, ordinary = state.piconets[p], paths.bridge_of[link] == NONE
    null = False
    for _ in range(paths.limit[link]):
        if ordinary:
            catch_up(state, rules, link, piconet.now)
        polled = state.marks[link, DOWNLINK, 1] == 0
        transmit(state, piconet, link, DOWNLINK, not polled)
        if ordinary:
            catch_up(state, rules, link, piconet.now)
        answered = state.marks[link, UPLINK, 1] > 0
        if not polled:
            suffer(state, errors, paths, link, DOWNLINK, piconet.now)
            pass_on(state, rules, paths, p, link, DOWNLINK)
        transmit(state, piconet, link, UPLINK, answered)
        if answered:
            if ordinary:
                catch_up(
                    state, rules, link, piconet.now
                )  # until now the packet has taken a place of its queue
            suffer(state, errors, paths, link, UPLINK, piconet.now)
            pass_on(state, rules, paths, p, link, UPLINK)
        null = polled and not answered
        if null:
            break
    return null


@part
def suffer(state, errors, paths, link, queue, now):
    """Let the radio damage the packet at the head of a queue, whose reception ends now."""
    packet = oldest(state, link, queue)
    if is_hit(state, errors, paths.channel_of[link], packet, now):
        packet.damaged = True


@part
def transmit(state, piconet, link, queue, any_packet):
    """Let the oldest packet take its time, or POLL or NULL."""
    if any_packet:
        slots = oldest(state, link, queue).slots
        spend(piconet, slots, slots)
    else:
        spend(piconet, 1, 0)


@part
def spend(piconet, slots, with_data):
    """Let slots pass, so many of them with data."""
    piconet.slot += slots
    piconet.now = piconet.slot * SLOT_S
    piconet.data_slots += with_data


@part
def pass_on(state, rules, paths, p, link, queue):
    """Let the packet whose transmission ends now go into its next queue, or arrive."""
    packet, now = oldest(state, link, queue), state.piconets[p].now
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
    target, to = behind // 2, DOWNLINK if behind % 2 == 1 else UPLINK
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
        kind = state.class_of[stream // 2]
        count = state.counts[kind]
        state.samples[kind, count % state.samples.shape[1]] = state.rtts[0]
        state.counts[kind] = count + 1
        clock.trip_time += state.rtts[0]
