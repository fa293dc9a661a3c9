r"""Delayed and piggybacked acknowledgements: how long a segment waits, and which segment carries its ACK.

A receiver holds the acknowledgement of a segment back until the next segment of the same direction comes
(every second one forces it out), the receiver sends a segment that can carry it, or a clock expires. The next
segment does not come at random. If a segment is queued behind the first on the link, it arrives one service
time later, after d seconds. Otherwise the link must first get a segment, at rate l:

    P(D > t) = 1 for t < d, and after that 0 if followed, exp(-l (t - d)) if not.

Segments of the receiver are written at random, with rate m. The clock is a timer, or a free-running tick. A
tick sends the acknowledgement that waits, so that waits begin more often early in its period. Just after a
tick no acknowledgement waits. Waits begin at the rate f of segments and end at rate e, so that none is in
progress at phase t with probability w + (1 - w) exp(-(f + e) t), w = e / (f + e). With no service and
memoryless arrivals all is exact.

Approximation: services have no spread here; their part is small against the wait.

Sources: RFC 5681, section 4.2; Johansson, Kihl & Körner, NETWORKING 2000, section 4.1.
"""

from collections.abc import Callable
from math import exp, expm1
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Clock = Literal["timer", "tick"]

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
"""Gauss and Legendre's rule on (-1, 1), for each of the two smooth parts of a wait."""


class WaitLaw(NamedTuple):
    """The distribution of a wait at discrete times (s), by the event that ends it.

    Attributes:
        times: (n,) of the points.
        carried: (n,) chance that a segment of the receiver carries the acknowledgement then.
        arrival: (n,) that the second segment forces it out.
        clock: (n,) that the clock does.
    """

    times: Array
    carried: Array
    arrival: Array
    clock: Array

    @property
    def mean(self) -> float:
        """Mean wait (s)."""
        return float(self.times @ (self.carried + self.alone))

    @property
    def square(self) -> float:
        """Mean square (s2)."""
        return float(self.times**2 @ (self.carried + self.alone))

    def mean_of(self, rate: float) -> float:
        """Return the mean of exp(-rate t) over the waits t."""
        return float(np.exp(-rate * self.times) @ (self.carried + self.alone))

    @property
    def alone(self) -> Array:
        """(n,) chance that the wait ends then, with a separate acknowledgement."""
        return self.arrival + self.clock


class Receiver(NamedTuple):
    """The rates and times of the events that end a wait.

    Attributes:
        rate: segments a second that come.
        gap: time (s) to the next segment, if one is left behind.
        followed: chance that a segment is left behind.
        forward: rate (1/s) at which the link gets a segment if none is left behind.
        reverse: rate (1/s) at which the receiver writes segments that can carry the acknowledgement.
        period: period of the clock (s).
        clock: its kind.
    """

    rate: float
    gap: float
    followed: float
    forward: float
    reverse: float
    period: float
    clock: Clock

    def law(self, followed: bool) -> WaitLaw:
        """Return the law of the wait of a first segment that leaves a segment behind, or none."""
        gap = min(self.gap, self.period)
        early, early_weights = _rule(0.0, gap)
        late, late_weights = _rule(gap, gap if followed else self.period)
        times = np.concatenate([early, late])
        weights = np.concatenate([early_weights, late_weights])
        lasting, left, ticks = self._lasting(times), *self._clock(times)
        # events at a fixed time: the next segment behind this one arrives, or a timer expires
        forced = followed and self.gap < self.period
        moment = np.array([gap if forced else self.period])
        rest = self._lasting(moment) * self._clock(moment)[0]
        return WaitLaw(
            times=np.concatenate([times, moment]),
            carried=np.append(self.reverse * lasting * left * weights, 0.0),
            arrival=np.append(
                np.where(times > gap, self.forward, 0.0) * lasting * left * weights, rest * forced
            ),
            clock=np.append(lasting * ticks * weights, rest * (not forced)),
        )

    def _lasting(self, times: Array) -> Array:
        """Chance that neither of the hosts has ended the wait."""
        return np.exp(-self.reverse * times - self.forward * np.maximum(times - self.gap, 0.0))

    def _clock(self, times: Array) -> tuple[Array, Array]:
        """Return the chance that the clock is still to come, and the density (1/s) with which it comes."""
        if self.clock == "timer":
            return np.ones_like(times), np.zeros_like(times)
        begins = self.rate + 1.0 / self._unclocked
        settled = 1.0 - self.rate / begins

        def passed(phase: Array | float) -> Array:
            return settled * phase - (1.0 - settled) * np.expm1(-begins * np.asarray(phase)) / begins

        left = self.period - times
        total = passed(self.period)
        return passed(left) / total, (settled + (1.0 - settled) * np.exp(-begins * left)) / total

    @property
    def _unclocked(self) -> float:
        """Mean wait (s) if there were no clock."""
        early = -expm1(-self.reverse * self.gap) / self.reverse if self.reverse > 0.0 else self.gap
        late = exp(-self.reverse * self.gap) / (self.reverse + self.forward)
        return early + (1.0 - self.followed) * late


def _rule(low: float, high: float) -> tuple[Array, Array]:
    """Return points between these times and their weights."""
    half = 0.5 * (high - low)
    return low + half * (NODES + 1.0), half * WEIGHTS


class Acknowledgements(NamedTuple):
    """From one acknowledgement to the next: a first segment waits, a second one ends the wait.

    Attributes:
        behind: law of the wait where a segment is left behind on the link.
        last: law where none is.
        followed: chance of the first.
        segments: mean number of segments acknowledged together.
    """

    behind: WaitLaw
    last: WaitLaw
    followed: float
    segments: float

    @property
    def piggybacked(self) -> float:
        """Share of the acknowledgements that segments carry."""
        return self._mean(lambda law: float(law.carried.sum()))

    @property
    def separate(self) -> float:
        """Acknowledgements that travel alone, for each segment."""
        return (1.0 - self.piggybacked) / self.segments

    @property
    def wait(self) -> float:
        """Mean time (s) from a segment's arrival to its acknowledgement, over all segments."""
        return self._mean(lambda law: law.mean) / self.segments

    @property
    def square(self) -> float:
        """Mean square of that time (s2)."""
        return self._mean(lambda law: law.square) / self.segments

    def _mean(self, value: Callable[[WaitLaw], float]) -> float:
        return self.followed * value(self.behind) + (1.0 - self.followed) * value(self.last)


def acknowledgements(receiver: Receiver, every: int) -> Acknowledgements:
    """Return the acknowledgements where each segment, or every second one, forces one out.

    Raises:
        ValueError: if ``every`` is neither 1 nor 2.

    Example:
        >>> from btqueue.transport.delayed_ack import Receiver, acknowledgements
        >>> alone = Receiver(
        ...     rate=10.0, gap=0.02, followed=0.0, forward=10.0, reverse=0.0, period=0.5, clock="timer"
        ... )
        >>> round(acknowledgements(alone, 2).wait, 4)
        0.0598
    """
    if every not in (1, 2):
        raise ValueError(f"every must be 1 or 2, got {every}")
    if every == 1:
        at_once = WaitLaw(np.zeros(1), np.zeros(1), np.ones(1), np.zeros(1))
        return Acknowledgements(at_once, at_once, receiver.followed, 1.0)
    behind, last = receiver.law(True), receiver.law(False)
    forced = receiver.followed * behind.arrival.sum() + (1.0 - receiver.followed) * last.arrival.sum()
    return Acknowledgements(behind, last, receiver.followed, 1.0 + float(forced))
