"""A ring of two relays, exactly: the chain of the lump and both outbound queues at the starts of visits."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.fixed_point import iterate, require_converged
from btqueue.queueing.pairs.relay import RelayRing, RelayRingSolution, as_lumps, kernel_of, summarise
from btqueue.queueing.pairs.stations import absence_fillings


def _visit(law: Array, transition: Array, ends: Array) -> Array:
    """Law at the next visit start: ``(a, u, w)`` lump, queue of the station visited, queue of the other."""
    visited = jnp.einsum("auw,autkb->tbkw", law, transition)
    return jnp.einsum("tbkw,twx->bxk", visited, ends)


@partial(jax.jit, static_argnames=("max_iterations",))
def _iterate(
    transition: Array, ends: Array, *, tolerance: ArrayLike, max_iterations: int
) -> tuple[Array, Array, Array]:
    lumps, size = transition.shape[:2]
    start = jnp.zeros((lumps, size, size)).at[0, 0, 0].set(1.0)
    return iterate(
        lambda law: _visit(law, transition, ends),
        start,
        lambda law: law,
        tolerance=tolerance,
        max_iterations=max_iterations,
    )


@in_float64
def relay_joint_chain(
    problem: RelayRing, *, tolerance: float = 1e-11, max_iterations: int = 20000
) -> RelayRingSolution:
    """Exact steady state of a ring of two relays, by power iteration.

    Everything is exact but the moments within a visit at which single packets of a lump arrive, which enter
    the mean inbound sojourn as evenly spread.

    Raises:
        ValueError: if there are not two stations.
        ConvergenceError: if the tolerance is not reached.
    """
    if problem.stations != 2:
        raise ValueError(f"the joint chain is for 2 stations, got {problem.stations}")
    kernel = kernel_of(problem)
    transition = as_lumps(kernel)
    absence = kernel.unit * np.arange(transition.shape[2])
    slot_law = problem.outbound.slot_law(problem.outbound_capacity + 1).probabilities
    ends, times = absence_fillings(slot_law, absence)
    law, residual, iterations = _iterate(transition, ends, tolerance=tolerance, max_iterations=max_iterations)
    require_converged(residual, iterations, tolerance)
    # the station just visited, in state k, is away for the visit to the other, in state (b, x)
    other = _visit(law, transition, ends)
    after = jnp.einsum("bxk,bxt->tk", other, transition.sum(axis=(3, 4)))
    return summarise(problem, kernel, law.sum(axis=2), after, absence, times, residual, iterations)
