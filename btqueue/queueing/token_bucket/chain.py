r"""Token bucket on a lattice of slots: its level as a skip-free chain, its waits and what it lets through.

Tokens accrue steadily, one packet's worth in ``token_slots`` slots, up to ``depth`` slots' worth. Let the
level *w* be the tokens missing plus those that waiting packets ask for, in slots. Every slot takes one from
it, every packet admitted adds ``m = token_slots``:

* a packet that leaves the level at most ``depth`` passes at once;
* any other waits, while fewer than ``buffer`` wait; it passes when the level, not counting later packets, has
  fallen to ``depth``. Hence ``ceil((w - depth)^+ / m)`` packets wait.

Nothing is approximate: the depth need not be a multiple of ``m``. The level falls by at most one a slot, so
the flow across every cut gives its law level by level, without a subtraction.

Order within a slot: tokens first (and with them a waiting packet), then the slot's batch.

Sources: Sidi, Liu, Cidon & Gopal, IEEE Trans. Commun. 41 (1993); Berger, IEEE JSAC 9 (1991).
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from btqueue.queueing._precision import in_float64
from btqueue.queueing.chains.level_chain import skip_free_law
from btqueue.queueing.errors import is_traced, require_count
from btqueue.queueing.laws import lattice
from btqueue.queueing.traffic.arrivals import BernoulliBatches


class LatticeBucket(eqx.Module):
    """A token bucket with a buffer in front of it.

    Attributes:
        token_slots: slots in which the tokens of one packet accrue (m).
        depth: tokens that the full bucket holds, in slots of accrual; a packet needs ``token_slots``.
        buffer: packets that can wait for tokens (S).
        whole_batches: refuse a batch for which there is not room enough; otherwise its first packets get in.

    Raises:
        ValueError: if a number is out of range, or if no packet could ever pass.
    """

    token_slots: int = eqx.field(static=True)
    depth: int = eqx.field(static=True)
    buffer: int = eqx.field(static=True)
    whole_batches: bool = eqx.field(static=True, default=False)

    def __check_init__(self) -> None:
        require_count(self.token_slots, "token_slots")
        require_count(self.depth, "depth", least=0)
        require_count(self.buffer, "buffer", least=0)
        if self.buffer == 0 and self.depth < self.token_slots:
            raise ValueError(
                f"depth must be at least token_slots = {self.token_slots} without a buffer, got {self.depth}"
            )

    @property
    def highest(self) -> int:
        """The highest level: no tokens, and the buffer full."""
        return self.depth + self.buffer * self.token_slots

    def admitted(self, level: np.ndarray, batch: int) -> np.ndarray:
        """Packets of a batch that get in, from each level met (after the slot's tokens)."""
        room = (self.highest - level) // self.token_slots
        return np.where(room >= batch, batch, 0) if self.whole_batches else np.minimum(room, batch)

    def passing(self, level: np.ndarray, batch: int) -> np.ndarray:
        """Packets of a batch that pass at once, from each level met."""
        tokens = np.maximum(self.depth - level, 0) // self.token_slots
        return np.minimum(tokens, self.admitted(level, batch))


class Step(NamedTuple):
    """One slot of the bucket, as a linear map."""

    joint: Array  # (levels, K + 1), level and count of packets after the slot
    overflow: Array  # mean packets that passed the bucket while the count stood at K


def _count_one(rows: Array) -> tuple[Array, Array]:
    """Raise the count by one, up to its highest value; the mass that stood there already."""
    raised = jnp.concatenate([jnp.zeros_like(rows[..., :1]), rows[..., :-1]], axis=-1)
    return raised.at[..., -1].add(rows[..., -1]), rows[..., -1]


def _one_packet(bucket: LatticeBucket, joint: Array) -> Step:
    """Offer one packet from every level: it passes, waits, or is refused."""
    step, highest = bucket.token_slots, bucket.highest
    getting_in = joint[: highest - step + 1]
    at_once = max(bucket.depth - step + 1, 0)
    passed, full = _count_one(getting_in[:at_once])
    refused = joint[highest - step + 1 :]
    moved = jnp.concatenate([jnp.zeros_like(joint[:step]), passed, getting_in[at_once:]])
    return Step(moved.at[highest - step + 1 :].add(refused), full.sum())


def _batch(bucket: LatticeBucket, joint: Array, sizes: Array) -> Step:
    """Offer a batch of random size, its packets one after the other."""
    none = jnp.zeros((), joint.dtype)

    def offer(before: Step, _: None) -> tuple[Step, None]:
        after, overflow = _one_packet(bucket, before.joint)
        return Step(after, before.overflow + overflow), None

    if bucket.whole_batches:
        total, lost = sizes[0] * joint, none
        for size in range(1, sizes.shape[0]):
            fits = max(bucket.highest + 1 - size * bucket.token_slots, 0)
            moved, _ = jax.lax.scan(offer, Step(joint.at[fits:].set(0.0), none), None, length=size)
            total = total + sizes[size] * (moved.joint + joint.at[:fits].set(0.0))
            lost = lost + sizes[size] * moved.overflow
        return Step(total, lost)

    def next_size(carry: tuple[Step, Step], probability: Array) -> tuple[tuple[Step, Step], None]:
        total, before = carry
        after, _ = offer(before, None)
        return (jax.tree.map(lambda sum_, term: sum_ + probability * term, total, after), after), None

    start = Step(joint, none)
    first = jax.tree.map(lambda part: sizes[0] * part, start)
    (total, _), _ = jax.lax.scan(next_size, (first, start), sizes[1:])
    return total


def drained(bucket: LatticeBucket, joint: Array) -> Step:
    """One slot's tokens: the level falls by one, and a waiting packet passes if its tokens are complete."""
    levels = np.arange(1, bucket.highest + 1)
    passes = (levels > bucket.depth) & ((levels - 1 - bucket.depth) % bucket.token_slots == 0)
    counted, full = _count_one(joint[1:])
    fallen = jnp.where(passes[:, None], counted, joint[1:])
    moved = jnp.concatenate([fallen, jnp.zeros_like(joint[:1])])
    return Step(moved.at[0].add(joint[0]), jnp.where(passes, full, 0.0).sum())


def advance(bucket: LatticeBucket, batches: BernoulliBatches, joint: Array) -> Step:
    """One slot of the bucket, with the packets that pass counted beside it.

    Args:
        bucket: the bucket.
        batches: its input.
        joint: ``(highest + 1, K + 1)`` weights of (level, count); the count stops at K.

    Returns:
        The weights a slot later, and the mean number of packets that met a full count.
    """
    probability = jnp.asarray(batches.batch_probability)
    after_tokens, waiting_lost = drained(bucket, joint)
    after_batch, batch_lost = _batch(bucket, after_tokens, jnp.asarray(batches.batch_size))
    return Step(
        (1.0 - probability) * after_tokens + probability * after_batch,
        waiting_lost + probability * batch_lost,
    )


class LatticeBucketSolution(eqx.Module):
    """Steady state of a bucket on the lattice; times in slots.

    Attributes:
        level: law of the level at a slot start, ``(highest + 1,)``.
        packet_loss: share of the packets offered that are refused.
        batch_loss: share of the batches that lose at least one packet.
        accepted_rate: packets admitted a slot.
        wait: law of the slots that an admitted packet waits for tokens, ``(buffer * token_slots + 1,)``.
        mean_wait: its mean.
        mean_buffer: mean packets waiting at a slot start.
    """

    level: Array
    packet_loss: Array
    batch_loss: Array
    accepted_rate: Array
    wait: Array
    mean_wait: Array
    mean_buffer: Array


class BatchLosses(NamedTuple):
    """What the bucket's buffer refuses."""

    packets: Array
    batches: Array


def _levels(bucket: LatticeBucket) -> np.ndarray:
    return np.arange(bucket.highest + 1)


def after_tokens(bucket: LatticeBucket, level: Array) -> Array:
    """The law of the level that a batch finds, from that at the slot's start."""
    return drained(bucket, level[:, None]).joint[:, 0]


def bucket_losses(bucket: LatticeBucket, batches: BernoulliBatches, level: Array) -> BatchLosses:
    """Losses of packets and batches, from the law of the level at a slot's start."""
    sizes = jnp.asarray(batches.batch_size)
    counts = np.arange(sizes.shape[0])
    refused = np.stack([size - bucket.admitted(_levels(bucket), int(size)) for size in counts])
    found = after_tokens(bucket, level)
    return BatchLosses(
        packets=sizes @ refused @ found / lattice.mean(sizes), batches=sizes @ (refused > 0) @ found
    )


def mean_waiting(bucket: LatticeBucket, level: Array) -> Array:
    """Mean packets waiting for tokens, for a law of the level."""
    over = np.maximum(_levels(bucket) - bucket.depth, 0)
    return level @ jnp.asarray(-(-over // bucket.token_slots), level.dtype)


def _wait_law(bucket: LatticeBucket, batches: BernoulliBatches, level: Array) -> Array:
    sizes = jnp.asarray(batches.batch_size)
    found, met = after_tokens(bucket, level), _levels(bucket)
    law = jnp.zeros(bucket.buffer * bucket.token_slots + 1)
    for place in range(1, sizes.shape[0]):
        admits = np.stack(
            [bucket.admitted(met, size) >= place for size in range(place, sizes.shape[0])], dtype=float
        )
        slots = np.clip(met + place * bucket.token_slots - bucket.depth, 0, law.shape[0] - 1)
        law = law.at[slots].add(found * (sizes[place:] @ admits))
    return law / law.sum()


def require_slot_input(bucket: LatticeBucket, batches: BernoulliBatches) -> None:
    """Raise unless the input may leave a slot without a batch (a traced probability passes).

    Raises:
        ValueError: if every slot brings a batch, or the input is not `BernoulliBatches`.
    """
    if not isinstance(batches, BernoulliBatches):
        raise ValueError(f"batches must be BernoulliBatches, got {type(batches).__name__}")
    if not is_traced(batches.batch_probability) and float(np.asarray(batches.batch_probability)) >= 1.0:
        raise ValueError(f"batch_probability must be below 1, got {batches.batch_probability}")


@eqx.filter_jit
def _solve(bucket: LatticeBucket, batches: BernoulliBatches) -> LatticeBucketSolution:
    probability, sizes = jnp.asarray(batches.batch_probability), jnp.asarray(batches.batch_size)
    met = np.maximum(_levels(bucket) - 1, 0)
    landings = np.stack(
        [met + bucket.token_slots * bucket.admitted(met, size) for size in range(sizes.shape[0])]
    )
    weights = (probability * sizes).at[0].add(1.0 - probability)
    level = skip_free_law(landings, weights)
    losses = bucket_losses(bucket, batches, level)
    wait = _wait_law(bucket, batches, level)
    return LatticeBucketSolution(
        level=level,
        packet_loss=losses.packets,
        batch_loss=losses.batches,
        accepted_rate=batches.packet_rate * (1.0 - losses.packets),
        wait=wait,
        mean_wait=lattice.mean(wait),
        mean_buffer=mean_waiting(bucket, level),
    )


@in_float64
def lattice_bucket(bucket: LatticeBucket, batches: BernoulliBatches) -> LatticeBucketSolution:
    """Exact steady state of a bucket fed by at most one batch a slot.

    Raises:
        ValueError: if ``batches`` is not `BernoulliBatches` with a probability below 1.
    """
    require_slot_input(bucket, batches)
    return _solve(bucket, batches)
