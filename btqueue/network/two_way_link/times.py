"""Laws of message delays and round trips below saturation, from the operating point of a window."""

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.network.mixtures import Part, Vector
from btqueue.network.two_way_link.air import Air
from btqueue.network.two_way_link.greedy import ack_every, carries_acks
from btqueue.network.two_way_link.open import Operating, sources_of
from btqueue.scenario import Scenario


def delay_parts(scenario: Scenario, air: Air, at: Operating) -> list[Part]:
    """Return the law of the time from writing a segment until it is delivered.

    A segment finds none, one, or more before it; each of them, the first partly served, takes the same part
    of the mean wait. What is beyond two is geometric.
    """
    queue, batch = at.queue, sources_of(scenario).batch
    spread = air.data.variance(1.0 + (air.mean_packet - 1.0) * queue.neighbour_busy) * SLOT_S**2
    least = air.layers_s + (air.data.least() - 1.0) * SLOT_S
    ahead = queue.number + batch - 1.0
    each = queue.wait / ahead
    none = queue.at_most(0) / batch
    one = (queue.at_most(1) - none) / batch
    more = 1.0 - none - one
    many = max((ahead - one) / more, 2.0)
    parts = []
    for weight, number, varies in (
        (none, 0.0, 0.0),
        (one, 1.0, 1.0 / 12.0),
        (more, many, (many - 2.0) * (many - 1.0)),
    ):
        mean = at.at_once_s + at.stall_s + number * each
        parts.append((weight, least, mean, (1.0 + number) * spread + each**2 * varies))
    return parts


def round_trip_parts(scenario: Scenario, air: Air, at: Operating) -> list[Part]:
    """Return the law of the round-trip samples of a window, one for each acknowledgement.

    Where the window holds a segment back and others follow it, samples are those of the window's cycles; else
    the way forth, the wait of an acknowledgement's first segment, and the way back, on a segment or alone.
    """
    two_way, carries = scenario.traffic.two_way, carries_acks(scenario)
    followed, held = at.acks.followed, _first_held_back(at)
    parts = _full(at, followed * held, ack_every(scenario), carries)
    released = _released(at, ack_every(scenario), carries)
    spread = at.free.variance
    swift = air.layers_s + (air.data.least() - 1.0) * SLOT_S
    swift_ack = air.layers_s + (air.ack.least() - 1.0) * SLOT_S
    ack_spread = spread + air.ack.variance() * SLOT_S**2
    for share, forth, law in (
        (followed * (1.0 - held), at.free.mean, at.acks.behind),
        ((1.0 - followed) * (1.0 - held), at.free.mean, at.acks.last),
        ((1.0 - followed) * held, released, at.acks.last),
    ):
        parts.append((at.blocked * share, 2.0 * swift, forth + released, 2.0 * spread))
        weight = (1.0 - at.blocked) * share / at.acks.segments
        own = _left(at, law.times) if two_way else 0.0
        data = forth + law.times + at.at_once_s + own
        ack = forth + law.times + air.return_s() + own
        parts.append((weight * law.carried, 2.0 * swift + law.times, data, 2.0 * spread))
        parts.append((weight * law.alone, swift + swift_ack + law.times, ack, ack_spread))
    return parts


def _first_held_back(at: Operating) -> float:
    """Chance that the first segment of an acknowledgement met a full window.

    One that does waits for the acknowledgement of a pair. Behind an even window it begins the next pair, so
    that a pair's first is held back if either was; behind an odd one it ends a pair, and both must be.
    """
    if at.window % 2:
        return at.held_back**at.acks.segments
    return 1.0 - (1.0 - at.held_back) ** at.acks.segments


def _released(at: Operating, every: int, carries: bool) -> float:
    """Mean time (s) of a segment that an acknowledgement lets out, behind the rest of its window.

    If data carry acknowledgements, half of the rest is on its way back.
    """
    rest = 0.5 * (at.window - 2) if carries else at.window - every
    return at.at_once_s + max(rest, 0.0) * at.queue.service


def _left(at: Operating, waits: Vector) -> Vector:
    """Mean time (s) that an acknowledgement or what carries it waits for the receiver's own segments.

    The receiver has written nothing since the wait began, or it would have ended then: what it had to send at
    that time, with an exponential tail, has been drained meanwhile.
    """
    mean = max(at.free.wait, 1e-12)
    return mean * np.exp(-waits * at.queue.busy / mean)


def _full(at: Operating, weight: float, every: int, carries: bool) -> list[Part]:
    """Return the samples of full windows, by what the other direction has to send."""
    shares = at.queue.states[2] / at.queue.states[2].sum()
    cycles = list(zip(shares, at.cycles, strict=False))
    served = sum(share / cycle.period for share, cycle in cycles)
    parts = []
    for place, (share, cycle) in enumerate(cycles):
        acks = 1.0 if carries and place == 2 else 1.0 / every
        parts.append((weight * acks * share / cycle.period / served, cycle.least, cycle.rtt, cycle.variance))
    return parts
