"""The exact values of a random queue, by the function of `btqueue.queueing` made for it."""

from typing import Any

import numpy as np
from random_queues import (
    MAX_CAPACITY,
    MAX_LIMIT,
    THRESHOLDS,
    Bucket,
    Bulk,
    PriorityQueue,
    Queue,
    System,
)

from btqueue.queueing.single.bulk_service import bulk_queue
from btqueue.queueing.single.finite_queue import finite_queue
from btqueue.queueing.single.n_policy import n_policy_queue
from btqueue.queueing.single.priority_queue import priority_queue
from btqueue.queueing.single.single_queue import single_queue
from btqueue.queueing.token_bucket.token_bucket import token_bucket
from btqueue.queueing.traffic.arrivals import BernoulliBatches, PoissonBatches
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

LENGTH, HORIZON = 128, 256
"""Of the tables of packets and of slots."""


def exact_values(system: System) -> dict[str, float]:
    """Solve a system."""
    if isinstance(system, PriorityQueue):
        solved = priority_queue(
            arrivals=[PoissonBatches(*one) for one in zip(system.batch_rates, system.sizes, strict=True)],
            services=list(system.services),
            horizon=8,
            preemptive=system.preemptive,
            slotted=system.slotted,
        )
        return {
            "wait, first class": float(solved.mean_wait[0]),
            "wait, second class": float(solved.mean_wait[1]),
            "sojourn, second class": float(solved.mean_sojourn[1]),
        }
    if isinstance(system, Bucket):
        bucket = token_bucket(
            batches=PoissonBatches(system.batch_rate, system.sizes),
            token_time=system.token_time,
            depth=system.depth,
            buffer=system.buffer,
            whole_batches=system.whole,
        )
        values = {"packet loss": float(bucket.packet_loss), "batch loss": float(bucket.segment_loss)}
        if system.buffer:
            values |= {"mean wait": float(bucket.mean_token_wait), "mean queue": float(bucket.mean_buffer)}
        return values
    if isinstance(system, Bulk):
        bulk = bulk_queue(
            arrivals=system.arrivals, bulk=system.bulk, capacity=system.capacity, max_bulk=MAX_LIMIT
        )
        return {"mean queue": float(bulk.mean_queue), "packet loss": float(bulk.packet_loss)}
    return _queue_values(system)


def _queue_values(system: Queue) -> dict[str, float]:
    stream = BernoulliBatches if system.bernoulli else PoissonBatches
    given: dict[str, Any] = {"arrivals": stream(system.batch_rate, system.sizes), "service": system.service}
    losses, late = {}, None
    if system.vacation is not None:
        solved = _vacation_queue(system, given | {"vacations": system.vacation})
        if isinstance(solved, VacationQueueSolution):
            losses = {"packet loss": float(solved.packet_loss), "batch loss": float(solved.segment_loss)}
    elif system.capacity is not None:
        acceptance = "whole" if system.whole else "partial"
        solved = finite_queue(
            **given, capacity=system.capacity, acceptance=acceptance, slotted=system.slotted
        )
        losses = {"packet loss": float(solved.packet_loss), "batch loss": float(solved.batch_loss)}
        late = float(1.0 - np.asarray(solved.wait)[: system.late_after + 1].sum())
    elif system.threshold > 1:
        solved = n_policy_queue(
            **given,
            threshold=system.threshold,
            largest=THRESHOLDS,
            length=LENGTH,
            slotted=system.slotted,
        )
    else:
        solved = single_queue(**given, length=LENGTH, horizon=HORIZON, slotted=system.slotted)
        late = float(1.0 - np.asarray(solved.wait.probabilities)[: system.late_after + 1].sum())
    values = {"mean wait": float(solved.mean_wait), "mean queue": float(solved.mean_queue)}
    if late is not None:
        values["late packets"] = late
    return values | losses


def _vacation_queue(system: Queue, given: dict[str, Any]) -> VacationQueueSolution | UnlimitedVacationQueue:
    """Solve a queue with vacations, by the function of its discipline."""
    if system.capacity is not None:
        room: dict[str, Any] = {"capacity": system.capacity, "max_capacity": MAX_CAPACITY}
        if system.limit is None:
            if not system.gated:
                return exhaustive_service_queue(**given, **room, longest_listed=8)
            return gated_service_queue(**given, **room)
        limits: dict[str, Any] = {"limit": system.limit, "max_limit": MAX_LIMIT}
        solve = gated_service_queue if system.gated else limited_service_queue
        return solve(**given, **room, **limits)
    if system.limit is not None:
        return unlimited_vacation_queue(**given, limit=system.limit, gated=system.gated, length=LENGTH)
    if system.gated:
        return unlimited_gated_queue(**given, length=LENGTH, factors=1024)
    return unlimited_exhaustive_queue(**given, length=LENGTH, longest_listed=8)
