r"""Automatic repeat request with a one-bit sequence number: attempts and service time of a packet, as laws.

A frame is a forward packet of ``n`` slots and a return packet that carries the acknowledgement. The sender
repeats until it decodes one. The receiver filters duplicates and acknowledges them again, so a packet passes
through two phases: **U**, not delivered, and **D**, delivered but not acknowledged. With the channel's state
carried along, one frame is

    T_UU = (A - G) B         T_UD = G (B - C)       t_U = G C
                             T_DD = A B - H C       t_D = H C

where ``A``, ``B`` move the channel over the forward and the return packet, ``H`` (the forward packet is
detected), ``G`` (it is also intact) and ``C`` (the return packet is decoded) are the parts of them in which
that happens. The number of frames is a discrete phase-type law, and everything below is linear algebra on
``2 s`` states for a channel of ``s``.

Without memory, with probabilities h, s, r: ``E[N] = 1/(h s) + (1 - r)/(h r)``.

Sources: Neuts, Matrix-Geometric Solutions in Stochastic Models (1981), chapter 2 (phase-type laws); the two
phases as useful/duplicate in Zanella & Zorzi, WCNC 2008.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.errors import is_traced, require_count, require_law
from btqueue.queueing.laws import lattice


class ArqLink(eqx.Module):
    """What one frame does to a packet and to the channel; make it with `memoryless_link` or `fading_link`.

    Attributes:
        moved: ``(s, s)`` channel over the forward packet (A), rows summing to one.
        detected: ``(s, s)`` the part in which the receiver detects the packet (H).
        intact: ``(s, s)`` the part of that in which it is also free of errors (G).
        replied: ``(j, s, s)`` channel over the return packet (B), one matrix for each length it may take.
        acknowledged: ``(j, s, s)`` the part in which the sender decodes it (C).
        frame_law: ``(j,)`` law of the lengths.
        frame_slots: slots of the whole frame for each length.
    """

    moved: ArrayLike
    detected: ArrayLike
    intact: ArrayLike
    replied: ArrayLike
    acknowledged: ArrayLike
    frame_law: ArrayLike
    frame_slots: tuple[int, ...] = eqx.field(static=True)

    @property
    def states(self) -> int:
        """States of the channel, s."""
        return int(np.shape(self.moved)[0])


class Frame(NamedTuple):
    """One frame on (phase, channel state), the phases U and D in this order."""

    going_on: Array  # (..., 2 s, 2 s)
    ending: Array  # (..., 2 s, s): acknowledged, by the state it leaves the channel in


class Attempts(eqx.Module):
    """How many frames a packet takes.

    Attributes:
        mean: E[N].
        second_moment: E[N^2].
        delivered: probability that the packet is received (1 without a limit).
        left_in: law of the channel's state when the sender turns to the next packet, ``(s,)``.
    """

    mean: Array
    second_moment: Array
    delivered: Array
    left_in: Array


def expected_attempts(detected: Any, intact: Any, acknowledged: Any) -> Any:
    """E[N] without memory or limit, ``1/(h s) + (1 - r)/(h r)``; of numbers, arrays or symbols."""
    return 1 / (detected * intact) + (1 - acknowledged) / (detected * acknowledged)


def attempts_pgf(z: Any, detected: Any, intact: Any, acknowledged: Any) -> Any:
    """Generating function of N without memory or limit; of numbers, arrays or symbols.

    Put ``E[z^(frame slots)]`` in place of ``z`` for the service time in slots.
    """
    first, again = detected * intact, detected * acknowledged
    duplicates = again * z / (1 - (1 - again) * z)
    return first * z * (acknowledged + (1 - acknowledged) * duplicates) / (1 - (1 - first) * z)


def limited_delivery(detected: Any, intact: Any, limit: Any) -> Any:
    """Probability that at most ``limit`` attempts deliver, without memory; of numbers, arrays or symbols."""
    return 1 - (1 - detected * intact) ** limit


def _require_shares(values: ArrayLike, name: str) -> None:
    if not is_traced(values):
        numbers = np.asarray(values)
        if not ((numbers >= 0) & (numbers <= 1)).all():
            raise ValueError(f"{name} must lie within [0, 1], got {values}")


def _reply_lengths(slots: int, reply: int | ArrayLike) -> tuple[tuple[int, ...], tuple[int, ...], Array]:
    """The return packet's possible slots, those of the frame, and their law."""
    require_count(slots, "slots")
    law = lattice.point(int(reply)) if isinstance(reply, int | np.integer) else reply
    require_law(law, "reply")
    lengths = range(np.shape(law)[0]) if is_traced(law) else np.flatnonzero(np.asarray(law))
    replies = tuple(int(length) for length in lengths)
    return replies, tuple(slots + length for length in replies), jnp.asarray(law)[jnp.asarray(replies)]


@in_float64
def fading_link(
    *,
    slot_transition: ArrayLike,
    detected: ArrayLike,
    intact: ArrayLike,
    acknowledged: ArrayLike,
    slots: int,
    reply: int | ArrayLike = 1,
) -> ArqLink:
    """A channel of finitely many states whose state at a packet's end decides about the packet.

    For other models of what a packet sees, fill in the matrices of `ArqLink` directly.

    Args:
        slot_transition: ``(s, s)`` the channel over one slot.
        detected: ``(s,)`` probability that the forward packet is detected and addressed, by state.
        intact: ``(s,)`` that a detected one is free of errors.
        acknowledged: ``(s,)`` that the return packet is decoded.
        slots: slots of the forward packet.
        reply: slots of the return packet, a number or their law (a vector indexed by slots).

    Raises:
        ValueError: if a probability is outside [0, 1], or something that has to be a law is not.
    """
    require_law(slot_transition, "slot_transition")
    for values, name in ((detected, "detected"), (intact, "intact"), (acknowledged, "acknowledged")):
        _require_shares(values, name)
    replies, frames, law = _reply_lengths(slots, reply)
    slot = jnp.asarray(slot_transition, dtype=float)
    moved = jnp.linalg.matrix_power(slot, slots)
    replied = jnp.stack([jnp.linalg.matrix_power(slot, length) for length in replies])
    seen = moved * jnp.asarray(detected)
    return ArqLink(
        moved, seen, seen * jnp.asarray(intact), replied, replied * jnp.asarray(acknowledged), law, frames
    )


@in_float64
def memoryless_link(
    *, detected: ArrayLike, intact: ArrayLike, acknowledged: ArrayLike, slots: int, reply: int | ArrayLike = 1
) -> ArqLink:
    """Independent attempts: `fading_link` with one state; the probabilities are numbers."""
    return fading_link(
        slot_transition=np.ones((1, 1)),
        detected=jnp.reshape(jnp.asarray(detected, float), (1,)),
        intact=jnp.reshape(jnp.asarray(intact, float), (1,)),
        acknowledged=jnp.reshape(jnp.asarray(acknowledged, float), (1,)),
        slots=slots,
        reply=reply,
    )


def frames(link: ArqLink) -> Frame:
    """One frame for each length of the return packet, without its probability."""
    moved, detected, intact = (jnp.asarray(part) for part in (link.moved, link.detected, link.intact))
    replied, acknowledged = jnp.asarray(link.replied), jnp.asarray(link.acknowledged)
    missed = replied - acknowledged
    going_on = jnp.block(
        [
            [(moved - intact) @ replied, intact @ missed],
            [jnp.zeros_like(replied), (moved - detected) @ replied + detected @ missed],
        ]
    )
    ending = jnp.concatenate([intact @ acknowledged, detected @ acknowledged], axis=-2)
    return Frame(going_on, ending)


def frame(link: ArqLink) -> Frame:
    """One frame, averaged over the return packet's length: T and t of the phase-type law."""
    law = jnp.asarray(link.frame_law)
    going_on, ending = frames(link)
    return Frame(jnp.tensordot(law, going_on, 1), jnp.tensordot(law, ending, 1))


def _start(link: ArqLink, channel: ArrayLike) -> Array:
    """A new packet: phase U."""
    channel = jnp.asarray(channel, dtype=float)
    return jnp.concatenate([channel, jnp.zeros(link.states)])


def by_state(link: ArqLink, phases: Array) -> Array:
    """The channel's state alone, ``(..., 2 s) -> (..., s)``."""
    return phases[..., : link.states] + phases[..., link.states :]


def _to_next_packet(link: ArqLink, limit: int | None) -> Array:
    """``(s, s)`` channel from the start of one packet to the start of the next, of a saturated sender."""
    going_on, ending = frame(link)
    fresh = jnp.eye(2 * link.states)[: link.states]
    if limit is None:
        return fresh @ jnp.linalg.solve(jnp.eye(2 * link.states) - going_on, ending)

    def attempt(phases: Array, _: None) -> tuple[Array, Array]:
        return phases @ going_on, phases @ ending

    unfinished, ended = jax.lax.scan(attempt, fresh, None, length=limit)
    return ended.sum(axis=0) + by_state(link, unfinished)


@in_float64
@eqx.filter_jit
def saturated_start(link: ArqLink, limit: int | None = None) -> Array:
    """Law of the channel's state at the start of a packet of a sender that always has one, ``(s,)``.

    With a ``limit`` the sender turns to the next packet after so many attempts. Every state of the channel
    has to lead to every other.
    """
    move = _to_next_packet(link, limit)
    size = move.shape[0]
    # pi = pi M and pi 1 = 1, put into one regular system
    return jnp.linalg.solve((jnp.eye(size) - move + 1.0).T, jnp.ones(size))


@in_float64
@eqx.filter_jit
def attempts(link: ArqLink, channel: ArrayLike, limit: int | None = None) -> Attempts:
    """Moments of the number of frames of a packet, and whether it gets through.

    Args:
        link: one frame.
        channel: ``(s,)`` law of the channel's state at the packet's start: the channel's own stationary law
            for a packet that finds the link idle, `saturated_start` for a sender that always has one.
        limit: most attempts R; None repeats until acknowledged. A packet whose acknowledgements are lost
            counts as delivered.

    Returns:
        The moments; infinite (or NaN) without a limit on a link that never delivers.
    """
    going_on, ending = frame(link)
    start = _start(link, channel)
    size = start.shape[0]
    if limit is None:
        visits = jnp.linalg.solve((jnp.eye(size) - going_on).T, start)  # mean frames begun in each phase
        mean = visits.sum()
        second = 2.0 * jnp.linalg.solve((jnp.eye(size) - going_on).T, visits).sum() - mean
        return Attempts(mean, second, jnp.ones(()), visits @ ending)

    def attempt(phases: Array, number: Array) -> tuple[Array, tuple[Array, Array, Array]]:
        # E[N^2] = sum_k (2 k + 1) Pr(N > k), without a difference of large terms
        begun = phases.sum()
        return phases @ going_on, (begun, (2.0 * number + 1.0) * begun, phases @ ending)

    left, (begun, squares, ended) = jax.lax.scan(attempt, start, jnp.arange(float(limit)))
    delivered = ended.sum() + left[link.states :].sum()
    return Attempts(begun.sum(), squares.sum(), delivered, ended.sum(axis=0) + by_state(link, left))


@in_float64
@eqx.filter_jit
def attempts_law(link: ArqLink, channel: ArrayLike, length: int, limit: int | None = None) -> lattice.CutLaw:
    """Law of the number of frames of a packet on ``0..length-1``; a ``limit`` puts the rest on itself."""
    going_on, ending = frame(link)

    def attempt(phases: Array, number: Array) -> tuple[Array, Array]:
        last = jnp.asarray(False) if limit is None else number == limit
        ends = jnp.where(last, phases.sum(), (phases @ ending).sum())
        return jnp.where(last, 0.0, phases @ going_on), ends

    left, law = jax.lax.scan(attempt, _start(link, channel), jnp.arange(1, length))
    return lattice.CutLaw(jnp.concatenate([jnp.zeros(1), law]), left.sum())


@in_float64
@eqx.filter_jit
def saturated_goodput(link: ArqLink, limit: int | None = None) -> Array:
    """Packets delivered a slot by a sender that always has one.

    Where detection does not depend on the channel's state, this depends neither on the limit nor on how long
    the channel remembers: burstiness changes the variance of the service only.
    """
    result = attempts(link, saturated_start(link, limit), limit)
    slots = jnp.asarray(link.frame_law) @ jnp.asarray(link.frame_slots, float)
    return result.delivered / (result.mean * slots)
