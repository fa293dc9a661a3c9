"""Whole law of the time in a D-MAP/PH/1 queue, in slots, first come first served.

What is ahead of a packet when it joins decides its time, whatever arrives later: the law of (packets to be
served until it leaves, phase of the service under way) is stepped slot by slot until the packet's own service
ends.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from btqueue.queueing._precision import in_float64
from btqueue.queueing.errors import require_count
from btqueue.queueing.laws.lattice import CutLaw
from btqueue.queueing.laws.phase_type import DiscretePhaseType
from btqueue.queueing.single.modulated_queue import ModulatedQueue
from btqueue.queueing.traffic.map_arrivals import DiscreteMap


@eqx.filter_jit
def _sojourn(
    arrivals: DiscreteMap,
    service: DiscretePhaseType,
    empty: Array,
    busy: Array,
    length: int,
    capacity: int | None,
) -> CutLaw:
    blocks = jnp.asarray(arrivals.blocks)
    start, inner, ends = (jnp.asarray(part) for part in (service.start, service.matrix, service.exits))
    known = busy.shape[0]
    # service phase met by a batch of k packets that finds n, (n + 1, k, s); after a departure a fresh one
    sizes = blocks[1:].sum(axis=2).T  # (m, k)
    staying = jnp.einsum("nis,st,ik->nkt", busy, inner, sizes)
    ending = jnp.einsum("nis,s,ik->nk", busy, ends, sizes)[:, :, None] * start
    nobody = (empty @ sizes)[None, :, None] * start
    meets = jnp.concatenate([nobody, staying]).at[:-1].add(ending)
    # the packet at position p of a batch of k >= p has n + p to be served until it leaves
    ahead = jnp.zeros((known + 1, start.shape[0]))
    for position in range(1, blocks.shape[0]):
        tagged = meets[:, position - 1 :].sum(axis=1)
        ahead = ahead.at[position:].add(tagged[: known + 1 - position])
    accepted = jnp.asarray(arrivals.packet_rate) if capacity is None else ahead.sum()
    law = ahead[1:] / accepted

    def slot(left: Array, _: None) -> tuple[Array, Array]:
        leaving = left @ ends
        moved = left @ inner + jnp.concatenate([leaving[1:], jnp.zeros(1)])[:, None] * start
        return moved, leaving[0]

    _, served = jax.lax.scan(slot, law, None, length=length - 1)
    probabilities = jnp.concatenate([jnp.zeros(1), served])
    return CutLaw(probabilities, jnp.maximum(1.0 - probabilities.sum(), 0.0))


@in_float64
def sojourn_law(
    solution: ModulatedQueue,
    *,
    arrivals: DiscreteMap,
    service: DiscretePhaseType,
    length: int,
    capacity: int | None = None,
) -> CutLaw:
    """Law of the slots from a packet's arrival to the end of its service, first come first served.

    A packet with ``n - 1`` ahead needs ``n`` slots at least, so that the law on ``0..length-1`` is exact
    although an unlimited queue is known on finitely many points only.

    Args:
        solution: from `modulated_queue` or `limited_modulated_queue` with these arrivals and service.
        arrivals: the arrivals, in slots.
        service: the service, in slots.
        length: points of the law, for unlimited room at most two below those that ``solution`` was asked for.
        capacity: the capacity, if limited.

    Raises:
        ValueError: if time is continuous or ``length`` exceeds what is known.
    """
    if not isinstance(arrivals, DiscreteMap) or not isinstance(service, DiscretePhaseType):
        raise ValueError("arrivals and service must be in slots for the law of the sojourn")
    known = solution.busy.shape[0]
    require_count(length, "length")
    if capacity is None and length > known - 1:
        raise ValueError(
            f"length must not exceed {known - 1} with the queue known up to {known}, got {length}"
        )
    return _sojourn(
        arrivals, service, jnp.asarray(solution.empty), jnp.asarray(solution.busy), length, capacity
    )
