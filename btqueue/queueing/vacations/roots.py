"""Limited service with an infinite buffer, from the roots of its generating function.

A second way to what `vacations` finds from a finite chain, and the limit of large capacity. With ``F(z)`` the
queue at visit start, ``B(z)`` and ``V_j(z)`` the packets that arrive in a service and in a vacation after
``j`` services,

    F(z) [z^M - V_M B^M] = sum_j e_j [V_j z^M - V_M B^(M-j) z^j],        limited,
    F(z) [z^M - V_M B^M] = sum_j f_j [V_j B^j z^M - V_M B^M z^j],        gated-limited,

where ``e_j`` is the probability that a visit empties the queue after exactly ``j < M`` services and ``f_j``
that it finds ``j < M`` packets. The right side has to vanish at the ``M - 1`` roots of ``z^M = V_M B^M``
inside the unit disc and, by de l'Hospital, to fit ``F(1) = 1``: ``M`` linear equations for the ``e_j``
or ``f_j``. Derivatives pass through the roots by the implicit function theorem.

Source: Takagi, Queueing Analysis, vol. 1 (1991).
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.errors import ConvergenceError, is_traced, require_count
from btqueue.queueing.laws import lattice
from btqueue.queueing.traffic.arrivals import BatchArrivals
from btqueue.queueing.vacations.transforms import Counts, circle, counts, require_stable
from btqueue.queueing.vacations.unlimited import Steady, UnlimitedVacationQueue, finish
from btqueue.queueing.vacations.vacations import require_durations

__all__ = ["UnlimitedVacationQueue", "unlimited_vacation_queue"]

Transform = Callable[[Array], Array]


def _continuous_log(generating: Transform, z: Array) -> Array:
    """Logarithm of a generating function at ``z``, followed from ``log 1 = 0`` at ``z = 1`` without jumps."""
    path = 1.0 + jnp.linspace(0.0, 1.0, 129)[:, None] * (z - 1.0)
    values = generating(path)
    return jnp.log(jnp.abs(values[-1])) + 1j * jnp.unwrap(jnp.angle(values), axis=0)[-1]


def inside_roots(absent: Transform, served: Transform, limit: int) -> tuple[Array, Array]:
    """The ``M - 1`` roots of ``z^M = V_M B^M`` in the unit disc, by ``z <- omega_k V_M^(1/M) B``.

    ``omega_k`` are the M-th roots of unity other than 1, one for each root. Also whether they were found.
    """
    turns = jnp.asarray(np.exp(2j * np.pi * np.arange(1, limit) / limit))

    def unfinished(carry: tuple[Array, Array, Array]) -> Array:
        _, change, iterations = carry
        return (change > 1e-14) & (iterations < 10_000)

    def advance(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        roots, _, iterations = carry
        new = turns * jnp.exp(_continuous_log(absent, roots) / limit) * served(roots)
        return new, jnp.abs(new - roots).max(initial=0.0), iterations + 1

    start = (jnp.zeros(limit - 1, complex), jnp.asarray(jnp.inf), jnp.asarray(0))
    roots, change, _ = jax.lax.while_loop(unfinished, advance, start)
    apart = jnp.abs(roots[:, None] - roots[None, :]) + jnp.eye(limit - 1)
    return roots, (change <= 1e-13) & (apart.min(initial=1.0) > 1e-9)


def differentiable_roots(roots: Array, absent: Transform, served: Transform, limit: int) -> Array:
    """One step of Newton's method: the same roots, with their derivatives (implicit function theorem)."""

    def remainder(z: Array) -> Array:
        return 1.0 - absent(z) * (served(z) / z) ** limit

    slope = jax.vmap(jax.grad(remainder, holomorphic=True))(roots)
    return jnp.subtract(roots, remainder(roots) / jax.lax.stop_gradient(slope))


def _second_order(powers: ArrayLike, services: ArrayLike, b: Counts, v: Counts) -> tuple[Array, Array]:
    """First two derivatives at 1 of ``z^powers B^services V``, from those of the logarithms."""
    powers, services = jnp.asarray(powers), jnp.asarray(services)
    first = powers + services * b.first + v.first
    logarithm = -powers + services * (b.second - b.first**2) + v.second - v.first**2
    return first, logarithm + first**2


def _gated_services(found: Array, more: Array, per_service: Array, rows: int) -> tuple[Array, Array]:
    """Services of gated visits by closing vacation, services to come behind the gate, and queue.

    ``found[g]`` are visits that found ``g < M``, ``more`` those that found at least ``M``.
    """
    limit = found.shape[0]
    by_gate = jnp.concatenate([found, more[None]])
    gate, left = jnp.arange(limit + 1)[:, None], jnp.arange(limit)[None, :]
    done = gate - 1 - left
    powers = per_service ** jnp.arange(limit)[:, None]
    starts = jnp.where((done >= 0)[..., None], by_gate[:, None] * powers[jnp.maximum(done, 0)], 0.0)
    if rows == 1:
        return starts.sum(axis=0, keepdims=True), jnp.zeros(1, int)
    return starts, jnp.arange(limit + 1)


@eqx.filter_jit
def _solve(
    arrivals: BatchArrivals, service: Array, rows: Array, limit: int, gated: bool, length: int
) -> UnlimitedVacationQueue:
    vacations = jnp.broadcast_to(rows, (limit + 1, rows.shape[-1]))
    b, v = counts(arrivals, service), counts(arrivals, vacations)
    v_full = jax.tree.map(lambda moment: moment[limit], v)
    v_short = jax.tree.map(lambda moment: moment[:limit], v)

    def served_with(given: tuple[BatchArrivals, Array, Array]) -> Transform:
        return lambda z: jnp.polyval(given[1][::-1], given[0].slot_transform(z))

    def absent_with(given: tuple[BatchArrivals, Array, Array]) -> Transform:
        return lambda z: jnp.polyval(given[2][limit, ::-1], given[0].slot_transform(z))

    given = (arrivals, service, vacations)
    frozen = jax.lax.stop_gradient(jax.tree.map(jnp.asarray, given))
    roots, converged = inside_roots(absent_with(frozen), served_with(frozen), limit)
    roots = differentiable_roots(roots, absent_with(given), served_with(given), limit)

    j = jnp.arange(limit)

    def parts(z: Array) -> Array:
        """Coefficients of the ``e_j`` or ``f_j``, ``(points, M)``, divided by ``z^M``."""
        slot = arrivals.slot_transform(z)
        served = (jnp.polyval(service[::-1], slot) / z)[:, None]
        absent = jax.vmap(lambda row: jnp.polyval(row[::-1], slot), out_axes=1)(vacations)
        full = absent[:, limit:]
        power = z[:, None] ** j
        if gated:
            return absent[:, :limit] * (served * z[:, None]) ** j - full * served**limit * power
        return absent[:, :limit] - full * served ** (limit - j)

    after, others = (j, limit) if gated else (0 * j, limit - j)
    gain, gain_second = _second_order(limit, after, b, v_short)
    lose, lose_second = _second_order(j, others, b, v_full)
    full_first, full_second = _second_order(0, limit, b, v_full)
    slack = limit - full_first
    equations = jnp.concatenate([parts(roots), (gain - lose)[None, :].astype(complex)])
    unknowns = jnp.linalg.solve(equations, jnp.zeros(limit, complex).at[-1].set(slack)).real

    z = circle(length)
    slot = arrivals.slot_transform(z)
    served = jnp.polyval(service[::-1], slot)
    full = jnp.polyval(vacations[limit, ::-1], slot)
    visit_start = parts(z) @ unknowns / (1.0 - full * (served / z) ** limit)
    curve = unknowns @ (gain_second - lose_second) - (limit * (limit - 1.0) - full_second)
    mean_visit_start = curve / (2.0 * slack)
    finished = 1.0 - unknowns.sum()
    shares = jnp.append(unknowns, finished)
    mean_served = shares @ jnp.arange(limit + 1)

    if gated:
        found = unknowns[:, None] * z ** j[:, None]
        more = visit_start - found.sum(axis=0)
        service_starts, closing = _gated_services(found, more, served / z, rows.shape[0])
        vacation_starts = jnp.concatenate(
            [unknowns[:, None] * served ** j[:, None], (more * (served / z) ** limit)[None]]
        )
        more_slope = mean_visit_start - unknowns @ j
        # after i services the queue i lower and i services' arrivals higher
        pairs = shares @ (jnp.arange(limit + 1) * jnp.arange(-1, limit)) / 2.0
        visits_slope = unknowns @ j**2 + limit * more_slope - (1.0 - b.first) * pairs
        away_queue = (shares * jnp.append(j * b.first, 0.0)) @ v.length
        away_queue = away_queue + (more_slope - finished * limit * (1.0 - b.first)) * v_full.length
    else:

        def next_service(going: Array, ended: Array) -> tuple[Array, Array]:
            in_service = going - ended
            return in_service * served / z, in_service

        left, in_service = jax.lax.scan(next_service, visit_start, unknowns)
        service_starts, closing = jnp.flip(in_service, axis=0)[None], jnp.full(1, rows.shape[0] - 1)
        vacation_starts = jnp.concatenate([jnp.broadcast_to(unknowns[:, None], in_service.shape), left[None]])
        going = 1.0 - jnp.cumsum(unknowns)  # visits that have a service after j
        slopes = mean_visit_start - (1.0 - b.first) * jnp.cumsum(jnp.append(0.0, going))
        visits_slope = slopes[:limit].sum()
        away_queue = slopes[limit] * v_full.length
    if rows.shape[0] == 1:
        vacation_starts = vacation_starts.sum(axis=0, keepdims=True)
    steady = Steady(
        visit_start=visit_start,
        served=lattice.CutLaw(shares, jnp.zeros(())),
        service_starts=service_starts,
        closing=closing,
        vacation_starts=vacation_starts,
        mean_visit_start=mean_visit_start,
        mean_served=mean_served,
        slots_queued=visits_slope * b.length + mean_served * b.waited + away_queue + shares @ v.waited,
        stable=slack > 0.0,
        converged=converged,
    )
    discipline = "gated" if gated else "limited"
    return finish(steady, arrivals, service, rows, jnp.asarray(limit), discipline, True)


@in_float64
def unlimited_vacation_queue(
    *,
    arrivals: BatchArrivals,
    service: ArrayLike,
    vacations: ArrayLike,
    limit: int,
    gated: bool = False,
    length: int = 512,
) -> UnlimitedVacationQueue:
    """Steady state of `vacations.limited_service_queue` without a limit on the buffer.

    Args:
        arrivals: `PoissonBatches` or `BernoulliBatches`, per slot.
        service: law of a packet's service, in slots, at least one.
        vacations: law of a vacation, in slots, or ``(limit + 1, n)`` with row ``j`` after ``j`` services.
        limit: most packets served a visit M.
        gated: whether a visit serves only packets present when it begins.
        length: size of the tables of the queue.

    Raises:
        ValueError: if an argument is out of range or the queue is unstable,
            ``lambda E[V_M] >= M (1 - rho)``.
        ConvergenceError: if the roots are not found.
    """
    require_count(limit, "limit")
    require_count(length, "length")
    service, vacations = require_durations(service, vacations, limit)
    absent = arrivals.packet_rate * lattice.mean(vacations[-1])
    slack = limit * (1.0 - arrivals.packet_rate * lattice.mean(service)) - absent
    require_stable(slack, "lambda E[V_M] below M (1 - rho)")
    solution = _solve(arrivals, service, vacations, limit, gated, length)
    if not is_traced(solution.converged) and not bool(solution.converged):
        raise ConvergenceError("the roots of the generating function were not found")
    return solution
