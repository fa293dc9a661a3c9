"""Visits to one station from given starts: when they end, their lengths, what they leave.

Visits come in classes, one for each length of the absence before them. Within a class the queues start in
rows: which of them was empty (at the visit's start after an end with both queues empty; at the last visit's
end after a full one). The joint law of the two rows is kept; given the rows the queues are taken as
independent.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from btqueue.queueing.pairs.frames import Unending, Visit, unending, visit
from btqueue.queueing.pairs.matrices import (
    INBOUND,
    OUTBOUND,
    Fillings,
    FrameTables,
    Shape,
    StationInput,
    fillings,
    frame_tables,
)
from btqueue.queueing.pairs.queue_runs import TINY, run_queues
from btqueue.queueing.pairs.tour import LengthGrids, share


class StationTables(NamedTuple):
    """All of a station that does not change from one iteration to the next."""

    inbound: Fillings
    outbound: Fillings
    in_table: FrameTables
    out_table: FrameTables
    mean_slots: Array
    square_slots: Array
    longest_frame: Array
    fresh: Unending
    fresh_in: Array  # (m, z) queue at the start of frame m after a fresh start
    fresh_out: Array


class ClassVisits(NamedTuple):
    """Visits by class of start ``g``, one class per absence.

    Attributes:
        visit: when and how they end.
        in_start, out_start: ``(g, r, z)`` queues at the start; ``groups``: their joint law ``(g, r, s)``.
        in_busy, out_busy: ``(g, r, m)`` the row's queue has a packet in frame m of a visit that never ends.
        kept_in, kept_out, kept: as in `ClosureState`, for visits of all frames.
        short, long: ``(g, x)`` law of the length, of visits that end empty and of full ones.
    """

    visit: Visit
    in_start: Array
    out_start: Array
    groups: Array
    in_busy: Array
    out_busy: Array
    kept_in: Array
    kept_out: Array
    kept: Array
    short: Array
    long: Array


def normalised(law: Array) -> Array:
    """Law on the last axis; a row without mass becomes the constant 0."""
    law = law.at[..., 0].add(1e-90)
    return law / law.sum(axis=-1, keepdims=True)


def _scaled(values: Array, total: Array, axes: tuple[int, ...]) -> Array:
    """``values`` without negative entries, scaled so that they sum to ``total`` over ``axes``."""
    values = jnp.maximum(values, 0.0)
    return values * jnp.expand_dims(total / jnp.maximum(values.sum(axis=axes), TINY), axes)


def by_emptiness(law: Array) -> Array:
    """Split ``(..., z)`` into the part at zero and the part above, ``(..., 2, z)``."""
    zero = jnp.arange(law.shape[-1]) == 0
    return law[..., None, :] * jnp.stack([zero, ~zero])


def _two(law: Array) -> Array:
    """Probabilities of zero and of more, ``(..., z) -> (..., 2)``."""
    return jnp.stack([law[..., 0], law[..., 1:].sum(axis=-1)], axis=-1)


def class_visits(
    in_start: Array,
    out_start: Array,
    groups: Array,
    station: StationInput,
    tables: StationTables,
    grids: LengthGrids,
) -> ClassVisits:
    """Visits from starts ``(g, r, z)`` with joint law ``(g, r, s)`` of the rows (outbound, inbound)."""
    pair = (tables.in_table, tables.out_table)
    runs = run_queues(out_start, in_start, groups, pair, tables.mean_slots, station.limit)
    now = unending(runs, groups, tables.mean_slots, tables.outbound.slot[0, 0])
    ends = visit(
        now, tables.fresh, tables.mean_slots, tables.square_slots, station.limit, tables.longest_frame
    )

    def at_end(start: Array, table: FrameTables, busy: Array) -> tuple[Array, Array]:
        idle, full = start @ table.whole[0], start @ table.whole[1]
        return idle + busy[..., None] * (full - idle), _two(full) - _two(idle)

    out_end, out_pull = at_end(out_start, tables.out_table, runs.busy[..., 0])
    in_end, in_pull = at_end(in_start, tables.in_table, runs.busy[..., 1])
    # what visits that ended before would have come to by the last frame
    back = station.limit - 1 - jnp.arange(ends.ends.shape[1])
    within = (back >= 0)[:, None]
    ended_in = jnp.where(within, tables.fresh_in[jnp.maximum(back, 0)], 0.0)
    ended_out = jnp.where(within, tables.fresh_out[jnp.maximum(back, 0)], 0.0)
    sign = jnp.asarray([1.0, -1.0])
    out_lean, in_lean = runs.leans[..., 0, None] * sign, runs.leans[..., 1, None] * sign
    kept = (
        jnp.einsum("grs,gra,gsb->gab", groups, _two(out_end), _two(in_end))
        + jnp.einsum("grs,gra,gsb->gab", groups, out_pull, in_lean)
        + jnp.einsum("grs,gra,gsb->gab", groups, out_lean, in_pull)
        - jnp.einsum("gm,ma,mb->gab", ends.ends, _two(ended_out), _two(ended_in))
    )
    kept_out = jnp.einsum("grs,grz->gz", groups, out_end) - ends.ends @ ended_out
    kept_in = jnp.einsum("grs,gsz->gz", groups, in_end) - ends.ends @ ended_in
    short, long = _length_laws(ends, station.limit, tables.longest_frame, grids)
    return ClassVisits(
        visit=ends,
        in_start=in_start,
        out_start=out_start,
        groups=groups,
        in_busy=1.0 - runs.in_empty,
        out_busy=1.0 - runs.out_skips,
        kept_in=_scaled(kept_in, ends.full, (1,)),
        kept_out=_scaled(kept_out, ends.full, (1,)),
        kept=_scaled(kept, ends.full, (1, 2)),
        short=short,
        long=long,
    )


def _length_laws(ends: Visit, limit: Array, longest_frame: Array, grids: LengthGrids) -> tuple[Array, Array]:
    """Laws of the length on the grid: each way to end with its mean, and the spread left, as two points."""
    number = jnp.arange(ends.ends.shape[1])
    most = limit * longest_frame
    length = jnp.clip(ends.slots_at_end / jnp.maximum(ends.ends, TINY), 2.0 * (number + 1), most)
    rest = ends.mean - ends.slots_at_end.sum(axis=1)
    full_length = jnp.clip(rest / jnp.maximum(ends.full, 1e-14), 2.0 * limit, most)
    explained = (ends.ends * length**2).sum(axis=1) + ends.full * full_length**2
    wide = jnp.where(number > 0, ends.ends, 0.0).sum(axis=1) + ends.full
    variance = jnp.maximum(ends.mean_square - explained, 0.0) / jnp.maximum(wide, 1e-14)
    spread = jnp.sqrt(jnp.maximum(variance, 1e-12))

    def law(length: Array, least: Array, deviation: Array) -> Array:
        deviation = jnp.minimum(deviation, jnp.maximum(jnp.minimum(length - least, most - length), 0.0))
        return 0.5 * (share(length - deviation, grids.visit) + share(length + deviation, grids.visit))

    short = law(length, 2.0 * (number + 1), spread[:, None])
    long = law(full_length, 2.0 * limit, spread)
    return jnp.einsum("gm,gmx->gx", ends.ends, short), ends.full[:, None] * long


def station_tables(
    station: StationInput, grids: LengthGrids, shape: Shape
) -> tuple[StationTables, ClassVisits]:
    """What can be computed of a station beforehand; with it the visits that follow an empty end."""
    slots = jnp.arange(float(station.slots.shape[-1]))
    mean_slots, square_slots = station.slots @ slots, station.slots @ slots**2
    longest = jnp.max(jnp.where(station.slots > 0, slots, 0.0), axis=-1).sum()
    queues = [fillings(station, way, grids.absence, shape.contents) for way in (INBOUND, OUTBOUND)]
    pair = [
        frame_tables(queue, mean_slots[way], station.limit, way, shape.frames)
        for way, queue in enumerate(queues)
    ]
    alone = jnp.ones((1, 1, 1))
    starts = [queue.after_end[None, None] for queue in queues]
    runs = run_queues(starts[OUTBOUND], starts[INBOUND], alone, (pair[0], pair[1]), mean_slots, station.limit)
    fresh = unending(runs, alone, mean_slots, queues[OUTBOUND].slot[0, 0])
    tables = StationTables(
        queues[INBOUND],
        queues[OUTBOUND],
        pair[INBOUND],
        pair[OUTBOUND],
        mean_slots,
        square_slots,
        longest,
        fresh,
        *_fresh_laws(queues, pair, fresh),
    )
    rows = [by_emptiness(queue.fresh) for queue in queues]
    joint = rows[OUTBOUND].sum(axis=2)[:, :, None] * rows[INBOUND].sum(axis=2)[:, None, :]
    starts = [normalised(row) for row in rows]
    return tables, class_visits(starts[INBOUND], starts[OUTBOUND], joint, station, tables, grids)


def _fresh_laws(queues: list[Fillings], pair: list[FrameTables], fresh: Unending) -> tuple[Array, Array]:
    """Laws ``(m, z)`` of the inbound and the outbound queue at the start of frame m after a fresh start."""

    def later(law: Array, table: FrameTables, busy: Array) -> Array:
        return law @ table.frame[0] + busy * (law @ (table.frame[1] - table.frame[0]))

    def frame(laws: tuple[Array, Array], idle: tuple[Array, Array]) -> tuple[tuple[Array, Array], tuple]:
        in_idle, out_idle = idle
        return (later(laws[0], pair[0], 1.0 - out_idle), later(laws[1], pair[1], 1.0 - in_idle)), laws

    first = (queues[INBOUND].after_end, queues[OUTBOUND].after_end)
    return jax.lax.scan(frame, first, (fresh.in_idle[0], fresh.out_idle[0]))[1]
