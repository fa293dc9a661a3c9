"""The way of packets and segments through the network: from port to port, and up at the last node.

A route is a row of ports. A segment enters a port, is cut into packets, and the packets cross the link. At a
node on the way they are passed on one by one, damaged ones too (Venugopal 2006, section 4.1.1), or put
together into the segment, which then enters the next port as if it were new (`relay_segments`: IP
forwarding).
"""

from btqueue.simulator.bluetooth.baseband_queue import enter_node_buffer, enter_queue, free_node_buffer
from btqueue.simulator.bluetooth.l2cap import finish_packet, new_packet, new_segment, whole_packet
from btqueue.simulator.bluetooth.token_bucket import admit_packet, has_room_for
from btqueue.simulator.hosts import delay_line, medium
from btqueue.simulator.machinery.numba_cache import compiled, entry_point
from btqueue.simulator.records.conventions import NOTHING
from btqueue.simulator.records.nodes import OUTSIDE
from btqueue.simulator.records.packets import DATAGRAM
from btqueue.simulator.traces.trace import SEGMENT_SENT, segment_event


@compiled
def leave_host(sim, index, now):
    """A host's transport hands the segment down: through the time that its layers take, to the first port."""
    segment = sim.segments[index]
    conn = sim.connections[segment.flow]
    node = conn.destination if segment.backward else conn.source
    segment_event(sim, SEGMENT_SENT, node, index, now)
    outbox = sim.nodes[node].outbox
    if segment.backward and conn.ack_direct:
        sim.clock[0].arrived = index
    elif outbox == NOTHING:
        sim.clock[0].entering = index
    else:
        delay_line.enter(sim, outbox, index, now)


@compiled
def enter_port(sim, index, now):
    """The segment enters the port that is next on its route."""
    segment = sim.segments[index]
    port_index = sim.routes[segment.hop]
    port = sim.ports[port_index]
    layout = sim.layouts[segment.layout]
    statistics = sim.flow_statistics[segment.flow]
    if port.kind == OUTSIDE:
        segment.travelling = 1
        statistics.packets_sent += 1
        medium.enter(sim, port_index, whole_packet(sim, index, layout.ip_bytes), now)
        return
    count = 1 if port.adaptive else layout.count
    segment.travelling = count
    statistics.packets_sent += count
    no_bytes = not enter_node_buffer(sim, port_index, layout.pdu)
    if not no_bytes:
        statistics.offered_to_token_buffer += count
    bucket = sim.buckets[port_index]
    refused = no_bytes or (bucket.whole_segments and not has_room_for(sim, port_index, layout, now))
    if refused and not no_bytes:
        free_node_buffer(sim, port_index, layout.pdu)
    for position in range(count):
        packet = whole_packet(sim, index, layout.pdu) if port.adaptive else new_packet(sim, index, position)
        if not refused:
            admit_packet(sim, port_index, packet, now)
            continue
        if no_bytes:
            statistics.refused_at_node += 1
        else:
            statistics.refused_at_token_buffer += 1
        finish_packet(sim, packet, True)


@compiled
def arrive(sim, packet, now):
    """A packet has crossed a Bluetooth link."""
    hop = sim.packets[packet].hop
    index = sim.packets[packet].segment
    following = sim.routes[hop + 1]
    statistics = sim.flow_statistics[sim.segments[index].flow]
    if following != NOTHING and not sim.settings[0].relay_segments:
        sim.packets[packet].hop = hop + 1
        sim.packets[packet].transmissions = 0
        if not enter_node_buffer(sim, following, sim.packets[packet].bytes):
            statistics.refused_on_the_way += 1
            finish_packet(sim, packet, True)
        elif not enter_queue(sim, following, packet, now):
            statistics.refused_on_the_way += 1
            free_node_buffer(sim, following, sim.packets[packet].bytes)
            finish_packet(sim, packet, True)
        return
    statistics.packets_delivered += 1
    corrupted = sim.packets[packet].corrupted
    if corrupted:
        statistics.packets_corrupted += 1
    damaged_before = sim.segments[index].damaged
    sim.segments[index].hop = hop
    if finish_packet(sim, packet, corrupted) and not corrupted and not damaged_before:
        delay_line.on_segment_crossed(sim, index, now)


@entry_point
def hand_down(sim, flow, backward, layout, number):
    """Let an IP packet of a real program leave the flow's source, or `backward` its destination, now.

    Call it between two calls of `advance`, one packet at a time, with a segment free. Return the segment. No
    transport protocol sees it: it belongs to no incarnation of the connection, so that its receiver only logs
    `number` and frees it.
    """
    index = new_segment(sim, flow, DATAGRAM, backward, layout, number)
    sim.segments[index].incarnation = NOTHING
    leave_host(sim, index, sim.clock[0].now)
    return index
