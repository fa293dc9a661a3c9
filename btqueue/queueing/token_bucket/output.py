"""What a token bucket lets through: a discrete-time batch Markovian arrival process, and laws read off it.

The level of the bucket (`token_bucket.chain`) is the phase; a slot lets 0, 1, 2, ... packets pass. The
stream is neither Poisson nor paced: a full bucket lets a batch through in one slot, an empty one lets single
packets through a token time apart.

Source: Blondia & Casals, Performance Evaluation 15 (1992), for the process.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from btqueue.queueing._precision import in_float64
from btqueue.queueing.errors import require_count
from btqueue.queueing.laws import lattice
from btqueue.queueing.token_bucket.chain import (
    LatticeBucket,
    advance,
    lattice_bucket,
    require_slot_input,
)
from btqueue.queueing.traffic.arrivals import BernoulliBatches


class PassingGroups(eqx.Module):
    """The packets that pass in one slot, and the time to the next slot in which any do.

    Attributes:
        rate: slots with a passing packet, per slot.
        size: law of the packets in such a slot, from 0.
        gap: law of the slots from one such slot to the next, cut, with its tail.
    """

    rate: Array
    size: Array
    gap: lattice.CutLaw


def _counting(law: Array, counts: int) -> Array:
    return jnp.zeros((law.shape[0], counts)).at[:, 0].set(law)


def _most_passing(batches: BernoulliBatches) -> int:
    """One packet that waited and a whole batch."""
    return jnp.shape(batches.batch_size)[0]


@eqx.filter_jit
def _passing_matrices(bucket: LatticeBucket, batches: BernoulliBatches) -> Array:
    counts = _most_passing(batches) + 1
    moved = jax.vmap(lambda law: advance(bucket, batches, _counting(law, counts)).joint)(
        jnp.eye(bucket.highest + 1)
    )
    return jnp.moveaxis(moved, -1, 0)


@in_float64
def passing_matrices(bucket: LatticeBucket, batches: BernoulliBatches) -> Array:
    """The matrices ``D_k`` of the process: ``k`` packets pass in a slot and the level moves.

    Returns:
        ``(k, levels, levels)`` for ``k = 0..largest batch + 1``; their sum is a transition matrix. Dense: for
        buckets of up to some hundred levels.

    Raises:
        ValueError: as `lattice_bucket`.
    """
    require_slot_input(bucket, batches)
    return _passing_matrices(bucket, batches)


@eqx.filter_jit
def _passed_in(
    bucket: LatticeBucket, batches: BernoulliBatches, level: Array, slots: int, length: int
) -> lattice.CutLaw:
    # one count more than asked for collects everything beyond
    def slot(joint: Array, _: None) -> tuple[Array, None]:
        return advance(bucket, batches, joint).joint, None

    joint, _ = jax.lax.scan(slot, _counting(level, length + 1), None, length=slots)
    law = joint.sum(axis=0)
    return lattice.CutLaw(law[:length], law[length])


@in_float64
def passed_in(bucket: LatticeBucket, batches: BernoulliBatches, *, slots: int, length: int) -> lattice.CutLaw:
    """Law of the packets that pass in an interval of ``slots`` slots in steady state, on ``0..length-1``.

    Raises:
        ValueError: as `lattice_bucket`, or if a count is not positive.
    """
    require_count(slots, "slots")
    require_count(length, "length")
    level = jnp.asarray(lattice_bucket(bucket, batches).level)
    return _passed_in(bucket, batches, level, slots, length)


@eqx.filter_jit
def _passing_groups(
    bucket: LatticeBucket, batches: BernoulliBatches, level: Array, length: int
) -> PassingGroups:
    moved = advance(bucket, batches, _counting(level, _most_passing(batches) + 1)).joint
    passing = moved.at[:, 0].set(0.0)
    rate = passing.sum()

    def slot(quiet: Array, _: None) -> tuple[Array, Array]:
        after = advance(bucket, batches, _counting(quiet, 2)).joint
        return after[:, 0], after[:, 1].sum()

    left, gap = jax.lax.scan(slot, passing.sum(axis=1) / rate, None, length=length - 1)
    return PassingGroups(
        rate=rate,
        size=passing.sum(axis=0) / rate,
        gap=lattice.CutLaw(jnp.concatenate([jnp.zeros(1), gap]), left.sum()),
    )


@in_float64
def passing_groups(bucket: LatticeBucket, batches: BernoulliBatches, *, length: int) -> PassingGroups:
    """Packets that pass together, and the gaps between such groups on ``0..length-1`` slots.

    The gaps are not independent of each other nor of the sizes; for that use `passing_matrices`.

    Raises:
        ValueError: as `lattice_bucket`, or if ``length`` is not positive.
    """
    require_count(length, "length")
    level = jnp.asarray(lattice_bucket(bucket, batches).level)
    return _passing_groups(bucket, batches, level, length)
