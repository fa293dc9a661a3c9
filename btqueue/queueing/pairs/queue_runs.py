"""The two queues of a station frame by frame, in a visit that never ends early.

Each queue runs by itself: what it sees of the other is how long the other's halves are. Beside a neighbour
that is always idle, or always busy, its law is a product with a power of a matrix (`pairs.matrices`); between
the two it is mixed in proportion to how often the neighbour was busy.

Approximations: (1) given the row of their starts (see `pairs.station_visits`) the queues are independent, but
for (2) the first order of the correlation that their frame lengths cause; (3) a queue feels the other's
halves through the mean of how often the other was busy since it was itself last empty, and (4) mixes its
behaviour beside an idle and a busy neighbour linearly.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from btqueue.queueing.pairs.matrices import FrameTables

TINY = 1e-100
COUPLING_SWEEPS = 3  # the coupling is weak: the third sweep changes it by less than 1e-3


class Runs(NamedTuple):
    """The two queues in an unending visit; arrays ``(g, r, m)``: class of start, row of it, and frame.

    Attributes:
        out_empty: the outbound queue is empty when the frame starts; ``out_skips``: when its half starts.
        in_empty: the inbound queue is empty when the frame (and its half) starts.
        out_elapsed, in_elapsed: mean slots the own halves took before the frame; ``out_elapsed_empty``,
            ``in_elapsed_empty``, ``out_elapsed_skips``: the same where the queue is empty.
        out_pull, in_pull: change of the empty-probability if the other queue were always busy.
        out_lean, in_lean: covariance of being empty now and the share of earlier frames busy.
        out_drag, in_drag: covariance of the own slots so far and the share of earlier frames busy.
        busy: ``(g, r, 2)`` mean share of all frames in which the other queue is busy, as seen by the outbound
            and by the inbound queue.
        leans: ``(g, r, 2)`` covariance at the end of all frames, of the outbound and of the inbound queue.
    """

    out_empty: Array
    out_skips: Array
    in_empty: Array
    out_elapsed: Array
    in_elapsed: Array
    out_elapsed_empty: Array
    in_elapsed_empty: Array
    out_elapsed_skips: Array
    out_pull: Array
    in_pull: Array
    out_lean: Array
    in_lean: Array
    out_drag: Array
    in_drag: Array
    busy: Array
    leans: Array


def _since_empty(busy: Array, empty: Array) -> Array:
    """Mean of ``busy`` over the frames before each one that a queue remembers: those since it was empty."""

    def remember(carry: tuple[Array, Array], frame: tuple[Array, Array]) -> tuple[tuple[Array, Array], Array]:
        total, count = carry
        busy, kept = frame
        return (kept * total + busy, kept * count + 1.0), total / jnp.maximum(count, 1.0)

    none = jnp.zeros(busy.shape[:-1])
    columns = (jnp.moveaxis(busy, -1, 0), jnp.moveaxis(jnp.clip(1.0 - empty, 0.0, 1.0), -1, 0))
    return jnp.moveaxis(jax.lax.scan(remember, (none, none), columns)[1], 0, -1)


def _mean_before(values: Array) -> Array:
    """Mean of the entries before each one, along the last axis; 0 for the first."""
    return (jnp.cumsum(values, axis=-1) - values) / jnp.maximum(jnp.arange(values.shape[-1]), 1)


def _beside(start: Array, table: FrameTables, mean_slots: Array) -> tuple[Array, Array]:
    """A queue beside an idle and a busy neighbour, ``(2, ..., m + 1)``.

    Returns the probability of being empty, and its covariance with the slots that the own halves have taken.
    """
    empty = jnp.stack([start @ rows.T for rows in table.empty])
    stays = jnp.expand_dims(table.stays_empty, tuple(range(1, empty.ndim)))
    taken = _own_time(empty * stays, mean_slots)
    return empty, jnp.stack([start @ rows.T for rows in table.elapsed]) - empty * taken


def _own_time(idle: Array, mean_slots: Array) -> Array:
    """Mean slots of the own halves before each frame; ``idle``: probability that a half finds no packet."""
    saved = (mean_slots - 1.0) * idle
    return jnp.arange(idle.shape[-1]) * mean_slots - (jnp.cumsum(saved, axis=-1) - saved)


def _shares_of_busy(idle: Array, covariance: Array, mean_slots: Array) -> tuple[Array, Array]:
    """Covariances of the share of earlier frames busy with being empty now, and with the own slots so far.

    ``covariance`` is that of being empty (at the frame's start) with the own slots so far, ``idle`` the
    probability that the half finds no packet. Busy halves take ``mean_slots - 1`` slots more than idle ones,
    so the slots taken tell the share of busy ones. Their variance grows by what each frame adds.
    """
    passed = jnp.maximum(jnp.arange(idle.shape[-1]), 1) * jnp.maximum(mean_slots - 1.0, 1e-9)
    more = mean_slots - 1.0
    growth = more**2 * idle * (1.0 - idle) - 2.0 * more * covariance
    variance = jnp.maximum(jnp.cumsum(growth, axis=-1) - growth, 0.0)
    return covariance / passed, variance / passed


class _Coupled(NamedTuple):
    """What the queues see of each other, ``(g, r, m + 1)``.

    The other is busy in the frame; its share of earlier frames, as far as it matters; and how often the
    outbound queue stays empty until its half.
    """

    in_busy: Array
    out_busy: Array
    felt_by_out: Array
    felt_by_in: Array
    out_stays: Array


def _mix(beside: Array, busy: Array) -> Array:
    return beside[0] + busy * (beside[1] - beside[0])


def _couple(out_empty: Array, in_empty: Array, groups: Array, stays_empty: Array) -> _Coupled:
    """How often each queue finds the other busy, by iteration; the emptiness is that of `_beside`."""
    seen_by_out = groups / jnp.maximum(groups.sum(axis=2, keepdims=True), TINY)
    seen_by_in = groups / jnp.maximum(groups.sum(axis=1, keepdims=True), TINY)
    idle_stays, busy_stays = stays_empty
    felt_by_out = felt_by_in = jnp.full_like(out_empty[0], 0.5)
    in_busy = out_busy = stays = felt_by_out
    for _ in range(COUPLING_SWEEPS):
        out_now, in_now = _mix(out_empty, felt_by_out), _mix(in_empty, felt_by_in)
        in_busy = jnp.einsum("grs,gsm->grm", seen_by_out, 1.0 - in_now)
        stays = idle_stays + in_busy * (busy_stays - idle_stays)
        out_busy = jnp.einsum("grs,grm->gsm", seen_by_in, 1.0 - out_now * stays)
        felt_by_out, felt_by_in = _since_empty(jnp.stack([in_busy, out_busy]), jnp.stack([out_now, in_now]))
    return _Coupled(in_busy, out_busy, felt_by_out, felt_by_in, stays)


def run_queues(
    out_start: Array,
    in_start: Array,
    groups: Array,
    tables: tuple[FrameTables, FrameTables],
    mean_slots: Array,
    limit: Array,
) -> Runs:
    """Follow both queues from starts ``(g, r, z)``; ``groups`` ``(g, r, s)``: joint law of the two rows."""
    in_table, out_table = tables
    out_beside, out_covariances = _beside(out_start, out_table, mean_slots[1])
    in_beside, in_covariances = _beside(in_start, in_table, mean_slots[0])
    seen = _couple(out_beside, in_beside, groups, out_table.stays_empty)
    out_empty, in_empty = _mix(out_beside, seen.felt_by_out), _mix(in_beside, seen.felt_by_in)
    out_covariance = _mix(out_covariances, seen.felt_by_out)
    in_covariance = _mix(in_covariances, seen.felt_by_in)
    out_skips = out_empty * seen.out_stays
    out_taken, in_taken = _own_time(out_skips, mean_slots[1]), _own_time(in_empty, mean_slots[0])
    out_elapsed_empty = out_covariance + out_empty * out_taken
    out_lean, out_drag = _shares_of_busy(out_skips, out_covariance, mean_slots[1])
    in_lean, in_drag = _shares_of_busy(in_empty, in_covariance, mean_slots[0])
    at_end = [
        jnp.take(values, limit, axis=-1)
        for values in (_mean_before(seen.in_busy), _mean_before(seen.out_busy), out_lean, in_lean)
    ]
    by_frame = (
        out_empty,
        out_skips,
        in_empty,
        out_taken,
        in_taken,
        out_elapsed_empty,
        in_covariance + in_empty * in_taken,
        out_elapsed_empty * seen.out_stays,
        out_beside[1] - out_beside[0],
        in_beside[1] - in_beside[0],
        out_lean,
        in_lean,
        out_drag,
        in_drag,
    )
    return Runs(
        *(values[..., :-1] for values in by_frame),
        busy=jnp.stack(at_end[:2], axis=-1),
        leans=jnp.stack(at_end[2:], axis=-1),
    )
