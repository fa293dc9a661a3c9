"""Laws of message delays and round trips below saturation, from the operating point."""

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.network.two_way_link.air import Air
from btqueue.network.two_way_link.greedy import Saturated, ack_every, carries_acks
from btqueue.network.two_way_link.laws import Mixture, mixture
from btqueue.network.two_way_link.open import Operating, free_passage, sources_of
from btqueue.network.two_way_link.window import both_ways, one_way
from btqueue.scenario import Scenario

WAITS = 24
"""Points that stand for the law of the wait for an acknowledgement."""


def delay_law(air: Air, at: Operating) -> Mixture:
    """Return the law of the time from writing a segment until it is delivered.

    A segment that joins as the n-th waits for n - 1 others, of which the first is partly served, and itself;
    the means are scaled to the exact one.
    """
    frames = air.data.frames * at.queue.frame * SLOT_S
    spread = air.data.variance(air.mean_packet * at.queue.neighbour_busy + 1.0) * SLOT_S**2
    law = at.queue.joined[1:]
    number = np.arange(len(law))
    keep = law > 1e-9 * law.max()
    if keep.sum() > 400:  # long queues: every so many places stand for their neighbours
        edges = np.linspace(0, len(law), 400).astype(int)
        law = np.add.reduceat(law, edges[:-1])
        number = 0.5 * (edges[:-1] + edges[1:] - 1)
        keep = law > 0
    law, number = law[keep] / law[keep].sum(), number[keep]
    fixed = at.delay_s - at.queue.wait * SLOT_S
    mean_ahead = float(law @ number)
    ahead = number * (at.queue.wait * SLOT_S / mean_ahead if mean_ahead > 0 else 0.0)
    least = np.full(len(law), air.layers_s + (air.data.least() - 1.0) * SLOT_S)
    variances = (1.0 + number) * spread + np.where(number > 0, frames**2 / 12.0, 0.0)
    return Mixture(law, least, np.asarray(fixed + ahead, float), np.asarray(variances, float))


def round_trips(scenario: Scenario, saturated_as: Saturated, at: Operating) -> Mixture:
    """Return the law of the round-trip samples, one for each acknowledgement.

    Where the window is full samples are those of its cycle; else the way forth, the wait of the first segment
    of an acknowledgement, and the way back, on a segment or alone.
    """
    air, every = saturated_as.air, ack_every(scenario)
    carries = carries_acks(scenario)
    free = free_passage(air, at.queue, at.delay_s, at.window)
    forth, spread = free.mean, free.variance
    alone_s = air.return_s() + (free.wait if scenario.traffic.two_way else 0.0)
    swift = air.layers_s + (air.data.least() - 1.0) * SLOT_S
    swift_ack = air.layers_s + (air.ack.least() - 1.0) * SLOT_S
    # a full window is acknowledged every so many segments, or both ways each by the next one
    share = (1.0 - at.held_back) / at.cycle.segments
    parts = []
    ack_spread = spread + air.ack.variance() * SLOT_S**2
    for chance, wait, carried in _waits(scenario, air, at):
        both, own = chance * share * carried, chance * share * (1.0 - carried)
        parts.append((both, 2.0 * swift + wait, 2.0 * forth + wait, 2.0 * spread))
        parts.append((own, swift + swift_ack + wait, forth + wait + alone_s, ack_spread))
    crowded = at.queue.neighbour_busy if scenario.traffic.two_way else 0.0
    for size, weight in at.window.items():
        alone = one_way(air, size, every)
        parts.append(
            (at.held_back / every * weight * (1.0 - crowded), alone.least, alone.rtt, alone.variance)
        )
        other = both_ways(air, size) if carries else one_way(air, size, every, opposite=True)
        acks = 1.0 if carries else 1.0 / every
        parts.append((at.held_back * acks * weight * crowded, other.least, other.rtt, other.variance))
    return mixture([part for part in parts if part[0] > 0.0])


def _waits(scenario: Scenario, air: Air, at: Operating) -> list[tuple[float, float, float]]:
    """Return the law of the wait of a first segment: chance, wait (s), and share that data then carry.

    Another segment of its burst follows, or the clock or a burst ends the wait, whichever is first.
    """
    sources, transport = sources_of(scenario), scenario.transport
    if at.cycle.wait.mean == 0.0:
        return [(1.0, 0.0, 0.0)]
    follows = 1.0 - 1.0 / sources.batch
    rate = sources.rate / sources.batch * (2.0 if carries_acks(scenario) else 1.0)
    grid = np.linspace(0.0, transport.ack_delay_s, 2000)
    left = 1.0 - grid / transport.ack_delay_s if transport.ack_clock == "tick" else 1.0 * (grid < grid[-1])
    shares = (np.arange(WAITS) + 0.5) / WAITS
    found = np.interp(shares, 1.0 - np.exp(-rate * grid) * left, grid)
    found *= at.lone.wait.mean / found.mean()
    chance = (1.0 - follows) / WAITS
    return [(follows, air.alone(0.0), 0.0)] + [(chance, float(w), at.lone.piggybacked) for w in found]
