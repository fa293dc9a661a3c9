"""Token bucket with a finite packet buffer: exact by its equivalence with a single-server queue.

Tokens accrue as a fluid, one packet's worth every ``token_time``, up to a depth of ``B`` packets. The tokens
missing from the bucket plus the packets waiting make up the number in system of an M^X/D/1/(B+S) queue:
the deterministic "service" is the accrual of one packet's tokens, and a packet waits only while the number
exceeds ``B``. Hence only ``B + S`` matters for loss, and only ``B`` for how delay is split.

Sources: Sidi, Liu, Cidon & Gopal, IEEE Trans. Commun. 41 (1993); Berger, IEEE JSAC 9 (1991).

Packets of unequal size: use the mean size, an approximation. On segments of four packets of 339 and one of
183 bytes losses are within 11 % with the depth rounded down, except below 1 % of loss with a buffer of a few
packets, where a depth that is not whole (interpolated geometrically) does better. See `token_bucket.bytes`.
"""

import math
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import gammainc, gammaln
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.chains.level_chain import level_law
from btqueue.queueing.errors import is_traced, require_count, require_positive
from btqueue.queueing.laws import lattice
from btqueue.queueing.traffic import arrivals

DOUBLINGS = 8
"""A token time is followed as 2^8 short times, each by its series."""
SHORT_BATCHES = 16
"""Batches followed in a short time; with a mean of 1, more come with probability 1e-15."""


class TokenBucketSolution(eqx.Module):
    """Steady state of a token bucket.

    Attributes:
        occupancy: law of (missing tokens + waiting packets), in packets, on ``0..floor(B)+S``.
        packet_loss: share of the packets offered that find the buffer full.
        segment_loss: share of the batches that lose at least one packet.
        accepted_rate: packets a unit of time that pass.
        mean_buffer: mean packets waiting for tokens.
        mean_token_wait: mean time an accepted packet waits for tokens.
        load: packets offered over packets that the tokens could carry.
    """

    occupancy: Array
    packet_loss: Array
    segment_loss: Array
    accepted_rate: Array
    mean_buffer: Array
    mean_token_wait: Array
    load: Array


def _accepted(batch_size: Array, capacity: int, *, whole: bool) -> Array:
    """``(K + 1, K)``: by the number found, probability that a batch has an i-th packet that gets in."""
    sizes, _ = lattice.truncate(batch_size, capacity + 1)
    found, place = np.arange(capacity + 1)[:, None], np.arange(1, capacity + 1)[None, :]
    if whole:  # Pr(i <= X <= room)
        below = jnp.cumsum(sizes)
        return jnp.where(found + place <= capacity, below[capacity - found] - below[place - 1], 0.0)
    at_least = jnp.sum(batch_size) - jnp.cumsum(sizes)[:-1]
    return jnp.where(found + place <= capacity, at_least[place - 1], 0.0)


def _batch_matrix(batch_size: Array, capacity: int, *, whole: bool) -> Array:
    """``(K + 1, K + 1)``: what one batch does to the number in system."""
    sizes, too_big = lattice.truncate(batch_size, capacity + 1)
    if not whole:
        return lattice.filling_matrix(lattice.CutLaw(sizes, too_big))
    found, after = np.arange(capacity + 1)[:, None], np.arange(capacity + 1)[None, :]
    fitting = jnp.where(after > found, sizes[np.maximum(after - found, 0)], 0.0)
    refused = too_big + jnp.where(found + found.T > capacity, sizes[None, :], 0.0).sum(axis=1)
    return fitting + jnp.diag(refused)


def _over_time(batch_rate: Array, batch: Array, time: Array) -> tuple[Array, Array]:
    """Number in system after ``time`` of Poisson batches and no departure, and the time spent at each number.

    The series in the number of batches on a short time, doubled: only sums of non-negative terms.
    """
    size, short = batch.shape[0], batch_rate * time / 2.0**DOUBLINGS
    counts = jnp.arange(SHORT_BATCHES + 1.0)
    none = jnp.zeros((size, size))

    def horner(carry: tuple[Array, Array], count: Array) -> tuple[tuple[Array, Array], None]:
        end, spent = carry
        more = gammainc(count + 1.0, short)
        probability = jnp.exp(-short - gammaln(count + 1.0)) * short**count
        return (end @ batch + probability * jnp.eye(size), spent @ batch + more * jnp.eye(size)), None

    def double(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
        end, spent = carry
        return (end @ end, spent + end @ spent), None

    series, _ = jax.lax.scan(horner, (none, none), counts, reverse=True)
    (end, spent), _ = jax.lax.scan(double, series, None, length=DOUBLINGS)
    return end, spent / batch_rate


class _Cycle(NamedTuple):
    """The embedded chain: token times, and idle periods between them."""

    start: Array  # law of the number in system at the start of a token time
    idle: Array  # mean idle time before it


def _embedded(batches: arrivals.PoissonBatches, batch: Array, token_time: Array) -> _Cycle:
    """Law at departures of the M^X/D/1/K queue, taken to the start of the next token time."""
    rate = jnp.asarray(batches.batch_rate)
    end, _ = _over_time(rate, batch, token_time)
    # a departure leaves 0..K-1; the next token time starts with that, or from 0 with the first batch let in
    first = batch[0].at[0].set(0.0) / batch[0, 1:].sum()
    size = batch.shape[0]
    start = jnp.eye(size)[: size - 1].at[0].set(first)
    moved = start @ end
    left_behind = moved[:, 1:].at[:, 0].add(moved[:, 0])
    law = level_law(left_behind, batches.packet_rate * token_time > 1.0)
    return _Cycle(law @ start, law[0] / (rate * batch[0, 1:].sum()))


@eqx.filter_jit
def _solve(
    batches: arrivals.PoissonBatches, token_time: Array, depth: int, buffer: int, whole: bool
) -> TokenBucketSolution:
    capacity = depth + buffer
    sizes = jnp.asarray(batches.batch_size)
    batch = _batch_matrix(sizes, capacity, whole=whole)
    cycle = _embedded(batches, batch, token_time)
    _, spent = _over_time(jnp.asarray(batches.batch_rate), batch, token_time)
    occupancy = (cycle.start @ spent).at[0].add(cycle.idle) / (token_time + cycle.idle)

    segment_loss = arrivals.batch_loss(occupancy, sizes)
    if whole:
        too_big = jnp.arange(sizes.shape[0])[None, :] > capacity - jnp.arange(capacity + 1)[:, None]
        loss = occupancy @ (too_big * jnp.arange(sizes.shape[0])) @ sizes / lattice.mean(sizes)
    else:
        loss = arrivals.packet_loss(occupancy, sizes)
    accepted = batches.packet_rate * (1.0 - loss)
    waiting = occupancy @ jnp.clip(jnp.arange(capacity + 1) - depth, 0.0, buffer)
    return TokenBucketSolution(
        occupancy=occupancy,
        packet_loss=loss,
        segment_loss=segment_loss,
        accepted_rate=accepted,
        mean_buffer=waiting,
        mean_token_wait=waiting / accepted,
        load=batches.packet_rate * token_time,
    )


@eqx.filter_jit
def _wait_survival(
    batches: arrivals.PoissonBatches, token_time: Array, times: Array, depth: int, buffer: int, whole: bool
) -> Array:
    capacity = depth + buffer
    sizes = jnp.asarray(batches.batch_size)
    batch = _batch_matrix(sizes, capacity, whole=whole)
    cycle = _embedded(batches, batch, token_time)
    accepted = _accepted(sizes, capacity, whole=whole)
    ahead = np.arange(capacity + 1)[:, None] + np.arange(capacity)[None, :]

    def by_ahead(number: Array) -> Array:
        """Accepted packets by the number ahead of them, for a measure of the number that a batch finds."""
        weights = number[:, None] * accepted
        return jnp.zeros(capacity).at[np.minimum(ahead, capacity - 1)].add(weights)

    def with_residual_above(passed: Array) -> Array:
        """Time of a cycle with more than ``passed`` of the token time left, idleness counting as all left."""
        _, spent = _over_time(jnp.asarray(batches.batch_rate), batch, token_time - passed)
        return (cycle.start @ spent).at[0].add(cycle.idle)

    everyone = by_ahead(with_residual_above(jnp.zeros(())))

    def above(time: Array) -> Array:
        whole_tokens = jnp.floor(time / token_time)
        late = by_ahead(with_residual_above(jnp.maximum(time - whole_tokens * token_time, 0.0)))
        tokens = jnp.arange(capacity) - depth  # an accepted packet waits for the rest of one token and these
        waits = jnp.where(tokens > whole_tokens, everyone, jnp.where(tokens == whole_tokens, late, 0.0))
        return waits.sum() / everyone.sum()

    return jax.vmap(above)(times)


@in_float64
def saturated_loss(load: ArrayLike) -> Array:
    """Share of the packets refused in the limit of a source that always has more, ``1 - 1/load``.

    Then a packet passes in every token time: the bucket is a constant-rate server, whatever depth and buffer.
    """
    return jnp.maximum(1.0 - 1.0 / jnp.asarray(load), 0.0)


def _require_room(token_time: ArrayLike, depth: float, buffer: int) -> None:
    require_positive(token_time, "token_time")
    require_count(buffer, "buffer", least=0)
    if not (math.isfinite(depth) and depth >= 0 and math.floor(depth) + buffer >= 1):
        raise ValueError(f"depth must be non-negative, with room for one packet in all, got {depth}")


@in_float64
def token_wait_survival(
    times: ArrayLike,
    *,
    batches: arrivals.PoissonBatches,
    token_time: ArrayLike,
    depth: int,
    buffer: int,
    whole_batches: bool = False,
) -> Array:
    """Probability that an accepted packet waits longer than each of ``times`` for tokens, exact.

    A packet with ``a`` others ahead of it in the M^X/D/1 queue passes after the rest of the running token
    time and ``a - B`` more of them, at once if ``a < B``. The law has a mass at 0, and one at each token time
    from the batches that find a full bucket.

    Args:
        times: ``(n,)``, non-negative.
        batches: the input, with its rate per unit of time.
        token_time: time in which the tokens of one packet accrue.
        depth: tokens that the full bucket holds, in whole packets (B).
        buffer: packets that can wait for tokens (S).
        whole_batches: refuse a batch for which there is not room enough.

    Returns:
        ``(n,)``.

    Raises:
        ValueError: if an argument is out of range.
    """
    require_count(depth, "depth", least=0)
    _require_room(token_time, depth, buffer)
    _require_fitting_batch(batches, depth + buffer, whole_batches)
    if not is_traced(times) and not (np.asarray(times) >= 0).all():
        raise ValueError(f"times must not be negative, got {times}")
    times = jnp.asarray(times, dtype=float)
    return _wait_survival(batches, jnp.asarray(token_time, float), times, depth, buffer, whole_batches)


def _require_fitting_batch(batches: arrivals.PoissonBatches, capacity: int, whole: bool) -> None:
    if not whole or is_traced(batches.batch_size):
        return
    if not (np.asarray(batches.batch_size)[: capacity + 1] > 0).any():
        raise ValueError(f"batch_size must allow batches that fit into the {capacity} places")


@in_float64
def token_bucket(
    *,
    batches: arrivals.PoissonBatches,
    token_time: ArrayLike,
    depth: float,
    buffer: int,
    whole_batches: bool = False,
) -> TokenBucketSolution:
    """Loss and delay of Poisson batches at a token bucket.

    Exact for equal packets and a depth of whole packets. For any other depth both losses are interpolated
    geometrically, and the means linearly, between the whole depths on either side.

    Args:
        batches: the input, with its rate per unit of time.
        token_time: time in which the tokens of one packet accrue.
        depth: tokens that the full bucket holds, in packets (B); at least 1 unless ``buffer`` is positive.
        buffer: packets that can wait for tokens (S).
        whole_batches: refuse a batch for which there is not room enough; otherwise its first packets get in.

    Raises:
        ValueError: if an argument is out of range.
    """
    _require_room(token_time, depth, buffer)
    _require_fitting_batch(batches, math.floor(depth) + buffer, whole_batches)
    whole = math.floor(depth)
    share = depth - whole
    time = jnp.asarray(token_time, float)
    lower = _solve(batches, time, whole, buffer, whole_batches)
    if share == 0.0:
        return lower
    upper = _solve(batches, time, whole + 1, buffer, whole_batches)

    def geometric(low: Array, high: Array) -> Array:
        return low ** (1.0 - share) * high**share

    loss = geometric(lower.packet_loss, upper.packet_loss)
    waiting = (1.0 - share) * lower.mean_buffer + share * upper.mean_buffer
    accepted = batches.packet_rate * (1.0 - loss)
    return TokenBucketSolution(
        occupancy=lower.occupancy,
        packet_loss=loss,
        segment_loss=geometric(lower.segment_loss, upper.segment_loss),
        accepted_rate=accepted,
        mean_buffer=waiting,
        mean_token_wait=waiting / accepted,
        load=lower.load,
    )
