r"""Delayed and piggybacked acknowledgements: how long a segment waits, and what carries its acknowledgement.

A receiver holds the acknowledgement of a segment back until the next segment of the same direction comes
(every second one forces it out), a segment of its own can carry it, or a clock says so: a timer that runs for
``period``, or a free-running clock that ticks with this period. Arrivals are memoryless, forward ones with
``forward`` and those of the receiver with ``reverse`` a second, ``rate`` together.

Sources: RFC 5681, section 4.2; Johansson, Kihl & Körner, NETWORKING 2000, section 4.1.
"""

from math import exp, expm1
from typing import Literal, NamedTuple

Clock = Literal["timer", "tick"]

QUADRATURE = 400
"""Points over a period of the clock; the midpoint rule is then within 1e-5 of the integral."""


class Wait(NamedTuple):
    """The wait of the first unacknowledged segment: mean (s), mean square (s2), P(the clock ends it)."""

    mean: float
    square: float
    by_clock: float


class AckCycle(NamedTuple):
    """From one acknowledgement to the next; the first of its segments waits, a second one ends the wait.

    Attributes:
        wait: of the first segment.
        piggybacked: probability that a segment of the receiver carries the acknowledgement.
        segments: mean number of segments acknowledged together.
    """

    wait: Wait
    piggybacked: float
    segments: float

    @property
    def separate(self) -> float:
        """Acknowledgements that travel alone, for each segment."""
        return (1.0 - self.piggybacked) / self.segments

    @property
    def wait_of_a_segment(self) -> float:
        """Mean time (s) from a segment's arrival to its acknowledgement, over all segments."""
        return self.wait.mean / self.segments

    @property
    def square_of_a_segment(self) -> float:
        """Mean square of that time (s2)."""
        return self.wait.square / self.segments


def wait_until(rate: float, period: float, clock: Clock) -> Wait:
    """Wait until the first of a Poisson stream of ``rate`` and the clock, met at any moment of its period.

    The timer has the whole ``period`` to go, the tick a part that is uniform on it.
    """
    x = rate * period
    if x < 1e-6:
        return Wait(period, period**2, 1.0) if clock == "timer" else Wait(period / 2, period**2 / 3, 1.0)
    gone = -expm1(-x)
    if clock == "timer":
        return Wait(gone / rate, 2.0 * (1.0 - exp(-x) * (1.0 + x)) / rate**2, exp(-x))
    by_tick = gone / x
    return Wait((1.0 - by_tick) / rate, 2.0 * (1.0 - 2.0 * by_tick + exp(-x)) / rate**2, by_tick)


def ack_cycle(forward: float, reverse: float, period: float, clock: Clock, every: int = 2) -> AckCycle:
    """Return the acknowledgements of memoryless streams; exact for both clocks and ``every`` of 1 or 2.

    A segment that begins to wait does not meet a free-running clock at any moment: a tick has just cleared
    what waited, so waits begin more often early in the period. ``reverse`` is 0 without piggybacking.

    Args:
        forward: segments a second that come.
        reverse: segments a second that the receiver sends and that can carry an acknowledgement.
        period: of the clock (s).
        clock: what it is.
        every: segments that force an acknowledgement out.

    Raises:
        ValueError: if ``every`` is neither 1 nor 2, or ``forward`` is not positive.
    """
    if every not in (1, 2):
        raise ValueError(f"every must be 1 or 2, got {every}")
    if forward <= 0.0:
        raise ValueError(f"forward must be positive, got {forward}")
    if every == 1:
        return AckCycle(Wait(0.0, 0.0, 0.0), 0.0, 1.0)
    rate = forward + reverse
    wait = wait_until(rate, period, clock) if clock == "timer" else _wait_for_tick(forward, rate, period)
    by_arrival = 1.0 - wait.by_clock
    return AckCycle(wait, by_arrival * reverse / rate, 1.0 + by_arrival * forward / rate)


def in_bursts(lone: AckCycle, follows: float, gap_s: float) -> AckCycle:
    """Return the acknowledgements where with chance ``follows`` a segment comes ``gap_s`` after the first.

    It ends the wait; else it goes on as in ``lone``, with the rates of bursts in place of segments.
    """
    rest = 1.0 - follows
    wait = Wait(
        follows * gap_s + rest * lone.wait.mean,
        follows * gap_s**2 + rest * lone.wait.square,
        rest * lone.wait.by_clock,
    )
    return AckCycle(wait, rest * lone.piggybacked, 2.0 * follows + rest * lone.segments)


def _wait_for_tick(forward: float, rate: float, period: float) -> Wait:
    """Average over the phase at which waits begin: something waits by then with a chance that grows from 0.

    Nothing waits just after a tick; a waiting spell begins with ``forward`` and ends with ``rate``, so that
    nothing waits at phase t with probability w + (1 - w) exp(-(forward + rate) t), w = rate/(forward + rate).
    """
    settled = rate / (forward + rate)
    step = period / QUADRATURE
    total = mean = square = clock = 0.0
    for i in range(QUADRATURE):
        phase = (i + 0.5) * step
        weight = settled + (1.0 - settled) * exp(-(forward + rate) * phase)
        left = wait_until(rate, period - phase, "timer")
        total += weight
        mean += weight * left.mean
        square += weight * left.square
        clock += weight * left.by_clock
    return Wait(mean / total, square / total, clock / total)
