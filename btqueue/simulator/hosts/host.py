"""A device as a host: joins the transport protocols above to the links below.

The segments that a host sends after an event leave here, one after the other: data of the flow that may send
now, then a pure acknowledgement if no data carried it.
"""

from btqueue.simulator.applications import application, sessions
from btqueue.simulator.bluetooth.l2cap import count_end_of_travel, new_segment
from btqueue.simulator.centaurus import state_machine as centaurus
from btqueue.simulator.hosts import datagram
from btqueue.simulator.machinery.numba_cache import compiled, outlined
from btqueue.simulator.machinery.queues import give_back
from btqueue.simulator.machinery.timers import cancel, schedule
from btqueue.simulator.records.connections import PUSHED, TCP
from btqueue.simulator.records.conventions import NEVER, NOTHING
from btqueue.simulator.records.packets import ACK, CONTROL, DATA, SYN, SYN_ACK
from btqueue.simulator.records.run import SEGMENTS
from btqueue.simulator.tcp import connection_setup, delayed_ack, linux, receiver, sender
from btqueue.simulator.tcp.retransmission_timer import fires_at
from btqueue.simulator.tcp.stream import layout_of, user_bytes
from btqueue.simulator.traces.trace import SEGMENT_RECEIVED, TIMEOUT, flow_event, segment_event, window_event


@compiled
def receive_segment(sim, index, now):
    """Hand a segment that has come whole to its last node to the transport protocol there."""
    segment = sim.segments[index]
    flow = segment.flow
    conn = sim.connections[flow]
    segment_event(sim, SEGMENT_RECEIVED, conn.source if segment.backward else conn.destination, index, now)
    count_end_of_travel(sim, segment)
    if segment.incarnation == conn.incarnation:
        if conn.protocol == TCP:
            receive_tcp(sim, index, now)
        elif conn.session == NOTHING:
            datagram.on_segment(sim, flow, segment, now)
        else:
            centaurus.on_segment(sim, flow, segment, now)
    give_back(sim.pools[SEGMENTS], sim.segments, index)


@compiled
def receive_tcp(sim, index, now):
    """The acknowledgement in the segment goes to the sender of this host, its data to the receiver."""
    segment = sim.segments[index]
    flow = segment.flow
    if segment.kind == SYN or segment.kind == SYN_ACK:
        connection_setup.on_segment(sim, flow, segment, now)
        return
    if (
        segment.kind == ACK and not segment.backward
    ):  # the end of a handshake: the receiver knows a round trip
        sim.connections[flow].drained_since = now
        sim.connections[flow].receiver_rtt = now - sim.connections[flow].answered_at
    if segment.acknowledges:
        acknowledged = flow if segment.backward else sim.connections[flow].reverse
        take_acknowledgement(sim, acknowledged, segment, now)
    if segment.kind == DATA:
        take_data(sim, flow, segment, now)


@compiled
def take_acknowledgement(sim, flow, segment, now):
    """The flow's sender takes an acknowledgement; then it may send."""
    cwnd, fast_retransmits = sim.connections[flow].cwnd, sim.flow_statistics[flow].fast_retransmits
    sender.on_ack(
        sim.connections[flow],
        sim.scoreboard[flow],
        sim.sent_at[flow],
        sim.starts[flow],
        sim.flow_statistics[flow],
        sim.rtt_histogram[flow],
        segment,
        now,
    )
    window_event(sim, flow, cwnd, fast_retransmits, now)
    sim.clock[0].sending = flow


@compiled
def take_data(sim, flow, segment, now):
    """The flow's receiver takes data; then it may have to acknowledge, and the application to answer."""
    conn = sim.connections[flow]
    statistics = sim.flow_statistics[flow]
    in_order = receiver.on_segment(conn, sim.out_of_order[flow], sim.starts[flow], statistics, segment, now)
    sim.clock[0].acknowledging = flow
    if conn.reverse != NOTHING and not sim.connections[conn.reverse].open:
        connection_setup.on_first_data(sim, conn.reverse)
    if in_order > 0:
        statistics.delivered_in_order += in_order
        statistics.bytes_delivered += user_bytes(sim, flow, conn.rcv_nxt - in_order, conn.rcv_nxt)
        if conn.message_undelivered != NOTHING:
            application.on_delivered(sim, flow, now)
        if conn.session != NOTHING:
            sessions.on_message_delivered(sim, flow, now)
    if conn.piggyback and sim.clock[0].sending == NOTHING:
        sim.clock[0].sending = conn.reverse


@compiled
def next_output(sim, now):
    """Make the next segment that some host has to send now and return its index, or NOTHING."""
    clock = sim.clock[0]
    flow = clock.sending
    if flow != NOTHING:
        if sim.connections[flow].protocol == TCP:
            index = next_tcp_data(sim, flow, now)
        else:
            index = next_message(sim, flow, now)
        if index != NOTHING:
            return index
        clock.sending = NOTHING
    flow = clock.acknowledging
    if flow != NOTHING:
        clock.acknowledging = NOTHING
        return next_acknowledgement(sim, flow, now)
    return NOTHING


@compiled
def next_tcp_data(sim, flow, now):
    """Make the next data segment of the flow, if its sender may send one; else keep its timer up to date."""
    conn = sim.connections[flow]
    again = sim.flow_statistics[flow].segments_retransmitted
    if not conn.open or conn.opening != NOTHING:
        opening = connection_setup.next_output(sim, flow, now)
        if opening != NOTHING:
            return opening
    number = NOTHING
    if conn.open:
        number = sender.next_segment(
            conn, sim.scoreboard[flow], sim.sent_at[flow], sim.starts[flow], sim.flow_statistics[flow], now
        )
    if number == NOTHING:
        # A deadline that moved away is left in the heap: the timer finds out when it fires.
        if conn.rto_deadline < sim.timers[conn.retransmission_timer].due:
            schedule(sim, conn.retransmission_timer, conn.rto_deadline)
        return NOTHING
    index = new_segment(sim, flow, DATA, False, layout_of(sim, flow, number), number)
    sim.segments[index].timestamp = now
    if conn.tuned_buffers:
        sim.segments[index].echo = conn.heard
        sim.segments[index].pushed = (
            sim.scoreboard[flow][number & (len(sim.scoreboard[flow]) - 1)] & PUSHED > 0
        )
    count_sent(sim, flow, index, again)
    if conn.piggyback:
        carry_acknowledgement(sim, flow, index, now)
    return index


@outlined
def next_message(sim, flow, now):
    """Make the next segment of a flow that does not use TCP, or return NOTHING."""
    again = sim.flow_statistics[flow].segments_retransmitted
    if sim.connections[flow].session == NOTHING:
        index = datagram.next_output(sim, flow, now)
    else:
        index = centaurus.next_output(sim, flow, now)
    if index != NOTHING and sim.segments[index].kind != CONTROL:
        count_sent(sim, flow, index, again)
    return index


@compiled
def count_sent(sim, flow, index, again):
    """Count a segment with user data that leaves its source; `again`: retransmissions before it."""
    statistics = sim.flow_statistics[flow]
    size = sim.layouts[sim.segments[index].layout].application
    statistics.segments_sent += 1
    statistics.bytes_sent += size
    if statistics.segments_retransmitted > again:
        statistics.bytes_wasted += size


@outlined
def carry_acknowledgement(sim, flow, index, now):
    """Let a data segment carry the acknowledgement of the reverse flow's receiver, at the same host."""
    reverse = sim.connections[flow].reverse
    conn = sim.connections[reverse]
    if conn.unacknowledged > 0 or conn.ack_now:
        sim.flow_statistics[reverse].acks_piggybacked += 1
    receiver.fill_acknowledgement(
        conn, sim.out_of_order[reverse], sim.starts[reverse], sim.segments[index], now
    )
    acknowledgement_sent(sim, reverse, now)


@compiled
def next_acknowledgement(sim, flow, now):
    """Make a pure acknowledgement if one is due; else let it wait as long as it may."""
    conn = sim.connections[flow]
    if not conn.ack_now:
        if conn.unacknowledged > 0 and sim.timers[conn.ack_timer].due == NEVER:
            schedule(sim, conn.ack_timer, delayed_ack.deadline(conn, now))
        return NOTHING
    index = new_segment(sim, flow, ACK, True, conn.control_layout, 0)
    sim.segments[index].timestamp = now
    receiver.fill_acknowledgement(conn, sim.out_of_order[flow], sim.starts[flow], sim.segments[index], now)
    sim.flow_statistics[flow].acks_sent += 1
    acknowledgement_sent(sim, flow, now)
    return index


@compiled
def acknowledgement_sent(sim, flow, now):
    """The receiver has acknowledged all its segments: none waits for the delayed-ACK timer."""
    conn = sim.connections[flow]
    if conn.ack_timer != NOTHING:
        cancel(sim, conn.ack_timer)
    if conn.message_head != NOTHING:
        application.on_acknowledged(sim, flow, now)


@outlined
def on_retransmission_timer(sim, flow, now):
    """Time out, or set the timer anew if the deadline has moved; return whether anything else happened."""
    conn = sim.connections[flow]
    due = fires_at(conn)
    if due > now:
        schedule(sim, conn.retransmission_timer, due)
        return False
    if not conn.open:
        connection_setup.on_syn_timeout(sim, flow, now)
        schedule(sim, conn.retransmission_timer, conn.rto_deadline)
        return True
    starts, statistics = sim.starts[flow], sim.flow_statistics[flow]
    sim.clock[0].sending = flow
    if conn.awaits_order or conn.awaits_probe:
        cwnd, fast_retransmits = conn.cwnd, statistics.fast_retransmits
        linux.on_other_timer(conn, sim.scoreboard[flow], sim.sent_at[flow], starts, statistics, now)
        schedule(sim, conn.retransmission_timer, conn.rto_deadline)
        window_event(sim, flow, cwnd, fast_retransmits, now)
        return True
    sender.on_timeout(conn, sim.scoreboard[flow], sim.sent_at[flow], starts, statistics, now)
    schedule(sim, conn.retransmission_timer, conn.rto_deadline)
    flow_event(sim, TIMEOUT, flow, now)
    return True
