"""A server that visits equal stations in a cycle, each with an inbound and an outbound queue: two closures.

A visit is that of `pairs.visit`: the two queues are served in alternation, at most M frames, an empty half
costs one slot, and a frame with both halves empty ends the visit. Inputs are independent in both directions.

* `independent_vacations`: a station sees the others as independent visits. Simple, but long cycles come in
  runs; against simulation the delay is 4 to 31 % too low and loss too small by factors of 1.5 to 7.
* `cycle_memory_closure`: stations are independent given the length of their last cycle. Against simulation
  (2 to 7 stations, loads .3 to .95, batches of 1 and 5): mean cycle and delay within 3.5 %, loss within 20 %.

For two stations and small capacities `pairs.joint_chain` is exact. For a ring in which one station's outbound
packets are the next one's inbound packets see `pairs.relay`.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.fixed_point import iterate, require_converged
from btqueue.queueing.pairs import cycle_memory
from btqueue.queueing.pairs import visit as pair_visit
from btqueue.queueing.pairs.stations import (
    PairPolling,
    PairPollingSolution,
    absence_ends,
    fill_both,
    kernel_of,
    summarise,
)


@partial(jax.jit, static_argnames=("stations", "max_iterations"))
def _iterate_independent(
    kernel: pair_visit.VisitKernel,
    ends_in: Array,
    ends_out: Array,
    *,
    stations: int,
    tolerance: ArrayLike,
    max_iterations: int,
) -> tuple[tuple[Array, Array, Array], Array, Array]:
    lengths = kernel.transition.sum(axis=2)
    shape = (1, ends_in.shape[1], ends_out.shape[1])

    def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        start, _, _ = state
        visit = start @ lengths
        absence = jnp.ones(1)
        for _ in range(stations - 1):
            absence = jnp.convolve(absence, visit / visit.sum())
        ended = jnp.einsum("s,ste->e", start, kernel.transition)
        after = absence[:, None] * ended[None, :]
        new = fill_both(after.reshape(-1, *shape[1:]), ends_in, ends_out).sum(axis=0).reshape(-1)
        return new / new.sum(), after, absence

    states = shape[1] * shape[2]
    start = (jnp.zeros(states).at[0].set(1.0), jnp.zeros((len(ends_in), states)), jnp.zeros(len(ends_in)))
    return iterate(step, start, lambda state: state[0], tolerance=tolerance, max_iterations=max_iterations)


@in_float64
def independent_vacations(
    problem: PairPolling, *, tolerance: float = 1e-10, max_iterations: int = 2000
) -> PairPollingSolution:
    """Approximation: an absence is the sum of independent visits to the other stations.

    Raises:
        ConvergenceError: if the tolerance is not reached.
    """
    kernel = kernel_of(problem)
    absence = kernel.unit * np.arange((problem.stations - 1) * (kernel.transition.shape[1] - 1) + 1)
    ends = absence_ends(problem, absence)
    (start, after, _), residual, iterations = _iterate_independent(
        kernel, *ends, stations=problem.stations, tolerance=tolerance, max_iterations=max_iterations
    )
    require_converged(residual, iterations, tolerance)
    return summarise(problem, kernel, start, after, absence, residual, iterations)


@partial(jax.jit, static_argnames=("stations", "max_iterations"))
def _iterate_cycle_memory(
    kernel: pair_visit.VisitKernel,
    grids: cycle_memory.CycleGrids,
    ends_in: Array,
    ends_out: Array,
    *,
    stations: int,
    tolerance: ArrayLike,
    max_iterations: int,
) -> tuple[cycle_memory.State, Array, Array]:
    lengths = kernel.transition.sum(axis=2)
    absences, _, cycles = jnp.shape(grids.cycle_weights)
    shape = (ends_in.shape[1], ends_out.shape[1])
    states = shape[0] * shape[1]

    def step(state: cycle_memory.State) -> cycle_memory.State:
        by_absence, by_cycle, _ = state  # (v, s) and (c, s): queues at visit start, and what lies behind
        # a cycle length that has (almost) no mass borrows the law of an average one
        given = by_cycle + 1e-13 * by_absence.sum(axis=0)
        visit = (given @ lengths) / given.sum(axis=1)[:, None]
        away = cycle_memory.tour(visit[:, None, :, None], grids, stations)[:, 0, :, 0]
        ended = jnp.einsum("vs,ste->vte", by_absence, kernel.transition)
        to_absence = jnp.einsum("vtc,cw->vtw", grids.cycle_weights, away)
        after = jnp.einsum("vte,vtw->twe", ended, to_absence)
        mixed = jnp.einsum("twe,wtc->cwe", after, grids.cycle_weights)
        filled = fill_both(mixed.reshape(cycles, absences, *shape), ends_in, ends_out)
        filled = filled.reshape(cycles, absences, states)
        filled = filled / filled.sum()
        return filled.sum(axis=0), filled.sum(axis=1), after.sum(axis=0)

    empty = jnp.zeros(states).at[0].set(1.0)
    return cycle_memory.iterate_from_empty(
        step, empty, (states,), grids, tolerance=tolerance, max_iterations=max_iterations
    )


@in_float64
def cycle_memory_closure(
    problem: PairPolling, *, points: int = 16, tolerance: float = 1e-9, max_iterations: int = 2000
) -> PairPollingSolution:
    """Approximation: stations are independent given the length of their last cycle.

    Args:
        problem: the system.
        points: grid points for lengths of absences and of cycles.
        tolerance: largest change of the law in the last iteration.
        max_iterations: iterations after which to give up.

    Raises:
        ConvergenceError: if the tolerance is not reached.
    """
    kernel = kernel_of(problem)
    grids = cycle_memory.cycle_grids(
        stations=problem.stations,
        shortest=2,
        longest=kernel.unit * (kernel.transition.shape[1] - 1),
        unit=kernel.unit,
        points=points,
    )
    absence = np.asarray(grids.absence)
    ends = absence_ends(problem, absence)
    (by_absence, _, after), residual, iterations = _iterate_cycle_memory(
        kernel, grids, *ends, stations=problem.stations, tolerance=tolerance, max_iterations=max_iterations
    )
    require_converged(residual, iterations, tolerance)
    return summarise(problem, kernel, by_absence.sum(axis=0), after, absence, residual, iterations)
