"""What a walk-in bridge does between leaving one place and leaving the next: one step of its chain.

The step takes the joint law of the time from leaving a place to being ready there again and of the packets
then held for it, and gives the joint law of the time of the stay and of the packets taken. Times add up, so
the law of their sum is a product of transforms; the exchange enters as one, too.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.stats import binom

from btqueue.queueing.bridges import bulk_exchange
from btqueue.queueing.bridges.bulk_exchange import poisson_law
from btqueue.queueing.laws import lattice
from btqueue.queueing.laws.residual_renewal import residual_table

NOISE = 1e-15
"""Probabilities below are rounding errors of the transforms."""


def without_noise(law: Array) -> Array:
    """The law without the rounding errors of a transform.

    Where all times are even, odd ones must keep probability zero exactly: with more than two places a little
    odd mass would double with every iteration (odd plus even is odd, and there are two ways).
    """
    return jnp.where(law > NOISE, law, 0.0)


class StayShape(eqx.Module):
    """The whole numbers that fix the shapes of all arrays.

    Attributes:
        lengths: slots that a packet may take.
        size: K + 1, one more than the room for waiting packets.
        limit: most frames of an exchange.
        exchanges: exchanges of a stay.
        held: most packets held for one place.
        keeps_held: whether packets may be held beyond a stay.
        switch: slots from one place to the next.
        entry: entries of the law of the time from leaving a place to being ready there again.
        tour: entries of the law of a tour.
        missed_poll: slots that a missed poll wastes.
        joint: whether times and packets are kept together.
    """

    lengths: tuple[int, ...] = eqx.field(static=True)
    size: int = eqx.field(static=True)
    limit: int = eqx.field(static=True)
    exchanges: int = eqx.field(static=True)
    held: int = eqx.field(static=True)
    keeps_held: bool = eqx.field(static=True)
    switch: int = eqx.field(static=True)
    entry: int = eqx.field(static=True)
    tour: int = eqx.field(static=True)
    missed_poll: int = eqx.field(static=True)
    joint: bool = eqx.field(static=True)

    @property
    def taken(self) -> int:
        """Most packets taken in a stay."""
        return self.exchanges * self.limit

    @property
    def residual(self) -> int:
        """Entries of the law of the wait for a poll."""
        return self.tour + self.missed_poll - 1

    @property
    def stay(self) -> int:
        """Entries of the law of the time of a stay, switch included."""
        one = bulk_exchange.longest(self.lengths, self.limit)
        return self.switch + self.residual + self.exchanges * one + (self.exchanges - 1) * (self.tour - 1)

    @property
    def points(self) -> int:
        """Points of the transforms in time: a power of two that holds a stay."""
        return 1 << (self.stay - 1).bit_length()


class StayTables(eqx.Module):
    """What a step needs of a place, worked out once.

    Attributes:
        residuals: wait for a poll at each age, ``(ages, residual)``.
        exchange: transform in time of `bulk_exchange.exchange_laws`, ``(frequencies, u * d, taken)``.
        tour: law of a tour.
        arrival_rate: packets that come to wait, a slot.
        packet_slots: law of a packet's slots.
    """

    residuals: Array
    exchange: Array
    tour: Array
    arrival_rate: Array
    packet_slots: Array


class Stay(eqx.Module):
    """State of the chain, for one place.

    Attributes:
        law: joint law of the slots from leaving the place before to leaving this one, and of packets taken.
        left_held: law of the packets held for this place that remain held.
        left_waiting: law of the packets that remain waiting.
    """

    law: Array
    left_held: Array
    left_waiting: Array


class StayMoments(eqx.Module):
    """By-products of a step; see `walk_in_bridge.BridgeSolution`."""

    exchange: Array
    missed_polls: Array
    absence: Array
    wait_for_poll: Array


def stay_tables(tour: Array, arrival_rate: Array, packet_slots: Array, shape: StayShape) -> StayTables:
    """Work out the tables of one place."""
    law = bulk_exchange.exchange_laws(
        arrival_rate,
        packet_slots,
        lengths=shape.lengths,
        size=shape.size,
        limit=shape.limit,
        held=shape.held,
    )
    starts = law.reshape(-1, *law.shape[2:])
    return StayTables(
        residuals=residual_table(jnp.pad(tour, (shape.missed_poll, 0)), tour, shape.entry),
        exchange=jnp.moveaxis(jnp.fft.rfft(starts, shape.points, axis=1), 1, 0),
        tour=tour,
        arrival_rate=arrival_rate,
        packet_slots=packet_slots,
    )


def first_stay(shape: StayShape) -> Stay:
    """A stay with nothing to exchange, from which to iterate."""
    return Stay(
        law=jnp.zeros((shape.stay, shape.taken + 1)).at[shape.switch + 2, 0].set(1.0),
        left_held=jnp.zeros(shape.held + 1).at[0].set(1.0),
        left_waiting=jnp.zeros(shape.size).at[0].set(1.0),
    )


def entry_laws(stays: Array, routing: Array, shape: StayShape) -> Array:
    """Joint laws of time until ready and packets held, for each place, from the stays at the others.

    ``stays`` has one entry a place, or one for all, in which case so has the answer.
    """
    switched = ((0, 0), (shape.switch, 0), (0, 0))
    places = routing.shape[0]
    if places == 2:
        return jnp.pad(stays[::-1], switched)
    times, packets = shape.entry - shape.switch, shape.held + 1
    counts = jnp.arange(shape.taken + 1)

    def routed(origin: int, target: int) -> Array:
        law = stays[origin % stays.shape[0]]
        chosen = binom.pmf(counts[None, :], counts[:, None], routing[origin, target])
        return jnp.fft.rfft2(law @ chosen, (times, packets))

    entries = []
    for target in range(stays.shape[0]):
        product = jnp.ones((), dtype=complex)
        for origin in range(places):
            if origin != target:
                product = product * routed(origin, target)
        entries.append(without_noise(jnp.fft.irfft2(product, (times, packets))))
    return jnp.pad(jnp.stack(entries), switched)


def waiting_after(waiting: Array, arrival_rate: Array, times: int) -> Array:
    """Law of the packets that wait ``0..times-1`` slots after there were ``waiting``, ``(times, K + 1)``."""
    arrivals = poisson_law(arrival_rate * jnp.arange(times), waiting.shape[0])
    return jnp.einsum("d,tde->te", waiting, lattice.filling_matrix(arrivals))


def exchange_starts(entry: Array, before: Stay, tables: StayTables, shape: StayShape) -> Array:
    """Joint law of the wait for a poll and the start ``(u, d)`` of the first exchange, ``(r, u, d)``."""
    if shape.keeps_held:
        entry = entry @ lattice.filling_matrix(lattice.CutLaw(before.left_held, jnp.zeros(())))
    ages, residuals = entry.shape[0], tables.residuals.shape[1]
    waiting = waiting_after(before.left_waiting, tables.arrival_rate, ages + residuals - 1)
    if shape.joint:
        absent = jnp.arange(ages)[:, None] + jnp.arange(residuals)[None, :]
        found = tables.residuals[:, :, None] * waiting[absent]
        return jnp.einsum("au,ard->rud", entry, found)
    ready = entry.sum(axis=1)
    wait = ready @ tables.residuals
    found = jnp.maximum(lattice.convolve(ready, wait), 0.0) @ waiting
    return wait[:, None, None] * entry.sum(axis=0)[None, :, None] * found[None, None, :]


def later_starts(held: Array, waiting: Array, tables: StayTables) -> Array:
    """Joint law of a tour and the start of the exchange that follows it, ``(c, u, d)``."""
    found = waiting_after(waiting, tables.arrival_rate, tables.tour.shape[0])
    return tables.tour[:, None, None] * held[None, :, None] * found[:, None, :]


def next_stay(entry: Array, before: Stay, tables: StayTables, shape: StayShape) -> tuple[Stay, StayMoments]:
    """The stay that follows an entry, and its by-products."""
    entry = entry / entry.sum()
    starts = exchange_starts(entry, before, tables, shape)
    ready = entry.sum(axis=1)
    wait = starts.sum(axis=(1, 2))
    packets = shape.taken + 1
    transform = jnp.exp(-2j * jnp.pi * shape.switch * jnp.arange(shape.points // 2 + 1) / shape.points)
    transform = transform[:, None]
    exchange = jnp.zeros(shape.points // 2 + 1)
    held, waiting = before.left_held, before.left_waiting
    for turn in range(shape.exchanges):
        if turn > 0:
            starts = later_starts(held, waiting, tables)
        timed = jnp.fft.rfft(starts.reshape(starts.shape[0], -1), shape.points, axis=0)
        start = starts.sum(axis=0)
        transform = transform * jnp.fft.fft(jnp.einsum("fs,fsn->fn", timed, tables.exchange), packets, axis=1)
        exchange = exchange + jnp.einsum("s,fsn->f", start.reshape(-1), tables.exchange)
        held, waiting = bulk_exchange.leftovers(
            start, tables.arrival_rate, tables.packet_slots, lengths=shape.lengths, limit=shape.limit
        )
    law = jnp.fft.irfft(jnp.fft.ifft(transform, axis=1), shape.points, axis=0)[: shape.stay]
    law = without_noise(law)
    missed = jnp.cumsum(tables.residuals[:, 0]) - tables.residuals[:, 0]
    lasting = jnp.fft.irfft(exchange, shape.points)[: bulk_exchange.longest(shape.lengths, shape.limit) + 1]
    lasting = jnp.maximum(lasting, 0.0)
    moments = StayMoments(
        exchange=lasting / lasting.sum(),
        missed_polls=ready @ missed / shape.exchanges,
        absence=sum_law(ready, tables.residuals),
        wait_for_poll=wait / wait.sum(),
    )
    return Stay(law / law.sum(), held / held.sum(), waiting / waiting.sum()), moments


def sum_law(ready: Array, residuals: Array) -> Array:
    """Law of age plus residual, ``Pr(A + R = t)``."""
    joint = ready[:, None] * residuals
    # entry (a, r) moves to column a + r: pad each row to one more than the sum's length and reshape
    ages, waits = joint.shape
    total = ages + waits - 1
    skewed = jnp.pad(joint, ((0, 0), (0, total + 1 - waits))).reshape(-1)[: ages * total]
    return skewed.reshape(ages, total).sum(axis=0)


@eqx.filter_jit
def all_tables(tours: Array, arrival_rates: Array, packet_slots: Array, shape: StayShape) -> StayTables:
    """The tables of all places, stacked."""
    return jax.vmap(lambda tour, rate: stay_tables(tour, rate, packet_slots, shape))(tours, arrival_rates)
