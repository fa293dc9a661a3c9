"""An end's part in a CentaurusComm session: joining, progress, leaving (Avancha et al. 2002, section 3.4).

The states that the paper leaves as soon as Level I has taken a message (send command, proceed sent, proceed
received) last no time here, so they have no name.
"""

from btqueue.simulator.applications.exchange import clear_deadline, set_deadline
from btqueue.simulator.machinery.numba_cache import compiled, outlined
from btqueue.simulator.records.connections import WATCHDOG, WORKER

(
    WAIT,
    POLL_RECEIVED,
    OBJ_RECEIVED,
    PACKET_RECEIVE,
    DONE_RECEIVED,
    NOPE_RECEIVED,
    ACK_REJ_RECEIVED,
    PACKET_TRANSMIT,
    WAIT_PACKET_SEND,
) = range(9)


@compiled
def join(sim, index, end, number):
    """Let an end take part in the session with this number, from the initial state of a connected Level I."""
    session = sim.sessions[index]
    session.number[end] = number
    session.in_session[end] = 1
    session.busy[end] = 0
    session.offered[end] = 0
    session.done_sent[end] = 0
    session.done_received[end] = 0
    session.state[end] = WAIT
    clear_deadline(sim, index, WATCHDOG + end)
    clear_deadline(sim, index, WORKER + end)


@compiled
def begin_session(sim, index, end):
    """Let an end start a new session: the client the next odd one, the server the next even one."""
    number = sim.sessions[index].number[end]
    join(sim, index, end, number + 1 + (number + end) % 2)


@outlined
def enter(sim, index, end, state, now):
    """Take the next state; this is progress, so the end's watchdog starts again."""
    session = sim.sessions[index]
    session.state[end] = state
    session.busy[end] = 1
    set_deadline(sim, index, WATCHDOG + end, now + session.watchdog)


@compiled
def leave(sim, index, end, now):
    """Nothing more is owed in this session."""
    session = sim.sessions[index]
    session.busy[end] = 0
    clear_deadline(sim, index, WATCHDOG + end)


@outlined
def close(sim, index, end, now):
    """Close the session at this end; bitmaps and outgoing objects stay."""
    session = sim.sessions[index]
    session.in_session[end] = 0
    session.state[end] = WAIT
    clear_deadline(sim, index, WORKER + end)
    leave(sim, index, end, now)
