"""How long the rounds of a connection last, and what its segments meet, from tokens, air and radio.

A round is let out by the acknowledgements of the one before, so its segments are as far apart as these: at
once after a round of one segment, else by the tokens that the round before had to wait for, or by its turns
on the air. A segment's round trip is that of a lone one, or what remains of it once the last packet has its
tokens, or what its turn on the air takes. A round lasts as long as the round trip of its first segment, for
then the next one begins.

Tokens are counted as missing ones, the *level*, from a full bucket at -depth upwards. The level at the start
of a round is known by its mean for each state of TCP: from one timeout to the next levels follow the rounds
almost without chance, and a timeout fills the bucket. A segment that waits for tokens goes out packet by
packet as they come, and its packets meet a channel that has changed in between.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from btqueue.transport.round_law import Channel, Moves, RoundLaw, Times, lengths, round_law
from btqueue.transport.round_structure import RoundStructure

ROUNDED = 1 / 16
"""Share of a segment's tokens within which the corner at which a backlog begins is rounded off."""
SOFT = 0.1
"""Width of the join of two limits, as a share of a segment's time on the air."""
ORDER = 8
"""Order of the norm that stands for a maximum."""
NEVER = 1e-6
"""Rounds of a kind, as a share of all, about which nothing has to be known."""


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
    most = jnp.maximum(one, other)
    some = most > 0.0  # at 0 and 0 the root has no derivative
    unit = jnp.where(some, most, 1.0)
    ratios = (one / unit) ** ORDER + (other / unit) ** ORDER
    return most * jnp.where(some, ratios, 1.0) ** (1.0 / ORDER)


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


class Radio(NamedTuple):
    """What segments meet on C channel states.

    Attributes:
        move: (...) times (s) -> (..., C, C) transition matrices.
        fates: (..., N - 1) by how much the gaps between packets are longer than the least (s) -> (3, ...,
            C, C)
            probability of each fate, with the channel's move to the end of the segment.
        lost: probability that the radio loses a segment.
    """

    move: Callable[[Array], Array]
    fates: Callable[[Array], Array]
    lost: Array


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
    """Segments by state and place, (S, W).

    Attributes:
        level: missing tokens when they come.
        refused: probability that a packet of them finds no place.
        trip: round trip.
    """

    level: Array
    refused: Array
    trip: Array


class Rounds(NamedTuple):
    """Rounds of a connection and their law.

    Attributes:
        law: see `RoundLaw`.
        own, late: segments of a round, and of the next one after a loss.
        level, before: (S,) mean level at the start of a round and size of the one before it, as the law has
            it.
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
    radio: Radio,
    level: Array,
    before: Array,
    timer: tuple[Array, Array, Array],
    further: Array | None = None,
) -> Rounds:
    """Return the rounds of a connection, given the levels at which they begin.

    Of a round a full buffer refuses one segment, for that leaves room for the next ones: behind a loss that
    it may have caused, as often as it is the cause of one, the level is lower by a segment.

    Args:
        structure: of TCP.
        tokens: of its sender.
        turns: on the air.
        radio: what segments meet.
        level: (S,) missing tokens at the starts of rounds.
        before: (S,) segments of the round before.
        timer: timeout and its cap (s), and factor of each expiry.
        further: times that the levels found are made better, with the flows between states as they are.
    """
    size, places = jnp.asarray(structure.size, float), structure.window
    price = tokens.price
    own, times, _, next_level = begun = _begun(structure, tokens, turns, radio, level, before, timer)
    gap = times.gap
    by_buffer = _share_of_buffer(own.refused, radio.lost)
    own_behind = tokens.refuses(own.level - price) * by_buffer[:, :-1] + own.refused * (
        1.0 - by_buffer[:, :-1]
    )
    # late ones come as the ACKs of a round do that has just gone out
    late_gap = _gap(tokens, turns, next_level, size, size)
    late = _flight(tokens, turns, next_level, late_gap, size, size, places)
    # the third duplicate ACK comes three segments after the ACK that let out the last late one
    again_level = _refilled(tokens, next_level - 3.0 * tokens.rate * late_gap)
    levels = jnp.concatenate([own.level, late.level, again_level[:, None]], axis=1)
    gaps = jnp.concatenate(
        [jnp.broadcast_to(each[:, None], own.level.shape) for each in (gap, late_gap)], axis=1
    )
    gaps = jnp.concatenate([gaps, late_gap[:, None]], axis=1)
    closing, inside = _on_air(tokens, turns, radio, levels, gaps)
    spread = (size - 1.0) * gap
    turn = jnp.where(before > 1.0, 0.0, (size - 1.0) * turns.apart)
    last = level + (size - 1.0) * (price - tokens.rate * gap) + price
    sent = spread + greater(tokens.wait(last), turn) + turns.train
    passing = radio.move(gap)[:, None]
    law = round_law(
        structure,
        Channel(
            inside=_with_refusals(inside[:, :, :places], own.refused, passing),
            closing=_with_refusals(closing[:, :, :places], own.refused, jnp.eye(passing.shape[-1])),
            behind=_with_refusals(inside[:, :, :places], own_behind, passing),
            closing_behind=_with_refusals(closing[:, :, :places], own_behind, jnp.eye(passing.shape[-1])),
            late=_with_refusals(inside[:, :, places:-1], late.refused, passing),
            again=_with_refusals(inside[:, :, -1], tokens.refuses(again_level), passing[:, 0]),
            move=radio.move,
        ),
        times._replace(sent=sent),
    )
    # what follows from these flows, while they stay as they are
    before = _before(structure, law.moves)
    level = _level(structure, tokens, law.moves, begun, level)

    def again(_: Array, level: Array) -> Array:
        begun = _begun(structure, tokens, turns, radio, level, before, timer)
        return _level(structure, tokens, law.moves, begun, level)

    if further is not None:
        level = jax.lax.fori_loop(0, further, again, level)
    return Rounds(law, own, late, level, before, again_level)


def after_idling(window: int, tokens: Tokens, turns: Turns, on: Array) -> Array:
    """Return the mean round trip after a timeout that followed on idling, with a full bucket.

    Rounds then have 1, 2, 2, 3, 4, ... segments, each with the level that those before leave it.

    Args:
        window: largest round.
        tokens: of the sender.
        turns: on the air.
        on: probability that one more segment follows.
    """
    rounds = [1, 2, *range(2, window + 1)] if window > 1 else [1]
    size = jnp.asarray(rounds, float)
    before, ahead = jnp.asarray([1, *rounds[:-1]], float), jnp.cumsum(size) - size

    def flight(level: Array) -> Flight:
        return _flight(tokens, turns, level, _gap(tokens, turns, level, before, size), size, before, window)

    def follow(_: Array, level: Array) -> Array:
        period = flight(level).trip[:, 0]
        left = _refilled(tokens, level + size * tokens.price - tokens.rate * period)
        return jnp.concatenate([level[:1], left[:-1]])

    level = jax.lax.fori_loop(0, size.size, follow, jnp.full(size.shape, -tokens.depth))
    weights = on ** (ahead[:, None] + np.arange(window)) * (np.arange(window) < size[:, None])
    return (weights * flight(level).trip).sum() / weights.sum()


class _Begun(NamedTuple):
    """Rounds as they begin: their segments, times, what a lost one leaves in the bucket, the next level."""

    own: Flight
    times: Times
    left: Array
    next_level: Array


def _begun(
    structure: RoundStructure,
    tokens: Tokens,
    turns: Turns,
    radio: Radio,
    level: Array,
    before: Array,
    timer: tuple[Array, Array, Array],
) -> _Begun:
    size, state = jnp.asarray(structure.size, float), np.arange(structure.states)
    gap = _gap(tokens, turns, level, before, size)
    own = _flight(tokens, turns, level, gap, size, before, structure.window)
    period = own.trip[:, 0]
    # by a segment that was refused, where one was lost
    left = _share_of_buffer(own.refused, radio.lost)[state, structure.size] * tokens.price
    next_level = _refilled(tokens, level + size * tokens.price - left - tokens.rate * period)
    return _Begun(own, Times(gap, own.trip, period, 0.0 * gap, *timer), left, next_level)


def _level(structure: RoundStructure, tokens: Tokens, flow: Moves, begun: _Begun, level: Array) -> Array:
    """Return the mean levels to which these flows lead; a round that is never reached has a full bucket."""
    moves, elapsed = structure.moves, lengths(structure, begun.times).elapsed
    took = (moves.sent + flow.late) * tokens.price - jnp.where(moves.lossy, begun.left[moves.source], 0.0)
    reached = _refilled(tokens, level[moves.source] + took - tokens.rate * elapsed)
    into = jnp.full_like(level, NEVER).at[moves.target].add(flow.flow)
    return (-NEVER * tokens.depth + jnp.zeros_like(level).at[moves.target].add(flow.flow * reached)) / into


def _before(structure: RoundStructure, flow: Moves) -> Array:
    """Return the mean sizes of the rounds before."""
    moves, size = structure.moves, jnp.asarray(structure.size, float)
    into = jnp.full_like(size, NEVER).at[moves.target].add(flow.flow)
    before = (NEVER * size).at[moves.target].add(flow.flow * size[moves.source]) / into
    return jnp.where(size == 1.0, 1.0, jnp.clip(before, 1.0, size))


def _share_of_buffer(refused: Array, lost: Array) -> Array:
    """(S, W) -> (S, W + 1) probability that the buffer was the cause, if one before a place was lost."""
    kept = jnp.cumprod(1.0 - refused, axis=1)
    by_buffer = 1.0 - jnp.concatenate([jnp.ones((kept.shape[0], 1)), kept], axis=1)
    by_radio = 1.0 - (1.0 - lost) ** np.arange(kept.shape[1] + 1)
    return by_buffer / jnp.maximum(by_buffer + by_radio, 1e-100)


def _with_refusals(fates: Array, refused: Array, passing: Array) -> Array:
    """Return the fates of segments of which some are refused."""
    refused = refused[..., None, None]
    return (fates * (1.0 - refused)).at[0].add(refused * passing)


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


def _flight(
    tokens: Tokens, turns: Turns, level: Array, gap: Array, size: Array, before: Array, places: int
) -> Flight:
    """Return the segments of rounds that begin at these levels, if none is refused.

    Rounds follow each other no faster than the air carries their segments.
    """
    place, gap, size = np.arange(places), gap[:, None], size[:, None]
    level = level[:, None] + place * (tokens.price - tokens.rate * gap)
    close = 1.0 - step((gap - turns.spacing) / turns.answer)
    queue = place * positive(turns.spacing - gap, SOFT * turns.spacing)
    queue = queue + (place + 1 < size) * turns.behind * close
    # on one link acknowledgements wait behind all data that are on their way
    queue = jnp.where(turns.lone > 0.0, (size - 1.0) * turns.spacing, queue)
    first, last = tokens.wait(level + tokens.prices[0]), tokens.wait(level + tokens.price)
    in_turn = turns.head + greater(first, queue)
    trip = turns.alone - turns.head + longer(last, in_turn, SOFT * turns.spacing)
    trip = longer(trip, jnp.minimum(before[:, None], size) * turns.spacing, SOFT * turns.spacing)
    return Flight(level, tokens.refuses(level), trip)


def _on_air(tokens: Tokens, turns: Turns, radio: Radio, level: Array, gap: Array) -> tuple[Array, Array]:
    """Return the fates of segments at these levels, to their ends and to the beginnings of the next ones."""
    waits = tokens.packet_waits(level)
    later = positive(jnp.diff(waits, axis=-1) - turns.steps, SOFT * turns.steps)
    end = waits[..., 0] + turns.train + later.sum(axis=-1)
    following = gap + tokens.wait(level + tokens.price - tokens.rate * gap + tokens.prices[0])
    following = longer(following, waits[..., 0] + turns.apart, SOFT * turns.apart)
    closing = radio.fates(later)
    return closing, closing @ radio.move(jnp.maximum(following - end, 0.0))
