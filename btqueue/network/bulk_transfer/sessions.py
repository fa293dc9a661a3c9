"""Request-reply sessions that share a path with bulk transfers: request, reply, good-bye, pause.

Parts of the compiled loop in `bulk_transfer.steps`. A session is the `TALK` record of its client's flow; of
either flow it has `written` so many segments.
"""

from btqueue.network.bulk_transfer.events import BEGIN, schedule
from btqueue.network.bulk_transfer.records import GOODBYE, PAUSE, REPLY, REQUEST, SESSION
from btqueue.network.bulk_transfer.rules import NONE
from btqueue.transport.compilation import part


@part
def begin(state, rules, flow):
    """Let a flow begin; return the one that may send because of it, or NONE."""
    client = rules.flows[flow].client
    if client == NONE:
        return flow
    if client != flow:
        return NONE
    state.sessions[client].began = state.clock[0].now
    state.sessions[client].phase = REQUEST
    return write(state, client, rules.flows[client].request)


@part
def delivered(state, rules, flow):
    """A flow has delivered new data; return the flow in which the application answers, or NONE."""
    client = rules.flows[flow].client
    if client == NONE:
        return NONE
    session, own = state.sessions[client], rules.flows[client]
    if session.phase == PAUSE or state.receivers[flow].expected < state.senders[flow].written:
        return NONE
    now = state.clock[0].now
    if session.phase == REQUEST and flow == client:
        session.phase = REPLY
        return write(state, own.server, own.reply)
    if session.phase == REPLY and flow == own.server:
        add_sample(state, client, SESSION, now - session.began)
        if own.goodbye > 0:
            session.phase = GOODBYE
            return write(state, client, own.goodbye)
    elif session.phase != GOODBYE or flow != client:
        return NONE
    session.phase = PAUSE
    schedule(state, now + own.pause_s, BEGIN, client)
    return NONE


@part
def write(state, flow, segments):
    """Write a message into a flow; return the flow."""
    state.senders[flow].written += segments
    return flow


@part
def add_sample(state, flow, kind, value):
    """Keep a sample of a flow."""
    place = state.counts[flow, kind]
    state.samples[flow, kind, place] = value
    state.counts[flow, kind] = place + 1
    if place + 1 == state.samples.shape[2]:
        state.clock[0].cramped = True
