"""The centrals' half-frames: polling in time-division duplex (Venugopal 2006, sections 2.1.1 and 4.1.1).

A central visits its peripherals; a frame is a downlink packet, or POLL, and the uplink packet, or NULL, that
answers it. `disciplines.py` chooses the next peripheral and ends visits; `bridges.py` tells when a bridge is
present. A packet stays in its queue until its transmission ends.
"""

from btqueue.simulator.bluetooth import adaptation, arq, bridges, voice
from btqueue.simulator.bluetooth.baseband_queue import take_from_port
from btqueue.simulator.bluetooth.disciplines import begin_visit, next_station, visit_is_over
from btqueue.simulator.bluetooth.radio import is_hit, reception_fails
from btqueue.simulator.hosts.forwarding import arrive
from btqueue.simulator.machinery.numba_cache import compiled, outlined
from btqueue.simulator.machinery.queues import serve
from btqueue.simulator.machinery.timers import cancel, schedule
from btqueue.simulator.records import piconets
from btqueue.simulator.records.conventions import NOTHING, SLOT
from btqueue.simulator.traces import trace
from btqueue.simulator.traces.trace import packet_event

PROBE = -1
"""Number of the frame, POLL and NULL, with which a visit to a walk-in bridge begins."""


@compiled
def begin(sim, index):
    """Begin with the first visit, at time 0; a central that is away begins when it comes back."""
    if sim.piconets[index].away:
        sim.piconets[index].phase = piconets.BEFORE_VISIT
    else:
        start_visit(sim, index, 0)


@compiled
def on_turn(sim, index, now):
    """A half-frame of the piconet has just ended: receive its packet, and start the next one."""
    central = sim.piconets[index]
    if central.phase > piconets.UPLINK_HALF:
        go_on(sim, index, now)
        return
    link = sim.links[central.first_link + central.station]
    down = central.phase == piconets.DOWNLINK_HALF
    packet = receive(sim, index, link.down if down else link.up, link.up if down else link.down, now)
    # The peripheral answers with a packet that was ready: a reply to this packet comes too late.
    if down:
        send_uplink(sim, index, now)
    if packet != NOTHING:
        arrive(sim, packet, now)
    if not down:
        end_frame(sim, index, now)


@outlined
def go_on(sim, index, now):
    """The central has waited long enough."""
    central = sim.piconets[index]
    if central.phase == piconets.PAUSE:
        start_frame(sim, index, now)
    elif central.phase == piconets.BEFORE_VISIT:
        start_visit(sim, index, now)
    else:
        next_visit(sim, index, now)


@compiled
def receive(sim, index, port_index, answering_port, now):
    """Take the packet just transmitted off its queue and return it; NOTHING if it stays or is lost."""
    central = sim.piconets[index]
    if not central.plain:
        return receive_with_options(sim, index, port_index, answering_port, now)
    if central.packet == NOTHING:
        return NOTHING
    packet = serve(sim, port_index, now)
    central.waiting -= 1
    if is_hit(sim, port_index, central.on_air_type, now):
        sim.packets[packet].corrupted = True
    return packet


@outlined
def receive_with_options(sim, index, port_index, answering_port, now):
    """Receive where there may be ARQ, gated service, limited buffers or a log."""
    central = sim.piconets[index]
    packet = NOTHING
    if central.packet != NOTHING:
        if sim.ports[port_index].most_transmissions > 0:
            packet = arq.on_received(sim, port_index, now)
        else:
            packet = receive_unrepeated(sim, index, port_index, now)
        if central.discipline == piconets.GATED and packet != NOTHING:
            if central.phase == piconets.DOWNLINK_HALF:
                central.gate_down -= 1
            else:
                central.gate_up -= 1
    if sim.settings[0].lossy_feedback and central.frame != PROBE:
        arq.on_return_packet(sim, answering_port, port_index, now)
    return packet


@compiled
def receive_unrepeated(sim, index, port_index, now):
    """Without ARQ a packet has one transmission, and travels on even if it was damaged.

    So has each part of a segment that is cut at transmission; the segment travels on with the last one.
    """
    damaged = reception_fails(sim, port_index, sim.piconets[index].on_air_type, now)
    head = sim.queues[port_index].head
    packet = sim.packets[head]
    if damaged:
        packet.corrupted = True
    packet_event(sim, trace.PACKET_CORRUPTED if damaged else trace.PACKET_DELIVERED, port_index, head, now)
    if sim.ports[port_index].adaptive:
        packet.sent_bytes += sim.piconets[index].on_air_bytes
        if packet.sent_bytes < packet.bytes:
            return NOTHING
    return take_from_port(sim, port_index, now)


@compiled
def end_frame(sim, index, now):
    """The frame is over: go on with the visit, or with the next one."""
    central = sim.piconets[index]
    place = central.first_link + central.station
    empty = central.polled and central.packet == NOTHING
    null = empty and not central.held_back
    bridge = sim.links[place].bridge
    if central.frame == PROBE:
        central.frame = 0
        over = not central.bridge_answered
    else:
        central.frame += 0 if empty and central.held_back else 1
        if not empty:
            central.carried_data = True
        over = visit_is_over(sim, index, null)
        if over and bridge != NOTHING:
            bridges.on_exchange_over(sim, place, null, now)
    if over:
        central.visits += 1
        sim.links[place].visits += 1
        next_visit(sim, index, now)
    else:
        start_frame(sim, index, now)


@compiled
def next_visit(sim, index, now):
    """Go on to the next station, unless none is there, or the central leaves at the end of its cycle."""
    central = sim.piconets[index]
    cycle = central.cycle
    if not next_station(sim, index, now):
        central.packet = NOTHING
        central.phase = piconets.NO_STATION
        schedule(sim, central.timer, max(bridges.next_meeting(sim, index, now), now + 2 * SLOT))
    elif central.bridge != NOTHING and central.cycle != cycle and bridges.on_cycle_over(sim, index, now):
        central.packet = NOTHING
        central.phase = piconets.BEFORE_VISIT
    else:
        start_visit(sim, index, now)


@compiled
def start_visit(sim, index, now):
    """Begin the visit to the station chosen, or sleep if there is nothing to send anywhere."""
    central = sim.piconets[index]
    begin_visit(sim, index, now)
    bridge = sim.links[central.first_link + central.station].bridge
    if central.waiting == 0 and central.can_sleep:
        central.asleep = True
        central.idle_since = now
        cancel(sim, central.timer)
        return
    if bridge != NOTHING and sim.bridges[bridge].schedule == piconets.WALK_IN:
        central.frame = PROBE
    start_frame(sim, index, now)


@compiled
def start_frame(sim, index, now):
    """Start a frame with the packet at the head of the station's downlink queue, or with POLL."""
    central = sim.piconets[index]
    place = central.first_link + central.station
    start = now
    if central.voice_period > 0:
        start = voice.next_free(sim, index, now)
        if start == now and is_too_long(sim, index, now):
            start = voice.next_gap(central, now)
        central.held_back = False
    if start > now:
        central.phase = piconets.PAUSE
        schedule(sim, central.timer, start)
        return
    if central.rendezvous and not bridges.may_poll(sim, place, now):
        # The window of a bridge ends here, and with it the visit.
        central.packet = NOTHING
        central.phase = piconets.NO_STATION
        schedule(sim, central.timer, now)
        return
    central.phase = piconets.DOWNLINK_HALF
    if central.frame == PROBE:
        central.bridge_answered = bridges.is_present(sim, sim.links[place].bridge, index, now)
        send_nothing(sim, index, now)
    else:
        transmit(sim, index, place, sim.links[place].down, now)
    central.polled = central.packet == NOTHING


@outlined
def is_too_long(sim, index, now):
    """Whether the next packet down, with the slot of an answer, does not fit into the rest of the gap."""
    central = sim.piconets[index]
    port = sim.links[central.first_link + central.station].down
    queue = sim.queues[port]
    if central.frame == PROBE or queue.length == 0 or sim.ports[port].adaptive:
        return False
    packet = sim.packets[queue.head]
    return packet.ready_at <= now and sim.packet_types[packet.type].duration + SLOT > voice.room(central, now)


@compiled
def send_uplink(sim, index, now):
    """Go on with the packet at the head of the station's uplink queue, or with NULL."""
    central = sim.piconets[index]
    place = central.first_link + central.station
    central.phase = piconets.UPLINK_HALF
    if central.frame == PROBE:
        send_nothing(sim, index, now)
    else:
        transmit(sim, index, place, sim.links[place].up, now)


@compiled
def send_nothing(sim, index, now):
    """Send POLL or NULL, one slot."""
    central = sim.piconets[index]
    central.packet = NOTHING
    central.on_air_type = NOTHING
    schedule(sim, central.timer, now + SLOT)


@compiled
def transmit(sim, index, place, port_index, now):
    """Put the port's head packet on the air, or POLL or NULL (one slot) if there is none."""
    central = sim.piconets[index]
    if not central.plain:
        transmit_with_options(sim, index, place, port_index, now)
        return
    queue = sim.queues[port_index]
    if queue.length == 0:
        central.packet = NOTHING
        schedule(sim, central.timer, now + SLOT)
        return
    central.packet = queue.head
    central.on_air_type = sim.packets[queue.head].type
    packet_type = sim.packet_types[central.on_air_type]
    sim.links[place].data_slots += packet_type.slots
    schedule(sim, central.timer, now + packet_type.duration)


@outlined
def transmit_with_options(sim, index, place, port_index, now):
    """Transmit where the packet may not be ready yet, or has to be cut, or to end in time."""
    central = sim.piconets[index]
    queue = sim.queues[port_index]
    if queue.length == 0 or sim.packets[queue.head].ready_at > now:
        send_nothing(sim, index, now)
        return
    packet = queue.head
    kind = sim.packets[packet].type
    if sim.ports[port_index].adaptive:
        kind = adaptation.choose_type(sim, port_index, packet, room_on_air(sim, index, place, now), now)
        central.on_air_bytes = arq.part_in(sim, kind, sim.packets[packet])
    packet_type = sim.packet_types[kind]
    if packet_type.duration > room_on_air(sim, index, place, now):
        central.held_back = central.phase == piconets.UPLINK_HALF and packet_type.duration > voice.room(
            central, now
        )
        send_nothing(sim, index, now)
        return
    central.packet = packet
    central.on_air_type = kind
    sim.links[place].data_slots += packet_type.slots
    packet_event(sim, trace.PACKET_TRANSMITTED, port_index, packet, now)
    schedule(sim, central.timer, now + packet_type.duration)


@compiled
def room_on_air(sim, index, place, now):
    """Return how long (ns) a packet may last that starts now; one down leaves a slot for its answer."""
    central = sim.piconets[index]
    room = min(voice.room(central, now), bridges.room(sim, place, now))
    return room - SLOT if central.phase == piconets.DOWNLINK_HALF else room
