"""One door to the queues with vacations: any discipline, a finite or an infinite buffer."""

from typing import cast

from jax.typing import ArrayLike

from btqueue.queueing.traffic.arrivals import BatchArrivals
from btqueue.queueing.vacations.roots import unlimited_vacation_queue
from btqueue.queueing.vacations.unlimited import (
    UnlimitedVacationQueue,
    unlimited_exhaustive_queue,
    unlimited_gated_queue,
)
from btqueue.queueing.vacations.vacations import (
    VacationQueueSolution,
    exhaustive_service_queue,
    gated_service_queue,
    limited_service_queue,
)
from btqueue.queueing.vacations.visit_epochs import Discipline


def vacation_queue(
    *,
    arrivals: BatchArrivals,
    service: ArrayLike,
    vacations: ArrayLike,
    discipline: Discipline = "exhaustive",
    limit: int | None = None,
    capacity: int | None = None,
) -> VacationQueueSolution | UnlimitedVacationQueue:
    """Exact steady state of one queue whose server takes a vacation after every visit.

    Args:
        arrivals: `PoissonBatches` or `BernoulliBatches`, per slot.
        service: law of a packet's service, in slots, at least one.
        vacations: law of a vacation, in slots, at least one; or one row for each number of packets served.
            An infinite buffer takes rows with a ``limit`` only.
        discipline: ``"exhaustive"`` (until the queue is empty), ``"gated"`` (those present when the visit
            begins) or ``"limited"`` (until the queue is empty or ``limit`` have been served).
        limit: most packets served a visit; with gated service it may be left out.
        capacity: room for packets, the one in service included; infinite if left out.

    Raises:
        ValueError: if an argument is out of range, or the buffer is infinite and the queue unstable.
    """
    if discipline not in ("exhaustive", "gated", "limited"):
        raise ValueError(f"discipline must be 'exhaustive', 'gated' or 'limited', got {discipline!r}")
    if (discipline == "limited") > (limit is not None) or (discipline == "exhaustive" and limit is not None):
        raise ValueError(f"limit belongs to limited and to gated service, got {limit} with {discipline!r}")
    queue = {"arrivals": arrivals, "service": service, "vacations": vacations}
    if capacity is not None:
        if discipline == "exhaustive":
            return exhaustive_service_queue(**queue, capacity=capacity)
        if discipline == "gated":
            return gated_service_queue(**queue, capacity=capacity, limit=limit)
        return limited_service_queue(**queue, capacity=capacity, limit=cast(int, limit))
    if limit is not None:
        return unlimited_vacation_queue(**queue, limit=limit, gated=discipline == "gated")
    return unlimited_gated_queue(**queue) if discipline == "gated" else unlimited_exhaustive_queue(**queue)
