"""Request, reply, good-bye over a TCP connection: one future of a session, from a loss to the next choice.

The moments of `request_reply.records` are run until a packet may be lost, so that the caller can choose; and
they stop at *stages*, the moments at which little is under way: the start of a session, and each expiry of a
retransmission timer.
"""

from math import inf

from btqueue.network.request_reply.ends import (
    ask,
    flush,
    send_acknowledgement,
    send_fitting,
    send_syn,
    take_parcel,
)
from btqueue.network.request_reply.plan import CLIENT, SERVER
from btqueue.network.request_reply.records import ACK_DUE, BEGIN, CONNECTING, NONE, SYN_DUE, TIMER
from btqueue.network.request_reply.way import ARRIVED, MAY_BE_LOST, RUNG, UNDECIDED, go_on, step
from btqueue.transport.compilation import part, subroutine
from btqueue.transport.request_reply_transfer import expire, open_receiver, open_sender

STAGE, LOSS, DELAY = range(3)
"""What a run ends with: the next stage, or a choice."""


@part
def open_connection(plan, state, s):
    """A new connection; the first session begins at time 0."""
    session = state.sessions[s]
    session.action, session.open = BEGIN, not plan.handshake
    for flow in (CLIENT, SERVER):
        open_sender(plan.rules[0], state.senders[s, flow])
        open_receiver(state.receivers[s, flow])
        state.ends[s, flow].wake = inf


@subroutine
def begin_stage(net, plan, state, s):
    """Begin to count anew, and do that for which the last stage ended."""
    session, now = state.sessions[s], state.clocks[s].now
    session.since, session.delays, session.history, session.repeated = now, 0, 0, 0.0
    session.started = session.finished = session.connected = NONE
    for flow in (CLIENT, SERVER):
        sender, end = state.senders[s, flow], state.ends[s, flow]
        sender.resent = sender.timeouts = sender.fast_retransmits = sender.sampled = 0
        sender.set_after = sender.based_after = -1
        end.sent_bytes, end.late = 0, 0.0
    if session.action == BEGIN:
        begin_session(net, plan, state, s)
    elif session.action == SYN_DUE:
        session.syn_rto = min(2 * session.syn_rto, plan.rules[0].max_rto)
        send_syn(net, plan, state, s)
    else:
        flow = session.action_flow
        expire(plan.rules[0], state.senders[s, flow], float(now))
        send_fitting(net, plan, state, s, flow, 0, 0)
    flush(net, state, s)


@part
def begin_session(net, plan, state, s):
    """Ask, or first for a connection."""
    session = state.sessions[s]
    for medium in range(state.media.shape[1]):  # what is random is noted anew
        state.media[s, medium].delays = state.media[s, medium].history = 0
    for flow in (CLIENT, SERVER):
        state.ends[s, flow].first = state.senders[s, flow].written
    if session.open:
        ask(net, plan, state, s, 0)
    else:
        session.phase, session.connecting_since = CONNECTING, state.clocks[s].now
        session.syn_rto = plan.rules[0].initial_rto
        send_syn(net, plan, state, s)


@subroutine
def run(net, plan, state, s):
    """Go on until something has to be chosen about the current parcel, or to the next stage."""
    while net.counters[0].too_small == 0:
        event = step(net, state, s)
        if event == MAY_BE_LOST:
            return LOSS
        if event == UNDECIDED:
            return DELAY
        if event == ARRIVED:
            take_parcel(net, plan, state, s)
            flush(net, state, s)
        elif event == RUNG:
            if answer_alarm(net, plan, state, s):
                return STAGE
            flush(net, state, s)
    return STAGE


@part
def spare(net, plan, state, s):
    """The current parcel, which may have been lost, goes on."""
    if go_on(net, state, s) == ARRIVED:
        take_parcel(net, plan, state, s)
        flush(net, state, s)


@part
def answer_alarm(net, plan, state, s):
    """Do what is due; return whether a new stage begins."""
    alarm, session, now = state.current[s], state.sessions[s], state.clocks[s].now
    flow = alarm.direction
    if alarm.epoch != session.epoch:
        return False
    if alarm.kind == ACK_DUE:
        if state.receivers[s, flow].deadline <= now:
            send_acknowledgement(plan, state, s, flow, 0, 0)
        return False
    session.action, session.action_flow = alarm.kind, flow
    if alarm.kind == TIMER:
        # looked at as early as it may have been due; if it was set anew since, it is looked at again then
        state.ends[s, flow].wake = inf
        return state.senders[s, flow].deadline <= now
    return alarm.kind == BEGIN or not session.open
