"""The limited-service vacation queue with an infinite buffer, from the roots of its generating function.

A second way to what `vacations` finds from a finite chain, and the limit of large capacity. With ``F(z)`` the
queue at visit start, ``e_j`` the probability that a visit empties the queue after exactly ``j < M`` services,
``B(z)`` and ``V_j(z)`` the packets that arrive in a service and in a vacation after ``j`` services,

    F(z) [z^M - V_M B^M] = sum_j e_j [V_j z^M - V_M B^(M-j) z^j].

The right side has to vanish at the ``M - 1`` roots of ``z^M = V_M B^M`` inside the unit disc and, by
de l'Hospital, to fit ``F(1) = 1``: ``M`` linear equations for the ``e_j``.

Source: Takagi, Queueing Analysis, vol. 1 (1991).
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing import lattice
from btqueue.queueing._precision import in_float64
from btqueue.queueing.arrivals import PoissonBatches
from btqueue.queueing.errors import ConvergenceError, require_count, require_law, require_no_mass_at_zero


class UnlimitedVacationQueue(eqx.Module):
    """Steady state with an infinite buffer; times in slots.

    Attributes:
        emptied: ``(M,)`` probability that a visit ends with an empty queue after ``j`` services.
        mean_visit_start: mean queue at visit start.
        mean_served: mean packets served a visit.
        mean_cycle: mean time from visit to visit.
    """

    emptied: Array
    mean_visit_start: Array
    mean_served: Array
    mean_cycle: Array


def _continuous_log(generating: Callable[[Array], Array], z: np.ndarray) -> np.ndarray:
    """Logarithm of a generating function at ``z``, followed from ``log 1 = 0`` at ``z = 1`` without jumps."""
    path = 1.0 + np.linspace(0.0, 1.0, 129)[:, None] * (z - 1.0)
    values = np.asarray(generating(jnp.asarray(path)))
    return np.log(np.abs(values[-1])) + 1j * np.unwrap(np.angle(values), axis=0)[-1]


def _inside_roots(
    absent: Callable[[Array], Array], served: Callable[[Array], Array], limit: int
) -> np.ndarray:
    """The ``M - 1`` roots of ``z^M = V_M B^M`` in the unit disc, by ``z <- omega_k V_M^(1/M) B``.

    ``omega_k`` are the M-th roots of unity other than 1, one for each root.
    """
    turns = np.exp(2j * np.pi * np.arange(1, limit) / limit)
    roots = np.zeros(limit - 1, dtype=complex)
    for _ in range(10_000):
        new = turns * np.exp(_continuous_log(absent, roots) / limit) * np.asarray(served(jnp.asarray(roots)))
        if np.abs(new - roots).max(initial=0.0) < 1e-14:
            return new
        roots = new
    raise ConvergenceError("the roots of the generating function were not found")


@in_float64
def unlimited_vacation_queue(
    *, arrivals: PoissonBatches, service: ArrayLike, vacations: ArrayLike, limit: int
) -> UnlimitedVacationQueue:
    """Steady state of the queue of `vacations.limited_service_queue` without a limit on the buffer.

    Args:
        arrivals: Poisson batches, per slot.
        service: law of a packet's service, in slots, at least one.
        vacations: law of a vacation, in slots, or ``(limit + 1, n)`` with row ``j`` after ``j`` services.
        limit: most packets served a visit M.

    Raises:
        ValueError: if an argument is out of range or the queue is unstable,
            ``lambda E[V_M] >= M (1 - rho)``.
        ConvergenceError: if the roots are not found.
    """
    require_count(limit, "limit")
    for law, name in ((service, "service"), (vacations, "vacations")):
        require_law(law, name)
        require_no_mass_at_zero(law, name)
    service = np.asarray(service, dtype=float)
    away = np.asarray(vacations, dtype=float)
    away = np.broadcast_to(away, (limit + 1, away.shape[-1]))
    rate = float(arrivals.packet_rate)
    load = rate * float(lattice.mean(service))
    mean_away = away @ np.arange(away.shape[1])
    slack = limit * (1.0 - load) - rate * mean_away[limit]
    if slack <= 0.0:
        raise ValueError(f"unstable: lambda E[V_M] exceeds M (1 - rho) by {-slack}")

    sizes = jnp.asarray(arrivals.batch_size)

    def slot(z: Array) -> Array:
        return jnp.exp(jnp.asarray(arrivals.batch_rate) * (jnp.polyval(sizes[::-1], z) - 1.0))

    def served(z: Array) -> Array:
        return jnp.polyval(jnp.asarray(service[::-1]), slot(z))

    def absent(after: int, z: Array) -> Array:
        return jnp.polyval(jnp.asarray(away[after, ::-1]), slot(z))

    def emptied_part(after: int, z: Array) -> Array:
        return absent(after, z) * z**limit - absent(limit, z) * served(z) ** (limit - after) * z**after

    roots = _inside_roots(jax.jit(lambda z: absent(limit, z)), jax.jit(served), limit)
    after = np.arange(limit)
    equations = np.empty((limit, limit), dtype=complex)
    for column in after:
        equations[:-1, column] = np.asarray(emptied_part(int(column), jnp.asarray(roots)))
    equations[-1] = (
        rate * mean_away[:limit] + limit - rate * mean_away[limit] - (limit - after) * load - after
    )
    emptied = np.linalg.solve(equations, np.append(np.zeros(limit - 1), slack)).real

    # F = R / D with R(1) = D(1) = 0:  F'(1) = (R'' - D'') / (2 D')
    def numerator(z: Array) -> Array:
        return jnp.asarray(sum(float(emptied[j]) * emptied_part(j, z) for j in range(limit)))

    def denominator(z: Array) -> Array:
        return z**limit - absent(limit, z) * served(z) ** limit

    curve = jax.grad(jax.grad(numerator))(1.0) - jax.grad(jax.grad(denominator))(1.0)
    finished = 1.0 - emptied.sum()
    mean_served = emptied @ after + limit * finished
    mean_cycle = mean_served * load / rate + emptied @ mean_away[:limit] + finished * mean_away[limit]
    return UnlimitedVacationQueue(
        emptied=jnp.asarray(emptied),
        mean_visit_start=curve / (2.0 * jax.grad(denominator)(1.0)),
        mean_served=jnp.asarray(mean_served),
        mean_cycle=jnp.asarray(mean_cycle),
    )
