"""Packets that come in batches: Poisson batches in continuous time, Bernoulli batches slot by slot."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import gammainc
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.errors import is_traced, require_law, require_no_mass_at_zero, require_positive
from btqueue.queueing.laws import lattice


def _as_array(value: Any) -> Any:
    """Numbers become float64 arrays, so that a compiled solver takes them as values, not as constants."""
    return value if isinstance(value, jax.Array) else np.asarray(value, dtype=np.float64)


def _require_batches(batch_size: ArrayLike) -> None:
    require_law(batch_size, "batch_size")
    require_no_mass_at_zero(batch_size, "batch_size")


@partial(jax.jit, static_argnames=("length",))
def _compound_poisson(rate: Array, batch_size: Array, length: int) -> lattice.CutLaw:
    """Law of a Poisson number of batches, on ``0..length-1``, by Panjer's recursion (no subtraction)."""
    sizes = lattice.truncate(batch_size, length).probabilities
    weighted = jnp.arange(length) * sizes

    def next_entry(k: int, law: Array) -> Array:
        # law[k] = rate / k * sum_j j sizes[j] law[k - j]; entries from k on are still zero
        earlier = jnp.where(jnp.arange(length) <= k, law[(k - jnp.arange(length)) % length], 0.0)
        return law.at[k].set(rate / k * (weighted @ earlier))

    law = jax.lax.fori_loop(1, length, next_entry, jnp.zeros(length).at[0].set(jnp.exp(-rate)))
    return lattice.CutLaw(law, jnp.maximum(1.0 - law.sum(), 0.0))


@partial(jax.jit, static_argnames=("length",))
def _compound_part(rate: Array, batch_size: Array, length: int) -> lattice.CutLaw:
    """As `_compound_poisson`, with the rate shrunk by a factor uniform on (0, 1)."""
    # a batch brings at least one packet: more than length-1 batches cannot end below length
    batches = gammainc(jnp.arange(1.0, length + 1.0), rate) / rate
    law = lattice.compound(batches, batch_size, length).probabilities
    return lattice.CutLaw(law, jnp.maximum(1.0 - law.sum(), 0.0))


class PoissonBatches(eqx.Module):
    """Batches at the epochs of a Poisson process.

    Attributes:
        batch_rate: batches a unit of time (a slot, for the slotted models).
        batch_size: law of the packets in a batch, a vector indexed by size; single packets if left out.

    Raises:
        ValueError: if the rate is not positive or the sizes are not a law on ``1, 2, ...``.
    """

    batch_rate: ArrayLike
    batch_size: ArrayLike

    def __init__(self, batch_rate: ArrayLike, batch_size: ArrayLike | Sequence[float] = (0.0, 1.0)) -> None:
        self.batch_rate = _as_array(batch_rate)
        self.batch_size = _as_array(batch_size)

    def __check_init__(self) -> None:
        require_positive(self.batch_rate, "batch_rate")
        _require_batches(self.batch_size)

    @property
    @in_float64
    def packet_rate(self) -> Array:
        """Mean packets a unit of time."""
        return jnp.asarray(self.batch_rate) * lattice.mean(self.batch_size)

    @in_float64
    def slot_law(self, length: int) -> lattice.CutLaw:
        """Law of the packets of one unit of time on ``0..length-1``."""
        return _compound_poisson(jnp.asarray(self.batch_rate), jnp.asarray(self.batch_size), length)

    @in_float64
    def part_slot_law(self, length: int) -> lattice.CutLaw:
        """Law of the packets in a uniform fraction of the unit of time, on ``0..length-1``.

        ``j`` batches have probability ``Pr(Poisson(rate) > j) / rate``. Convolved with the law at slot starts
        it gives the law at a random moment, which Poisson batches see on arrival.
        """
        return _compound_part(jnp.asarray(self.batch_rate), jnp.asarray(self.batch_size), length)


class BernoulliBatches(eqx.Module):
    """At most one batch a slot, at the slot's end.

    Attributes:
        batch_probability: probability that a slot brings a batch.
        batch_size: law of the packets in a batch, a vector indexed by size; single packets if left out.

    Raises:
        ValueError: if the probability is not in (0, 1] or the sizes are not a law on ``1, 2, ...``.
    """

    batch_probability: ArrayLike
    batch_size: ArrayLike

    def __init__(
        self, batch_probability: ArrayLike, batch_size: ArrayLike | Sequence[float] = (0.0, 1.0)
    ) -> None:
        self.batch_probability = _as_array(batch_probability)
        self.batch_size = _as_array(batch_size)

    def __check_init__(self) -> None:
        require_positive(self.batch_probability, "batch_probability")
        if not is_traced(self.batch_probability) and float(np.asarray(self.batch_probability)) > 1:
            raise ValueError(f"batch_probability must not exceed 1, got {self.batch_probability}")
        _require_batches(self.batch_size)

    @property
    @in_float64
    def packet_rate(self) -> Array:
        """Mean packets a slot."""
        return jnp.asarray(self.batch_probability) * lattice.mean(self.batch_size)

    @in_float64
    def slot_law(self, length: int) -> lattice.CutLaw:
        """Law of the packets of one slot on ``0..length-1``."""
        sizes, tail = lattice.truncate(self.batch_size, length)
        probability = jnp.asarray(self.batch_probability, sizes.dtype)
        return lattice.CutLaw((probability * sizes).at[0].add(1.0 - probability), probability * tail)

    @in_float64
    def part_slot_law(self, length: int) -> lattice.CutLaw:
        """The constant 0: the batch comes at the slot's end, so it sees the queue of the slot's start."""
        return lattice.CutLaw(jnp.zeros(length).at[0].set(1.0), jnp.zeros(()))


def too_big(batch_size: ArrayLike, capacity: int) -> Array:
    """Which batches do not fit in full, ``(K + 1, n)``: by content ``0..K`` and by size.

    Example:
        >>> from btqueue.queueing.traffic.arrivals import too_big
        >>> too_big([0.0, 0.5, 0.5], 2).tolist()
        [[False, False, False], [False, False, True], [False, True, True]]
    """
    sizes = jnp.arange(jnp.asarray(batch_size).shape[0])
    return sizes[None, :] > capacity - jnp.arange(capacity + 1)[:, None]


@in_float64
def batch_loss(occupancy: ArrayLike, batch_size: ArrayLike) -> Array:
    """Probability that a batch loses at least one packet, ``Pr(content > K - X)``.

    Args:
        occupancy: law on ``0..K`` of the content that a batch finds.
        batch_size: law of its packets X.

    Example:
        >>> from btqueue.queueing.traffic.arrivals import batch_loss
        >>> float(batch_loss([0.5, 0.25, 0.25], [0.0, 0.5, 0.5]))
        0.375
    """
    occupancy, sizes = jnp.asarray(occupancy), jnp.asarray(batch_size)
    return occupancy @ jnp.where(too_big(sizes, occupancy.shape[0] - 1), sizes, 0.0).sum(axis=1)


@in_float64
def packet_loss(occupancy: ArrayLike, batch_size: ArrayLike, *, whole: bool = False) -> Array:
    """Share of the packets that are lost with batches that find the given content.

    A batch too big for the room left is accepted in part, ``E[(X - (K - n))^+] / E[X]``, or refused as a
    ``whole``. Other arguments as in `batch_loss`.

    Example:
        >>> from btqueue.queueing.traffic.arrivals import packet_loss
        >>> round(float(packet_loss([0.5, 0.25, 0.25], [0.0, 0.5, 0.5])), 6)
        0.333333
    """
    occupancy, sizes = jnp.asarray(occupancy), jnp.asarray(batch_size)
    capacity = occupancy.shape[0] - 1
    packets = jnp.arange(sizes.shape[0])[None, :]
    beyond = packets if whole else packets - (capacity - jnp.arange(capacity + 1)[:, None])
    lost = jnp.where(too_big(sizes, capacity), beyond, 0) @ sizes
    return occupancy @ lost / lattice.mean(sizes)
