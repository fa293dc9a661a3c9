"""Many pair-service systems at once: sizes may differ, a few compiled programs serve them all."""

import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.errors import require_law, require_no_mass_at_zero
from btqueue.queueing.fixed_point import Acceleration, continue_acceleration, start_acceleration
from btqueue.queueing.pairs.closure import first_state, prepare, step
from btqueue.queueing.pairs.matrices import Shape, StationInput, padded_shape
from btqueue.queueing.pairs.queue import LEAST_RATE, Values
from btqueue.queueing.pairs.solution import PairQueueSolution, summarise

ROUNDS = (12, 30)  # iterations after which unfinished systems are put together anew
CHUNK = 32  # systems per call: enough to fill the vector units, little enough to stay in the cache


@partial(jax.jit, static_argnames=("shape",))
def _solve_chunk(
    inputs: StationInput, count: Any, start: Acceleration, shape: Shape, tolerance: float, max_iterations: int
) -> tuple[PairQueueSolution, Acceleration]:
    """Go on with a chunk of systems for some iterations; its measures, and where it stands."""
    _, unravel = ravel_pytree(first_state(1, shape))

    def solve(
        stations: StationInput, count: Array, now: Acceleration
    ) -> tuple[PairQueueSolution, Acceleration]:
        system = prepare(stations, count, shape)
        now = continue_acceleration(
            lambda state: step(state, system),
            now,
            unravel,
            tolerance=tolerance,
            max_iterations=max_iterations,
        )
        state = unravel(now.vector)
        return summarise(state, system, now.residual, now.iterations, tolerance), now

    return jax.vmap(solve)(inputs, count, start)


def _columns(
    stations: Values,
    limit: Values,
    batch_rate: Values,
    batch_size: Values,
    packet_slots: Values,
    capacity: Values,
) -> tuple[np.ndarray, StationInput]:
    rate = np.asarray(batch_rate, dtype=float)
    if rate.ndim != 2 or rate.shape[1] != 2:
        raise ValueError(f"batch_rate must have shape (systems, 2), got {rate.shape}")
    if not np.isfinite(rate).all() or (rate < 0).any():
        raise ValueError("batch_rate must be finite and not negative")
    points = rate.shape[0]

    def law(value: Values, name: str) -> Array:
        require_law(value, name)
        require_no_mass_at_zero(value, name)
        array = np.asarray(value, dtype=float)
        return jnp.asarray(np.broadcast_to(array, (points, 2, array.shape[-1])))

    def whole(value: Values, name: str, shape: tuple[int, ...]) -> np.ndarray:
        array = np.asarray(value)
        if not (array == np.floor(array)).all() or (array < 1).any():
            raise ValueError(f"{name} must hold whole numbers of at least 1")
        return np.broadcast_to(array.astype(np.int64), shape)

    room = np.asarray(capacity)
    room = room[:, None] if room.ndim == 1 and room.shape[0] == points else room
    inputs = StationInput(
        jnp.maximum(rate, LEAST_RATE),
        law(batch_size, "batch_size"),
        law(packet_slots, "packet_slots"),
        jnp.asarray(whole(room, "capacity", (points, 2))),
        jnp.asarray(whole(limit, "limit", (points,))),
    )
    return whole(stations, "stations", (points,)), inputs


@in_float64
def pair_queue_batch(
    *,
    stations: Values,
    limit: Values,
    batch_rate: Values,
    packet_slots: Values,
    capacity: Values,
    batch_size: Values = (0.0, 1.0),
    tolerance: float = 1e-5,
    max_iterations: int = 200,
) -> PairQueueSolution:
    """Steady states of many cycles of equal stations by the reduced method of `pair_queue`.

    Systems are sorted into size classes and solved in chunks on all cores. Nothing is raised for a system
    that did not converge: see ``converged``.

    Args:
        stations: ``(p,)`` or a number.
        limit: ``(p,)`` or a number: most frames a visit.
        batch_rate: ``(p, 2)`` batches a slot, inbound and outbound.
        packet_slots: law ``(t,)``, ``(2, t)`` or ``(p, 2, t)`` of a packet's slots.
        capacity: ``(p,)``, ``(p, 2)`` or a number: room in packets.
        batch_size: law ``(x,)``, ``(2, x)`` or ``(p, 2, x)`` of the packets of a batch.
        tolerance: change of the state in the last iteration.
        max_iterations: iterations after which to leave a system as it is.

    Returns:
        The solution with a leading axis of systems (numpy arrays); occupancies are padded with zeros.

    Raises:
        ValueError: if shapes do not fit or a value is not allowed.
    """
    count, inputs = _columns(stations, limit, batch_rate, batch_size, packet_slots, capacity)
    sizes = [
        padded_shape(int(room), int(most), int(count.max()))
        for room, most in zip(np.asarray(inputs.capacity).max(axis=1), np.asarray(inputs.limit), strict=True)
    ]
    load = count * (np.asarray(inputs.rate) * _mean(inputs.batch) * _mean(inputs.slots)).sum(axis=1)
    now = Work(count, inputs, tolerance)
    # alike systems take alike numbers of iterations, and a chunk takes as many as its slowest
    waiting = {
        size: sorted((i for i, own in enumerate(sizes) if own == size), key=load.__getitem__)
        for size in sorted({*sizes})
    }
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for last in (*(most for most in ROUNDS if most < max_iterations), max_iterations):
            chunks = [
                (size, members[start : start + CHUNK])
                for size, members in waiting.items()
                for start in range(0, len(members), CHUNK)
            ]
            list(pool.map(lambda chunk, last=last: now.advance(chunk[0], chunk[1], last), chunks))
            waiting = {size: [i for i in members if i in now.unfinished] for size, members in waiting.items()}
    return jax.tree.map(lambda *leaves: _stack(leaves), *(now.answers[i] for i in range(len(sizes))))


def _mean(law: ArrayLike) -> np.ndarray:
    law = np.asarray(law)
    return law @ np.arange(law.shape[-1])


class Work:
    """What is done of a batch: answers by number of the system, and where the unfinished ones stand."""

    def __init__(self, count: np.ndarray, inputs: StationInput, tolerance: float) -> None:
        self.count, self.inputs, self.tolerance = count, inputs, tolerance
        self.answers: dict[int, PairQueueSolution] = {}
        self.unfinished: dict[int, Acceleration] = {}

    @in_float64
    def advance(self, shape: Shape, members: list[int], last: int) -> None:
        """Take a chunk of systems of one size class to convergence, or up to iteration ``last``."""
        filled = np.resize(members, CHUNK)
        inputs = jax.tree.map(lambda field: np.asarray(field)[filled][:, None], self.inputs)
        fresh = jax.tree.map(np.asarray, start_acceleration(first_state(1, shape)))
        start = jax.tree.map(
            lambda *leaves: np.stack(leaves), *(self.unfinished.get(i, fresh) for i in filled)
        )
        answer, now = _solve_chunk(inputs, self.count[filled], start, shape, self.tolerance, last)
        answer, now = jax.tree.map(np.asarray, (answer, now))
        for place, number in enumerate(members):
            self.answers[number] = jax.tree.map(lambda leaf, at=place: leaf[at], answer)
            self.unfinished.pop(number, None)
            if not answer.converged[place]:
                self.unfinished[number] = jax.tree.map(lambda leaf, at=place: leaf[at], now)


def _stack(leaves: tuple[np.ndarray, ...]) -> np.ndarray:
    if leaves[0].ndim:
        width = max(leaf.shape[-1] for leaf in leaves)
        leaves = tuple(
            np.pad(leaf, [(0, 0)] * (leaf.ndim - 1) + [(0, width - leaf.shape[-1])]) for leaf in leaves
        )
    return np.stack(leaves)
