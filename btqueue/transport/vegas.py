r"""TCP Vegas without loss: where its window settles behind a bottleneck.

In each round trip Vegas compares the data that the least round trip would have let it send with the data
sent: ``excess = cwnd - sent Base / RTT`` segments are queued. Below ``alpha`` the window grows by 1/cwnd for
each acknowledgement, above ``beta`` it shrinks, between them it stays. With a fixed bottleneck the window
stops growing once ``alpha`` segments are queued. Round trips are taken at their means: a link that repeats
packets makes the window walk at random.

Sources: Brakmo & Peterson, IEEE JSAC 13 (1995); Low, Peterson & Wang, J. ACM 49 (2002).
"""

from collections.abc import Callable
from math import floor
from typing import NamedTuple

import numpy as np

LEAST_WINDOW = 2.0


class Round(NamedTuple):
    """The round trip of a marked segment with a given window.

    Attributes:
        mean: mean of its time (s).
        sent: segments sent meanwhile, the marked one included.
        acks: acknowledgements that come meanwhile.
    """

    mean: float
    sent: float
    acks: float


def settled(
    of_window: Callable[[int], Round],
    *,
    alpha: float,
    beta: float,
    gamma: float,
    window: int,
    start: float,
    every: int = 1,
) -> float:
    """Return where Vegas's congestion window (per-acknowledgement adjustment) of a greedy connection rests.

    It is followed from slow start, doubled in every other round trip, by mean round trips.

    Args:
        of_window: the round trip for each whole window.
        alpha: see above.
        beta: see above.
        gamma: excess at which slow start ends.
        window: receive window.
        start: initial congestion window.
        every: segments acknowledged together during slow start.

    Example:
        >>> from btqueue.transport.vegas import Round, settled
        >>> settled(lambda w: Round(0.1, w, w), alpha=1, beta=3, gamma=1, window=8, start=2)
        9.0
    """
    cwnd, base, slow, double = start, np.inf, True, False
    for _ in range(1000):
        # below the least window there is slow start only, for two round trips: their times are taken alike
        whole = whole_window(cwnd, window)
        one = of_window(whole)._replace(mean=of_window(max(whole, min(int(LEAST_WINDOW), window))).mean)
        base = min(base, one.mean)
        # Assumed, not derived: in slow start the window before it grew follows the marked segment.
        # With the grown window, two-way traffic without errors would leave slow start one segment higher.
        sent = of_window(max(whole - 1, 1)).sent if slow else one.sent
        excess = cwnd - sent * base / one.mean
        slow = slow and (double or excess <= gamma)
        double = not double
        if slow:
            cwnd += max(whole // every, 1) if double else 0
        elif excess < alpha and cwnd < window + 1.0:
            cwnd = after(cwnd, one.acks)
        elif excess > beta and cwnd > LEAST_WINDOW:
            cwnd = after(cwnd, -one.acks)
        else:
            break
        cwnd = min(cwnd, window + 1.0)
    return cwnd


def after(cwnd: float, acks: float) -> float:
    """Return cwnd after `acks` steps of 1/cwnd, up or (acks below 0) down: cwnd d(cwnd) = d(acks).

    Example:
        >>> from btqueue.transport.vegas import after
        >>> round(after(4.0, 2), 4)
        4.4721
    """
    return float(max(cwnd**2 + 2.0 * acks, LEAST_WINDOW**2) ** 0.5)


def whole_window(cwnd: float, window: int) -> int:
    """Return the segments that a congestion window lets be under way.

    Example:
        >>> from btqueue.transport.vegas import whole_window
        >>> whole_window(9.0, 8)
        8
    """
    return min(floor(cwnd + 1e-9), window)
