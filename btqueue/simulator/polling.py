"""The central's half-frames: E-limited polling (Venugopal 2006, sections 2.1.1, 2.3.1 and 4.1.1).

The central visits its peripherals in a fixed cyclic order. A frame is a downlink packet, or POLL, and the
uplink packet, or NULL, that answers it; a visit ends after `limit` frames, or when a POLL is answered by
NULL. A packet stays in its queue until its transmission ends. The central relays uplink packets one by one,
damaged ones too.
"""

from btqueue.simulator.compilation import compiled
from btqueue.simulator.host import deliver
from btqueue.simulator.packet_queue import offer, serve
from btqueue.simulator.radio import is_corrupted
from btqueue.simulator.records import DATA, DOWNLINK, NEVER, NOTHING, SLOT, UPLINK
from btqueue.simulator.timers import next_after_root, schedule
from btqueue.simulator.token_bucket import queue_of

DOWNLINK_HALF, UPLINK_HALF = 0, 1
CENTRAL_TIMER = 0


@compiled
def on_turn(sim, now):
    """A half-frame has just ended: receive what was sent, and start the next one."""
    central = sim.central[0]
    if central.phase == DOWNLINK_HALF:
        packet = NOTHING
        if central.packet != NOTHING:
            packet = receive(sim, queue_of(sim, DOWNLINK, central.station), now)
        # The peripheral answers with what it had ready: what this packet makes TCP send comes too late.
        send_uplink(sim, now)
        if packet != NOTHING:
            deliver(sim, packet, now)
    else:
        null = central.packet == NOTHING
        if not null:
            relay(sim, receive(sim, queue_of(sim, UPLINK, central.station), now), now)
        central.frame += 1
        if (central.polled and null) or central.frame == central.limit:
            central.station = (central.station + 1) % central.peripherals
            central.frame = 0
            central.visits += 1
        send_downlink(sim, now)


@compiled
def send_downlink(sim, now):
    """Start a frame with the packet at the head of the station's downlink queue, or with POLL."""
    central = sim.central[0]
    if central.waiting == 0 and central.frame == 0:
        now = skip_idle_visits(sim, now)
    central.phase = DOWNLINK_HALF
    transmit(sim, queue_of(sim, DOWNLINK, central.station), now)
    central.polled = central.packet == NOTHING


@compiled
def send_uplink(sim, now):
    """Go on with the packet at the head of the station's uplink queue, or with NULL."""
    central = sim.central[0]
    central.phase = UPLINK_HALF
    transmit(sim, queue_of(sim, UPLINK, central.station), now)


@compiled
def transmit(sim, queue, now):
    """Put the queue's head packet on the air, or POLL or NULL (one slot) if there is none."""
    central = sim.central[0]
    if sim.queues[queue].length == 0:
        central.packet = NOTHING
        duration = SLOT
    else:
        central.packet = sim.queues[queue].head
        packet_type = sim.packet_types[sim.packets[central.packet].type]
        duration = packet_type.duration
        central.data_slots += packet_type.slots
    schedule(sim, CENTRAL_TIMER, now + duration)


@compiled
def skip_idle_visits(sim, now):
    """Return the start of the last idle visit that ends before anything else can happen.

    With every queue empty a visit is POLL and NULL, two slots, until the next timer: these visits are counted
    but not played.
    """
    central = sim.central[0]
    until = next_after_root(sim)
    if until == NEVER:
        return now
    visits = max(0, (until - now) // (2 * SLOT))
    central.visits += visits
    central.station = (central.station + visits) % central.peripherals
    return now + visits * 2 * SLOT


@compiled
def receive(sim, queue, now):
    """Take the packet just transmitted off its queue, damaged if the channel of the station says so."""
    central = sim.central[0]
    packet = serve(sim, queue, now)
    central.waiting -= 1
    index = sim.peripherals[central.station].channel
    first_stream = len(sim.connections) + 2 * index
    if is_corrupted(
        sim.channels[index],
        sim.packet_types[sim.packets[packet].type],
        sim.streams[first_stream],
        sim.streams[first_stream + 1],
        now,
    ):
        sim.packets[packet].corrupted = True
    return packet


@compiled
def relay(sim, packet, now):
    """Forward an uplink packet to the downlink queue of the peripheral where its segment goes."""
    segment = sim.segments[sim.packets[packet].segment]
    conn = sim.connections[segment.flow]
    receiver = conn.destination if segment.kind == DATA else conn.source
    offer(sim, queue_of(sim, DOWNLINK, receiver), packet, now)
    sim.central[0].waiting += 1
