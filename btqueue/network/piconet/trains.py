"""How often the packets of a train are sent, under repetition on the link.

Each transmission takes a frame of its own. So to a queue a packet that is repeated is a row of packets, and
a train is one batch of as many as there are transmissions: the convolution of the laws of its packets.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import betainc

from btqueue.baseband.packets import FEC_BLOCK_BITS, HEADER_BITS, SLOT_S, SYNC_WORD_BITS
from btqueue.channel.error_rates import SYNC_THRESHOLD

TINY = 1e-300
"""In place of 0 where something is divided by it."""


class Packets(NamedTuple):
    """The packets of a train, padded to K places; bits and blocks are those that an error can hit.

    Attributes:
        there: (K,) 1 for a packet, 0 for an empty place.
        slots: (K,) of each packet.
        bits: (K,) uncoded bits.
        blocks: (K,) blocks of the 2/3-rate code.
        on_air: (K,) 1 if sync word and header count too.
        spared: (K,) probability that piconets nearby do not spoil a transmission.
        prices: (K,) bytes that a token bucket charges for each.
    """

    there: Array
    slots: Array
    bits: Array
    blocks: Array
    on_air: Array
    spared: Array
    prices: Array

    @property
    def count(self) -> Array:
        """Packets of the train."""
        return self.there.sum()

    @property
    def tokens(self) -> Array:
        """Bytes that a token bucket charges for the train."""
        return self.prices.sum()


class Sent(NamedTuple):
    """The transmissions of a train on one hop, in visits of at most M frames.

    Attributes:
        law: (L,) of their number, on 0, 1, ...
        mean, variance: of their number.
        mean_slots: mean slots of one.
        visits: mean visits that a lone train takes.
        full_visits: mean visits that it fills.
        fills_last: probability that it fills the last of its visits.
        squares: mean sum of the squares of the frames of its visits.
        success: probability that every packet gets through in the end.
    """

    law: Array
    mean: Array
    variance: Array
    mean_slots: Array
    visits: Array
    full_visits: Array
    fills_last: Array
    squares: Array
    success: Array

    @property
    def chunks(self) -> Array:
        """Sum of the squares of the frames of its visits, over the square of all its frames."""
        return self.squares / jnp.maximum(self.variance + self.mean**2, TINY)


ALLOWED = np.array([1.0, 1.0, SYNC_THRESHOLD])
"""Wrong bits that a coded block, a bit of the header, and the sync word bear."""
BITS = np.array([FEC_BLOCK_BITS, 3.0, SYNC_WORD_BITS])
"""Bits of each."""


def failure_rates(packets: Packets, ber: Array) -> Array:
    """Return the probability that a transmission fails: that of `btqueue.channel`, differentiable.

    Args:
        packets: of trains, (..., K).
        ber: (S, ...) bit error rates.

    Returns:
        (S, ..., K).
    """
    worse = betainc(ALLOWED + 1.0, BITS - ALLOWED, ber[..., None])  # more wrong bits than allowed
    block, header, access = jnp.moveaxis(jnp.log1p(-worse), -1, 0)[..., None]
    log_success = packets.bits * jnp.log1p(-ber)[..., None] + packets.blocks * block
    return -jnp.expm1(log_success + packets.on_air[..., None] * (HEADER_BITS * header + access))


def beside_neighbours(packets: Packets, error_rates: Array) -> Array:
    """Return error rates with those transmissions that piconets nearby spoil."""
    return 1.0 - (1.0 - error_rates) * packets.spared


def transmissions(
    packets: Packets, error_rates: Array, most: Array, limit: Array, size: int, *, delivered: bool = False
) -> Sent:
    """Return the transmissions of a train of which a packet gets at most so many.

    With a packet that is given up after several tries the rest of its segment is discarded.

    Args:
        packets: of the train.
        error_rates: (K,) of a transmission of each packet.
        most: transmissions of a packet; infinite without limit.
        limit: most frames M of a visit.
        size: of the law; what lies beyond is left out.
        delivered: whether only trains of which every packet gets through count.
    """
    number = jnp.arange(size)
    none = jnp.zeros(size).at[0].set(1.0)

    def with_one_more(laws: tuple[Array, Array], packet: tuple[Array, Array]) -> tuple[Any, Array]:
        there, error_rate = packet
        whole, ended = laws
        own = jnp.where(there > 0.0, attempts(error_rate, most, size), none)
        lost = (there > 0.0) & (most > 1.0) & (number == most)
        last = jnp.where(lost, own * error_rate, 0.0)
        ended = ended + jnp.convolve(whole, last)[:size]
        return (jnp.convolve(whole, own - last)[:size], ended), whole.sum() * (own @ number)

    (law, ended), means = jax.lax.scan(with_one_more, (none, jnp.zeros(size)), (packets.there, error_rates))
    law = law if delivered else law + ended
    law = law / law.sum()
    mean = law @ number
    never = jnp.where(jnp.isinf(most), 0.0, error_rates ** jnp.where(jnp.isinf(most), 1.0, most))
    return Sent(
        law=law,
        mean=mean,
        variance=law @ (number - mean) ** 2,
        mean_slots=(means @ packets.slots) / jnp.maximum(means.sum(), 1.0),
        visits=law @ jnp.ceil(number / limit),
        full_visits=law @ jnp.floor(number / limit),
        fills_last=law @ ((number > 0) & (number % limit == 0)),
        squares=law @ (jnp.floor(number / limit) * limit**2 + (number % limit) ** 2),
        success=jnp.prod(1.0 - packets.there * never),
    )


def fills_after(first: Sent, second: Sent, limit: Array) -> Array:
    """Return the probability that a train fills the visit that the one before it has begun to fill."""
    left = jnp.arange(first.law.size) % limit
    rests = jnp.zeros(first.law.size).at[left.astype(int)].add(first.law)
    missing = (limit - jnp.arange(second.law.size) % limit) % limit
    known = (missing > 0) & (missing < rests.size)
    return second.law @ jnp.where(known, rests[jnp.where(known, missing, 0).astype(int)], 0.0)


def survival(
    packets: Packets, by_state: Array, stays: tuple[Array, Array], limit: Array, away_s: Array
) -> Array:
    """Return the probability that every packet of a train that is sent once gets over a two-state radio.

    The radio changes from packet to packet, and from visit to visit; exact if visits are regular.

    Args:
        packets: of the train.
        by_state: (2, K) error rates in the good and in the bad state.
        stays: mean times in both states (s).
        limit: most frames M of a visit.
        away_s: from visit to visit.
    """
    good_s, bad_s = stays
    share, changes = jnp.stack([good_s, bad_s]) / (good_s + bad_s), 1.0 / good_s + 1.0 / bad_s
    places = jnp.arange(1.0, packets.slots.size + 1.0)
    away_s = jnp.where(places % limit == 0.0, away_s, 0.0)
    kept = jnp.exp(-changes * (SLOT_S * (packets.slots + 1.0) + away_s))

    def send(state: Array, packet: tuple[Array, Array, Array]) -> tuple[Array, None]:
        there, error_rates, kept = packet
        through = state * (1.0 - error_rates)
        after = kept * through + (1.0 - kept) * through.sum() * share
        return jnp.where(there > 0.0, after, state), None

    return jax.lax.scan(send, share, (packets.there, by_state.T, kept))[0].sum()


def attempts(error_rate: Array, most: Array, size: int) -> Array:
    """(size,) law of a packet's transmissions: geometric, cut at the last one allowed."""
    number = jnp.arange(size)
    some = error_rate > 0.0
    powers = jnp.where(some, error_rate, 0.5) ** (number - 1.0)
    first = jnp.where(number == 1, 1.0, jnp.where(number == 2, error_rate, 0.0))  # to first order
    before = jnp.where(some, powers, first)  # e^(k - 1) at k
    law = jnp.where((number >= 1) & (number < most), (1.0 - error_rate) * before, 0.0)
    return jnp.where(number == most, before, law)
