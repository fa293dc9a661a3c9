"""Moments: what will happen, in the order of time, queues of parcels, and copies of all."""

from btqueue.network.request_reply.records import ALARM
from btqueue.transport.compilation import part


@part
def enter(net, state, s, when, what, place):
    """Let this happen then, to the current parcel if to any."""
    clock = state.clocks[s]
    if clock.entries == state.entries.shape[1]:
        net.counters[0].too_small = 1
        return
    clock.order += 1
    state.entries[s, clock.entries] = state.current[s]
    entry = state.entries[s, clock.entries]
    entry.when, entry.order, entry.what, entry.place = when, clock.order, what, place
    clock.entries += 1


@part
def set_alarm(net, state, s, when, kind, epoch, flow):
    """Let an alarm ring then."""
    enter(net, state, s, when, ALARM, 0)
    entry = state.entries[s, state.clocks[s].entries - 1]
    entry.kind, entry.epoch, entry.direction = kind, epoch, flow


@part
def take_next(state, s):
    """Make the next entry the current one, and go on to its time."""
    clock, entries = state.clocks[s], state.entries[s]
    first = 0
    for i in range(1, clock.entries):
        if entries[i].when < entries[first].when or (
            entries[i].when == entries[first].when and entries[i].order < entries[first].order
        ):
            first = i
    state.current[s] = entries[first]
    clock.entries -= 1
    if first < clock.entries:
        entries[first] = entries[clock.entries]
    clock.now = state.current[s].when


@part
def drop_first(state, s, port):
    """Take the first parcel off a queue."""
    state.lengths[s, port] -= 1
    for i in range(state.lengths[s, port]):
        state.queues[s, port, i] = state.queues[s, port, i + 1]


@part
def copy(source, i, target, j):
    """Copy a moment, lists as far as they are filled."""
    target.clocks[j], target.sessions[j] = source.clocks[i], source.sessions[i]
    target.current[j], target.odds[j] = source.current[i], source.odds[i]
    for k in range(source.clocks[i].entries):
        target.entries[j, k] = source.entries[i, k]
    for k in range(source.clocks[i].undecided):
        target.undecided[j, k] = source.undecided[i, k]
    for port in range(source.lengths.shape[1]):
        target.lengths[j, port] = source.lengths[i, port]
        for k in range(source.lengths[i, port]):
            target.queues[j, port, k] = source.queues[i, port, k]
    for medium in range(source.media.shape[1]):
        target.media[j, medium] = source.media[i, medium]
    for flow in (0, 1):
        target.directions[j, flow], target.ends[j, flow] = source.directions[i, flow], source.ends[i, flow]
        target.senders[j, flow] = source.senders[i, flow]
        target.receivers[j, flow] = source.receivers[i, flow]
        for k in range(source.timed.shape[2]):
            target.timed[j, flow, k] = source.timed[i, flow, k]
            target.early[j, flow, k] = source.early[i, flow, k]
            target.left[j, flow, k] = source.left[i, flow, k]
        for k in range(min(source.senders[i, flow].sampled, source.samples.shape[2])):
            target.samples[j, flow, k] = source.samples[i, flow, k]
