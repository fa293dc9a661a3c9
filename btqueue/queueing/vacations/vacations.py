"""One finite queue whose server takes vacations: exhaustive, gated and limited service.

The state is the queue at the start of a visit. During any one service or vacation nothing leaves, so the
capacity may be applied once at its end: the chain on ``0..K`` is exact. A vacation may depend on how many
packets the visit served, which covers a final empty poll and, in polling systems, a server that stays away
longer after a short visit. A server that comes back to an empty queue takes another vacation.

Sources: Takagi, Queueing Analysis, vol. 2 (1993); Lee, Queueing Systems 5 (1989).
"""

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.errors import require_count, require_law, require_no_mass_at_zero
from btqueue.queueing.laws import lattice
from btqueue.queueing.traffic import arrivals as arrival_laws
from btqueue.queueing.traffic.batch_streams import BatchStream
from btqueue.queueing.vacations.visit_epochs import (
    Discipline,
    budgeted_cycles,
    exhaustive_cycles,
    intervals,
    serve,
)


class VacationQueueSolution(eqx.Module):
    """Steady state of a queue with vacations; times in slots, laws of the queue on ``0..K``.

    Attributes:
        visit_start: law of the queue when the server comes, ``(K + 1,)``.
        served: law of the packets served in a visit, ``(M + 1,)``; with limited service the entries below M
            are visits that end with an empty queue.
        served_beyond: probability that a visit serves more than ``served`` lists (exhaustive service only).
        mean_served: mean packets served a visit.
        mean_cycle: mean time from visit to visit.
        intervisit: law of the time from the end of a visit to the next start.
        throughput: packets served a slot.
        packet_loss: share of the packets offered that are lost.
        segment_loss: share of the batches that lose at least one packet.
        occupancy: law of the queue, packet in service included, at a random moment and so, by PASTA, found
            by a batch (Bernoulli batches: at the start of a random slot, found by a batch at its end).
        departure: law of the queue left behind by a departing packet.
        mean_queue: mean of ``occupancy``.
        mean_sojourn: mean time from arrival to end of service, of the packets accepted.
        mean_wait: mean time from arrival to start of service.
    """

    visit_start: Array
    served: Array
    served_beyond: Array
    mean_served: Array
    mean_cycle: Array
    intervisit: Array
    throughput: Array
    packet_loss: Array
    segment_loss: Array
    occupancy: Array
    departure: Array
    mean_queue: Array
    mean_sojourn: Array
    mean_wait: Array


@eqx.filter_jit
def _solve(
    arrivals: BatchStream,
    service: Array,
    vacations: Array,
    capacity: int,
    longest: int,
    discipline: Discipline,
) -> VacationQueueSolution:
    size = capacity + 1
    of = intervals(arrivals, service, vacations, size)
    if discipline == "exhaustive":
        cycles = exhaustive_cycles(of, longest)
    else:
        cycles = budgeted_cycles(of, longest, gated=discipline == "gated")

    in_service = cycles.service_starts
    services, ends = in_service.sum(), cycles.vacation_starts.sum()
    intervisit = cycles.vacation_starts.sum(axis=1) @ vacations
    duration = services * lattice.mean(service) + lattice.mean(intervisit)
    throughput = services / duration

    slots = in_service @ of.service_time + jnp.einsum("rq,rqp->p", cycles.vacation_starts, of.vacation_time)
    occupancy = slots / duration @ lattice.filling_matrix(arrivals.part_slot_law(size))
    mean_queue = lattice.mean(occupancy)
    mean_sojourn = mean_queue / throughput
    return VacationQueueSolution(
        visit_start=cycles.visit_start,
        served=cycles.served,
        served_beyond=jnp.maximum(1.0 - cycles.served.sum(), 0.0),
        mean_served=services / ends,
        mean_cycle=duration / ends,
        intervisit=intervisit / ends,
        throughput=throughput,
        packet_loss=arrival_laws.packet_loss(occupancy, arrivals.batch_size),
        segment_loss=arrival_laws.batch_loss(occupancy, arrivals.batch_size),
        occupancy=occupancy,
        departure=serve(in_service / services, of.service),
        mean_queue=mean_queue,
        mean_sojourn=mean_sojourn,
        mean_wait=mean_sojourn - lattice.mean(service),
    )


def _require_durations(
    service: ArrayLike, vacations: ArrayLike, longest: int | None = None
) -> tuple[Array, Array]:
    """Return the law of a service and the rows of vacations, checked.

    Raises:
        ValueError: if a law is not one or allows zero slots, or ``vacations`` has neither one row nor, where
            ``longest`` is given, ``longest + 1``.
    """
    for law, name in ((service, "service"), (vacations, "vacations")):
        require_law(law, name)
        require_no_mass_at_zero(law, name)
    service, vacations = jnp.asarray(service), jnp.atleast_2d(jnp.asarray(vacations))
    if vacations.ndim > 2 or (longest is not None and vacations.shape[0] not in (1, longest + 1)):
        raise ValueError(
            f"vacations must be one law or limit + 1 = {longest} + 1 laws, got {vacations.shape}"
        )
    return service, vacations


@in_float64
def limited_service_queue(
    *, arrivals: BatchStream, service: ArrayLike, vacations: ArrayLike, capacity: int, limit: int
) -> VacationQueueSolution:
    """Exact steady state of a queue with room for ``capacity`` packets, served ``limit`` at a time.

    A visit goes on until the queue is empty or ``limit`` packets have been served; one that finds the queue
    empty ends at once. A batch too big for the room left is accepted in part. The cost is
    ``O(limit * capacity**3)``.

    Args:
        arrivals: `PoissonBatches` or `BernoulliBatches`, per slot.
        service: law of a packet's service, in slots, at least one.
        vacations: law of a vacation, in slots, at least one: a vector, or ``(limit + 1, n)`` with row ``j``
            for visits that served ``j``.
        capacity: largest queue K, packet in service included.
        limit: most packets served a visit M.

    Raises:
        ValueError: if a law is not one, allows zero slots, or a count is not positive.

    Example:
        >>> from btqueue.queueing.vacations.vacations import limited_service_queue
        >>> from btqueue.queueing.traffic.arrivals import PoissonBatches
        >>> found = limited_service_queue(
        ...     arrivals=PoissonBatches(0.05, [0.0, 1.0]),
        ...     service=[0.0] * 6 + [1.0],
        ...     vacations=[0.0] * 12 + [1.0],
        ...     capacity=10,
        ...     limit=2,
        ... )
        >>> round(float(found.mean_wait), 4)
        13.4591
    """
    require_count(capacity, "capacity")
    require_count(limit, "limit")
    service, vacations = _require_durations(service, vacations, limit)
    return _solve(arrivals, service, vacations, capacity, limit, "limited")


@in_float64
def gated_service_queue(
    *,
    arrivals: BatchStream,
    service: ArrayLike,
    vacations: ArrayLike,
    capacity: int,
    limit: int | None = None,
) -> VacationQueueSolution:
    """As `limited_service_queue`, but a visit serves only packets present when it begins.

    Args:
        arrivals: see there.
        service: see there.
        vacations: one law, or one for each number served, ``0..limit``.
        capacity: see there.
        limit: most packets served a visit (gated-limited service); all present if left out.

    Raises:
        ValueError: as there.

    Example:
        >>> from btqueue.queueing.vacations.vacations import gated_service_queue
        >>> from btqueue.queueing.traffic.arrivals import PoissonBatches
        >>> found = gated_service_queue(
        ...     arrivals=PoissonBatches(0.05, [0.0, 1.0]),
        ...     service=[0.0] * 6 + [1.0],
        ...     vacations=[0.0] * 12 + [1.0],
        ...     capacity=10,
        ... )
        >>> round(float(found.mean_wait), 4)
        12.4284
    """
    require_count(capacity, "capacity")
    most = capacity if limit is None else limit
    require_count(most, "limit")
    service, vacations = _require_durations(service, vacations, most)
    return _solve(arrivals, service, vacations, capacity, most, "gated")


@in_float64
def exhaustive_service_queue(
    *,
    arrivals: BatchStream,
    service: ArrayLike,
    vacations: ArrayLike,
    capacity: int,
    longest_listed: int = 100,
) -> VacationQueueSolution:
    """As `limited_service_queue`, but a visit goes on until the queue is empty.

    Overloaded, visits may last for ages; ``mean_cycle`` and ``mean_served`` are then large, infinite where
    they exceed the floating-point range, and everything else remains exact.

    Args:
        arrivals: see there.
        service: see there.
        vacations: one law, or one for each of ``0..r`` packets served, the last also for more.
        capacity: see there.
        longest_listed: largest number of packets whose probability ``served`` lists.

    Raises:
        ValueError: as there.

    Example:
        >>> from btqueue.queueing.vacations.vacations import exhaustive_service_queue
        >>> from btqueue.queueing.traffic.arrivals import PoissonBatches
        >>> found = exhaustive_service_queue(
        ...     arrivals=PoissonBatches(0.05, [0.0, 1.0]),
        ...     service=[0.0] * 6 + [1.0],
        ...     vacations=[0.0] * 12 + [1.0],
        ...     capacity=10,
        ... )
        >>> round(float(found.mean_wait), 4)
        7.2857
    """
    require_count(capacity, "capacity")
    require_count(longest_listed, "longest_listed")
    service, vacations = _require_durations(service, vacations)
    return _solve(arrivals, service, vacations, capacity, longest_listed, "exhaustive")
