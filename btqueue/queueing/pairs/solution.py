"""What is asked of a cycle of stations, computed from the solved closure."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing.fixed_point import implicit_fixed_point
from btqueue.queueing.pairs.closure import (
    Classes,
    ClosureState,
    System,
    classes_of,
    cycle_laws,
    first_state,
    prepare,
    step,
)
from btqueue.queueing.pairs.matrices import Shape, StationInput
from btqueue.queueing.pairs.measures import QueueTimes, losses, queue_times
from btqueue.queueing.pairs.queue_runs import TINY


class PairQueueMeasures(eqx.Module):
    """Steady state of one queue of every station, or of all if they are equal (no station axis then).

    Attributes:
        occupancy: ``(..., K + 1)`` law of the content at a random moment, packet being sent included; this is
            what a batch finds.
        throughput: packets sent a slot.
        packet_loss: share of the packets offered that are lost.
        batch_loss: share of the batches that lose at least one packet.
        mean_queue: mean content.
        mean_sojourn: mean slots from arrival to the end of sending, of packets accepted.
        mean_wait: mean slots from arrival to the start of sending.
    """

    occupancy: Array
    throughput: Array
    packet_loss: Array
    batch_loss: Array
    mean_queue: Array
    mean_sojourn: Array
    mean_wait: Array


class PairQueueSolution(eqx.Module):
    """Steady state of a cycle of stations.

    Attributes:
        mean_cycle: mean slots from visit to visit.
        mean_visit: mean slots of a visit.
        cycle, intervisit: laws on a few points, as ``(points, probabilities)``: visit start to visit start,
            and visit end to visit start.
        inbound, outbound: the two queues of a station.
        slot_utilisation: share of all slots in which packets are sent.
        imbalance: packets sent in a mean cycle by the closure, against those accepted, relative error: a
            measure of the closure's own inconsistency, inbound and outbound.
        converged: whether the tolerance was reached.
        residual: change of the state in the last iteration (sum of absolute changes).
        iterations: iterations taken.
    """

    mean_cycle: Array
    mean_visit: Array
    cycle: tuple[Array, Array]
    intervisit: tuple[Array, Array]
    inbound: PairQueueMeasures
    outbound: PairQueueMeasures
    slot_utilisation: Array
    imbalance: Array
    converged: Array
    residual: Array
    iterations: Array


def solve_stations(
    stations: StationInput, count: Array, shape: Shape, tolerance: ArrayLike, max_iterations: int
) -> PairQueueSolution:
    """Solve ``count`` stations; ``stations`` has a leading axis, of length 1 if they are equal."""
    system = prepare(stations, count, shape)
    state, residual, iterations = implicit_fixed_point(
        lambda now: step(now, system),
        first_state(stations.limit.shape[0], shape),
        tolerance=tolerance,
        max_iterations=max_iterations,
    )
    return summarise(state, system, residual, iterations, tolerance)


def summarise(
    state: ClosureState, system: System, residual: Array, iterations: Array, tolerance: ArrayLike
) -> PairQueueSolution:
    """The measures of a state of the closure; no station axis in the result if there is one station in it."""
    stations, grids = system.stations, system.grids
    classes = classes_of(state, system)
    absence_law = (classes.emptied + classes.filled).sum(axis=1)
    mean_visit = sum(
        (weight * kind.visit.mean).sum(axis=1)
        for weight, kind in zip(classes.weights, classes.kinds, strict=True)
    )
    # the cycle is common to all stations; each sees its own visit and an absence
    mean_cycle = (mean_visit + absence_law @ grids.absence).mean()
    times = _times(state, classes, system)
    measures = [_queue_measures(stations, way, queue) for way, queue in enumerate(times)]
    defects = [
        queue.sent / (one.throughput * mean_cycle) - 1.0 for queue, one in zip(times, measures, strict=True)
    ]
    busy = sum(one.throughput * (one.mean_sojourn - one.mean_wait) for one in measures)
    solution = PairQueueSolution(
        mean_cycle=mean_cycle,
        mean_visit=jnp.asarray(mean_visit),
        cycle=(grids.cycle, cycle_laws(classes, system)),
        intervisit=(grids.absence, absence_law),
        inbound=measures[0],
        outbound=measures[1],
        slot_utilisation=system.count / stations.limit.shape[0] * jnp.sum(busy),
        imbalance=jnp.stack(defects, axis=-1),
        converged=residual <= tolerance,
        residual=residual,
        iterations=iterations,
    )
    if stations.limit.shape[0] > 1:
        return solution

    def per_station(one: PairQueueSolution) -> tuple:
        return one.mean_visit, one.cycle[1], one.intervisit[1], one.inbound, one.outbound, one.imbalance

    return eqx.tree_at(per_station, solution, jax.tree.map(lambda leaf: leaf[0], per_station(solution)))


def _times(state: ClosureState, classes: Classes, system: System) -> tuple[QueueTimes, QueueTimes]:
    """Times at each content of the inbound and the outbound queues, ``(s, z)``."""
    weight_full = classes.weights[1]

    def kept(law: Array) -> Array:
        law = jnp.maximum(law, 0.0)
        return law * (weight_full / jnp.maximum(law.sum(axis=2), TINY))[..., None]

    both = kept(state.kept_in), kept(state.kept_out)
    measure = jax.vmap(queue_times, in_axes=(0, 0, 0, 0, 0, None))
    return measure(system.stations, system.tables, classes.kinds, classes.weights, both, system.grids.absence)


def _queue_measures(stations: StationInput, way: int, queue: QueueTimes) -> PairQueueMeasures:
    occupancy = queue.content / queue.content.sum(axis=1, keepdims=True)
    batch, slots = stations.batch[:, way], stations.slots[:, way]
    packet_loss, batch_loss = jax.vmap(losses)(occupancy, batch, stations.capacity[:, way])
    throughput = stations.rate[:, way] * (batch @ jnp.arange(batch.shape[1])) * (1.0 - packet_loss)
    mean_queue = occupancy @ jnp.arange(occupancy.shape[1])
    sojourn = mean_queue / throughput
    wait = sojourn - slots @ jnp.arange(slots.shape[1])
    return PairQueueMeasures(occupancy, throughput, packet_loss, batch_loss, mean_queue, sojourn, wait)
