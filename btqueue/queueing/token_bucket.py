"""Token bucket with a finite packet buffer: exact by its equivalence with a single-server queue.

Tokens accrue as a fluid, one packet's worth every ``token_time``, up to a depth of ``B`` packets. The tokens
missing from the bucket plus the packets waiting make up the number in system of an M^X/D/1/(B+S) queue:
the deterministic "service" is the accrual of one packet's tokens, and a packet waits only while the number
exceeds ``B``. Hence only ``B + S`` matters for loss, and only ``B`` for how delay is split.

Sources: Sidi, Liu, Cidon & Gopal, IEEE Trans. Commun. 41 (1993); Berger, IEEE JSAC 9 (1991).

Packets of unequal size: use the mean size, for which the equivalence is an approximation. Measured on
segments of four packets of 339 and one of 183 bytes, losses are within 11 % with the depth rounded down,
except below 1 % of loss with a buffer of a few packets, where a non-integer depth (interpolated
geometrically, see `token_bucket`) does better.
"""

import math

import equinox as eqx
import jax.numpy as jnp
from jax import Array

from btqueue.queueing import arrivals, lattice, markov
from btqueue.queueing._precision import in_float64
from btqueue.queueing.errors import require_count, require_positive


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


def _occupancy(batches: arrivals.PoissonBatches, token_time: Array, capacity: int) -> Array:
    """Time-average law of M^X/D/1/K on ``0..K``, batches accepted in part."""
    per_token = arrivals.PoissonBatches(jnp.asarray(batches.batch_rate) * token_time, batches.batch_size)
    size = capacity + 1
    fills = lattice.filling_matrix(per_token.slot_law(size))
    content = lattice.filling_matrix(per_token.part_slot_law(size))  # at a random moment of a token time
    # the batch that ends an idle period, cut at the capacity
    sizes, too_big = lattice.truncate(batches.batch_size, size)
    first_batch = sizes.at[capacity].add(too_big)
    # a departure leaves 0..K-1; the next token time starts with that, or from 0 with the first batch
    start = jnp.eye(size)[:capacity].at[0].set(first_batch)
    embedded = markov.stationary_vector((start @ fills)[:, 1:].at[:, 0].add((start @ fills)[:, 0]))
    idle = embedded[0] / jnp.asarray(batches.batch_rate)
    busy = (embedded @ start @ content) * token_time
    return busy.at[0].add(idle) / (token_time + idle)


@eqx.filter_jit
def _solve(
    batches: arrivals.PoissonBatches, token_time: Array, depth: int, buffer: int
) -> TokenBucketSolution:
    capacity = depth + buffer
    occupancy = _occupancy(batches, token_time, capacity)
    loss = arrivals.packet_loss(occupancy, batches.batch_size)
    accepted = batches.packet_rate * (1.0 - loss)
    waiting = occupancy @ jnp.clip(jnp.arange(capacity + 1) - depth, 0.0, buffer)
    return TokenBucketSolution(
        occupancy=occupancy,
        packet_loss=loss,
        segment_loss=arrivals.batch_loss(occupancy, batches.batch_size),
        accepted_rate=accepted,
        mean_buffer=waiting,
        mean_token_wait=waiting / accepted,
        load=batches.packet_rate * token_time,
    )


@in_float64
def token_bucket(
    *, batches: arrivals.PoissonBatches, token_time: float, depth: float, buffer: int
) -> TokenBucketSolution:
    """Loss and delay of Poisson batches at a token bucket.

    Exact for equal packets and a depth of whole packets. For any other depth both losses are interpolated
    geometrically, and the means linearly, between the whole depths on either side.

    Args:
        batches: the input, with its rate per unit of time.
        token_time: time in which the tokens of one packet accrue.
        depth: tokens that the full bucket holds, in packets (B); at least 1 unless ``buffer`` is positive.
        buffer: packets that can wait for tokens (S).

    Raises:
        ValueError: if an argument is out of range.
    """
    require_positive(token_time, "token_time")
    require_count(buffer, "buffer", least=0)
    if not (math.isfinite(depth) and depth >= 0 and math.floor(depth) + buffer >= 1):
        raise ValueError(f"depth must be non-negative, with room for one packet in all, got {depth}")
    whole = math.floor(depth)
    share = depth - whole
    time = jnp.asarray(token_time)
    lower = _solve(batches, time, whole, buffer)
    if share == 0.0:
        return lower
    upper = _solve(batches, time, whole + 1, buffer)

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
