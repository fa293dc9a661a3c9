"""The infinite single-server queue with batch arrivals, first come first served: M/G/1, M^X/G/1, Geo/G/1.

Service takes whole slots. On the slotted axis a service begins at a slot boundary: arrivals of a slot join at
its end, and a packet counts as present until the slot ends in which it leaves. In continuous time
(``slotted=False``, Poisson batches) a packet that finds the server idle starts at once.

With ``G(z)`` the work that a slot brings, the work left at a slot's end, before its arrivals join, obeys
``V' = (V + G - 1)^+`` and has the generating function

    V(z) = (1 - rho) / (1 - (1 - G(z)) / (1 - z)),

a geometric sum of equilibrium residuals; everything else follows by adding independent parts. The same holds
for packets, with the arrivals of one service in the place of G.

Sources: Takagi, Queueing Analysis, vol. 1 (1991), chapter 1 (M/G/1, M^X/G/1), and vol. 3 (1993)
(Geo/G/1); Cooper, Introduction to Queueing Theory (1981), chapter 5 (the geometric sum); Franx, Oper. Res.
Letters 29 (2001) (waiting time at arbitrary moments, M/D/1).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.errors import require_count
from btqueue.queueing.laws import generating_functions as gf
from btqueue.queueing.laws.lattice import CutLaw
from btqueue.queueing.traffic import batch_streams
from btqueue.queueing.traffic.arrivals import PoissonBatches
from btqueue.queueing.traffic.batch_streams import BatchStream


class SingleQueueSolution(eqx.Module):
    """Steady state of an infinite queue; times in slots. Laws carry the mass beyond their length.

    Laws of times count whole slots: on the slotted axis from the end of the slot of arrival, in continuous
    time rounded up. Moments are of the times themselves, from the moment of arrival. If the queue is unstable
    all laws have their mass at infinity (in the tail) and all moments are infinite.

    Attributes:
        load: work offered a slot.
        stable: whether ``load < 1``.
        at_slot_starts: law of the packets present, the one in service included, at slot starts; in continuous
            time the same as ``occupancy``.
        occupancy: the same at a random moment, which is also what a batch finds.
        at_arrivals: packets that a packet finds, those before it in its batch included; also what a departing
            packet leaves behind (level crossing).
        virtual_wait: law of the work found by a batch, the wait of its first packet.
        wait: law of a packet's wait.
        sojourn: law of a packet's wait plus service.
        mean_queue: mean of ``occupancy``.
        second_moment_queue: mean square of ``occupancy``.
        mean_wait: mean time from arrival to start of service.
        second_moment_wait: its mean square.
        mean_sojourn: mean time from arrival to end of service.
        second_moment_sojourn: its mean square.
    """

    load: Array
    stable: Array
    at_slot_starts: CutLaw
    occupancy: CutLaw
    at_arrivals: CutLaw
    virtual_wait: CutLaw
    wait: CutLaw
    sojourn: CutLaw
    mean_queue: Array
    second_moment_queue: Array
    mean_wait: Array
    second_moment_wait: Array
    mean_sojourn: Array
    second_moment_sojourn: Array


def _queue_at_slot_starts(arrivals: BatchStream, service: Array, load: Array, z: Array) -> Array:
    """Generating function of the packets present at slot starts, ``(1 - rho) (1 - z) B / (B - z)``.

    ``B(z) = b(a(z))`` are the packets that arrive during a service.
    """
    packets = gf.evaluate(arrivals.batch_size, z)
    slot = batch_streams.in_slot(arrivals, packets)
    slot_excess = (
        batch_streams.batch_rate(arrivals)
        * gf.excess(arrivals.batch_size, z)
        * batch_streams.earlier_in_slot(arrivals, packets)
    )
    return (1.0 - load) * gf.evaluate(service, slot) / (1.0 - gf.excess(service, slot) * slot_excess)


def _found_by_batch(arrivals: BatchStream, service: Array, load: Array, z: Array, slotted: bool) -> Array:
    """Generating function of the packets present at a random moment."""
    at_starts = _queue_at_slot_starts(arrivals, service, load, z)
    if not slotted:
        return at_starts
    return at_starts * batch_streams.earlier_in_slot(arrivals, gf.evaluate(arrivals.batch_size, z))


def _virtual_wait(arrivals: BatchStream, service: Array, load: Array, z: Array, slotted: bool) -> Array:
    """Generating function of the whole slots that a batch waits."""
    left = (1.0 - load) / (1.0 - batch_streams.slot_work_excess(arrivals, service, z))
    work = batch_streams.batch_work(arrivals, service, z)
    # continuous time, rounded up: the unit of work in progress counts as whole, as if a slot had just begun
    since = batch_streams.earlier_in_slot if slotted else batch_streams.in_slot
    return left * since(arrivals, work)


def _wait_laplace(arrivals: BatchStream, service: Array, load: Array, s: Array, slotted: bool) -> Array:
    """``E[exp(-s W)]`` of the time from a packet's arrival to the start of its service."""
    z = jnp.exp(-s)
    if slotted:
        left = (1.0 - load) / (1.0 - batch_streams.slot_work_excess(arrivals, service, z))
        work = batch_streams.batch_work(arrivals, service, z)
        found = left * batch_streams.earlier_in_slot(arrivals, work, s)
    else:  # Pollaczek-Khinchine: 1 - Y(exp(-s)) over s is the excess of Y times mean_decay(s)
        residuals = batch_streams.batch_work_excess(arrivals, service, z) * gf.mean_decay(s)
        found = (1.0 - load) / (1.0 - batch_streams.batch_rate(arrivals) * residuals)
    return found * batch_streams.ahead_in_batch(arrivals, gf.evaluate(service, z))


def _or_infinite(law: CutLaw, stable: Array) -> CutLaw:
    """The law where the queue is stable, else all mass in the tail."""
    return CutLaw(jnp.where(stable, law.probabilities, 0.0), jnp.where(stable, law.tail, 1.0))


@eqx.filter_jit
def _solve(
    arrivals: BatchStream, service: Array, length: int, horizon: int, slotted: bool
) -> SingleQueueSolution:
    load = batch_streams.offered_load(arrivals, service)
    stable = load < 1.0
    calm = batch_streams.calmed(arrivals, load)
    rho = batch_streams.offered_load(calm, service)

    packets, slots = gf.circle(length), gf.circle(horizon)
    found = _found_by_batch(calm, service, rho, packets, slotted)
    in_batch = batch_streams.ahead_in_batch(calm, packets)
    serve = gf.evaluate(service, slots)
    virtual = _virtual_wait(calm, service, rho, slots, slotted)
    wait = virtual * batch_streams.ahead_in_batch(calm, serve)

    def law(values: Array, size: int) -> CutLaw:
        return _or_infinite(gf.coefficients(values, size), stable)

    def packets_laplace(s: Array) -> Array:
        return _found_by_batch(calm, service, rho, jnp.exp(-s), slotted)

    def times_laplace(s: Array) -> Array:
        to_start = _wait_laplace(calm, service, rho, s, slotted)
        return jnp.stack([to_start, to_start * gf.evaluate(service, jnp.exp(-s))])

    mean_queue, second_queue = (jnp.where(stable, m, jnp.inf) for m in gf.moments(packets_laplace))
    mean_times, second_times = (jnp.where(stable, m, jnp.inf) for m in gf.moments(times_laplace))
    return SingleQueueSolution(
        load=load,
        stable=stable,
        at_slot_starts=law(_queue_at_slot_starts(calm, service, rho, packets), length),
        occupancy=law(found, length),
        at_arrivals=law(found * in_batch, length),
        virtual_wait=law(virtual, horizon),
        wait=law(wait, horizon),
        sojourn=law(wait * serve, horizon),
        mean_queue=mean_queue,
        second_moment_queue=second_queue,
        mean_wait=mean_times[0],
        second_moment_wait=second_times[0],
        mean_sojourn=mean_times[1],
        second_moment_sojourn=second_times[1],
    )


@in_float64
def single_queue(
    *, arrivals: BatchStream, service: ArrayLike, length: int, horizon: int, slotted: bool = True
) -> SingleQueueSolution:
    """Exact steady state of the infinite queue: laws to about 1e-14 an entry, moments to rounding.

    Under ``jit``, ``vmap`` or ``grad`` an unstable queue is marked by ``stable``; moments stay exact whatever
    ``length`` and ``horizon``.

    Args:
        arrivals: `PoissonBatches` (M/G/1, M^X/G/1) or `BernoulliBatches` (Geo/G/1), per slot.
        service: law of a packet's service, in slots, at least one.
        length: entries of the laws of packets.
        horizon: entries of the laws of times, in slots.
        slotted: whether service begins at slot boundaries only.

    Raises:
        ValueError: if an argument is out of range, Bernoulli batches are given in continuous time, or the
            load is not below 1.

    Example:
        >>> from btqueue.queueing.single.single_queue import single_queue
        >>> from btqueue.queueing.traffic.arrivals import PoissonBatches
        >>> found = single_queue(
        ...     arrivals=PoissonBatches(0.1, [0.0, 1.0]), service=[0.0] * 6 + [1.0],
        ...     length=50, horizon=200, slotted=False,
        ... )
        >>> round(float(found.mean_wait), 6)
        4.5
    """
    batch_streams.require_stream(arrivals, service, slotted)
    require_count(length, "length")
    require_count(horizon, "horizon")
    batch_streams.require_stable(batch_streams.offered_load(arrivals, service))
    return _solve(arrivals, jnp.asarray(service), length, horizon, slotted)


@eqx.filter_jit
def _wait_distribution(arrivals: PoissonBatches, service: Array, times: Array, horizon: int) -> Array:
    load = batch_streams.offered_load(arrivals, service)
    calm = batch_streams.calmed(arrivals, load)
    slots = gf.circle(horizon)
    work = batch_streams.batch_work(calm, service, slots)
    left = (1.0 - batch_streams.offered_load(calm, service)) / (
        1.0 - batch_streams.slot_work_excess(calm, service, slots)
    )
    started = left * batch_streams.ahead_in_batch(calm, gf.evaluate(service, slots))

    def at(time: Array) -> Array:
        whole = jnp.floor(time)
        rest = whole + 1.0 - time
        later = jnp.exp(-rest * batch_streams.batch_rate(calm) * (1.0 - work))
        law = gf.coefficients(started * later, horizon).probabilities
        return jnp.where(jnp.arange(horizon) <= whole, law, 0.0).sum()

    return jnp.where(load < 1.0, jax.vmap(at)(times), 0.0)


@in_float64
def wait_distribution(
    *, arrivals: PoissonBatches, service: ArrayLike, times: ArrayLike, horizon: int
) -> Array:
    """``Pr(W <= t)`` in continuous time at any moments ``t``, for M^X/G/1 with services of whole slots.

    All work that came before time 0 is done by ``t = k + 1 - s`` (``0 < s <= 1``) exactly if the units not
    yet begun at ``-s``, and those that arrive in the ``s`` that follow, number at most ``k``: no subtraction,
    unlike in the alternating sums of Erlang and Crommelin.

    Source: Franx, Oper. Res. Letters 29 (2001), for M/D/1; the argument is unchanged for whole slots.

    Args:
        arrivals: Poisson batches, per slot.
        service: law of a packet's service, in slots, at least one.
        times: ``(m,)``, in slots, from 0 up to below ``horizon``.
        horizon: static bound of the times.

    Returns:
        ``(m,)``; zeros if the load is not below 1 (under tracing).

    Raises:
        ValueError: as `single_queue`.

    Example:
        >>> from btqueue.queueing.single.single_queue import wait_distribution
        >>> from btqueue.queueing.traffic.arrivals import PoissonBatches
        >>> found = wait_distribution(
        ...     arrivals=PoissonBatches(0.1, [0.0, 1.0]), service=[0.0] * 6 + [1.0],
        ...     times=[0.0, 4.0], horizon=200,
        ... )
        >>> found.round(4).tolist()
        [0.4, 0.5967]
    """
    batch_streams.require_stream(arrivals, service, slotted=False)
    require_count(horizon, "horizon")
    batch_streams.require_stable(batch_streams.offered_load(arrivals, service))
    return _wait_distribution(arrivals, jnp.asarray(service), jnp.asarray(times, float), horizon)
