"""A peripheral as a host: joins TCP above to L2CAP below, and owns the connection's timer.

A segment that TCP emits goes to L2CAP at once, or, if the run has jitter, after a random processing delay
that keeps segments in order (the outbox).
"""

from btqueue.simulator import tcp_receiver, tcp_sender
from btqueue.simulator.application import arrival_timer
from btqueue.simulator.compilation import compiled
from btqueue.simulator.l2cap import finish_packet, new_packet, new_segment
from btqueue.simulator.pool import free_segment
from btqueue.simulator.random_streams import uniform
from btqueue.simulator.records import ACK, DATA, NOTHING
from btqueue.simulator.timers import schedule
from btqueue.simulator.token_bucket import admit_packet, has_room_for, token_timer


@compiled
def jitter_stream(sim, peripheral):
    """Return the index of the stream of a peripheral's processing delays."""
    peripherals = sim.central[0].peripherals
    return len(sim.connections) + 2 * len(sim.channels) + peripheral % peripherals


@compiled
def outbox_timer(peripheral):
    """Return the number of a peripheral's outbox timer."""
    return token_timer(peripheral) + 1


@compiled
def emit(sim, peripheral, flow, kind, number, timestamp, now):
    """Send a new segment down the stack of this peripheral."""
    index = new_segment(sim, flow, kind, number, timestamp)
    host = sim.peripherals[peripheral]
    if host.jitter == 0:
        enter_l2cap(sim, peripheral, index, now)
        return
    delay = int(uniform(sim.streams[jitter_stream(sim, peripheral)]) * host.jitter)
    host.last_release = max(host.last_release, now + delay)
    sim.segments[index].release_at = host.last_release
    if host.outbox_head == NOTHING:
        host.outbox_head = index
        schedule(sim, outbox_timer(peripheral), host.last_release)
    else:
        sim.segments[host.outbox_tail].next = index
    host.outbox_tail = index


@compiled
def on_outbox(sim, peripheral, now):
    """The processing of the oldest segment in the outbox is done."""
    host = sim.peripherals[peripheral]
    index = host.outbox_head
    host.outbox_head = sim.segments[index].next
    if host.outbox_head != NOTHING:
        schedule(sim, outbox_timer(peripheral), sim.segments[host.outbox_head].release_at)
    enter_l2cap(sim, peripheral, index, now)


@compiled
def enter_l2cap(sim, peripheral, index, now):
    """Cut the segment into packets and offer them, one after the other, to flow control."""
    segment = sim.segments[index]
    layout = sim.layouts[segment.kind]
    statistics = sim.flow_statistics[segment.flow]
    statistics.packets_sent += layout.count
    bucket = sim.buckets[peripheral]
    refused = bucket.enabled and bucket.whole_segments and not has_room_for(sim, peripheral, layout, now)
    for position in range(layout.count):
        packet = new_packet(sim, index, position)
        if refused:
            statistics.offered_to_token_buffer += 1
            statistics.refused_at_token_buffer += 1
            finish_packet(sim, packet, True)
        else:
            admit_packet(sim, peripheral, packet, now)


@compiled
def send_pending(sim, flow, now):
    """Send all that the connection may send now, and keep its timer in the heap up to date."""
    conn = sim.connections[flow]
    while True:
        number = tcp_sender.next_segment(conn, now)
        if number == NOTHING:
            break
        sim.flow_statistics[flow].segments_sent += 1
        emit(sim, conn.source, flow, DATA, number, now, now)
    # A deadline that moved away is left in the heap: the timer finds out when it fires, and sets itself anew.
    timer = arrival_timer(sim, flow) + 1
    if conn.rto_deadline < sim.timers[timer].due:
        schedule(sim, timer, conn.rto_deadline)


@compiled
def on_retransmission_timer(sim, flow, now):
    """Time out, or set the timer anew if the deadline has moved; return whether it was a timeout."""
    conn = sim.connections[flow]
    timer = arrival_timer(sim, flow) + 1
    if conn.rto_deadline > now:
        schedule(sim, timer, conn.rto_deadline)
        return False
    tcp_sender.on_timeout(conn, sim.flow_statistics[flow], now)
    schedule(sim, timer, conn.rto_deadline)
    send_pending(sim, flow, now)
    return True


@compiled
def deliver(sim, packet, now):
    """A packet has reached its last peripheral: reassemble, and hand an intact segment to TCP."""
    index = sim.packets[packet].segment
    statistics = sim.flow_statistics[sim.segments[index].flow]
    statistics.packets_delivered += 1
    corrupted = sim.packets[packet].corrupted
    if corrupted:
        statistics.packets_corrupted += 1
    last = finish_packet(sim, packet, corrupted)
    if not last or sim.segments[index].damaged:
        return
    segment = sim.segments[index]
    flow, kind, number, timestamp = segment.flow, segment.kind, segment.number, segment.timestamp
    free_segment(sim, index)
    conn = sim.connections[flow]
    if kind == DATA:
        statistics.delivered_in_order += tcp_receiver.on_segment(conn, number, timestamp)
        emit(sim, conn.destination, flow, ACK, tcp_receiver.acknowledge(conn), conn.ts_recent, now)
    else:
        tcp_sender.on_ack(conn, statistics, number, timestamp, now)
        send_pending(sim, flow, now)
