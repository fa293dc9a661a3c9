"""Sessions between a client and a server, one after the other: their start and their timer.

The order of the messages is in `exchange`. TCP carries them as a stream of segments, on a connection that
`connection_setup` may have to open; `centaurus` carries them one by one.
"""

from btqueue.simulator.applications import exchange
from btqueue.simulator.applications.exchange import CLIENT, set_deadline, take_due
from btqueue.simulator.centaurus import state_machine as centaurus
from btqueue.simulator.machinery.numba_cache import outlined
from btqueue.simulator.records import connections as kinds
from btqueue.simulator.tcp import connection_setup
from btqueue.simulator.tcp.stream import position


@outlined
def start(sim, index):
    """Let the first request follow at the client's `start_at`."""
    set_deadline(sim, index, kinds.NEXT_SESSION, sim.connections[sim.sessions[index].requester].start_at)


@outlined
def on_timer(sim, index, now):
    """Handle the deadline for which the session's timer has fired; for the next one it fires again."""
    place = take_due(sim, index, now)
    if place == kinds.NEXT_SESSION:
        begin(sim, index, now)
    elif place == kinds.APPLICATION_TIMEOUT:
        exchange.abandon(sim, index, now)
        if sim.connections[sim.sessions[index].requester].protocol == kinds.CENTAURUS:
            centaurus.close(sim, index, CLIENT, now)
    elif place >= kinds.WORKER:
        centaurus.on_worker(sim, index, place - kinds.WORKER, now)
    elif place >= kinds.WATCHDOG:
        centaurus.on_watchdog(sim, index, place - kinds.WATCHDOG, now)


@outlined
def begin(sim, index, now):
    """Begin an exchange, or first open the connection if it is not open."""
    flow = sim.sessions[index].requester
    if not sim.connections[flow].open:
        connection_setup.connect(sim, flow, now)
    else:
        exchange.send_request(sim, index, now)


@outlined
def on_message_delivered(sim, flow, now):
    """TCP has delivered data of this flow: if the message under way is whole, the application goes on."""
    index = sim.connections[flow].session
    session = sim.sessions[index]
    conn = sim.connections[flow]
    if position(conn, sim.starts[flow], conn.rcv_nxt) < session.expected:
        return
    if session.phase == kinds.REQUEST and flow == session.requester:
        exchange.on_request(sim, index, 2 * session.exchange, now)
    elif session.phase == kinds.REPLY and flow == session.responder:
        exchange.on_reply(sim, index, now)
    elif session.phase == kinds.GOODBYE and flow == session.requester:
        exchange.finish(sim, index, now)
