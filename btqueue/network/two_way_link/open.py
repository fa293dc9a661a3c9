"""Connections that carry less than the link could: delays, acknowledgements and round trips.

1. The send buffer and the link are one queue beside its like in the other direction
   (`two_way_link.coupled_processors`), because TCP loses nothing here. Acknowledgements lengthen the segments
   beside them; where a window does not cover its way back, each segment with others behind it stalls the link
   (`two_way_link.window`).
2. A segment that arrives waits for its acknowledgement (`transport.delayed_ack`), unless the receiver has
   segments that wait for its own window: the acknowledgement lets one of them out, which carries the next.
3. Separate acknowledgements, in a number that follows from 2, slow the queue of 1: a fixed point.

Approximations: a window stays as it is for long against a queue's busy spells; segments wait at the sender
independently of those that wait for their acknowledgement.
"""

from math import ceil, exp
from typing import NamedTuple

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.network.two_way_link.air import Air, air_of
from btqueue.network.two_way_link.coupled_processors import Arrivals, CoupledQueue, Service, coupled_queue
from btqueue.network.two_way_link.greedy import ack_every, carries_acks
from btqueue.network.two_way_link.window import Cycle, both_ways, either, one_way, pairwise
from btqueue.scenario import Scenario
from btqueue.transport.delayed_ack import Acknowledgements, Receiver, acknowledgements
from btqueue.transport.vegas import LEAST_WINDOW

STEPS = 100
CLOSE = 1e-9
LEAST_PERIOD_S = 1e-9
"""Of a clock of acknowledgements; a shorter one makes no difference, and its law is lost in rounding."""


class Sources(NamedTuple):
    """Segments a second, and the mean number of segments that are written at once."""

    rate: float
    batch: float


class Cycles(NamedTuple):
    """The window's cycles with the other direction idle, with one segment, and with more to send."""

    idle: Cycle
    one: Cycle
    more: Cycle


class Free(NamedTuple):
    """A segment's time (s) through a link whose window lets it in: mean, part behind others, variance."""

    mean: float
    wait: float
    variance: float


class Operating(NamedTuple):
    """The fixed point for one window.

    Attributes:
        window: segments.
        queue: of one direction.
        cycles: of a sender that always has segments.
        acks: acknowledgements of a receiver that has no segments held back.
        blocked: share of the time in which a host has segments that its window holds back.
        held_back: share of the segments that meet a full window.
        separate: separate acknowledgements for each segment.
        carried: share of the acknowledgements that segments carry.
        at_once_s: mean time until a segment is delivered that has none before it and that the window lets in.
        stall_s: mean time for which the window keeps the link from beginning a segment.
        free: time of a segment until it is delivered that its window lets in.
    """

    window: int
    queue: CoupledQueue
    cycles: Cycles
    acks: Acknowledgements
    blocked: float
    held_back: float
    separate: float
    carried: float
    at_once_s: float
    stall_s: float
    free: Free
    residual: float
    iterations: int


def sources_of(scenario: Scenario) -> Sources:
    """Read rate and burstiness off a scenario.

    An interrupted Bernoulli process becomes Poisson batches that are geometric. Counted over long times its
    arrivals vary by C^2 times their mean, as those of batches of mean (C^2 + 1) / 2 do; the few slots that a
    burst takes to be written are neglected.
    """
    traffic = scenario.traffic
    messages = traffic.load_kbps * 125.0 / traffic.message_bytes
    return Sources(messages, max(0.5 * (traffic.scv + 1.0), 1.0) if traffic.source == "ibp" else 1.0)


def operating_points(scenario: Scenario) -> list[tuple[float, Operating]]:
    """Return the windows that a connection uses, each with its share of the time.

    Raises:
        Overloaded: if the link cannot carry the load.
    """
    transport, air = scenario.transport, air_of(scenario)
    if transport.variant != "vegas":
        return [(1.0, operating_point(scenario, air, transport.receive_window_segments))]
    windows = _resting_places(transport.alpha, transport.beta, transport.receive_window_segments)
    points = [operating_point(scenario, air, window) for window in windows]
    if len(points) == 1:
        return [(1.0, points[0])]
    held, count = points[0].held_back, len(points)
    lower = (1.0 - held) / count + held / (count - 1)
    return [(lower, at) for at in points[:-1]] + [((1.0 - held) / count, points[-1])]


def _resting_places(alpha: float, beta: float, largest: int) -> list[int]:
    """Return the windows between which Vegas does not choose when little is sent.

    A round trip in which one segment is sent counts nearly the whole window as excess: more than beta pushes
    cwnd down, less than alpha up, and between alpha + 1 and beta it rests where it is. That all whole windows
    there are equally likely, and that those above beta are never met by segments that are held back, as the
    slow acknowledgement at the end of a burst ends them, is assumed and not derived.
    """
    top = max(ceil(beta), int(LEAST_WINDOW))
    low = min(max(int(alpha) + 1, int(LEAST_WINDOW)), top)
    return sorted({min(window, largest) for window in range(low, top + 1)})


def operating_point(scenario: Scenario, air: Air, window: int) -> Operating:
    """Return the fixed point of separate acknowledgements and blocked time for one window.

    Raises:
        Overloaded: if the link cannot carry the load.
    """
    sources, transport = sources_of(scenario), scenario.transport
    every, two_way = ack_every(scenario), scenario.traffic.two_way
    carries = carries_acks(scenario)
    bursts = Arrivals(sources.rate / sources.batch, sources.batch)
    cycles = _cycles(air, window, every, carries)
    service = Service(air.alone(0.0), air.data.variance() * SLOT_S**2)
    followed, separate = 1.0 - 1.0 / sources.batch, 0.5 if every > 1 else 1.0
    blocked, iteration = 0.0, 0
    while True:
        iteration += 1
        # an acknowledgement slows those segments down that are behind the one that it answers
        service = service._replace(mean=air.alone(separate * followed))
        queue = coupled_queue(bursts, service, _speeds(air, service.mean, separate, cycles, two_way))
        followed = 1.0 - (1.0 - queue.busy) / sources.batch
        # in the air, without the stalls that come before a segment is let out
        served = service.mean / (1.0 + (service.mean / air.both(separate) - 1.0) * queue.neighbour_busy)
        receiver = Receiver(
            rate=sources.rate,
            gap=served,
            followed=followed,
            forward=bursts.rate,
            reverse=bursts.rate if carries else 0.0,
            period=max(transport.ack_delay_s, LEAST_PERIOD_S),
            clock=transport.ack_clock,
        )
        acks = acknowledgements(receiver, every)
        answer = 1.0 + (air.mean_packet - 1.0) * queue.neighbour_busy
        at_once = air.layers_s + _vacation(air, queue) + served - answer * SLOT_S
        free = free_passage(air, queue, sources, at_once, window)
        held = _to_be_acknowledged(air, acks, free, blocked, two_way) * sources.rate
        now = (
            _exceeds(np.array([queue.at_most(jobs) for jobs in range(window + 1)]), held) if carries else 0.0
        )
        alone, carried = _shares(acks, now)
        residual = abs(now - blocked) + abs(alone - separate)
        blocked, separate = now, alone
        if residual < CLOSE or iteration == STEPS:
            return Operating(
                window=window,
                queue=queue,
                cycles=cycles,
                acks=acks,
                blocked=blocked,
                held_back=_exceeds(_after_joining(queue, sources.batch, window), held),
                separate=separate,
                carried=carried,
                at_once_s=at_once,
                stall_s=queue.service - served,
                free=free,
                residual=residual,
                iterations=iteration,
            )


def _cycles(air: Air, window: int, every: int, carries: bool) -> Cycles:
    """Return the cycles of a window.

    One segment of the neighbour is in the way for half of its service, with the air to itself as the other
    side stalls. With more to send both ways a window that is acknowledged as a whole keeps one of two
    rhythms, each segment by the next one or in pairs, by what was under way when both became busy. That
    either is equally likely is assumed.
    """
    one = one_way(air, window, every, opposite=True, behind_s=0.5 * air.alone(0.0))
    more = both_ways(air, window) if carries else one_way(air, window, every, opposite=True)
    if carries and window == every:
        more = either(more, pairwise(air))
    return Cycles(one_way(air, window, every), one, more)


def _speeds(air: Air, alone_s: float, separate: float, cycles: Cycles, two_way: bool) -> np.ndarray:
    """Return the speed by the number of segments here and there, as `coupled_queue` takes it."""
    idle = alone_s / max(cycles.idle.period, alone_s)
    if not two_way:
        return np.array([[1.0], [1.0], [idle]])
    crowded = air.both(separate)
    beside = alone_s / crowded
    one = max(cycles.one.period, crowded)
    # while a full window stalls, the neighbour's one segment has the air to itself
    stalled = 1.0 - crowded / one
    return np.array(
        [
            [1.0, beside, beside],
            [1.0, beside, beside + (1.0 - beside) * stalled],
            [idle, alone_s / one, alone_s / cycles.more.period],
        ]
    )


def _vacation(air: Air, queue: CoupledQueue) -> float:
    """Mean time (s) until the frame is over in which a segment finds the direction idle: half of it."""
    idle = queue.states[0] / queue.states[0].sum()
    return float(idle[0] + 0.5 * (1.0 + air.mean_packet) * idle[1:].sum()) * SLOT_S


def free_passage(air: Air, queue: CoupledQueue, sources: Sources, at_once: float, window: int) -> Free:
    """Return the time of segments that find less than a window before them, in equal parts of the wait."""
    ahead = queue.number + sources.batch - 1.0
    each = queue.wait / ahead
    within = np.diff(_after_joining(queue, sources.batch, window))
    law = within / within.sum()
    places = np.arange(window)
    first, second = float(law @ places), float(law @ places**2)
    spread = air.data.variance(1.0 + (air.mean_packet - 1.0) * queue.neighbour_busy) * SLOT_S**2
    variance = spread * (1.0 + first) + each**2 * (second - first**2)
    return Free(at_once + first * each, first * each, variance)


def _after_joining(queue: CoupledQueue, batch: float, most: int) -> np.ndarray:
    """Chances that up to 0, 1, ... jobs are there just after one has joined, itself and its batch included.

    A random job of a geometric batch has a geometric place in it: with chance 1 / batch it is the first.
    """
    fits = np.zeros(most + 1)
    for jobs in range(1, most + 1):
        fits[jobs] = fits[jobs - 1] + (queue.at_most(jobs - 1) - fits[jobs - 1]) / batch
    return fits


def _to_be_acknowledged(air: Air, acks: Acknowledgements, free: Free, blocked: float, two_way: bool) -> float:
    """Mean time (s) from a segment's arrival until its acknowledgement is back, on a segment or alone."""
    own = free.wait if two_way else 0.0
    back = acks.piggybacked * free.mean + (1.0 - acks.piggybacked) * (air.return_s() + own)
    return acks.wait * (1.0 - blocked) + back


def _exceeds(fits: np.ndarray, held: float) -> float:
    """Probability that jobs and segments to be acknowledged exceed the window.

    Args:
        fits: chances of up to 0, 1, ..., window jobs.
        held: mean number to be acknowledged, taken as Poisson and independent of the jobs.
    """
    most = len(fits) - 1
    waiting = exp(-held) * np.cumprod(np.concatenate([[1.0], held / np.arange(1, most + 1)]))
    return 1.0 - float(waiting @ fits[::-1])


def _shares(acks: Acknowledgements, blocked: float) -> tuple[float, float]:
    """Return separate acknowledgements for each segment, and the share of all that segments carry.

    A receiver with segments held back acknowledges each arrival by one of them, others follow `acks`.
    """
    free = (1.0 - blocked) / acks.segments
    return free * (1.0 - acks.piggybacked), (blocked + free * acks.piggybacked) / (blocked + free)
