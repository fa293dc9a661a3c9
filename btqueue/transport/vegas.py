"""The window at which TCP Vegas comes to rest, as a recursion of its segments on a path without losses.

Segments follow each other at the slowest station as in a queue with constant service (D. V. Lindley, Proc.
Camb. Phil. Soc. 48, 1952), so that all times are exact there: segment k is acknowledged at
``d[k] = max(d[k-1] + s, x[k] + R)``, sent at x[k], with service s and least round trip R.

Sources: L. Brakmo and L. Peterson, IEEE JSAC 13 (1995); J. Johansson, M. Kihl and U. Körner (2000), section
3.3: expected and actual rates are compared once in a round trip.
"""

from collections import deque
from functools import lru_cache
from math import floor, inf

import numpy as np

LEAST_WINDOW = 2.0
"""Segments that Vegas always keeps."""
PARTS = 1024
"""Parts of a service in which times are given, so that their sums are exact: rounding decided ties."""
ACKS = 1_500
"""Most acknowledgements that are followed, to bound the time of an answer: 195 of 383 drawn windows rest
later. Of a window that still moves the second half is averaged, and it is in doubt. It oscillates, or falls
from a large initial window, for thousands of round trips: slow start begins again."""


class Vegas:
    """Congestion window of TCP Vegas, which moves by a part of a segment at each acknowledgement.

    Attributes:
        window: congestion window (segments).
        base: shortest round trip so far.
        excess: segments in queues by the last comparison.
    """

    def __init__(self, bounds: tuple[float, float, float], opens: int, threshold: float) -> None:
        """Take alpha, beta and gamma, the initial window and the slow-start threshold, all in segments."""
        self.alpha, self.beta, self.gamma = bounds
        self.window, self.threshold = float(opens), threshold
        self.base, self.excess, self.doubles = inf, 0.0, False

    @property
    def opening(self) -> bool:
        """Whether slow start goes on; it begins again below the window at which it ended."""
        return self.window < self.threshold

    @property
    def rests(self) -> bool:
        """Whether the window stays as it is by the last comparison."""
        return not self.opening and self.alpha <= self.excess <= self.beta

    def compare(self, trip: float, sent: int) -> None:
        """Compare rates: the marked segment has come round in `trip`, and `sent` segments went with it."""
        self.excess = self.window - sent * self.base / trip
        if self.opening and not self.doubles and self.excess > self.gamma:
            self.threshold = self.window
        self.doubles = not self.doubles
        rounds = floor(self.alpha - self.excess) - 1
        if rounds > 0 and not self.opening:  # in all of these the window grows by a segment
            self.window += rounds

    def move(self) -> None:
        """Change the window at an acknowledgement; slow start doubles it in every other round trip."""
        if self.opening:
            self.window += self.doubles
        elif self.excess < self.alpha:
            self.window += 1.0 / self.window
        elif self.excess > self.beta:
            self.window = max(self.window - 1.0 / self.window, LEAST_WINDOW)


@lru_cache(4096)
def settled(
    least: float,
    bounds: tuple[float, float, float],
    opens: int,
    window: int,
    *,
    threshold: float = inf,
    every: int = 1,
    delay: float = inf,
) -> tuple[float, bool]:
    """Return the window of Vegas, and whether it has come to rest. Times are in services of a segment.

    Args:
        least: shortest round trip.
        bounds: alpha, beta and gamma (segments).
        opens: initial window (segments).
        window: of the receiver (segments).
        threshold: slow-start threshold (segments).
        every: segments of an acknowledgement.
        delay: time after which a single segment is acknowledged (services); finite if `every` is above 1, and
            a segment may be alone.

    A lone link: of four segments one is in service, and three wait, which is beta.

    >>> settled(1.0, (1.0, 3.0, 1.0), opens=1, window=44)
    (4.0, True)
    """
    sender = Vegas(bounds, opens, threshold)
    flying: deque[tuple[float, float]] = deque()  # when sent, and when it comes round
    sent, come, now, ready, marked, before = 0, 0, 0.0, -inf, (-1, 0.0), (0.0, 0.0)
    sizes: list[int] = []
    while len(sizes) < ACKS:
        while len(flying) < min(floor(sender.window), window):
            ready = max(ready + 1.0, now + least)
            flying.append((now, ready))
            marked = (sent, now) if marked[0] < 0 else marked
            sent += 1
        group = every if len(flying) >= every and flying[every - 1][1] <= flying[0][1] + delay else 1
        trip = flying[group - 1][1] + (delay if group < every else 0.0) - flying[0][0]
        now = flying[0][0] + trip
        sizes.append(len(flying))
        come += group
        sender.base = min(sender.base, trip, now - marked[1] if come > marked[0] >= 0 else inf)
        if come > marked[0] >= 0:
            sender.compare(now - marked[1], sent - marked[0])
            marked = -1, 0.0
            if sender.rests and (sender.window, trip) == before:
                return float(len(flying)), True
            before = sender.window, trip
        sender.move()
        for _ in range(group):
            flying.popleft()
    return float(np.mean(sizes[ACKS // 2 :])), False
