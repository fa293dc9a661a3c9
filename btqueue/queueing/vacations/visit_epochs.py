"""When services and vacations begin: what one queue with vacations is made of, in the steady state.

During a service or a vacation nothing leaves the queue, so everything about the queue follows from how often
a service begins with so many packets present, and how often a vacation does. `Cycles` holds these two
measures, from the chain of the queue at visit starts.

Sources: Takagi, Queueing Analysis, vol. 2 (1993); Lee, Queueing Systems 5 (1989).
"""

from typing import Literal, NamedTuple, cast

import jax
import jax.numpy as jnp
from jax import Array

from btqueue.queueing.elimination import stationary_law
from btqueue.queueing.laws import lattice
from btqueue.queueing.traffic.batch_streams import BatchStream

Discipline = Literal["limited", "gated", "exhaustive"]


class Intervals(NamedTuple):
    """What a buffer of room K does during whole intervals and during the slots of one, ``(..., n, n)``."""

    service: Array
    vacations: Array  # (R, n, n)
    service_time: Array
    vacation_time: Array  # (R, n, n)


def intervals(arrivals: BatchStream, service: Array, vacations: Array, size: int) -> Intervals:
    """How a buffer fills during a service and during each kind of vacation, on ``0..size-1``."""
    slot = arrivals.slot_law(size).probabilities

    def fills(durations: Array) -> Array:
        return lattice.filling_matrix(lattice.compound(durations, slot, size))

    return Intervals(
        service=fills(service),
        vacations=fills(vacations),
        service_time=fills(lattice.survival(service)),
        vacation_time=fills(lattice.survival(vacations)),
    )


def serve(law: Array, per_service: Array) -> Array:
    """The queue after one more service; the last axis of ``law`` holds those that find a packet.

    Example:
        >>> from btqueue.queueing.vacations.visit_epochs import serve
        >>> import jax.numpy as jnp
        >>> left = serve(jnp.array([0.5, 0.5]), jnp.array([[0.8, 0.2], [0.1, 0.9]]))
        >>> [round(float(share), 4) for share in left]
        [0.55, 0.0]
    """
    after = law @ per_service
    return jnp.concatenate([after[..., 1:], jnp.zeros_like(after[..., :1])], axis=-1)


class Visits(NamedTuple):
    """Visits of several groups, each with a budget of services.

    ``emptied[j, g]`` is the share that ends with an empty queue after ``j`` services, fewer than the budget;
    ``in_service[j, g]`` the queue where service ``j`` begins, ``finished[g]`` where the budget is used up.
    """

    emptied: Array  # (J, g)
    in_service: Array | None  # (J, g, n), where it was asked for
    finished: Array  # (g, n)


def visits(start: Array, budget: Array, per_service: Array, longest: int, *, keep: bool = False) -> Visits:
    """Follow visits that start with the queues ``start``, ``(g, n)``, for up to ``longest`` services.

    ``in_service`` is returned if ``keep`` is set.
    """

    def one_service(going: Array, served: Array) -> tuple[Array, tuple[Array, Array | None]]:
        active = served < budget
        # rows that have used up their budget stay as they are
        in_service = jnp.where(active[:, None], going.at[:, 0].set(0.0), 0.0)
        emptied = jnp.where(active, going[:, 0], 0.0)
        return jnp.where(active[:, None], serve(in_service, per_service), going), (
            emptied,
            in_service if keep else None,
        )

    finished, (emptied, in_service) = jax.lax.scan(one_service, start, jnp.arange(longest))
    return Visits(emptied, in_service, finished)


def _row(served: Array | int, rows: int) -> Array:
    """Row of the vacations after ``served`` services."""
    return jnp.minimum(served, rows - 1)


class Cycles(NamedTuple):
    """Visit starts, services a visit, and the states in which intervals begin, up to one common factor."""

    visit_start: Array  # (n,), law of the queue when the server comes
    served: Array  # (J + 1,), shares of the visits
    service_starts: Array  # (n,), services that begin with so many packets present
    vacation_starts: Array  # (R, n), vacations of each row that begin with so many present


def _vacation_starts(outcome: Visits, budget: Array, rows: int, size: int) -> Array:
    longest = outcome.emptied.shape[0]
    starts = jnp.zeros((rows, size))
    starts = starts.at[_row(jnp.arange(longest), rows), 0].add(outcome.emptied.sum(axis=1))
    return starts.at[_row(budget, rows)].add(outcome.finished)


def budgeted_cycles(of: Intervals, limit: int, *, gated: bool) -> Cycles:
    """Limited service, or gated service of at most ``limit`` of those present at the visit's start.

    A visit that finds ``q`` packets is allowed ``limit`` services, or ``min(q, limit)`` behind the gate.
    """
    size, rows = of.service.shape[0], of.vacations.shape[0]
    budget = jnp.minimum(limit, jnp.arange(size)) if gated else jnp.full(size, limit)
    everywhere = visits(jnp.eye(size), budget, of.service, limit)
    after_emptied = of.vacations[_row(jnp.arange(limit), rows), 0]
    if rows == 1:
        after_finished = everywhere.finished @ of.vacations[0]
    elif gated:
        after_finished = jnp.einsum("gq,gqp->gp", everywhere.finished, of.vacations[_row(budget, rows)])
    else:
        after_finished = everywhere.finished @ of.vacations[_row(limit, rows)]
    visit_start = stationary_law(everywhere.emptied.T @ after_emptied + after_finished)

    if gated:  # the gate is known from the start: one group for each queue found
        groups, group_budget = jnp.diag(visit_start), budget
    else:
        groups, group_budget = visit_start[None, :], jnp.full(1, limit)
    outcome = visits(groups, group_budget, of.service, limit, keep=True)
    in_service = cast(Array, outcome.in_service)
    served = jnp.append(outcome.emptied.sum(axis=1), 0.0).at[group_budget].add(outcome.finished.sum(axis=1))
    vacation_starts = _vacation_starts(outcome, group_budget, rows, size)
    return Cycles(visit_start, served, in_service.sum(axis=(0, 1)), vacation_starts)


def exhaustive_cycles(of: Intervals, longest: int) -> Cycles:
    """Service until the queue is empty; ``served`` is cut at ``longest``, all else is not.

    After as many services as there are kinds of vacation, every further one is alike: what is left of the
    visits is an absorbing chain, solved as the stationary law of the chain that begins again at once. No
    subtraction is involved, so that visits which practically never end (overload) do no harm.
    """
    size, rows = of.service.shape[0], of.vacations.shape[0]
    special = rows - 1
    budget = jnp.full(size, special)
    everywhere = visits(jnp.eye(size), budget, of.service, special)
    after_emptied = of.vacations[:special, 0]
    ends_late = everywhere.finished.sum(axis=1)[:, None] * of.vacations[-1, 0]
    visit_start = stationary_law(everywhere.emptied.T @ after_emptied + ends_late)

    outcome = visits(visit_start[None, :], budget[:1], of.service, special, keep=True)
    remaining = outcome.finished[0]
    weight = remaining.sum()
    again = serve(jnp.eye(size).at[0, 0].set(0.0), of.service).at[0].set(remaining / weight)
    late = stationary_law(again)
    # late[0] counts the ends of these visits; dividing by it could overflow, so the rest is scaled instead
    in_service = late[0] * cast(Array, outcome.in_service).sum(axis=(0, 1)) + weight * late.at[0].set(0.0)
    ends = jnp.append(outcome.emptied[:, 0], weight) * late[0]
    served = visits(visit_start[None, :], jnp.full(1, longest), of.service, longest)
    return Cycles(
        visit_start=visit_start,
        served=jnp.append(served.emptied[:, 0], 0.0),
        service_starts=in_service,
        vacation_starts=jnp.zeros((rows, size)).at[:, 0].set(ends),
    )
