"""Whole batches lost at the queue behind a token bucket: does any packet of a batch find the queue full?

The answer needs the future of one batch. Until its last packet has passed the bucket, all that passes is
waiting already, and passes at slots known beforehand: nothing random is left but the server. A backward
recursion over those slots, on the server's phase and the queue, therefore gives the probability exactly, for
every place of arrival at once. Part of the joint chain, `token_bucket.joint`.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from btqueue.queueing.laws import lattice
from btqueue.queueing.token_bucket.chain import LatticeBucket
from btqueue.queueing.traffic.arrivals import BernoulliBatches

Phases = tuple[Array, Array]
"""Values by server phase and queue: ``(..., M, s, K + 1)`` in services, ``(..., v, K + 1)`` away."""


def _expect_next(service: Array, vacation: Array, value: Phases) -> Phases:
    """Mean of ``value`` after the slot's last event: a service or the vacation ends, or goes on."""
    in_service, away = value

    def hazard(duration: Array) -> Array:
        staying = lattice.survival(duration)
        return jnp.where(staying > 0.0, duration[1:] / jnp.where(staying > 0.0, staying, 1.0), 1.0)[:, None]

    def go_on(values: Array) -> Array:
        return jnp.concatenate([values[..., 1:, :], values[..., -1:, :]], axis=-2)

    fresh = away[..., None, 0, :]
    next_service = in_service[..., 0, :].at[..., 0].set(fresh[..., 0])  # an empty queue ends the visit
    after_service = jnp.concatenate([next_service[..., 1:, :], fresh], axis=-2)
    departed = jnp.concatenate([after_service[..., :1], after_service[..., :-1]], axis=-1)
    ends = hazard(service)
    on_service = (1.0 - ends) * go_on(in_service) + ends * departed[..., None, :]
    ends = hazard(vacation)
    on_vacation = (1.0 - ends) * go_on(away) + ends * next_service[..., :1, :]
    return on_service, on_vacation


def batch_loss_at_queue(
    bucket: LatticeBucket, batches: BernoulliBatches, service: Array, vacation: Array, found: Phases
) -> tuple[Array, Array]:
    """Probability that a batch loses a packet at the queue, and that it does having been admitted whole.

    Backwards in the slots ``r`` until the batch's last packet passes: with ``c`` of its packets waiting,
    packets pass when ``r - 1`` is a multiple of ``token_slots``, and the last ``c`` are its own.

    Args:
        bucket: the bucket.
        batches: its input.
        service: law of a service.
        vacation: law of a vacation.
        found: law of phase, level and queue that a batch finds, after the slot's tokens:
            ``(M, s, levels, K + 1)`` for the slots of services and ``(v, levels, K + 1)`` for vacations.
    """
    sizes = jnp.asarray(batches.batch_size)
    capacity = found[1].shape[-1] - 1
    largest = sizes.shape[0] - 1
    levels = np.arange(bucket.highest + 1)
    admitted = jnp.asarray([bucket.admitted(levels, size) for size in range(largest + 1)])
    passing = jnp.asarray([bucket.passing(levels, size) for size in range(largest + 1)])
    own = jnp.arange(1, largest + 1)
    contents = jnp.arange(capacity + 1)

    def lost_with(value: Phases, waiting: Array, level: Array, at_once: Array) -> Array:
        """Sum over phases and queue of found * Pr(loss) for a batch met at ``level``."""
        target = contents + at_once

        def part(risk: Array, law: Array) -> Array:
            later = jnp.where(waiting > 0, risk[jnp.maximum(waiting - 1, 0)], 0.0)
            later = later[..., jnp.minimum(target, capacity)]
            return (law[..., level, :] * jnp.where(target > capacity, 1.0, later)).sum()

        return part(value[0], found[0]) + part(value[1], found[1])

    def contributions(value: Phases, slots_left: Array) -> Array:
        def of_count(total: Array, count: Array) -> tuple[Array, None]:
            level = slots_left + bucket.depth - count * bucket.token_slots
            valid = (level >= 0) & (level <= bucket.highest)
            level = jnp.clip(level, 0, bucket.highest)
            same = jnp.where(admitted[:, level] == count, 1.0, 0.0)
            weights = jnp.stack([sizes @ same, sizes[count] * same[count]])
            at_once = passing[count, level]
            lost = lost_with(value, count - at_once, level, at_once)
            return total + jnp.where(valid, weights * lost, 0.0), None

        return jax.lax.scan(of_count, jnp.zeros(2), own)[0]

    def slot(carry: tuple[Phases, Array], slots_left: Array) -> tuple[tuple[Phases, Array], None]:
        ahead, total = carry  # ahead: Pr(loss) after the slot's packets, with slots_left - 1 to go
        releases = (slots_left - 1) % bucket.token_slots == 0
        mine = releases & ((slots_left - 1) // bucket.token_slots < own)

        def release(risk: Array) -> Array:
            own_packet = mine.reshape((-1,) + (1,) * (risk.ndim - 1))
            joined = jnp.concatenate([risk[..., 1:], risk[..., -1:]], axis=-1)
            joined = jnp.where(own_packet & (contents == capacity), 1.0, joined)
            return jnp.where(releases, joined, risk)

        now = _expect_next(service, vacation, (release(ahead[0]), release(ahead[1])))
        # up to 0, all of the batch passes in its first slot and leaves no risk
        now = jax.tree.map(lambda risk: jnp.where(slots_left > 0, risk, 0.0), now)
        return (now, total + contributions(now, slots_left)), None

    def nothing(law: Array) -> Array:
        return jnp.zeros((largest, *law.shape[:-2], law.shape[-1]))

    start = (nothing(found[0]), nothing(found[1]))
    slots = jnp.arange(bucket.token_slots - bucket.depth, bucket.buffer * bucket.token_slots + 1)
    (_, (of_all, of_whole)), _ = jax.lax.scan(slot, (start, jnp.zeros(2)), slots)
    return of_all, of_whole
