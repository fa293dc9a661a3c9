"""One limited queue whose vacations depend on the customers served: its steady state, by roots.

    F(z) [z^k - V_k B^k] = sum_{j<k} e_j [V_j z^k - V_k B^(k-j) z^j]

with ``F`` the queue at visit start, ``e_j`` the probability that a visit ends empty after ``j < k`` services,
``B(z)`` and ``V_j(z)`` the arrivals in a service and in the vacation after ``j`` services. Services and
vacations are gamma laws with two given moments: powers of their transforms are transforms again. The mean
wait ``W`` follows from the customers left behind at departures,

    k E[X] = E[N] (lambda (W + b) + (g - 1) / 2) - (1 - rho) E[N (N - 1)] / 2,     g = E[G^2] / E[G],

``X`` the customers that a visit leaves, ``N`` the served ones, ``G`` a batch. The unknowns are
``e_0 - 1, e_1, ...``, which keep their digits when visits serve next to nobody.

Source: van Vuuren & Winands, Queueing Systems 55 (2007).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

PICARD, NEWTON = 16, 8
"""Steps to the roots: of the contraction, then of Newton's method."""


class Law(NamedTuple):
    """Two moments, of each law in an array."""

    mean: Array
    variance: Array


class LimitedQueue(NamedTuple):
    """Steady state of a limited queue with vacations."""

    full: Array  # (): probability that a visit serves the limit
    mean_served: Array  # ()
    served_pairs: Array  # (): E[N (N - 1)]
    mean_wait: Array  # ()


def _log_transform(argument: Array, law: Law) -> Array:
    """Logarithm of the Laplace transform of a gamma law; continuous down to variance 0 (a constant)."""
    ratio = law.variance / law.mean * argument
    small = jnp.abs(ratio) < 1e-4
    safe = jnp.where(small, 1.0, ratio)
    series = 1.0 - ratio / 2.0 + ratio**2 / 3.0 - ratio**3 / 4.0
    return -law.mean * argument * jnp.where(small, series, jnp.log1p(safe) / safe)


def _batch_transform(z: Array, batch: Law) -> Array:
    """Generating function of a whole number of at least 1 with these two moments.

    Up to the variance of a geometric law, a mixture of it with the two whole numbers next to the mean; above,
    one more than a negative binomial number.
    """
    mean, variance = batch
    whole = jnp.floor(mean)
    part = mean - whole
    least, geometric = part * (1.0 - part), mean * (mean - 1.0)
    share = jnp.clip((geometric - variance) / jnp.where(mean > 1.0, geometric - least, 1.0), 0.0, 1.0)
    wide = variance > geometric
    shape = jnp.where(wide, (mean - 1.0) ** 2 / jnp.where(wide, variance - mean + 1.0, 1.0), 1.0)
    spread = z * jnp.exp(-shape * jnp.log1p((mean - 1.0) / shape * (1.0 - z)))
    return share * z**whole * (1.0 - part + part * z) + (1.0 - share) * spread


def _roots(rate: Array, batch: Law, service: Law, last: Law, limit: Array, max_limit: int) -> Array:
    """Roots of ``z^k = V_k B^k`` in the unit disc other than 1: ``(max_limit - 1,)``, of which k - 1 count.

    ``z -> omega (V_k^(1/k) B)(z)`` is a contraction, because the power of a gamma-mixed Poisson law's
    generating function is a generating function (Adan, van Leeuwaarden & Winands, Operations Research
    Letters 34, 2006).
    """
    turns = jnp.exp(2j * jnp.pi * jnp.arange(1, max_limit) / limit)

    def image(z: Array, given: tuple[Array, Law, Law, Law, Array]) -> Array:
        rate, batch, service, last, limit = given
        time = rate / batch.mean * (1.0 - _batch_transform(z, batch))
        return turns * jnp.exp(_log_transform(time, last) / limit + _log_transform(time, service))

    def image_and_slope(z: Array) -> tuple[Array, Array]:
        return jax.jvp(lambda x: image(x, fixed), (z,), (jnp.ones_like(z),))

    def newton(z: Array) -> Array:
        value, slope = image_and_slope(z)
        return z - (z - value) / (1.0 - slope)

    given = (rate, batch, service, last, limit)
    fixed = lax.stop_gradient(given)
    z = lax.fori_loop(0, PICARD, lambda _, z: image(z, fixed), 0.5 * turns)
    z = lax.stop_gradient(lax.fori_loop(0, NEWTON, lambda _, z: newton(z), z))
    # one more step, in which the parameters have derivatives: it gives the root its own (implicit functions)
    return z + (image(z, given) - z) / (1.0 - image_and_slope(z)[1])


def limited_queue(
    rate: Array, batch: Law, service: Law, vacation: Law, limit: Array, *, max_limit: int
) -> LimitedQueue:
    """Steady state of the queue.

    Args:
        rate: customers that come, in batches of Poisson arrivals.
        batch: size of a batch.
        service: time of a service.
        vacation: ``(max_limit + 1,)`` vacation after ``j`` services; entries beyond the limit are ignored.
        limit: most customers of a visit, at most ``max_limit``.
        max_limit: size of the padded arrays.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> from btqueue.queueing.polling.limited_queue import Law, limited_queue
        >>> one, no, limit = jnp.ones(()), jnp.zeros(()), jnp.full((), 2)
        >>> vacation = Law(jnp.full(3, 10.0), jnp.zeros(3))
        >>> queue = jax.jit(limited_queue, static_argnames="max_limit")(
        ...     0.05 * one, Law(one, no), Law(6 * one, no), vacation, limit, max_limit=2
        ... )
        >>> round(float(queue.mean_wait), 3)
        10.478
    """
    j = jnp.arange(max_limit)
    own = j < limit  # entries that exist
    last = Law(*(each[jnp.asarray(limit, int)] for each in vacation))
    ends = Law(*(each[:-1] for each in vacation))  # vacations after visits that end empty
    load, grouping = rate * service.mean, batch.mean + batch.variance / batch.mean
    slack = limit * (1.0 - load) - rate * last.mean
    z = _roots(rate, batch, service, last, limit, max_limit)
    z = jnp.where(j[1:] < limit, z, 0.5)  # harmless stand-ins

    # by rows: de l'Hospital at z = 1, then the roots, divided by z^k = V_k B^k; padded ones of a unit matrix
    time = (rate / batch.mean * (1.0 - _batch_transform(z, batch)))[:, None]
    empty = _log_transform(time, Law(*(each[None, :] for each in ends)))
    through = jnp.where(own, j * (jnp.log(z)[:, None] - _log_transform(time, service)), 0.0)
    at_roots = jnp.where(j == 0, jnp.expm1(empty), jnp.exp(empty) - jnp.exp(through))
    at_one = rate * (ends.mean - last.mean) + (limit - j) * (1.0 - load)
    matrix = jnp.concatenate([at_one[None, :] + 0j, at_roots], axis=0)
    matrix = jnp.where(own[:, None] & own[None, :], matrix, jnp.eye(max_limit))
    right = -jnp.concatenate([rate * ends.mean[:1] + 0j, jnp.where(own[1:], at_roots[:, 0], 0.0)])
    unknown = jnp.linalg.solve(matrix, right).real

    full = -unknown.sum()
    mean_served = unknown @ j + limit * full
    served_pairs = unknown @ (j * (j - 1.0)) + limit * (limit - 1.0) * full
    mean_vacation = ends.mean[0] + unknown @ ends.mean + full * last.mean

    # F = R / D with R(1) = D(1) = 0:  F'(1) = (R'' - D'') / (2 D'), by second factorial moments
    def second(mean: Array, vacation: Law, services: Array) -> Array:
        return (
            mean**2
            - mean
            + grouping * rate * (vacation.mean + services * service.mean)
            + rate**2 * (vacation.variance + services * service.variance)
        )

    first = second(rate * ends.mean + limit, ends, jnp.zeros(max_limit))
    later = second(rate * last.mean + (limit - j) * load + j, last, limit - j)
    found = rate * ends.mean[0]
    start = found * (found + 2.0 * limit - 1.0 + grouping) + rate**2 * ends.variance[0]
    curve = start + unknown @ jnp.where(own, first - later, 0.0)
    left = curve / (2.0 * slack) - rate * mean_vacation
    sojourn = (limit * left + (1.0 - load) * served_pairs / 2.0) / (rate * mean_served)
    return LimitedQueue(
        full, mean_served, served_pairs, sojourn - service.mean - (grouping - 1.0) / (2.0 * rate)
    )
