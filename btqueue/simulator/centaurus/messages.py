"""The messages that an end of CentaurusComm sends, and its next state (Avancha et al. 2002, section 3.4)."""

from btqueue.simulator.applications.exchange import CLIENT, flow_from, message_layout
from btqueue.simulator.applications.session_timer import set_deadline
from btqueue.simulator.bluetooth.l2cap import new_segment
from btqueue.simulator.centaurus.bitmaps import begin_offer, collect, is_whole, mark_sent, next_unsent
from btqueue.simulator.centaurus.ends import (
    PACKET_RECEIVE,
    PACKET_TRANSMIT,
    WAIT,
    WAIT_PACKET_SEND,
    close,
    enter,
    leave,
)
from btqueue.simulator.machinery.numba_cache import compiled
from btqueue.simulator.records.connections import DONE, NOPE, OBJ, OBJECT_ACK, PROCEED, REJ, WORKER
from btqueue.simulator.records.conventions import NOTHING
from btqueue.simulator.records.packets import CONTROL, DATA


@compiled
def control(sim, index, end, message, number):
    """Make a control message about the object with this number."""
    session = sim.sessions[index]
    flow = flow_from(session, end)
    made = new_segment(sim, flow, CONTROL, False, sim.connections[flow].control_layout, number)
    sim.segments[made].message = message
    sim.segments[made].session = session.number[end]
    return made


@compiled
def offer(sim, index, end, now):
    """Send OBJ; early data follow at once (section 5.2.2), else the answer is awaited."""
    session = sim.sessions[index]
    session.offered[end] = 1
    begin_offer(sim, index, end)
    enter(sim, index, end, PACKET_TRANSMIT if session.early_data else WAIT, now)
    return control(sim, index, end, OBJ, session.outgoing[end])


@compiled
def nope(sim, index, end, now):
    """Send NOPE; after it this end owes nothing and may leave, or be offered an object."""
    sim.sessions[index].state[end] = WAIT
    leave(sim, index, end, now)
    return control(sim, index, end, NOPE, NOTHING)


@compiled
def answer_offer(sim, index, end, now):
    """Answer OBJ: REJ if a copy as new is held, else PROCEED with the bits kept from earlier sessions."""
    session = sim.sessions[index]
    number = session.incoming[end]
    if number <= session.accepted[end]:
        enter(sim, index, end, WAIT, now)
        return control(sim, index, end, REJ, number)
    collect(sim, index, end, number)
    return proceed(sim, index, end, now)


@compiled
def answer_done(sim, index, end, now):
    """Answer DONE: ACK if all bits are set, else PROCEED with the bitmap."""
    session = sim.sessions[index]
    if not is_whole(session, end):
        return proceed(sim, index, end, now)
    made = control(sim, index, end, OBJECT_ACK, session.collecting[end])
    if end == CLIENT:
        # The server closes the session when this ACK comes.
        close(sim, index, end, now)
    else:
        enter(sim, index, end, WAIT, now)
    return made


@compiled
def proceed(sim, index, end, now):
    """Send PROCEED with the bitmap as it is now."""
    session = sim.sessions[index]
    enter(sim, index, end, PACKET_RECEIVE, now)
    made = control(sim, index, end, PROCEED, session.collecting[end])
    sim.segments[made].ack = session.received[end]
    sim.segments[made].echo = session.done_received[end]
    return made


@compiled
def next_packet(sim, index, end, now):
    """Send the data packet of the next zero bit, or DONE if none remains."""
    session = sim.sessions[index]
    flow = flow_from(session, end)
    number = session.bitmap_of[end]
    slot = next_unsent(sim, index, end)
    if slot == NOTHING:
        session.done_sent[end] += 1
        enter(sim, index, end, WAIT, now)
        return control(sim, index, end, DONE, number)
    mark_sent(sim, index, end, slot)
    made = new_segment(sim, flow, DATA, False, message_layout(sim, index, end, number, slot), slot)
    sim.segments[made].session = session.number[end]
    sim.segments[made].timestamp = now
    if session.worker_period > 0:
        enter(sim, index, end, WAIT_PACKET_SEND, now)
        set_deadline(sim, index, WORKER + end, now + session.worker_period)
    else:
        enter(sim, index, end, PACKET_TRANSMIT, now)
    return made
