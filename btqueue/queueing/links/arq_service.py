"""How long automatic repeat request takes, in slots: one packet, and a message under a flush timeout.

The laws follow from the matrices of a frame (`arq`) by carrying the joint law of (slot, phase, channel) from
attempt to attempt; the return packet may be of random length. Exact: what lies beyond the lattice is counted
as its tail.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from btqueue.queueing._precision import in_float64
from btqueue.queueing.laws import lattice
from btqueue.queueing.links.arq import ArqLink, by_state, frames


def _later(law: Array, slots: int) -> Array:
    """Move ``(length, s)`` weights ``slots`` later; what leaves the lattice is lost."""
    kept = law[: max(law.shape[0] - slots, 0)]
    return jnp.concatenate([jnp.zeros_like(law[: law.shape[0] - kept.shape[0]]), kept])


def _one_packet(link: ArqLink, begun: Array, limit: int | None) -> Array:
    """From ``(length, s)`` weights of (slot, channel) at a packet's start to those at its end."""
    going_on, ending = frames(link)
    law = jnp.asarray(link.frame_law)
    length = begun.shape[0]
    most = -(-(length - 1) // min(link.frame_slots)) if limit is None else limit

    def attempt(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
        phases, ended = carry
        after = jnp.zeros_like(phases)
        for index, slots in enumerate(link.frame_slots):
            moved = _later(law[index] * phases, slots)
            after = after + moved @ going_on[index]
            ended = ended + moved @ ending[index]
        return (after, ended), None

    start = jnp.concatenate([begun, jnp.zeros_like(begun)], axis=1)
    (left, ended), _ = jax.lax.scan(attempt, (start, jnp.zeros_like(begun)), None, length=most)
    # without a limit, what is left has gone past the lattice
    return ended if limit is None else ended + by_state(link, left)


@in_float64
@eqx.filter_jit
def service_law(link: ArqLink, channel: ArrayLike, length: int, limit: int | None = None) -> lattice.CutLaw:
    """Law of a packet's service, first frame to last, in slots on ``0..length-1``.

    Args:
        link: one frame.
        channel: ``(s,)`` law of the channel's state at the packet's start, see `attempts`.
        length: lattice points; with a ``limit``, ``limit`` times the longest frame plus one hold all.
        limit: most attempts.
    """
    begun = jnp.zeros((length, link.states)).at[0].set(jnp.asarray(channel))
    law = _one_packet(link, begun, limit).sum(axis=1)
    return lattice.CutLaw(law, jnp.maximum(1.0 - law.sum(), 0.0))


class Transfer(eqx.Module):
    """A message of several packets under a flush timeout.

    Attributes:
        completed: probability that every packet was acknowledged in time.
        acknowledged: law of the packets acknowledged when the message ends, ``(packets + 1,)``.
        service: law of the slots that the message takes, ``(timeout + 1,)``, a flushed one all of them.
    """

    completed: Array
    acknowledged: Array
    service: Array


@in_float64
@eqx.filter_jit
def flushed_transfer(link: ArqLink, channel: ArrayLike, packets: int, timeout: int) -> Transfer:
    """Send ``packets`` one after the other; after ``timeout`` slots all that is left is thrown away.

    The timer runs for the whole message, from the start of its first frame. A frame that would end later
    does not count.
    """
    begun = jnp.zeros((timeout + 1, link.states)).at[0].set(jnp.asarray(channel))

    def next_packet(begun: Array, _: None) -> tuple[Array, Array]:
        ended = _one_packet(link, begun, None)
        return ended, ended.sum()

    ended, reached = jax.lax.scan(next_packet, begun, None, length=packets)
    reached = jnp.concatenate([jnp.ones(1), reached, jnp.zeros(1)])
    service = ended.sum(axis=1)
    return Transfer(
        completed=reached[packets],
        acknowledged=reached[:-1] - reached[1:],
        service=service.at[timeout].add(1.0 - reached[packets]),
    )
