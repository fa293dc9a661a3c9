"""The Bluetooth hop of a way: a central and one of its peripherals that take turns frame by frame.

A frame is a downlink packet or POLL, then an uplink packet or NULL; then the central spends some slots with
its other peripherals. Packets are fragments of segments; one that fails is sent again in the next frame,
which is noted in the histories of what waits for it. With nothing to send the central goes on polling: that
is not played, but it wakes in the middle of the idle visit in progress.
"""

from btqueue.network.request_reply.entries import drop_first, enter
from btqueue.network.request_reply.records import ANSWER, FRAME, FRAME_END, NONE
from btqueue.transport.compilation import part


@part
def cycle_of(net):
    """Return the time from one idle poll to the next."""
    return (2 + net.pause_slots) * net.slot_ns


@part
def catches(net, clock, direction):
    """Whether it matters only which poll is caught by a segment that is handed over now."""
    return net.processing_ns > 0 and net.hops[direction, 0, 0] == net.polled and clock.asleep


@part
def port_of(net, up):
    """Return the port of a direction."""
    return net.turns[net.polled, 1 if up else 0]


@part
def air_of(net, up):
    """Return the place, among the media, of the longest path to a direction."""
    return net.turns.shape[0] + (1 if up else 0)


@part
def waiting_slots(net, state, s, up):
    """Return the slots of the next fragment of a queue; 0 if there is none."""
    port = port_of(net, up)
    if state.lengths[s, port] == 0:
        return 0
    return net.slots[state.queues[s, port, 0].form, state.directions[s, 1 if up else 0].crossed]


@part
def wake(net, state, s, first):
    """The current parcel has come: go on with polling, in the middle of the idle visit in progress."""
    clock, parcel = state.clocks[s], state.current[s]
    cycle = cycle_of(net)
    if first:
        up = net.hops[parcel.direction, parcel.hop, 1] == port_of(net, True)
        air = state.media[s, air_of(net, up)]
        # Waiting for the poll absorbs a processing delay.
        air.delays = 0 if 2 * net.processing_ns <= cycle else parcel.delays
        air.history = parcel.history
    if not clock.asleep:
        return
    clock.asleep = False
    into = (clock.now - clock.anchor) % cycle
    start = clock.now - into
    clock.started = start
    if into < net.slot_ns:
        enter(net, state, s, start + net.slot_ns, ANSWER, 0)
    elif into < 2 * net.slot_ns:
        enter(net, state, s, start + 2 * net.slot_ns, FRAME_END, 0)
    else:
        enter(net, state, s, start + cycle, FRAME, 0)


@part
def start_frame(net, state, s):
    """Begin a frame, or fall asleep with nothing to send."""
    clock = state.clocks[s]
    slots = waiting_slots(net, state, s, False)
    if slots == 0 and waiting_slots(net, state, s, True) == 0:
        clock.asleep, clock.anchor = True, clock.now
        return
    clock.started = clock.now
    enter(net, state, s, clock.now + max(1, slots) * net.slot_ns, ANSWER, slots)


@part
def answer_frame(net, state, s):
    """The downlink half is over: the peripheral answers with what it had ready; then receive.

    Returns whether a segment is whole, which is the current parcel then.
    """
    down, slots = state.current[s].place, waiting_slots(net, state, s, True)
    enter(net, state, s, state.clocks[s].now + max(1, slots) * net.slot_ns, FRAME_END, slots)
    return down > 0 and cross(net, state, s, False, down + max(1, slots))


@part
def end_frame(net, state, s):
    """The frame is over: start the next one with what waits; then receive, as `answer_frame` does."""
    clock, whole = state.clocks[s], False
    if state.current[s].place > 0:
        whole = cross(net, state, s, True, (clock.now - clock.started) // net.slot_ns)
    if net.pause_slots > 0:
        enter(net, state, s, clock.now + net.pause_slots * net.slot_ns, FRAME, 0)
    else:
        start_frame(net, state, s)
    return whole


@part
def cross(net, state, s, up, frame_slots):
    """Take a fragment off its queue; return whether its segment, now the current parcel, is whole."""
    port, air, direction = port_of(net, up), air_of(net, up), state.directions[s, 1 if up else 0]
    state.current[s] = state.queues[s, port, 0]
    parcel = state.current[s]
    failing = net.failing[parcel.form, direction.crossed]
    if failing > 0.0:
        lengthen(net, state.media[s, air], failing, frame_slots + net.pause_slots)
    direction.crossed += 1
    if direction.crossed < net.fragments[parcel.form]:
        return False
    direction.crossed = 0
    drop_first(state, s, port)
    parcel.delays, parcel.history = state.media[s, air].delays, state.media[s, air].history
    return True


@part
def lengthen(net, air, failing, slots):
    """Add a radio packet to a history; one that fails is repeated in the next frame."""
    new, before = net.counters[0].histories, air.history
    if new == len(net.histories):
        net.counters[0].too_small = 1
        return
    history = net.histories[new]
    history.before, history.failing, history.slots = before, failing, slots
    history.repeated = net.histories[before].repeated + slots * failing / (1.0 - failing)
    air.history = new
    net.counters[0].histories = new + 1


def history_of(net, place: int) -> tuple[tuple[float, int], ...]:
    """Return probability to fail and slots of each radio packet of a history, in order."""
    found = []
    while place not in (0, NONE):
        history = net.histories[place]
        found.append((float(history["failing"]), int(history["slots"])))
        place = int(history["before"])
    return tuple(reversed(found))
