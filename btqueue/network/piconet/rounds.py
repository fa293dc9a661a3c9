"""How long the rounds of a connection last, and what its segments meet, from tokens, air and radio.

A round is let out by the acknowledgements of the one before, so its segments are as far apart as these: at
once after a round of one segment, else by the tokens that the round before had to wait for, or by its turns
on the air. A segment's round trip is that of a lone one, or what remains of it once the last packet has its
tokens, or what its turn on the air takes. A round lasts as long as the round trip of its first segment, for
then the next one begins.

Tokens are counted as missing ones, the *level*, from a full bucket at -depth upwards. The level at the start of
a round is known by its mean for each state of TCP: from one timeout to the next levels follow the rounds almost
without chance, and a timeout fills the bucket. A segment that waits for tokens goes out packet by packet as
they come, and its packets meet a channel that has changed in between.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from btqueue.transport.round_law import Channel, RoundLaw, Times, round_law
from btqueue.transport.round_structure import RoundStructure

ROUNDED = 1 / 16
"""Share of a segment's tokens within which the corner at which a backlog begins is rounded off."""
SOFT = 0.1
"""Width of the join of two limits, as a share of a segment's time on the air."""
ORDER = 8
"""Order of the norm that stands for a maximum."""
TINY = 1e-300


def positive(x: Array, width: Array | float) -> Array:
    """Return max(x, 0), with a parabola in the place of the corner within `width` of it."""
    near = jnp.clip((x + width) / (2.0 * width), 0.0, 1.0)
    return jnp.where(x >= width, x, width * near**2)


def longer(one: Array, other: Array, width: Array | float) -> Array:
    """Return the larger of two numbers, rounded off by `width` where they are equal."""
    return other + positive(one - other, width)


def shorter(one: Array, other: Array, width: Array | float) -> Array:
    """Return the lesser of two numbers, rounded off by `width` where they are equal."""
    return one - positive(one - other, width)


def greater(one: Array, other: Array) -> Array:
    """Return about the larger of two numbers that are not negative: their norm of order `ORDER`."""
    most = jnp.maximum(jnp.maximum(one, other), 1e-100)
    return most * ((one / most) ** ORDER + (other / most) ** ORDER) ** (1.0 / ORDER)


def step(x: Array) -> Array:
    """Return a step from 0 to 1 between x = 0 and 1."""
    x = jnp.clip(x, 0.0, 1.0)
    return x * x * (3.0 - 2.0 * x)


class Tokens(NamedTuple):
    """A token bucket, in bytes.

    Attributes:
        rate: tokens that are left to these data (bytes/s).
        prices: (N,) of the packets of a segment.
        depth: of the bucket.
        places: packets that can wait.
    """

    rate: Array
    prices: Array
    depth: Array
    places: Array

    @property
    def price(self) -> Array:
        """Tokens of a segment."""
        return self.prices.sum()

    @property
    def packet(self) -> Array:
        """Tokens of one of its packets, on average."""
        return self.price / self.prices.shape[0]

    @property
    def top(self) -> Array:
        """The highest level: all places taken."""
        return self.places * self.packet

    def wait(self, level: Array) -> Array:
        """Return the time until so many missing tokens have come (s)."""
        return positive(level, ROUNDED * self.price) / self.rate

    def packet_waits(self, level: Array) -> Array:
        """(...) missing tokens when a segment comes -> (..., N) waits of its packets (s)."""
        return self.wait(level[..., None] + jnp.cumsum(self.prices))

    def refuses(self, level: Array) -> Array:
        """Return the probability that at a level at least one packet of a segment is refused.

        The level from which on there is no place for the last packet is known to one packet, because packets
        differ in size and acknowledgements come between.
        """
        return step((level - self.top) / self.packet + self.prices.shape[0] + 0.5)

    def taken(self, level: Array) -> Array:
        """Return the tokens that a segment takes: those of packets that are refused are left."""
        over = positive(level + self.price - self.top, self.packet / 2)
        left = shorter(over, self.price, 2 * ROUNDED * self.price)
        return self.price - self.refuses(level) * left


class Turns(NamedTuple):
    """Times on the air beside others (s); see `exchange.Exchange`.

    Attributes:
        lone: 1 if both hops are on one link.
        alone: round trip of a lone segment.
        head, behind, spacing, apart, train: see there.
        answer: wait of the acknowledgement for a chance to be sent.
        steps: (N - 1,) least times from one packet to the next.
    """

    lone: Array
    alone: Array
    head: Array
    behind: Array
    spacing: Array
    apart: Array
    train: Array
    answer: Array
    steps: Array


class Flight(NamedTuple):
    """Segments by state and place, (S, W): missing tokens when they come, tokens taken, round trip."""

    level: Array
    taken: Array
    trip: Array


class Rounds(NamedTuple):
    """Rounds of a connection and their law.

    Attributes:
        law: see `RoundLaw`.
        own, late: segments of a round, and of the next one after a loss.
        level, before: (S,) mean level at the start of a round and size of the one before it, as the law has it.
        again_level: (S,) level that a retransmission after duplicate ACKs finds.
    """

    law: RoundLaw
    own: Flight
    late: Flight
    level: Array
    before: Array
    again_level: Array


def rounds(
    structure: RoundStructure,
    tokens: Tokens,
    turns: Turns,
    fates,
    move,
    level: Array,
    before: Array,
    timer: tuple[Array, Array, Array],
) -> Rounds:
    """Return the rounds of a connection, given the levels at which they begin.

    Args:
        structure: of TCP.
        tokens: of its sender.
        turns: on the air.
        fates: (..., N - 1) by how much the gaps between packets are longer than the least (s) -> (3, ..., C, C).
        move: (...) times (s) -> (..., C, C).
        level: (S,) missing tokens at the starts of rounds.
        before: (S,) segments of the round before.
        timer: timeout and its cap (s), and factor of each expiry.
    """
    size = jnp.asarray(structure.size, float)
    places = structure.window
    gap = _gap(tokens, turns, level, before, size)
    own = _flight(tokens, turns, level, gap, size, places)
    used = jnp.concatenate([jnp.zeros((size.shape[0], 1)), jnp.cumsum(own.taken, axis=1)], axis=1)
    state = jnp.arange(size.shape[0])
    period = own.trip[:, 0]
    full = -tokens.depth
    next_level = _refilled(tokens, level + used[state, structure.size] - tokens.rate * period)
    late = _flight(tokens, turns, next_level, gap, size, places)
    # the third duplicate ACK comes three segments after the ACK that let out the last late one
    again_level = _refilled(tokens, next_level - 3.0 * tokens.rate * gap)
    again = _flight(tokens, turns, again_level, gap, size, 1)
    closing, inside = _fates(tokens, turns, fates, move, own.level, gap)
    _, late_inside = _fates(tokens, turns, fates, move, late.level, gap)
    _, repeated = _fates(tokens, turns, fates, move, again.level, gap)
    spread = (size - 1.0) * gap
    turn = jnp.where(before > 1.0, 0.0, (size - 1.0) * turns.apart)
    last = level + (size - 1.0) * (tokens.price - tokens.rate * gap) + tokens.price
    sent = spread + greater(tokens.wait(last), turn) + turns.train
    law = round_law(
        structure,
        Channel(inside, closing, late_inside, repeated[:, :, 0], move),
        Times(gap, own.trip, again.trip[:, 0], sent, *timer),
    )
    moves = law.moves
    took = used[moves.source, moves.sent] + moves.late * late.taken[moves.source, 0]
    reached = _refilled(tokens, level[moves.source] + took - tokens.rate * moves.elapsed)
    reached = jnp.maximum(reached, full)
    flow = jnp.maximum(moves.flow, TINY)
    into = jnp.zeros_like(size).at[moves.target].add(flow)
    level = jnp.zeros_like(size).at[moves.target].add(flow * reached) / into
    before = jnp.zeros_like(size).at[moves.target].add(flow * size[moves.source]) / into
    before = jnp.where(size == 1.0, 1.0, jnp.clip(before, 1.0, size))
    return Rounds(law, own, late, level, before, again_level)


def _refilled(tokens: Tokens, level: Array) -> Array:
    """Return a level that does not fall below that of a full bucket."""
    return positive(level + tokens.depth, ROUNDED * tokens.price) - tokens.depth


def _gap(tokens: Tokens, turns: Turns, level: Array, before: Array, size: Array) -> Array:
    """(S,) time between the segments of a round.

    The tokens of the round before came while it went, but for those that the level says are missing.
    """
    others = before - 1.0
    came = level + tokens.rate * (turns.alone - turns.head)
    waited = tokens.wait(shorter(others * tokens.price, came, 2 * ROUNDED * tokens.price))
    spread = longer(waited, others * turns.spacing - turns.behind, SOFT * turns.spacing)
    spread = jnp.where((before > 1.0) & (turns.lone == 0.0), spread, 0.0)
    return spread / jnp.maximum(size - 1.0, 1.0)


def _flight(tokens: Tokens, turns: Turns, level: Array, gap: Array, size: Array, places: int) -> Flight:
    """Return the segments of rounds that begin at these levels."""
    levels, taken = [], []
    for _ in range(places):
        levels.append(level)
        taken.append(tokens.taken(level))
        level = level + taken[-1] - tokens.rate * gap
    level = jnp.stack(levels, axis=1)
    place, gap, size = jnp.arange(places), gap[:, None], size[:, None]
    close = 1.0 - step((gap - turns.spacing) / turns.answer)
    queue = place * positive(turns.spacing - gap, SOFT * turns.spacing)
    queue = queue + (place + 1 < size) * turns.behind * close
    # on one link acknowledgements wait behind all data that are on their way
    queue = jnp.where(turns.lone > 0.0, (size - 1.0) * turns.spacing, queue)
    first, last = tokens.wait(level + tokens.prices[0]), tokens.wait(level + tokens.price)
    in_turn = turns.head + greater(first, queue)
    trip = turns.alone - turns.head + longer(last, in_turn, SOFT * turns.spacing)
    return Flight(level, jnp.stack(taken, axis=1), trip)


def _fates(tokens: Tokens, turns: Turns, fates, move, level: Array, gap: Array) -> tuple[Array, Array]:
    """Return the fates of segments at these levels, to their ends and to the beginnings of the next ones."""
    waits = tokens.packet_waits(level)
    later = positive(jnp.diff(waits, axis=-1) - turns.steps, SOFT * turns.steps)
    refused = tokens.refuses(level)[..., None, None]
    end = waits[..., 0] + turns.train + later.sum(axis=-1)
    gap = jnp.broadcast_to(gap[:, None], level.shape)
    following = gap + tokens.wait(level + tokens.price - tokens.rate * gap + tokens.prices[0])
    following = longer(following, waits[..., 0] + turns.apart, SOFT * turns.apart)
    sent = fates(later) * (1.0 - refused)
    inside = sent @ move(jnp.maximum(following - end, 0.0))
    closing = sent.at[0].add(refused * jnp.eye(sent.shape[-1]))
    return closing, inside.at[0].add(refused * move(gap))
