"""Exhaustive and gated polling, and mixtures of both: exact mean waits and cycle moments, any parameters.

Both disciplines replace each customer found by independent offspring, so the queues at the instants when the
server comes form a branching process with immigration. Its covariances come from `polling.stations`, and the
mean waits from the time over which the customers gathered:

    exhaustive   W = lambda b2 / (2 (1 - rho_i)) + E[I^2] / (2 E[I]),   I the intervisit time,
    gated        W = (1 + rho_i) E[C^2] / (2 E[C]),                     C the cycle from visit to visit.

Limited service has no such structure and no exact solution but for equal queues of limit 1
(`closed_forms.one_limited_cyclic_wait`); `polling.conservation` holds for it all the same.

Sources: Cooper & Murray, Bell System Technical Journal 48 (1969); Resing, Queueing Systems 13 (1993); Takagi,
Analysis of Polling Systems (MIT Press, 1986).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from btqueue.queueing._precision import in_float64
from btqueue.queueing.errors import is_traced
from btqueue.queueing.polling import stations
from btqueue.queueing.polling.conservation import conservation_residual
from btqueue.queueing.polling.model import PollingModel


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
        mean_sojourn: the same to the end of service.
        mean_queue: mean customers, the one in service included.
        mean_served: mean customers served in a visit.
        moments: of cycles, intervisit times and visits.
        conservation_residual: relative distance from the pseudo-conservation law; 0 up to rounding.
        stable: whether the load of all queues together is below 1. If not, every mean is infinite.
    """

    mean_wait: Array
    mean_sojourn: Array
    mean_queue: Array
    mean_served: Array
    moments: CycleMoments
    conservation_residual: Array
    stable: Array


def _visits(model: PollingModel) -> stations.Visits:
    """How the visits react to what they find."""
    gated = model.is_a("gated")
    served = model.arrival_rate * model.mean_cycle
    stretch = jnp.where(gated, 1.0, 1.0 / (1.0 - model.loads))
    return stations.Visits(
        arrival_rate=model.arrival_rate,
        duration=model.service_mean * stretch,
        stretch=stretch,
        includes_own=jnp.asarray(gated, float),
        arrival_noise=served,
        service_noise=served * (model.service_second - model.service_mean**2),
        walk_variance=model.switch_second - model.switch_mean**2,
    )


def _cycle_moments(model: PollingModel, covariances: Array) -> CycleMoments:
    """Cycle, intervisit and visit times from the state's covariance at the start of each visit."""
    n = model.queues
    whole = jnp.ones((n, 2 * n))
    visit = jnp.concatenate([jnp.eye(n), jnp.zeros((n, n))], axis=1)

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


def _waits(model: PollingModel, moments: CycleMoments) -> Array:
    def residual(mean: Array, variance: Array) -> Array:
        return (variance + mean**2) / (2.0 * mean)

    own_work = model.arrival_rate * model.service_second / (2.0 * (1.0 - model.loads))
    exhaustive = own_work + residual(moments.intervisit_mean, moments.intervisit_variance)
    gated = (1.0 + model.loads) * residual(moments.cycle_mean, moments.cycle_variance)
    return jnp.where(model.is_a("gated"), gated, exhaustive)


@jax.jit
def _solve(model: PollingModel) -> PollingSolution:
    load = model.loads.sum()
    stable = load < 1.0
    # an unstable system is solved at half of what it could carry, so that nothing is undefined
    slower = jnp.where(stable, 1.0, 0.5 / load)
    safe = eqx.tree_at(lambda m: m.arrival_rate, model, model.arrival_rate * slower)
    moments = _cycle_moments(safe, stations.covariances(stations.moves(_visits(safe))))
    wait = _waits(safe, moments)

    no_answer = jnp.where(model.is_a("limited").any(), jnp.nan, 0.0)

    def if_stable(values: Array) -> Array:
        return jnp.where(stable, values, jnp.inf) + no_answer

    return PollingSolution(
        mean_wait=if_stable(wait),
        mean_sojourn=if_stable(wait + model.service_mean),
        mean_queue=if_stable(model.arrival_rate * (wait + model.service_mean)),
        mean_served=if_stable(model.arrival_rate * safe.mean_cycle),
        moments=jax.tree.map(if_stable, moments),
        conservation_residual=conservation_residual(safe, wait, jnp.zeros(model.queues)),
        stable=stable,
    )


@in_float64
def solve_polling(model: PollingModel) -> PollingSolution:
    """Exact mean waits, cycle moments and the conservation check of exhaustive and gated queues.

    Compiles once for a number of queues. May be used under ``jit``, ``vmap`` and ``grad``; there an unstable
    system is marked in the result instead of raised, and limited queues make every mean NaN.

    Args:
        model: from `polling_model`.

    Raises:
        ValueError: if a queue is of limited service, or the load is not below 1.

    Example:
        >>> from btqueue.queueing.polling.polling import solve_polling
        >>> from btqueue.queueing.polling.model import polling_model
        >>> system = polling_model(
        ...     arrival_rate=[0.02, 0.01], service_mean=6, service_second=36, switch_mean=2, switch_second=4
        ... )
        >>> solve_polling(system).mean_wait.round(4).tolist()
        [2.7891, 2.9828]
    """
    if not is_traced(model.discipline) and bool(model.is_a("limited").any()):
        raise ValueError('discipline must be "exhaustive" or "gated": limited service has no exact solution')
    if not is_traced(model) and not float(model.loads.sum()) < 1.0:
        raise ValueError(f"unstable: the load must be below 1, got {float(model.loads.sum()):.6g}")
    return _solve(model)
