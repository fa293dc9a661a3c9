"""Connections that carry less than the link could: delays, acknowledgements and round trips.

1. The send buffer and the link are one queue (`two_way_link.queue`), because TCP loses nothing here; where
   the window is full the link serves slower, by the cycle of the window (`two_way_link.window`).
2. A segment that arrives waits for its acknowledgement (`transport.delayed_ack`), unless the receiver has
   segments that wait for its own window: the acknowledgement lets one of them out, which carries the next.
3. Separate acknowledgements are jobs of the link, in a number that follows from 2: a fixed point.

Approximations: segments arrive at the receiver as memoryless as they were written; Vegas's window is on
either side of beta half of the time; segments wait at the sender independently of those that wait for their
acknowledgement; the window slows the link only while it holds segments back.
"""

from math import ceil, exp
from typing import NamedTuple

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.network.two_way_link.air import Air
from btqueue.network.two_way_link.greedy import Saturated, ack_every, carries_acks
from btqueue.network.two_way_link.jobs import BURSTY, Jobs
from btqueue.network.two_way_link.queue import LinkQueue, link_queue
from btqueue.network.two_way_link.window import both_ways, one_way
from btqueue.scenario import Scenario
from btqueue.transport.delayed_ack import AckCycle, ack_cycle, in_bursts
from btqueue.transport.vegas import LEAST_WINDOW

STEPS = 25
CLOSE = 1e-3


class Sources(NamedTuple):
    """Segments a second, and the mean number of segments that are written at once."""

    rate: float
    batch: float


class Operating(NamedTuple):
    """The fixed point: the queue, acknowledgements of a connection whose window is not full, and shares.

    Attributes:
        lone: acknowledgements of a segment that no other of its burst follows.
        blocked: share of the time in which a host has segments that its window holds back.
        held_back: share of the segments that meet a full window.
        separate: separate acknowledgements for each segment.
        carried: share of the acknowledgements that segments carry.
        delay_s: mean time of a segment until it is delivered.
    """

    queue: LinkQueue
    cycle: AckCycle
    lone: AckCycle
    blocked: float
    held_back: float
    separate: float
    carried: float
    delay_s: float
    window: dict[int, float]
    residual: float
    iterations: int


def sources_of(scenario: Scenario) -> Sources:
    """Read rate and burstiness off a scenario.

    Active slots of an interrupted Bernoulli process follow each other with probability 1 - p, so that its
    arrivals are geometric batches of mean 1/p with geometric gaps.
    """
    traffic, mss = scenario.traffic, scenario.transport.mss_bytes
    messages = traffic.load_kbps * 125.0 / traffic.message_bytes
    if traffic.source != "ibp":
        return Sources(messages * ceil(traffic.message_bytes / mss), ceil(traffic.message_bytes / mss))
    share = messages * SLOT_S
    stop = (1.0 - share) * 2.0 * (1.0 - share) / (traffic.scv + 1.0 - share)
    return Sources(messages, 1.0 / min(stop, 1.0))


def operating_point(scenario: Scenario, full: Saturated) -> Operating:
    """Return the fixed point of separate acknowledgements and blocked time.

    Raises:
        Overloaded: if the link cannot carry the load.
    """
    air, sources, transport = full.air, sources_of(scenario), scenario.transport
    every, two_way = ack_every(scenario), scenario.traffic.two_way
    carries = carries_acks(scenario)
    period, clock = transport.ack_delay_s, transport.ack_clock
    bursts = sources.rate / sources.batch
    lone = ack_cycle(bursts, bursts if carries else 0.0, period, clock, every)
    follows = 1.0 - 1.0 / sources.batch if every > 1 else 0.0
    cycle = in_bursts(lone, follows, air.alone(0.0))
    blocked, separate, residual = 0.0, cycle.separate, 1.0
    iteration, window = 0, _windows(scenario, full)
    while residual >= CLOSE and iteration < STEPS:
        iteration += 1
        queue = _queue(air, sources, separate, two_way, window, every, carries)
        delay = _delay(air, queue, sources, separate)
        free = free_passage(air, queue, delay, window)
        own = free.wait if two_way else 0.0
        held = (
            cycle.wait_of_a_segment * (1.0 - blocked) + _way_back(air, cycle, free.mean, own)
        ) * sources.rate
        now = _blocked(queue.present, window, held)
        full_window = _blocked(queue.joined[1:], window, held)
        alone, _ = _acknowledgements(cycle, now if carries else 0.0, full_window, every)
        residual = abs(now - blocked) + abs(alone - separate)
        blocked, separate = 0.5 * (blocked + now), 0.5 * (separate + alone)
    carried = _acknowledgements(cycle, blocked if carries else 0.0, full_window, every)[1]
    return Operating(
        queue, cycle, lone, blocked, full_window, separate, carried, delay, window, residual, iteration
    )


def _acknowledgements(cycle: AckCycle, blocked: float, held_back: float, every: int) -> tuple[float, float]:
    """Return separate acknowledgements for each segment, and the share of all that segments carry.

    A receiver with segments held back acknowledges each arrival by one of them; others follow `cycle`, or
    where segments come at the heels of each other every so many of them.
    """
    free = (1.0 - blocked) * (1.0 - held_back) / cycle.segments
    at_heels = (1.0 - blocked) * held_back / every
    carried = blocked + free * cycle.piggybacked
    return free * (1.0 - cycle.piggybacked) + at_heels, carried / (blocked + free + at_heels)


def _windows(scenario: Scenario, full: Saturated) -> dict[int, float]:
    """Return the law of the window, which is on either side of Vegas's beta half of the time.

    A round trip in which little is sent counts nearly the whole window as excess, which pushes cwnd down
    until it is below beta; below its old threshold slow start begins again and pushes it up. That the shares
    are equal is not derived: simulated windows average 2.8 to 3.2 at beta 3.
    """
    if full.walk is None:
        return full.windows
    largest, beta = scenario.transport.receive_window_segments, scenario.transport.beta
    law: dict[int, float] = {}
    for size in (ceil(beta) - 1, ceil(beta)):
        whole = min(int(max(size, LEAST_WINDOW)), largest)
        law[whole] = law.get(whole, 0.0) + 0.5
    return law


def _queue(
    air: Air,
    sources: Sources,
    separate: float,
    two_way: bool,
    window: dict[int, float],
    every: int,
    carries: bool,
) -> LinkQueue:
    """Return the queue of data's direction; of one-way data the other carries the acknowledgements."""
    share = separate / (1.0 + separate)
    data, ack = air.data.packets, air.ack.packets
    per_slot = sources.rate * SLOT_S
    typical = max(1, min(w for w, share in window.items() if share > 0.0))
    lone = _speed(air.alone(separate), {w: (one_way(air, w, every).period, s) for w, s in window.items()})
    if not two_way:
        acks = Jobs(per_slot * separate, 1.0, ack, (), 0.0)
        jobs = Jobs(per_slot / sources.batch, sources.batch, data, (), 0.0)
        return link_queue(jobs, acks, window=typical, slowed=(lone, lone))
    # acknowledgements come one by one: with them a geometric batch of the same factorial moment is shorter
    batch = 1.0 + (1.0 - share) * (sources.batch - 1.0)
    jobs = Jobs(per_slot * (1.0 + separate) / batch, batch, data, ack, share)
    crowd = 1.0
    if carries:
        crowd = _speed(air.both(0.0), {w: (both_ways(air, w).period, s) for w, s in window.items()})
    queue = link_queue(jobs, jobs, window=typical, slowed=(lone, crowd))
    # a job waits for the work that its batch finds, and for those before it in the batch
    found = queue.wait - (batch - 1.0) * jobs.frames * queue.frame
    return queue._replace(wait=found + (sources.batch - 1.0) * air.data.frames * queue.frame)


def _speed(least: float, periods: dict[int, tuple[float, float]]) -> float:
    """Share of the link's speed that the windows leave to a connection that always has segments."""
    return min(1.0, least / sum(period * share for period, share in periods.values()))


def _delay(air: Air, queue: LinkQueue, sources: Sources, separate: float) -> float:
    """Mean time (s) of a segment from TCP to TCP: layers, wait, own frames but for the last answer."""
    answer = 1.0 + (air.mean_packet - 1.0) * queue.neighbour_busy
    return air.layers_s + (queue.wait + air.data.frames * queue.frame - answer) * SLOT_S


def _way_back(air: Air, cycle: AckCycle, through: float, own: float) -> float:
    """Mean time (s) of an acknowledgement on its way, on a segment or, after ``own`` data, alone."""
    return cycle.piggybacked * through + (1.0 - cycle.piggybacked) * (air.return_s() + own)


def _blocked(present: np.ndarray, window: dict[int, float], held: float) -> float:
    """Probability that segments are held back: those present and those to be acknowledged exceed the window.

    The number to be acknowledged is taken as Poisson with mean ``held``, independent of those present.
    """
    most = max(window)
    waiting = exp(-held) * np.cumprod(np.concatenate([[1.0], held / np.arange(1, most + 1)]))
    fits = np.cumsum(present)
    total = 0.0
    for size, share in window.items():
        free = sum(waiting[n] * fits[min(size - n, len(fits) - 1)] for n in range(size + 1))
        total += share * (1.0 - free)
    return float(np.clip(total, 0.0, 1.0))


class Free(NamedTuple):
    """A segment's time (s) through a link whose window lets it in: mean, part behind others, variance."""

    mean: float
    wait: float
    variance: float


def free_passage(air: Air, queue: LinkQueue, delay: float, window: dict[int, float]) -> Free:
    """Return the time of segments that find less than a window before them, in equal parts of the wait."""
    joined = queue.joined[1:]
    mean_ahead = float(joined @ np.arange(len(joined)))
    # in a burst the wait of all is that of data, which are before more than `joined` tells
    longest = air.data.frames * queue.frame * SLOT_S
    each = min(queue.wait * SLOT_S / mean_ahead, longest) if mean_ahead > 0 else 0.0
    first = second = 0.0
    for size, share in window.items():
        law = joined[:size] / joined[:size].sum()
        first += share * float(law @ np.arange(len(law)))
        second += share * float(law @ np.arange(len(law)) ** 2)
    spread = air.data.variance(1.0 + (air.mean_packet - 1.0) * queue.neighbour_busy) * SLOT_S**2
    variance = spread * (1.0 + first) + each**2 * (second - first**2)
    return Free(delay - queue.wait * SLOT_S + first * each, first * each, variance)


def burstiness_warning(sources: Sources) -> list[str]:
    """Return a warning where the neighbour's queue is only on or off."""
    if sources.batch <= BURSTY:
        return []
    return ["bursts: the other direction is modelled as on or off, delays are then up to 30 % short"]
