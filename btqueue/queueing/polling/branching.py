"""Exhaustive and gated polling, and mixtures of both: exact mean waits and cycle moments, any parameters.

Both disciplines replace each customer found by independent offspring, so the queues at the instants when the
server comes form a branching process with immigration. Its covariances come from `polling.stations`, and the
mean waits from the time over which the customers gathered:

    exhaustive   W = lambda b2 / (2 (1 - rho_i)) + E[I^2] / (2 E[I]),   I the intervisit time,
    gated        W = (1 + rho_i) E[C^2] / (2 E[C]),                     C the cycle from visit to visit.

Sources: Cooper & Murray, Bell System Technical Journal 48 (1969); Resing, Queueing Systems 13 (1993); Takagi,
Analysis of Polling Systems (MIT Press, 1986).
"""

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from btqueue.queueing._precision import in_float64
from btqueue.queueing.errors import is_traced
from btqueue.queueing.polling import stations as polling_stations
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


def branching_visits(model: PollingModel) -> polling_stations.Visits:
    """The linear visits of exhaustive and gated queues; entries of limited queues mean exhaustive ones."""
    gated = model.is_a("gated")
    served = model.arrival_rate * model.mean_cycle
    stretch = jnp.where(gated, 1.0, 1.0 / (1.0 - model.loads))
    return polling_stations.Visits(
        arrival_rate=model.arrival_rate,
        duration=model.service_mean * stretch,
        left=jnp.zeros(model.queues),
        stretch=stretch,
        left_of_service=jnp.zeros(model.queues),
        includes_own=jnp.asarray(gated, float),
        arrival_noise=served,
        service_noise=served * (model.service_second - model.service_mean**2),
        walk_variance=model.switch_second - model.switch_mean**2,
    )


def cycle_moments(model: PollingModel, covariances: Array) -> CycleMoments:
    """Cycle, intervisit and visit times from the state's covariance at the start of each visit."""
    n = model.queues
    own = jnp.eye(n)
    whole = jnp.concatenate([jnp.ones((n, 2 * n)), jnp.zeros((n, n))], axis=1)
    visit = jnp.concatenate([own, jnp.zeros((n, 2 * n))], axis=1)

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


def branching_waits(model: PollingModel, moments: CycleMoments) -> Array:
    """Mean waits of exhaustive and gated queues, ``(n,)``; the entries of limited queues mean nothing."""

    def residual(mean: Array, variance: Array) -> Array:
        return (variance + mean**2) / (2.0 * mean)

    own_work = model.arrival_rate * model.service_second / (2.0 * (1.0 - model.loads))
    exhaustive = own_work + residual(moments.intervisit_mean, moments.intervisit_variance)
    gated = (1.0 + model.loads) * residual(moments.cycle_mean, moments.cycle_variance)
    return jnp.where(model.is_a("gated"), gated, exhaustive)


@in_float64
def branching_polling(model: PollingModel) -> tuple[Array, CycleMoments]:
    """Exact mean waits and cycle moments of a stable system of exhaustive and gated queues.

    Raises:
        ValueError: if a queue is of limited service.
    """
    if not is_traced(model.discipline) and bool(model.is_a("limited").any()):
        raise ValueError("discipline must be exhaustive or gated, got a limited queue")
    steps = polling_stations.moves(branching_visits(model))
    moments = cycle_moments(model, polling_stations.covariances(steps))
    return branching_waits(model, moments), moments
