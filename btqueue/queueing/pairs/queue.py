"""Pairs of finite queues polled round robin with at most M frames a visit: fast, for any number of stations.

A cycle of stations, equal or not; a visit is that of `pairs.visit`. `pair_queue` solves one system,
`pairs.batch.pair_queue_batch` many at once with one compiled program per size class. Both use the closure of
`pairs.closure`: approximate, a few milliseconds, differentiable in every rate and law. `pairs.joint_chain`
(exact, two stations) and `pairs.polling` take seconds; for stations that relay to each other: `pairs.relay`.

Measured errors: ``docs/explanation/queueing-pair-polling.md``.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.errors import is_traced, require_count, require_law, require_no_mass_at_zero
from btqueue.queueing.fixed_point import require_converged
from btqueue.queueing.pairs.matrices import StationInput, padded_shape
from btqueue.queueing.pairs.solution import PairQueueSolution, solve_stations

Values = ArrayLike | Sequence[Any]
"""Numbers, nested as an array is."""
LEAST_RATE = 1e-12  # batches a slot: stands for no traffic at all


class PairQueue(eqx.Module):
    """A cycle of stations with two finite queues each; rates and times in slots.

    Every field may hold one value for all stations or, along a last axis of length ``stations`` (before the
    axis of a law), one for each. Rates, capacities and packet lengths come as ``(inbound, outbound)``.

    Attributes:
        stations: number of stations n.
        limit: most frames a visit M.
        batch_rate: two rates of batches a slot (Poisson), ``(2,)`` or ``(2, n)``.
        batch_size: law of the packets of a batch, ``(x,)``, ``(2, x)`` or ``(2, n, x)``.
        packet_slots: law of a packet's slots, ``(t,)``, ``(2, t)`` or ``(2, n, t)``.
        capacity: room in packets, the one being sent included: a number, ``(2,)`` or ``(2, n)``.

    Raises:
        ValueError: if a count is not positive, a rate negative, or a law not one on ``1, 2, ...``.
    """

    stations: ArrayLike
    limit: ArrayLike
    batch_rate: ArrayLike
    batch_size: ArrayLike
    packet_slots: ArrayLike
    capacity: ArrayLike

    def __init__(
        self,
        *,
        stations: int,
        limit: Values,
        batch_rate: Values,
        packet_slots: Values,
        capacity: Values,
        batch_size: Values = (0.0, 1.0),
    ) -> None:
        self.stations = stations
        self.limit = _whole(limit)
        self.batch_rate = _real(batch_rate)
        self.batch_size = _real(batch_size)
        self.packet_slots = _real(packet_slots)
        self.capacity = _whole(capacity)

    def __check_init__(self) -> None:
        if is_traced(self.stations, self.limit, self.capacity):
            return
        require_count(int(np.asarray(self.stations)), "stations")
        for name in ("limit", "capacity"):
            for value in np.ravel(np.asarray(getattr(self, name))):
                require_count(value, name)
        for name in ("batch_size", "packet_slots"):
            require_law(getattr(self, name), name)
            require_no_mass_at_zero(getattr(self, name), name)
        if not is_traced(self.batch_rate):
            rates = np.asarray(self.batch_rate)
            if rates.ndim == 0 or rates.shape[0] != 2:
                raise ValueError(f"batch_rate must hold an inbound and an outbound rate, got {rates}")
            if not np.isfinite(rates).all() or (rates < 0).any():
                raise ValueError(f"batch_rate must be finite and not negative, got {rates}")


def _real(value: Any) -> Any:
    return value if isinstance(value, jax.Array) else np.asarray(value, dtype=np.float64)


def _whole(value: Any) -> Any:
    if isinstance(value, jax.Array):
        return value
    array = np.asarray(value)
    if not (array == np.floor(array)).all():
        raise ValueError(f"limit and capacity must be whole numbers, got {value}")
    return array.astype(np.int64)


def _inputs(system: PairQueue) -> StationInput:
    """All fields with a station axis first: of length 1 if no field tells stations apart."""
    fields = (system.batch_rate, system.batch_size, system.packet_slots, system.capacity, system.limit)
    xp: Any = jnp if is_traced(*fields) else np  # numpy: no compiled call for each line
    rate, batch, slots, capacity, limit = (xp.asarray(field) for field in fields)
    apart = rate.ndim == 2 or batch.ndim == 3 or slots.ndim == 3 or capacity.ndim == 2 or limit.ndim == 1
    count = int(np.asarray(system.stations)) if apart else 1

    def law(value: Any) -> Any:  # to (n, 2, x)
        value = xp.broadcast_to(value, (2, value.shape[-1])) if value.ndim == 1 else value
        return xp.moveaxis(value, 1, 0) if value.ndim == 3 else xp.broadcast_to(value, (count, *value.shape))

    def number(value: Any) -> Any:  # to (n, 2)
        value = xp.broadcast_to(value, (2,)) if value.ndim == 0 else value
        return value.T if value.ndim == 2 else xp.broadcast_to(value, (count, 2))

    rate = xp.maximum(number(rate), LEAST_RATE)
    return StationInput(rate, law(batch), law(slots), number(capacity), xp.broadcast_to(limit, (count,)))


_solve = jax.jit(solve_stations, static_argnames=("shape", "max_iterations"))


@in_float64
def pair_queue(system: PairQueue, *, tolerance: float = 1e-9, max_iterations: int = 500) -> PairQueueSolution:
    """Steady state of a cycle of stations with two finite queues each. Overload is an answer like any other.

    Args:
        system: the stations.
        tolerance: change of the state in the last iteration.
        max_iterations: iterations after which to give up.

    Raises:
        ConvergenceError: if the tolerance is not reached (outside of transformations).
    """
    inputs, count = _inputs(system), int(np.asarray(system.stations))
    limit, capacity = int(np.max(np.asarray(system.limit))), int(np.max(np.asarray(system.capacity)))
    shape = padded_shape(capacity, limit, count)
    solution = _solve(inputs, np.asarray(count), shape, tolerance, max_iterations)

    def occupancies(one: PairQueueSolution) -> tuple:
        return one.inbound.occupancy, one.outbound.occupancy

    cut = tuple(law[..., : capacity + 1] for law in occupancies(solution))
    solution = eqx.tree_at(occupancies, solution, cut)
    require_converged(solution.residual, solution.iterations, tolerance)
    return solution
