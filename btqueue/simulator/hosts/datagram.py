"""No transport protocol: each segment of a message is sent once, at once, and losses are not repaired (UDP).

A datagram carries when its message was written, and the message's range of segments (`block_start[0]` up to
`block_end[0]`), so that the receiver can tell when it has the whole message, which it never has after a loss.
"""

from btqueue.simulator.applications.application import count_delivered, forget_oldest
from btqueue.simulator.bluetooth.l2cap import new_segment
from btqueue.simulator.machinery.numba_cache import compiled, outlined
from btqueue.simulator.records.connections import GREEDY, NO_TRANSPORT
from btqueue.simulator.records.conventions import NOTHING
from btqueue.simulator.records.packets import DATAGRAM

HELD = 8
"""Segments of a greedy source that wait for its first link at most."""


@outlined
def next_output(sim, flow, now):
    """Make the next datagram of the written data and return its segment's index, or NOTHING."""
    conn = sim.connections[flow]
    number = conn.snd_nxt
    if number == conn.written:
        return NOTHING
    endless = conn.application == GREEDY  # held back by its first link, and of no counted delay
    if endless and number - conn.snd_una >= HELD:
        return NOTHING
    layout = sim.patterns[conn.pattern + number % conn.pattern_length]
    index = new_segment(sim, flow, DATAGRAM, False, layout, number)
    conn.snd_nxt = conn.snd_max = number + 1
    segment = sim.segments[index]
    if endless:
        segment.block_end[0] = NOTHING
        return index
    message = sim.messages[conn.message_head]
    segment.timestamp = message.created_at
    segment.block_start[0] = conn.snd_una
    segment.block_end[0] = message.last + 1
    if number == message.last:
        conn.snd_una = number + 1
        forget_oldest(sim, conn)
        conn.message_undelivered = conn.message_head
    return index


@compiled
def left_first_link(sim, segment):
    """A segment has left the first link of its route, or was given up there: a source may wait for this."""
    flow = sim.segments[segment].flow
    conn = sim.connections[flow]
    held_back = conn.protocol == NO_TRANSPORT and conn.application == GREEDY
    if held_back and sim.segments[segment].hop == conn.route:
        conn.snd_una += 1
        sim.clock[0].sending = flow


@compiled
def on_segment(sim, flow, segment, now):
    """Count the datagram, and its message if that is now whole."""
    conn = sim.connections[flow]
    statistics = sim.flow_statistics[flow]
    statistics.delivered_in_order += 1
    statistics.bytes_delivered += sim.layouts[segment.layout].application
    # Datagrams keep their order, so `rcv_nxt` follows the message as long as none of its segments was lost.
    if segment.number == segment.block_start[0] or segment.number == conn.rcv_nxt:
        conn.rcv_nxt = segment.number + 1
    if conn.rcv_nxt == segment.block_end[0]:
        count_delivered(sim, flow, now - segment.timestamp)
