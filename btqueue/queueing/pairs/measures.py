"""Steady-state measures of a station from the solved closure: what its queues hold over a mean cycle."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from btqueue.queueing.pairs.matrices import (
    INBOUND,
    OUTBOUND,
    Fillings,
    StationInput,
    depart,
    fill_up,
    filling,
    times_within,
)
from btqueue.queueing.pairs.queue_runs import TINY
from btqueue.queueing.pairs.station_visits import ClassVisits, StationTables


class QueueTimes(NamedTuple):
    """Of one queue, in a mean cycle: slots at each content ``(z,)``, and packets sent."""

    content: Array
    sent: Array


def _busy_rows(kinds: tuple[ClassVisits, ClassVisits], weights: tuple[Array, Array]) -> tuple[Array, ...]:
    """Starts of all visits of the station, in four rows: after an empty end, a full one; queue empty or not.

    Returns the rows of the outbound and the inbound queue, ``(4, z)``, with their mass, and for each the
    probability that the other queue is busy in frame j, ``(4, m)``.
    """
    out_rows, in_rows, in_busy, out_busy = [], [], [], []
    for kind, weight in zip(kinds, weights, strict=True):
        joint = kind.groups * weight[:, None, None]
        out_rows.append(jnp.einsum("grs,grz->rz", joint, kind.out_start))
        in_rows.append(jnp.einsum("grs,gsz->sz", joint, kind.in_start))
        in_busy.append(jnp.einsum("grs,gsm->rm", joint, kind.in_busy))
        out_busy.append(jnp.einsum("grs,grm->sm", joint, kind.out_busy))
    out_start, in_start = jnp.concatenate(out_rows), jnp.concatenate(in_rows)
    seen_by_out = jnp.concatenate(in_busy) / jnp.maximum(out_start.sum(axis=1), TINY)[:, None]
    seen_by_in = jnp.concatenate(out_busy) / jnp.maximum(in_start.sum(axis=1), TINY)[:, None]
    return out_start, in_start, seen_by_out, seen_by_in


def queue_times(
    station: StationInput,
    tables: StationTables,
    kinds: tuple[ClassVisits, ClassVisits],
    weights: tuple[Array, Array],
    kept: tuple[Array, Array],
    absence: Array,
) -> tuple[QueueTimes, QueueTimes]:
    """Times at each content of the inbound and of the outbound queue, over a cycle of the station.

    The unending visit is followed frame by frame, and what comes after the end is taken off, as in
    `pairs.frames`. ``kept`` are the laws at the end of full visits, ``(v, z)`` with their mass.
    """
    inbound, outbound = tables.inbound, tables.outbound
    out_start, in_start, in_busy, out_busy = _busy_rows(kinds, weights)
    live = (jnp.arange(in_busy.shape[1]) < station.limit).astype(out_start.dtype)
    ends = sum(weight @ kind.visit.ends for weight, kind in zip(weights, kinds, strict=True))
    # visits that ended so early that frame m after their end would still have been one of theirs
    last = station.limit - 2 - jnp.arange(live.shape[0])
    early = jnp.where(last >= 0, jnp.cumsum(ends)[jnp.maximum(last, 0)], 0.0)

    def halves(out_law: Array, in_law: Array, in_on: Array, out_on: Array) -> tuple[Array, ...]:
        first = (in_on * out_law, (1.0 - in_on) * out_law)
        middle = first[0] @ outbound.inbound_packet + first[1] @ outbound.slot
        served = (
            depart(in_law.at[..., 0].set(0.0) @ inbound.inbound_packet) + in_law[..., :1] * inbound.slot[0]
        )
        return (*first, middle, in_law, out_on * served, (1.0 - out_on) * served)

    def frame(carry: tuple[Array, Array], busy: tuple[Array, Array]) -> tuple[tuple[Array, Array], tuple]:
        out_law, in_law = carry
        laws = halves(out_law, in_law, busy[0][:, None], busy[1][:, None])
        middle = laws[2]
        next_out = (
            depart(middle.at[:, 0].set(0.0) @ outbound.outbound_packet) + middle[:, :1] * outbound.slot[0]
        )
        next_in = laws[4] @ inbound.outbound_packet + laws[5] @ inbound.slot
        return (next_out, next_in), tuple(law.sum(axis=0) for law in laws)

    _, unending = jax.lax.scan(frame, (out_start, in_start), (in_busy.T, out_busy.T))
    afresh = halves(
        tables.fresh_out,
        tables.fresh_in,
        1.0 - tables.fresh.in_idle[0][:, None],
        1.0 - tables.fresh.out_idle[0][:, None],
    )
    busy_first, idle_first, out_half, in_half, busy_second, idle_second = (
        jnp.maximum(live @ all_ - early @ beyond, 0.0) for all_, beyond in zip(unending, afresh, strict=True)
    )
    in_packet, out_packet, slot, away = _times(station, INBOUND, inbound, absence)
    content_in = in_half.at[0].set(0.0) @ in_packet + in_half[0] * slot[0]
    content_in = content_in + busy_second @ out_packet + idle_second @ slot
    in_absence = _absence(
        weights[0], inbound.after_end, kept[INBOUND], away, absence, station.capacity[INBOUND]
    )
    in_packet, out_packet, slot, away = _times(station, OUTBOUND, outbound, absence)
    content_out = busy_first @ in_packet + idle_first @ slot
    content_out = content_out + out_half.at[0].set(0.0) @ out_packet + out_half[0] * slot[0]
    out_absence = _absence(
        weights[0], outbound.after_end, kept[OUTBOUND], away, absence, station.capacity[OUTBOUND]
    )
    return (
        QueueTimes(content_in + in_absence, in_half[1:].sum()),
        QueueTimes(content_out + out_absence, out_half[1:].sum()),
    )


def _times(station: StationInput, way: int, queue: Fillings, absence: Array) -> tuple[Array, ...]:
    """Time at each content: matrices for either packet and for a slot, laws ``(v, z)`` for each absence."""
    short = station.slots.shape[-1]
    slots = jnp.arange(float(short))
    lengths = jnp.concatenate([slots, absence])
    times = times_within(station.rate[way], station.batch[way], lengths, queue.law)
    capacity = station.capacity[way]
    packets = [filling(law @ times[:short], capacity, law @ slots) for law in station.slots]
    return packets[0], packets[1], filling(times[1], capacity, 1.0), times[short:]


def _absence(
    weight: Array, after_end: Array, kept: Array, times: Array, absence: Array, capacity: Array
) -> Array:
    """Time at each content in all absences, from what the visits left."""
    left = weight[:, None] * after_end + kept
    return fill_up(left[:, None], times, capacity, absence)[:, 0].sum(axis=0)


def losses(occupancy: Array, batch: Array, capacity: Array) -> tuple[Array, Array]:
    """Shares of packets lost, and of batches that lose some, by batches that find ``occupancy``."""
    sizes = jnp.arange(batch.shape[0])
    room = jnp.maximum(capacity - jnp.arange(occupancy.shape[0]), 0)
    lost = jnp.maximum(sizes[None, :] - room[:, None], 0)
    return occupancy @ (lost @ batch) / (sizes @ batch), occupancy @ ((lost > 0) @ batch)
