"""One limited queue with an infinite buffer whose vacations depend on the customers served: by roots.

The equations are those of `vacations.roots`, in a form that compiles, batches over the limit and
differentiates: service times and vacations are gamma laws with two given moments (their Laplace transforms
are all that is needed, and powers of them are again transforms), the limit is an argument, and the matrix is
padded to ``max_limit``.

    F(z) [z^k - V_k B^k] = sum_{j<k} e_j [V_j z^k - V_k B^(k-j) z^j]

with ``F`` the queue at visit start, ``e_j`` the probability that a visit ends empty after ``j < k`` services,
``B(z)`` and ``V_j(z)`` the arrivals in a service and in a vacation after ``j`` services. The mean wait
follows from the mean queue left behind, ``k E[X] = E[N] lambda (W + b) - (1 - rho) E[N (N - 1)] / 2``.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

PICARD, NEWTON = 16, 8
"""Steps to the roots: of the contraction, then of Newton's method."""


class LimitedQueue(NamedTuple):
    """Steady state of a limited queue with vacations."""

    served: Array  # (max_limit + 1,): law of the customers served in a visit
    full: Array  # (): probability that a visit serves the limit
    mean_served: Array  # ()
    served_pairs: Array  # (): E[N (N - 1)]
    mean_wait: Array  # ()


def _log_transform(argument: Array, mean: Array, variance: Array) -> Array:
    """Logarithm of the Laplace transform of a gamma law; continuous down to variance 0 (a constant)."""
    ratio = variance / mean * argument
    small = jnp.abs(ratio) < 1e-4
    safe = jnp.where(small, 1.0, ratio)
    series = 1.0 - ratio / 2.0 + ratio**2 / 3.0 - ratio**3 / 4.0
    return -mean * argument * jnp.where(small, series, jnp.log1p(safe) / safe)


def _factorial_second(mean: Array, variance: Array) -> Array:
    return variance + mean**2 - mean


def _roots(rate: Array, service: Array, vacation: Array, limit: Array, max_limit: int) -> Array:
    """Roots of ``z^k = V_k B^k`` in the unit disc other than 1: ``(max_limit - 1,)``, of which k - 1 count.

    ``z -> omega (V_k^(1/k) B)(z)`` is a contraction, because the power of a gamma-mixed Poisson law's
    generating function is a generating function (Adan, van Leeuwaarden & Winands, Operations Research
    Letters 34, 2006).
    """
    turns = jnp.exp(2j * jnp.pi * jnp.arange(1, max_limit) / limit)

    def image(z: Array, given: tuple[Array, Array, Array, Array]) -> Array:
        rate, service, vacation, limit = given
        time = rate * (1.0 - z)
        log = _log_transform(time, vacation[0], vacation[1]) / limit + _log_transform(time, *service)
        return turns * jnp.exp(log)

    def image_and_slope(z: Array) -> tuple[Array, Array]:
        return jax.jvp(lambda x: image(x, fixed), (z,), (jnp.ones_like(z),))

    def newton(z: Array) -> Array:
        value, slope = image_and_slope(z)
        return z - (z - value) / (1.0 - slope)

    given = (rate, service, vacation, limit)
    fixed = lax.stop_gradient(given)
    z = lax.fori_loop(0, PICARD, lambda _, z: image(z, fixed), jnp.zeros(max_limit - 1, complex))
    z = lax.fori_loop(0, NEWTON, lambda _, z: newton(z), z)
    # one more step, in which the parameters have derivatives: it gives the root its own (implicit functions)
    z = lax.stop_gradient(z)
    return z + (image(z, given) - z) / (1.0 - image_and_slope(z)[1])


@partial(jax.jit, static_argnames=("max_limit",))
def limited_queue(
    rate: Array,
    service_mean: Array,
    service_variance: Array,
    vacation_mean: Array,
    vacation_variance: Array,
    limit: Array,
    *,
    max_limit: int,
) -> LimitedQueue:
    """Steady state of the queue.

    Args:
        rate: Poisson arrivals.
        service_mean: mean service time.
        service_variance: its variance.
        vacation_mean: ``(max_limit + 1,)`` mean vacation after ``j`` services, ``j = limit`` at entry
            ``limit``; entries beyond are ignored.
        vacation_variance: ``(max_limit + 1,)`` its variance.
        limit: most customers of a visit, at most ``max_limit``.
        max_limit: size of the padded arrays.
    """
    j = jnp.arange(max_limit)
    own = j < limit  # entries that exist
    at_limit = jnp.asarray(limit, int)
    load = rate * service_mean
    last_mean, last_variance = vacation_mean[at_limit], vacation_variance[at_limit]
    service = (service_mean, service_variance)
    z = _roots(rate, jnp.stack(service), jnp.stack([last_mean, last_variance]), limit, max_limit)
    z = jnp.where(j[1:] < limit, z, 0.5)  # harmless stand-ins

    # by rows: the roots, then de l'Hospital at z = 1; padded rows and columns are those of a unit matrix
    time = rate * (1.0 - z)[:, None]
    early = _log_transform(time, vacation_mean[None, :-1], vacation_variance[None, :-1])
    late = _log_transform(time, last_mean, last_variance) + (limit - j) * _log_transform(time, *service)
    powers = z[:, None] ** j
    at_roots = jnp.exp(early) * z[:, None] ** limit - jnp.exp(jnp.where(own, late, 0.0)) * powers
    at_one = rate * vacation_mean[:-1] + limit - rate * last_mean - (limit - j) * load - j
    slack = limit - rate * last_mean - limit * load
    matrix = jnp.concatenate([at_one[None, :] + 0j, at_roots], axis=0)
    matrix = jnp.where(own[:, None] & own[None, :], matrix, jnp.eye(max_limit))
    emptied = jnp.linalg.solve(matrix, jnp.zeros(max_limit, complex).at[0].set(slack)).real

    full = 1.0 - emptied.sum()
    mean_served = emptied @ j + limit * full
    served_pairs = emptied @ (j * (j - 1.0)) + limit * (limit - 1.0) * full
    mean_vacation = emptied @ vacation_mean[:-1] + full * last_mean
    # F = R / D with R(1) = D(1) = 0:  F'(1) = (R'' - D'') / (2 D')
    per_service = load + rate**2 * service_variance
    in_vacation = rate * vacation_mean + rate**2 * vacation_variance
    last = rate * last_mean + rate**2 * last_variance
    whole = _factorial_second(rate * last_mean + limit * load, last + limit * per_service)
    first = _factorial_second(rate * vacation_mean[:-1] + limit, in_vacation[:-1])
    second = _factorial_second(rate * last_mean + (limit - j) * load + j, last + (limit - j) * per_service)
    curve = emptied @ jnp.where(own, first - second, 0.0) - (limit * (limit - 1.0) - whole)
    left = curve / (2.0 * slack) - rate * mean_vacation
    wait = (limit * left + (1.0 - load) * served_pairs / 2.0) / (rate * mean_served) - service_mean
    served = jnp.append(emptied, 0.0).at[at_limit].add(full)
    return LimitedQueue(served, full, mean_served, served_pairs, wait)
