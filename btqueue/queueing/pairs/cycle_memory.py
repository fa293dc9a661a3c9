"""How the length of a cycle is remembered by a server that visits equal stations in turn.

A long cycle leaves full queues, so the visits that follow it are long too. The closures of `pairs.polling`
and `pairs.relay` keep exactly that much memory: given the length of its own last cycle, each station is
taken as independent of the others. Here are the pieces they share: grids of lengths, on which a law is kept
by splitting mass linearly between neighbours (which keeps the mean), the tour of the other stations, and the
iteration from empty queues.
"""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing.fixed_point import iterate

State = tuple[Array, Array, Array]
"""Laws of the queues of a station: at visit start, ``(v, ...)`` with the absence behind it and ``(c, ...)``
with the cycle behind it; at visit end, ``(v, ...)`` with the absence that follows."""


class CycleGrids(eqx.Module):
    """Grids of lengths in slots, and the weights that put a length on them.

    Attributes:
        absence: ``(v,)`` grid of the time between two visits to a station.
        cycle: ``(c,)`` grid of the time from visit start to visit start.
        cycle_weights: ``(v, t, c)`` weights of absence + visit on the grid of cycles.
        absence_weights: ``(V, v)`` weights of a tour of V steps on the grid of absences.
        last_cycle: per later station on the tour, the lower neighbour and the upper one's weight, ``(c, V)``,
            of the cycle which that station has behind it.
    """

    absence: ArrayLike
    cycle: ArrayLike
    cycle_weights: ArrayLike
    absence_weights: ArrayLike
    last_cycle: tuple[tuple[ArrayLike, ArrayLike], ...]


def grid(low: int, high: int, unit: int, points: int) -> np.ndarray:
    """At most ``points`` multiples of ``unit`` from ``low`` to ``high``, closer together at the low end.

    Most cycles are short, so the spacing grows linearly along the grid; all lattice points are taken where
    there are few.
    """
    every = np.arange(low, high + 1, unit)
    if len(every) <= points:
        return every
    fraction = np.linspace(0.0, 1.0, points)
    wanted = low + (high - low) * (0.2 * fraction + 0.8 * fraction**2)
    return np.unique(low + unit * np.rint((wanted - low) / unit).astype(int))


def split(values: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Weights, shape ``values.shape + (len(points),)``, that share a value between its two neighbours."""
    if len(points) == 1:
        return np.ones((*np.shape(values), 1))
    lower, upper_weight = neighbours(values, points)
    index = np.arange(len(points))
    at_lower = (index == lower[..., None]) * (1.0 - upper_weight)[..., None]
    return at_lower + (index == lower[..., None] + 1) * upper_weight[..., None]


def neighbours(values: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Index of the grid point below each value, and the weight of the one above; ends are not exceeded."""
    lower = np.clip(np.searchsorted(points, values, side="right") - 1, 0, max(len(points) - 2, 0))
    upper = np.minimum(lower + 1, len(points) - 1)
    width = np.maximum(points[upper] - points[lower], 1)
    return lower, np.clip((values - points[lower]) / width, 0.0, 1.0)


def cycle_grids(*, stations: int, shortest: int, longest: int, unit: int, points: int) -> CycleGrids:
    """Grids for ``stations`` equal stations whose visits last ``shortest..longest`` slots."""
    others = stations - 1
    absence = grid(others * shortest, others * longest, unit, points)
    cycle = grid(stations * shortest, stations * longest, unit, points)
    visits = np.arange(0, longest + 1, unit)
    tours = np.arange(0, others * longest + 1, unit)
    last = []
    for passed in range(1, others):
        # of the cycle behind this station, a share has already been replaced by the visits of this tour
        done = np.arange(0, passed * longest + 1, unit)
        lower, weight = neighbours(cycle[:, None] * (1.0 - passed / stations) + done[None, :], cycle)
        last.append((lower, weight))
    return CycleGrids(
        absence=absence,
        cycle=cycle,
        cycle_weights=split(absence[:, None] + visits[None, :], cycle),
        absence_weights=split(tours, absence),
        last_cycle=tuple(last),
    )


def _add_lengths(joint: Array) -> Array:
    """Law of V + t from the joint law on axes (..., V, t, n): sum over the anti-diagonals."""
    *lead, tours, visits, rest = joint.shape
    padded = jnp.pad(joint, [(0, 0)] * len(lead) + [(0, 0), (0, tours), (0, 0)])
    flat = padded.reshape(*lead, tours * (tours + visits), rest)
    width = tours + visits - 1
    return flat[..., : tours * width, :].reshape(*lead, tours, width, rest).sum(axis=-3)


def tour(visit: Array, grids: CycleGrids, stations: int) -> Array:
    """Law of the absence from a station, given the cycle that ended with its visit.

    Args:
        visit: ``(c, a, t, b)`` law of a visit's length and of the packets it hands on (b), given the
            visited station's last cycle and the packets just handed to it (a).
        grids: the grids.
        stations: stations in the cycle, this one included.

    Returns:
        ``(c, a, v, b)``: absence and packets handed back, given the cycle and the packets handed on.
    """
    if stations == 1:
        handed = jnp.eye(visit.shape[1])[None, :, None, :]
        return jnp.broadcast_to(handed, (visit.shape[0], visit.shape[1], 1, visit.shape[1]))
    so_far = visit
    for lower, weight in grids.last_cycle:
        lower, weight = jnp.asarray(lower), jnp.asarray(weight)[..., None, None, None]
        here = (1.0 - weight) * visit[lower] + weight * visit[lower + 1]
        so_far = _add_lengths(jnp.einsum("caVh,cVhtb->caVtb", so_far, here))
    return jnp.einsum("caVb,Vv->cavb", so_far, grids.absence_weights)


def iterate_from_empty(
    step: Callable[[State], State],
    empty: Array,
    ended: tuple[int, ...],
    grids: CycleGrids,
    *,
    tolerance: ArrayLike,
    max_iterations: int,
) -> tuple[State, Array, Array]:
    """Repeat ``step`` from empty queues with all lengths equally likely behind them.

    Args:
        step: one cycle.
        empty: law of a station's queues that are empty at visit start.
        ended: shape of the law of the queues at visit end.
        grids: the grids.
        tolerance: change of the law at visit start in the last iteration.
        max_iterations: iterations after which to give up.

    Returns:
        The state, the last change and the number of iterations.
    """
    absences, _, cycles = jnp.shape(grids.cycle_weights)
    start = (
        jnp.broadcast_to(empty / absences, (absences, *empty.shape)),
        jnp.broadcast_to(empty / cycles, (cycles, *empty.shape)),
        jnp.zeros((absences, *ended)),
    )
    return iterate(step, start, lambda state: state[0], tolerance=tolerance, max_iterations=max_iterations)
