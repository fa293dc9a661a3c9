"""One finite queue whose server serves at most M packets a visit and then takes a vacation.

The state is the queue at the start of a visit. During any one service or vacation nothing leaves, so the
capacity may be applied once at its end: the chain on ``0..K`` is exact. A vacation may depend on how many
packets the visit served, which covers a final empty poll and, in polling systems, a server that stays away
longer after a short visit.

Sources: Takagi, Queueing Analysis, vol. 2 (1993); Lee, Queueing Systems 5 (1989).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing import arrivals as arrival_laws
from btqueue.queueing import lattice, markov
from btqueue.queueing._precision import in_float64
from btqueue.queueing.errors import require_count, require_law, require_no_mass_at_zero


class VacationQueueSolution(eqx.Module):
    """Steady state of a queue with limited service; times in slots.

    Attributes:
        visit_start: law of the queue when the server comes, ``(K + 1,)``.
        served: law of the packets served in a visit, ``(M + 1,)``; the entries below M are visits that end
            with an empty queue.
        mean_served: mean packets served a visit.
        mean_cycle: mean time from visit to visit.
        throughput: packets served a slot.
        packet_loss: share of the packets offered that are lost.
        segment_loss: share of the batches that lose at least one packet.
        occupancy: law of the queue, packet in service included, at a random moment (found by a batch).
        mean_queue: mean of ``occupancy``.
        mean_sojourn: mean time from arrival to end of service, of the packets accepted.
        mean_wait: mean time from arrival to start of service.
    """

    visit_start: Array
    served: Array
    mean_served: Array
    mean_cycle: Array
    throughput: Array
    packet_loss: Array
    segment_loss: Array
    occupancy: Array
    mean_queue: Array
    mean_sojourn: Array
    mean_wait: Array


def _depart(law: Array) -> Array:
    """One packet leaves: shift the last axis down by one (its first entry holds no mass here)."""
    return jnp.concatenate([law[..., 1:], jnp.zeros_like(law[..., :1])], axis=-1)


@eqx.filter_jit
def _solve(
    arrivals: arrival_laws.Arrivals, service: Array, vacations: Array, capacity: int, limit: int
) -> VacationQueueSolution:
    size = capacity + 1
    slot = arrivals.slot_law(size).probabilities

    def fills(durations: Array) -> Array:
        return lattice.filling_matrix(lattice.compound(durations, slot, size))

    per_service = fills(service)
    per_vacation = jnp.broadcast_to(fills(vacations), (limit + 1, size, size))

    def serve(still: Array) -> Array:
        """After one more service, of the (..., K+1) laws that find a packet."""
        return _depart(still.at[..., 0].set(0.0) @ per_service)

    def one_service(carry: tuple[Array, Array], per_emptied: Array) -> tuple[tuple[Array, Array], None]:
        going, transition = carry
        return (serve(going), transition + going[:, :1] * per_emptied[0]), None

    (unfinished, transition), _ = jax.lax.scan(
        one_service, (jnp.eye(size), jnp.zeros((size, size))), per_vacation[:limit]
    )
    visit_start = markov.stationary_vector(transition + unfinished @ per_vacation[limit])

    def advance(law: Array, _: None) -> tuple[Array, Array]:
        return serve(law), law

    # before[j] is the law of the queue when j have been served and the visit goes on
    final, before = jax.lax.scan(advance, visit_start, None, length=limit)
    served = jnp.append(before[:, 0], final.sum())
    in_service = before.at[:, 0].set(0.0).sum(axis=0)
    mean_served = in_service.sum()
    mean_vacation = served @ jnp.broadcast_to(lattice.mean(vacations), (limit + 1,))
    mean_cycle = mean_served * lattice.mean(service) + mean_vacation
    throughput = mean_served / mean_cycle

    service_time = fills(lattice.survival(service))
    vacation_time = jnp.broadcast_to(fills(lattice.survival(vacations)), (limit + 1, size, size))
    at_slot_starts = (
        in_service @ service_time + before[:, 0] @ vacation_time[:limit, 0, :] + final @ vacation_time[limit]
    ) / mean_cycle
    occupancy = at_slot_starts @ lattice.filling_matrix(arrivals.part_slot_law(size))
    mean_queue = lattice.mean(occupancy)
    mean_sojourn = mean_queue / throughput
    return VacationQueueSolution(
        visit_start=visit_start,
        served=served,
        mean_served=mean_served,
        mean_cycle=mean_cycle,
        throughput=throughput,
        packet_loss=arrival_laws.packet_loss(occupancy, arrivals.batch_size),
        segment_loss=arrival_laws.batch_loss(occupancy, arrivals.batch_size),
        occupancy=occupancy,
        mean_queue=mean_queue,
        mean_sojourn=mean_sojourn,
        mean_wait=mean_sojourn - lattice.mean(service),
    )


@in_float64
def limited_service_queue(
    *, arrivals: arrival_laws.Arrivals, service: ArrayLike, vacations: ArrayLike, capacity: int, limit: int
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
        limit: most packets served a visit M; take it large for exhaustive service.

    Raises:
        ValueError: if a law is not one, allows zero slots, or a count is not positive.
    """
    require_count(capacity, "capacity")
    require_count(limit, "limit")
    for law, name in ((service, "service"), (vacations, "vacations")):
        require_law(law, name)
        require_no_mass_at_zero(law, name)
    vacations = jnp.asarray(vacations)
    if vacations.ndim > 2 or (vacations.ndim == 2 and vacations.shape[0] != limit + 1):
        raise ValueError(f"vacations must be one law or limit + 1 = {limit + 1} laws, got {vacations.shape}")
    return _solve(arrivals, jnp.asarray(service), vacations, capacity, limit)
