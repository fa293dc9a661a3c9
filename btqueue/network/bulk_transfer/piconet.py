"""A polled piconet as an exact recursion.

A frame is a packet down, or POLL, and the packet up, or NULL, that answers it. With every queue empty the
visits of two slots go on unseen until a packet comes. Of ARQ only the mean is left: the transmissions of a
packet follow the geometric law at the points of a golden-ratio sequence, which gives any row of packets
nearly its mean number. How much the true number varies is added to the round trips afterwards
(`bulk_transfer.model`). These are parts of the compiled loop in `bulk_transfer.steps`.
"""

from math import inf, log1p, sqrt

from btqueue.baseband import SLOT_S
from btqueue.network.bulk_transfer.events import append, take_first
from btqueue.network.bulk_transfer.records import ANSWER, END, FRAME
from btqueue.network.bulk_transfer.rules import NONE
from btqueue.transport.compilation import part

GOLDEN_RATIO = (sqrt(5.0) - 1.0) / 2.0
UP, DOWN = range(2)
VISIT_S = 2 * SLOT_S
"""An idle visit: POLL and NULL."""


@part
def offer_to_piconet(state, rules, number, item, now):
    """Cut an item into packets and queue them; what finds no place damages it."""
    port, queue, own = rules.ports[number], state.queues[number], state.piconet[0]
    segment, node = state.items[item], state.nodes[port.node]
    layout = rules.layouts[segment.layout]
    if node.held + layout.frame_bytes > rules.node_bytes:
        segment.damaged = True
        return
    if own.time == inf:
        wake(state, rules, now)
    node.held += layout.frame_bytes
    for place in range(layout.first_packet, layout.first_packet + layout.packets):
        piece = rules.pieces[place]
        if queue.waiting >= port.places:
            segment.damaged = True
            node.held -= piece.carried
            continue
        new = state.clock[0].free_packet
        packet = state.packets[new]
        state.clock[0].free_packet = packet.behind
        packet.owner, packet.slots, packet.carried = item, piece.slots, piece.carried
        packet.transmissions = transmissions(queue, rules.error_rates[number, piece.kind])
        append(queue, state.packets, new)
        own.waiting += 1
        segment.parts += 1


@part
def transmissions(queue, error_rate):
    """Return how often the next packet has to be sent: the geometric law at a golden-ratio sequence."""
    if error_rate == 0.0:
        return 1
    queue.seen += 1
    return 1 + int(log1p(-((queue.seen * GOLDEN_RATIO) % 1.0)) / log1p(error_rate - 1.0))


@part
def half_frame(state, rules, until):
    """Go on by one half-frame, or over visits to members without packets that end before `until`.

    Returns the item whose last packet has come, or NONE. After the second half `end_frame` is due.
    """
    own = state.piconet[0]
    now, down, up = own.time, rules.members[own.station, DOWN], rules.members[own.station, UP]
    if own.phase == ANSWER:
        # The peripheral answers with what it had ready before this packet.
        own.answered = state.queues[up].waiting > 0
        own.phase, own.time = END, now + duration(state, up)
        return received(state, rules, down) if own.sent else NONE
    if own.phase == END:
        own.phase = FRAME
        return received(state, rules, up) if own.answered else NONE
    if own.waiting == 0:
        own.idle_since, own.time = now, inf
    elif is_idle(state, rules) and now + VISIT_S < until:
        while is_idle(state, rules) and own.time + VISIT_S < until:
            own.time += VISIT_S
            end_frame(state, rules, True)
    else:
        own.sent = state.queues[down].waiting > 0
        own.phase, own.time = ANSWER, now + duration(state, down)
    return NONE


@part
def is_idle(state, rules):
    """Return whether no packets wait in either direction for the member that is visited."""
    station = state.piconet[0].station
    members, queues = rules.members, state.queues
    return queues[members[station, DOWN]].waiting + queues[members[station, UP]].waiting == 0


@part
def duration(state, number):
    """Return the time that a half-frame takes for the packet at the head of a queue, or without one."""
    queue = state.queues[number]
    if queue.waiting == 0:
        return SLOT_S
    slots = state.packets[queue.first].slots
    state.piconet[0].data_slots += slots
    return slots * SLOT_S


@part
def received(state, rules, number):
    """Count a transmission of the packet at the head of a queue; return its item if that is now complete."""
    queue = state.queues[number]
    packet = state.packets[queue.first]
    packet.transmissions -= 1
    if packet.transmissions > 0:
        return NONE
    item = packet.owner
    state.piconet[0].waiting -= 1
    state.nodes[rules.ports[number].node].held -= packet.carried
    place = take_first(queue, state.packets)
    packet.behind = state.clock[0].free_packet
    state.clock[0].free_packet = place
    state.items[item].parts -= 1
    return NONE if state.items[item].parts > 0 else item


@part
def end_frame(state, rules, null):
    """End a frame, and with NULL after POLL, or the last one, the visit."""
    own = state.piconet[0]
    own.frames += 1
    if not null and own.frames < rules.frames:
        return
    own.visits += 1
    own.frames = 0
    if rules.fair_exhaustive:
        state.active[own.station] = not null
        own.station = next_active(state, rules)
    else:
        own.station = (own.station + 1) % len(rules.members)


@part
def next_active(state, rules):
    """Fair exhaustive polling: the next member with data down, or whose last visit brought something."""
    members, active = len(rules.members), False
    for place in range(members):
        if state.queues[rules.members[place, DOWN]].waiting > 0:
            state.active[place] = True
        active = active or state.active[place]
    station = (state.piconet[0].station + 1) % members
    if not active:
        for place in range(members):
            state.active[place] = True
    while not state.active[station]:
        station = (station + 1) % members
    return station


@part
def wake(state, rules, now):
    """Find the half-frame of the idle visit that is in progress."""
    own = state.piconet[0]
    passed = int((now - own.idle_since) / VISIT_S)
    begun = own.idle_since + passed * VISIT_S
    own.visits += passed
    own.station = (own.station + passed) % len(rules.members)
    own.sent, own.answered, own.frames = False, False, 0
    if now < begun + SLOT_S:
        own.phase, own.time = ANSWER, begun + SLOT_S
    else:
        own.phase, own.time = END, begun + VISIT_S
