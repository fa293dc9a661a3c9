"""Limited polling with any limits, alone or beside exhaustive and gated queues: an approximation.

No exact solution is known for asymmetric limited queues. Here each limited queue is taken out as a queue with
vacations (`polling.limited_queue`), and what its vacations are like comes from the linear model of the other
visits (`polling.stations`):

1. After ``j`` services the mean vacation is the regression of the next vacation on the customers served, and
   its variance the residual one: a long visit is followed by a long absence.
2. A queue that was not emptied remembers: vacations in a row are correlated. The variance of the vacation
   after a full visit is raised by twice the sum of the autocovariances, at lag ``t`` times ``u**t`` with
   ``u = lambda s / (k (1 - rho))`` the fill of its visits, and by the covariance of its own services with the
   vacation that follows.
3. The gain ``h`` of a limited queue in the linear model is the probability that a visit empties it, and the
   noise is such that the variance of the customers served is that of the vacation queue. Steps 1 to 3 are
   iterated.
4. The pseudo-conservation law, with ``E[N (N - 1)]`` from the vacation queues, gives the level: every mean
   wait is corrected by ``1 + theta f`` with ``f = 0.3 + u / (1 - u)``, more where the queue is close to its
   own saturation and its memory long; one ``theta`` makes the law hold.

Exact for one queue with a gamma switch-over and service, for statistically equal queues of limit 1, and, with
no limited queue, for all. Errors measured against simulation are in `polling`.

Sources: van Vuuren & Winands, Queueing Systems 55 (2007), for vacations that depend on the customers served;
Fuhrmann & Wang, Performance Evaluation 9 (1988), for the law as a corrector. The linear model as the source
of the vacations' moments, and the corrector's weights, were found here.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optimistix
from jax import Array

from btqueue.queueing.polling import stations as polling_stations
from btqueue.queueing.polling.branching import (
    CycleMoments,
    branching_visits,
    branching_waits,
    cycle_moments,
)
from btqueue.queueing.polling.conservation import conservation_law
from btqueue.queueing.polling.limited_queue import LimitedQueue, limited_queue
from btqueue.queueing.polling.model import PollingModel

EVEN_SHARE = 0.3
"""Share of the correction that every queue gets, however far from its saturation."""


class Coupling(NamedTuple):
    """What the queues tell each other, ``(n,)`` each; only entries of limited queues count."""

    full: Array  # probability that a visit serves the limit
    arrival_noise: Array  # variance of the customers found that the state before the visit does not explain


class LimitedSolution(NamedTuple):
    """Result of `limited_polling`."""

    mean_wait: Array  # (n,), corrected by the conservation law
    uncorrected_wait: Array  # (n,), of the vacation queues alone
    served_pairs: Array  # (n,): E[N (N - 1)] of the limited queues, 0 elsewhere
    served: Array  # (n, max_limit + 1): law of the customers served in a visit; not a number for other queues
    moments: CycleMoments
    residual: Array  # (): largest relative change of the last iteration
    iterations: Array


class _Gains(NamedTuple):
    """How many of the customers that come in more are served in the same visit, and what follows."""

    found: Array  # of those that the server finds
    served: Array  # (n,): customers served per customer found
    served_of_service: Array  # (n,): customers served per slot of service noise
    stretch: Array


def _gains(model: PollingModel, full: Array) -> _Gains:
    found = jnp.maximum(1.0 - full, 1e-3)
    # of those that come during a visit: the share of the services that are in visits which end empty
    limited = model.is_a("limited")
    fill = jnp.where(
        limited, model.full_visits, 1.0
    )  # 0 for the others: no derivative through a quotient of it
    during = jnp.where(limited, jnp.clip(1.0 - full / fill, 0.0, 1.0), 1.0)
    stretch = 1.0 / (1.0 - model.loads * during)
    return _Gains(found, found * stretch, model.arrival_rate * during * stretch, stretch)


def _visits(model: PollingModel, coupling: Coupling) -> polling_stations.Visits:
    """The linear visits, with the limited queues' gains and noise."""
    limited = model.is_a("limited")
    plain = branching_visits(model)
    gains = _gains(model, coupling.full)
    idle = 1.0 - model.loads
    return plain._replace(
        duration=jnp.where(limited, model.service_mean * gains.served, plain.duration),
        left=jnp.where(limited, 1.0 - idle * gains.served, 0.0),
        stretch=jnp.where(limited, gains.stretch, plain.stretch),
        left_of_service=jnp.where(limited, model.arrival_rate - idle * gains.served_of_service, 0.0),
        arrival_noise=jnp.where(limited, coupling.arrival_noise, plain.arrival_noise),
    )


def _vacation_queue(
    model: PollingModel,
    visits: polling_stations.Visits,
    steps: polling_stations.Moves,
    covariance: Array,
    full: Array,
    queue: Array,
    max_limit: int,
) -> tuple[LimitedQueue, Coupling]:
    """One limited queue on its own, and what it tells the others."""
    n = model.queues
    away, found = steps.away[queue], steps.found[queue]
    rate, service, limit = model.arrival_rate[queue], model.service_mean[queue], model.limit[queue]
    variance = model.service_second[queue] - service**2
    explained = found @ covariance @ found
    away_variance = away @ covariance @ away

    # covariance of the customers served with the state after the visit
    arrival_noise, service_noise = visits.arrival_noise[queue], visits.service_noise[queue]
    gains = jax.tree.map(lambda each: each[queue], _gains(model, full))
    after = (
        gains.served * (steps.matrix[queue] @ (covariance @ found) + arrival_noise * steps.of_found[queue])
        + gains.served_of_service * service_noise * steps.of_service[queue]
    )
    in_services = gains.served_of_service**2 * service_noise
    served_variance = gains.served**2 * (explained + arrival_noise) + in_services
    longer = jnp.zeros(3 * n).at[queue].set(1.0)  # the visit lasts a slot longer
    order = (queue + jnp.arange(1, n)) % n
    (after, longer), _ = jax.lax.scan(
        lambda columns, other: ((steps.matrix[other] @ columns[0], steps.matrix[other] @ columns[1]), None),
        (after, longer),
        order,
    )
    served = rate * model.mean_cycle
    mean_away = (1.0 - rate * service) * model.mean_cycle
    slope = away @ after / served_variance
    # the vacation after a visit to an empty queue keeps at least a fifth of the walks
    slope = jnp.clip(slope, 0.0, (mean_away - 0.2 * model.mean_walk) / served)
    unexplained = jnp.maximum(away_variance - slope**2 * served_variance, 1e-9 * away_variance)
    # a queue without a limit is computed as some stable queue of limit 1, and not used
    limited = jnp.isfinite(limit)
    own_limit = jnp.where(limited, limit, 1.0)
    own_services = 2.0 * own_limit * variance * (away @ longer)
    saturated = polling_stations.held_back(visits, queue, own_limit * variance)
    at_limit = (
        unexplained + polling_stations.memory(saturated, queue, model.full_visits[queue]) + own_services
    )
    stand_in = 0.5 * (1.0 - rate * service) / rate
    j = jnp.arange(max_limit + 1)
    means = jnp.where(limited, mean_away + slope * (j - served), stand_in)
    variances = jnp.where(limited, jnp.where(j < limit, unexplained, at_limit), stand_in**2)
    solved = limited_queue(rate, service, variance, means, variances, own_limit, max_limit=max_limit)
    # arrival noise such that the customers served vary in the linear model as in the vacation queue; the part
    # that the state explains is taken as proportional to the noise: otherwise the iteration overshoots
    solved_variance = solved.served_pairs + solved.mean_served - solved.mean_served**2
    target = (solved_variance - in_services) / gains.served**2
    target = jnp.maximum(target, 0.05 * solved_variance / gains.served**2)
    share = jnp.maximum(arrival_noise / (arrival_noise + explained), 0.02)
    return solved, Coupling(solved.full, target * share)


def _all_queues(
    model: PollingModel, coupling: Coupling, max_limit: int
) -> tuple[LimitedQueue, Coupling, CycleMoments]:
    """Every queue as a limited one with vacations, what follows for the coupling, and the cycle's moments."""
    visits = _visits(model, coupling)
    steps = polling_stations.moves(visits)
    covariances = polling_stations.covariances(steps)
    solved, found = jax.vmap(
        lambda covariance, queue: _vacation_queue(
            model, visits, steps, covariance, coupling.full, queue, max_limit
        )
    )(covariances, jnp.arange(model.queues))
    found = jax.tree.map(lambda each: jnp.where(model.is_a("limited"), each, 0.0), found)
    return solved, found, cycle_moments(model, covariances)


def limited_polling(
    model: PollingModel, *, max_limit: int, tolerance: float, max_iterations: int
) -> LimitedSolution:
    """Mean waits of a stable system (see the module); exact without a limited queue.

    Reverse-mode derivatives go through the fixed point by the implicit function theorem.
    """
    limited = model.is_a("limited")

    def step(coupling: Coupling, model: PollingModel) -> Coupling:
        found = _all_queues(model, coupling, max_limit)[1]
        return jax.tree.map(lambda old, new: 0.5 * (old + new), coupling, found)

    served = model.arrival_rate * model.mean_cycle
    start = Coupling(
        jnp.where(limited, 0.5 * jnp.minimum(model.full_visits, 1.0), 0.0), jnp.where(limited, served, 0.0)
    )
    fixed = optimistix.fixed_point(
        step,
        optimistix.FixedPointIteration(rtol=tolerance, atol=tolerance),
        start,
        args=model,
        max_steps=max_iterations,
        throw=False,
    )
    solved, found, moments = _all_queues(model, fixed.value, max_limit)
    change = jax.tree.map(
        lambda old, new: (jnp.abs(new - old) / (1.0 + jnp.abs(old))).max(), fixed.value, found
    )
    pairs = jnp.where(limited, solved.served_pairs, 0.0)
    raw = jnp.where(limited, solved.mean_wait, branching_waits(model, moments))
    law = conservation_law(model, pairs)
    weight = EVEN_SHARE + model.full_visits / (1.0 - model.full_visits)
    theta = (law.total - law.weights @ raw) / (law.weights @ (raw * weight))
    return LimitedSolution(
        mean_wait=raw * (1.0 + theta * weight),
        uncorrected_wait=raw,
        served_pairs=pairs,
        served=jnp.where(limited[:, None], solved.served, jnp.nan),
        moments=moments,
        residual=jnp.stack(jax.tree.leaves(change)).max(),
        iterations=jnp.asarray(fixed.stats["num_steps"]),
    )
