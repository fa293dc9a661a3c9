"""A meeting of two queues: packets are exchanged pair by pair until both are empty, or for M frames.

A server comes with ``u`` held packets and finds ``d`` waiting ones, to which Poisson arrivals add all the
while. In the first half of a frame it takes a waiting packet, in the second it gives a held one; a half whose
queue is empty when the half starts costs one slot. A frame in which both were empty ends the exchange, and
so does the M-th frame. The held packets arrive in bulk: none is added during the exchange.

The law of the exchange is found backward from its end, frame by frame. The waiting room holds K packets,
applied once in each half, which is exact because nothing leaves inside one.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import gammainc
from jax.scipy.stats import poisson

from btqueue.queueing.laws import lattice

EMPTY_FRAME = 2
"""Slots of the frame that ends an exchange early."""


def poisson_law(mean: Array, length: int) -> lattice.CutLaw:
    """Law of a Poisson number on ``0..length-1`` with the mass beyond; ``mean`` of any shape."""
    mean = jnp.asarray(mean)
    positive = jnp.where(mean > 0, mean, 1.0)  # keeps the derivative at 0 from 0/0
    law = poisson.pmf(jnp.arange(length), positive[..., None])
    none = jnp.zeros(length).at[0].set(1.0)
    return lattice.CutLaw(
        jnp.where(mean[..., None] > 0, law, none),
        jnp.where(mean > 0, gammainc(float(length), positive), 0.0),
    )


def fill(arrival_rate: Array, slots: int, size: int) -> Array:
    """Matrix of a queue of at most ``size - 1`` that fills for ``slots`` slots."""
    return lattice.filling_matrix(poisson_law(arrival_rate * slots, size))


def longest(lengths: tuple[int, ...], limit: int) -> int:
    """Most slots of an exchange."""
    return max(2 * max(lengths) * limit, EMPTY_FRAME)


def _later(law: Array, slots: int, axis: int) -> Array:
    """Shift along ``axis``; what would leave the axis is zero by construction."""
    padding = [(0, 0)] * law.ndim
    padding[axis] = (slots, 0)
    return jax.lax.slice_in_dim(jnp.pad(law, padding), 0, law.shape[axis], axis=axis)


@partial(jax.jit, static_argnames=("lengths", "size", "limit", "held"))
def exchange_laws(
    arrival_rate: Array, packet_law: Array, *, lengths: tuple[int, ...], size: int, limit: int, held: int
) -> Array:
    """Joint law of the slots that an exchange lasts and of the packets taken.

    Args:
        arrival_rate: Poisson arrivals of waiting packets a slot.
        packet_law: law of a packet's slots; ``lengths`` are those of positive probability.
        lengths: see there.
        size: one more than the room for waiting packets, K + 1.
        limit: most frames M.
        held: most packets held.

    Returns:
        Shape ``(held + 1, K + 1, slots + 1, M + 1)``: the start ``(u, d)``, then the law.
    """
    idle = fill(arrival_rate, 1, size)
    fills = {slots: fill(arrival_rate, slots, size) for slots in lengths}
    done = jnp.zeros((held + 1, size, longest(lengths, limit) + 1, limit + 1)).at[:, :, 0, 0].set(1.0)
    ended = jnp.zeros_like(done[0, 0]).at[EMPTY_FRAME, 0].set(1.0)

    def frame(after: Array, _: None) -> tuple[Array, None]:
        # second half: a held packet is given, or one slot passes
        given = sum(
            packet_law[slots] * _later(jnp.einsum("ij,ujtn->uitn", fills[slots], after[:-1]), slots, 2)
            for slots in lengths
        )
        nothing = _later(jnp.einsum("ij,jtn->itn", idle, after[0]), 1, 1)
        second = jnp.concatenate([nothing[None], jnp.asarray(given)])
        # first half: a waiting packet is taken, or one slot passes; two empty halves end it all
        taken = sum(
            packet_law[slots]
            * _later(jnp.einsum("ij,ujtn->uitn", fills[slots][1:, 1:], second[:, :-1]), slots, 2)
            for slots in lengths
        )
        polled = _later(jnp.einsum("j,ujtn->utn", idle[0], second[1:]), 1, 1)
        none_waiting = jnp.concatenate([ended[None], polled])
        return jnp.concatenate([none_waiting[:, None], _later(jnp.asarray(taken), 1, 3)], axis=1), None

    return jax.lax.scan(frame, done, None, length=limit)[0]


@partial(jax.jit, static_argnames=("lengths", "limit"))
def leftovers(
    start: Array, arrival_rate: Array, packet_law: Array, *, lengths: tuple[int, ...], limit: int
) -> tuple[Array, Array]:
    """Laws of the packets still held, and of those waiting, at the end of an exchange.

    Args:
        start: joint law of held and waiting packets at its start, ``(held + 1, K + 1)``.
        arrival_rate: Poisson arrivals of waiting packets a slot.
        packet_law: law of a packet's slots; ``lengths`` are those of positive probability.
        lengths: see there.
        limit: most frames.
    """
    size = start.shape[1]
    idle = fill(arrival_rate, 1, size)
    fills = {slots: fill(arrival_rate, slots, size) for slots in lengths}

    def frame(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
        going, ended = carry
        taken = sum(packet_law[slots] * going[:, 1:] @ fills[slots][1:, 1:] for slots in lengths)
        polled = going[1:, :1] * idle[0]
        between = jnp.pad(jnp.asarray(taken), ((0, 0), (0, 1))).at[1:].add(polled)
        given = sum(packet_law[slots] * between[1:] @ fills[slots] for slots in lengths)
        after = jnp.concatenate([jnp.asarray(given), jnp.zeros((1, size))]).at[0].add(between[0] @ idle)
        return (after, ended + going[0, 0] * idle[0]), None

    (going, ended), _ = jax.lax.scan(frame, (start, jnp.zeros(size)), None, length=limit)
    still_held = going.sum(axis=1)
    waiting = ended @ idle + going.sum(axis=0)  # the empty frame's arrivals, one slot and the other, stay
    return still_held.at[0].add(ended.sum()), waiting
