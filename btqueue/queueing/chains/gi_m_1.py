"""Renewal arrivals and memoryless service: GI/M/1 and, slot by slot, GI/Geo/1.

What an arrival finds is geometric with the root ``sigma = A*(mu (1 - sigma))`` in (0, 1), ``A*`` being the
transform of the gaps.

Source: Kleinrock, Queueing Systems, vol. 1 (1975), chapter 6; Hunter, Mathematical Techniques of Applied
Probability, vol. 2 (1983), chapter 9 (slots).
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.errors import is_traced, require_law, require_no_mass_at_zero, require_positive
from btqueue.queueing.laws import lattice


class GiM1Queue(eqx.Module):
    """Steady state of a queue with memoryless service; infinite means and a root of one if not ``stable``.

    Attributes:
        stable: whether the load is below one.
        root: ``sigma``; an arrival finds ``n`` customers with probability ``(1 - sigma) sigma^n``.
        mean_wait: mean time from arrival to start of service.
        mean_sojourn: mean time from arrival to departure.
        mean_queue: mean customers present (in slots: at slot starts, arrivals joining at slot ends).
    """

    stable: Array
    root: Array
    mean_wait: Array
    mean_sojourn: Array
    mean_queue: Array


def _smallest_root(transform: Callable[[Array], Array]) -> Array:
    """Least fixed point of a convex increasing function, by Newton's method from 0 (monotone)."""

    def gap(point: Array) -> Array:
        return transform(point) - point

    def newton(function: Callable[[Array], Array], start: Array) -> Array:
        def unfinished(carry: tuple[Array, Array, Array]) -> Array:
            _, step, count = carry
            return (jnp.abs(step) > 1e-16) & (count < 100)

        def advance(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            point, _, count = carry
            value, slope = jax.jvp(function, (point,), (jnp.ones_like(point),))
            step = -value / slope
            return jnp.minimum(point + step, 1.0), step, count + 1

        return jax.lax.while_loop(
            unfinished, advance, (start, jnp.ones_like(start), jnp.zeros((), jnp.int32))
        )[0]

    return jax.lax.custom_root(gap, jnp.zeros(()), newton, lambda linear, value: value / linear(jnp.ones(())))


def _solution(
    transform: Callable[[Array], Array], arrival_rate: Array, service_mean: Array, name: str
) -> GiM1Queue:
    stable = arrival_rate * service_mean < 1.0
    if not is_traced(stable) and not bool(stable):
        raise ValueError(
            f"{name} must keep the load below one, got a load of {float(arrival_rate * service_mean):g}"
        )
    # without steady state: the root of a function that has one
    root = _smallest_root(lambda point: jnp.where(stable, transform(point), 0.5))
    root = jnp.where(stable, root, 1.0)
    wait = jnp.where(stable, service_mean * root / jnp.where(stable, 1.0 - root, 1.0), jnp.inf)
    return GiM1Queue(stable, root, wait, wait + service_mean, arrival_rate * (wait + service_mean))


@in_float64
def gi_m_1_queue(
    gap_transform: Callable[[Array], Array], *, arrival_rate: ArrayLike, service_rate: ArrayLike
) -> GiM1Queue:
    """GI/M/1 with gaps of the given Laplace-Stieltjes transform.

    Args:
        gap_transform: ``s -> E[exp(-s A)]``, e.g. ``lambda s: jnp.exp(-s)`` for gaps of one time unit
            (D/M/1).
        arrival_rate: one over the mean gap.
        service_rate: one over the mean service.

    Raises:
        ValueError: if a rate is not positive, or (outside compiled code) the load is not below one.
    """
    require_positive(arrival_rate, "arrival_rate")
    require_positive(service_rate, "service_rate")
    speed = jnp.asarray(service_rate, float)
    return _solution(
        lambda point: gap_transform(speed * (1.0 - point)),
        jnp.asarray(arrival_rate, float),
        1.0 / speed,
        "service_rate",
    )


@in_float64
def gi_geo_1_queue(gap_law: ArrayLike, service_probability: ArrayLike) -> GiM1Queue:
    """GI/Geo/1 in slots: a packet in service leaves at the end of each slot with ``service_probability``.

    Args:
        gap_law: law of the slots from arrival to arrival, at least one.
        service_probability: in (0, 1).

    Raises:
        ValueError: if the law or the probability is not one, or (outside compiled code) the load is not below
            one.
    """
    require_law(gap_law, "gap_law")
    require_no_mass_at_zero(jnp.asarray(gap_law), "gap_law")
    if not is_traced(service_probability) and not 0.0 < float(np.asarray(service_probability)) < 1.0:
        raise ValueError(f"service_probability must be between 0 and 1, got {service_probability}")
    gaps, chance = jnp.asarray(gap_law, float), jnp.asarray(service_probability, float)

    def transform(point: Array) -> Array:
        return jnp.polyval(gaps[::-1], 1.0 - chance + chance * point)

    return _solution(transform, 1.0 / lattice.mean(gaps), 1.0 / chance, "service_probability")
