"""Stop-and-wait ARQ of a link: a packet is repeated until it is acknowledged, or given up.

A packet that was sent stays at the head of its queue. The far side answers with one bit, ARQN, in its next
packet: ACK if the packet came intact. Without it the packet is repeated at the port's next turn (Bluetooth
Core Specification, Baseband part, "ARQ scheme"). The number of transmissions may be limited, and so may the
time since the packet entered the queue (flush timeout); the rest of the segment is then given up as well.

Two settings differ in the knowledge of the sender:

- lossless feedback: the sender always learns the truth, at the end of reception;
- lossy feedback (`settings.lossy_feedback`): the packet that carries ARQN may be lost, and with it the ACK.
  The sender then repeats a packet that the far side already has. The far side passes on the packet received
  first. The packet that stays in the queue is a ghost, removed without being counted when an ACK comes
  through.

On adaptive ports the packet is a whole segment that crosses in parts, cut at each transmission; the rules
then hold for each part.
"""

from btqueue.simulator.bluetooth.baseband_queue import take_from_port
from btqueue.simulator.bluetooth.l2cap import finish_packet
from btqueue.simulator.bluetooth.radio import feedback_is_hit, reception_fails
from btqueue.simulator.machinery.numba_cache import compiled, outlined
from btqueue.simulator.machinery.queues import give_back, take
from btqueue.simulator.records.conventions import NOTHING
from btqueue.simulator.records.run import PACKETS
from btqueue.simulator.traces.trace import PACKET_CORRUPTED, PACKET_DELIVERED, PACKET_GIVEN_UP, packet_event


@outlined
def on_received(sim, port_index, now):
    """Return the packet that goes on its way from the far side, or NOTHING.

    Called at the end of reception (now, ns) of the head packet of a port with ARQ, once for each
    transmission, before `on_return_packet` and before either side sends again; type and bytes on air are
    read from the piconet's record.
    """
    port = sim.ports[port_index]
    central = sim.piconets[port.piconet]
    head = sim.queues[port_index].head
    packet = sim.packets[head]
    packet.transmissions += 1
    hit = reception_fails(sim, port_index, central.on_air_type, now)
    # The segment of a ghost may be gone.
    if not packet.ghost:
        sim.flow_statistics[sim.segments[packet.segment].flow].transmissions += 1
        packet_event(sim, PACKET_CORRUPTED if hit else PACKET_DELIVERED, port_index, head, now)
    if sim.settings[0].lossy_feedback:
        port.acknowledges = not hit
        if hit or port.received:
            return NOTHING
        port.received = True
        packet.type = central.on_air_type
        whole = packet.sent_bytes + part_in(sim, packet.type, packet) == packet.bytes
        return copy_for_far_side(sim, head) if whole else NOTHING
    if hit:
        give_up_if_due(sim, port_index, now)
        return NOTHING
    if sim.ports[port_index].adaptive:
        packet.sent_bytes += central.on_air_bytes
        packet.transmissions = 0
        if packet.sent_bytes < packet.bytes:
            sim.flow_statistics[sim.segments[packet.segment].flow].parts_passed += 1
            return NOTHING
    return take_from_port(sim, port_index, now)


@compiled
def on_return_packet(sim, port_index, return_port, now):
    """The packet that answers the port's last packet has been received, or lost together with its ARQN.

    Called with lossy feedback at the end of reception (now, ns) of every packet, POLL or NULL sent by
    `return_port`, after its own data have been received (`on_received`) and before the node of `port_index`
    sends again. A silent far side (an absent bridge) sends no ARQN: then it is not called.
    """
    if is_waiting(sim, port_index):
        on_feedback(sim, port_index, feedback_is_hit(sim, return_port, now), now)


@outlined
def on_feedback(sim, port_index, feedback_lost, now):
    """Act on the ARQN of a return packet, or on its loss, if the head packet waits for it."""
    if not is_waiting(sim, port_index):
        return
    port = sim.ports[port_index]
    if feedback_lost or not port.acknowledges:
        give_up_if_due(sim, port_index, now)
        return
    packet = sim.packets[sim.queues[port_index].head]
    forget_head(sim, port_index)
    if packet.ghost:
        give_back(sim.pools[PACKETS], sim.packets, take_from_port(sim, port_index, now))
    else:
        packet.sent_bytes += part_in(sim, packet.type, packet)
        packet.transmissions = 0
        sim.flow_statistics[sim.segments[packet.segment].flow].parts_passed += 1


@compiled
def is_waiting(sim, port_index):
    """Whether the head packet of the port was sent and neither acknowledged nor given up."""
    queue = sim.queues[port_index]
    return queue.length > 0 and sim.packets[queue.head].transmissions > 0


@compiled
def part_in(sim, packet_type, packet):
    """Return how many bytes of the packet a transmission in this type carries."""
    return min(sim.packet_types[packet_type].payload, packet.bytes - packet.sent_bytes)


@compiled
def copy_for_far_side(sim, head):
    """Return a copy of a queue's head packet, which goes on; the head stays as a *ghost* until its ARQN."""
    index = take(sim.pools[PACKETS], sim.packets)
    sim.packets[index] = sim.packets[head]
    copy = sim.packets[index]
    copy.next = NOTHING
    copy.transmissions = copy.sent_bytes = 0
    sim.packets[head].ghost = True
    return index


@compiled
def forget_head(sim, port_index):
    """Reset the state of both sides for the head packet, or its part: another packet follows."""
    sim.ports[port_index].received = False
    sim.ports[port_index].acknowledges = False


@compiled
def give_up_if_due(sim, port_index, now):
    """Give the head packet up if it has reached the limit of transmissions or of waiting time.

    The rest of its segment in the queue goes with it: a flush discards the rest of an L2CAP packet (Core
    Specification, L2CAP part, "flush timeout"). A ghost does not count as a loss, and its segment may already
    be freed.
    """
    port = sim.ports[port_index]
    head = sim.queues[port_index].head
    packet = sim.packets[head]
    if packet.transmissions < port.most_transmissions and now - packet.enqueued_at <= port.flush:
        return
    forget_head(sim, port_index)
    if packet.ghost:
        give_back(sim.pools[PACKETS], sim.packets, take_from_port(sim, port_index, now))
    else:
        discard_segment(sim, port_index, packet.segment, now)


@outlined
def discard_segment(sim, port_index, segment, now):
    """Give up all packets of the segment (an index) in the port's queue."""
    queue = sim.queues[port_index]
    statistics = sim.flow_statistics[sim.segments[segment].flow]
    before = NOTHING
    packet = queue.head
    for _ in range(queue.length):
        following = sim.packets[packet].next
        if sim.packets[packet].segment == segment:
            bring_to_head(sim, queue, before)
            take_from_port(sim, port_index, now)
            statistics.given_up += 1
            packet_event(sim, PACKET_GIVEN_UP, port_index, packet, now)
            finish_packet(sim, packet, True)
        else:
            before = packet
        packet = following


@compiled
def bring_to_head(sim, queue, before):
    """Move the packet that follows `before` to the head of the queue; NOTHING: it is there already."""
    if before == NOTHING:
        return
    packet = sim.packets[before].next
    sim.packets[before].next = sim.packets[packet].next
    if queue.tail == packet:
        queue.tail = before
    sim.packets[packet].next = queue.head
    queue.head = packet
