"""The closure behind `pair_queue`: a station sees the others through one length that it remembers.

A long cycle leaves full queues, so the visits that follow it are long too. As in `pairs.polling`, stations
are taken as independent given the length of their own last cycle (here: of the absence and a share of the
visit before it, `pairs.tour`); what makes it fast is that the two queues of a station are not followed
together but one by one (`pairs.queue_runs`), and lengths live on a dozen points.

The state of a station at the start of a visit: how its last visit ended (both queues empty, or after all
frames), the absence since, the length remembered; after a full visit also the laws of what the two queues
kept and the joint law of which of them kept nothing.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from btqueue.queueing.pairs.matrices import INBOUND, OUTBOUND, Shape, StationInput, fill_up
from btqueue.queueing.pairs.queue_runs import TINY
from btqueue.queueing.pairs.station_visits import (
    ClassVisits,
    StationTables,
    by_emptiness,
    class_visits,
    normalised,
    station_tables,
)
from btqueue.queueing.pairs.tour import (
    ABSENCES,
    CYCLES,
    LengthGrids,
    TourWeights,
    absences,
    equal_tours,
    length_grids,
    unlike_tours,
)


class System(NamedTuple):
    """All of a cycle of stations that does not change from one iteration to the next.

    Attributes:
        stations: inputs, with a leading axis: of length 1 if all stations are equal.
        count: number of stations.
        grids: lengths.
        tables: of each station.
        after_empty: visits after an end with both queues empty.
        tours: weights of the tours of equal stations; None for unlike ones.
    """

    stations: StationInput
    count: Array
    grids: LengthGrids
    tables: StationTables
    after_empty: ClassVisits
    tours: TourWeights | None


class ClosureState(NamedTuple):
    """Of each station (first axis), at the start of a visit; masses sum to one.

    Attributes:
        emptied: ``(s, c, v)`` last visit ended with both queues empty; length remembered, absence.
        filled: ``(s, c, v)`` last visit took all its frames.
        kept_in, kept_out: ``(s, v, z)`` content at the end of such a visit, with that mass.
        kept: ``(s, v, 2, 2)`` outbound (first) and inbound queue kept nothing (0) or something (1).
    """

    emptied: Array
    filled: Array
    kept_in: Array
    kept_out: Array
    kept: Array


class Classes(NamedTuple):
    """The two kinds of visits (after an empty end, after a full visit), and the weights of their classes."""

    kinds: tuple[ClassVisits, ClassVisits]
    weights: tuple[Array, Array]  # (s, v)
    emptied: Array  # (s, c, v), as in the state but cleaned
    filled: Array


def prepare(stations: StationInput, count: Array, shape: Shape) -> System:
    """Grids and tables of all stations; ``stations`` has a leading axis, ``count`` is their number."""
    slots = jnp.arange(float(stations.slots.shape[-1]))
    frame = jnp.max(jnp.where(stations.slots > 0, slots, 0.0), axis=-1).sum(axis=-1)
    sizes = jnp.arange(float(stations.batch.shape[-1]))
    # a packet takes its slots and, when the other direction is idle, one more: half of it is taken here
    packet, packet_square = stations.slots @ (slots + 0.5), stations.slots @ (slots + 0.5) ** 2
    batch, batch_square = stations.batch @ sizes, stations.batch @ sizes**2
    work = (stations.rate * batch * packet).sum(axis=1)
    square = batch_square * packet**2 + batch * (packet_square - packet**2)
    grids = length_grids(stations.limit * frame, work, (stations.rate * square).sum(axis=1), count)
    tables, after_empty = jax.vmap(lambda station: station_tables(station, grids, shape))(stations)
    tours = equal_tours(count, shape.stations - 1, grids) if stations.limit.shape[0] == 1 else None
    return System(stations, count, grids, tables, after_empty, tours)


def first_state(stations: int, shape: Shape) -> ClosureState:
    """All queues empty and short cycles: where the iteration starts."""
    masses = jnp.zeros((stations, CYCLES, ABSENCES))
    contents = jnp.zeros((stations, ABSENCES, shape.contents))
    return ClosureState(
        masses.at[:, 0, 0].set(1.0), masses, contents, contents, jnp.zeros((stations, ABSENCES, 2, 2))
    )


def classes_of(state: ClosureState, system: System) -> Classes:
    """The visits of a state."""
    emptied, filled = jnp.maximum(state.emptied, 0.0), jnp.maximum(state.filled, 0.0)
    total = (emptied + filled).sum(axis=(1, 2), keepdims=True)
    emptied, filled = emptied / total, filled / total

    def after_full(state: ClosureState, station: StationInput, table: StationTables) -> ClassVisits:
        groups = jnp.maximum(state.kept, 0.0) + 1e-90
        groups = groups / groups.sum(axis=(1, 2), keepdims=True)
        starts = [
            fill_up(normalised(by_emptiness(jnp.maximum(kept, 0.0))), queue.absence, station.capacity[way])
            for way, kept, queue in (
                (INBOUND, state.kept_in, table.inbound),
                (OUTBOUND, state.kept_out, table.outbound),
            )
        ]
        return class_visits(starts[0], starts[1], groups, station, table, system.grids)

    full = jax.vmap(after_full)(state, system.stations, system.tables)
    return Classes((system.after_empty, full), (emptied.sum(axis=1), filled.sum(axis=1)), emptied, filled)


def next_absences(classes: Classes, system: System) -> Array:
    """Law ``(s, v, x, w)`` of the next absence, given the last one and the visit between."""
    visits = sum(
        jnp.einsum("scv,svx->scx", mass, kind.short + kind.long)
        for mass, kind in zip((classes.emptied, classes.filled), classes.kinds, strict=True)
    )
    visits = jnp.asarray(visits)
    tours = system.tours
    if tours is None:
        tours = unlike_tours(visits.sum(axis=1) @ system.grids.visit, system.grids)
    # a memory that has (almost) no mass borrows the law of an average one
    visits = visits + 1e-12 * visits.sum(axis=1, keepdims=True)
    return absences(visits / visits.sum(axis=2, keepdims=True), system.count, tours, system.grids)


def cycle_laws(classes: Classes, system: System) -> Array:
    """Laws ``(s, c)`` of the cycles, from visit start to visit start."""
    away = next_absences(classes, system)
    by_absence = sum(
        weight[..., None] * (kind.short + kind.long)
        for weight, kind in zip(classes.weights, classes.kinds, strict=True)
    )
    law = jnp.einsum("svx,svxw,wxc->sc", jnp.asarray(by_absence), away, system.grids.cycle_of)
    return law / law.sum(axis=1, keepdims=True)


def step(state: ClosureState, system: System) -> ClosureState:
    """One iteration: from a visit start to the next."""
    classes = classes_of(state, system)
    away, memory_of = next_absences(classes, system), system.grids.memory_of
    ends = [_ends(weight, kind, away) for weight, kind in zip(classes.weights, classes.kinds, strict=True)]
    short, filled, kept_in, kept_out, kept = (sum_of[0] + sum_of[1] for sum_of in zip(*ends, strict=True))
    emptied = jnp.einsum("svx,svxw->sxw", short, away)
    return ClosureState(
        emptied=jnp.einsum("sxw,wxc->scw", emptied, memory_of),
        filled=jnp.einsum("sxw,wxc->scw", filled, memory_of),
        kept_in=kept_in,
        kept_out=kept_out,
        kept=kept,
    )


def _ends(weight: Array, kind: ClassVisits, away: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Ends of one kind of visits: empty ``(s, v, x)``; after all frames ``(s, x, w)``, with what is kept."""
    ends = kind.long[..., None] * away
    moves = weight[..., None] * ends.sum(axis=2) / jnp.maximum(kind.visit.full, TINY)[..., None]
    return (
        weight[..., None] * kind.short,
        jnp.einsum("sv,svxw->sxw", weight, ends),
        jnp.einsum("svw,svz->swz", moves, kind.kept_in),
        jnp.einsum("svw,svz->swz", moves, kind.kept_out),
        jnp.einsum("svw,svab->swab", moves, kind.kept),
    )
