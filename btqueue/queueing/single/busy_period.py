"""Busy periods of a single server with batch arrivals: how long it works, and how many packets it serves.

A busy period lasts as long as its initial work and all that arrives meanwhile. Services take whole slots, so
it does too, in continuous time as well as on the slotted axis. If a slot brings work ``G``, the time until
one slot of work and its descendants are gone has the generating function ``theta(z) = z G(theta(z))``, and
the busy period begun by work ``w`` has ``w(theta(z))``; in the same way packets count their descendants. A
delayed busy period begins with work of another kind (a set-up, a vacation, a packet of lower priority).

Sources: Takacs, Introduction to the Theory of Queues (1962), chapter 1; Takagi, Queueing Analysis, vol. 1
(1991), chapter 1, and vol. 3 (1993); Kleinrock, Queueing Systems, vol. 1 (1975), section 5.8.
"""

import equinox as eqx
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.errors import require_count, require_law
from btqueue.queueing.laws import generating_functions as gf
from btqueue.queueing.laws.lattice import CutLaw
from btqueue.queueing.traffic import batch_streams
from btqueue.queueing.traffic.batch_streams import BatchStream


class BusyPeriod(eqx.Module):
    """Length of a busy period and what it serves.

    At a load of 1 or more a busy period may never end; the laws stay exact, the probability of "never" is in
    their tails, and the moments are infinite.

    Attributes:
        load: work offered a slot.
        stable: whether ``load < 1``.
        duration: law of the slots from its start until the server is idle.
        served: law of the packets served; of a delayed busy period, of those that arrived during it.
        mean_duration: mean of ``duration``.
        second_moment_duration: its mean square.
        mean_served: mean of ``served``.
        second_moment_served: its mean square.
    """

    load: Array
    stable: Array
    duration: CutLaw
    served: CutLaw
    mean_duration: Array
    second_moment_duration: Array
    mean_served: Array
    second_moment_served: Array


def _descent_of_work(arrivals: BatchStream, service: Array, z: Array, length: int | None) -> Array:
    """``theta(z)``: slots until one slot of work, and all that arrives meanwhile, is done."""
    return gf.first_passage(
        lambda theta: batch_streams.in_slot(arrivals, batch_streams.batch_work(arrivals, service, theta)),
        z,
        length=length,
    )


def _descent_of_packets(arrivals: BatchStream, service: Array, z: Array, length: int | None) -> Array:
    """``nu(z)``: packets served until one packet, and all that arrive meanwhile, are."""
    return gf.first_passage(
        lambda nu: gf.evaluate(
            service, batch_streams.in_slot(arrivals, gf.evaluate(arrivals.batch_size, nu))
        ),
        z,
        length=length,
    )


def _begun_by_batches(arrivals: BatchStream, batch: Array, slotted: bool) -> Array:
    """What starts an ordinary busy period: a batch, or on the slotted axis all batches of one slot."""
    if not slotted:
        return batch
    nothing = batch_streams.in_slot(arrivals, jnp.zeros(()))
    return (batch_streams.in_slot(arrivals, batch) - nothing) / (1.0 - nothing)


@eqx.filter_jit
def _solve(
    arrivals: BatchStream,
    service: Array,
    initial_work: Array | None,
    horizon: int,
    length: int,
    slotted: bool,
) -> BusyPeriod:
    def duration(arrivals: BatchStream, z: Array, size: int | None) -> Array:
        theta = _descent_of_work(arrivals, service, z, size)
        if initial_work is not None:
            return gf.evaluate(initial_work, theta)
        return _begun_by_batches(arrivals, batch_streams.batch_work(arrivals, service, theta), slotted)

    def served(arrivals: BatchStream, z: Array, size: int | None) -> Array:
        packets = gf.evaluate(arrivals.batch_size, _descent_of_packets(arrivals, service, z, size))
        if initial_work is not None:
            return gf.evaluate(initial_work, batch_streams.in_slot(arrivals, packets))
        return _begun_by_batches(arrivals, packets, slotted)

    load = batch_streams.offered_load(arrivals, service)
    stable = load < 1.0
    calm = batch_streams.calmed(arrivals, load)
    mean_duration, second_duration = gf.moments(lambda s: duration(calm, jnp.exp(-s), None))
    mean_served, second_served = gf.moments(lambda s: served(calm, jnp.exp(-s), None))
    return BusyPeriod(
        load=load,
        stable=stable,
        duration=gf.coefficients(duration(arrivals, gf.circle(horizon), horizon), horizon),
        served=gf.coefficients(served(arrivals, gf.circle(length), length), length),
        mean_duration=jnp.where(stable, mean_duration, jnp.inf),
        second_moment_duration=jnp.where(stable, second_duration, jnp.inf),
        mean_served=jnp.where(stable, mean_served, jnp.inf),
        second_moment_served=jnp.where(stable, second_served, jnp.inf),
    )


@in_float64
def busy_period(
    *,
    arrivals: BatchStream,
    service: ArrayLike,
    horizon: int,
    length: int,
    initial_work: ArrayLike | None = None,
    slotted: bool = True,
) -> BusyPeriod:
    """Exact laws of a busy period's slots and packets, to about 1e-14 an entry, at any load.

    Args:
        arrivals: `PoissonBatches` or `BernoulliBatches`, per slot.
        service: law of a packet's service, in slots, at least one.
        horizon: entries of the law of slots.
        length: entries of the law of packets.
        initial_work: law of the work, in slots, that a delayed busy period begins with; if left out, the
            period begins with the first arrivals at an idle server.
        slotted: whether service begins at slot boundaries only: then a busy period begins with all batches of
            a slot, else with one batch.

    Raises:
        ValueError: if an argument is out of range or Bernoulli batches are given in continuous time.
    """
    batch_streams.require_stream(arrivals, service, slotted)
    require_count(horizon, "horizon")
    require_count(length, "length")
    if initial_work is not None:
        require_law(initial_work, "initial_work")
        initial_work = jnp.asarray(initial_work)
    return _solve(arrivals, jnp.asarray(service), initial_work, horizon, length, slotted)
