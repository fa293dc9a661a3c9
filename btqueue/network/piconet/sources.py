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
them starts, or a free-running tick ends. Sampled is the round trip of the first. For messages that come by a
Poisson process, each at once, both are exact. A tick may fall into a message; both its parts are then taken
as independent.
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
        behind: mean segments of one message that are ahead of it, or that it waits for, beyond the segments
            that are ahead of any segment of a message.
    """

    share: Array
    wait_s: Array
    clocked: Array
    behind: Array


def answers(
    rate: Array, segments: Array, every: Array, delay_s: Array, own_s: Array, *, tick: bool
) -> Answers:
    """Return what delayed acknowledgements make of messages that come by a Poisson process, each at once.

    Args:
        rate: messages a second.
        segments: of a message.
        every: k, segments that force an acknowledgement out.
        delay_s: of the timer, or between two ticks.
        own_s: from one segment of a message to the next.
        tick: whether a clock ticks for ever; else the first segment starts a timer.
    """
    count = jnp.maximum(rate * delay_s, LEAST_COUNT)
    if not tick:
        return _until_timer(count, segments, every, delay_s)
    # the number of segments since a tick, modulo k, by its discrete Fourier transform
    residue = jnp.arange(MOST_ANSWERED)
    used = residue < every
    turned = jnp.mod(residue * segments, every)
    begun = count * (1.0 - jnp.exp(2j * jnp.pi * turned / every))
    back = jnp.where(used, jnp.exp(-2j * jnp.pi * residue[:, None] * residue / every), 0.0) / every
    over = jnp.where(turned > 0.0, begun, 1.0)
    parts = _parts(residue, segments, every, jnp.minimum(rate * (segments - 1.0) * own_s, 1.0))
    average = (back @ (parts * jnp.where(turned > 0.0, -jnp.expm1(-over) / over, 1.0))).real  # over a period
    at_tick = (back @ (parts**2 * jnp.exp(-begun))).real
    filled = _message(jnp.where(used, residue, 0.0), segments, every)
    missing = jnp.where(used, jnp.mod(-residue, every), 0.0)
    sent = (count * segments + at_tick @ missing) / every
    behind = jnp.where(used, average, 0.0) @ filled.behind * count / sent - (segments - 1.0) / 2.0
    share, clocked = sent / (count * segments), (1.0 - at_tick[0]) / sent
    return Answers(share, delay_s * (1.0 - average[0]) / sent, clocked, behind)


def _parts(wave: Array, segments: Array, every: Array, parted: Array) -> Array:
    """Return the transform of the segments of a message on one side of a tick, with that chance of any.

    Evenly one of 1, 2, ... b - 1, if there are any: ticks do not heed messages.
    """
    once = jnp.exp(2j * jnp.pi * wave / every)
    whole = jnp.mod(wave, every) == 0.0
    others = jnp.maximum(segments - 1.0, 1.0)
    even = (once - once**segments) / jnp.where(whole, 1.0, 1.0 - once) / others
    return 1.0 + parted * (jnp.where(whole, 1.0, even) - 1.0)


class _Message(NamedTuple):
    """A message that comes when some segments are not answered.

    Attributes:
        answered: acknowledgements that its segments send.
        held: segments that are not answered then.
        behind: its segments that the first ones of acknowledgements wait for, and those ahead of them in it.
    """

    answered: Array
    held: Array
    behind: Array


def _message(held: Array, segments: Array, every: Array) -> _Message:
    """Return what a message of so many segments does when so many are held, less than k."""
    answered = jnp.floor((held + segments) / every)
    left = held + segments - answered * every
    first = jnp.where(held > 0.0, every - held, 0.0)  # ahead of the first that begins an acknowledgement
    number = answered - jnp.where(held > 0.0, 1.0, 0.0)  # acknowledgements of its own segments alone
    behind = first + number * (first + every - 1.0 + every * (number - 1.0) / 2.0)
    begins = jnp.where(left > 0.0, segments - left, 0.0)
    none = answered == 0.0
    return _Message(answered, left, jnp.where(none, 0.0, behind + begins))


def _until_timer(count: Array, segments: Array, every: Array, delay_s: Array) -> Answers:
    """Return the answers of a receiver whose timer the first segment starts that is not answered.

    A message that finds none held is answered at once but for its number modulo k. Those wait for the next
    messages, or the timer; of the message that fills an acknowledgement some are held again. After k messages
    at most none is.

    Args:
        count: messages in the time of the timer, on average.
        segments: of a message.
        every: k.
        delay_s: of the timer.
    """

    def hold(state: tuple[Array, ...], _: None) -> tuple[tuple[Array, ...], None]:
        held, chance, messages, sent, waited_s, timed, behind = state
        wanted = jnp.ceil(jnp.maximum(every - held, 1.0) / segments)  # messages that fill an acknowledgement
        filled = gammainc(wanted, count)
        meanwhile = wanted * gammainc(wanted + 1.0, count) + count * (1.0 - filled)
        there = jnp.where(held > 0.0, chance, 0.0)
        last = _message(held + (wanted - 1.0) * segments, segments, every)
        return (
            last.held,
            there * filled,
            messages + there * meanwhile,
            sent + there * (filled * last.answered + 1.0 - filled),
            waited_s + there * meanwhile / count * delay_s,
            timed + there * (1.0 - filled),
            behind + there * filled * last.behind,
        ), None

    one, none = jnp.ones_like(count), jnp.zeros_like(count)
    first = _message(none, segments, every)
    begin = (first.held, one, one, first.answered, none, none, first.behind)
    (_, _, messages, sent, waited_s, timed, behind), _ = jax.lax.scan(hold, begin, length=MOST_ANSWERED)
    behind = behind / sent - (segments - 1.0) / 2.0
    return Answers(sent / (messages * segments), waited_s / sent, timed / sent, behind)


def answers_of(
    rates: Array, segments: Array, every: Array, delay_s: Array, own_s: Array, clock: str
) -> Answers:
    """Return `answers` of many rates of segments, (F,), that come in messages of so many, (F,).

    Of every segment at once where there is no clock.
    """
    if not clock:
        none = jnp.zeros_like(rates)
        return Answers(jnp.ones_like(rates), none, none, none)
    return jax.vmap(
        lambda rate, size: answers(rate / size, size, every, delay_s, own_s, tick=clock == "tick")
    )(rates, segments)
