"""One server, arrivals of a batch MAP, phase-type service; unlimited room or room for K packets, exactly.

The queue moves down by one packet at most and up by a batch of at most ``b``. Taking ``b`` queue lengths as
one level makes it a quasi-birth-death chain: unlimited queues are solved by logarithmic reduction, limited
ones from the top level down. In slots, arrivals join at the slot's end and a packet is present until the slot
in which its service ends is over; the capacity applies to what is left after a departure.

Sources: Neuts (1981), chapter 5; Lucantoni, Stochastic Models 7 (1991); Alfa, Queueing Theory for
Telecommunications: Discrete Time Modelling of a Single Node System (2010), chapter 5. Whole law of the
sojourn: `modulated_sojourn`.
"""

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from btqueue.queueing._precision import in_float64
from btqueue.queueing.chains.finite_quasi_birth_death import finite_quasi_birth_death
from btqueue.queueing.chains.quasi_birth_death import quasi_birth_death
from btqueue.queueing.errors import is_traced, require_count
from btqueue.queueing.laws import lattice
from btqueue.queueing.laws.lattice import CutLaw
from btqueue.queueing.laws.phase_type import ContinuousPhaseType, DiscretePhaseType
from btqueue.queueing.traffic.map_arrivals import ContinuousMap, DiscreteMap

Arrivals = DiscreteMap | ContinuousMap
Service = DiscretePhaseType | ContinuousPhaseType


class ModulatedQueue(eqx.Module):
    """Steady state of a MAP/PH/1 queue; times in slots (or in the unit of the rates).

    Without a steady state (``stable`` false, unlimited room only) laws have all their mass in the tail, means
    are infinite and shares are those of an overloaded server.

    Attributes:
        stable: whether there is a steady state.
        load: packets offered times mean service.
        occupancy: law of the packets present, the one in service included, at slot starts (any moment).
        found: law of the packets that a batch finds when it joins.
        throughput: packets served a slot (unit of time).
        packet_loss: share of the packets offered that find no room.
        batch_loss: share of the batches that lose at least one packet.
        mean_queue: mean of ``occupancy``.
        mean_sojourn: mean time from arrival to end of service, of the packets accepted.
        empty: probabilities of an empty system by arrival phase, ``(m,)``.
        busy: probabilities of ``1..n`` packets by arrival and service phase, ``(n, m, s)``.
    """

    stable: Array
    load: Array
    occupancy: CutLaw
    found: CutLaw
    throughput: Array
    packet_loss: Array
    batch_loss: Array
    mean_queue: Array
    mean_sojourn: Array
    empty: Array
    busy: Array


def _kernel(arrivals: Arrivals, service: Service) -> Array:
    """``[k + 1]``: the queue of a busy server changes by ``k = -1..b``, phases (arrival, service)."""
    blocks = jnp.asarray(arrivals.blocks)
    start, inner, ends = (jnp.asarray(part) for part in (service.start, service.matrix, service.exits))
    renewed = jnp.outer(ends, start)
    still, still_served = jnp.eye(blocks.shape[1]), jnp.eye(start.shape[0])
    if isinstance(arrivals, DiscreteMap):
        moves = [jnp.kron(blocks[0], renewed)]
        for k in range(blocks.shape[0]):
            departs = jnp.kron(blocks[k + 1], renewed) if k + 1 < blocks.shape[0] else 0.0
            moves.append(jnp.kron(blocks[k], inner) + departs)
        return jnp.stack(moves)
    moves = [jnp.kron(still, renewed), jnp.kron(blocks[0], still_served) + jnp.kron(still, inner)]
    moves += [jnp.kron(block, still_served) for block in blocks[1:]]
    return jnp.stack(moves)


def _grid(kernel: Array, offset: int, last: int | None = None) -> Array:
    """Block of moves between positions ``i, j < b``: the change is ``offset + j - i``.

    With ``last``, that position is the capacity: whatever would go beyond stays there.
    """
    batch = kernel.shape[0] - 2
    zero = jnp.zeros(kernel.shape[1:])

    def block(i: int, j: int) -> Array:
        index = offset + j - i + 1
        if last is not None and j == last:
            return kernel[max(index, 0) :].sum(axis=0) if index <= batch + 1 else zero
        if not 0 <= index <= batch + 1 or (last is not None and j > last):
            return zero
        return kernel[index]

    return jnp.block([[block(i, j) for j in range(batch)] for i in range(batch)])


def _boundary(arrivals: Arrivals, service: Service, last: int | None = None) -> tuple[Array, Array, Array]:
    """Moves within the empty system, from it, and to it."""
    blocks = jnp.asarray(arrivals.blocks)
    batch, phases = blocks.shape[0] - 1, blocks.shape[1]
    start, ends = jnp.asarray(service.start), jnp.asarray(service.exits)
    filling = [jnp.kron(block, start[None, :]) for block in blocks[1:]]
    if last is not None:
        rest = jnp.stack(filling[last:]).sum(axis=0)
        filling = [*filling[:last], rest, *[jnp.zeros_like(rest)] * (batch - 1 - last)]
    silent = blocks[0] if isinstance(arrivals, DiscreteMap) else jnp.eye(phases)
    emptying = jnp.kron(silent, ends[:, None])
    to_empty = jnp.concatenate([emptying, jnp.zeros(((batch - 1) * emptying.shape[0], phases))])
    return blocks[0], jnp.concatenate(filling, axis=1), to_empty


def _found(arrivals: Arrivals, service: Service, empty: Array, busy: Array) -> Array:
    """Rate of batches by packets left behind (before they join) and arrival phase, ``(n + 1, m)``."""
    phases = jnp.concatenate([empty[None], busy.sum(axis=2)])
    if not isinstance(arrivals, DiscreteMap):
        return phases
    ending = busy @ jnp.asarray(service.exits)  # (n, m)
    staying = busy @ jnp.asarray(service.matrix).sum(axis=1)
    return jnp.concatenate([empty[None], staying]) + jnp.concatenate([ending, jnp.zeros_like(empty)[None]])


def _measures(
    arrivals: Arrivals,
    service: Service,
    empty: Array,
    busy: Array,
    *,
    capacity: int | None,
    stable: Array,
    tail: Array,
    mean_queue: Array,
) -> ModulatedQueue:
    blocks = jnp.asarray(arrivals.blocks)
    rate = jnp.asarray(arrivals.packet_rate)
    load = rate * jnp.asarray(service.mean)
    occupancy = CutLaw(jnp.append(empty.sum(), busy.sum(axis=(1, 2))), tail)
    joining = jnp.einsum("ni,kij->nk", _found(arrivals, service, empty, busy), blocks[1:])
    found = joining.sum(axis=1) / jnp.asarray(arrivals.batch_rate)
    if capacity is None:
        # of a stable queue all that comes is served; the states beyond `busy` are not needed for that
        throughput = jnp.minimum(rate, 1.0 / jnp.asarray(service.mean))
        packet_loss = batch_loss = jnp.zeros(())
        # the last entry would need the departures from just beyond the known states: it is left out
        found = CutLaw(found[:-1], jnp.maximum(1.0 - found[:-1].sum(), 0.0))
    else:
        sizes, room = jnp.arange(1, blocks.shape[0])[None, :], (capacity - jnp.arange(capacity + 1))[:, None]
        packet_loss = (joining * jnp.maximum(sizes - room, 0)).sum() / rate
        batch_loss = jnp.where(sizes > room, joining, 0.0).sum() / jnp.asarray(arrivals.batch_rate)
        throughput = (busy @ jnp.asarray(service.exits)).sum()
        found = CutLaw(found, tail)
    return ModulatedQueue(
        stable=stable,
        load=load,
        occupancy=occupancy,
        found=found,
        throughput=throughput,
        packet_loss=packet_loss,
        batch_loss=batch_loss,
        mean_queue=mean_queue,
        mean_sojourn=mean_queue / throughput,
        empty=empty,
        busy=busy,
    )


@eqx.filter_jit
def _limited(arrivals: Arrivals, service: Service, capacity: int) -> ModulatedQueue:
    kernel = _kernel(arrivals, service)
    batch = kernel.shape[0] - 2
    levels, last = -(-capacity // batch), (capacity - 1) % batch
    chain = finite_quasi_birth_death(
        _grid(kernel, batch),
        _grid(kernel, 0),
        _grid(kernel, -batch),
        levels=levels,
        boundary=_boundary(arrivals, service, last if levels == 1 else None),
        top=(_grid(kernel, batch, last), _grid(kernel, 0, last)),
        rates=isinstance(arrivals, ContinuousMap),
    )
    shape = (levels * batch, jnp.shape(arrivals.blocks)[1], jnp.shape(service.start)[0])
    empty, busy = chain.boundary, chain.levels.reshape(shape)[:capacity]
    mean_queue = lattice.mean(jnp.append(empty.sum(), busy.sum(axis=(1, 2))))
    stable = jnp.asarray(True)  # whatever the load
    return _measures(
        arrivals,
        service,
        empty,
        busy,
        capacity=capacity,
        stable=stable,
        tail=jnp.zeros(()),
        mean_queue=mean_queue,
    )


@eqx.filter_jit
def _unlimited(arrivals: Arrivals, service: Service, length: int) -> ModulatedQueue:
    kernel = _kernel(arrivals, service)
    batch = kernel.shape[0] - 2
    chain = quasi_birth_death(
        _grid(kernel, batch),
        _grid(kernel, 0),
        _grid(kernel, -batch),
        boundary=_boundary(arrivals, service),
        rates=isinstance(arrivals, ContinuousMap),
    )
    levels = -(-length // batch)
    per_level = chain.phases(levels)
    shape = (levels * batch, jnp.shape(arrivals.blocks)[1], jnp.shape(service.start)[0])
    busy = per_level.reshape(shape)
    further = (per_level[-1] @ chain.rate_matrix @ chain.beyond).sum() + busy[length - 1 :].sum()
    # level g holds queue lengths (g - 1) b + 1 .. g b
    within = (chain.first @ chain.beyond).reshape((batch, -1)).sum(axis=1)
    above = (chain.first @ chain.rate_matrix @ chain.beyond @ chain.beyond).sum()
    mean_queue = jnp.arange(1.0, batch + 1.0) @ within + batch * above
    return _measures(
        arrivals,
        service,
        chain.boundary,
        busy[: length - 1],
        capacity=None,
        stable=chain.stable,
        tail=jnp.where(chain.stable, further, 1.0),
        mean_queue=jnp.where(chain.stable, mean_queue, jnp.inf),
    )


def _require_one_clock(arrivals: Arrivals, service: Service) -> None:
    if isinstance(arrivals, DiscreteMap) != isinstance(service, DiscretePhaseType):
        raise ValueError("arrivals and service must both be in slots or both in continuous time")


@in_float64
def limited_modulated_queue(*, arrivals: Arrivals, service: Service, capacity: int) -> ModulatedQueue:
    """Exact steady state of a MAP/PH/1 queue with room for ``capacity`` packets, the one in service included.

    A batch too big for the room left is accepted in part. There is a steady state for any load.
    ``O(capacity / b * (b m s)^3)`` for batches of up to ``b``.

    Raises:
        ValueError: if the capacity is not positive or the clocks of arrivals and service differ.
    """
    require_count(capacity, "capacity")
    _require_one_clock(arrivals, service)
    return _limited(arrivals, service, capacity)


@in_float64
def modulated_queue(*, arrivals: Arrivals, service: Service, length: int) -> ModulatedQueue:
    """Exact steady state of a MAP/PH/1 queue with unlimited room; its laws on ``0..length-1``.

    ``found`` is known on one point less, and its tail as a complement only.

    Raises:
        ValueError: if ``length`` is below 2, the clocks differ, or (outside compiled code) the load is not
            below one.
    """
    require_count(length, "length", least=2)
    _require_one_clock(arrivals, service)
    solution = _unlimited(arrivals, service, length)
    if not is_traced(solution.stable) and not bool(solution.stable):
        raise ValueError(
            "arrivals and service must make a load below one for a steady state, "
            f"got {float(solution.load):g}"
        )
    return solution
