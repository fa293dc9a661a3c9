"""How long a walk-in bridge between two places holds a packet, as a transform in time.

The n-th packet taken in a stay waits for the end of the exchange (and for what else the stay has in store),
for the switch and for the poll at the other place, and is given in the n-th frame there. The rest of a stay
is taken as independent, given ``n``, of what the bridge meets in the other place; that depends on how long
the stay was in all, which is longer where so many are taken.
"""

import jax
import jax.numpy as jnp
from jax import Array

from btqueue.queueing.bridges import bulk_exchange
from btqueue.queueing.bridges.bulk_exchange import fill
from btqueue.queueing.bridges.stay import Stay, StayShape, StayTables, waiting_after
from btqueue.queueing.bridges.wait import Stages, phases


def _rest_of_exchange(tables: StayTables, shape: StayShape) -> tuple[Array, Array]:
    """Law of the slots to the end of an exchange.

    Returns:
        ``(M, u, d, t)`` from the moment a packet has been taken in the first half of a frame, first frame
        first; and ``(u, d, t)`` from the start of the exchange.
    """
    rate, size = tables.arrival_rate, shape.size
    length = bulk_exchange.longest(shape.lengths, shape.limit) + 1
    shares = [(slots, tables.packet_slots[slots]) for slots in shape.lengths]
    ended = jnp.zeros(length).at[bulk_exchange.EMPTY_FRAME].set(1.0)

    def later(law: Array, slots: int) -> Array:
        return jnp.pad(law, [(0, 0)] * (law.ndim - 1) + [(slots, 0)])[..., :length]

    def frame(after: Array, _: None) -> tuple[Array, Array]:
        given = sum(
            share * later(jnp.einsum("ij,ujt->uit", fill(rate, slots, size), after[:-1]), slots)
            for slots, share in shares
        )
        nothing = later(fill(rate, 1, size) @ after[0], 1)
        second = jnp.concatenate([nothing[None], jnp.asarray(given)])
        taken = sum(
            share * later(jnp.einsum("ij,ujt->uit", fill(rate, slots, size)[1:, 1:], second[:, :-1]), slots)
            for slots, share in shares
        )
        polled = later(jnp.einsum("j,ujt->ut", fill(rate, 1, size)[0], second[1:]), 1)
        first = jnp.concatenate([ended[None], polled])[:, None]
        return jnp.concatenate([first, jnp.asarray(taken)], axis=1), second

    over = jnp.zeros((shape.held + 1, size, length)).at[..., 0].set(1.0)
    start, seconds = jax.lax.scan(frame, over, None, length=shape.limit)
    return seconds[::-1], start


def _rest_of_stay(stages: Stages, tables: StayTables, shape: StayShape, points: int) -> Array:
    """Transform of the rest of the stay after the n-th packet is taken, times Pr(D >= n); ``(n, f)``."""
    rate, size, most = tables.arrival_rate, shape.size, shape.taken
    after_taking, from_start = _rest_of_exchange(tables, shape)
    whole = [jnp.fft.rfft(jnp.einsum("ud,udt->t", start, from_start), points) for start in stages.starts]
    tour = jnp.fft.rfft(tables.tour, points)

    def frame(going: Array, rest: Array) -> tuple[Array, tuple[Array, Array]]:
        # going: (u, d, n), n taken so far in this stay
        shares = [(slots, tables.packet_slots[slots]) for slots in shape.lengths]
        taken = sum(
            share * jnp.einsum("udn,de->uen", going[:, 1:], fill(rate, slots, size)[1:, 1:])
            for slots, share in shares
        )
        taken = jnp.pad(jnp.asarray(taken), ((0, 0), (0, 1), (1, 0)))[..., : most + 1]
        ahead = jnp.einsum("uen,uet->nt", taken, rest)
        polled = jnp.einsum("un,e->uen", going[1:, 0], fill(rate, 1, size)[0])
        between = taken.at[1:].add(polled)
        given = sum(
            share * jnp.einsum("uen,ed->udn", between[1:], fill(rate, slots, size)) for slots, share in shares
        )
        following = jnp.pad(jnp.asarray(given), ((0, 1), (0, 0), (0, 0)))
        following = following.at[0].add(jnp.einsum("en,ed->dn", between[0], fill(rate, 1, size)))
        return following, (ahead, going[0, 0])

    before = jnp.zeros(most + 1).at[0].set(1.0)
    total = jnp.zeros((most + 1, points // 2 + 1), dtype=complex)
    for turn, start in enumerate(stages.starts):
        going, (ahead, ended) = jax.lax.scan(frame, start[:, :, None] * before, after_taking)
        later = jnp.ones(points // 2 + 1, dtype=complex)
        for other in range(turn + 1, shape.exchanges):
            later = later * tour * whole[other]
        total = total + later * jnp.fft.rfft(ahead.sum(axis=0), points, axis=1)
        before = ended.sum(axis=0) + going.sum(axis=(0, 1))
    return total[1:]


def _given_after(starts: list[Array], tables: StayTables, shape: StayShape, points: int) -> Array:
    """Transform of the time from the first exchange's start until the n-th packet is given, ``(n, d, f)``."""
    rate, size = tables.arrival_rate, shape.size
    slot = phases(points)
    shares = [(slots, tables.packet_slots[slots]) for slots in shape.lengths]

    def frame(after: Array, _: None) -> tuple[Array, Array]:
        second = sum(share * slot**slots * (fill(rate, slots, size) @ after) for slots, share in shares)
        second = jnp.asarray(second)
        taken = sum(
            share * slot**slots * (fill(rate, slots, size)[1:, 1:] @ second[:-1]) for slots, share in shares
        )
        polled = slot * (fill(rate, 1, size)[:1] @ second)
        law = jnp.concatenate([polled, jnp.asarray(taken)])
        return law, law

    full, by_number = jax.lax.scan(
        frame, jnp.ones((size, points // 2 + 1), dtype=complex), None, length=shape.limit
    )
    numbers, before = [by_number], jnp.fft.rfft(tables.tour, points) * full
    for start in starts[1:]:
        # those beyond the limit are given in a later exchange, a tour after a full one
        numbers.append(before * jnp.einsum("d,ndf->nf", start.sum(axis=0), by_number)[:, None])
        before = before * jnp.fft.rfft(tables.tour, points) * (start.sum(axis=0) @ full)
    return jnp.concatenate(numbers)


def hold_transform(
    stay: Stay,
    stages: Stages,
    tables: StayTables,
    next_stay: Stay,
    next_stages: Stages,
    next_tables: StayTables,
    shape: StayShape,
    points: int,
) -> Array:
    """Transform of the slots that a packet is held, times the mean packets taken in a stay.

    Args:
        stay: the stay in which it is taken.
        stages: its exchanges.
        tables: those of its place.
        next_stay: the stay in which it is given.
        next_stages: its exchanges.
        next_tables: those of its place.
        shape: the whole numbers.
        points: points of the transform.
    """
    longer = jnp.cumsum(stay.law[:, ::-1], axis=1)[:, ::-1][:, 1:]  # stays in which n and more are taken
    ready = jnp.pad(longer / jnp.maximum(longer.sum(axis=0), 1e-300), ((shape.switch, 0), (0, 0)))
    ages, residuals = next_tables.residuals.shape
    waiting = waiting_after(next_stay.left_waiting, next_tables.arrival_rate, ages + residuals - 1)
    absent = jnp.arange(ages)[:, None] + jnp.arange(residuals)[None, :]
    found = next_tables.residuals[:, :, None] * waiting[absent]
    starts = jnp.fft.rfft(jnp.einsum("an,ard->nrd", ready, found), points, axis=1)
    given = jnp.einsum("nfd,ndf->nf", starts, _given_after(next_stages.starts, next_tables, shape, points))
    rest = _rest_of_stay(stages, tables, shape, points)
    return (rest * given).sum(axis=0) * phases(points) ** shape.switch
