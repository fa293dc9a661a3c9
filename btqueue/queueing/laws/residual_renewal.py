"""A renewal process on the slots, looked at after a given time: how long until its next renewal?

Someone who comes to a server that passes by at the renewals of a process, a known time after its last pass,
waits for the residual life of that process at that age; the renewals in between he has missed. The chain of
the residual life says it all: it counts down by one a slot, and from a renewal it starts anew with the law of
a spacing. Nothing is subtracted, so every probability keeps its digits.

Source: Feller, An Introduction to Probability Theory and Its Applications, vol. 1 (1968), chapter XIII.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.errors import require_count, require_law, require_no_mass_at_zero


@partial(jax.jit, static_argnames=("ages",))
def residual_table(spacing: Array, first: Array, ages: int) -> Array:
    """As `residual_laws`, without checks, for use inside other compiled functions."""
    length = max(first.shape[0], spacing.shape[0] - 1)
    renewed = jnp.pad(spacing[1:], (0, length - spacing.shape[0] + 1))

    def next_slot(residual: Array, _: None) -> tuple[Array, Array]:
        return jnp.append(residual[1:], 0.0) + residual[0] * renewed, residual

    start = jnp.pad(first, (0, length - first.shape[0]))
    return jax.lax.scan(next_slot, start, None, length=ages)[1]


@in_float64
def residual_laws(spacing: ArrayLike, ages: int, *, first: ArrayLike | None = None) -> Array:
    """Law of the time to the next renewal, at the ages ``0..ages-1``.

    A renewal at the age itself counts: residual 0. Without ``first`` there was a renewal at age 0, which does
    not count, and ``Pr(R = r | A = a) = sum_{j < a} u_j f(a - j + r)`` with the renewal mass ``u`` and the
    law ``f`` of a spacing.

    Args:
        spacing: law of the slots between renewals, at least one, shape ``(n,)``.
        ages: number of ages.
        first: law of the time from age 0 to the first renewal, zero allowed, if that is not a spacing.

    Returns:
        Shape ``(ages, m)``, a law in each row, indexed by the residual.

    Raises:
        ValueError: if a law is not one, ``spacing`` allows zero slots, or ``ages`` is not positive.
    """
    _check(spacing, ages)
    law = jnp.asarray(spacing)
    if first is None:
        return residual_table(law, law, ages)
    require_law(first, "first")
    return residual_table(law, jnp.asarray(first), ages)


@in_float64
def renewal_mass(spacing: ArrayLike, length: int) -> Array:
    """Probability ``u_t`` of a renewal at ``t = 0..length-1`` after a renewal at 0 (``u_0 = 1``).

    It tends to one over the mean spacing where the spacing has no period.

    Raises:
        ValueError: if ``spacing`` is not a law on ``1, 2, ...`` or ``length`` is not positive.
    """
    _check(spacing, length)
    return residual_table(jnp.asarray(spacing), jnp.ones(1), length)[:, 0]


@in_float64
def mean_renewals_before(residuals: ArrayLike) -> Array:
    """Mean number of renewals at ages below ``a``, for each age ``a`` of a table of `residual_laws`."""
    at_age = jnp.asarray(residuals)[..., 0]
    return jnp.cumsum(at_age, axis=-1) - at_age


def _check(spacing: ArrayLike, count: int) -> None:
    require_law(spacing, "spacing")
    require_no_mass_at_zero(spacing, "spacing")
    require_count(count, "number of ages")
