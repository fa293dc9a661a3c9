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

The states that the paper leaves as soon as Level I has taken a message (send command, proceed sent, proceed
received) last no time here, so they have no name.
"""

from btqueue.simulator.applications import exchange
from btqueue.simulator.applications.exchange import CLIENT, SERVER, clear_deadline, flow_from, set_deadline
from btqueue.simulator.bluetooth.l2cap import new_segment
from btqueue.simulator.centaurus import bitmaps
from btqueue.simulator.machinery.numba_cache import compiled, outlined
from btqueue.simulator.records import connections as kinds
from btqueue.simulator.records.conventions import NOTHING
from btqueue.simulator.records.packets import CONTROL, DATA

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


# ------------------------------------------------------------------------------- an end's part in a session


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
    clear_deadline(sim, index, kinds.WATCHDOG + end)
    clear_deadline(sim, index, kinds.WORKER + end)


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
    set_deadline(sim, index, kinds.WATCHDOG + end, now + session.watchdog)


@compiled
def leave(sim, index, end, now):
    """Stop the watchdog of an end that has no more work in this session."""
    session = sim.sessions[index]
    session.busy[end] = 0
    clear_deadline(sim, index, kinds.WATCHDOG + end)


@outlined
def close(sim, index, end, now):
    """Close the session at this end; bitmaps and outgoing objects stay."""
    session = sim.sessions[index]
    session.in_session[end] = 0
    session.state[end] = WAIT
    clear_deadline(sim, index, kinds.WORKER + end)
    leave(sim, index, end, now)


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
    if session.state[end] == WAIT_PACKET_SEND:
        enter(sim, index, end, PACKET_TRANSMIT, now)
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
    if session.state[end] != PACKET_RECEIVE:
        if segment.kind != DATA:
            on_message(sim, index, end, segment, now)
    elif segment.kind == DATA:
        bitmaps.record(sim, index, end, flow, segment.number)
        enter(sim, index, end, PACKET_RECEIVE, now)
    elif segment.message == kinds.DONE:
        on_done(sim, index, end, flow, now)
    sim.clock[0].sending = flow_from(session, end)


@compiled
def on_message(sim, index, end, segment, now):
    """A control message reaches an end that waits, or the answer to OBJ one that sends early data."""
    session = sim.sessions[index]
    waits = session.state[end] == WAIT
    if segment.message == kinds.PROCEED:
        on_proceed(sim, index, end, segment, now)
    elif segment.message == kinds.REJ or (waits and segment.message == kinds.OBJECT_ACK):
        on_answered(sim, index, end, segment.message, segment.number, now)
    elif waits and segment.message == kinds.OBJ:
        session.incoming[end] = segment.number
        enter(sim, index, end, OBJ_RECEIVED, now)
    elif waits and segment.message == kinds.NOPE:
        enter(sim, index, end, NOPE_RECEIVED, now)


@compiled
def on_proceed(sim, index, end, segment, now):
    """Take the receiver's bitmap and send the missing packets, unless it is older than our last DONE."""
    session = sim.sessions[index]
    if segment.echo != session.done_sent[end]:
        return
    bitmaps.update_from_receiver(sim, index, end, segment.ack)
    if session.state[end] == WAIT:
        enter(sim, index, end, PACKET_TRANSMIT, now)


@compiled
def on_answered(sim, index, end, message, number, now):
    """Remove the object, accepted or rejected; a server closes after ACK, all others send NOPE."""
    session = sim.sessions[index]
    clear_deadline(sim, index, kinds.WORKER + end)
    if session.outgoing[end] == number:
        session.outgoing[end] = NOTHING
        if end == CLIENT and session.phase == kinds.GOODBYE:
            exchange.finish(sim, index, now)
    if message == kinds.OBJECT_ACK and end == SERVER:
        close(sim, index, end, now)
    else:
        enter(sim, index, end, ACK_REJ_RECEIVED, now)


@compiled
def on_done(sim, index, end, flow, now):
    """The sender has sent all missing packets of its bitmap; a whole object goes to the application."""
    session = sim.sessions[index]
    session.done_received[end] += 1
    enter(sim, index, end, DONE_RECEIVED, now)
    if bitmaps.is_whole(session, end):
        deliver(sim, index, end, flow, now)


@outlined
def deliver(sim, index, end, flow, now):
    """Store the object's time stamp, count it and hand it to the application."""
    session = sim.sessions[index]
    number = session.collecting[end]
    session.accepted[end] = number
    session.delivered[end] = number
    statistics = sim.flow_statistics[flow]
    packets = exchange.message_segments(session, 1 - end, number)
    statistics.messages_delivered += 1
    statistics.delivered_in_order += packets
    for slot in range(packets):
        layout = exchange.message_layout(sim, index, 1 - end, number, slot)
        statistics.bytes_delivered += sim.layouts[layout].application
    if session.outgoing[1 - end] == number:
        delay = now - session.written_at[1 - end]
        statistics.delay_sum += delay
        statistics.delay_squares += float(delay) * float(delay)
    if end == CLIENT:
        exchange.on_reply(sim, index, now)
    elif number % 2 == 0:
        exchange.on_request(sim, index, number, now)


# -------------------------------------------------------------------------------------- messages, next states


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
    bitmaps.begin_offer(sim, index, end)
    enter(sim, index, end, PACKET_TRANSMIT if session.early_data else WAIT, now)
    return control(sim, index, end, kinds.OBJ, session.outgoing[end])


@compiled
def nope(sim, index, end, now):
    """Send NOPE; after it this end owes nothing and may leave, or be offered an object."""
    sim.sessions[index].state[end] = WAIT
    leave(sim, index, end, now)
    return control(sim, index, end, kinds.NOPE, NOTHING)


@compiled
def answer_offer(sim, index, end, now):
    """Answer OBJ: REJ if a copy as new is held, else PROCEED with the bits kept from earlier sessions."""
    session = sim.sessions[index]
    number = session.incoming[end]
    if number <= session.accepted[end]:
        enter(sim, index, end, WAIT, now)
        return control(sim, index, end, kinds.REJ, number)
    bitmaps.collect(sim, index, end, number)
    return proceed(sim, index, end, now)


@compiled
def answer_done(sim, index, end, now):
    """Answer DONE: ACK if all bits are set, else PROCEED with the bitmap."""
    session = sim.sessions[index]
    if not bitmaps.is_whole(session, end):
        return proceed(sim, index, end, now)
    made = control(sim, index, end, kinds.OBJECT_ACK, session.collecting[end])
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
    made = control(sim, index, end, kinds.PROCEED, session.collecting[end])
    sim.segments[made].ack = session.received[end]
    sim.segments[made].echo = session.done_received[end]
    return made


@compiled
def next_packet(sim, index, end, now):
    """Send the data packet of the next zero bit, or DONE if none remains."""
    session = sim.sessions[index]
    flow = flow_from(session, end)
    number = session.bitmap_of[end]
    slot = bitmaps.next_unsent(sim, index, end)
    if slot == NOTHING:
        session.done_sent[end] += 1
        enter(sim, index, end, WAIT, now)
        return control(sim, index, end, kinds.DONE, number)
    bitmaps.mark_sent(sim, index, end, slot)
    made = new_segment(sim, flow, DATA, False, exchange.message_layout(sim, index, end, number, slot), slot)
    sim.segments[made].session = session.number[end]
    sim.segments[made].timestamp = now
    if session.worker_period > 0:
        enter(sim, index, end, WAIT_PACKET_SEND, now)
        set_deadline(sim, index, kinds.WORKER + end, now + session.worker_period)
    else:
        enter(sim, index, end, PACKET_TRANSMIT, now)
    return made


@outlined
def next_output(sim, flow, now):
    """Make the next message that the flow's source hands to Level I and return its segment, or NOTHING."""
    index = sim.connections[flow].session
    session = sim.sessions[index]
    end = CLIENT if flow == session.requester else SERVER
    may_offer = session.outgoing[end] != NOTHING and not session.offered[end]
    if session.state[end] == NOPE_RECEIVED and not may_offer:
        close(sim, index, end, now)
    # Level I triggers a session for a pending object (a local POLL).
    at_rest = session.state[end] == WAIT and not session.busy[end]
    if at_rest and session.outgoing[end] != NOTHING:
        begin_session(sim, index, end)
        enter(sim, index, end, POLL_RECEIVED, now)
    state = session.state[end]
    if state in (POLL_RECEIVED, NOPE_RECEIVED) and session.outgoing[end] != NOTHING:
        return offer(sim, index, end, now)
    if state in (POLL_RECEIVED, ACK_REJ_RECEIVED):
        return nope(sim, index, end, now)
    if state == OBJ_RECEIVED:
        return answer_offer(sim, index, end, now)
    if state == PACKET_TRANSMIT:
        return next_packet(sim, index, end, now)
    if state == DONE_RECEIVED:
        return answer_done(sim, index, end, now)
    return NOTHING
