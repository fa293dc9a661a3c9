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
        log(sim, event, sim.segments[segment].flow, node, NOTHING, segment, NOTHING, now)


@compiled
def packet_event(sim, event, port, packet, now):
    """Log an event of a packet (an index) at a port at `now` (ns)."""
    if sim.clock[0].logging:
        segment = sim.packets[packet].segment
        log(sim, event, sim.segments[segment].flow, NOTHING, port, segment, packet, now)


@compiled
def flow_event(sim, event, flow, now):
    """Log an event of a flow's sender or application at `now` (ns)."""
    if sim.clock[0].logging:
        conn = sim.connections[flow]
        node = conn.destination if event == MESSAGE_DELIVERED else conn.source
        log(sim, event, flow, node, NOTHING, NOTHING, NOTHING, now)


@compiled
def window_event(sim, flow, cwnd, fast_retransmits, now):
    """Log the changes by an acknowledgement; `cwnd` and `fast_retransmits` are the values before it."""
    if sim.clock[0].logging:
        if sim.flow_statistics[flow].fast_retransmits != fast_retransmits:
            flow_event(sim, FAST_RETRANSMIT, flow, now)
        if sim.connections[flow].cwnd != cwnd:
            flow_event(sim, WINDOW_CHANGED, flow, now)


@outlined
def log(sim, event, flow, node, port, segment, packet, now):
    """Write the log's next record, if there is room for it, with the header of a segment.

    Port, segment and packet may be NOTHING. The node of a packet is at the sending side of its link or, if
    the packet has arrived, at the other side.
    """
    clock = sim.clock[0]
    clock.log_length += 1
    if clock.log_length > len(sim.log):
        return
    entry, conn = sim.log[clock.log_length - 1], sim.connections[flow]
    entry.time, entry.event, entry.flow, entry.node, entry.port = now, event, flow, node, port
    entry.kind = entry.number = entry.ack = entry.packet_type = entry.message = NOTHING
    entry.timestamp = entry.echo = NOTHING
    entry.backward = entry.acknowledges = False
    entry.bytes = entry.application = entry.blocks = 0
    entry.incarnation = conn.incarnation
    entry.cwnd = conn.cwnd
    entry.ssthresh = conn.ssthresh
    if segment != NOTHING:
        copy_header(sim, entry, sim.segments[segment])
    if packet != NOTHING:
        far = event in (PACKET_CORRUPTED, PACKET_DELIVERED)
        entry.node = sim.ports[port].peer if far else sim.ports[port].node
        entry.bytes = sim.packets[packet].bytes
        entry.packet_type = sim.packets[packet].type


@compiled
def copy_header(sim, entry, header):
    """Copy a segment's header into a record of the log."""
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
