"""A delay line: segments that take time in a host's layers or on a cable, and keep their order.

A segment first takes a fixed delay, then passes two servers in a row (each takes one segment in a fixed
interval: the processing of two layers), then takes a random delay; it never overtakes the segment in front.
The time of leaving is known when it enters (Lindley's recursion for a tandem), so one timer for the oldest
segment is enough.

A segment goes up at its last node through another delay line, where the layers of that node take time.
"""

from btqueue.simulator.machinery.numba_cache import compiled
from btqueue.simulator.machinery.random_streams import exponential, uniform
from btqueue.simulator.machinery.timers import later, schedule
from btqueue.simulator.records.conventions import NOTHING


@compiled
def enter(sim, line, segment, now):
    """Append the segment and compute when it will be released (ns)."""
    record = sim.lines[line]
    record.free_1 = later(max(now + record.delay, record.free_1), record.interval_1)
    record.free_2 = later(max(record.free_1, record.free_2), record.interval_2)
    jitter = draw_jitter(sim.streams[record.stream], record)
    record.last_release = max(record.last_release, later(record.free_2, jitter))
    sim.segments[segment].release_at = record.last_release
    sim.segments[segment].next = NOTHING
    if record.length == 0:
        record.head = segment
        schedule(sim, record.timer, record.last_release)
    else:
        sim.segments[record.tail].next = segment
    record.tail = segment
    record.length += 1


@compiled
def draw_jitter(stream, record):
    """Draw the random part of the delay (ns): exponential with mean `jitter`, or uniform up to it."""
    if record.jitter == 0:
        return 0
    if record.exponential:
        return int(exponential(stream, record.jitter))
    return int(uniform(stream) * record.jitter)


@compiled
def release(sim, line, now):
    """Remove the oldest segment, which is due now, and return its index; set the timer for the next one."""
    record = sim.lines[line]
    segment = record.head
    record.head = sim.segments[segment].next
    record.length -= 1
    if record.length > 0:
        schedule(sim, record.timer, sim.segments[record.head].release_at)
    return segment


@compiled
def on_segment_crossed(sim, index, now):
    """Hand the segment to the layers of its last node, or let it enter the next port."""
    segment = sim.segments[index]
    segment.hop += 1
    if sim.routes[segment.hop] != NOTHING:
        sim.clock[0].entering = index
        return
    conn = sim.connections[segment.flow]
    inbox = sim.nodes[conn.source if segment.backward else conn.destination].inbox
    if inbox == NOTHING:
        sim.clock[0].arrived = index
    else:
        enter(sim, inbox, index, now)
