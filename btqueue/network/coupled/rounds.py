"""How long the rounds of a connection last, from what tokens and air make of their segments.

A round is let out by the acknowledgements of the one before, so its segments are as far apart as these: at
once after a round of one segment, else by the tokens that the round before had to wait for, or by its turns
on the air. A segment's round trip is that of a lone one, or what remains of it once the last packet has its
tokens, or what its turn on the air takes. A round lasts as long as the round trip of its first segment, for
then the next one begins.

Approximation: the channels' and the others' part in the round trip is its mean.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.network.coupled.bucket import Bucket
from btqueue.network.coupled.counted import CountedRounds
from btqueue.network.coupled.path import Timing
from btqueue.network.coupled.smooth import greater, longer, positive, step

Array = NDArray[np.float64]

SOFT = 0.1
"""Width of the join of two limits, as a share of a segment's time on the air."""
SOFT_TIMER = 0.1
"""Width of the join of a timer and the round under way, as a share of the timeout."""


class Spacing(NamedTuple):
    """What a round needs to know of the air; the times are explained where they are worked out.

    Attributes:
        lone: whether the peripheral is alone.
        spacing_s, head_s, behind_s, ack_wait_s, start_apart_s: see `coupled.path.Timing` (s).
    """

    lone: bool
    spacing_s: float
    head_s: float
    behind_s: float
    ack_wait_s: float
    start_apart_s: float

    @classmethod
    def of(cls, timing: Timing) -> "Spacing":
        """Return what these times are on a given air."""
        return cls(*(getattr(timing, name) for name in cls._fields))


@dataclass(frozen=True)
class Timer:
    """TCP's retransmission timer.

    Attributes:
        timeout: without backoff (s).
        most: its cap (s).
        doubles: whether each expiry doubles it.
    """

    timeout: float
    most: float
    doubles: bool

    def after(self, doublings: Array) -> Array:
        """Return the timeout after so many expiries in a row (s)."""
        return np.minimum(self.timeout * 2.0 ** (doublings if self.doubles else 0.0 * doublings), self.most)


@dataclass(frozen=True, eq=False)
class Rounds:
    """Times (s) and levels (bytes) of rounds that begin at each of K levels, by G places and E endings.

    Attributes:
        gap: (G, K) from a segment to the next one of its round.
        apart: least time between the beginnings of two segments on a link.
        level: (G, K) missing tokens when a segment comes.
        trip: (G, K) its round trip.
        elapsed: (E, K) from the first segment of a round to the first of the next.
        rest: (E, K) from the beginning of a round's last segment on the air to the first of the next.
        next_level: (E, K) missing tokens at the first segment of the next round.
    """

    gap: Array
    apart: float
    level: Array
    trip: Array
    elapsed: Array
    rest: Array
    next_level: Array


@dataclass(frozen=True, eq=False)
class Round:
    """Rounds of `size` segments after one of `before`, (..., 1), that begin at levels (K,)."""

    bucket: Bucket
    timing: Spacing
    alone: float
    size: Array
    before: Array

    @property
    def soft(self) -> float:
        """Width of rounded corners (s)."""
        return SOFT * self.timing.spacing_s

    @cached_property
    def gap(self) -> Array:
        """(..., K) time between its segments.

        The tokens of the round before came while it went, but for those that the level says are missing.
        """
        if self.timing.lone:  # all acknowledgements of a round come together
            return np.zeros(np.broadcast_shapes(self.size.shape, self.bucket.levels.shape))
        bucket, others = self.bucket, self.before - 1
        came = bucket.levels + bucket.rate * (self.alone - self.timing.head_s)
        tokens = bucket.wait(bucket.least(others * bucket.price, came))
        spread = longer(tokens, others * self.timing.spacing_s - self.timing.behind_s, self.soft)
        return np.where(self.before > 1, spread / np.maximum(self.size - 1, 1), 0.0)

    def level(self, position: Array) -> Array:
        """(..., K) missing tokens when the segment at this position comes."""
        return self.bucket.levels + (position - 1) * (self.bucket.price - self.bucket.rate * self.gap)

    def trip(self, position: Array) -> Array:
        """(..., K) round trip of the segment at this position."""
        timing, bucket, gap, level = self.timing, self.bucket, self.gap, self.level(position)
        if timing.lone:  # acknowledgements wait behind all data that are on their way
            queue = (self.size - 1) * timing.spacing_s + 0.0 * gap
        else:
            close = 1.0 - step((gap - timing.spacing_s) / timing.ack_wait_s)
            queue = (position - 1) * positive(timing.spacing_s - gap, self.soft)
            queue = queue + (position < self.size) * timing.behind_s * close
        first, last = bucket.wait(level + bucket.prices[0]), bucket.wait(level + bucket.price)
        in_turn = timing.head_s + greater(first, queue)
        return self.alone - timing.head_s + longer(last, in_turn, self.soft)


def rounds_of(counted: CountedRounds, bucket: Bucket, timing: Spacing, timer: Timer, alone: float) -> Rounds:
    """Work out the times of all places and endings.

    Args:
        counted: places and endings.
        bucket: levels at which rounds may begin.
        timing: of the air.
        timer: of the sender.
        alone: round trip of a lone segment, the wait of its acknowledgement for tokens included (s).
    """
    size, before, position = counted.places.T[:, :, None]
    each = Round(bucket, timing, alone, size, before)
    size, before, heard, doublings, age = counted.endings.T[:, :, None]
    size = np.maximum(size, 1)  # row 0 is no ending
    whole = Round(bucket, timing, alone, size, before)
    gap, period = whole.gap, whole.trip(np.ones_like(size))
    spread = (size - 1) * gap
    last = np.maximum(heard, 1)
    started = np.where(age > 0, spread - (age - 1) * period, (last - 1) * gap + whole.trip(last))
    expires = started + timer.after(doublings)
    late = period + positive(expires - period, SOFT_TIMER * timer.timeout)
    elapsed = np.where(doublings >= 0, late, period)
    turn = np.where(before > 1, 0.0, (size - 1) * timing.start_apart_s)
    begun = greater(bucket.wait(whole.level(size) + bucket.price), turn)
    return Rounds(
        gap=each.gap,
        apart=timing.start_apart_s,
        level=each.level(position),
        trip=each.trip(position),
        elapsed=elapsed,
        rest=elapsed - spread - begun,
        next_level=bucket.levels + size * bucket.price - bucket.rate * elapsed,
    )
