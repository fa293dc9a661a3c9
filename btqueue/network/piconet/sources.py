r"""How segments come to a port, and how often they are acknowledged: closed forms in the rates.

**Bursts.** An interrupted Bernoulli process writes a message a slot while it is active. That is much faster
than any piconet sends, so its segments come in batches of a geometric number, as those of a long message come
in one batch. A port is then an M^X/G/1 queue: a segment waits for the work that it finds, and for those ahead
of it in its own batch (P. J. Burke, Oper. Res. 23, 1975).

**Periodic sources** with random phases are a superposition of regular streams. In an nD/D/1 queue of streams
with loads :math:`\rho_i` the work that w slots of waiting beget, directly and in turn, is

.. math:: w \sum_{j \ge 0} j!\, e_j(\rho_1, \rho_2, \dots) = w \int_0^\infty e^{-t} \prod_i (1 + \rho_i t)\,dt

with the elementary symmetric polynomials :math:`e_j`, since each stream brings one message a period (for
equal streams: A. E. Eckberg, IEEE Trans. Commun. 27, 1979). With many light streams the product is
:math:`e^{\rho t}`, and the growth :math:`1/(1-\rho)` of Poisson streams.

**Delayed acknowledgements.** A receiver answers k segments, or what came until its timer, which the first of
them starts, or a free-running tick ends. Sampled is the round trip of the first. For Poisson arrivals both
are exact.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import gammainc

NODES, WEIGHTS = np.polynomial.laguerre.laggauss(8)
"""Gauss and Laguerre's rule: exact for the product of up to 15 regular streams."""
MOST_ANSWERED = 64
"""Segments of one acknowledgement."""
MOST_LOAD = 0.985
"""Load of Poisson streams at most; keeps the growth finite."""
LEAST_COUNT = 1e-6
"""Segments in a timer below which the limit of rare segments is taken."""


class Source(NamedTuple):
    """The laws of the sources of the classes, (C,).

    Attributes:
        bursty: 1 for an interrupted Bernoulli process.
        regular: 1 for a periodic source.
        segments: of a message.
    """

    bursty: Array
    regular: Array
    segments: Array


class Batch(NamedTuple):
    """Of each class, (C,): mean segments of its own batch that are ahead of a segment.

    Attributes:
        drawn: of a geometric batch.
        fixed: of the same message.
    """

    drawn: Array
    fixed: Array

    @property
    def ahead(self) -> Array:
        """(C,) of both."""
        return self.drawn + self.fixed


def batches(source: Source, scv: Array, per_slot: Array) -> Batch:
    """Return the batches in which segments come.

    Args:
        source: laws of the classes.
        scv: squared coefficient of variation of the gaps of an interrupted Bernoulli process.
        per_slot: (C,) messages a slot.
    """
    rate = jnp.where(jnp.isfinite(per_slot), jnp.minimum(per_slot, 1.0), 1.0)
    stop = 2.0 * (1.0 - rate) ** 2 / (scv + 1.0 - rate)  # as `btqueue.queueing.traffic_forms` has it
    inside = source.bursty > 0.0
    drawn = jnp.where(inside, (1.0 - stop) / jnp.where(inside, stop, 1.0), 0.0)
    return Batch(drawn * source.segments, (source.segments - 1.0) / 2.0)


def within(batch_ahead: Array, window: Array) -> Array:
    """Return how many segments of its own message a window lets out before a segment, on average.

    The segment is evenly one of 2 a + 1, with a ahead of it on average.
    """
    size = 2.0 * batch_ahead + 1.0
    free = jnp.minimum(jnp.where(jnp.isinf(window), size, window), size)
    return free * (free - 1.0) / 2.0 / size + (1.0 - free / size) * (free - 1.0)


def growth(works: Array, regular: Array) -> Array:
    """Return the work that a unit of waiting begets, directly and in turn, itself included.

    Args:
        works: (..., F) loads of the streams.
        regular: (F,) 1 for periodic ones; the others are Poisson.
    """
    free = 1.0 - jnp.minimum((works * (1.0 - regular)).sum(-1), MOST_LOAD)
    each = 1.0 + (works * regular)[..., None] * NODES / free[..., None, None]
    return (jnp.prod(each, axis=-2) * WEIGHTS).sum(-1) / free


class Answers(NamedTuple):
    """What a receiver makes of segments.

    Attributes:
        share: acknowledgements a segment.
        wait_s: mean time that the first segment of an acknowledgement waits for it.
        clocked: share of acknowledgements that the clock sends, not a segment.
    """

    share: Array
    wait_s: Array
    clocked: Array


def answers(rate: Array, every: Array, delay_s: Array, *, tick: bool) -> Answers:
    """Return what delayed acknowledgements make of segments that come by a Poisson process.

    Args:
        rate: segments a second.
        every: k, segments that force an acknowledgement out.
        delay_s: of the timer, or between two ticks.
        tick: whether a clock ticks for ever; else the first segment starts a timer.
    """
    count = jnp.maximum(rate * delay_s, LEAST_COUNT)
    if not tick:
        number = jnp.arange(1.0, MOST_ANSWERED)
        more = jnp.where(number < every, gammainc(number, count), 0.0).sum()  # in the time of the timer
        enough = jnp.where(every > 1.0, gammainc(jnp.maximum(every - 1.0, 1.0), count), 1.0)
        return Answers(1.0 / (1.0 + more), delay_s * more / count, 1.0 - enough)
    # the number of segments since a tick, modulo k, by its discrete Fourier transform
    wave = jnp.arange(MOST_ANSWERED)
    used = wave < every
    angle = 2.0 * jnp.pi * wave / every
    back, turn = (1.0 - jnp.cos(angle)) * count, jnp.sin(angle) * count
    none = used & (wave > 0)
    # integral over a period of the chance that k divides the number, in units of the period
    squared = jnp.where(none, back**2 + turn**2, 1.0)
    decay = jnp.exp(-back)
    part = (back * (1.0 - decay * jnp.cos(turn)) + turn * decay * jnp.sin(turn)) / squared
    divided = (1.0 + jnp.where(none, part, 0.0).sum()) / every
    # E (-N mod k), from the law of N mod k at the end
    rest = jnp.arange(MOST_ANSWERED)
    missing = jnp.where(rest < every, jnp.mod(-rest, every), 0.0)
    law = (jnp.where(used, decay, 0.0) * jnp.cos(turn - angle * rest[:, None])).sum(-1) / every
    sent = (count + (missing * law).sum()) / every
    return Answers(sent / count, delay_s * (1.0 - divided) / sent, (1.0 - law[0]) / sent)


def answers_of(rates: Array, every: Array, delay_s: Array, clock: str) -> Answers:
    """Return `answers` of many rates, (F,); of every segment at once where there is no clock."""
    if not clock:
        return Answers(jnp.ones_like(rates), jnp.zeros_like(rates), jnp.zeros_like(rates))
    return jax.vmap(lambda rate: answers(rate, every, delay_s, tick=clock == "tick"))(rates)
