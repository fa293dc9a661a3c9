"""The queue with vacations and an infinite buffer: laws from generating functions.

With ``B(z)`` and ``V(z)`` the generating functions of the packets that arrive in a service and in a vacation,
and ``F(z)`` that of the queue at visit start,

* exhaustive service: ``F = V``; services begin with the measure ``U(z) = z (1 - V) / (B - z)`` per cycle;
* gated service: ``F(z) = V(z) F(B(z))``, so ``F = prod_k V(B_k(z))`` with ``B_k`` the k-th iterate of ``B``;
  ``U(z) = z (F(z) - F(B(z))) / (z - B(z))``;
* limited service: `vacations.roots`.

Means come from derivatives at ``z = 1``. Laws come from values on the unit circle by a Fourier transform
whose points avoid the roots of unity at which quotients become 0/0; they carry an absolute error of about
1e-13, and what lies beyond twice the table folds back onto it.

Sources: Takagi, Queueing Analysis, vol. 1 (1991), chapter 2; Fuhrmann & Cooper, Oper. Res. 33 (1985); Abate &
Whitt, Oper. Res. Letters 12 (1992), for the inversion.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.errors import is_traced, require_count
from btqueue.queueing.laws import lattice
from btqueue.queueing.traffic.arrivals import BatchArrivals
from btqueue.queueing.vacations.transforms import (
    Counts,
    circle,
    counts,
    polyval_rows,
    require_stable,
    tabulate,
)
from btqueue.queueing.vacations.vacations import require_durations
from btqueue.queueing.vacations.visit_epochs import Discipline, VisitEpochs, intervals, visits

MOST_FACTORS = 65_536
"""Of the infinite product of gated service; each takes about 0.1 ms."""


class UnlimitedVacationQueue(eqx.Module):
    """Steady state with an infinite buffer; times in slots, laws of the queue with the mass beyond the table.

    Attributes:
        stable: whether there is a steady state; if not (inside ``jit`` only), means are infinite, and so are
            the queue and the packets served.
        converged: whether the roots, or the infinite product, were found to rounding.
        visit_start: law of the queue when the server comes.
        served: law of the packets served in a visit, and the mass beyond.
        intervisit: law of the time from the end of a visit to the next start.
        occupancy: law of the queue at a random moment, found by a batch (as in `VacationQueueSolution`).
        departure: law of the queue left behind by a departing packet.
        mean_visit_start: mean queue at visit start.
        mean_served: mean packets served a visit.
        mean_cycle: mean time from visit to visit.
        mean_queue: mean of the queue at a random moment.
        mean_sojourn: mean time from arrival to end of service.
        mean_wait: mean time from arrival to start of service.
        epochs: how often services and vacations begin in which state; `vacations.sojourn` needs it.
    """

    stable: Array
    converged: Array
    visit_start: lattice.CutLaw
    served: lattice.CutLaw
    intervisit: Array
    occupancy: lattice.CutLaw
    departure: lattice.CutLaw
    mean_visit_start: Array
    mean_served: Array
    mean_cycle: Array
    mean_queue: Array
    mean_sojourn: Array
    mean_wait: Array
    epochs: VisitEpochs

    @property
    def emptied(self) -> Array:
        """``(M,)`` probability that a visit with limited service ends empty after ``j`` services."""
        return self.served.probabilities[:-1]


def _cut(table: Array, stable: Array) -> lattice.CutLaw:
    """The law with the mass beyond its table, which is all of it where there is no steady state."""
    table = jnp.where(stable, table, 0.0)
    return lattice.CutLaw(table, jnp.maximum(1.0 - table.sum(axis=-1), 0.0))


class Steady(NamedTuple):
    """What a discipline determines; generating functions are per cycle and given on `circle`."""

    visit_start: Array  # (points,)
    served: lattice.CutLaw
    service_starts: Array  # (G, S, points)
    closing: Array
    vacation_starts: Array  # (R, points)
    mean_visit_start: Array
    mean_served: Array
    slots_queued: Array  # queue at slot starts, summed over a cycle
    stable: Array
    converged: Array


def finish(
    steady: Steady,
    arrivals: BatchArrivals,
    service: Array,
    vacations: Array,
    limit: Array,
    discipline: Discipline,
    has_limit: bool,
) -> UnlimitedVacationQueue:
    """All that follows from the queues with which services and vacations begin."""
    length = steady.visit_start.shape[-1] // 2
    z = circle(length)
    slot = arrivals.slot_transform(z)
    ends = tabulate(steady.vacation_starts).sum(axis=-1)
    ends = ends.at[-1].set(1.0 - ends[:-1].sum())  # full visits may leave a queue beyond the table
    mean_cycle = steady.mean_served * lattice.mean(service) + ends @ lattice.mean(vacations)
    in_service = steady.service_starts.sum(axis=(0, 1))
    busy = in_service * jnp.polyval(lattice.survival(service)[::-1], slot)
    away = (steady.vacation_starts * polyval_rows(lattice.survival(vacations), slot)).sum(axis=0)
    occupancy = (busy + away) * arrivals.part_slot_transform(z) / mean_cycle
    departure = in_service * jnp.polyval(service[::-1], slot) / z / steady.mean_served

    def if_stable(mean: Array) -> Array:
        return jnp.where(steady.stable, mean, jnp.inf)

    rate = arrivals.packet_rate
    # Poisson batches see half of their own slot's arrivals on average, Bernoulli batches none
    rest = arrivals.rest_of_slot(length).sum()
    mean_queue = if_stable(steady.slots_queued / mean_cycle + rate * rest)
    epochs = VisitEpochs(
        arrivals=arrivals,
        service=service,
        vacations=vacations,
        service_starts=tabulate(steady.service_starts),
        closing=steady.closing,
        vacation_starts=tabulate(steady.vacation_starts),
        capacity=jnp.asarray(length),
        limit=limit,
        discipline=discipline,
        has_limit=has_limit,
    )
    return UnlimitedVacationQueue(
        stable=steady.stable,
        converged=steady.converged,
        visit_start=_cut(tabulate(steady.visit_start), steady.stable),
        served=steady.served,
        intervisit=ends @ vacations,
        occupancy=_cut(tabulate(occupancy), steady.stable),
        departure=_cut(tabulate(departure), steady.stable),
        mean_visit_start=if_stable(steady.mean_visit_start),
        mean_served=if_stable(steady.mean_served),
        mean_cycle=if_stable(mean_cycle),
        mean_queue=mean_queue,
        mean_sojourn=mean_queue / rate,
        mean_wait=mean_queue / rate - lattice.mean(service),
        epochs=epochs,
    )


def _vacation_with_arrivals(arrivals: BatchArrivals, vacation: Array, z: Array) -> Array:
    """``1 - V(z)`` without cancellation, for loads of next to nothing too."""
    batch_rate = arrivals.packet_rate / lattice.mean(arrivals.batch_size)
    batch = jnp.polyval(jnp.asarray(arrivals.batch_size)[::-1], z)
    slot_with_arrivals = batch_rate * (1.0 - batch) * arrivals.part_slot_transform(z)
    return slot_with_arrivals * jnp.polyval(lattice.survival(vacation)[::-1], arrivals.slot_transform(z))


def _pieces(
    arrivals: BatchArrivals, service: ArrayLike, vacations: ArrayLike, length: int
) -> tuple[Array, Array, Counts, Counts]:
    require_count(length, "length")
    service, vacations = require_durations(service, vacations, 0)
    of_service, of_vacation = counts(arrivals, service), counts(arrivals, vacations[0])
    require_stable(1.0 - of_service.first, "arrival rate times mean service below one")
    return service, vacations, of_service, of_vacation


@in_float64
def unlimited_exhaustive_queue(
    *,
    arrivals: BatchArrivals,
    service: ArrayLike,
    vacations: ArrayLike,
    length: int = 512,
    longest_listed: int = 100,
) -> UnlimitedVacationQueue:
    """Steady state with an infinite buffer and service until the queue is empty.

    Args:
        arrivals: `PoissonBatches` or `BernoulliBatches`, per slot.
        service: law of a packet's service, in slots, at least one.
        vacations: law of a vacation, in slots, at least one.
        length: size of the tables of the queue.
        longest_listed: largest number of packets served whose probability is listed.

    Raises:
        ValueError: if an argument is out of range or the load is not below one.
    """
    service, vacations, b, v = _pieces(arrivals, service, vacations, length)
    return _exhaustive(arrivals, service, vacations, b, v, length, longest_listed)


@eqx.filter_jit
def _exhaustive(
    arrivals: BatchArrivals, service: Array, vacations: Array, b: Counts, v: Counts, length: int, longest: int
) -> UnlimitedVacationQueue:
    z = circle(length)
    slot = arrivals.slot_transform(z)
    served, away = jnp.polyval(service[::-1], slot), jnp.polyval(vacations[0, ::-1], slot)
    in_service = z * _vacation_with_arrivals(arrivals, vacations[0], z) / (served - z)
    mean_served = v.first / (1.0 - b.first)
    # U(1) and U'(1) of U = z (1 - V) / (B - z), from the expansions of both at z = 1
    slope = mean_served + (v.second + mean_served * b.second) / (2.0 * (1.0 - b.first))
    of = intervals(arrivals, service, vacations, jnp.asarray(length - 1), length)
    listed = visits(tabulate(away)[None, :], jnp.full(1, longest), of.service, longest).emptied[:, 0]
    steady = Steady(
        visit_start=away,
        served=_cut(listed, b.first < 1.0),
        service_starts=in_service[None, None, :],
        closing=jnp.zeros(1, int),
        vacation_starts=jnp.ones((1, 2 * length)),
        mean_visit_start=v.first,
        mean_served=mean_served,
        slots_queued=slope * b.length + mean_served * b.waited + v.waited,
        stable=b.first < 1.0,
        converged=jnp.asarray(True),
    )
    return finish(steady, arrivals, service, vacations, jnp.asarray(length), "exhaustive", False)


@in_float64
def unlimited_gated_queue(
    *,
    arrivals: BatchArrivals,
    service: ArrayLike,
    vacations: ArrayLike,
    length: int = 512,
    factors: int | None = None,
) -> UnlimitedVacationQueue:
    """Steady state with an infinite buffer where a visit serves those present at its start.

    Args:
        arrivals: see `unlimited_exhaustive_queue`.
        service: see there.
        vacations: see there.
        length: see there.
        factors: factors of the infinite product; enough for rounding if left out, at most 65,536 (a load of
            .9994) and 1000 where the load is traced. ``converged`` says whether they were enough for the
            laws; means do not need them.

    Raises:
        ValueError: as there.
    """
    service, vacations, b, v = _pieces(arrivals, service, vacations, length)
    if factors is None:
        load = 0.0 if is_traced(b.first) else float(np.asarray(b.first))
        # 1 - B_k shrinks like load^k; rounded up so that nearby loads share one compiled program
        factors = 1000 if is_traced(b.first) else 64 * int(np.ceil((5 + np.log(1e-17) / np.log(load)) / 64))
        factors = min(factors, MOST_FACTORS)
    return _gated(arrivals, service, vacations, b, v, length, factors)


@eqx.filter_jit
def _gated(
    arrivals: BatchArrivals, service: Array, vacations: Array, b: Counts, v: Counts, length: int, factors: int
) -> UnlimitedVacationQueue:
    z = circle(length)

    def one_factor(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
        product, iterate = carry
        slot = arrivals.slot_transform(iterate)
        product = product * jnp.polyval(vacations[0, ::-1], slot)
        return (product, jnp.polyval(service[::-1], slot)), None

    (start, last), _ = jax.lax.scan(one_factor, (jnp.ones_like(z), z), length=factors)
    slot = arrivals.slot_transform(z)
    served, away = jnp.polyval(service[::-1], slot), jnp.polyval(vacations[0, ::-1], slot)
    left = start / away  # F(B(z)), the queue when the vacation begins
    with_arrivals = _vacation_with_arrivals(arrivals, vacations[0], z)
    slack = 1.0 - b.first
    mean = v.first / slack
    second = (mean * b.second + 2.0 * mean * b.first * v.first + v.second) / (1.0 - b.first**2)
    slope = mean + second * (1.0 + b.first) / 2.0  # U'(1) of U = z (F - F(B)) / (z - B)
    steady = Steady(
        visit_start=start,
        served=_cut(tabulate(start), slack > 0.0),
        service_starts=(z * left * with_arrivals / (served - z))[None, None, :],
        closing=jnp.zeros(1, int),
        vacation_starts=left[None, :],
        mean_visit_start=mean,
        mean_served=mean,
        slots_queued=slope * b.length + mean * b.waited + mean * b.first * v.length + v.waited,
        stable=slack > 0.0,
        converged=jnp.abs(1.0 - last).max() * v.first / slack < 1e-12,
    )
    return finish(steady, arrivals, service, vacations, jnp.asarray(length), "gated", False)
