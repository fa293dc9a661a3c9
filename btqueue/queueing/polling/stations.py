"""Second moments of visits and cycles from a linear model of the visits, exact for exhaustive and gated ones.

Let ``I`` be the time that the server was away from a queue (its *intervisit* time), ``X`` the customers it
finds, ``L`` those it leaves behind. About their means,

    X = L + lambda I + e,      N = h (X + lambda z) / (1 - rho h),      D = b N + z,
    L' = (1 - h) (X + lambda z) / (1 - rho h):

of every extra customer the share ``h`` is served in the visit, and the work of those served brings further
customers. ``e`` is the noise of the arrivals and ``z`` that of the service times. For ``h = 1`` (exhaustive;
``rho h = 0`` in the denominators for gated, where later customers wait) these are the exact regressions of
the branching process of Resing, so that the covariances below are exact; there ``Var e = E[N]`` and
``Var z = E[N] Var B``. For limited service ``h`` is a gain chosen in `polling.limited`.

State vector of length ``3 n``: last visit ``D`` of each queue, last walk after it, customers left behind.
Covariances of a cycle-stationary linear system ``P = M P M' + C``, by doubling.

Sources: Resing, Queueing Systems 13 (1993); Ferguson & Aminetzah, IEEE Trans. Comm. 33 (1985) for the
station times of exhaustive and gated systems.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

DOUBLINGS = 32
"""Steps of the doubling: 2**32 cycles of memory, enough for a load of ``1 - 1e-8``."""


class Visits(NamedTuple):
    """How each queue's visit reacts, arrays ``(n,)`` (see the module).

    Per customer found more: ``duration``, the slots that the visit lasts longer, and ``left``, the customers
    left more. Per slot of service noise: ``stretch`` and ``left_of_service``, the same two. ``includes_own``
    is 1 if the time over which customers gather includes the last visit itself (gated). Then the variances
    of the three kinds of noise.
    """

    arrival_rate: Array
    duration: Array
    left: Array
    stretch: Array
    left_of_service: Array
    includes_own: Array
    arrival_noise: Array
    service_noise: Array
    walk_variance: Array


class Moves(NamedTuple):
    """One visit and the walk after it: ``state -> matrix @ state + noise``, and what the server finds."""

    matrix: Array  # (n, 3n, 3n)
    noise: Array  # (n, 3n, 3n), its covariance
    away: Array  # (n, 3n): the state's weights in the time over which customers gathered
    found: Array  # (n, 3n): the state's weights in the customers found, arrival noise apart
    of_found: Array  # (n, 3n): the state after the visit per customer more found
    of_service: Array  # (n, 3n): the same per slot of service noise


def moves(visits: Visits) -> Moves:
    """The linear maps of all visits."""
    n = visits.arrival_rate.shape[0]
    own = jnp.eye(n)
    zero = jnp.zeros((n, n))
    away = jnp.concatenate([1.0 - own * (1.0 - visits.includes_own), jnp.ones((n, n)), zero], axis=1)
    found = visits.arrival_rate[:, None] * away + jnp.concatenate([zero, zero, own], axis=1)

    def at_own(duration: Array, left: Array) -> Array:
        return jnp.concatenate([own * duration[:, None], zero, own * left[:, None]], axis=1)

    of_found = at_own(visits.duration, visits.left)
    of_service = at_own(visits.stretch, visits.left_of_service)
    kept = 1.0 - jnp.concatenate([own, own, own], axis=1)
    walk = jnp.concatenate([zero, own, zero], axis=1)
    matrix = of_found[:, :, None] * found[:, None, :] + kept[:, :, None] * jnp.eye(3 * n)

    def square(vectors: Array) -> Array:
        return vectors[:, :, None] * vectors[:, None, :]

    noise = (
        visits.arrival_noise[:, None, None] * square(of_found)
        + visits.service_noise[:, None, None] * square(of_service)
        + visits.walk_variance[:, None, None] * square(walk)
    )
    return Moves(matrix, noise, away, found, of_found, of_service)


def stationary_covariance(matrix: Array, noise: Array) -> Array:
    """Solution of ``P = M P M' + C`` for a stable ``M``, by doubling."""

    def double(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
        power, total = carry
        return (power @ power, total + power @ total @ power.T), None

    (_, covariance), _ = jax.lax.scan(double, (matrix, noise), None, length=DOUBLINGS)
    return covariance


def cycle_from(steps: Moves, first: Array) -> tuple[Array, Array]:
    """The map of a whole cycle that begins with the visit to queue ``first``, and its noise."""
    n, size = steps.found.shape
    order = (first + jnp.arange(n)) % n

    def visit(carry: tuple[Array, Array], queue: Array) -> tuple[tuple[Array, Array], None]:
        power, total = carry
        matrix = steps.matrix[queue]
        return (matrix @ power, matrix @ total @ matrix.T + steps.noise[queue]), None

    start = (jnp.eye(size), jnp.zeros((size, size)))
    return jax.lax.scan(visit, start, order)[0]


def covariances(steps: Moves) -> Array:
    """Covariance of the state when the server comes to each queue, ``(n, 3n, 3n)``."""
    matrix, noise = cycle_from(steps, jnp.asarray(0))

    def visit(covariance: Array, step: tuple[Array, Array]) -> tuple[Array, Array]:
        matrix, noise = step
        return matrix @ covariance @ matrix.T + noise, covariance

    return jax.lax.scan(visit, stationary_covariance(matrix, noise), (steps.matrix, steps.noise))[1]


def held_back(visits: Visits, queue: Array, service_variance: Array) -> Visits:
    """The system while one queue is never emptied: its visits are as long as their services make them."""
    own = jnp.arange(visits.arrival_rate.shape[0]) == queue
    return visits._replace(
        duration=jnp.where(own, 0.0, visits.duration),
        left=jnp.where(own, 0.0, visits.left),
        stretch=jnp.where(own, 1.0, visits.stretch),
        left_of_service=jnp.where(own, 0.0, visits.left_of_service),
        arrival_noise=jnp.where(own, 0.0, visits.arrival_noise),
        service_noise=jnp.where(own, service_variance, visits.service_noise),
    )


def memory(visits: Visits, queue: Array, discount: Array) -> Array:
    """Twice the sum of the autocovariances of a queue's intervisit times, lag ``t`` times ``discount**t``."""
    steps = moves(visits)
    matrix, noise = cycle_from(steps, queue)
    away = steps.away[queue]
    covariance = stationary_covariance(matrix, noise) @ away
    later = jnp.linalg.solve(jnp.eye(matrix.shape[0]) - discount * matrix, discount * (matrix @ covariance))
    return 2.0 * jnp.maximum(away @ later, 0.0)


def constant_walk(mean: Array, variance: Array) -> Array:
    """The part of a cycle's walks that is taken as constant: what is surely there, or nearly so.

    A vacation law with this constant part keeps short vacations as rare as they are.
    """
    return 0.9 * jnp.maximum(mean - jnp.sqrt(jnp.maximum(variance, 1e-12 * mean**2)), 0.0)
