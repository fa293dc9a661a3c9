"""Connections of Bluetooth Low Energy: events at anchor points, and exchanges within them.

In an exchange the central sends a PDU, and after a frame space the peripheral answers; the next exchange
follows a frame space later. The first exchange of an event always takes place. The event goes on while one
side has more to send, or a PDU was damaged, and the next exchange has room in its window; two damaged PDUs in
a row at one side close it. A PDU is repeated until the other side's PDU acknowledges it (sequence number and
next expected sequence number); its packet leaves the queue when it comes across.

A node reserves time for each event. Of two events of one node whose reservations overlap, the link that has
waited longer goes, and the other one misses its event.

A packet in a queue is a PDU. With credits its `tokens` say where K-frames begin and end: a K-frame begins
only with a credit, and the receiver returns credits in its PDU of the exchange after the K-frame.
"""

from btqueue.simulator.bluetooth import arq
from btqueue.simulator.bluetooth.baseband_queue import take_from_port
from btqueue.simulator.bluetooth.radio import is_hit
from btqueue.simulator.hosts.datagram import left_first_link
from btqueue.simulator.hosts.forwarding import arrive
from btqueue.simulator.machinery.numba_cache import compiled, outlined
from btqueue.simulator.machinery.random_streams import uniform
from btqueue.simulator.machinery.timers import later, schedule
from btqueue.simulator.records import le_links
from btqueue.simulator.records.conventions import NEVER, NOTHING, UNLIMITED
from btqueue.simulator.records.le_links import DOWN, UP
from btqueue.simulator.traces import trace
from btqueue.simulator.traces.trace import packet_event

CHANNELS = 37
TOUCHING = 1000
"""Reservations that overlap by no more (ns) are next to each other: anchors are rounded."""
FREE, CENTRAL_BUSY, PERIPHERAL_BUSY = range(3)


# ------------------------------------------------------------------------------------------------- the events


@outlined
def start(sim, index):
    """Draw the clock of the central, the interval and the first anchor, and wait for it."""
    link = sim.le_links[index]
    stream = sim.streams[link.stream]
    first = sim.le_links[link.first_of_central]
    if link.accuracy > 0.0 and link.first_of_central == index:
        link.pace = 1.0 + link.accuracy * (2.0 * uniform(stream) - 1.0)
    else:
        link.pace = first.pace
    if link.interval_spread > 0:
        steps = min(link.interval_spread, link.interval - link.step) // link.step
        link.interval += (int(uniform(stream) * (2 * steps + 1)) - steps) * link.step
    link.length = int(min(link.length, link.interval) * link.pace)
    link.period = link.interval * link.subrate * link.pace
    if link.anywhere:
        link.anchor = uniform(stream) * link.interval * link.pace
    else:
        link.anchor = link.offset * link.length % (link.interval * link.pace)
    link.last_served = NOTHING
    link.type[DOWN] = link.type[UP] = NOTHING
    schedule(sim, link.timer, int(link.anchor))


@compiled
def on_timer(sim, index, now):
    """The anchor of an event has come, or a PDU has ended."""
    phase = sim.le_links[index].phase
    if phase == le_links.CENTRAL_SENDS:
        on_central_sent(sim, index, now)
    elif phase == le_links.PERIPHERAL_SENDS:
        on_peripheral_sent(sim, index, now)
    else:
        on_anchor(sim, index, now)


@outlined
def on_anchor(sim, index, now):
    """Begin an event, unless the peripheral skips it, or one of the two nodes has no time."""
    link = sim.le_links[index]
    link.anchor += link.period
    schedule(sim, link.timer, int(link.anchor) if link.anchor < NEVER else NEVER)
    if now - link.last_valid >= link.supervision_timeout:
        link.disconnections += 1
        link.last_valid = now
        for side in range(2):
            link.pending[side] = link.got[side] = 0
    if not listens(sim, link):
        link.skipped += 1
        return
    link.events += 1
    for side in range(2):
        link.errors[side] = link.done[side] = 0
    widening = 2.0 * link.accuracy * (now - link.last_heard)
    room = time_before_iso(link, now)
    state = room_at_nodes(sim, link, now)
    if state == FREE and room < time_of_exchange(sim, link):
        state = CENTRAL_BUSY
    if state == CENTRAL_BUSY:  # the peripheral listens in vain
        link.wakes += 1
        link.heard += int(2.0 * widening) + link.empty
    if state != FREE:
        link.missed += 1
        return
    link.skipped = link.exchanges = 0
    link.taken += 1
    link.wakes += 1
    link.heard += int(widening)
    link.last_served = link.last_heard = now
    link.reserved_until = now + link.length
    link.window_end = end_of_window(sim, link, now, room)
    if link.classes > 0:
        draw_channel(sim, link)
    start_exchange(sim, link, now)


@compiled
def listens(sim, link):
    """Whether the peripheral takes part in the event at the next anchor; credits alone can wait."""
    return link.skipped >= link.latency or sim.queues[link.ports[UP]].length > 0


@outlined
def room_at_nodes(sim, link, now):
    """Return which node is at another event, or leaves this one to a link that has waited longer."""
    found = FREE
    for place in range(link.first_neighbour, link.first_neighbour + link.neighbours):
        other = sim.le_links[sim.le_neighbours[place]]
        last = other.phase == le_links.PERIPHERAL_SENDS and other.window_end <= now  # its PDU ends now
        away = other.phase != le_links.ANCHOR and not (last and sim.timers[other.timer].due <= now)
        busy = away or other.reserved_until > now + TOUCHING
        waits = other.anchor < now + link.length - TOUCHING and other.last_served < link.last_served
        if busy or (waits and listens(sim, other)):
            if other.central == link.peripheral or other.peripheral == link.peripheral:
                return PERIPHERAL_BUSY
            found = CENTRAL_BUSY
    return found


@outlined
def end_of_window(sim, link, now, room):
    """Return when the last exchange of an event that begins now has to be over."""
    end = now + link.length
    if link.event_extension:
        free = now + int(link.interval * link.pace)
        for place in range(link.first_neighbour, link.first_neighbour + link.neighbours):
            anchor = int(sim.le_links[sim.le_neighbours[place]].anchor)
            if anchor >= end - TOUCHING:
                free = min(free, anchor)
        end = max(end, free)
    return later(now, min(end - now, room)) - link.event_overhead


@compiled
def time_before_iso(link, now):
    """Return the time that the central has until the isochronous time at the end of each of its periods."""
    if link.iso_interval == 0:
        return UNLIMITED
    place = int(now / link.pace) % link.iso_interval
    return max(0, link.iso_interval - link.iso_length - place)


@outlined
def draw_channel(sim, link):
    """Draw the class of the event's channel."""
    channel = int(uniform(sim.streams[link.stream]) * CHANNELS)
    link.channel_class = 0
    while channel >= sim.le_channels[link.channel_class]:
        channel -= sim.le_channels[link.channel_class]
        link.channel_class += 1


# ------------------------------------------------------------------------------------------------- exchanges


@compiled
def start_exchange(sim, link, now):
    """The central sends."""
    link.phase = le_links.CENTRAL_SENDS
    put_on_air(sim, link, DOWN, now)
    schedule(sim, link.timer, now + air_time(sim, link, link.type[DOWN]))


@compiled
def on_central_sent(sim, index, now):
    """The peripheral answers with a PDU that was ready: a reply to this PDU comes too late."""
    link = sim.le_links[index]
    link.heard += air_time(sim, link, link.type[DOWN])
    link.failed = is_damaged(sim, link, DOWN, now)
    if link.errors[DOWN] >= 2:
        close_event(sim, link)
        return
    link.phase = le_links.PERIPHERAL_SENDS
    put_on_air(sim, link, UP, now)
    takes = air_time(sim, link, link.type[UP])
    link.sent += takes
    link.spaces += link.frame_space
    schedule(sim, link.timer, now + link.frame_space + takes)
    if not link.failed:
        take(sim, link, DOWN, now)


@compiled
def on_peripheral_sent(sim, index, now):
    """An exchange is over: the event goes on, or is closed."""
    link = sim.le_links[index]
    failed = is_damaged(sim, link, UP, now)
    link.exchanges += 1
    link.exchanged += 1
    if not failed:
        take(sim, link, UP, now)
    more = next_type(sim, link, DOWN) != NOTHING or next_type(sim, link, UP) != NOTHING
    goes_on = failed or link.failed or more
    if goes_on and link.errors[UP] < 2 and link.exchanges < link.most_exchanges:
        needed = link.largest if link.largest > 0 else time_of_exchange(sim, link)
        if now + link.frame_space + needed <= link.window_end:
            link.spaces += link.frame_space
            start_exchange(sim, link, now + link.frame_space)
            return
    close_event(sim, link)


@compiled
def close_event(sim, link):
    """Wait for the next anchor; an exchange may last longer than the interval, and its events are missed."""
    link.phase = le_links.ANCHOR
    while link.anchor < sim.clock[0].now:
        link.anchor += link.period
        link.events += 1
        link.missed += 1
    schedule(sim, link.timer, int(link.anchor) if link.anchor < NEVER else NEVER)


@compiled
def air_time(sim, link, kind):
    """Return the air time of a PDU of this packet type, NOTHING for an empty one."""
    return link.empty if kind == NOTHING else sim.packet_types[kind].duration


@compiled
def time_of_exchange(sim, link):
    """Return how long an exchange would take that starts now."""
    down = link.type[DOWN] if link.pending[DOWN] else next_type(sim, link, DOWN)
    # the central's PDU acknowledges the peripheral's, if that has come
    up = link.type[UP] if link.pending[UP] and not link.got[UP] else next_type(sim, link, UP)
    return air_time(sim, link, down) + link.frame_space + air_time(sim, link, up)


@compiled
def is_damaged(sim, link, side, now):
    """Decide whether the PDU that ends now is damaged; an intact one acknowledges the other side's."""
    kind = link.type[side]
    link.on_air += air_time(sim, link, kind)
    hit = is_hit(sim, link.ports[side], kind, now)
    if link.classes > 0:
        rate = sim.error_rates[link.first_class + link.channel_class, 1 + kind]
        hit = uniform(sim.streams[link.stream]) < rate or hit
    if hit:
        link.errors[side] += 1
        if kind != NOTHING and link.carried[side] == 0 and not link.got[side]:
            packet_event(
                sim, trace.PACKET_CORRUPTED, link.ports[side], sim.queues[link.ports[side]].head, now
            )
        return True
    link.errors[side] = 0
    link.last_valid = now
    if link.got[1 - side]:
        link.pending[1 - side] = link.got[1 - side] = 0
    return False


# --------------------------------------------------------------------------------------------------- the PDUs


@compiled
def put_on_air(sim, link, side, now):
    """Send a PDU: the last one again, if it is not acknowledged, or the next one."""
    port_index = link.ports[side]
    if sim.ports[port_index].flush < NEVER:
        flush_old(sim, link, side, now)
    if not link.pending[side]:
        kind = next_type(sim, link, side)
        link.type[side] = kind
        link.pending[side], link.got[side], link.carried[side] = 1, 0, 0
        if kind != NOTHING and link.owed[side] > 0:
            link.carried[side], link.owed[side] = link.owed[side], 0
        elif kind != NOTHING and takes_credit(sim, link, side):
            link.credits[side] -= 1
            link.charged[side] = 1
    if link.type[side] != NOTHING and link.carried[side] == 0 and not link.got[side]:
        packet = sim.queues[port_index].head
        sim.packets[packet].transmissions += 1
        sim.flow_statistics[sim.segments[sim.packets[packet].segment].flow].transmissions += 1
        packet_event(sim, trace.PACKET_TRANSMITTED, port_index, packet, now)


@compiled
def next_type(sim, link, side):
    """Return the packet type of a side's next PDU, NOTHING for an empty one."""
    if link.done[side] >= link.buffers:
        return NOTHING
    if link.owed[side] > 0:
        return link.credit_type
    queue = sim.queues[link.ports[side]]
    if queue.length == 0 or sim.packets[queue.head].ready_at > sim.clock[0].now:
        return NOTHING
    if takes_credit(sim, link, side) and link.credits[side] == 0:
        return NOTHING
    return sim.packets[queue.head].type


@compiled
def takes_credit(sim, link, side):
    """Whether the packet at the head of the side's queue takes a credit that it does not have yet."""
    tokens = sim.packets[sim.queues[link.ports[side]].head].tokens
    return not link.charged[side] and link.returned_every > 0 and tokens & le_links.FRAME_BEGINS > 0


@compiled
def take(sim, link, side, now):
    """The PDU has come across intact: hand on its packet, or its credits; a repeated PDU is ignored."""
    if link.got[side]:
        return
    link.got[side] = 1
    if link.type[side] == NOTHING:
        return
    link.done[side] += 1
    if link.carried[side] > 0:
        link.credits[1 - side] += link.carried[side]
        return
    port_index = link.ports[side]
    packet = take_from_port(sim, port_index, now)
    packet_event(sim, trace.PACKET_DELIVERED, port_index, packet, now)
    if link.returned_every > 0 and sim.packets[packet].tokens & le_links.FRAME_ENDS > 0:
        # the K-frame is whole: its sender gets its credit back with others
        link.charged[side] = 0
        link.unreturned[side] += 1
        if link.unreturned[side] >= link.returned_every:
            link.owed[1 - side] += link.unreturned[side]
            link.unreturned[side] = 0
    segment = sim.packets[packet].segment
    if sim.segments[segment].travelling == 1:
        left_first_link(sim, segment)
    arrive(sim, packet, now)


@outlined
def flush_old(sim, link, side, now):
    """Give up segments that are older than the flush timeout, also the segment on the air."""
    port_index = link.ports[side]
    queue = sim.queues[port_index]
    while queue.length > 0 and now - sim.packets[queue.head].enqueued_at > sim.ports[port_index].flush:
        if link.type[side] != NOTHING and link.carried[side] == 0 and not link.got[side]:
            link.pending[side] = 0
        if link.charged[side]:  # it is not received: its credit stays with the sender
            link.credits[side] += 1
            link.charged[side] = 0
        segment = sim.packets[queue.head].segment
        left_first_link(sim, segment)
        arq.discard_segment(sim, port_index, segment, now)
