"""Lengths of visits, absences and cycles on short grids, and the server's tour of the other stations.

What a station remembers is one length: the absence that ends with its visit and, of the visit before it, the
share `OWN_SHARE`. (Where the limit on frames never binds the absence alone matters: the visit before it left
both queues empty. Where it binds, the whole cycle has filled the queues.) The grids are fine where lengths
are short, and mass between two points is shared so that the mean is kept, which widens a law slightly.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

ABSENCES, VISITS, CYCLES, PARTIAL = 12, 10, 12, 28  # points of the grids
FINE = 12.0  # slots up to which the grids are nearly even
OWN_SHARE = 0.5  # of a station's last visit that it remembers: best of 0, 0.5 and 1 against simulation


class LengthGrids(NamedTuple):
    """Grids of lengths in slots; ``excess`` is what exceeds the shortest possible length.

    Attributes:
        absence, visit, cycle: lengths of an absence ``(v,)``, a visit ``(x,)``, a cycle ``(c,)``.
        cycle_excess, partial_excess: of a cycle, and of part of a tour ``(p,)``.
        cycle_of: ``(v, x, c)`` weights of absence + visit among the cycles.
        memory_of: ``(v, x, c)`` weights of what is remembered, absence + share of the visit, on that grid.
        longer: ``(p, x, p)`` weights of a partial tour + one visit among the partial tours.
        to_absence: ``(p, v)`` weights of a whole tour among the absences.
    """

    absence: Array
    visit: Array
    cycle: Array
    cycle_excess: Array
    partial_excess: Array
    cycle_of: Array
    memory_of: Array
    longer: Array
    to_absence: Array


def spaced(top: Array, points: int) -> Array:
    """A grid from 0 to ``top`` (at least 1), even at first, then with growing steps."""
    top = jnp.maximum(top, 1.0)
    growth = jnp.log1p(top / FINE)
    return top * jnp.expm1(growth * jnp.arange(points) / (points - 1)) / jnp.expm1(growth)


def share(values: Array, points: Array) -> Array:
    """Weights ``(..., n)`` that share values between their neighbours among ``points``, keeping the mean."""
    above = jnp.clip((values[..., None] - points[:-1]) / jnp.diff(points), 0.0, 1.0)
    ends = jnp.ones_like(above[..., :1])
    return jnp.concatenate([ends, above], axis=-1) - jnp.concatenate([above, 0.0 * ends], axis=-1)


def reach(work: Array, work_square: Array, stations: Array) -> tuple[Array, Array]:
    """Lengths that cycles and visits hardly ever exceed, where the limit on frames does not bind.

    Rough estimates, only to place grids: those of a server with unlimited visits to which ``work`` ``(s,)``
    slots come in a slot, as a compound Poisson process with mean square ``work_square`` a slot.

    Returns:
        The cycle's excess over the shortest, and that of a visit to each station ``(s,)``.
    """
    copies = stations / work.shape[0]
    load, square = copies * work.sum(), copies * work_square.sum()
    cycle = 2.0 * stations / jnp.maximum(1.0 - load, 1e-3)
    deviation = jnp.sqrt(square * cycle / jnp.maximum(1.0 - load**2, 1e-3))
    batch = 2.0 * work_square / work
    long = cycle + 4.0 * deviation
    rest = jnp.maximum(1.0 - work, 0.05)
    visit = (work * long + 5.0 * jnp.sqrt(work_square * long / rest) + batch) / rest
    return 1.5 * cycle + 16.0 * deviation + batch.max(), 2.0 * visit


def length_grids(longest_visit: Array, work: Array, work_square: Array, stations: Array) -> LengthGrids:
    """Grids for ``stations`` stations (a number) whose visits last up to ``longest_visit`` ``(s,)`` slots.

    With one entry in ``longest_visit`` all stations are equal. ``work`` and ``work_square``: see `reach`.
    """
    excess = longest_visit - 2.0
    equal = longest_visit.shape[0] == 1
    total = stations * excess[0] if equal else excess.sum()
    cycle_reach, visit_reach = reach(work, work_square, stations)
    others = jnp.minimum(total - excess.min(), cycle_reach)
    absence, partial = spaced(others, ABSENCES), spaced(others, PARTIAL)
    visit, cycle = (
        spaced(jnp.minimum(excess, visit_reach).max(), VISITS),
        spaced(jnp.minimum(total, cycle_reach), CYCLES),
    )
    return LengthGrids(
        absence=absence + 2.0 * (stations - 1),
        visit=visit + 2.0,
        cycle=cycle + 2.0 * stations,
        cycle_excess=cycle,
        partial_excess=partial,
        cycle_of=share(absence[:, None] + visit, cycle),
        memory_of=share(absence[:, None] + OWN_SHARE * visit, cycle),
        longer=share(partial[:, None] + visit, partial),
        to_absence=share(partial, absence),
    )


class TourWeights(NamedTuple):
    """How a tour of the other stations begins, and what lies behind the stations on it.

    The whole past of a tour is kept as one length: the visit just ended and, of the absence before it, the
    part that the next station remembers. Of that, less and less belongs to the memory of the later stations.

    Attributes:
        start: ``(s, v, x, c)`` weights of that length, given the absence and the visit.
        memory: ``(s, t, c, p, c)`` weights of the memory of the stations visited in turn, given that length
            and the part of the tour made.
    """

    start: Array
    memory: Array


def _tour_weights(start: Array, old: Array, grids: LengthGrids) -> TourWeights:
    """From shares: of the absence in a tour's past, ``(s,)``, and of the past in memories, ``(s, t)``."""
    excess = grids.cycle_excess
    past = start[:, None, None] * (grids.absence - grids.absence[0])[:, None] + (grids.visit - 2.0)
    behind = excess[:, None] * old[..., None, None] + grids.partial_excess
    return TourWeights(share(past, excess), share(behind, excess))


def equal_tours(stations: Array, steps: int, grids: LengthGrids) -> TourWeights:
    """Weights for ``stations`` equal stations; tours of up to ``steps`` others."""
    forgotten = 1.0 - OWN_SHARE
    start = (stations - 1.0 - forgotten) / jnp.maximum(stations - 1.0, 1.0)
    old = (stations - jnp.arange(steps) - forgotten) / (stations - forgotten)
    return _tour_weights(start[None], old[None], grids)


def unlike_tours(mean_visit: Array, grids: LengthGrids) -> TourWeights:
    """Weights for stations with these mean visits: past visits share their time in proportion to them."""
    count = mean_visit.shape[0]
    ahead = mean_visit[(np.arange(count)[:, None] + 1 + np.arange(count - 1)) % count]
    forgotten = (1.0 - OWN_SHARE) * ahead
    total = mean_visit.sum()
    passed = jnp.cumsum(ahead, axis=1) - ahead
    start = 1.0 - forgotten[:, 0] / (total - mean_visit)
    return _tour_weights(start, (total - passed - forgotten) / (total - forgotten[:, :1]), grids)


def absences(visit: Array, stations: Array, weights: TourWeights, grids: LengthGrids) -> Array:
    """Law of the absence that follows a visit, given the absence before it and its own length.

    Args:
        visit: ``(s, c, x)`` law of a visit to each station given its memory.
        stations: their number; more than ``s`` only if ``s`` is 1.
        weights: of the tours that follow the visits to each station.
        grids: the grids.

    Returns:
        ``(s, v, x, w)``.
    """
    kinds, steps = weights.memory.shape[:2]
    number = jnp.arange(steps)
    others = visit[(jnp.arange(kinds)[:, None] + 1 + number) % kinds]
    start = jnp.zeros((CYCLES, PARTIAL)).at[:, 0].set(1.0)

    def pass_station(tour: Array, station: tuple[Array, Array, Array]) -> tuple[Array, None]:
        memory, law, number = station
        joint = tour[:, :, None] * jnp.einsum("cpd,dx->cpx", memory, law)
        return jnp.where(number < stations - 1, jnp.einsum("cpx,pxq->cq", joint, grids.longer), tour), None

    def go_round(memories: Array, laws: Array) -> Array:
        tour, _ = jax.lax.scan(pass_station, start, (memories, laws, number))
        return tour @ grids.to_absence

    none = (jnp.arange(ABSENCES) == 0).astype(visit.dtype)
    by_past = jnp.where(stations > 1, jax.vmap(go_round)(weights.memory, others), none)
    return jnp.einsum("svxc,scw->svxw", weights.start, by_past)
