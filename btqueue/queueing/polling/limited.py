"""Limited queues, alone or beside exhaustive and gated ones: an approximation.

No exact solution is known for unequal limited queues. Here each limited queue is taken out as a queue with
vacations (`polling.limited_queue`), and the linear model of the visits (`polling.stations`) gives the means
and variances of the vacations:

1. The mean vacation after ``j`` services is its regression on ``j``: a long visit is followed by a long
   absence. The variance is the residual one, in proportion to the mean.
2. A queue that was not emptied remembers: vacations in a row are correlated. The variance of the vacation
   after a full visit is raised by twice the sum of the autocovariances, at lag ``t`` times ``u**t`` with
   ``u = lambda s / (k (1 - rho))`` the fill of its visits, and by the covariance of the queue's services with
   the vacation that follows.
3. Of every additional customer found, a limited queue serves a share: the probability that a visit empties
   it. The noise is chosen so that the customers served vary as in the vacation queue. Steps 1 to 3 are
   iterated.
4. The pseudo-conservation law, with ``E[N (N - 1)]`` from the vacation queues, gives the level: every mean
   wait is multiplied by ``1 + theta f`` with ``f = 0.3 + u / (1 - u)``, more where a queue is close to
   saturation and its memory long; one ``theta`` makes the law hold.

Exact for equal queues of limit 1 and, with gamma laws, for one queue. The weights ``f``, the linear model
behind the vacations and the floors that keep the iteration going (a fifth of the walks, .05 of the variance,
.1 of the noise) were fitted to simulations; the floor of the noise on 120 systems, of which it shifts two.

Sources: van Vuuren & Winands, Queueing Systems 55 (2007), for vacations that depend on the customers served;
Fuhrmann & Wang, Performance Evaluation 9 (1988), for the law as a corrector.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from btqueue.queueing.polling import stations
from btqueue.queueing.polling.conservation import conservation_law
from btqueue.queueing.polling.limited_queue import Law, LimitedQueue, limited_queue
from btqueue.queueing.polling.model import PollingModel

EVEN_SHARE = 0.3
"""Share of the law's correction that every queue gets, however far from its saturation."""


class Coupling(NamedTuple):
    """The quantities that couple the queues, ``(n,)`` each; only entries of limited queues count."""

    full: Array  # probability that a visit serves the limit
    arrival_noise: Array  # variance of the customers found that the state before the visit does not explain


class Gains(NamedTuple):
    """The share of additional customers that a limited queue serves in the same visit, ``(n,)`` each."""

    served: Array  # for a customer found more
    of_service: Array  # for a slot of service noise
    stretch: Array  # slots that the visit lasts longer for a slot of service noise


def _gains(model: PollingModel, full: Array) -> Gains:
    """The gains if visits are full with these probabilities; entries of other queues mean nothing."""
    # of the customers that come during a visit: the share served in visits which end empty
    fill = jnp.where(model.is_a("limited"), model.full_visits, 1.0)
    during = jnp.clip(1.0 - full / fill, 0.0, 1.0)
    stretch = 1.0 / (1.0 - model.loads * during)
    return Gains(jnp.maximum(1.0 - full, 1e-3) * stretch, model.arrival_rate * during * stretch, stretch)


def visits(model: PollingModel, coupling: Coupling) -> stations.Visits:
    """How all visits react; the coupling is read for limited queues."""
    limited, gated = model.is_a("limited"), model.is_a("gated")
    served = model.arrival_rate * model.mean_cycle
    gain = _gains(model, coupling.full)
    stretch = jnp.where(gated, 1.0, jnp.where(limited, gain.stretch, 1.0 / (1.0 - model.loads)))
    idle = 1.0 - model.loads
    return stations.Visits(
        arrival_rate=model.arrival_rate,
        duration=model.service_mean * jnp.where(limited, gain.served, stretch),
        left=jnp.where(limited, 1.0 - idle * gain.served, 0.0),
        stretch=stretch,
        left_of_service=jnp.where(limited, model.arrival_rate - idle * gain.of_service, 0.0),
        includes_own=jnp.asarray(gated, float),
        arrival_noise=jnp.where(limited, coupling.arrival_noise, served * model.grouping),
        service_noise=served * model.service_variance,
        walk_variance=model.switch_second - model.switch_mean**2,
    )


def _vacation_queue(
    model: PollingModel, coupling: Coupling, covariance: Array, queue: Array, max_limit: int
) -> tuple[LimitedQueue, Coupling]:
    """Return one limited queue alone, and its new coupling to the other queues."""
    n = model.queues
    linear = visits(model, coupling)
    steps = stations.moves(linear)
    away, found = steps.away[queue], steps.found[queue]
    rate, service, limit = model.arrival_rate[queue], model.service_mean[queue], model.limit[queue]
    variance = model.service_variance[queue]
    gain = jax.tree.map(lambda each: each[queue], _gains(model, coupling.full))
    explained = found @ covariance @ found
    away_variance = away @ covariance @ away

    # covariance of the customers served with the state after the visit
    arrival_noise, service_noise = linear.arrival_noise[queue], linear.service_noise[queue]
    after = (
        gain.served * (steps.matrix[queue] @ (covariance @ found) + arrival_noise * steps.of_found[queue])
        + gain.of_service * service_noise * steps.of_service[queue]
    )
    in_services = gain.of_service**2 * service_noise
    served_variance = gain.served**2 * (explained + arrival_noise) + in_services
    longer = jnp.zeros(3 * n).at[queue].set(1.0)  # the visit lasts a slot longer
    (after, longer), _ = jax.lax.scan(
        lambda columns, other: (tuple(steps.matrix[other] @ column for column in columns), None),
        (after, longer),
        (queue + jnp.arange(1, n)) % n,
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
    remembered = stations.memory(linear, queue, own_limit * variance, model.full_visits[queue])
    j = jnp.arange(max_limit + 1)
    stand_in = 0.5 * (1.0 - rate * service) / rate
    means = jnp.where(limited, mean_away + slope * (j - served), stand_in)
    variances = unexplained * means / mean_away + jnp.where(j < limit, 0.0, remembered + own_services)
    solved = limited_queue(
        rate,
        Law(model.batch_mean[queue], model.batch_second[queue] - model.batch_mean[queue] ** 2),
        Law(service, variance),
        Law(means, jnp.where(limited, variances, stand_in**2)),
        own_limit,
        max_limit=max_limit,
    )
    # arrival noise that makes the customers served vary in the linear model as in the vacation queue; the
    # part that the state explains is taken as proportional to the noise: otherwise the iteration overshoots
    solved_variance = solved.served_pairs + solved.mean_served - solved.mean_served**2
    target = jnp.maximum(solved_variance - in_services, 0.05 * solved_variance) / gain.served**2
    share = jnp.maximum(arrival_noise / (arrival_noise + explained), 0.1)
    return solved, Coupling(solved.full, target * share)


def vacation_queues(
    model: PollingModel, coupling: Coupling, max_limit: int
) -> tuple[LimitedQueue, Coupling, Array]:
    """Return each queue's solution with vacations, the coupling that follows from it, and the covariances."""
    covariances = stations.covariances(stations.moves(visits(model, coupling)))
    solved, found = jax.vmap(
        lambda covariance, queue: _vacation_queue(model, coupling, covariance, queue, max_limit)
    )(covariances, jnp.arange(model.queues))
    found = jax.tree.map(lambda each: jnp.where(model.is_a("limited"), each, 0.0), found)
    return solved, found, covariances


def couple(
    model: PollingModel, *, max_limit: int, tolerance: float, max_iterations: int
) -> tuple[Coupling, Array]:
    """The fixed point of the coupling, and whether it was found.

    Derivatives go through it by the implicit function theorem.
    """
    limited = model.is_a("limited")

    def step(flat: Array) -> Array:
        coupling = Coupling(*flat.reshape(2, -1))
        return jnp.concatenate(vacation_queues(model, coupling, max_limit)[1]) - flat

    def iterate(change: Callable[[Array], Array], start: Array) -> tuple[Array, Array]:
        def move(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            moved = change(state[0])
            size = (jnp.abs(moved) / jnp.maximum(jnp.abs(state[0]), start + 1e-99)).max()
            return state[0] + 0.5 * moved, size, state[2] + 1

        def far(state: tuple[Array, Array, Array]) -> Array:
            return (state[1] > tolerance) & (state[2] < max_iterations)

        begin = (start, jnp.asarray(jnp.inf), jnp.asarray(0))
        return jax.lax.while_loop(far, move, begin)[:2]

    served = model.arrival_rate * model.mean_cycle
    start = [0.5 * jnp.minimum(model.full_visits, 1.0), served * model.grouping]
    flat, size = jax.lax.custom_root(
        step,
        jnp.concatenate([jnp.where(limited, each, 0.0) for each in start]),
        iterate,
        lambda linear, value: jnp.linalg.solve(jax.jacobian(linear)(value), value),
        has_aux=True,
    )
    return Coupling(*flat.reshape(2, -1)), size <= tolerance


def levelled(model: PollingModel, wait: Array, pairs: Array) -> Array:
    """The mean waits with which the conservation law holds, ``E[N (N - 1)]`` being ``pairs``."""
    law = conservation_law(model, pairs)
    weight = EVEN_SHARE + model.full_visits / (1.0 - model.full_visits)
    theta = (law.total - law.weights @ wait) / (law.weights @ (wait * weight))
    return wait * (1.0 + theta * weight)
