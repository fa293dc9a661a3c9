"""How long visits and cycles last, as laws.

How many packets a visit serves depends on what arrives while it serves, and so on how long the services take:
the law of the visit's length comes from the joint chain of (slots elapsed, queue). Behind a gate the number
served is known from the start, and the length is a compound of the services.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from btqueue.queueing._precision import in_float64
from btqueue.queueing.errors import require_count
from btqueue.queueing.laws import lattice
from btqueue.queueing.vacations.vacations import VacationQueueSolution
from btqueue.queueing.vacations.visit_epochs import fill_to


class CycleTimes(eqx.Module):
    """Laws of durations in slots on ``0..horizon-1``, and the mass beyond.

    Attributes:
        visit: from the start of a visit to its last service's end; 0 if it finds nothing to serve.
        cycle: from visit start to visit start.
    """

    visit: lattice.CutLaw
    cycle: lattice.CutLaw


def _convolve_cut(first: Array, second: Array) -> Array:
    length = first.shape[-1]
    spectrum = jnp.fft.rfft(first, 2 * length) * jnp.fft.rfft(second, 2 * length)
    return jnp.fft.irfft(spectrum, 2 * length)[..., :length]


def _later(law: Array) -> Array:
    """One slot later, along the first axis."""
    return jnp.concatenate([jnp.zeros_like(law[:1]), law[:-1]])


def _by_services(solution: VacationQueueSolution, horizon: int, longest: int) -> Array:
    """``(longest + 1, horizon)``: visits that end after ``j`` services and ``t`` slots."""
    epochs, size = solution.epochs, solution.visit_start.shape[-1]
    one_slot = fill_to(epochs.arrivals.slot_law(size), epochs.capacity)
    budget = longest if epochs.discipline == "exhaustive" else epochs.limit

    def serve(going: Array) -> Array:
        def slot(carry: tuple[Array, Array], share: Array) -> tuple[tuple[Array, Array], None]:
            elapsed, done = carry
            elapsed = _later(elapsed @ one_slot)
            return (elapsed, done + share * elapsed), None

        (_, done), _ = jax.lax.scan(slot, (going, jnp.zeros_like(going)), epochs.service[1:])
        return jnp.concatenate([done[:, 1:], jnp.zeros_like(done[:, :1])], axis=1)

    def one_service(going: Array, served: Array) -> tuple[Array, Array]:
        ended = jnp.where(served < budget, going[:, 0], going.sum(axis=1))
        going = jnp.where(served < budget, going.at[:, 0].set(0.0), 0.0)
        return serve(going), ended

    start = jnp.zeros((horizon, size)).at[0].set(solution.visit_start)
    return jax.lax.scan(one_service, start, jnp.arange(longest + 1))[1]


def _behind_gate(solution: VacationQueueSolution, horizon: int) -> Array:
    service = lattice.truncate(solution.epochs.service, horizon).probabilities

    def one_more(law: Array, share: Array) -> tuple[Array, Array]:
        return _convolve_cut(law, service), share * law

    return jax.lax.scan(one_more, jnp.zeros(horizon).at[0].set(1.0), solution.served)[1]


@eqx.filter_jit
def _cycle_times(solution: VacationQueueSolution, horizon: int) -> CycleTimes:
    vacations = solution.epochs.vacations
    if solution.epochs.discipline == "gated":
        ended = _behind_gate(solution, horizon)
    else:
        ended = _by_services(solution, horizon, solution.served.shape[0] - 1)
    row = jnp.minimum(jnp.arange(ended.shape[0]), vacations.shape[0] - 1)
    by_row = jax.ops.segment_sum(ended, row, vacations.shape[0])
    cycle = _convolve_cut(by_row, lattice.truncate(vacations, horizon).probabilities).sum(axis=0)
    visit = ended.sum(axis=0)
    return CycleTimes(
        visit=lattice.CutLaw(visit, jnp.maximum(1.0 - visit.sum(), 0.0)),
        cycle=lattice.CutLaw(cycle, jnp.maximum(1.0 - cycle.sum(), 0.0)),
    )


@in_float64
def cycle_times(solution: VacationQueueSolution, *, horizon: int) -> CycleTimes:
    """Laws of a visit and of a cycle of a queue with vacations, exact below the horizon.

    With exhaustive service, visits that serve more packets than ``solution.served`` lists are counted in the
    mass beyond. The cost is ``O(horizon * limit * capacity**2)`` for each slot of the longest service.

    Args:
        solution: of a queue with a finite buffer; for an infinite one take it large.
        horizon: slots up to which the laws are wanted.

    Raises:
        ValueError: if ``horizon`` is not a positive whole number.
    """
    require_count(horizon, "horizon")
    return _cycle_times(solution, horizon)
