"""Two stations with two queues each, exactly: the chain of all four queues at the starts of visits."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.fixed_point import iterate, require_converged
from btqueue.queueing.pairs import visit as pair_visit
from btqueue.queueing.pairs.stations import (
    PairPolling,
    PairPollingSolution,
    absence_ends,
    kernel_of,
    summarise,
)


@partial(jax.jit, static_argnames=("max_iterations",))
def _iterate_joint(
    kernel: pair_visit.VisitKernel,
    ends_in: Array,
    ends_out: Array,
    *,
    tolerance: ArrayLike,
    max_iterations: int,
) -> tuple[Array, Array, Array]:
    states = kernel.transition.shape[0]
    shape = (ends_in.shape[1], ends_out.shape[1])

    def step(law: Array) -> Array:
        # law[visited, other]: visit one station while the other's queues fill, then the roles change
        moved = jnp.einsum("se,stf->tef", law, kernel.transition)
        others = jnp.moveaxis(moved, 1, 2).reshape(len(ends_in), states, *shape)
        filled = jnp.einsum("tfio,tij,top->jpf", others, ends_in, ends_out)
        return filled.reshape(states, states)

    start = jnp.zeros((states, states)).at[0, 0].set(1.0)
    return iterate(step, start, lambda law: law, tolerance=tolerance, max_iterations=max_iterations)


@in_float64
def joint_chain(
    problem: PairPolling, *, tolerance: float = 1e-10, max_iterations: int = 20000
) -> PairPollingSolution:
    """Exact solution for two stations: the chain of all four queues, by power iteration.

    Memory and time grow with the square of ``(K_in + 1) (K_out + 1)``: capacities up to about 8.

    Raises:
        ValueError: if there are not two stations.
        ConvergenceError: if the tolerance is not reached.
    """
    if problem.stations != 2:
        raise ValueError(f"the joint chain is for 2 stations, got {problem.stations}")
    kernel = kernel_of(problem)
    absence = kernel.unit * np.arange(kernel.transition.shape[1])
    ends = absence_ends(problem, absence)
    law, residual, iterations = _iterate_joint(
        kernel, *ends, tolerance=tolerance, max_iterations=max_iterations
    )
    require_converged(residual, iterations, tolerance)
    # after a visit the other station is visited, for a time that depends on the queues it then has
    shape = (problem.inbound_capacity + 1, problem.outbound_capacity + 1)
    moved = jnp.einsum("se,stf->tef", law, kernel.transition)
    others = moved.reshape(len(absence), *shape, -1)
    other_start = jnp.einsum("tiof,tij,top->jpf", others, *ends).reshape(law.shape)
    after = jnp.einsum("sf,st->tf", other_start, kernel.transition.sum(axis=2))
    return summarise(problem, kernel, law.sum(axis=1), after, absence, residual, iterations)
