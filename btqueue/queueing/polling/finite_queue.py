"""One queue with room for K customers and vacations that depend on the customers served: the embedded chain.

As `vacations.limited_service_queue`, but for exhaustive, gated and limited visits in one compiled program
that batches over discipline, limit and capacity (arrays padded to ``size`` and ``steps``). Services and
vacations are gamma laws with two given moments, so that the arrivals during either are negative binomial.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from btqueue.queueing.chains import markov


class FiniteQueue(NamedTuple):
    """Steady state of the queue."""

    mean_served: Array
    served_pairs: Array  # E[N (N - 1)]
    full: Array  # probability that a visit serves the limit
    at_capacity: Array  # probability that the server finds the queue full
    found_variance: Array  # of the customers found
    served_slope: Array  # regression of the customers served on those found
    left_slope: Array  # regression of the customers left on those found
    occupancy: Array  # (size,): at a random moment
    mean_cycle: Array


def gamma_arrivals(rate: Array, mean: Array, variance: Array, size: int) -> Array:
    """Law of the Poisson arrivals in a gamma time on ``0..size-1``; variance 0 is a constant time.

    Entry ratios ``(rate mean + i theta) / ((1 + theta) (i + 1))``, ``theta = rate variance / mean``, need no
    gamma function and stay exact as the variance goes to 0. A mean of 0 brings no arrivals.
    """
    some = mean > 0
    mean = jnp.where(some, mean, 1.0)
    theta = rate * variance / mean
    small = theta < 1e-6
    safe = jnp.where(small, 1.0, theta)
    none = -rate * mean * jnp.where(small, 1.0 - theta / 2.0, jnp.log1p(safe) / safe)
    i = jnp.arange(size - 1)
    ratios = jnp.log(rate * mean + i * theta) - jnp.log1p(theta) - jnp.log(i + 1.0)
    law = jnp.exp(none + jnp.concatenate([jnp.zeros(1), jnp.cumsum(ratios)]))
    return jnp.where(some, law, jnp.zeros(size).at[0].set(1.0))


def _cut(law: Array, capacity: Array) -> Array:
    """``min(A, K)`` on the padded lattice, from the law of ``A``."""
    index = jnp.arange(law.shape[-1])
    kept = jnp.where(index < capacity, law, 0.0)
    return jnp.where(index == capacity, 1.0 - kept.sum(axis=-1, keepdims=True), kept)


def _fill(law: Array, capacity: Array) -> Array:
    """Matrix ``q -> min(q + A, K)``; rows beyond K mean nothing but sum to one."""
    size = law.shape[0]
    shift = jnp.arange(size)[None, :] - jnp.arange(size)[:, None]
    rising = jnp.where(shift >= 0, law[jnp.maximum(shift, 0)], 0.0)
    return _cut(rising, capacity)


def _time_at(law: Array, rate: Array, mean: Array, capacity: Array) -> Array:
    """Mean time at each content during the interval, by the content at its start."""
    size = law.shape[0]
    beyond = jnp.maximum(1.0 - jnp.cumsum(law), 0.0) / rate  # E int 1{A(u) = m} du = P(A > m) / rate
    shift = jnp.arange(size)[None, :] - jnp.arange(size)[:, None]
    rising = jnp.where(shift >= 0, beyond[jnp.maximum(shift, 0)], 0.0)
    kept = jnp.where(jnp.arange(size) < capacity, rising, 0.0)
    rest = jnp.maximum(mean - kept.sum(axis=1, keepdims=True), 0.0)
    return jnp.where(jnp.arange(size) == capacity, rest, kept)


def finite_queue(
    rate: Array,
    service: tuple[Array, Array],
    vacation_mean: Array,
    vacation_variance: Array,
    constant: Array,
    limit: Array,
    gated: Array,
    capacity: Array,
    *,
    size: int,
) -> FiniteQueue:
    """Steady state.

    Args:
        rate: Poisson arrivals.
        service: mean and variance of a service.
        vacation_mean: ``(steps + 1,)`` mean vacation after ``j`` services; the last entry also serves longer
            visits (of exhaustive queues).
        vacation_variance: its variance.
        constant: part of every vacation that is constant, below all means; the rest is gamma.
        limit: most customers of a visit, infinite if none, else at most ``steps``.
        gated: whether a visit serves the customers found.
        capacity: K, below ``size``.
        size: length of the padded lattice.
    """
    steps = vacation_mean.shape[0] - 1
    states = jnp.arange(size)
    in_service = gamma_arrivals(rate, service[0], service[1], size)
    varying = jax.vmap(lambda m, v: gamma_arrivals(rate, m, v, size))(
        vacation_mean - constant, vacation_variance
    )
    shift = jnp.arange(size)[None, :] - jnp.arange(size)[:, None]
    in_constant = gamma_arrivals(rate, constant, jnp.zeros(()), size)
    in_vacation = varying @ jnp.where(shift >= 0, in_constant[jnp.maximum(shift, 0)], 0.0)
    fill = _fill(in_service, capacity)
    served_one = jnp.concatenate([fill[:, 1:], jnp.zeros((size, 1))], axis=1)  # nobody is at 0 in a service
    busy = (states > 0) & (states <= capacity)
    allowed = jnp.where(gated, states, limit)[:, None]  # by the content at the start of the visit
    counts = jnp.arange(steps)

    # what an exhaustive visit does after the last step: services begun until the queue is empty, by state
    going_on = jnp.where(busy[:, None] & busy[None, :], served_one, 0.0)
    begun_later = jnp.linalg.inv(jnp.eye(size) - going_on) * busy[:, None] * busy[None, :]
    services_later = begun_later.sum(axis=1)

    def split(now: Array, count: Array | int, allowed: Array) -> tuple[Array, Array]:
        stays = busy & (allowed > count)
        return jnp.where(stays, now, 0.0), jnp.where(stays, 0.0, now)

    def one_more(carry: tuple[Array, ...], step: tuple[Array, Array]) -> tuple[tuple[Array, ...], None]:
        now, onward, left, mean = carry
        count, arrivals = step
        going, done = split(now, count, allowed)
        onward = onward + done @ _fill(arrivals, capacity)
        return (going @ served_one, onward, left + done @ states, mean + going.sum(axis=1)), None

    start = (jnp.eye(size), jnp.zeros((size, size)), jnp.zeros(size), jnp.zeros(size))
    (now, onward, left, mean), _ = jax.lax.scan(one_more, start, (counts, in_vacation[:-1]))
    going, done = split(now, steps, allowed)
    last = _fill(in_vacation[-1], capacity)
    onward = onward + done @ last + going.sum(axis=1)[:, None] * last[0]
    left = left + done @ states
    mean = mean + going @ services_later
    # a queue that is always full when the server comes would leave the lower states out of reach
    found = markov.stationary_vector(onward + 1e-30)

    # once more with the stationary law alone, or for gated visits its parts by the content found
    def advance(carry: tuple[Array, ...], step: tuple[Array, Array, Array]) -> tuple[tuple[Array, ...], None]:
        now, time, begun, at_limit, pairs, elapsed = carry
        count, arrivals, vacation = step
        going, done = split(now, count, allowed)
        ended = done.sum(axis=0)
        time = time + ended @ _time_at(arrivals, rate, vacation, capacity)
        elapsed = elapsed + ended.sum() * vacation
        at_limit = at_limit + jnp.where(count == limit, ended.sum(), 0.0)
        pairs = pairs + 2.0 * count * going.sum()
        return (going @ served_one, time, begun + going.sum(axis=0), at_limit, pairs, elapsed), None

    zero = jnp.zeros(())
    start = (jnp.diag(found), jnp.zeros(size), jnp.zeros(size), zero, zero, zero)
    each = (counts, in_vacation[:-1], vacation_mean[:-1])
    (now, time, begun, at_limit, pairs, elapsed), _ = jax.lax.scan(advance, start, each)
    going, done = split(now, steps, allowed)
    still, ended = going.sum(axis=0), done.sum(axis=0)
    ended = ended.at[0].add(still.sum())  # an exhaustive visit ends empty
    begun = begun + still @ begun_later
    at_limit = at_limit + jnp.where(limit == steps, done.sum(), 0.0)
    pairs = pairs + 2.0 * (steps * still @ services_later + still @ begun_later @ (services_later - 1.0))
    mean_served = begun.sum()
    elapsed = elapsed + ended.sum() * vacation_mean[-1] + mean_served * service[0]
    time = time + ended @ _time_at(in_vacation[-1], rate, vacation_mean[-1], capacity)
    time = time + begun @ _time_at(in_service, rate, service[0], capacity)

    centred = states - found @ states
    variance = found @ centred**2
    some = variance + 1e-6  # in deep overload nothing varies, and a regression on it would be noise
    return FiniteQueue(
        mean_served=mean_served,
        served_pairs=pairs,
        full=at_limit,
        at_capacity=found @ (states == capacity),
        found_variance=variance,
        served_slope=(found * centred) @ mean / some,
        left_slope=(found * centred) @ left / some,
        occupancy=time / elapsed,
        mean_cycle=elapsed,
    )
