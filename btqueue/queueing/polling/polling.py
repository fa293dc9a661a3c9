"""Cyclic polling: mean waits and cycle moments, exact for exhaustive and gated queues in any mixture.

Both disciplines replace each customer found by independent offspring, so the queues at the instants when the
server comes form a branching process with immigration. Its covariances come from `polling.stations`, and the
mean waits from the time over which the customers gathered:

    exhaustive   W = [lambda b2 + (g - 1) b] / (2 (1 - rho_i)) + E[I^2] / (2 E[I]),   I the intervisit time,
    gated        W = (1 + rho_i) E[C^2] / (2 E[C]) + (g - 1) b / 2,                   C the cycle,

``g = E[G^2] / E[G]`` for batches ``G``. Limited service has no branching structure: `polling.limited`
approximates it, and solves equal queues of limit 1 exactly.

Sources: Cooper & Murray, Bell System Technical Journal 48 (1969); Resing, Queueing Systems 13 (1993); Takagi,
Analysis of Polling Systems (MIT Press, 1986).
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from btqueue.queueing._precision import in_float64
from btqueue.queueing.errors import is_traced, require_count
from btqueue.queueing.polling import limited, stations
from btqueue.queueing.polling.conservation import conservation_residual
from btqueue.queueing.polling.model import PollingModel

TINY = 1e-8
"""Walks and rates of 0 are taken as this share of the natural ones: the limit, to some eight digits."""


class CycleMoments(eqx.Module):
    """Means and variances of the parts of a cycle, ``(n,)`` each, slots.

    Attributes:
        cycle_mean: from the start of a visit to the next start of a visit to the same queue.
        cycle_variance: its variance.
        intervisit_mean: from the end of a visit to the next start of a visit to the same queue.
        intervisit_variance: its variance.
        visit_mean: length of a visit.
        visit_variance: its variance.
    """

    cycle_mean: Array
    cycle_variance: Array
    intervisit_mean: Array
    intervisit_variance: Array
    visit_mean: Array
    visit_variance: Array


class PollingSolution(eqx.Module):
    """Steady state of a polling system; ``(n,)`` arrays have an entry for each queue; times in slots.

    Attributes:
        mean_wait: mean time from arrival to start of service; infinite if unstable.
        mean_sojourn: mean time from arrival to end of service.
        mean_queue: mean customers, the one in service included.
        mean_served: mean customers served in a visit.
        served_pairs: ``E[N (N - 1)]`` of the ``N`` customers of a visit to a limited queue, 0 for others.
        moments: moments of cycles, intervisit times and visits.
        conservation_residual: relative distance from the pseudo-conservation law before the law corrects
            limited queues; 0 up to rounding without limited queues.
        stable: whether `PollingModel.saturation` is below 1. If not, every mean is infinite.
        converged: whether the fixed point of limited queues was found.
    """

    mean_wait: Array
    mean_sojourn: Array
    mean_queue: Array
    mean_served: Array
    served_pairs: Array
    moments: CycleMoments
    conservation_residual: Array
    stable: Array
    converged: Array


def _cycle_moments(model: PollingModel, covariances: Array) -> CycleMoments:
    """Cycle, intervisit and visit times from the state's covariance at the start of each visit."""
    n = model.queues
    whole = jnp.concatenate([jnp.ones((n, 2 * n)), jnp.zeros((n, n))], axis=1)
    visit = jnp.concatenate([jnp.eye(n), jnp.zeros((n, 2 * n))], axis=1)

    def variance(weights: Array) -> Array:
        return jnp.einsum("na,nab,nb->n", weights, covariances, weights)

    cycle = jnp.broadcast_to(model.mean_cycle, (n,))
    return CycleMoments(
        cycle_mean=cycle,
        cycle_variance=variance(whole),
        intervisit_mean=(1.0 - model.loads) * cycle,
        intervisit_variance=variance(whole - visit),
        visit_mean=model.loads * cycle,
        visit_variance=variance(visit),
    )


def _branching_waits(model: PollingModel, moments: CycleMoments) -> Array:
    def residual(mean: Array, variance: Array) -> Array:
        return (variance + mean**2) / (2.0 * mean)

    before = model.service_mean * (model.grouping - 1.0)  # work ahead in a customer's batch, twice the mean
    own_work = (model.arrival_rate * model.service_second + before) / (2.0 * (1.0 - model.loads))
    exhaustive = own_work + residual(moments.intervisit_mean, moments.intervisit_variance)
    gated = (1.0 + model.loads) * residual(moments.cycle_mean, moments.cycle_variance) + before / 2.0
    return jnp.where(model.is_a("gated"), gated, exhaustive)


def _regular(model: PollingModel) -> PollingModel:
    """The system with positive walks and rates and, if it is unstable, with half of the saturation load."""
    service = model.service_mean.mean()
    walk = jnp.where(model.mean_walk > 0.0, 0.0, TINY * service)
    least = TINY / (model.mean_walk + service)
    slower = jnp.where(model.saturation < 1.0, 1.0, 0.5 / model.saturation)
    rate = jnp.maximum(model.arrival_rate * slower, least)
    return eqx.tree_at(
        lambda m: (m.arrival_rate, m.switch_mean, m.switch_second),
        model,
        (rate, model.switch_mean + walk, model.switch_second + walk**2),
    )


@partial(jax.jit, static_argnames=("max_limit", "tolerance", "max_iterations"))
def _solve(
    model: PollingModel, *, max_limit: int | None, tolerance: float, max_iterations: int
) -> PollingSolution:
    stable, safe = model.saturation < 1.0, _regular(model)
    pairs, converged = jnp.zeros(model.queues), jnp.asarray(True)
    if max_limit is None:
        linear = limited.visits(safe, limited.Coupling(pairs, pairs))
        moments = _cycle_moments(safe, stations.covariances(stations.moves(linear)))
        wait = first = _branching_waits(safe, moments)
    else:
        coupling, converged = limited.couple(
            safe, max_limit=max_limit, tolerance=tolerance, max_iterations=max_iterations
        )
        queues, _, covariances = limited.vacation_queues(safe, coupling, max_limit)
        moments = _cycle_moments(safe, covariances)
        pairs = jnp.where(model.is_a("limited"), queues.served_pairs, 0.0)
        first = jnp.where(model.is_a("limited"), queues.mean_wait, _branching_waits(safe, moments))
        wait = limited.levelled(safe, first, pairs)

    def if_stable(values: Array) -> Array:
        return jnp.where(stable, values, jnp.inf)

    return PollingSolution(
        mean_wait=if_stable(wait),
        mean_sojourn=if_stable(wait + model.service_mean),
        mean_queue=if_stable(model.arrival_rate * (wait + model.service_mean)),
        mean_served=if_stable(model.arrival_rate * safe.mean_cycle),
        served_pairs=if_stable(pairs),
        moments=jax.tree.map(if_stable, moments),
        conservation_residual=conservation_residual(safe, first, pairs),
        stable=stable,
        converged=converged,
    )


def _padded_limit(model: PollingModel, max_limit: int | None) -> int | None:
    """The size to which limits are padded, or None if no queue is limited: few programs serve all limits."""
    if is_traced(model.limit, model.discipline):
        if max_limit is None:
            raise ValueError("max_limit is needed when the limits are traced (jit, vmap), got None")
        return max_limit
    largest = max((int(limit) for limit in np.asarray(model.limit) if np.isfinite(limit)), default=0)
    if max_limit is None:
        return 1 << (largest - 1).bit_length() if largest else None
    require_count(max_limit, "max_limit", least=max(largest, 1))
    return max_limit


@in_float64
def solve_polling(
    model: PollingModel,
    *,
    max_limit: int | None = None,
    tolerance: float = 1e-11,
    max_iterations: int = 2000,
) -> PollingSolution:
    """Mean waits, cycle moments and the conservation check of a polling system.

    Exact for exhaustive and gated queues, approximate where a queue is limited (`polling.limited`). Compiles
    once for a number of queues and ``max_limit``. May be used under ``jit``, ``vmap`` and ``grad``; there an
    unstable system and one without a fixed point are marked in the result instead of raised.

    Args:
        model: from `polling_model`.
        max_limit: size to which the limits are padded; the next power of two of the largest by default.
            Needed where the limits are traced.
        tolerance: relative change at which the fixed point of limited queues counts as found.
        max_iterations: iterations after which to give up.

    Raises:
        ValueError: if the system is unstable, or ``max_limit`` below a limit.
        ArithmeticError: if the fixed point is not found.

    Example:
        >>> from btqueue.queueing import polling_model, solve_polling
        >>> system = polling_model(
        ...     arrival_rate=[0.02, 0.01], service_mean=6, service_second=36, switch_mean=2, switch_second=4
        ... )
        >>> solve_polling(system).mean_wait.round(4).tolist()
        [2.7891, 2.9828]
    """
    size = _padded_limit(model, max_limit)
    if not is_traced(model) and not float(model.saturation) < 1.0:
        raise ValueError(
            "unstable: the load, and with a limit k the load + lambda_i s / k_i, must be below 1, got "
            f"{float(model.saturation):.6g}"
        )
    solution = _solve(model, max_limit=size, tolerance=tolerance, max_iterations=max_iterations)
    if not is_traced(solution) and not bool(solution.converged):
        raise ArithmeticError(f"no fixed point of the limited queues after {max_iterations} iterations")
    return solution
