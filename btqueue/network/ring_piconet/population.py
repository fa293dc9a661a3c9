"""A ring followed with a constant number of segments inside, for ever larger numbers.

What `btqueue.network.scatternet.server` needs to know of a network is its throughput X(k) with k segments
inside, each replaced at once when it leaves, by one of a random flow (Norton's theorem of queueing networks).
"""

from math import inf

import numpy as np

from btqueue.network.ring_piconet.air import fill, play
from btqueue.network.ring_piconet.network import RingNetwork
from btqueue.network.ring_piconet.records import UNBOUNDED, State, at_rest, rules_of
from btqueue.network.scatternet.server import Level, Population

SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
"""Segments in the network at which it is followed."""
PAUSE_PERIODS = 2
"""Longest pause of a source, in polling cycles of the idle ring."""
SETTLING_ROUND_TRIPS = 5
SAMPLES = 600
"""Round trips measured for each population."""
GROUP = 6
"""Neighbouring samples that are replaced by their mean."""
FULL = 0.01
"""Growth of the throughput below which larger populations are no faster."""
PLACES = 64
"""Places that a queue begins with."""


def populations(net: RingNetwork, window: int) -> Population:
    """Follow the ring with ever more segments inside, until it is no faster or the windows are full."""
    largest = net.flows * window
    levels: list[Level] = []
    for size in [size for size in SIZES if size < largest] + [largest]:
        levels.append(follow_level(net, size, window, net.flows))
        if size > 2 * net.flows and levels[-1].throughput < (1 + FULL) * levels[-2].throughput:
            break
    return Population(tuple(levels), 1.0 / net.idle_period_s, largest)


def alone_with(net: RingNetwork, most: int) -> list[Level]:
    """Follow a lone connection with 1 to `most` segments in flight."""
    return [follow_level(net, size, size, 1) for size in range(1, most + 1)]


def follow_level(net: RingNetwork, size: int, window: int, active: int) -> Level:
    """Follow the ring with `size` segments in flight, of the first `active` flows, none of them ever lost.

    Before a segment goes, its source pauses for up to two polling cycles of the idle ring. Without that a
    lone segment would always find the central at the same place, and several would keep their distance.
    """
    ring = net.without_limits().ring
    rules = rules_of(ring, active, window, PAUSE_PERIODS * net.idle_period_s)
    places = PLACES
    while True:
        state = at_rest(ring, window, places, SAMPLES)
        found = _measured(state, rules, size)
        if found is not None:
            return found
        places *= 4


def _measured(state: State, rules: tuple, size: int) -> Level | None:
    """Let the pool settle and measure it; None if the queues have too few places."""
    clock = state.clock[0]
    fill(state, rules, size)
    if not clock.too_small:
        play(state, rules, UNBOUNDED, SETTLING_ROUND_TRIPS * size, inf)
    settled, start, cycles = int(clock.round_trips), float(clock.now), int(clock.cycles)
    if not clock.too_small:
        play(state, rules, UNBOUNDED, settled + SAMPLES, inf)
    if clock.too_small:
        return None
    elapsed, count = float(clock.now) - start, int(clock.round_trips) - settled
    rtts = np.sort(state.rtts).reshape(-1, GROUP).mean(axis=1)
    return Level(rtts.mean() * count / elapsed, count / elapsed, (int(clock.cycles) - cycles) / elapsed, rtts)
