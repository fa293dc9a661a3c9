"""A queue served at fixed positions of a period: one packet at each open position, none at the others.

Where a part of a repeating schedule is reserved for somebody else, the server does not come back after a
random vacation but at known positions. The state is the queue at the start of a position. Between two
positions one matrix acts, a queue that fills or one that fills and then loses a packet, so a period is a
product of matrices and the queue with room for K packets is solved exactly. Take K large for an unlimited
queue, and look at ``stable`` first.

A packet that joins with ``a`` packets ahead of it leaves at the end of the ``(a + 1)``-th open position from
there: sojourns are whole laws, with no further assumption.

Order within a position: its arrivals, then the departure of a packet that was there when it began.

Sources: Bruneel & Kim, Discrete-Time Models for Communication Systems Including ATM (1993), chapter 1, for
the slotted queue; the period as in time-division multiplexing, Hayes, IEEE Trans. Commun. 22 (1974).
"""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array

from btqueue.queueing._precision import in_float64
from btqueue.queueing.chains.level_chain import level_law
from btqueue.queueing.errors import require_count
from btqueue.queueing.laws import lattice
from btqueue.queueing.traffic import arrivals as arrival_laws


class PeriodicServerSolution(eqx.Module):
    """Steady state of a queue with a periodic server; times in positions.

    Attributes:
        at_position: law of the queue at the start of each position, ``(n, K + 1)``.
        occupancy: law of the queue at a random moment (found by a batch), ``(K + 1,)``.
        throughput: packets served a position.
        load: packets offered per open position; the unlimited queue is stable below 1.
        stable: whether ``load`` is below 1.
        packet_loss: share of the packets offered that are lost.
        sojourn: law of the positions from the end of the one in which an accepted packet arrives to the end
            of the one in which it is served.
        mean_queue: mean of ``occupancy``.
        mean_sojourn: mean time from the arrival itself to the end of service, of the packets accepted.
    """

    at_position: Array
    occupancy: Array
    throughput: Array
    load: Array
    stable: Array
    packet_loss: Array
    sojourn: Array
    mean_queue: Array
    mean_sojourn: Array


def _departure_delays(is_open: tuple[bool, ...], capacity: int) -> np.ndarray:
    """``(n, K)``: positions until the packet with ``a`` ahead has left, after the end of each position."""
    period = len(is_open)
    places = np.flatnonzero(is_open)
    delays = np.empty((period, capacity), dtype=int)
    for position in range(period):
        steps = np.sort((places - position - 1) % period) + 1
        ahead = np.arange(capacity)
        delays[position] = steps[ahead % places.size] + period * (ahead // places.size)
    return delays


def _sojourn_law(at_position: Array, slot: lattice.CutLaw, is_open: tuple[bool, ...], capacity: int) -> Array:
    delays = _departure_delays(is_open, capacity)
    at_least = slot.tail + jnp.cumsum(slot.probabilities[::-1])[::-1]  # Pr(arrivals of a position >= i)
    content, joining = np.meshgrid(np.arange(capacity + 1), np.arange(1, capacity + 1), indexing="ij")
    gets_in = content + joining <= capacity
    law = jnp.zeros(int(delays.max()) + 1)
    for position, serves in enumerate(is_open):
        ahead = np.clip(content - (serves & (content > 0)) + joining - 1, 0, capacity - 1)
        weights = at_position[position][:, None] * at_least[None, 1:] * gets_in
        law = law.at[delays[position][ahead]].add(weights)
    return law / law.sum()


@eqx.filter_jit
def _solve(
    arrivals: arrival_laws.Arrivals, is_open: tuple[bool, ...], capacity: int
) -> PeriodicServerSolution:
    size, period = capacity + 1, len(is_open)
    slot = arrivals.slot_law(size)
    fill = lattice.filling_matrix(slot)
    leave = jnp.eye(size, k=-1)
    serve = jnp.concatenate([fill[:1], fill[1:] @ leave])  # whoever was there leaves after the arrivals
    steps = [serve if serves else fill for serves in is_open]

    whole = steps[0]
    for step in steps[1:]:
        whole = whole @ step
    load = arrivals.packet_rate * period / sum(is_open)
    laws = [level_law(whole, load > 1.0)]
    for step in steps[:-1]:
        laws.append(laws[-1] @ step)
    at_position = jnp.stack(laws)

    served = sum(law[1:].sum() for law, serves in zip(laws, is_open, strict=True) if serves)
    throughput = jnp.asarray(served) / period
    occupancy = at_position.mean(axis=0) @ lattice.filling_matrix(arrivals.part_slot_law(size))
    mean_queue = lattice.mean(occupancy)
    return PeriodicServerSolution(
        at_position=at_position,
        occupancy=occupancy,
        throughput=throughput,
        load=load,
        stable=load < 1.0,
        packet_loss=arrival_laws.packet_loss(occupancy, arrivals.batch_size),
        sojourn=_sojourn_law(at_position, slot, is_open, capacity),
        mean_queue=mean_queue,
        mean_sojourn=mean_queue / throughput,
    )


@in_float64
def periodic_server(
    *, arrivals: arrival_laws.Arrivals, is_open: Sequence[bool], capacity: int
) -> PeriodicServerSolution:
    """Exact steady state of a finite queue served at the open positions of a period.

    A batch too big for the room left is accepted in part.

    Args:
        arrivals: `PoissonBatches` or `BernoulliBatches`, per position.
        is_open: for each position of the period, whether a packet can be served in it.
        capacity: largest queue K, packet in service included.

    Raises:
        ValueError: if no position is open, or ``capacity`` is not positive.
    """
    require_count(capacity, "capacity")
    positions = tuple(bool(serves) for serves in is_open)
    if not any(positions):
        raise ValueError(f"is_open must open at least one position, got {positions}")
    return _solve(arrivals, positions, capacity)
