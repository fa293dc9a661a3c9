"""Invariants of every run of any scenario: conservation and Little's law."""

import numpy as np

from btqueue.simulator.bluetooth.sleep import settle_all
from btqueue.simulator.machinery.numba_cache import compiled, entry_point, outlined
from btqueue.simulator.records import run
from btqueue.simulator.records.arrays import State
from btqueue.simulator.records.conventions import NOTHING
from btqueue.simulator.records.nodes import QUEUE_KINDS

KINDS = f"(kinds: {', '.join(QUEUE_KINDS)})"
FLOW, QUEUE, LITTLE, PICONET, PACKETS, SEGMENTS, MESSAGES = range(1, 8)
RULES = {
    FLOW: "packets of flow {} are not conserved: {} is not {}",
    QUEUE: f"packets of queue {{}} are not conserved {KINDS}: {{}} is not {{}}",
    LITTLE: f"Little's law fails in queue {{}} {KINDS}: {{}} is not {{}}",
    PICONET: "piconet {} has a wrong count of its waiting packets: {} is not {}",
    PACKETS: "{1} packets are in use, but only {2} were found in the network",
    SEGMENTS: "{1} segments are in use, but only {2} were found in the network",
    MESSAGES: "{1} messages are in use, but only {2} were found in the network",
}
"""How each rule can be broken, for the number of a flow, queue or piconet and both sides of the rule."""


@compiled
def packets_lost(flow: np.recarray) -> np.ndarray:
    """Return the packets of each flow that were lost, by every cause."""
    return (
        flow.refused_at_token_buffer
        + flow.refused_at_baseband
        + flow.refused_at_node
        + flow.refused_on_the_way
        + flow.given_up
        + flow.lost_outside
    )


class InvariantViolated(RuntimeError):
    """The simulator's counts are inconsistent: do not use its numbers; report the scenario and the seed."""


def check_invariants(sim: State) -> list[np.ndarray]:
    """Bring the counts up to now and return the findings of `walk`, if counts and Little's law hold.

    For each flow: inside at the start + sent = delivered + lost (by every cause) + inside now. For each
    queue: inside at the start + offered = refused + served + inside now, and the area under the queue length
    is the sum of the times spent in the queue by packets served and packets still inside (whole nanoseconds,
    so equality is exact). Every central's count of waiting packets equals the packets in its queues. Every
    packet, segment and message in use is in some queue, line or list.

    Raises:
        InvariantViolated: a rule is broken.
    """
    flows, queues, segments, stars = map(sim.length, ("flow_statistics", "queues", "segments", "piconets"))
    found = [np.zeros(length, np.int64) for length in (flows, queues, segments, flows, stars, 4)]
    settle_and_check(sim, *found)
    broken = found[-1]
    if broken[0]:
        raise InvariantViolated(RULES[int(broken[0])].format(*broken[1:].tolist()))
    return found[:4]


@outlined
def walk(sim, packets, sojourn, segments, messages):
    """Write the packets, segments and messages inside the network into arrays of zeros.

    `packets` of each flow in some queue, shape (flows,), without ghosts: the far side has counted them, and
    their segments may be gone already; `sojourn`: time (ns) that the packets in each queue have spent there
    since the statistics began, shape (queues,); `segments`: 1 for each in a delay line, or with a packet in a
    queue, shape (segments,); `messages`: number of listed messages of each flow, shape (flows,).
    """
    clock = sim.clock[0]
    for index in range(len(sim.queues)):
        packet = sim.queues[index].head
        for _ in range(sim.queues[index].length):
            sojourn[index] += clock.now - max(sim.packets[packet].enqueued_at, clock.statistics_since)
            if not sim.packets[packet].ghost:
                segment = sim.packets[packet].segment
                packets[sim.segments[segment].flow] += 1
                segments[segment] = 1
            packet = sim.packets[packet].next
    for index in range(len(sim.lines)):
        segment = sim.lines[index].head
        for _ in range(sim.lines[index].length):
            segments[segment] = 1
            segment = sim.segments[segment].next
    for flow in range(len(sim.connections)):
        message = sim.connections[flow].message_head
        while message != NOTHING:
            messages[flow] += 1
            message = sim.messages[message].next


@entry_point
def settle_and_check(sim, packets, sojourn, segments, messages, waiting, broken):
    """Bring the counts up to now; write a broken rule, its flow, queue or piconet, and its sides to `broken`.

    All arrays are of zeros. `walk` writes to the arrays before `waiting`, which has an entry for each
    piconet.
    """
    clock = sim.clock[0]
    settle_all(sim, clock.now)
    walk(sim, packets, sojourn, segments, messages)
    for index in range(len(sim.flow_statistics)):
        flow = sim.flow_statistics[index]
        inside = flow.packets_delivered + packets_lost(flow) + packets[index]
        require(broken, FLOW, index, flow.inside_at_start + flow.packets_sent, inside)
    in_queues = 0
    for index in range(len(sim.queues)):
        count, length = sim.queue_statistics[index], sim.queues[index].length
        gone = count.refused + count.served + length
        require(broken, QUEUE, index, count.inside_at_start + count.offered, gone)
        area = count.area + length * (clock.now - count.changed_at)
        require(broken, LITTLE, index, area, count.sojourn + sojourn[index])
        in_queues += length
    for index in range(len(sim.ports)):
        if sim.ports[index].piconet != NOTHING:
            waiting[sim.ports[index].piconet] += sim.queues[index].length
    for index in range(len(waiting)):
        require(broken, PICONET, index, sim.piconets[index].waiting, waiting[index])
    require(broken, PACKETS, 0, len(sim.packets) - sim.pools[run.PACKETS].left, in_queues)
    require(broken, SEGMENTS, 0, len(sim.segments) - sim.pools[run.SEGMENTS].left, segments.sum())
    require(broken, MESSAGES, 0, len(sim.messages) - sim.pools[run.MESSAGES].left, messages.sum())


@compiled
def require(broken, rule, index, left, right):
    """Write down the rule unless both sides are equal, or another rule is written down."""
    if left != right and broken[0] == 0:
        broken[0], broken[1], broken[2], broken[3] = rule, index, left, right
