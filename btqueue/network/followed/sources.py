"""What the applications write: greedy, Poisson, interrupted Bernoulli and periodic sources, and sessions.

A message that the window leaves no room for is not looked at before it does. A session is the exchange of a
client's flow and its server's: request, reply, good-bye, pause.
"""

from math import floor, log, log1p

from btqueue.network.compilation import part, subroutine
from btqueue.network.followed.events import MESSAGE, schedule, uniform
from btqueue.network.followed.stream import position, room
from btqueue.network.followed.world import NEVER, NONE

GREEDY, POISSON, BERNOULLI, PERIODIC, CLIENT, SERVER = range(6)
PAUSE, REQUEST, REPLY, GOODBYE = range(4)
"""What a session is at."""
NO_END = 1 << 60
"""What a greedy source has written of its stream: more than can be sent."""


@part
def due(w, flow, now):
    """An application is due: a message, the beginning of a greedy one, or a session."""
    own = w.flows[flow]
    own.due = NEVER
    if own.law == CLIENT:
        own.began, own.phase = now, REQUEST
        own.written += own.request


@part
def write_due(w, flow, now):
    """Write the messages that have come by now and that the receiver's window has room for."""
    own = w.flows[flow]
    if own.message > now:
        return
    if own.law == GREEDY:
        own.written, own.message = NO_END, NEVER
        return
    while own.message <= now and own.written < room(w, flow):
        own.written += own.length
        own.messages_in += 1
        own.message_age -= own.message
        own.message = min(own.message + gap(w, own), NEVER)


@part
def expect(w, flow):
    """See to it that the next message is written when it comes, if it can be sent then."""
    own = w.flows[flow]
    if own.due >= NEVER and own.message < NEVER and own.written < room(w, flow):
        own.due = own.message
        schedule(w, own.message, MESSAGE, flow)


@part
def gap(w, own):
    """Draw the time to the next message (slots)."""
    if own.law == POISSON:
        return -own.gap * log(uniform(w))
    if own.law == PERIODIC:
        return own.gap
    slots = 1.0
    if uniform(w) < own.leave_active:
        slots += trials(w, own.leave_idle)
    return floor(own.message) + slots - own.message


@part
def trials(w, chance):
    """Draw the number of trials up to the first success."""
    if chance >= 1.0:
        return 1.0
    return 1.0 + floor(log(uniform(w)) / log1p(-chance))


@part
def delivered(w, flow, before, now):
    """Count the messages that are whole with the segments from `before` on; return who answers, or NONE."""
    own = w.flows[flow]
    if own.law >= CLIENT:
        return exchange(w, flow, now)
    messages = position(w, flow, own.expected) // own.length - position(w, flow, before) // own.length
    own.messages_out += messages
    own.message_age += messages * now
    return NONE


@subroutine
def exchange(w, flow, now):
    """Go on with a session when a message is whole; return the flow in which somebody answers, or NONE."""
    client = w.flows[flow].client
    own = w.flows[client]
    if own.phase == PAUSE or position(w, flow, w.flows[flow].expected) < w.flows[flow].written:
        return NONE
    if own.phase == REQUEST and flow == client:
        own.phase = REPLY
        w.flows[own.server].written += own.reply
        return own.server
    if own.phase == REPLY and flow == own.server:
        own.sessions += 1
        own.session_time += now - own.began
        own.session_squares += (now - own.began) ** 2
        if own.goodbye > 0:
            own.phase = GOODBYE
            own.written += own.goodbye
            return client
    elif own.phase != GOODBYE or flow != client:
        return NONE
    own.phase = PAUSE
    own.due = now + own.pause
    schedule(w, own.due, MESSAGE, client)
    return NONE
