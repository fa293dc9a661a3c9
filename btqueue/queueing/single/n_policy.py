"""N-policy: a server switched off when its queue is empty, and on when N packets wait.

The queue is that of the ordinary server plus, independently, the queue at a random moment of the build-up,
which runs through ``0, 1, .., N-1`` (with batches: through those values at which a batch stops). Switching on
costs something each time, waiting packets cost something each slot, and N balances the two.

Sources: Yadin & Naor, Operational Research Quarterly 14 (1963); Heyman, Operations Research 16 (1968);
Takagi, Queueing Analysis, vol. 1 (1991), chapter 2; Fuhrmann & Cooper, Operations Research 33 (1985)
(decomposition).
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import solve_triangular
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.errors import is_traced, require_count
from btqueue.queueing.laws import generating_functions as gf
from btqueue.queueing.laws import lattice
from btqueue.queueing.laws.lattice import CutLaw
from btqueue.queueing.single.single_queue import found_by_batch, or_infinite
from btqueue.queueing.traffic import batch_streams
from btqueue.queueing.traffic.batch_streams import BatchStream


class NPolicySolution(eqx.Module):
    """Steady state of a queue under N-policy; times in slots.

    If the queue is unstable, ``occupancy`` has its mass at infinity, and means are infinite.

    Attributes:
        load: work offered a slot, also the share of time that the server works.
        stable: whether ``load < 1``.
        occupancy: law of the packets present at a random moment, which is also what a batch finds.
        mean_queue: mean of ``occupancy``.
        mean_sojourn: mean time from arrival to end of service.
        mean_wait: mean time from arrival to start of service.
        mean_build_up: mean time from switching off to switching on.
        mean_cycle: mean time between two switchings on.
    """

    load: Array
    stable: Array
    occupancy: CutLaw
    mean_queue: Array
    mean_sojourn: Array
    mean_wait: Array
    mean_build_up: Array
    mean_cycle: Array


class BestThreshold(NamedTuple):
    """The N of least long-run cost, its cost a slot, and the costs of all N tried (entry 0 is N = 1)."""

    threshold: Array
    cost: Array
    costs: Array


def _build_up_times(arrivals: BatchStream, largest: int, slotted: bool) -> Array:
    """Mean time at each content ``0..largest-1`` while the queue builds up from empty without end.

    A renewal equation, ``u = e_0 + a * u`` with the packets of a slot (or, in continuous time, of a batch).
    """
    if slotted:
        jump, stay = arrivals.slot_law(largest).probabilities, 1.0
    else:
        jump = lattice.truncate(arrivals.batch_size, largest).probabilities
        stay = 1.0 / batch_streams.batch_rate(arrivals)
    shift = jnp.arange(largest)[:, None] - jnp.arange(largest)[None, :]
    renewal = jnp.eye(largest) - jnp.where(shift >= 0, jump[jnp.maximum(shift, 0)], 0.0)
    return stay * solve_triangular(renewal, jnp.eye(largest)[0], lower=True)


def _ordinary_mean_queue(arrivals: BatchStream, service: Array, load: Array, slotted: bool) -> Array:
    """Mean queue of the server that is always on."""
    return gf.moments(lambda s: found_by_batch(arrivals, service, load, jnp.exp(-s), slotted))[0]


@eqx.filter_jit
def _solve(
    arrivals: BatchStream, service: Array, threshold: Array, largest: int, length: int, slotted: bool
) -> NPolicySolution:
    load = batch_streams.offered_load(arrivals, service)
    stable = load < 1.0
    calm = batch_streams.calmed(arrivals, load)
    rho = batch_streams.offered_load(calm, service)
    visits = jnp.where(jnp.arange(largest) < threshold, _build_up_times(arrivals, largest, slotted), 0.0)
    build_up = visits.sum()
    building = visits / build_up
    z = gf.circle(length)
    occupancy = found_by_batch(calm, service, rho, z, slotted) * gf.evaluate(building, z)
    mean_queue = _ordinary_mean_queue(calm, service, rho, slotted) + lattice.mean(building)
    mean_sojourn = mean_queue / calm.packet_rate

    def finite(value: Array) -> Array:
        return jnp.where(stable, value, jnp.inf)

    return NPolicySolution(
        load=load,
        stable=stable,
        occupancy=or_infinite(gf.coefficients(occupancy, length), stable),
        mean_queue=finite(mean_queue),
        mean_sojourn=finite(mean_sojourn),
        mean_wait=finite(mean_sojourn - lattice.mean(service)),
        mean_build_up=build_up,
        mean_cycle=finite(build_up / (1.0 - rho)),
    )


def _require(arrivals: BatchStream, service: ArrayLike, slotted: bool) -> None:
    batch_streams.require_stream(arrivals, service, slotted)
    batch_streams.require_stable(batch_streams.offered_load(arrivals, service))


@in_float64
def n_policy_queue(
    *,
    arrivals: BatchStream,
    service: ArrayLike,
    threshold: ArrayLike,
    length: int,
    largest: int | None = None,
    slotted: bool = True,
) -> NPolicySolution:
    """Exact steady state under N-policy.

    Args:
        arrivals: `PoissonBatches` or `BernoulliBatches`, per slot.
        service: law of a packet's service, in slots, at least one.
        threshold: N, the packets at which the server is switched on.
        length: entries of the law of packets.
        largest: static bound of ``threshold``, needed when that is traced; ``threshold`` itself if left out.
        slotted: whether service begins at slot boundaries only.

    Raises:
        ValueError: if an argument is out of range, ``threshold`` exceeds ``largest``, or the load is not
            below 1.
    """
    _require(arrivals, service, slotted)
    require_count(length, "length")
    if not is_traced(threshold):
        known = np.asarray(threshold).item()
        require_count(known, "threshold")
        largest = int(known) if largest is None else largest
        if known > largest:
            raise ValueError(f"threshold must not exceed largest = {largest}, got {known}")
    elif largest is None:
        raise ValueError("largest must be given when threshold is traced")
    return _solve(arrivals, jnp.asarray(service), jnp.asarray(threshold), largest, length, slotted)


@eqx.filter_jit
def _costs(
    arrivals: BatchStream, service: Array, holding: Array, switching: Array, largest: int, slotted: bool
) -> BestThreshold:
    load = batch_streams.offered_load(arrivals, service)
    calm = batch_streams.calmed(arrivals, load)
    rho = batch_streams.offered_load(calm, service)
    visits = _build_up_times(arrivals, largest, slotted)
    build_up = jnp.cumsum(visits)
    building = jnp.cumsum(jnp.arange(largest) * visits) / build_up
    queue = _ordinary_mean_queue(calm, service, rho, slotted) + building
    costs = jnp.where(load < 1.0, holding * queue + switching * (1.0 - rho) / build_up, jnp.inf)
    best = jnp.argmin(costs)
    return BestThreshold(best + 1, costs[best], costs)


@in_float64
def best_threshold(
    *,
    arrivals: BatchStream,
    service: ArrayLike,
    holding_cost: ArrayLike,
    switching_cost: ArrayLike,
    largest: int,
    slotted: bool = True,
) -> BestThreshold:
    """Long-run cost a slot, ``holding_cost E[queue] + switching_cost / E[cycle]``, of every N, and the least.

    What a working server costs a slot does not depend on N and is left out. For single Poisson arrivals in
    continuous time the best N is next to ``sqrt(2 lambda (1 - rho) switching / holding)``.

    Args:
        arrivals: `PoissonBatches` or `BernoulliBatches`, per slot.
        service: law of a packet's service, in slots, at least one.
        holding_cost: cost of a packet present, a slot.
        switching_cost: cost of switching off and on again.
        largest: largest N tried.
        slotted: whether service begins at slot boundaries only.

    Raises:
        ValueError: if an argument is out of range, a cost is negative, or the load is not below 1.
    """
    _require(arrivals, service, slotted)
    require_count(largest, "largest")
    for cost, name in ((holding_cost, "holding_cost"), (switching_cost, "switching_cost")):
        if not is_traced(cost) and not np.asarray(cost) >= 0.0:
            raise ValueError(f"{name} must not be negative, got {cost}")
    return _costs(
        arrivals,
        jnp.asarray(service),
        jnp.asarray(holding_cost),
        jnp.asarray(switching_cost),
        largest,
        slotted,
    )
