"""What the infinite queues have to know of a stream of batches, as functions of a batch's transform.

A batch may stand for its packets or for the slots of work it brings: each function takes the generating
function of "what a batch brings" at some points and returns that of what a slot brings, or part of one.
"""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing.errors import is_traced, require_law, require_no_mass_at_zero
from btqueue.queueing.laws import lattice
from btqueue.queueing.laws.generating_functions import evaluate, excess, mean_decay
from btqueue.queueing.traffic.arrivals import BernoulliBatches, PoissonBatches

BatchStream = PoissonBatches | BernoulliBatches


def require_stream(arrivals: BatchStream, service: ArrayLike, slotted: bool) -> None:
    """Raise ``ValueError`` unless the arrivals are batches that fit the time axis, and ``service`` a law.

    Example:
        >>> from btqueue.queueing.traffic.batch_streams import require_stream
        >>> from btqueue.queueing.traffic.arrivals import PoissonBatches
        >>> require_stream(PoissonBatches(0.1, [0.0, 1.0]), [0.0, 0.0, 1.0], True)
    """
    if not isinstance(arrivals, BatchStream):
        raise ValueError(
            f"arrivals must be PoissonBatches or BernoulliBatches, got {type(arrivals).__name__}"
        )
    if isinstance(arrivals, BernoulliBatches) and not slotted:
        raise ValueError("arrivals must be PoissonBatches in continuous time (slotted=False)")
    require_law(service, "service")
    require_no_mass_at_zero(service, "service")


def require_stable(load: Array) -> None:
    """Raise ``ValueError`` if the load is known and at least one.

    Example:
        >>> from btqueue.queueing.traffic.batch_streams import require_stable
        >>> import jax.numpy as jnp
        >>> require_stable(jnp.array(0.9))
    """
    if not is_traced(load) and not (np.asarray(load) < 1.0).all():
        raise ValueError(f"unstable: the load must be below 1 for a queue without limit, got {load}")


def _rate_field(arrivals: BatchStream) -> ArrayLike:
    return arrivals.batch_rate if isinstance(arrivals, PoissonBatches) else arrivals.batch_probability


def batch_rate(arrivals: BatchStream) -> Array:
    """Batches a slot.

    Example:
        >>> from btqueue.queueing.traffic.batch_streams import batch_rate
        >>> from btqueue.queueing.traffic.arrivals import PoissonBatches
        >>> round(float(batch_rate(PoissonBatches(0.1, [0.0, 1.0]))), 4)
        0.1
    """
    return jnp.asarray(_rate_field(arrivals))


def offered_load(arrivals: BatchStream, service: ArrayLike) -> Array:
    """Slots of work a slot.

    Example:
        >>> from btqueue.queueing.traffic.batch_streams import offered_load
        >>> from btqueue.queueing.traffic.arrivals import PoissonBatches
        >>> round(float(offered_load(PoissonBatches(0.1, [0.0, 1.0]), [0.0, 0.0, 1.0])), 6)
        0.2
    """
    return arrivals.packet_rate * lattice.mean(service)


def calmed(arrivals: BatchStream, load: Array) -> BatchStream:
    """The stream itself if stable, else one slow enough for finite arithmetic (its answers are not used).

    Example:
        >>> from btqueue.queueing.traffic.batch_streams import calmed
        >>> from btqueue.queueing.traffic.arrivals import PoissonBatches
        >>> import jax.numpy as jnp
        >>> stream = calmed(PoissonBatches(0.4, [0.0, 1.0]), jnp.array(2.0))
        >>> round(float(stream.batch_rate), 4)
        0.1
    """
    share = jnp.where(load < 1.0, 1.0, 0.5 / load)
    return eqx.tree_at(_rate_field, arrivals, share * batch_rate(arrivals))


def in_slot(arrivals: BatchStream, batch: Array) -> Array:
    """Generating function of what a slot brings.

    Example:
        >>> from btqueue.queueing.traffic.batch_streams import in_slot
        >>> from btqueue.queueing.traffic.arrivals import PoissonBatches
        >>> import jax.numpy as jnp
        >>> round(float(in_slot(PoissonBatches(0.1, [0.0, 1.0]), jnp.array(0.5))), 4)
        0.9512
    """
    missing = batch_rate(arrivals) * (1.0 - batch)
    return jnp.exp(-missing) if isinstance(arrivals, PoissonBatches) else 1.0 - missing


def earlier_in_slot(arrivals: BatchStream, batch: Array, s: Array | float = 0.0) -> Array:
    """Transform of what the slot brought before a given batch of it.

    With ``s`` also of the time from the batch to the slot's end, weighted by ``exp(-s * time)``. A Bernoulli
    batch comes alone, at the end.

    Example:
        >>> from btqueue.queueing.traffic.batch_streams import earlier_in_slot
        >>> from btqueue.queueing.traffic.arrivals import PoissonBatches
        >>> import jax
        >>> import jax.numpy as jnp
        >>> with jax.enable_x64(True):
        ...     found = earlier_in_slot(PoissonBatches(0.1, [0.0, 1.0]), jnp.array(0.5))
        >>> round(float(found), 4)
        0.9754
    """
    if isinstance(arrivals, BernoulliBatches):
        return jnp.ones_like(batch)
    return jnp.exp(-s) * mean_decay(batch_rate(arrivals) * (1.0 - batch) - s)


def batch_work(arrivals: BatchStream, service: ArrayLike, z: Array) -> Array:
    """Generating function of the slots of work of a batch.

    Example:
        >>> from btqueue.queueing.traffic.batch_streams import batch_work
        >>> from btqueue.queueing.traffic.arrivals import PoissonBatches
        >>> import jax.numpy as jnp
        >>> round(float(batch_work(PoissonBatches(0.1, [0.0, 1.0]), [0.0, 0.0, 1.0], jnp.array(0.5))), 4)
        0.25
    """
    return evaluate(arrivals.batch_size, evaluate(service, z))


def batch_work_excess(arrivals: BatchStream, service: ArrayLike, z: Array) -> Array:
    """``(1 - Y(z)) / (1 - z)`` of the work ``Y`` of a batch.

    Example:
        >>> from btqueue.queueing.traffic.batch_streams import batch_work_excess
        >>> from btqueue.queueing.traffic.arrivals import PoissonBatches
        >>> import jax.numpy as jnp
        >>> single = PoissonBatches(0.1, [0.0, 1.0])
        >>> round(float(batch_work_excess(single, [0.0, 0.0, 1.0], jnp.array(1.0))), 4)
        2.0
    """
    return excess(arrivals.batch_size, evaluate(service, z)) * excess(service, z)


def slot_work_excess(arrivals: BatchStream, service: ArrayLike, z: Array) -> Array:
    """``(1 - G(z)) / (1 - z)`` of the work ``G`` that a slot brings; the load at ``z = 1``.

    Example:
        >>> from btqueue.queueing.traffic.batch_streams import slot_work_excess
        >>> from btqueue.queueing.traffic.arrivals import PoissonBatches
        >>> import jax
        >>> with jax.enable_x64(True):
        ...     found = slot_work_excess(PoissonBatches(0.1, [0.0, 1.0]), [0.0, 0.0, 1.0], 1.0)
        >>> round(float(found), 4)
        0.2
    """
    earlier = earlier_in_slot(arrivals, batch_work(arrivals, service, z))
    return batch_rate(arrivals) * batch_work_excess(arrivals, service, z) * earlier


def ahead_in_batch(arrivals: BatchStream, packet: Array) -> Array:
    """Generating function of what the packets before a random one in its batch bring, each ``packet``.

    Example:
        >>> from btqueue.queueing.traffic.batch_streams import ahead_in_batch
        >>> from btqueue.queueing.traffic.arrivals import PoissonBatches
        >>> import jax.numpy as jnp
        >>> round(float(ahead_in_batch(PoissonBatches(0.1, [0.0, 0.0, 1.0]), jnp.array(0.5))), 4)
        0.75
    """
    return excess(arrivals.batch_size, packet) / lattice.mean(arrivals.batch_size)
