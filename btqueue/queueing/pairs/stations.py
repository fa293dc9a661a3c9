"""Equal stations with an inbound and an outbound queue each, visited in a cycle: the system and its measures.

The system is solved approximately in `pairs.polling`, exactly in `pairs.joint_chain`; the shared is here.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing.errors import require_count, require_law, require_no_mass_at_zero
from btqueue.queueing.laws import lattice
from btqueue.queueing.pairs import visit as pair_visit
from btqueue.queueing.traffic import arrivals as arrival_laws


class PairPolling(eqx.Module):
    """A cycle of equal stations with two queues each; all rates and times in slots.

    Attributes:
        stations: number of stations.
        limit: most frames a visit (M).
        packet_slots: law of a packet's slots, indexed by slots; the same in both directions.
        outbound: input of the queue at the station.
        outbound_capacity: its room, in packets, the one being sent included.
        inbound: input of the queue towards the station.
        inbound_capacity: its room.

    Raises:
        ValueError: if a count is not positive or ``packet_slots`` is not a law on ``1, 2, ...``.
    """

    stations: int
    limit: int
    packet_slots: ArrayLike
    outbound: arrival_laws.Arrivals
    outbound_capacity: int
    inbound: arrival_laws.Arrivals
    inbound_capacity: int

    def __check_init__(self) -> None:
        for name in ("stations", "limit", "outbound_capacity", "inbound_capacity"):
            require_count(getattr(self, name), name)
        require_law(self.packet_slots, "packet_slots")
        require_no_mass_at_zero(self.packet_slots, "packet_slots")


class QueueMeasures(eqx.Module):
    """Steady state of one of the two queues of a station.

    Attributes:
        throughput: packets sent a slot.
        packet_loss: share of the packets offered that are lost.
        segment_loss: share of the batches that lose at least one packet.
        mean_queue: mean content at a random moment, packet being sent included.
        mean_queue_at_slots: the same at the starts of slots.
        mean_sojourn: mean slots from arrival to end of sending.
    """

    throughput: Array
    packet_loss: Array
    segment_loss: Array
    mean_queue: Array
    mean_queue_at_slots: Array
    mean_sojourn: Array


class PairPollingSolution(eqx.Module):
    """Steady state of a cycle of stations.

    Attributes:
        mean_cycle: mean slots from visit to visit.
        inbound, outbound: the two queues of a station.
        slot_utilisation: share of all slots in which packets are sent.
        residual: change of the stationary law in the last iteration (total variation norm, times two).
        iterations: iterations taken.
    """

    mean_cycle: Array
    inbound: QueueMeasures
    outbound: QueueMeasures
    slot_utilisation: Array
    residual: Array
    iterations: Array


def queue_measures(
    sent: Array, content: Array, mean_cycle: Array, arrivals: arrival_laws.Arrivals
) -> QueueMeasures:
    """Measures of a queue from the packets sent, and the slots spent at each content, in a mean cycle."""
    at_slots = content / mean_cycle
    occupancy = at_slots @ lattice.filling_matrix(arrivals.part_slot_law(content.shape[0]))
    throughput = sent / mean_cycle
    return QueueMeasures(
        throughput=throughput,
        packet_loss=arrival_laws.packet_loss(occupancy, arrivals.batch_size),
        segment_loss=arrival_laws.batch_loss(occupancy, arrivals.batch_size),
        mean_queue=lattice.mean(occupancy),
        mean_queue_at_slots=lattice.mean(at_slots),
        mean_sojourn=lattice.mean(occupancy) / throughput,
    )


def absence_fillings(slot_law: Array, absences: np.ndarray) -> tuple[Array, Array]:
    """A queue that fills during an absence of ``absences[v]`` slots.

    Returns:
        ``(v, K+1, K+1)`` twice, given where it starts: where it ends, and the slots at each content.
    """
    durations = jnp.asarray((np.arange(absences.max() + 1) == absences[:, None]).astype(float))
    size = slot_law.shape[0]
    end = lattice.filling_matrix(lattice.compound(durations, slot_law, size))
    return end, lattice.filling_matrix(lattice.compound(lattice.survival(durations), slot_law, size))


def kernel_of(problem: PairPolling) -> pair_visit.VisitKernel:
    """The kernel of one visit to a station of the system."""
    return pair_visit.visit_kernel(
        problem.inbound.slot_law(problem.inbound_capacity + 1).probabilities,
        problem.outbound.slot_law(problem.outbound_capacity + 1).probabilities,
        jnp.asarray(problem.packet_slots),
        lengths=pair_visit.packet_lengths(np.asarray(problem.packet_slots)),
        limit=problem.limit,
    )


def fill_both(law: Array, ends_in: Array, ends_out: Array) -> Array:
    """Let both queues fill during an absence: ``law`` is (..., v, inbound, outbound)."""
    return jnp.einsum("...vio,vij,vop->...vjp", law, ends_in, ends_out)


def absence_ends(problem: PairPolling, absence: np.ndarray) -> tuple[Array, Array]:
    """Matrices of the two queues at the end of each absence."""
    inbound = problem.inbound.slot_law(problem.inbound_capacity + 1).probabilities
    outbound = problem.outbound.slot_law(problem.outbound_capacity + 1).probabilities
    return absence_fillings(inbound, absence)[0], absence_fillings(outbound, absence)[0]


def summarise(
    problem: PairPolling,
    kernel: pair_visit.VisitKernel,
    visit_start: Array,
    after_visit: Array,
    absence: np.ndarray,
    residual: Array,
    iterations: Array,
) -> PairPollingSolution:
    """Measures from the laws at visit starts, ``(s,)``, and after visits with the absence, ``(v, s)``."""
    shape = (problem.inbound_capacity + 1, problem.outbound_capacity + 1)
    joint = after_visit.reshape(len(absence), *shape)
    mean_cycle = visit_start @ kernel.time_inbound.sum(axis=1) + after_visit.sum(axis=1) @ absence
    measures = []
    for arrivals, sent, time, at_visit_end in (
        (problem.inbound, kernel.sent_inbound, kernel.time_inbound, joint.sum(axis=2)),
        (problem.outbound, kernel.sent_outbound, kernel.time_outbound, joint.sum(axis=1)),
    ):
        slot_law = arrivals.slot_law(time.shape[1]).probabilities
        away = jnp.einsum("vk,vkl->l", at_visit_end, absence_fillings(slot_law, absence)[1])
        measures.append(queue_measures(visit_start @ sent, visit_start @ time + away, mean_cycle, arrivals))
    inbound, outbound = measures
    sent_a_slot = problem.stations * (inbound.throughput + outbound.throughput)
    busy = sent_a_slot * lattice.mean(problem.packet_slots)
    return PairPollingSolution(mean_cycle, inbound, outbound, busy, residual, iterations)
