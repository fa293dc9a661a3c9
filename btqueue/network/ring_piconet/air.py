"""The polled air of a ring piconet, followed visit by visit; nothing here is random.

A frame is a packet or POLL, then a packet or NULL; a visit ends with its limit or when POLL is answered by
NULL. What a peripheral sends is at the central at once, in the queue for its target. A peripheral sees
nothing of the others between its visits, so what happened there meanwhile (tokens, timers, messages) is
worked out at the next one, in order of time.
"""

from math import floor

from btqueue.baseband import SLOT_S
from btqueue.network.ring_piconet import ends, stations
from btqueue.network.ring_piconet.ends import expire, launch, next_deadline, receive
from btqueue.network.ring_piconet.records import BUFFER, DOWNLINK, ENTERING, UPLINK
from btqueue.network.ring_piconet.stations import drop_oldest, head_time, move, offer, oldest, release
from btqueue.transport import newreno_sender
from btqueue.transport.compilation import compiled, part


@compiled(newreno_sender, stations, ends)
def play(state, rules, delivered, round_trips, end):
    """Follow cycle after cycle until so much is delivered, so many round trips are known, or it is so late.

    Ends early, with `too_small` set, if a queue needs more places.
    """
    clock = state.clock[0]
    while clock.delivered < delivered and clock.round_trips < round_trips and clock.now < end:
        skip_idle_cycles(state, end)
        for k in range(len(state.peripherals)):
            visit(state, rules, k)
        clock.cycles += 1
        if clock.too_small:
            return


@compiled(newreno_sender, stations, ends)
def fill(state, rules, segments):
    """Let a pool send so many segments at the beginning."""
    for _ in range(segments):
        launch(state, rules, 0.0)


@part
def skip_idle_cycles(state, end):
    """Pass over whole cycles in which nothing can happen."""
    clock, until, count = state.clock[0], end, len(state.peripherals)
    for k in range(count):
        if state.marks[k, UPLINK, 1] > 0 or state.marks[k, DOWNLINK, 1] > 0:
            return
        entering = min(head_time(state, k, ENTERING), head_time(state, k, BUFFER))
        until = min(until, entering, next_deadline(state, k))
    cycles = floor((until - clock.now) / (2 * SLOT_S * count))
    if cycles > 0:
        clock.now += cycles * 2 * SLOT_S * count
        clock.cycles += cycles


@part
def visit(state, rules, k):
    """Visit a peripheral: frames of a downlink and an uplink half."""
    clock, count = state.clock[0], len(state.peripherals)
    frames, uplink, polled = 0, False, False
    while frames < rules.limit:
        catch_up(state, rules, k, clock.now)
        queue = UPLINK if uplink else DOWNLINK
        empty = state.marks[k, queue, 1] == 0
        slots = 1 if empty else oldest(state, k, queue).slots
        clock.now += slots * SLOT_S
        if not empty:
            clock.data_slots += slots
            if uplink:
                packet = oldest(state, k, UPLINK)
                state.peripherals[k].time_in_uplink += clock.now - packet.since
                target = (packet.stream // 2 + 1 - packet.stream % 2) % count
                move(state, k, UPLINK, target, DOWNLINK, clock.now)
                drop_oldest(state, k, UPLINK)
            else:
                arrive(state, rules, k, clock.now)
        if uplink:
            frames += 1
            if empty and polled:
                return
        polled = empty
        uplink = not uplink


@part
def catch_up(state, rules, k, now):
    """Let happen at a peripheral what was due up to now."""
    while True:
        entering, deadline = head_time(state, k, ENTERING), next_deadline(state, k)
        if min(entering, deadline) > now:
            break
        if deadline < entering:
            expire(state, rules, k, deadline)
        else:
            offer(state, rules, k)
    release(state, rules, k, now)


@part
def arrive(state, rules, k, now):
    """Deliver the head of the downlink queue; its segment, if it is the last packet of a whole one."""
    packet, own = oldest(state, k, DOWNLINK), state.peripherals[k]
    own.time_in_downlink += now - packet.since
    kind = packet.stream & 1
    if own.serial[kind] != packet.serial:
        own.serial[kind], own.pieces[kind] = packet.serial, 0
    own.pieces[kind] += 1
    whole = own.pieces[kind] == rules.pieces[kind]
    stream, number, stamp = packet.stream, packet.number, packet.stamp
    drop_oldest(state, k, DOWNLINK)
    if whole:
        if kind == 0:
            own.lost += own.serial[0] - own.complete[0] - 1
        own.complete[kind] = own.serial[kind]
        receive(state, rules, k, stream, number, stamp, now)
