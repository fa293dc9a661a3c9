"""A visit from its frames: when it ends, how long it takes, what it leaves behind.

If a visit never ended early, the two queues of a station would each run by themselves, tied only through the
lengths of each other's halves. The visit ends at the first frame that finds both empty, and what follows then
is again the same pair of queues, started afresh. With ``r_j`` the probability that frame j finds both empty
when visits do not end, and ``s_m`` the same m frames after a fresh start, the end ``h_j`` follows from

    h_j = r_j - sum_{i<j} h_i s_{j-1-i}

(first passage from renewal, Feller vol. 1, ch. XIII), and every measure of the frames of the visit from the
same measure of the unending one in the same way.

What is approximate is the two queues together: `pairs.queue_runs`.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from btqueue.queueing.pairs.queue_runs import TINY, Runs


class Unending(NamedTuple):
    """Measures of frame j, ``(..., m)``, if visits did not end.

    Both queues empty, that times the slots elapsed until its end, each queue idle, the mean product of the
    two halves, and the mean of frame times slots elapsed.
    """

    both: Array
    both_elapsed: Array
    in_idle: Array
    out_idle: Array
    product: Array
    frame_elapsed: Array


class Visit(NamedTuple):
    """A visit by class of start, ``(g,)``, or class and frame, ``(g, m)``.

    Attributes:
        ends: ``(g, m)`` it ends because frame j found both queues empty.
        slots_at_end: ``(g, m)`` mean slots times that probability.
        full: ``(g,)`` it takes all frames.
        mean, mean_square: ``(g,)`` of its slots.
    """

    ends: Array
    slots_at_end: Array
    full: Array
    mean: Array
    mean_square: Array


def unending(runs: Runs, groups: Array, mean_slots: Array, idle_stays: Array) -> Unending:
    """Put the two queues together; ``idle_stays``: nothing comes to the outbound queue during a poll."""

    def both(out: Array, in_: Array) -> Array:
        return jnp.einsum("grs,grm,gsm->gm", groups, out, in_)

    def out(values: Array) -> Array:
        return jnp.einsum("grs,grm->gm", groups, values)

    def in_(values: Array) -> Array:
        return jnp.einsum("grs,gsm->gm", groups, values)

    more_in, more_out = mean_slots[0] - 1.0, mean_slots[1] - 1.0
    together = both(runs.out_empty, runs.in_empty)
    together = together + both(runs.out_pull, runs.in_lean) + both(runs.out_lean, runs.in_pull)
    found = together * idle_stays
    elapsed = both(runs.out_empty, runs.in_elapsed_empty) + both(runs.out_elapsed_empty, runs.in_empty)
    in_idle, out_idle = in_(runs.in_empty), out(runs.out_skips)
    own_in, own_out = in_(runs.in_elapsed), out(runs.out_elapsed)
    product = (
        1.0
        + more_in * (1.0 - in_idle)
        + more_out * (1.0 - out_idle)
        + more_in * more_out * (1.0 - in_idle - out_idle + both(runs.out_skips, runs.in_empty))
    )
    # while one queue has taken more slots than usual, the other is empty less often than usual
    in_idle_elapsed = both(runs.out_elapsed, runs.in_empty) + both(runs.out_drag, runs.in_pull)
    out_idle_elapsed = both(runs.out_skips, runs.in_elapsed) + both(runs.out_pull, runs.in_drag)
    in_part = own_in - in_(runs.in_elapsed_empty) + own_out - in_idle_elapsed
    out_part = own_out - out(runs.out_elapsed_skips) + own_in - out_idle_elapsed
    frame_elapsed = 2.0 * (own_in + own_out) + more_in * in_part + more_out * out_part
    return Unending(found, elapsed * idle_stays + 2.0 * found, in_idle, out_idle, product, frame_elapsed)


def visit(
    now: Unending, fresh: Unending, mean_slots: Array, square_slots: Array, limit: Array, longest: Array
) -> Visit:
    """End the visit where both queues are found empty; ``fresh`` ``(1, m)`` is the pair started afresh.

    ``square_slots`` are the mean squares of the packets' slots, ``longest`` the slots of the longest frame.
    """
    classes, frames = now.both.shape
    more_in, more_out = mean_slots[0] - 1.0, mean_slots[1] - 1.0
    fresh = Unending(*(values[0] for values in fresh))
    busy = 1.0 - fresh.in_idle, 1.0 - fresh.out_idle
    afresh = jnp.stack([fresh.both, fresh.both_elapsed, *busy, fresh.product, fresh.frame_elapsed])
    frame_afresh = 2.0 + more_in * busy[0] + more_out * busy[1]

    def advance(carry: tuple[Array, Array, Array], frame: tuple[Array, ...]) -> tuple[tuple, tuple]:
        ended_before, elapsed_before, ended = carry  # latest first along the last axis
        both, both_elapsed, in_busy, out_busy, product, frame_elapsed, on, number = frame
        again = afresh @ ended_before.T
        end = jnp.clip(both - again[0], 0.0, jnp.maximum(1.0 - ended, 0.0)) * on
        elapsed = both_elapsed - again[1] - elapsed_before @ fresh.both
        length = jnp.clip(elapsed / jnp.maximum(end, TINY), 2.0 * (number + 1), 2.0 + number * longest)
        elapsed = end * length
        alive = (1.0 - ended) * on
        waited = frame_elapsed - again[5] - elapsed_before @ frame_afresh
        out = (
            end,
            elapsed,
            alive,
            jnp.clip(in_busy - again[2], 0.0, alive),
            jnp.clip(out_busy - again[3], 0.0, alive),
            (product - again[4]) * on,
            jnp.maximum(waited, 0.0) * on,
        )
        return (_push(ended_before, end), _push(elapsed_before, elapsed), ended + end), out

    none = jnp.zeros((classes, frames))
    on = (jnp.arange(frames) < limit).astype(none.dtype)
    measures = (
        now.both,
        now.both_elapsed,
        1.0 - now.in_idle,
        1.0 - now.out_idle,
        now.product,
        now.frame_elapsed,
    )
    columns = (*(measure.T for measure in measures), on, jnp.arange(float(frames)))
    (_, _, ended), by_frame = jax.lax.scan(advance, (none, none, jnp.zeros(classes)), columns)
    end, elapsed, alive, in_busy, out_busy, product, waited = by_frame
    squares = 2.0 * alive + (square_slots[0] - 1.0) * in_busy + (square_slots[1] - 1.0) * out_busy
    mean = (2.0 * alive + more_in * in_busy + more_out * out_busy).sum(axis=0)
    mean_square = (squares + 2.0 * product + 2.0 * waited).sum(axis=0)
    return Visit(end.T, elapsed.T, jnp.maximum(1.0 - ended, 0.0), mean, mean_square)


def _push(window: Array, new: Array) -> Array:
    return jnp.concatenate([new[:, None], window[:, :-1]], axis=1)
