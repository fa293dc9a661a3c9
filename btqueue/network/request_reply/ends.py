"""Both ends of a TCP connection that carries sessions: what arrives, what leaves, and who writes what when.

The machines of the ends are those of `transport.request_reply_transfer`; what they send is posted, and handed
to the way at the end of what happens now.
"""

from math import inf

from btqueue.network.request_reply.entries import set_alarm
from btqueue.network.request_reply.plan import CLIENT, SERVER
from btqueue.network.request_reply.records import (
    ACK,
    ACK_DUE,
    BEGIN,
    DATA,
    GOODBYE,
    PAUSE,
    REPLY,
    REQUEST,
    SYN,
    SYN_ACK,
    SYN_DUE,
    TIMER,
)
from btqueue.network.request_reply.way import hand_over, post
from btqueue.transport.compilation import part
from btqueue.transport.request_reply_transfer import (
    NO_SEGMENT,
    acknowledge,
    base,
    fitting,
    measure,
    note_acknowledged,
    note_sent,
    open_receiver,
    open_sender,
    take,
)

RTO_AFTER_LOST_SYN = 3_000_000_000
"""Least timeout (ns) of a connection whose SYN was repeated (RFC 6298, section 5.7)."""


@part
def take_parcel(net, plan, state, s):
    """Take the current parcel at its last node."""
    parcel, session = state.current[s], state.sessions[s]
    if parcel.epoch != session.epoch:
        return
    if parcel.kind == ACK:
        take_acknowledgement(net, plan, state, s)
    elif parcel.kind == DATA:
        take_segment(net, plan, state, s)
    elif parcel.kind == SYN:
        post(state, s, SERVER, plan.small, SYN_ACK, parcel.epoch, 0, 0, parcel.delays, parcel.history)
    elif not session.open:
        connect(net, plan, state, s)


@part
def take_acknowledgement(net, plan, state, s):
    """Take the current parcel, an acknowledgement, and send what it lets out."""
    parcel, now = state.current[s], state.clocks[s].now
    flow = 1 - parcel.direction
    sender, end, left = state.senders[s, flow], state.ends[s, flow], state.left[s, flow]
    sampled, oldest = sender.sampled, sender.una
    again = acknowledge(
        plan.rules[0], sender, state.timed[s, flow], state.samples[s, flow], parcel.number,
        float(parcel.at), float(now),
    )  # fmt: skip
    if sender.sampled > sampled and parcel.history > 0:
        end.late += net.histories[parcel.history].repeated - left[oldest % len(left)]
    if again != NO_SEGMENT:
        send(net, plan, state, s, flow, again, parcel.delays, parcel.history)
    send_fitting(net, plan, state, s, flow, parcel.delays, parcel.history)


@part
def take_segment(net, plan, state, s):
    """Take the current parcel, a segment: tell the application, and acknowledge it now or later."""
    parcel, session = state.current[s], state.sessions[s]
    flow, epoch, now = parcel.direction, parcel.epoch, state.clocks[s].now
    delays, history = parcel.delays, parcel.history
    receiver = state.receivers[s, flow]
    due = take(plan.rules[0], receiver, state.early[s, flow], parcel.number, float(parcel.at), float(now))
    if receiver.expected >= session.goal:
        go_on_with_session(net, plan, state, s, flow, delays, history)
    if epoch != session.epoch:
        return
    if due:
        send_acknowledgement(plan, state, s, flow, delays, history)
    elif receiver.deadline < inf and receiver.waiting == 1:
        set_alarm(net, state, s, int(receiver.deadline), ACK_DUE, epoch, flow)


@part
def send_acknowledgement(plan, state, s, flow, delays, history):
    """Acknowledge what has come of a flow."""
    receiver = state.receivers[s, flow]
    note_acknowledged(receiver)
    epoch = state.sessions[s].epoch
    post(state, s, 1 - flow, plan.small, ACK, epoch, receiver.expected, int(receiver.echo), delays, history)


@part
def send(net, plan, state, s, flow, number, delays, history):
    """Let a segment leave."""
    now, place = state.clocks[s].now, number % plan.counts[flow]
    note_sent(state.senders[s, flow], state.timed[s, flow], number, float(now))
    state.ends[s, flow].sent_bytes += plan.user_bytes[flow, place]
    left = state.left[s, flow]
    left[number % len(left)] = net.histories[history].repeated
    epoch = state.sessions[s].epoch
    post(state, s, flow, plan.forms[flow, place], DATA, epoch, number, now, delays, history)


@part
def send_fitting(net, plan, state, s, flow, delays, history):
    """Let leave what the window lets out."""
    sender = state.senders[s, flow]
    for _ in range(fitting(plan.rules[0], sender)):
        send(net, plan, state, s, flow, sender.nxt, delays, history)


@part
def write(net, plan, state, s, flow, segments, delays, history):
    """Take a message from the application of an end, and send what fits of it."""
    sender = state.senders[s, flow]
    sender.written += segments
    state.sessions[s].goal = sender.written
    send_fitting(net, plan, state, s, flow, delays, history)


@part
def go_on_with_session(net, plan, state, s, flow, delays, history):
    """The message under way may be whole: answer it (Avancha 2002, section 4.4.1)."""
    session, now = state.sessions[s], state.clocks[s].now
    writer, segments, over = CLIENT, 0, False
    if session.phase == REQUEST and flow == CLIENT:
        session.phase, writer, segments = REPLY, SERVER, plan.reply
    elif session.phase == REPLY and flow == SERVER:
        session.finished, session.delays, session.history = now - session.since, delays, history
        if plan.goodbye > 0:
            session.phase, segments = GOODBYE, plan.goodbye
        else:
            over = True
    elif session.phase == GOODBYE and flow == CLIENT:
        over = True
    if segments > 0:
        write(net, plan, state, s, writer, segments, delays, history)
    if over:
        session.phase, session.repeated = PAUSE, net.histories[history].repeated
        state.left[s, :, :] = 0.0
        if plan.handshake:
            forget_connection(plan, state, s)
        set_alarm(net, state, s, now + plan.pause, BEGIN, session.epoch, CLIENT)


@part
def forget_connection(plan, state, s):
    """Replace the connection by a closed one; what it has under way is ignored."""
    session = state.sessions[s]
    session.epoch += 1
    session.open = False
    for flow in (CLIENT, SERVER):
        open_sender(plan.rules[0], state.senders[s, flow])
        open_receiver(state.receivers[s, flow])
        state.early[s, flow, :] = False
        state.ends[s, flow].wake = inf


@part
def connect(net, plan, state, s):
    """The handshake is complete: ask."""
    session, sender = state.sessions[s], state.senders[s, CLIENT]
    history = state.current[s].history
    session.open = True
    session.connected = state.clocks[s].now - session.connecting_since
    if session.syn_rto == plan.rules[0].initial_rto:
        measure(plan.rules[0], sender, float(session.connected))
    else:
        sender.rto = max(sender.rto, float(RTO_AFTER_LOST_SYN))
    base(sender)
    ask(net, plan, state, s, history)


@part
def ask(net, plan, state, s, history):
    """Write the request."""
    session = state.sessions[s]
    session.phase, session.started = REQUEST, state.clocks[s].now - session.since
    write(net, plan, state, s, CLIENT, plan.request, 0, history)


@part
def flush(net, state, s):
    """Hand over what leaves, and let the timers be looked at when they may be due."""
    hand_over(net, state, s)
    for flow in (CLIENT, SERVER):
        end, deadline = state.ends[s, flow], state.senders[s, flow].deadline
        if deadline < end.wake:
            end.wake = deadline
            set_alarm(net, state, s, int(deadline) + 1, TIMER, state.sessions[s].epoch, flow)


@part
def send_syn(net, plan, state, s):
    """Ask for a connection, and look later whether there is one."""
    session = state.sessions[s]
    post(state, s, CLIENT, plan.small, SYN, session.epoch, 0, 0, 0, 0)
    set_alarm(net, state, s, state.clocks[s].now + int(session.syn_rto), SYN_DUE, session.epoch, CLIENT)
