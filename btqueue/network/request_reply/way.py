"""The way between client and server: outside links in a row, possibly one Bluetooth hop, as a timetable.

A *medium* sends one packet at a time, in turn over its ports; each port has a drop-tail buffer, and a packet
arrives a fixed delay after it has been sent. One medium may be *polled* (`request_reply.polled_hop`).

Given what is handed in, everything that follows is determined, up to the losses: :func:`step` stops at each
packet that may be lost and lets the caller decide. So a moment can be copied where a loss is possible, and
both futures followed. Times are whole nanoseconds.

What a packet owes to chance besides loss is noted with it: how many random processing delays and which
radio transmissions lie on the longest path that led to its arrival. A packet that had to wait for another one
inherits that one's history (as in a max-plus linear system).
"""

from btqueue.network.request_reply.entries import drop_first, enter, take_next
from btqueue.network.request_reply.polled_hop import (
    answer_frame,
    catches,
    cycle_of,
    end_frame,
    start_frame,
    wake,
)
from btqueue.network.request_reply.records import (
    ALARM,
    ANSWER,
    ARRIVING,
    FRAME,
    FRAME_END,
    HANDED,
    NONE,
    SENT,
)
from btqueue.transport.compilation import part

NOTHING, ARRIVED, RUNG, MAY_BE_LOST, UNDECIDED = range(5)
"""What a step leads to: nothing to be told of, a parcel at its last node, an alarm, and two choices."""


@part
def post(state, s, direction, form, kind, epoch, number, at, delays, history):
    """Let a parcel wait to be handed over, which is done at the end of what happens now."""
    clock = state.clocks[s]
    parcel = state.outgoing[s, clock.outgoing]
    parcel.direction, parcel.form, parcel.kind, parcel.epoch = direction, form, kind, epoch
    parcel.number, parcel.at, parcel.delays, parcel.history = number, at, delays, history
    parcel.hop, parcel.place = 0, 0
    clock.outgoing += 1


@part
def hand_over(net, state, s):
    """Hand what waits for it to the way: after a processing delay, which is to be chosen if it matters."""
    clock = state.clocks[s]
    for i in range(clock.outgoing):
        parcel = state.outgoing[s, i]
        if net.processing_ns > 0:
            parcel.delays += 1
        if catches(net, clock, parcel.direction):
            state.undecided[s, clock.undecided] = parcel
            clock.undecided += 1
        else:
            state.current[s] = parcel
            release(net, state, s, net.processing_ns + parcel.place)
    clock.outgoing = 0


@part
def release(net, state, s, delay):
    """Let the current parcel enter its first hop so much later, but not before the one in front of it."""
    parcel, now = state.current[s], state.clocks[s].now
    direction = state.directions[s, parcel.direction]
    when = max(now + delay, direction.released)
    direction.released = when
    if when > now:
        enter(net, state, s, when, HANDED, 0)
    else:
        queue(net, state, s)


@part
def step(net, state, s):
    """Go on to the next entry; return what it leads to, with the parcel or alarm in `current`.

    One that MAY_BE_LOST goes on if `go_on` is called; one whose processing delay is UNDECIDED, if `release`
    is called with one of the delays of `catch`.
    """
    clock = state.clocks[s]
    if clock.undecided > 0:
        state.current[s] = state.undecided[s, 0]
        clock.undecided -= 1
        for i in range(clock.undecided):
            state.undecided[s, i] = state.undecided[s, i + 1]
        return UNDECIDED
    take_next(state, s)
    what, moved = state.current[s].what, False
    if what == ALARM:
        return RUNG
    if what == SENT:
        finish_sending(net, state, s, state.current[s].place)
        parcel = state.current[s]
        if net.losses[parcel.form, parcel.direction, parcel.hop] > 0.0:
            return MAY_BE_LOST
        moved = True
    elif what == ARRIVING:
        return arrive(net, state, s)
    elif what == HANDED:
        queue(net, state, s)
    elif what == FRAME:
        start_frame(net, state, s)
    elif what == ANSWER:
        moved = answer_frame(net, state, s)
    elif what == FRAME_END:
        moved = end_frame(net, state, s)
    return go_on(net, state, s) if moved else NOTHING


@part
def go_on(net, state, s):
    """Let the current parcel, which has been sent, go on to the end of its hop; return as `step` does."""
    parcel = state.current[s]
    delay = net.hops[parcel.direction, parcel.hop, 3]
    if delay > 0:
        enter(net, state, s, state.clocks[s].now + delay, ARRIVING, 0)
        return NOTHING
    return arrive(net, state, s)


@part
def arrive(net, state, s):
    """Let the current parcel arrive at the end of its hop."""
    parcel = state.current[s]
    parcel.hop += 1
    if parcel.hop == net.hop_counts[parcel.direction]:
        return ARRIVED
    queue(net, state, s)
    return NOTHING


@part
def queue(net, state, s):
    """Let the current parcel wait for its next medium; drop it if the buffer is full."""
    parcel = state.current[s]
    hop = net.hops[parcel.direction, parcel.hop]
    medium, port = hop[0], hop[1]
    length = state.lengths[s, port]
    if length - (state.media[s, medium].serving == port) >= hop[2]:
        return
    if length == state.queues.shape[2]:
        net.counters[0].too_small = 1
        return
    state.queues[s, port, length] = parcel
    state.lengths[s, port] = length + 1
    if medium == net.polled:
        wake(net, state, s, length == 0)
    elif state.media[s, medium].serving == NONE:
        state.media[s, medium].delays, state.media[s, medium].history = parcel.delays, parcel.history
        send_next(net, state, s, medium)


@part
def send_next(net, state, s, medium):
    """Begin with the next packet in turn."""
    own, count = state.media[s, medium], net.turns.shape[1]
    while count > 0 and net.turns[medium, count - 1] == NONE:
        count -= 1
    own.serving = NONE
    for i in range(count):
        place = (own.turn + i) % count
        port = net.turns[medium, place]
        if state.lengths[s, port] > 0:
            own.serving, own.turn = port, (place + 1) % count
            time = net.times[state.queues[s, port, 0].form, medium]
            enter(net, state, s, state.clocks[s].now + time, SENT, medium)
            return


@part
def finish_sending(net, state, s, medium):
    """Make the parcel that a medium has sent the current one; go on with the next one."""
    own = state.media[s, medium]
    state.current[s] = state.queues[s, own.serving, 0]
    parcel = state.current[s]
    parcel.delays, parcel.history = own.delays, own.history
    drop_first(state, s, own.serving)
    send_next(net, state, s, medium)


@part
def catch(net, clock, direction, number):
    """Return probability and length of the processing delay by which a segment catches the poll so numbered.

    Of a segment that waits for a poll only the poll matters; the probability is 0 behind the last one.
    """
    longest, cycle = 2 * net.processing_ns, cycle_of(net)
    chance = net.hops[direction, 0, 1] == net.turns[net.polled, 1]  # up: a slot after the downlink's turn
    due = clock.now - (clock.now - clock.anchor) % cycle + chance * net.slot_ns
    if due <= clock.now:
        due += cycle * ((clock.now - due) // cycle + 1)
    since = clock.now if number == 0 else due + (number - 1) * cycle
    until = min(due + number * cycle, clock.now + longest)
    if since >= until:
        return 0.0, 0
    return (until - since) / longest, (since + until) // 2 - clock.now
