"""One visit to a station with two queues served in alternation.

A visit consists of at most M frames. In the first half of a frame the server sends one packet of the
inbound queue (towards the station), in the second half the station sends one of its outbound queue. A half
whose queue is empty when the half starts costs one slot; a frame in which both were empty ends the visit.
Packets arrive at both queues all the while.

The kernel is the joint law of (how long the visit lasts, the two queues at its end) given the two queues at
its start; with it come the linear functionals that every steady-state measure is made of.
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from btqueue.queueing.laws import lattice


class VisitKernel(eqx.Module):
    """What a visit does, for each pair ``s = inbound * (K_out + 1) + outbound`` at its start.

    Attributes:
        transition: ``(s, t, s')`` law of the length (index ``t``, in units of ``unit`` slots) and of the end.
        sent_inbound, sent_outbound: ``(s,)`` mean packets sent.
        time_inbound, time_outbound: ``(s, k)`` mean slots of the visit that start with content ``k``.
        unit: slots per step of ``t``: 2 where every frame has an even length, otherwise 1.
    """

    transition: Array
    sent_inbound: Array
    sent_outbound: Array
    time_inbound: Array
    time_outbound: Array
    unit: int = eqx.field(static=True)


def frame_unit(lengths: tuple[int, ...]) -> int:
    """2 if every packet takes an odd number of slots (then all frames are even), otherwise 1."""
    return 2 if all(length % 2 for length in lengths) else 1


def packet_lengths(packet_slots: np.ndarray) -> tuple[int, ...]:
    """The lengths that a law of packet lengths allows, in slots."""
    return tuple(int(length) for length in np.flatnonzero(np.asarray(packet_slots)))


def length_steps(lengths: tuple[int, ...], limit: int) -> int:
    """Number of lattice points of a visit's length, 0 included."""
    return 2 * max(lengths) * limit // frame_unit(lengths) + 1


def half_steps(length: int, unit: int, *, second: bool) -> int:
    """Steps of elapsed time for half a frame of ``length`` slots.

    With a unit of 2 the first half ends at an odd slot, which is counted down and made good by the second.
    """
    return (length + (1 if second else -1)) // 2 if unit == 2 else length


def delay(law: Array, steps: int, axis: int) -> Array:
    """Move mass ``steps`` later along ``axis`` (what would leave the axis is zero by construction)."""
    if steps == 0:
        return law
    kept = jax.lax.slice_in_dim(law, 0, law.shape[axis] - steps, axis=axis)
    padding = [(0, 0)] * law.ndim
    padding[axis] = (steps, 0)
    return jnp.pad(kept, padding)


def depart(law: Array, axis: int) -> Array:
    """One packet leaves the queue on ``axis``, whose entry 0 holds no mass."""
    shifted = jax.lax.slice_in_dim(law, 1, law.shape[axis], axis=axis)
    padding = [(0, 0)] * law.ndim
    padding[axis] = (0, 1)
    return jnp.pad(shifted, padding)


def filling_in(slots: int, slot_law: Array) -> tuple[Array, Array]:
    """Matrices of a queue that fills for ``slots`` slots: its end, and the time it spends at each content."""
    size = slot_law.shape[0]
    duration = jnp.asarray(lattice.point(slots))
    end = lattice.filling_matrix(lattice.compound(duration, slot_law, size))
    time = lattice.filling_matrix(lattice.compound(lattice.survival(duration), slot_law, size))
    return end, time


@partial(jax.jit, static_argnames=("lengths", "limit"))
def visit_kernel(
    inbound_slot: Array, outbound_slot: Array, packet_law: Array, *, lengths: tuple[int, ...], limit: int
) -> VisitKernel:
    """The kernel of a visit.

    Args:
        inbound_slot: law of the packets that join the inbound queue in a slot, on ``0..K``.
        outbound_slot: the same for the outbound queue, with its own ``K``.
        packet_law: law of a packet's slots, indexed by slots.
        lengths: the slots with positive probability in ``packet_law``.
        limit: most frames a visit.
    """
    inbound, outbound = inbound_slot.shape[0], outbound_slot.shape[0]
    states = inbound * outbound
    unit = frame_unit(lengths)
    steps = length_steps(lengths, limit)
    fills = {
        slots: (filling_in(slots, inbound_slot), filling_in(slots, outbound_slot)) for slots in {1, *lengths}
    }

    def pass_slots(law: Array, slots: int, *, second: bool) -> Array:
        """Let ``slots`` go by: both queues fill, the clock moves on. ``law`` is (s, t, inbound, outbound)."""
        (fill_in, _), (fill_out, _) = fills[slots]
        filled = jnp.einsum("stio,ij,op->stjp", law, fill_in, fill_out)
        return delay(filled, half_steps(slots, unit, second=second), axis=1)

    def time_spent(law: Array, slots: int) -> tuple[Array, Array]:
        (_, time_in), (_, time_out) = fills[slots]
        return law.sum((1, 3)) @ time_in, law.sum((1, 2)) @ time_out

    def send(law: Array, axis: int, *, second: bool) -> tuple[Array, tuple[Array, Array]]:
        ends = sum(packet_law[slots] * pass_slots(law, slots, second=second) for slots in lengths)
        times = [time_spent(packet_law[slots] * law, slots) for slots in lengths]
        return depart(jnp.asarray(ends), axis), jax.tree.map(lambda *parts: sum(parts), *times)

    def frame(carry: tuple[Array, ...], _: None) -> tuple[tuple[Array, ...], None]:
        going, ended, sent_in, sent_out, time_in, time_out = carry
        polled = jnp.zeros_like(going).at[:, :, 0].set(going[:, :, 0])
        with_packet = going - polled
        after_poll = pass_slots(polled, 1, second=False)
        after_packet, times_packet = send(with_packet, 2, second=False)
        either = after_poll + after_packet
        answered = either.at[..., 0].set(0.0)
        idle = after_poll - after_poll.at[..., 0].set(0.0)
        null = after_packet - after_packet.at[..., 0].set(0.0)
        after_answer, times_answer = send(answered, 3, second=True)
        spent = [
            time_spent(polled, 1),
            times_packet,
            time_spent(idle + null, 1),
            times_answer,
        ]
        return (
            after_answer + pass_slots(null, 1, second=True),
            ended + pass_slots(idle, 1, second=True),
            sent_in + with_packet.sum((1, 2, 3)),
            sent_out + answered.sum((1, 2, 3)),
            time_in + sum(part[0] for part in spent),
            time_out + sum(part[1] for part in spent),
        ), None

    start = jnp.zeros((states, steps, states)).at[:, 0].set(jnp.eye(states))
    start = start.reshape(states, steps, inbound, outbound)
    none = jnp.zeros(states)
    times = (jnp.zeros((states, inbound)), jnp.zeros((states, outbound)))
    carry = (start, jnp.zeros_like(start), none, none, *times)
    (going, ended, *means), _ = jax.lax.scan(frame, carry, None, length=limit)
    return VisitKernel((going + ended).reshape(states, steps, states), *means, unit=unit)
