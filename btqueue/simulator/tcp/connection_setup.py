"""Opening of a TCP connection: SYN, SYN-ACK (RFC 9293, section 3.5).

A session opens its connection before an exchange, any other source when it first writes. The third segment of
the handshake is the first one with data, which acknowledges the SYN-ACK and lets the other direction send. A
SYN that is not answered in time is repeated, with the timeout doubled each time (RFC 6298, section 5): the
retransmission timer runs for it, as for data.
"""

from btqueue.simulator.applications.exchange import send_request
from btqueue.simulator.bluetooth.l2cap import new_segment
from btqueue.simulator.machinery.numba_cache import outlined
from btqueue.simulator.records.conventions import NEVER, NOTHING, SECOND
from btqueue.simulator.records.packets import ACK, SYN, SYN_ACK
from btqueue.simulator.tcp.retransmission_timer import measure

RTO_AFTER_LOST_SYN = 3 * SECOND
"""RFC 6298, section 5.7 (ns)."""


@outlined
def connect(sim, flow, now):
    """The flow's source begins to open the connection."""
    sim.connections[flow].connecting_since = now
    send_syn(sim, flow, now)


@outlined
def send_syn(sim, flow, now):
    """Let a SYN be sent, and repeated after the timeout."""
    conn = sim.connections[flow]
    conn.opening = SYN
    conn.rto_deadline = now + conn.syn_timeout
    sim.clock[0].sending = flow


@outlined
def on_syn_timeout(sim, flow, now):
    """No SYN-ACK has come: send the SYN again and wait twice as long."""
    conn = sim.connections[flow]
    conn.syn_timeout = min(2 * conn.syn_timeout, conn.max_rto)
    send_syn(sim, flow, now)


@outlined
def on_segment(sim, flow, segment, now):
    """The target answers a SYN; a SYN-ACK opens the connection for the source."""
    conn = sim.connections[flow]
    if segment.kind == SYN:
        conn.opening = SYN_ACK
        conn.answered_at = now
        sim.clock[0].sending = flow
    elif not conn.open:
        conn.heard = segment.timestamp
        on_connected(sim, flow, now)


@outlined
def on_connected(sim, flow, now):
    """The source has the SYN-ACK: count the time that it took, and take it as a round-trip time."""
    conn = sim.connections[flow]
    open_direction(conn)
    time = now - conn.connecting_since
    statistics = sim.flow_statistics[flow]
    statistics.connects += 1
    statistics.connect_time_sum += time
    if conn.syn_timeout == conn.initial_rto:
        measure(conn, time)
        conn.least_rtt = time
    else:
        # After a lost SYN the time is ambiguous (Karn), so the timer starts from a cautious value.
        conn.rto = max(conn.rto, RTO_AFTER_LOST_SYN)
    sim.clock[0].sending = flow
    if conn.tuned_buffers:
        conn.opening = ACK  # from its arrival on the receiver measures; else the first data stand for it
    if conn.session != NOTHING:
        send_request(sim, conn.session, now)


@outlined
def on_first_data(sim, flow):
    """Data have come over a connection whose other direction `flow` was not open: now it is."""
    open_direction(sim.connections[flow])
    sim.clock[0].sending = flow


@outlined
def open_direction(conn):
    """Let one direction of a connection send data."""
    conn.open = True
    conn.opening = NOTHING
    conn.rto_deadline = NEVER


@outlined
def next_output(sim, flow, now):
    """Make the handshake segment that an end of the connection has to send and return its index, or NOTHING.

    A source that has written something, and no session, begins to open its connection.
    """
    conn = sim.connections[flow]
    if not conn.open and conn.connecting_since == NOTHING and conn.session == NOTHING and conn.written > 0:
        connect(sim, flow, now)
    kind = conn.opening
    if kind == NOTHING:
        return NOTHING
    conn.opening = NOTHING
    segment = new_segment(sim, flow, kind, kind == SYN_ACK, conn.control_layout, 0)
    sim.segments[segment].timestamp = now
    return segment
