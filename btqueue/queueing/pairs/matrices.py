"""Arrivals to the two queues of a station, as matrices, and the frames of a visit as two linear maps.

A frame has two halves: a packet of the inbound queue or a poll, then a packet of the outbound queue or an
empty answer. Seen from one queue, the other enters only through the length of its half: long if it has a
packet, one slot if not. So the queue has two transition matrices per frame, one for each of these, and
everything a visit needs from the queue are the powers of these two, applied to a vector.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

INBOUND, OUTBOUND = 0, 1
CAPACITIES, LIMITS, STATIONS = (20, 40, 60), (10, 30), (7,)  # sizes that compiled programs are made for


class Shape(NamedTuple):
    """Sizes that compiled programs are made for; smaller systems are padded and masked.

    ``contents`` is one more than the largest capacity, ``frames`` the largest limit, ``stations`` the largest
    number of stations of a cycle.
    """

    contents: int
    frames: int
    stations: int


def padded_shape(capacity: int, limit: int, stations: int) -> Shape:
    """The smallest of a few sizes that holds a system, so that few programs are compiled."""

    def padded(value: int, sizes: tuple[int, ...]) -> int:
        fitting = [size for size in sizes if value <= size]
        return fitting[0] if fitting else -(-value // sizes[-1]) * sizes[-1]

    return Shape(padded(capacity, CAPACITIES) + 1, padded(limit, LIMITS), padded(stations, STATIONS))


class StationInput(NamedTuple):
    """One station: first axis the direction (`INBOUND`, `OUTBOUND`) except for ``limit``.

    Attributes:
        rate: ``(2,)`` batches a slot.
        batch: ``(2, x)`` law of the packets of a batch.
        slots: ``(2, t)`` law of a packet's slots.
        capacity: ``(2,)`` room, the packet being sent included.
        limit: most frames a visit.
    """

    rate: Array
    batch: Array
    slots: Array
    capacity: Array
    limit: Array


class Fillings(NamedTuple):
    """One queue between departures: matrices of its content over given times.

    Attributes:
        inbound_packet, outbound_packet, slot: ``(z, z)`` during a packet of either direction, and a slot.
        absence: ``(v, z)`` law of the arrivals in each absence on the grid (see `fill_up`).
        after_end: ``(z,)`` law at the end of a visit that ended because both queues were empty.
        fresh: ``(v, z)`` law at the next visit start after such an end.
        law: ``(t + v, z)`` laws of the arrivals in 0..t-1 slots, then in each absence.
    """

    inbound_packet: Array
    outbound_packet: Array
    slot: Array
    absence: Array
    after_end: Array
    fresh: Array
    law: Array


class FrameTables(NamedTuple):
    """A queue over a visit that never ends early; first axis: the other queue idle (0) or busy (1) all along.

    Attributes:
        empty: ``(2, m + 1, z)`` probability that the queue is empty at the start of frame j, given its start.
        elapsed: the same, times the slots that its own halves have taken by then.
        whole: ``(2, z, z)`` transition over ``limit`` frames.
        frame: ``(2, z, z)`` transition over one.
        stays_empty: ``(2,)`` probability that an outbound queue empty when the frame starts is so when its
            half starts (1 for inbound queues, whose half comes first).
    """

    empty: Array
    elapsed: Array
    whole: Array
    frame: Array
    stays_empty: Array


def arrivals_within(rate: Array, batch: Array, lengths: Array, size: int) -> Array:
    """Laws ``(l, size)`` of the packets that come within each length of time, by Panjer's recursion."""
    weighted = _cut(jnp.arange(batch.shape[0]) * batch, size)[1:]
    offered = rate * lengths
    first = jnp.exp(-offered)

    def next_entry(window: Array, k: Array) -> tuple[Array, Array]:
        new = offered / k * (window @ weighted)
        return jnp.concatenate([new[:, None], window[:, :-1]], axis=1), new

    window = jnp.zeros((lengths.shape[0], size - 1)).at[:, 0].set(first)
    _, rest = jax.lax.scan(next_entry, window, jnp.arange(1.0, size))
    return jnp.concatenate([first[:, None], rest.T], axis=1)


def times_within(rate: Array, batch: Array, lengths: Array, laws: Array) -> Array:
    """Mean time ``(l, size)`` within each length during which so many packets have come.

    From the forward equation of the batch Poisson process, integrated:
    ``p_k(t) - p_k(0) = -rate I_k + rate sum_j x_j I_{k-j}``.
    """
    size = laws.shape[1]
    sizes = _cut(batch, size)[1:]
    first = -jnp.expm1(-rate * lengths) / rate

    def next_entry(window: Array, law: Array) -> tuple[Array, Array]:
        new = jnp.maximum(window @ sizes - law / rate, 0.0)
        return jnp.concatenate([new[:, None], window[:, :-1]], axis=1), new

    window = jnp.zeros((lengths.shape[0], size - 1)).at[:, 0].set(first)
    _, rest = jax.lax.scan(next_entry, window, laws[:, 1:].T)
    return jnp.concatenate([first[:, None], rest.T], axis=1)


def _cut(law: Array, size: int) -> Array:
    head = law[:size]
    return jnp.pad(head, (0, size - head.shape[0]))


def toeplitz(law: Array) -> Array:
    """Upper triangular ``T[..., i, j] = law[..., j - i]``."""
    shift = jnp.arange(law.shape[-1])[None, :] - jnp.arange(law.shape[-1])[:, None]
    return jnp.where(shift >= 0, law[..., jnp.maximum(shift, 0)], 0.0)


def filling(law: Array, capacity: Array, total: Array | float) -> Array:
    """Matrix ``q -> min(q + arrivals, capacity)``; row sums are ``total``, rows above the capacity zero."""
    content = jnp.arange(law.shape[-1])
    matrix = toeplitz(law) * (content < capacity)
    full = jnp.maximum(jnp.asarray(total)[..., None] - matrix.sum(axis=-1), 0.0)
    matrix = matrix + full[..., None] * (content == capacity)
    return jnp.where((content <= capacity)[:, None], matrix, 0.0)


def _cap(law: Array, capacity: Array, total: Array) -> Array:
    """Move what lies at or above the capacity onto it; ``total`` is the mass of the untruncated law."""
    content = jnp.arange(law.shape[-1])
    below = jnp.where(content < capacity, jnp.maximum(law, 0.0), 0.0)
    full = jnp.maximum(total - below.sum(axis=-1), 0.0)
    return below + full[..., None] * (content == capacity)


def fill_up(content: Array, arrivals: Array, capacity: Array, total: Array | float = 1.0) -> Array:
    """Laws ``(v, r, z)`` of queues that fill with ``arrivals`` ``(v, z)``, by FFT.

    ``arrivals`` may be a law (``total`` 1) or the mean times at each number of arrivals (``total`` ``(v,)``,
    the whole time). Entries have absolute errors of about 1e-16.
    """
    size = content.shape[-1]
    spectrum = jnp.fft.rfft(content, 2 * size) * jnp.fft.rfft(arrivals, 2 * size)[:, None]
    summed = jnp.fft.irfft(spectrum, 2 * size)[..., :size]
    mass = content.sum(axis=-1) * jnp.broadcast_to(total, arrivals.shape[:1])[:, None]
    return _cap(summed, capacity, mass)


def depart(law: Array) -> Array:
    """One packet leaves: the last axis shifted down; its entry 0 holds no mass."""
    return jnp.concatenate([law[..., 1:], jnp.zeros_like(law[..., :1])], axis=-1)


def fillings(station: StationInput, direction: int, absence: Array, size: int) -> Fillings:
    """The matrices of one queue of a station; ``absence`` is the grid of absences in slots.

    At an end with both queues empty the inbound queue was seen empty two slots ago (poll and answer), the
    outbound queue one slot ago.
    """
    times = jnp.arange(float(station.slots.shape[-1]))
    blind = 2.0 if direction == INBOUND else 1.0
    lengths = jnp.concatenate([times, absence, absence + blind, jnp.asarray([blind])])
    laws = arrivals_within(station.rate[direction], station.batch[direction], lengths, size)
    short, away = times.shape[0], absence.shape[0]
    capacity = station.capacity[direction]
    packets = [filling(station.slots[way] @ laws[:short], capacity, 1.0) for way in (INBOUND, OUTBOUND)]
    return Fillings(
        inbound_packet=packets[INBOUND],
        outbound_packet=packets[OUTBOUND],
        slot=filling(laws[1], capacity, 1.0),
        absence=laws[short : short + away],
        after_end=filling(laws[-1], capacity, 1.0)[0],
        fresh=_cap(laws[short + away : short + 2 * away], capacity, jnp.ones(away)),
        law=laws[: short + away],
    )


def frame_tables(
    queue: Fillings, mean_slots: Array, limit: Array, direction: int, frames: int
) -> FrameTables:
    """The tables of one queue; ``mean_slots`` of its packets."""
    size = queue.slot.shape[0]
    empty_at_start = (jnp.arange(size) == 0).astype(queue.slot.dtype)
    if direction == INBOUND:
        own = depart(queue.inbound_packet).at[0].set(queue.slot[0])
        frame = jnp.stack([own @ queue.slot, own @ queue.outbound_packet])
        stays_empty = jnp.ones(2)
        from_empty = jnp.stack([queue.slot[0] @ queue.slot, queue.slot[0] @ queue.outbound_packet])
    else:
        own = depart(queue.outbound_packet).at[0].set(queue.slot[0])
        frame = jnp.stack([queue.slot @ own, queue.inbound_packet @ own])
        stays_empty = jnp.stack([queue.slot[0, 0], queue.inbound_packet[0, 0]])
        from_empty = jnp.broadcast_to(queue.slot[0], (2, size))

    def advance(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        empty, elapsed = carry
        later = jnp.einsum("tij,tj->ti", frame, empty)
        # the frame adds mean_slots, less what an idle own half saves
        saved = (mean_slots - 1.0) * stays_empty * jnp.sum(from_empty * empty, axis=-1)
        longer = jnp.einsum("tij,tj->ti", frame, elapsed) + mean_slots * later
        return (later, longer - saved[:, None] * empty_at_start), carry

    start = jnp.broadcast_to(empty_at_start, (2, size))
    _, (empty, elapsed) = jax.lax.scan(advance, (start, jnp.zeros_like(start)), None, length=frames + 1)
    whole = _power(frame, limit, frames)
    return FrameTables(jnp.moveaxis(empty, 0, 1), jnp.moveaxis(elapsed, 0, 1), whole, frame, stays_empty)


def _power(matrix: Array, exponent: Array, largest: int) -> Array:
    """``matrix ** exponent`` for a traced exponent up to ``largest``, by repeated squaring."""
    result = jnp.broadcast_to(jnp.eye(matrix.shape[-1], dtype=matrix.dtype), matrix.shape)
    bits = largest.bit_length()
    for bit in range(bits):
        result = jnp.where((exponent >> bit) & 1, result @ matrix, result)
        if bit < bits - 1:
            matrix = matrix @ matrix
    return result
