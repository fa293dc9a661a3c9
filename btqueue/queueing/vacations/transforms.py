"""Generating functions of queues with vacations: moments at 1, values on the unit circle, and back to laws.

Source of the inversion: Abate & Whitt, Oper. Res. Letters 12 (1992).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from btqueue.queueing.errors import is_traced
from btqueue.queueing.laws import lattice
from btqueue.queueing.traffic.arrivals import BatchArrivals


class Counts(NamedTuple):
    """First and second factorial moments of the packets that arrive in a duration, and of its occupancy.

    ``waited`` is ``sum_e Pr(L > e) E[arrivals in e slots]``, by whole slots.
    """

    first: Array
    second: Array
    length: Array
    waited: Array


def counts(arrivals: BatchArrivals, durations: Array) -> Counts:
    """Moments of the arrivals during durations with the laws ``(..., n)``."""
    first, second = arrivals.slot_factorial_moments()
    length = lattice.mean(durations)
    pairs = lattice.second_moment(durations) - length
    return Counts(first * length, second * length + first**2 * pairs, length, first * pairs / 2.0)


def circle(length: int) -> Array:
    """``2 * length`` points of the unit circle, none of them a root of unity of an order that matters."""
    turn = (jnp.arange(2 * length) + 0.5) / (2 * length)
    return jnp.exp(2j * jnp.pi * turn)


def tabulate(values: Array) -> Array:
    """Coefficients ``0..length-1`` of generating functions given on `circle`, along the last axis."""
    points = values.shape[-1]
    half_turns = jnp.exp(-1j * jnp.pi * jnp.arange(points // 2) / points)
    table = (jnp.fft.fft(values)[..., : points // 2] / points * half_turns).real
    return jnp.where(table > 0.0, table, 0.0)  # rounding may leave -1e-17


def polyval_rows(rows: Array, z: Array) -> Array:
    """Values ``(R, points)`` of the polynomials with the coefficients ``rows``, lowest first."""
    return jax.vmap(lambda row: jnp.polyval(row[::-1], z))(rows)


def require_stable(slack: Array, condition: str) -> None:
    """Raise ``ValueError`` if ``slack``, the margin of a stability condition, is not positive."""
    if not is_traced(slack) and not float(slack) > 0.0:
        raise ValueError(
            f"unstable: {condition} is violated by {-float(slack):.6g}; a finite buffer has an answer"
        )
