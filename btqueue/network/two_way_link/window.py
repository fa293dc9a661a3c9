r"""The window's cycle on a link that is always busy: round trips, rates, and Vegas's walk over windows.

One way, every k-th segment is acknowledged. A release lets k segments out, and the link needs k s for them;
if the window W = m k + r is too small to cover the way back tau, the period of releases is longer:

    P(W) = max(k s, ((k - r or k) s + tau) / m).

The oldest segment of an acknowledgement waited for ceil(W / k) of them: its round trip is ceil(W / k) P, not
W s. Marked segments, the first of a release, wait for ceil((W - k + 1) / k).

Both ways with piggybacking, a segment that arrives brings an acknowledgement and lets one out that carries
the next: W tokens go round, each data one way and acknowledgement for the other, over two links that slow
each other down. Both links busy, a token passes every s2 (all slots full); with W = 2 the layers' time stays
uncovered (`loop`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil, pi, sqrt

from btqueue.baseband import SLOT_S
from btqueue.network.two_way_link.air import Air
from btqueue.transport.vegas import Round


@dataclass(frozen=True)
class Cycle:
    """A window's cycle: period of a segment, round trip of the samples, and of Vegas's marked segments (s).

    `variance` (s2) and `least` (s) are those of the sampled round trip.
    """

    period: float
    rtt: float
    variance: float
    least: float
    marked: Round


def one_way(air: Air, window: int, every: int, *, opposite: bool = False, behind_s: float = 0.0) -> Cycle:
    """Return the cycle where separate acknowledgements come back, one for `every` segments.

    With `opposite` data of another connection fill the other direction's slots, and an acknowledgement may
    have to wait ``behind_s`` for them.
    """
    acks = 1.0 / every
    service = air.both(acks) if opposite else air.alone(acks)
    other = air.mean_packet if opposite else 1.0
    spread = air.data.variance(other) * SLOT_S**2
    swiftest = air.data.least(other) * SLOT_S
    groups, rest = max(window // every, 1), window % every
    needed = every - rest if rest and window > every else every

    def period(segment_s: float, back_s: float) -> float:
        return max(every * segment_s, (needed * segment_s + back_s) / groups)

    back = air.layers_s + air.return_s() + behind_s
    usual, best = period(service, back), period(swiftest, 2.0 * air.layers_s)
    waited = ceil(window / every)
    marked = max(ceil((window - every + 1) / every), 1)
    return Cycle(
        period=usual / every,
        rtt=waited * usual,
        variance=waited * every * spread,
        least=waited * best,
        marked=Round(marked * usual, (marked * every * spread) ** 0.5, marked * best, marked * every, marked),
    )


def both_ways(air: Air, window: int) -> Cycle:
    """Return the cycle of data both ways that carry each other's acknowledgements."""
    spread = air.data.variance(air.mean_packet) * SLOT_S**2
    best = air.data.least(air.mean_packet) * SLOT_S
    trip = loop(air, window, air.both(0.0), air.alone(0.0)) * (1.0 + _unevenness(air, window))
    least = min(loop(air, window, best, air.data.least() * SLOT_S), trip)
    return Cycle(
        period=trip / window,
        rtt=trip,
        variance=window * spread,
        least=least,
        marked=Round(trip, (window * spread) ** 0.5, least, window, window),
    )


def pairwise(air: Air) -> Cycle:
    """Return the cycle of windows of two both ways whose segments are acknowledged in pairs.

    Where both segments of a window arrive before the receiver may send, nothing can carry their
    acknowledgement: it follows alone, and both hosts stall for its way back at each pair. Meanwhile the other
    one has the air to itself, which shortens its service: with f the share of the time in which a host
    stalls, P = s2 - (s2 - s) f + stall, f = stall / P.
    """
    paired = one_way(air, 2, 2, opposite=True)
    crowded, gain = air.both(0.0), air.both(0.0) - air.alone(0.0)
    stall = max(paired.period - air.both(0.5), 0.0)
    reach = crowded + stall
    period = 0.5 * (reach + sqrt(reach**2 - 4.0 * gain * stall))
    return replace(paired, period=period)


def either(one: Cycle, other: Cycle) -> Cycle:
    """Return the cycle of a window that keeps either rhythm for half of the time."""
    return replace(
        one,
        period=0.5 * (one.period + other.period),
        rtt=0.5 * (one.rtt + other.rtt),
        variance=0.5 * (one.variance + other.variance) + 0.25 * (one.rtt - other.rtt) ** 2,
    )


def _unevenness(air: Air, window: int) -> float:
    r"""Share by which random services of both links lengthen the trip.

    A link that is done before the other one waits for it when it has no token left, but meanwhile the other
    has the air to itself: of each idle second 2 s / s2 - 1 are lost. With W = 2 each link has one token: two
    services differ by 2 sigma / sqrt(pi), half of it idle for each. With more the W - 2 tokens to spare are a
    buffer between two servers, whose lead is a random walk of variance 2 c^2 a service between its ends, c
    the coefficient of variation: it is at one end for c^2 / (W - 2) of the time. A window of one is never
    served by both links.
    """
    if window < 2:
        return 0.0
    crowded = air.both(0.0)
    squared = air.data.variance(air.mean_packet) * SLOT_S**2 / crowded**2
    idle = sqrt(squared / pi) if window == 2 else squared / (window - 2)
    return idle * (2.0 * air.alone(0.0) / crowded - 1.0)


def loop(air: Air, window: int, crowded: float, alone: float) -> float:
    """Return the time (s) of a token once round both links.

    Covered by others it waits for W services of `crowded`. Else it is served while the other link is busy but
    for the layers' time d, in which it has the air to itself: s = crowded (1 - d / alone) + d.
    """
    layers = air.layers_s + 0.5 * air.turn_s
    uncovered = min(layers, alone)
    served = crowded * (1.0 - uncovered / alone) + uncovered
    return max(window * crowded, 2.0 * (served + layers))


def cycles(of_window: Callable[[int], Cycle], window: int) -> dict[int, Cycle]:
    """Return the cycle of each window up to the largest."""
    return {w: of_window(w) for w in range(1, window + 1)}
