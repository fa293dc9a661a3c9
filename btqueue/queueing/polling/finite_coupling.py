"""How the queues of a finite polling system see each other: one round of the decomposition.

From what is known of every queue (`Coupling`) follow the linear model of the visits (`polling.stations`),
from it the vacations of every queue, and from these each queue's embedded chain (`polling.finite_queue`) and
a new `Coupling`. The method and its errors are in `polling.finite`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from btqueue.queueing.polling import stations as polling_stations
from btqueue.queueing.polling.finite_queue import FiniteQueue, finite_queue
from btqueue.queueing.polling.model import PollingModel


class Coupling(NamedTuple):
    """What the queues tell each other, ``(n,)`` each."""

    mean_served: Array
    served_variance: Array
    full: Array
    at_capacity: Array
    found_variance: Array
    served_slope: Array
    left_slope: Array
    arrival_noise: Array  # variance of the customers found that the state before the visit does not explain


class _Services(NamedTuple):
    """Randomness within the visits, ``(n,)`` each."""

    stays: Array  # share of the customers that come during a visit and are not served in it
    unexplained: Array  # variance of the customers served, given those found
    with_time: Array  # covariance of the customers served with the noise of their service times


def _services(model: PollingModel, coupling: Coupling) -> _Services:
    limited = model.is_a("limited")
    limit = jnp.where(limited, model.limit, 1.0)
    in_full_visits = jnp.minimum(coupling.full * limit / jnp.maximum(coupling.mean_served, 1e-12), 1.0)
    stays = jnp.where(limited, in_full_visits, jnp.where(model.is_a("gated"), 1.0, 0.0))
    unexplained = coupling.served_variance - coupling.served_slope**2 * coupling.found_variance
    noise = coupling.mean_served * (model.service_second - model.service_mean**2)
    room = 1.0 - coupling.at_capacity
    with_time = room * model.arrival_rate * (1.0 - stays) * coupling.served_slope * noise
    return _Services(stays, jnp.maximum(unexplained, 0.0), with_time)


def _held_stable(rate: Array, duration: Array, left: Array) -> Array:
    """Visit times per customer found, cut so that the linear model is stable, far from the solution too.

    In the long run a slot away brings ``g = lambda duration / (1 - left)`` slots of visits, as a queue of
    load ``g / (1 + g)`` does; these loads are scaled, smoothly, to a sum of at most .97.
    """
    long_run = rate * duration / (1.0 - left)
    loads = long_run / (1.0 + long_run)
    loads = loads * (1.0 + (loads.sum() / 0.97) ** 32) ** (-1.0 / 32.0)
    return loads / (1.0 - loads) * (1.0 - left) / rate


def _visits(model: PollingModel, coupling: Coupling, services: _Services) -> polling_stations.Visits:
    room = 1.0 - coupling.at_capacity
    left = jnp.minimum(coupling.left_slope * room, 0.999)
    service_variance = model.service_second - model.service_mean**2
    return polling_stations.Visits(
        arrival_rate=model.arrival_rate,
        duration=_held_stable(model.arrival_rate, model.service_mean * coupling.served_slope * room, left),
        left=left,
        stretch=jnp.ones(model.queues),
        left_of_service=services.stays * room * model.arrival_rate,
        # the customers found are those left, plus arrivals while away: in gated visits too
        includes_own=jnp.zeros(model.queues),
        arrival_noise=coupling.arrival_noise,
        service_noise=coupling.mean_served * service_variance
        + model.service_mean**2 * services.unexplained
        + 2.0 * model.service_mean * services.with_time,
        walk_variance=model.switch_second - model.switch_mean**2,
    )


def _alone(
    model: PollingModel,
    capacity: Array,
    coupling: Coupling,
    services: _Services,
    visits: polling_stations.Visits,
    steps: polling_stations.Moves,
    covariance: Array,
    queue: Array,
    sizes: tuple[int, int],
) -> FiniteQueue:
    n = model.queues
    rate, service, limit = model.arrival_rate[queue], model.service_mean[queue], model.limit[queue]
    variance = model.service_second[queue] - service**2
    away, found = steps.away[queue], steps.found[queue]
    order = (queue + jnp.arange(1, n)) % n
    slope, room = coupling.served_slope[queue], 1.0 - coupling.at_capacity[queue]
    longer = jnp.zeros(3 * n).at[queue].set(1.0)
    after = (
        slope
        * room
        * (steps.matrix[queue] @ (covariance @ found) + visits.arrival_noise[queue] * steps.of_found[queue])
        + (service * services.unexplained[queue] + services.with_time[queue]) * longer
    )
    (after, longer), _ = jax.lax.scan(
        lambda columns, other: ((steps.matrix[other] @ columns[0], steps.matrix[other] @ columns[1]), None),
        (after, longer),
        order,
    )
    served = coupling.mean_served[queue]
    mean_away = model.mean_walk + model.service_mean @ coupling.mean_served - service * served
    regression = away @ after / jnp.maximum(coupling.served_variance[queue], 1e-9)
    regression = jnp.clip(regression, 0.0, (mean_away - model.mean_walk) / served)
    away_variance = away @ covariance @ away
    unexplained = jnp.maximum(
        away_variance - regression**2 * coupling.served_variance[queue], 1e-9 * away_variance
    )
    capped = jnp.isfinite(limit)
    own_limit = jnp.where(capped, limit, 1.0)
    own_services = 2.0 * own_limit * variance * (away @ longer)
    fill = jnp.where(capped, jnp.minimum(served / own_limit, 1.0), 0.0)
    saturated = polling_stations.held_back(visits, queue, own_limit * variance)
    at_limit = unexplained + polling_stations.memory(saturated, queue, fill) + own_services
    size, longest = sizes
    j = jnp.arange(longest + 1)
    return finite_queue(
        rate,
        (service, variance),
        mean_away + regression * (jnp.minimum(j, limit) - served),
        jnp.where(capped & (j >= limit), at_limit, unexplained),
        polling_stations.constant_walk(model.mean_walk, visits.walk_variance.sum()),
        limit,
        model.is_a("gated")[queue],
        capacity[queue],
        size=size,
    )


def all_queues(
    model: PollingModel, capacity: Array, coupling: Coupling, sizes: tuple[int, int]
) -> tuple[FiniteQueue, Coupling]:
    """Every queue's chain (leading axis: the queues), and what follows for the coupling.

    ``sizes``: length of the padded lattice of a queue, and steps of a visit that are followed one by one.
    """
    services = _services(model, coupling)
    visits = _visits(model, coupling, services)
    steps = polling_stations.moves(visits)
    covariances = polling_stations.covariances(steps)
    solved = jax.vmap(
        lambda covariance, queue: _alone(
            model, capacity, coupling, services, visits, steps, covariance, queue, sizes
        )
    )(covariances, jnp.arange(model.queues))
    variance = solved.served_pairs + solved.mean_served - solved.mean_served**2
    # noise such that the customers found vary as in the chain; see polling_limited for the form of the update
    explained = jnp.einsum("na,nab,nb->n", steps.found, covariances, steps.found)
    share = jnp.maximum(coupling.arrival_noise / (coupling.arrival_noise + explained), 0.02)
    room = jnp.maximum(1.0 - solved.at_capacity, 1e-3)
    found = Coupling(
        solved.mean_served,
        variance,
        solved.full,
        solved.at_capacity,
        solved.found_variance,
        solved.served_slope,
        solved.left_slope,
        solved.found_variance / room**2 * share,
    )
    return solved, found
