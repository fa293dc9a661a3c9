"""The log of a run: the events of segments, packets and senders, one record for each.

The functions are called at every event; with logging off each costs one branch. The event loop stops for
Python to read the log before it could overflow. If an event nevertheless wrote more records than there was
room for, `log_length` shows it: it counts all records, also the lost ones.
"""

from btqueue.simulator.machinery.numba_cache import compiled, outlined
from btqueue.simulator.records.conventions import NOTHING

(
    SEGMENT_SENT,
    SEGMENT_RECEIVED,
    PACKET_BUFFERED,
    PACKET_REFUSED_BY_BUFFER,
    PACKET_ENQUEUED,
    PACKET_REFUSED,
    PACKET_TRANSMITTED,
    PACKET_CORRUPTED,
    PACKET_DELIVERED,
    PACKET_GIVEN_UP,
    PACKET_LOST,
    TIMEOUT,
    FAST_RETRANSMIT,
    WINDOW_CHANGED,
    MESSAGE_WRITTEN,
    MESSAGE_DELIVERED,
) = range(16)

EVENT_NAMES = (
    "segment sent",
    "segment received",
    "packet waits for tokens",
    "packet refused by the token buffer",
    "packet enqueued",
    "packet refused",
    "packet transmitted",
    "packet corrupted",
    "packet delivered",
    "packet given up",
    "packet lost outside",
    "timeout",
    "fast retransmit",
    "window changed",
    "message written",
    "message delivered",
)
"""Segments are sent and received by the transport layers of the two ends. Packets wait for tokens in a token
buffer and are enqueued in the queue of a Bluetooth or an outside link; "corrupted": the packet came damaged;
"given up": ARQ has transmitted it for the last time; "lost outside": an outside link has lost it."""


@compiled
def segment_event(sim, event, node, segment, now):
    """Log an event of a segment (an index) at a node at `now` (ns)."""
    if sim.clock[0].logging:
        log_segment(sim, event, node, segment, now)


@compiled
def packet_event(sim, event, port, packet, now):
    """Log an event of a packet (an index) at a port at `now` (ns)."""
    if sim.clock[0].logging:
        log_packet(sim, event, port, packet, now)


@compiled
def flow_event(sim, event, flow, now):
    """Log an event of a flow's sender or application at `now` (ns)."""
    if sim.clock[0].logging:
        log_flow(sim, event, flow, now)


@compiled
def window_event(sim, flow, cwnd, fast_retransmits, now):
    """Log the changes by an acknowledgement; `cwnd` and `fast_retransmits` are the values before it."""
    if sim.clock[0].logging:
        if sim.flow_statistics[flow].fast_retransmits != fast_retransmits:
            log_flow(sim, FAST_RETRANSMIT, flow, now)
        if sim.connections[flow].cwnd != cwnd:
            log_flow(sim, WINDOW_CHANGED, flow, now)


@outlined
def log_segment(sim, event, node, segment, now):
    """Write the log's next record: a segment with its header's fields."""
    place = next_record(sim, event, node, NOTHING, sim.segments[segment].flow, now)
    if place != NOTHING:
        copy_header(sim, place, segment)


@outlined
def log_packet(sim, event, port, packet, now):
    """Write the log's next record: a packet at the sending side of a link, or as it came to the other."""
    segment = sim.packets[packet].segment
    node = sim.ports[port].node
    if event in (PACKET_CORRUPTED, PACKET_DELIVERED):
        node = sim.ports[port].peer
    place = next_record(sim, event, node, port, sim.segments[segment].flow, now)
    if place != NOTHING:
        copy_header(sim, place, segment)
        sim.log[place].bytes = sim.packets[packet].bytes
        sim.log[place].packet_type = sim.packets[packet].type


@outlined
def log_flow(sim, event, flow, now):
    """Write the log's next record: an event of a flow's source, or the delivery of a message."""
    conn = sim.connections[flow]
    node = conn.source
    if event == MESSAGE_DELIVERED:
        node = conn.destination
    next_record(sim, event, node, NOTHING, flow, now)


@compiled
def next_record(sim, event, node, port, flow, now):
    """Take the log's next record and return its index, or NOTHING if the log is full."""
    clock = sim.clock[0]
    place = clock.log_length
    clock.log_length += 1
    if place >= len(sim.log):
        place = NOTHING
    else:
        entry = sim.log[place]
        entry.time = now
        entry.event = event
        entry.node = node
        entry.port = port
        entry.flow = flow
        entry.kind = entry.number = entry.ack = entry.packet_type = entry.message = NOTHING
        entry.timestamp = entry.echo = NOTHING
        entry.backward = entry.acknowledges = False
        entry.bytes = entry.application = entry.blocks = 0
        entry.incarnation = sim.connections[flow].incarnation
        entry.cwnd = sim.connections[flow].cwnd
        entry.ssthresh = sim.connections[flow].ssthresh
    return place


@compiled
def copy_header(sim, place, segment):
    """Copy the segment's header into the log's record at `place`."""
    entry = sim.log[place]
    header = sim.segments[segment]
    entry.kind = header.kind
    entry.backward = header.backward
    entry.number = header.number
    entry.acknowledges = header.acknowledges
    entry.ack = header.ack
    # not as an attribute: uncompiled, `size` of a NumPy record is always 1
    entry.bytes = sim.layouts[header.layout].ip_bytes
    entry.application = sim.layouts[header.layout].application
    entry.timestamp = header.timestamp
    entry.echo = header.echo
    entry.message = header.message
    entry.incarnation = header.incarnation
    entry.blocks = header.blocks
    for block in range(header.blocks):
        entry.block_start[block] = header.block_start[block]
        entry.block_end[block] = header.block_end[block]
