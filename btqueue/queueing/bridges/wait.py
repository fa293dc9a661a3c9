"""How long a packet waits at a place until a walk-in bridge has taken it, as a transform in time.

It comes while the bridge is away, while it tours with the place, or within an exchange. From then on all is
counted by position: with ``k - 1`` packets before it, it is taken in the k-th frame, for its own presence
keeps every frame from being empty; if the limit cuts it off, the next exchange goes on from there. What
follows an exchange that was cut off is taken as independent of it.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax import Array

from btqueue.queueing.bridges import bulk_exchange
from btqueue.queueing.bridges.bulk_exchange import fill
from btqueue.queueing.bridges.stay import (
    Stay,
    StayShape,
    StayTables,
    exchange_starts,
    later_starts,
    sum_law,
    waiting_after,
)
from btqueue.queueing.laws import lattice


class Stages(eqx.Module):
    """Starts of the exchanges of a stay, ``(u, d)`` each, and what remains held and waiting after each."""

    starts: list[Array]
    held: list[Array]
    waiting: list[Array]


def stay_stages(entry: Array, stay: Stay, tables: StayTables, shape: StayShape) -> Stages:
    """The exchanges of the stay that follows an entry."""
    starts, held, waiting = [exchange_starts(entry, stay, tables, shape).sum(axis=0)], [], []
    for turn in range(shape.exchanges):
        remaining = bulk_exchange.leftovers(
            starts[turn], tables.arrival_rate, tables.packet_slots, lengths=shape.lengths, limit=shape.limit
        )
        held.append(remaining[0])
        waiting.append(remaining[1])
        if turn + 1 < shape.exchanges:
            starts.append(later_starts(held[turn], waiting[turn], tables).sum(axis=0))
    return Stages(starts, held, waiting)


def _found_in_slot(rate: Array, size: int, slots: int) -> Array:
    """Matrices from the content at a start to what an arrival of a later slot finds, ``(slots, ., .)``."""
    part = jax.scipy.special.gammainc(jnp.arange(1.0, size + 1.0), rate) / rate
    before = lattice.filling_matrix(lattice.CutLaw(part, jnp.maximum(1.0 - part.sum(), 0.0)))
    return jnp.stack([fill(rate, slot, size) @ before for slot in range(slots)])


def _came_between(gap: Array, waiting: Array, found: Array, rate: Array) -> Array:
    """Packets that come in a gap, a cycle: those with ``s`` slots of it to go, at place ``k``, ``(u, s, k)``.

    ``gap`` is the joint law of its slots and of the packets held meanwhile, ``(u, v)``.
    """
    times = gap.shape[1]
    before = waiting_after(waiting, rate, times) @ found[0]
    to_go = jnp.arange(times)[:, None] + 1 + jnp.arange(times)[None, :]  # s + 1 + e is the whole gap

    def with_held(law: Array) -> Array:
        whole = jnp.where(to_go < times, law[jnp.minimum(to_go, times - 1)], 0.0)
        return rate * whole @ before[:, :-1]

    return jax.lax.map(with_held, gap)


def _came_within(start: Array, found: Array, tables: StayTables, shape: StayShape) -> tuple[Array, Array]:
    """Packets that come in an exchange, by the frame in which they come.

    Returns:
        ``(M, u, s, k)``: ``s`` slots before the end of the frame, in place ``k``, with ``u`` then held; and
        ``(M, s, k)`` for those that come in the empty frame that ends the exchange.
    """
    rate, size = tables.arrival_rate, shape.size
    most = max(2 * max(shape.lengths), bulk_exchange.EMPTY_FRAME)
    shares = [(slots, tables.packet_slots[slots]) for slots in shape.lengths]

    def came(law: Array, slots: int, sending: int = 0) -> Array:
        """Those that come in ``slots`` slots; one packet is ahead of all only while it is being sent."""
        before = rate * jnp.einsum("ud,ide->uie", law, found[:slots])[:, ::-1, :-1]
        places = jnp.pad(before[:, :, sending:], ((0, 0), (0, most - slots), (0, sending)))
        return places

    def later(places: Array, slots: int) -> Array:
        return jnp.pad(places, ((0, 0), (slots, 0), (0, 0)))[:, :most]

    def frame(going: Array, _: None) -> tuple[Array, tuple[Array, Array]]:
        sent = going.at[:, 0].set(0.0)
        polled = jnp.zeros_like(going).at[1:, 0].set(going[1:, 0])
        empty = jnp.zeros((1, size)).at[0, 0].set(going[0, 0])
        first = came(polled, 1) + sum(share * came(sent, slots, 1) for slots, share in shares)
        after = sum(share * sent @ fill(rate, slots, size) for slots, share in shares)
        between = jnp.pad(jnp.asarray(after)[:, 1:], ((0, 0), (0, 1))) + polled @ fill(rate, 1, size)
        given, none = between[1:], between[:1]
        with_answer = sum(share * (later(first[1:], slots) + came(given, slots)) for slots, share in shares)
        without = later(first[:1], 1) + came(none, 1)
        places = jnp.pad(jnp.asarray(with_answer), ((0, 1), (0, 0), (0, 0))).at[:1].add(without)
        following = jnp.asarray(sum(share * given @ fill(rate, slots, size) for slots, share in shares))
        following = jnp.pad(following, ((0, 1), (0, 0))).at[:1].add(none @ fill(rate, 1, size))
        return following, (places, came(empty, bulk_exchange.EMPTY_FRAME)[0])

    return jax.lax.scan(frame, start, None, length=shape.limit)[1]


def phases(points: int) -> Array:
    """Transform of one slot."""
    return jnp.exp(-2j * jnp.pi * jnp.arange(points // 2 + 1) / points)


def _taken_after(frames: Array, tables: StayTables, shape: StayShape, onward: Array, points: int) -> Array:
    """Transform of the time from a frame's start until the packet in place ``k`` is taken, ``(u, k, f)``.

    ``frames`` are left; ``onward`` is the transform of what follows the exchange for one in place ``k`` then,
    ``(k, f)``.
    """
    packet = jnp.fft.rfft(tables.packet_slots, points)
    idle = phases(points)
    held = jnp.arange(shape.held + 1)[:, None, None]
    place = jnp.arange(1, shape.size)[None, :, None]

    def answered(count: Array) -> Array:
        given = jnp.minimum(held, count)
        return packet**given * idle ** (count - given)

    here = packet**place * answered(place - 1)
    cut = packet**frames * answered(frames) * onward[jnp.maximum(place[0, :, 0] - 1 - frames, 0)][None]
    return jnp.where(place <= frames, here, cut)


def wait_transform(entry: Array, stay: Stay, tables: StayTables, shape: StayShape, points: int) -> Array:
    """Transform of the slots until a packet is taken, not normalised: times packets accepted a stay."""
    rate, places = tables.arrival_rate, shape.size - 1
    slots = max(2 * max(shape.lengths), bulk_exchange.EMPTY_FRAME)
    found = _found_in_slot(rate, shape.size, slots)
    stages = stay_stages(entry, stay, tables, shape)
    absence = jax.vmap(sum_law, in_axes=(0, None))(entry.T / entry.sum(), tables.residuals)
    starting_with = [absence.sum(axis=1), *stages.held[:-1]]
    gaps = [absence, *(held[:, None] * tables.tour[None, :] for held in stages.held[:-1])]
    gap_transforms = [jnp.fft.rfft(gap.sum(axis=0), points) for gap in gaps]
    waiting = [stay.left_waiting, *stages.waiting[:-1]]

    # place k at the start of an exchange, averaged over the packets held: those cut off need the next one
    average = [jnp.zeros((places, points // 2 + 1), dtype=complex) for _ in range(shape.exchanges)]
    for _ in range(-(-places // shape.limit)):
        average = [
            jnp.einsum(
                "u,ukf->kf",
                starting_with[turn],
                _taken_after(
                    jnp.asarray(shape.limit),
                    tables,
                    shape,
                    gap_transforms[(turn + 1) % shape.exchanges] * average[(turn + 1) % shape.exchanges],
                    points,
                ),
            )
            for turn in range(shape.exchanges)
        ]

    total = jnp.zeros(points // 2 + 1, dtype=complex)
    for turn in range(shape.exchanges):
        next_one = (turn + 1) % shape.exchanges
        onward = gap_transforms[next_one] * average[next_one]
        between = jnp.fft.rfft(_came_between(gaps[turn], waiting[turn], found, rate), points, axis=1)
        taken = _taken_after(jnp.asarray(shape.limit), tables, shape, onward, points)
        total = total + jnp.einsum("ufk,ukf->f", between, taken)
        within, at_end = _came_within(stages.starts[turn], found, tables, shape)
        total = total + jnp.einsum("fk,kf->f", jnp.fft.rfft(at_end.sum(axis=0), points, axis=0), onward)

        def frame(sum_: Array, one: tuple[Array, Array], onward: Array = onward) -> tuple[Array, None]:
            came, left = one
            taken = _taken_after(left, tables, shape, onward, points)
            return sum_ + jnp.einsum("ufk,ukf->f", jnp.fft.rfft(came, points, axis=1), taken), None

        left = shape.limit - 1 - jnp.arange(shape.limit)
        total = jax.lax.scan(frame, total, (within, left))[0]
    return total
