"""Opening of a TCP connection: SYN, SYN-ACK (RFC 9293, section 3.5).

The third segment of the handshake is the request itself, which acknowledges the SYN-ACK. A SYN that is not
answered in time is repeated, with the timeout doubled each time (RFC 6298, section 5).
"""

from btqueue.simulator.applications.exchange import send_request
from btqueue.simulator.applications.session_timer import clear_deadline, set_deadline
from btqueue.simulator.bluetooth.l2cap import new_segment
from btqueue.simulator.machinery.compilation import compiled, outlined
from btqueue.simulator.records.connections import CONNECTING, SYN_TIMEOUT
from btqueue.simulator.records.conventions import NOTHING, SECOND
from btqueue.simulator.records.packets import SYN, SYN_ACK
from btqueue.simulator.tcp.retransmission_timer import measure

RTO_AFTER_LOST_SYN = 3 * SECOND
"""RFC 6298, section 5.7 (ns)."""


@outlined
def connect(sim, index, now):
    """The client begins to open the session's connection."""
    session = sim.sessions[index]
    session.phase = CONNECTING
    session.connecting_since = now
    session.syn_timeout = sim.connections[session.requester].initial_rto
    send_syn(sim, index, now)


@compiled
def send_syn(sim, index, now):
    """Let a SYN be sent, and repeated after the timeout."""
    session = sim.sessions[index]
    session.handshake_output = SYN
    set_deadline(sim, index, SYN_TIMEOUT, now + session.syn_timeout)
    sim.clock[0].sending = session.requester


@outlined
def on_syn_timeout(sim, index, now):
    """No SYN-ACK has come: send the SYN again and wait twice as long."""
    session = sim.sessions[index]
    session.syn_timeout = min(2 * session.syn_timeout, sim.connections[session.requester].max_rto)
    send_syn(sim, index, now)


@outlined
def on_segment(sim, flow, segment, now):
    """The server answers a SYN; a SYN-ACK opens the connection, and the client sends its request."""
    index = sim.connections[flow].session
    session = sim.sessions[index]
    if segment.kind == SYN:
        sim.connections[session.responder].open = True
        session.handshake_output = SYN_ACK
        sim.clock[0].sending = session.requester
    elif segment.kind == SYN_ACK and session.phase == CONNECTING:
        on_connected(sim, index, now)


@compiled
def on_connected(sim, index, now):
    """The client has the SYN-ACK: count the time that it took, and take it as a round-trip time."""
    session = sim.sessions[index]
    conn = sim.connections[session.requester]
    conn.open = True
    clear_deadline(sim, index, SYN_TIMEOUT)
    time = now - session.connecting_since
    statistics = sim.flow_statistics[session.requester]
    statistics.connects += 1
    statistics.connect_time_sum += time
    if session.syn_timeout == conn.initial_rto:
        measure(conn, time)
    else:
        # After a lost SYN the time is ambiguous (Karn), so the timer starts from a cautious value.
        conn.rto = max(conn.rto, RTO_AFTER_LOST_SYN)
    send_request(sim, index, now)


@outlined
def next_output(sim, flow, now):
    """Make the handshake segment that an end of the session has to send and return its index, or NOTHING."""
    index = sim.connections[flow].session
    if index == NOTHING or sim.sessions[index].handshake_output == NOTHING:
        return NOTHING
    session = sim.sessions[index]
    kind = session.handshake_output
    session.handshake_output = NOTHING
    requester = session.requester
    layout = sim.connections[requester].control_layout
    segment = new_segment(sim, requester, kind, kind == SYN_ACK, layout, 0)
    sim.segments[segment].timestamp = now
    return segment
