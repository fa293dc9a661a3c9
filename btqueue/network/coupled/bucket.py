"""The token bucket as a level among the states of a connection.

Data take tokens; what is missing is made up at the token rate. The level is the missing tokens, from -depth
(a full bucket) upwards: a positive level is a backlog, which takes level / rate to clear. A segment raises
the level by its price, or to the top of the buffer, where its packets are refused. What drains between two
rounds is no whole number of steps of the lattice: the new level is shared out among three neighbours by
quadratic B-splines, which keep the mean and make every answer smooth; they spread the level by half a step.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from btqueue.network.coupled.smooth import positive, shorter, step
from btqueue.network.ring_piconet.ring import Ring

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

STEPS = 4
"""Levels to a segment. Twice as many change goodput by 0.3 % (S of 15 and more packets), 1.5 % (S = 5)."""
MOST_LEVELS = 60
"""Levels at most; deep buckets have fewer to a segment."""
ROUNDED = 1 / 16
"""Share of a segment's tokens within which the corner at which a backlog begins is rounded off."""


@dataclass(frozen=True)
class Bucket:
    """A token bucket on a lattice.

    Attributes:
        rate: tokens that are left to data (bytes/s).
        prices: (N,) tokens of the packets of a data segment (bytes).
        depth: of the bucket (bytes).
        places: packets that can wait.
        whole: whether a full buffer refuses the whole segment.
        levels: (K,) missing tokens at which a round may begin (bytes).
    """

    rate: float
    prices: Array
    depth: float
    places: int
    whole: bool
    levels: Array

    @property
    def price(self) -> float:
        """Tokens of a data segment (bytes)."""
        return float(self.prices.sum())

    @property
    def packet(self) -> float:
        """Tokens of one of its packets, on average (bytes)."""
        return self.price / self.prices.size

    @property
    def top(self) -> float:
        """The highest level: all places taken (bytes)."""
        return self.places * self.packet

    def wait(self, level: Array) -> Array:
        """Return the time until so many missing tokens have come (s)."""
        return positive(level, ROUNDED * self.price) / self.rate

    def packet_waits(self, level: Array) -> Array:
        """(...) missing tokens when a segment comes -> (N, ...) waits of its packets (s)."""
        return self.wait(level + np.cumsum(self.prices).reshape(-1, *(1 for _ in level.shape)))

    def least(self, one: Array, other: Array) -> Array:
        """Return the lesser of two numbers of bytes, rounded off where they are equal."""
        return shorter(one, other, 2 * ROUNDED * self.price)

    def refuses(self, level: Array) -> Array:
        """Return the probability that at a level at least one packet of a segment is refused.

        The level from which on there is no place for the last packet is known to one packet, because packets
        differ in size and acknowledgements come between.
        """
        return step((level - self.top) / self.packet + self.prices.size + 0.5)

    def lost_tokens(self, level: Array) -> Array:
        """Return the tokens that a segment does not take, because packets of it are refused (bytes)."""
        if self.whole:
            return np.full(level.shape, self.price)
        over = positive(level + self.price - self.top, self.packet / 2)
        return self.least(over, np.full(level.shape, self.price))

    def share(self, level: Array) -> tuple[Integers, Array]:
        """(...) levels -> first of three neighbours (...) on the lattice and their shares (..., 3)."""
        last = self.levels.size - 1
        place = np.clip((level + self.depth) / (self.levels[1] - self.levels[0]), -0.5, last + 0.5)
        near = np.clip(np.rint(place), 0, last)
        off = place - near
        before, here, after = (0.5 - off) ** 2 / 2, 0.75 - off**2, (0.5 + off) ** 2 / 2
        nothing = 0.0 * off
        first, end = (near == 0)[..., None], (near == last)[..., None]
        shares = np.stack([before, here, after], axis=-1)
        shares = np.where(first, np.stack([before + here, after, nothing], axis=-1), shares)
        shares = np.where(end, np.stack([nothing, before, here + after], axis=-1), shares)
        return np.clip(near.astype(np.int64) - 1, 0, last - 2), shares


def bucket_of(ring: Ring, window: int, ack_rate: float) -> Bucket:
    """Return the bucket of a peripheral that sends `ack_rate` acknowledgements a second for another flow."""
    prices = np.array([float(piece.price_bytes) for piece in ring.data])
    rate = ring.token_rate - ack_rate * sum(piece.price_bytes for piece in ring.ack)
    rate = max(rate, ring.token_rate / 2)  # while the fixed point is sought
    depth, price = float(ring.bucket_bytes), float(prices.sum())
    height = min(ring.buffer * price / prices.size, window * price) + depth
    distance = max(price / STEPS, height / MOST_LEVELS)
    levels = distance * np.arange(max(int(np.ceil(height / distance)) + 2, 3), dtype=np.float64) - depth
    return Bucket(rate, prices, depth, ring.buffer, ring.whole_segments, levels)
