"""CentaurusComm Level II: whole messages, with a bitmap in place of acknowledgements of segments.

Avancha et al. (2002), section 3.4. Each end has a state machine: `on_segment` makes the transitions that
messages of the other end cause, `next_output` the transitions that send a message to it.

Control messages are never repeated. If one is lost the session hangs until the watchdog of an end destroys
it; the bitmaps stay, so the next session goes on where this one stopped. We fill the gaps of the paper as
follows:

- Sessions are numbered. An end follows the other into a newer session and ignores messages of an older one. A
  client starts odd sessions and a server even ones: of two begun at once both ends follow the higher.
- An object is also rejected if the receiver has this very copy of it whole (the ACK was lost).
- After its NOPE an end may leave the session, for the other end leaves it without a message if it has nothing
  to send either.
- DONE and data packets are ignored outside the state `packet receive`.
"""

from btqueue.simulator.applications.exchange import (
    CLIENT,
    SERVER,
    finish,
    flow_from,
    message_layout,
    message_segments,
    on_reply,
    on_request,
)
from btqueue.simulator.applications.session_timer import clear_deadline
from btqueue.simulator.centaurus import ends
from btqueue.simulator.centaurus.bitmaps import is_whole, record, update_from_receiver
from btqueue.simulator.centaurus.ends import begin_session, close, enter, join
from btqueue.simulator.centaurus.messages import answer_done, answer_offer, next_packet, nope, offer
from btqueue.simulator.machinery.numba_cache import compiled, outlined
from btqueue.simulator.records import connections as kinds
from btqueue.simulator.records.conventions import NOTHING
from btqueue.simulator.records.packets import DATA

# --------------------------------------------------------------------------------------------------- timers


@outlined
def on_watchdog(sim, index, end, now):
    """The end has made no progress: destroy its session; a pending object starts a new one."""
    flow = flow_from(sim.sessions[index], end)
    sim.flow_statistics[flow].timeouts += 1
    close(sim, index, end, now)
    sim.clock[0].sending = flow


@outlined
def on_worker(sim, index, end, now):
    """The worker routine runs again: Level I has sent the data packet, the next one can be handed to it."""
    session = sim.sessions[index]
    if session.state[end] == ends.WAIT_PACKET_SEND:
        enter(sim, index, end, ends.PACKET_TRANSMIT, now)
        sim.clock[0].sending = flow_from(session, end)


# -------------------------------------------------------------------------------------------------- receiving


@outlined
def on_segment(sim, flow, segment, now):
    """An end receives a control message or a data packet from the other end."""
    index = sim.connections[flow].session
    session = sim.sessions[index]
    end = SERVER if flow == session.requester else CLIENT
    if segment.session > session.number[end]:
        join(sim, index, end, segment.session)
    if segment.session < session.number[end] or not session.in_session[end]:
        return
    if segment.kind == DATA:
        on_packet(sim, index, end, flow, segment.number, now)
    elif session.state[end] == ends.WAIT:
        on_message_while_waiting(sim, index, end, segment, now)
    elif session.state[end] == ends.PACKET_RECEIVE:
        if segment.message == kinds.DONE:
            on_done(sim, index, end, flow, now)
    else:
        on_message_while_sending(sim, index, end, segment, now)
    sim.clock[0].sending = flow_from(session, end)


@compiled
def on_message_while_waiting(sim, index, end, segment, now):
    """A control message reaches an end in the state `wait`."""
    session = sim.sessions[index]
    if segment.message == kinds.OBJ:
        session.incoming[end] = segment.number
        enter(sim, index, end, ends.OBJ_RECEIVED, now)
    elif segment.message == kinds.NOPE:
        enter(sim, index, end, ends.NOPE_RECEIVED, now)
    elif segment.message == kinds.PROCEED:
        on_proceed(sim, index, end, segment, now)
    elif segment.message == kinds.REJ or segment.message == kinds.OBJECT_ACK:
        on_answered(sim, index, end, segment.message, segment.number, now)


@compiled
def on_message_while_sending(sim, index, end, segment, now):
    """With early data the answer to OBJ comes while data packets are being sent."""
    if segment.message == kinds.PROCEED:
        on_proceed(sim, index, end, segment, now)
    elif segment.message == kinds.REJ:
        on_answered(sim, index, end, segment.message, segment.number, now)


@compiled
def on_proceed(sim, index, end, segment, now):
    """Take the receiver's bitmap and send the missing packets, unless it is older than our last DONE."""
    session = sim.sessions[index]
    if segment.echo != session.done_sent[end]:
        return
    update_from_receiver(sim, index, end, segment.ack)
    if session.state[end] == ends.WAIT:
        enter(sim, index, end, ends.PACKET_TRANSMIT, now)


@compiled
def on_answered(sim, index, end, message, number, now):
    """Remove the object, accepted or rejected; a server closes after ACK, all others send NOPE."""
    session = sim.sessions[index]
    clear_deadline(sim, index, kinds.WORKER + end)
    if session.outgoing[end] == number:
        session.outgoing[end] = NOTHING
        if end == CLIENT and session.phase == kinds.GOODBYE:
            finish(sim, index, now)
    if message == kinds.OBJECT_ACK and end == SERVER:
        close(sim, index, end, now)
    else:
        enter(sim, index, end, ends.ACK_REJ_RECEIVED, now)


@compiled
def on_packet(sim, index, end, flow, slot, now):
    """Copy the payload of a data packet to its slot and set the bit."""
    session = sim.sessions[index]
    if session.state[end] == ends.PACKET_RECEIVE:
        record(sim, index, end, flow, slot)
        enter(sim, index, end, ends.PACKET_RECEIVE, now)


@compiled
def on_done(sim, index, end, flow, now):
    """The sender has sent all missing packets of its bitmap; a whole object goes to the application."""
    session = sim.sessions[index]
    session.done_received[end] += 1
    enter(sim, index, end, ends.DONE_RECEIVED, now)
    if is_whole(session, end):
        deliver(sim, index, end, flow, now)


@outlined
def deliver(sim, index, end, flow, now):
    """Store the object's time stamp, count it and hand it to the application."""
    session = sim.sessions[index]
    number = session.collecting[end]
    session.accepted[end] = number
    session.delivered[end] = number
    statistics = sim.flow_statistics[flow]
    packets = message_segments(session, 1 - end, number)
    statistics.messages_delivered += 1
    statistics.delivered_in_order += packets
    for slot in range(packets):
        layout = message_layout(sim, index, 1 - end, number, slot)
        statistics.bytes_delivered += sim.layouts[layout].application
    if session.outgoing[1 - end] == number:
        delay = now - session.written_at[1 - end]
        statistics.delay_sum += delay
        statistics.delay_squares += float(delay) * float(delay)
    if end == CLIENT:
        on_reply(sim, index, now)
    elif number % 2 == 0:
        on_request(sim, index, number, now)


# ---------------------------------------------------------------------------------------------------- sending


@outlined
def next_output(sim, flow, now):
    """Make the next message that the flow's source hands to Level I and return its segment, or NOTHING."""
    index = sim.connections[flow].session
    session = sim.sessions[index]
    end = CLIENT if flow == session.requester else SERVER
    may_offer = session.outgoing[end] != NOTHING and not session.offered[end]
    if session.state[end] == ends.NOPE_RECEIVED and not may_offer:
        close(sim, index, end, now)
    # Level I triggers a session for a pending object (a local POLL).
    at_rest = session.state[end] == ends.WAIT and not session.busy[end]
    if at_rest and session.outgoing[end] != NOTHING:
        begin_session(sim, index, end)
        enter(sim, index, end, ends.POLL_RECEIVED, now)
    state = session.state[end]
    if state in (ends.POLL_RECEIVED, ends.NOPE_RECEIVED) and session.outgoing[end] != NOTHING:
        return offer(sim, index, end, now)
    if state in (ends.POLL_RECEIVED, ends.ACK_REJ_RECEIVED):
        return nope(sim, index, end, now)
    if state == ends.OBJ_RECEIVED:
        return answer_offer(sim, index, end, now)
    if state == ends.PACKET_TRANSMIT:
        return next_packet(sim, index, end, now)
    if state == ends.DONE_RECEIVED:
        return answer_done(sim, index, end, now)
    return NOTHING
