"""Backlogs that grow: is the offered load of a flow above its goodput?

Backlogs are counted `LOOKS` times, at equal steps of the measured time. A backlog counts as growing if the
mean of its increments in the later half of the run passes two bounds. The first is Student's quantile above
zero. The second is the growth of a queue at the edge of stability that began empty: it grows like the
absolute value of a Wiener process, which gains `EDGE` standard deviations in the later half of the run.
Increments of a stable queue are negatively correlated. Their variance, computed as for independent ones, is
too large, so that the test has fewer false alarms. The first half of a run, in which a network fills, does
not count.
"""

import math
from functools import lru_cache

import numpy as np

from btqueue.simulator.bluetooth.sleep import settle_all
from btqueue.simulator.machinery.numba_cache import outlined
from btqueue.simulator.records.arrays import State, plain
from btqueue.simulator.records.connections import GREEDY, NO_TRANSPORT
from btqueue.simulator.records.conventions import NEVER, NOTHING, SECOND, UNLIMITED
from btqueue.simulator.statistics.student import student_quantile
from btqueue.simulator.tcp.stream import position

LOOKS = 16
"""Steps of the measured time; backlogs are counted after each."""
FALSE_ALARM = 1e-3
"""Probability that a run whose queues are all stable is called overloaded, at most."""
EDGE = 2 / math.sqrt(math.pi) * (1 - math.sqrt(0.5))
"""Mean of |W(T)| - |W(T/2)| for a Wiener process W, in standard deviations of W(T/2)."""
LEAST_GROWTH = 10.0
"""Segments, or packets, below which a mean growth in the later half of a run is ignored: too few to tell."""


def plan_looks(sim: State, begin: int, end_s: float) -> None:
    """Let a measurement begin at time `begin` (ns), with `LOOKS` looks until `end_s`, at equal steps.

    `advance` takes them, the first one when it begins, which may be now.
    """
    plain(sim.clock)["look"] = 0
    sim.looks[:] = look_times(begin, end_s)


def plan_second_half(sim: State, begin: int, end_s: float) -> None:
    """Let a measurement whose end has come go on for as long, to `end_s`; every second look stays."""
    plain(sim.clock)["look"] = LOOKS // 2 + 1
    sim.looks[:] = look_times(begin, end_s)
    sim.seen[: LOOKS // 2 + 1] = sim.seen[::2].copy()
    sim.halfway[:] = sim.flow_statistics


@lru_cache(maxsize=16)  # the replications of a run have them in common
def look_times(begin: int, end_s: float) -> np.ndarray:
    """Return the times of looks (ns), and NEVER behind them."""
    begin_s = begin / SECOND
    step_s = (end_s - begin_s) / LOOKS
    times_s = [*(number * step_s + begin_s for number in range(1, LOOKS)), end_s]
    return np.array([begin, *(round(time_s * SECOND) for time_s in times_s), NEVER])


@outlined
def take_looks(sim):
    """Take the looks that are due now: begin to measure, count backlogs, remember the middle."""
    clock = sim.clock[0]
    while sim.looks[clock.look] == clock.now:
        if clock.look == 0:
            forget_statistics(sim)
        elif 2 * clock.look == LOOKS:
            sim.halfway[:] = sim.flow_statistics
        count_waiting(sim, sim.seen[clock.look])
        clock.look += 1


@outlined
def forget_statistics(sim):
    """Start measuring now (end of the warm-up): clear every count, keep the packets inside the network."""
    clock = sim.clock[0]
    settle_all(sim, clock.now)
    clock.statistics_since = clock.now
    clock.pause_at -= clock.events
    clock.events = 0
    sim.halfway[:] = sim.flow_statistics
    sim.flow_statistics[:] = 0
    for flow in range(len(sim.connections)):
        before = sim.halfway[flow]
        sim.flow_statistics[flow].finished_before = before.finished_before + before.segments_finished
    sim.queue_statistics[:] = 0
    for index in range(len(sim.queues)):
        queue = sim.queues[index]
        sim.queue_statistics[index].inside_at_start = queue.length
        sim.queue_statistics[index].changed_at = clock.now
        packet = queue.head
        for _ in range(queue.length):
            if not sim.packets[packet].ghost:
                sim.flow_statistics[sim.segments[sim.packets[packet].segment].flow].inside_at_start += 1
            packet = sim.packets[packet].next
    for index in range(len(sim.piconets)):
        sim.piconets[index].visits = 0
        sim.piconets[index].voice_repeated = 0
    for index in range(len(sim.links)):
        sim.links[index].visits = 0
        sim.links[index].data_slots = 0
    for index in range(len(sim.le_links)):
        link = sim.le_links[index]
        link.events = link.missed = link.taken = link.exchanged = link.disconnections = 0
        link.on_air = link.wakes = link.sent = link.heard = link.spaces = 0
    sim.rtt_histogram[:] = 0
    sim.delay_histogram[:] = 0


@outlined
def count_waiting(sim, found):
    """Write the present unlimited backlogs to `found`, shape (flows + kinds,), in segments and in packets.

    For each flow the segments in its send buffer that have never been sent and, without a transport protocol
    that waits for answers, its segments inside the network; 0 for a source that waits for acknowledgements.
    For each kind of queue the packets in queues without a limit.
    """
    flows = len(sim.connections)
    for flow in range(flows):
        conn = sim.connections[flow]
        found[flow] = 0
        if conn.application != GREEDY and conn.session == NOTHING:
            unsent = conn.written - position(conn, sim.starts[flow], conn.snd_max)
            found[flow] = (unsent + conn.unit - 1) // conn.unit
        if conn.protocol == NO_TRANSPORT:
            statistics = sim.flow_statistics[flow]
            found[flow] += conn.snd_max - statistics.finished_before - statistics.segments_finished
    for kind in range(flows, len(found)):
        found[kind] = 0
    for index in range(len(sim.queues)):
        queue = sim.queues[index]
        if queue.limit >= UNLIMITED:
            found[flows + queue.kind] += queue.length


def is_growing(backlogs: np.ndarray) -> np.ndarray:
    """Return which backlogs grow with the run.

    Args:
        backlogs: counts at the looks of independent runs, shape (runs, looks, backlogs).

    Returns:
        Shape (backlogs,); no for all with fewer than two increments.
    """
    runs, looks, count = backlogs.shape
    increments = np.diff(backlogs[:, looks // 2 :], axis=1)
    number = runs * increments.shape[1]
    if number < 2:
        return np.zeros(count, bool)
    values = increments.reshape(number, count)
    mean, deviation = values.mean(axis=0), values.std(axis=0, ddof=1)
    threshold = student_quantile(number - 1, 1.0 - FALSE_ALARM / count) + EDGE * math.sqrt(runs)
    grows = mean * math.sqrt(number) > threshold * deviation
    return grows & (mean * increments.shape[1] >= LEAST_GROWTH)
