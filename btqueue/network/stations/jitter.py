"""Exponential random delays on wires that keep the order of segments (jitter).

A segment that its predecessor delays leaves with it, so that segments come to the next station in bunches,
wait there for each other, and are spread by its service before the next jitter. A window meets its own
bunches again.

Of 100 windows of 2 to 32 segments over two jitters and a station, simulated by Lindley's recursions, round
trips were 0.6 % off in the median where the station was used for up to 60 % of the time, and 1.0 % above; at
most 4.2 %. The wait for the slowest station is known to a third.
"""

from __future__ import annotations

from math import exp, pi, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, spence

from btqueue.network.stations.acknowledgements import NEARLY

Vector = NDArray[np.float64]

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
"""Points and weights of means over an interval from -1 to 1."""
ROUNDS = 4
"""Times that the bunches of a window go round until they have settled."""


class Line(NamedTuple):
    """A jitter on the round trip of a flow, and the way from it to the next one.

    Attributes:
        back, stop: whether acknowledgements pass it, and its place on their way.
        mean_s: its mean (s).
        own: rate of the flow's packets (1/s).
        others: rate of the packets of other flows (1/s).
        each_s: longest service of a packet of the flow on the way to the next jitter (s).
        slowest: whether the slowest station of the round trip is on this way.
        next_s: mean of the next jitter (s).
    """

    back: int
    stop: int
    mean_s: float
    own: float
    others: float
    each_s: float
    slowest: bool
    next_s: float


def held_back(
    lines: list[Line], meets: float, *, window: bool, regular: float = 0.0
) -> tuple[dict[tuple[int, int], float], float]:
    """Return how long each jitter delays a packet (s), by `back` and `stop`, and the slowest station's bunch.

    Args:
        lines: jitters on the round trip, in their order.
        meets: share of the flow's packets that a packet may meet.
        window: whether the flow always has data, so that its bunches come again.
        regular: share of the packets that come to the first jitter at equal distances.
    """
    held, bunch, bunches = {}, 1.0, 1.0
    for line in lines * (ROUNDS if window else 1):
        rate = line.others + line.own * meets
        held[line.back, line.stop], bunch = in_bunches_s(line.mean_s, rate, bunch, regular)
        bunches = bunch if line.slowest else bunches
        # of a geometric bunch, the earlier packets that the next jitter may still delay beyond this one
        bunch = 1.0 / (1.0 - (1.0 - 1.0 / bunch) * exp(-line.each_s / line.next_s))
        regular = min(line.own * line.each_s, 1.0)  # packets that waited leave at equal distances
    return held, bunches


def in_bunches_s(mean_s: float, rate: float, bunch: float = 1.0, regular: float = 0.0) -> tuple[float, float]:
    """Return the mean delay (s) by a jitter, and the mean number of segments that leave it at once.

    Segments come in bunches, a Poisson process of geometric numbers with mean b, or at equal distances. With
    u = exp(-x) and r segments in a mean jitter, a segment that is delayed by x is not held back with the
    chance (1 + (b - 1) u)^(-1 - r / (b - 1)), or with the product of 1 - u exp(-k / r) over k = 1, 2, ...;
    between them the logarithms are mixed.

    Args:
        mean_s: mean of the jitter.
        rate: segments a second.
        bunch: mean number of segments that come at once.
        regular: share of the segments that come at equal distances.
    """
    u, more, often = (NODES + 1.0) / 2.0, max(bunch - 1.0, 1e-9), max(rate * mean_s, 1e-9)
    at_random = -(1.0 + often / more) * np.log1p(more * u)
    equal = -often * spence(1.0 - u * exp(-0.5 / often))  # the sum as an integral, by midpoints
    free = np.exp((1.0 - regular) * at_random + regular * equal)
    late = float(WEIGHTS @ ((1.0 - (1.0 - u) * free) / u)) / 2.0
    return mean_s * late, 2.0 / float(WEIGHTS @ free)


def bunched(window: float, elsewhere: float, use: float, bunch: float, spread: float) -> float:
    """Return the mean number of segments of a window that wait at its slowest station because of jitter.

    The more segments wait there, the fewer are elsewhere and come to it: a reflected Ornstein-Uhlenbeck
    process, so that their number is a normal variable cut off at zero (Ward and Glynn, Queueing Systems 44,
    2003). Its variance is chosen so that at low use the waits are those of bunches that come at random
    (M^X/D/1), or, if they are shorter, of neighbours at random distances that jitter brings together.

    Args:
        window: segments under way.
        elsewhere: segments that would be elsewhere if the station were full: the rest of the round trip, over
            the service of a segment.
        use: utilisation of the station by the other segments of the window.
        bunch: mean number of segments that come at once.
        spread: variance of all jitters, over the square of the service.
    """
    use = min(use, NEARLY)
    each = min(bunch - 1.0 + use / 2.0 * (1.0 - use), use / 2.0 * spread)
    deviation = sqrt(max(use * elsewhere * each, 1e-12))
    spare = window - elsewhere
    return spare + deviation * sqrt(2.0 / pi) / float(erfcx(-spare / deviation / sqrt(2.0)))
