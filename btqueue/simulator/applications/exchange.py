"""Request, reply, good-bye: the order of the messages of one session (Avancha et al. 2002, section 4.4.1).

The client sends a request, the server a reply, and the client a good-bye. The client's session time runs from
just before it sends the request until it has the whole reply. Over CentaurusComm a message is an object,
numbered by its age: the request and the reply of exchange k are 2k, its good-bye is 2k + 1.
"""

from btqueue.simulator.applications.application import write_message
from btqueue.simulator.machinery.numba_cache import compiled, outlined
from btqueue.simulator.machinery.timers import schedule
from btqueue.simulator.records import connections as kinds
from btqueue.simulator.records.connections import DEADLINES, TCP
from btqueue.simulator.records.conventions import NEVER, NOTHING
from btqueue.simulator.statistics.histograms import count
from btqueue.simulator.tcp.fresh_connection import restart_connection

CLIENT, SERVER = 0, 1


@compiled
def flow_from(session, end):
    """Return the flow that carries the messages of this end."""
    return session.requester if end == CLIENT else session.responder


@compiled
def message_segments(session, end, number):
    """Return the length (segments) of the message with this number that this end sends."""
    if end == SERVER:
        return session.reply_segments
    return session.goodbye_segments if number % 2 == 1 else session.request_segments


@compiled
def message_layout(sim, index, end, number, place):
    """Return the layout of a segment of this message; the client's pattern is request, then good-bye."""
    session = sim.sessions[index]
    first = session.request_segments if end == CLIENT and number % 2 == 1 else 0
    conn = sim.connections[flow_from(session, end)]
    return sim.patterns[conn.pattern + (first + place) % conn.pattern_length]


@compiled
def write(sim, index, end, number, now):
    """Let an end write its message with this number."""
    session = sim.sessions[index]
    flow = flow_from(session, end)
    conn = sim.connections[flow]
    if conn.protocol == TCP:
        write_message(sim, flow, message_segments(session, end, number), now)
        session.expected = conn.written
    else:
        session.outgoing[end] = number
        session.written_at[end] = now
        sim.flow_statistics[flow].messages += 1
    sim.clock[0].sending = flow


@outlined
def send_request(sim, index, now):
    """The client begins an exchange."""
    session = sim.sessions[index]
    session.exchange += 1
    session.phase = kinds.REQUEST
    session.started_at = now
    if session.application_timeout > 0:
        set_deadline(sim, index, kinds.APPLICATION_TIMEOUT, now + session.application_timeout)
    write(sim, index, CLIENT, 2 * session.exchange, now)


@outlined
def on_request(sim, index, number, now):
    """The server has the whole request with this number and replies, even if the client has given up."""
    session = sim.sessions[index]
    if number == 2 * session.exchange and session.phase == kinds.REQUEST:
        session.phase = kinds.REPLY
    write(sim, index, SERVER, number, now)


@outlined
def on_reply(sim, index, now):
    """The client has the whole reply: count the session, then say good-bye."""
    session = sim.sessions[index]
    time = now - session.started_at
    statistics = sim.flow_statistics[session.requester]
    statistics.sessions += 1
    statistics.session_time_sum += time
    statistics.session_time_squares += float(time) * float(time)
    count(sim.delay_histogram[session.requester], time)
    clear_deadline(sim, index, kinds.APPLICATION_TIMEOUT)
    # An answered request has been received, even if CentaurusComm's acknowledgement of it was lost.
    session.outgoing[CLIENT] = NOTHING
    if session.goodbye_segments > 0:
        session.phase = kinds.GOODBYE
        write(sim, index, CLIENT, 2 * session.exchange + 1, now)
    else:
        finish(sim, index, now)


@outlined
def finish(sim, index, now):
    """The exchange is over; the next begins after a pause, on a new connection if every session opens one.

    Tear-down takes no segments: the connection ends at both ends at once.
    """
    session = sim.sessions[index]
    session.phase = kinds.PAUSING
    if session.per_session_connection:
        restart(sim, index)
    set_deadline(sim, index, kinds.NEXT_SESSION, now + session.pause)


@outlined
def abandon(sim, index, now):
    """The reply has not come in time: the session is lost, and its connection is given up."""
    session = sim.sessions[index]
    sim.flow_statistics[session.requester].sessions_lost += 1
    session.phase = kinds.PAUSING
    if sim.connections[session.requester].protocol == TCP:
        restart(sim, index)
    else:
        # Of CentaurusComm the client withdraws its request, and holds the reply for too old to accept.
        session.outgoing[CLIENT] = NOTHING
        session.accepted[CLIENT] = 2 * session.exchange
    set_deadline(sim, index, kinds.NEXT_SESSION, now + session.pause)


@outlined
def restart(sim, index):
    """Begin both directions of the session's connection anew."""
    session = sim.sessions[index]
    for end in (CLIENT, SERVER):
        restart_connection(sim, flow_from(session, end))


# ---------------------------------------------------------------------------------------- the session's timer

# One timer serves all deadlines of a session: it is set to the earliest of them. A deadline that is moved to
# a later time leaves the timer as it is: when it fires no deadline is due, and it is set to the earliest.


@outlined
def set_deadline(sim, index, place, due):
    """Let the session's timer fire for this place of its deadlines at `due` (ns)."""
    session = sim.sessions[index]
    session.deadlines[place] = due
    if due < sim.timers[session.timer].due:
        schedule(sim, session.timer, due)


@compiled
def clear_deadline(sim, index, place):
    """Let the session's timer no longer fire for this place of its deadlines."""
    sim.sessions[index].deadlines[place] = NEVER


@compiled
def take_due(sim, index, now):
    """Clear the first of the deadlines that is due, and return its place, or NOTHING; set the timer anew."""
    session = sim.sessions[index]
    due_place = NOTHING
    for place in range(DEADLINES):
        if due_place == NOTHING and session.deadlines[place] <= now:
            due_place = place
    if due_place != NOTHING:
        session.deadlines[due_place] = NEVER
    earliest = NEVER
    for place in range(DEADLINES):
        earliest = min(earliest, session.deadlines[place])
    schedule(sim, session.timer, earliest)
    return due_place
