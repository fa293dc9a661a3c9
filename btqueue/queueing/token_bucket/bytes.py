r"""Token bucket for packets of unequal size: the chain on the lattice of bytes.

Tokens are bytes, the buffer counts packets. Every batch brings the same packets in the same order (a segment
cut into packets), so the level *w*, the bytes missing from the bucket plus those of the waiting packets,
tells how many wait: count back from the last packet of a batch. The level is followed in units of a common
divisor of all sizes; it falls by one unit at a time, hence its law follows cut by cut (`skip_free_law`).
Within a unit the level rises at Poisson batches; which of them fit depends on the level rounded up only, so
nothing is lost by the lattice.

* Whole batches refused: **exact**.
* Batches accepted in part: **an approximation**. After a cut batch the last packet in the buffer is not the
  last of a batch, and packets behind are counted by the wrong sizes until it has passed. Measured on segments
  of four packets of 339 and one of 183 bytes, see docs/explanation/queueing-token-bucket.md.

`token_bucket` with the mean size instead needs one tenth of the time and a thousandth of the states.

Source: level crossing, Brill, Level Crossing Methods in Stochastic Models (2008), here on a lattice.
"""

import math
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import gammainc, gammaln
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.chains.level_chain import skip_free_law
from btqueue.queueing.errors import is_traced, require_count, require_positive

BATCHES_A_UNIT = 16
"""Batches followed within the accrual of one unit; with a mean of 1, more come with probability 1e-15."""


class ByteBucketSolution(eqx.Module):
    """Steady state of a bucket of bytes; times in the unit of the rates.

    Attributes:
        level: law of missing plus waiting bytes, rounded up to units, found by a batch.
        packet_loss: share of the packets offered that are refused.
        batch_loss: share of the batches that lose at least one packet.
        accepted_rate: packets admitted a unit of time.
        mean_buffer: mean packets waiting for tokens.
        mean_token_wait: mean time an admitted packet waits for them.
        load: bytes offered over bytes of tokens.
        unit: bytes of one step of the level.
    """

    level: Array
    packet_loss: Array
    batch_loss: Array
    accepted_rate: Array
    mean_buffer: Array
    mean_token_wait: Array
    load: Array
    unit: int = eqx.field(static=True)


def _waiting(levels: np.ndarray, sizes: list[int], depth: int, buffer: int) -> np.ndarray:
    """Packets waiting at each level: those with so few bytes behind them that it is above ``depth``."""
    reverse = sizes[::-1]
    behind = np.cumsum([0, *(reverse[place % len(reverse)] for place in range(buffer))])[:buffer]
    return (levels[:, None] - depth > behind[None, :]).sum(axis=1)


def _offer(
    levels: np.ndarray, sizes: list[int], depth: int, buffer: int, whole: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Level after a batch, and packets refused of it, for each level met."""
    after, waiting = levels.copy(), _waiting(levels, sizes, depth, buffer)
    refused = np.zeros_like(levels)
    for size in sizes:
        passes = (after + size <= depth) & (refused == 0)
        joins = ~passes & (waiting < buffer) & (refused == 0)
        refused += ~(passes | joins)
        waiting += joins
        after = np.where(passes | joins, after + size, after)
    if whole:
        after = np.where(refused > 0, levels, after)
        refused = np.where(refused > 0, len(sizes), 0)
    return after, refused


@eqx.filter_jit
def _solve(
    batch_rate: Array,
    byte_rate: Array,
    sizes: tuple[int, ...],
    depth: int,
    buffer: int,
    whole: bool,
    unit: int,
) -> ByteBucketSolution:
    steps = [size // unit for size in sizes]
    levels = np.arange(depth // unit + buffer * max(steps) + 1)
    after, refused = _offer(levels, steps, depth // unit, buffer, whole)
    met = levels.copy()
    met[0] = after[0]  # an empty bucket waits for the batch that starts it off
    met_by = [met]
    for _ in range(BATCHES_A_UNIT):
        met_by.append(after[met_by[-1]])

    rate = batch_rate * unit / byte_rate  # batches while one unit accrues
    count = jnp.arange(BATCHES_A_UNIT + 1.0)
    weights = jnp.exp(count * jnp.log(rate) - rate - gammaln(count + 1.0))
    embedded = skip_free_law(np.stack(met_by) - 1, weights / weights.sum())

    spent = gammainc(count + 1.0, rate) / rate  # mean share of a unit's time with so many batches
    level = jnp.zeros(levels.size).at[0].add(embedded[0] / rate)
    for share, place in zip(spent, met_by, strict=True):
        level = level.at[place].add(share * embedded)
    level = level / level.sum()

    packets = len(sizes)
    loss = level @ refused / packets
    accepted = batch_rate * packets * (1.0 - loss)
    waiting = level @ _waiting(levels, steps, depth // unit, buffer)
    return ByteBucketSolution(
        level=level,
        packet_loss=loss,
        batch_loss=level @ (refused > 0),
        accepted_rate=accepted,
        mean_buffer=waiting,
        mean_token_wait=waiting / accepted,
        load=batch_rate * sum(sizes) / byte_rate,
        unit=unit,
    )


@in_float64
def byte_bucket(
    *,
    batch_rate: ArrayLike,
    packet_bytes: Sequence[int],
    byte_rate: ArrayLike,
    depth: int,
    buffer: int,
    whole_batches: bool = False,
) -> ByteBucketSolution:
    """Steady state of a token bucket in bytes with a buffer of packets, fed by Poisson batches.

    Exact with ``whole_batches``, otherwise an approximation (see the module).

    Args:
        batch_rate: batches a unit of time.
        packet_bytes: sizes of the packets of a batch, in order.
        byte_rate: bytes of tokens that accrue in a unit of time.
        depth: bytes of tokens that the full bucket holds.
        buffer: packets that can wait for tokens (S).
        whole_batches: refuse a batch for which there is not room enough.

    Raises:
        ValueError: if an argument is out of range, if no batch could ever pass, or if more than one
            batch comes, in the mean, while one unit of bytes accrues.
    """
    require_positive(batch_rate, "batch_rate")
    require_positive(byte_rate, "byte_rate")
    require_count(depth, "depth", least=0)
    require_count(buffer, "buffer", least=0)
    if len(packet_bytes) == 0:
        raise ValueError("packet_bytes must hold at least one packet")
    for size in packet_bytes:
        require_count(size, "packet_bytes")
    sizes = tuple(int(size) for size in packet_bytes)
    unit = math.gcd(*sizes, int(depth))
    _, refused = _offer(
        np.zeros(1, dtype=int), [size // unit for size in sizes], depth // unit, buffer, whole_batches
    )
    if refused[0] == len(sizes):
        raise ValueError(f"depth and buffer must have room for a packet, got {depth} bytes and {buffer}")
    if not is_traced(batch_rate, byte_rate) and float(np.asarray(batch_rate * unit / byte_rate)) > 1.0:
        raise ValueError(
            f"batch_rate must not exceed 1 in the time of {unit} bytes of tokens, got {batch_rate}"
        )
    return _solve(jnp.asarray(batch_rate), jnp.asarray(byte_rate), sizes, depth, buffer, whole_batches, unit)
