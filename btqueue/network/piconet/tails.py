"""Waits with exponential tails: in a queue of bounded room, and in the slower of two queues in a row."""

from typing import NamedTuple, cast

import jax.numpy as jnp
import numpy as np
from jax import Array

TINY = 1e-30
"""In place of 0 where something is divided by it."""


class Tail(NamedTuple):
    """The law P(wait > t) = share exp(-t / mean), cut off by a buffer.

    A buffer that takes as much of a train as fits is a finite dam: its law is that of the infinite one, less
    what lies beyond, and normalised (J. Cohen, The Single Server Queue, 1982, section III.5).

    Attributes:
        share: probability of a wait.
        mean: of the waits.
        room: longest wait that the buffer allows.
    """

    share: Array
    mean: Array
    room: Array

    @staticmethod
    def of(share: Array, wait: Array, room: Array | float = jnp.inf) -> "Tail":
        """Return the tail of a mean wait, of which a share is a wait at all."""
        waits = share > 0.0
        mean = jnp.where(waits, wait, 0.0) / jnp.where(waits, share, 1.0)
        return Tail(share, mean, jnp.asarray(room))

    def between(self, start: Array, end: Array) -> Array:
        """Return the integral of the law from a time to a later one."""
        mean = jnp.maximum(self.mean, TINY)
        end = jnp.where(self.room < end, self.room, end)
        end = jnp.where(end < start, start, end)
        ends, bounded = jnp.isfinite(end), jnp.isfinite(self.room)
        end, room = jnp.where(ends, end, start), jnp.where(bounded, self.room, 0.0)
        after = jnp.where(ends, jnp.exp(-end / mean), 0.0)
        beyond = jnp.where(bounded, self.share * jnp.exp(-room / mean), 0.0)
        total = self.share * self.mean * (jnp.exp(-start / mean) - after)
        return (total - beyond * (end - start)) / jnp.maximum(1.0 - beyond, TINY)


# arrays of numpy, in double precision: JAX would round its own outside of its scope
NONE = Tail(*(cast(Array, np.asarray(value)) for value in (0.0, 0.0, np.inf)))


def longest(first: Tail, second: Tail, most: Array) -> Array:
    """Return the mean of the longer of two waits, cut off at a time.

    A segment crosses two queues in a row. With constant service its wait in both is the longer one of those
    that either would make it wait by itself (H. Friedman, Operations Research 13, 1965). Both come from the
    same arrivals, so that they are long together: the longer one exceeds t as often as the one that does so
    more often. That is a lower bound, whatever their joint law.
    """
    most = jnp.maximum(most, 0.0)
    swap = second.share > first.share
    often, seldom = (
        Tail(*(jnp.where(swap, b, a) for a, b in zip(*pair, strict=True)))
        for pair in ((first, second), (second, first))
    )
    crosses = (seldom.mean > often.mean) & (seldom.share > 0.0)
    shares = jnp.where(crosses, often.share, 1.0) / jnp.where(crosses, seldom.share, 1.0)
    rates = 1.0 / jnp.where(crosses, jnp.maximum(often.mean, TINY), 1.0) - 1.0 / jnp.where(
        crosses, seldom.mean, 2.0
    )
    meet = jnp.where(crosses, jnp.log(shares) / rates, jnp.inf)
    last = jnp.where(often.room < most, often.room, most)
    meet = jnp.where(last < meet, last, meet)
    nothing = jnp.zeros_like(meet)
    beyond = seldom.between(jnp.where(jnp.isfinite(meet), meet, 0.0), most)
    return often.between(nothing, meet) + jnp.where(jnp.isfinite(meet), beyond, 0.0)
