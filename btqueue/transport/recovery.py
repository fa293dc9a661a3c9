"""Loss recovery: how long the repair of a lost segment takes, how it can fail, and the window that is left.

Approximations: holes behind the first are spread evenly over the flight. SACK repairs one hole in a round
trip and several in up to two; NewReno repairs one in each round trip. Reno halves its window twice for two
holes and waits for its timer with more. During a recovery only retransmissions can be lost. The states
of a radio move on from segment to segment of a flight, in its recovery, and while timers run.

Sources: Fall & Floyd, Computer Communication Review 26(3), 1996 (how the variants repair several holes); RFC
6582, RFC 6675, RFC 6298 (the timer is not restarted by a fast retransmit).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import ceil, inf, log2
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from btqueue.transport import binomial
from btqueue.transport.newreno_sender import DUPLICATE_THRESHOLD
from btqueue.transport.radio import Radio

Vector = NDArray[np.floating]

AVOIDANCE, SLOW, LATE = "congestion avoidance", "slow start", "late timeout"
GENERATIONS = 8
"""Losses right behind repetitions that are counted, in a row."""
MOST_HOLES = 12
"""Segments lost of one window that are told apart; more are as many."""


class Row(NamedTuple):
    """The room that stations on the way have for segments in a row.

    Its losses are approximations: a flight is taken as one row, of which one segment is lost beyond the room.
    In 200 random networks with such bridges goodput was 17 % off in the median, nine in ten within 56 %.

    Attributes:
        fits: segments in a row that find room.
        refused: chance that the next one is lost.
    """

    fits: int
    refused: float


@dataclass(frozen=True)
class LossyPath:
    """The path that a congestion window works on.

    Attributes:
        loss: probability that a segment is lost.
        segments_per_ack: segments that an acknowledgement covers, the lost acknowledgements counted in.
        window: most segments in flight by the receive window.
        room: most segments in flight that path and buffer hold; one more is lost.
        base_s: round-trip time of a lone segment.
        service_s: time between two segments at the bottleneck.
        variant: "tahoe", "reno", "newreno" or "sack".
        min_rto_s: least timeout (s).
        max_rto_s: largest timeout (s).
        backoff: whether the timeout doubles with each expiry.
        ack_loss: probability that an acknowledgement is lost.
        gathered: segments that share an acknowledgement at the receiver, 1 or more.
        ack_delay_s: timer of delayed acknowledgements; zero if each segment is acknowledged at once.
        limited_transmit: whether the first two duplicates let out a new segment each (RFC 3042).
        keeps_backoff: whether a doubled timeout lasts until the round trip of a new segment is measured.
        radio: states of radios that decide on losses; without them each loss is independent.
        row: room for segments in a row, where it is limited.
        crossed: share of the segments lost at random that have passed the bottleneck before.
    """

    loss: float
    segments_per_ack: float
    window: int
    room: float
    base_s: float
    service_s: float
    variant: str
    min_rto_s: float
    max_rto_s: float
    backoff: bool
    ack_delay_s: float = 0.0
    gathered: int = 1
    ack_loss: float = 0.0
    limited_transmit: bool = False
    keeps_backoff: bool = False
    radio: Radio | None = None
    row: Row | None = None
    crossed: float = 1.0

    @cached_property
    def states(self) -> Radio:
        """The states of the radio; without a radio a single state."""
        return self.radio or Radio((), (), (), (), 1.0 - self.loss, (self.ack_loss,))

    @cached_property
    def timeless(self) -> "LossyPath":
        """The path without its times: which windows there are and which segments are lost depends on this."""
        room = float(int(self.room)) if self.room < self.window else inf
        return replace(self, room=room, base_s=0.0, service_s=0.0)

    @cached_property
    def doublings(self) -> int:
        """Doublings of the least timeout until it is the largest one."""
        return max(ceil(log2(self.max_rto_s / self.min_rto_s)), 0) if self.backoff else 0

    @property
    def lone_success(self) -> float:
        """Probability that a repetition, alone on its way, is acknowledged."""
        return (1.0 - self.loss) * (1.0 - self.ack_loss)

    def unanswered(self, flight: ArrayLike, ack_loss: Vector | float) -> Vector:
        """Return the chance, by segment, that none of the acknowledgements of `flight` segments comes.

        An approximation for shared acknowledgements: with 10 % of losses either way, goodput was 5 % too low
        (NewReno and Tahoe with limited transmit) to 4 % too high (Reno).
        """
        return np.asarray(ack_loss) ** np.ceil(np.maximum(flight, 1) / self.gathered) / self.gathered

    def round_trip(self, flight: ArrayLike) -> Vector:
        """Return the round-trip time (s) with `flight` segments in flight: the path's, or the queue's.

        In each round of growth one acknowledgement releases two segments at once, so that half of the
        segments wait for one that was sent with them.
        """
        flight = np.asarray(flight, float)
        return np.maximum(self.base_s + self._pair(flight), flight * self.service_s)

    def trip_of_new(self, flight: ArrayLike) -> Vector:
        """Return the round-trip time (s) of new segments; repetitions have a shorter one.

        The first of the segments that share an acknowledgement waits for the last, unless they stand in a
        queue.
        """
        flight = np.asarray(flight, float)
        gathered = min(self.ack_delay_s, (self.segments_per_ack - 1.0) * self.service_s)
        return np.maximum(self.round_trip(flight), self.base_s + gathered + self._pair(flight))

    def spacing(self, flight: ArrayLike) -> Vector:
        """Return the mean time (s) from one new segment to the next."""
        return self.trip_of_new(flight) / np.maximum(flight, 1)

    def _pair(self, flight: Vector) -> Vector:
        return np.where((flight > 1.0) & (flight < self.window), 0.5 * self.service_s, 0.0)

    def repair_trip(self, flight: ArrayLike) -> Vector:
        """Return the time (s) from a fast retransmit to its acknowledgement.

        It is among the segments in flight in the place of the lost one; three others have arrived.
        """
        return self.round_trip(np.asarray(flight, float) - DUPLICATE_THRESHOLD)


class Start(NamedTuple):
    """How a cycle starts; `half` is a number of half segments.

    It starts in congestion avoidance with this window, or in slow start from two segments with this
    threshold, or after a timer that expired too soon. In the last case the new segments of the recovery are
    still in flight, and their acknowledgements open the window further.
    """

    kind: str
    half: int

    def begin(self, window: int) -> float:
        """Return the first window, under a receive window."""
        if self.kind == SLOW:
            return 2.0
        return (
            self.half / 2.0
            if self.kind == AVOIDANCE
            else min(self.half / 2.0, max(2.0, window - self.half + 2.0))
        )

    def threshold(self, window: int) -> float:
        """Return the window from which it opens by congestion avoidance, under a receive window."""
        if self.kind == LATE:
            return max(self.begin(window), min(0.75 * self.half - 1.0, window / 2.0))
        return self.half / 2.0


class Ends(NamedTuple):
    """How cycles end, by number.

    Attributes:
        flight: segments in flight when the loss is found, shape (ends,).
        silent: whether no fast retransmit may answer, shape (ends,).
        blocked: numbers of the silent ends by flight.
        again: numbers of the silent ends whose first lost segment follows a repetition directly, by flight.
        overflow: number of the end by a buffer that is full, where there is one.
        most: largest flight.
    """

    flight: NDArray[np.int64]
    silent: NDArray[np.bool_]
    blocked: NDArray[np.int64]
    again: NDArray[np.int64]
    overflow: int | None
    most: int


@lru_cache(maxsize=256)
def ends_of(top: int, *, overflows: bool) -> Ends:
    """Return the ends of cycles of windows up to `top` segments, up to `top` + 1 if a buffer `overflows`."""
    most = top + 1 if overflows else top
    flights = np.arange(most + 1)
    silent = np.repeat([False, True, True], most + 1)
    blocked, again = flights + (most + 1), flights + 2 * (most + 1)
    return Ends(np.tile(flights, 3), silent, blocked, again, most if overflows else None, most)


class Losses(NamedTuple):
    """Losses of a flight and of its repetitions in a fast recovery; (ends, holes).

    Attributes:
        chance: of 1, 2, ... holes.
        repaired: chance that all repetitions arrive.
        again: chance that a repetition is lost.
        state: chances of the states of the radio at the end of the flight, if all repetitions arrive,
            (ends, holes, states).
    """

    chance: Vector
    repaired: Vector
    again: Vector
    state: Vector


class Timers(NamedTuple):
    """Timeouts until a repetition, alone on its way, is acknowledged; arrays by end and state of the radio.

    Attributes:
        seconds: mean time.
        number: mean number of timeouts.
        lost: share of the repetitions that are lost.
        after: chances of the states a round trip after the repetition that gets through, (ends, states,
            states).
    """

    seconds: Vector
    number: Vector
    lost: Vector
    after: Vector

    def of(self, state: int) -> "Timers":
        """Return the timeouts after a loss in a state; arrays by end."""
        return Timers(*(array[:, state] for array in self))


class Recovery(NamedTuple):
    """The recovery after the end of a cycle; arrays by end and state of the radio at the loss, in a row.

    Attributes:
        seconds: time from the last new acknowledgement to the next.
        timeouts: mean number.
        fast_retransmits: mean number.
        losses: mean number of segments lost, repetitions included.
        duplicates: mean number of duplicate acknowledgements.
        left: mean number of segments in flight that the next cycle sends, less segments beyond the flight.
        in_vain: mean number of these that have arrived before.
        leads_to: chances of the starts of the next cycle, and the states of the radio there, in a row.
    """

    seconds: Vector
    timeouts: Vector
    fast_retransmits: Vector
    losses: Vector
    duplicates: Vector
    left: Vector
    in_vain: Vector
    leads_to: Vector


@lru_cache(maxsize=256)
def _shown(path: LossyPath, top: int) -> Vector:
    """Return the chances that duplicates show 1, 2, ... holes.

    None come where no segment was lost, but every acknowledgement of the flight.
    """
    ends, holes = ends_of(top, overflows=path.room < path.window), np.arange(1, MOST_HOLES + 1)
    flight = ends.flight
    # An acknowledgement that waited for company, or was lost, comes with the first segment behind the hole,
    # or by its timer. It is new, and lets a segment out; only selective ones tell of both.
    new = 0.0 if path.variant == "sack" else 1.0 - (1.0 - path.ack_loss) / path.gathered
    behind = np.maximum(flight[:, None] - holes, 0)
    room = np.maximum(path.window - flight, 0)[:, None]
    later = np.maximum(behind - 1, np.minimum(behind, 1))
    arrive = [_duplicates_come(path, some, room) for some in (behind, later)]
    unanswered = (1.0 - path.loss) * path.unanswered(flight, path.ack_loss)
    if ends.overflow is not None:
        unanswered[ends.overflow] = 0.0
    lost = np.maximum(path.loss, 1e-300) / np.maximum(path.loss + unanswered, 1e-300)
    found = ((1.0 - new) * arrive[0] + new * arrive[1]) * (lost[:, None] if path.row is None else 1.0)
    return np.where(ends.silent[:, None], 0.0, found)


@lru_cache(maxsize=256)
def _independent(loss: float, flights: int) -> Losses:
    """Return the losses of flights that are independent of each other; by flight."""
    holes = np.arange(1, MOST_HOLES + 1)
    chance = binomial.probability(holes - 1, np.maximum(np.arange(flights) - 1, 0)[:, None], loss)
    chance[:, -1] += 1.0 - chance.sum(axis=1)
    repaired = (1.0 - loss) ** np.tile(holes, (flights, 1))
    return Losses(chance, repaired, np.full_like(chance, loss), np.ones((*chance.shape, 1)))


def _faded(path: LossyPath, flights: int) -> list[Losses]:
    """Return the losses of flights by the state of the radio behind the first lost segment; by flight.

    The number of holes and the state move on from segment to segment. The first repetition leaves at the end
    of the flight. NewReno's repetitions are a round trip apart, repetitions of other senders one service.
    """
    radio, flight = path.states, np.arange(flights)
    spacing_s = path.spacing(flight)
    moves, passes = radio.moved(spacing_s), radio.arriving(spacing_s)
    fails, count = np.maximum(moves - passes, 0.0), len(radio.ack_loss)
    at = np.zeros((flights, count, MOST_HOLES, count))
    at[:, :, 0] = np.eye(count)
    for sent in range(2, flights):
        there = at[sent:]
        more = there @ fails[sent:, None]
        there = there @ passes[sent:, None]
        there[:, :, 1:] += more[:, :, :-1]
        there[:, :, -1] += more[:, :, -1]
        at[sent:] = there
    apart_s = path.round_trip(flight) if path.variant == "newreno" else np.full(flights, path.service_s)
    later = radio.moved(apart_s[:, None] * np.arange(MOST_HOLES)) @ radio.loss
    arrive = np.cumprod(1.0 - later, axis=1)
    chance = at.sum(axis=-1)
    some, repaired = np.maximum(chance, 1e-300), at * arrive[:, None]
    whole = repaired.sum(axis=-1)
    state = repaired / np.maximum(whole, 1e-300)[..., None]
    again = at @ radio.loss / some
    return [Losses(chance[:, j], whole[:, j] / some[:, j], again[:, j], state[:, j]) for j in range(count)]


def _states(path: LossyPath, flight: NDArray) -> Iterator[tuple[LossyPath, Losses]]:
    """Yield the path and the losses behind a lost segment, by the state of the radio behind it."""
    flights = int(flight.max()) + 1
    if path.radio is None:
        yield path, Losses(*(one[flight] for one in _independent(path.loss, flights)))
        return
    arrive = path.radio.moved(path.base_s) * np.maximum(1.0 - path.radio.loss, 1e-12)
    acks = arrive @ np.array(path.radio.ack_loss) / arrive.sum(axis=1)  # of segments that arrive
    for state, losses in enumerate(_faded(path, flights)):
        one = replace(path, loss=1.0 - float(arrive[state].sum()), ack_loss=float(acks[state]), radio=None)
        yield one, Losses(*(array[flight] for array in losses))


def recovery_of(path: LossyPath, top: int, starts: Sequence[Start], deviation: Vector) -> Recovery:
    """Return the recovery after each possible loss, by the end of the cycle and the state of the radio.

    `deviation` is the mean deviation of round trips (s) by the number of segments in flight.
    """
    ends = ends_of(top, overflows=path.room < path.window)
    flight, timers = ends.flight, _timers(path, ends)
    late = late_chance(path, np.maximum(flight, 1.0), deviation[flight])
    parts = [
        _in_state(one, ends, top, starts, late, timers.of(state), losses)
        for state, (one, losses) in enumerate(_states(path, flight))
    ]
    *found, quick, slow, state = (np.stack(one, axis=1) for one in zip(*parts, strict=True))
    leads_to = quick[..., None] + slow[..., None]
    if path.radio is not None:
        repaired_s = path.repair_trip(flight)
        leads_to = quick[..., None] * (state @ path.radio.moved(repaired_s))[:, :, None]
        leads_to += slow[..., None] * timers.after[:, :, None]
    arrays: Any = (one.ravel() for one in found)
    return Recovery(*arrays, leads_to=leads_to.reshape(found[0].size, -1))


def _in_state(
    path: LossyPath,
    ends: Ends,
    top: int,
    starts: Sequence[Start],
    late: Vector,
    timers: Timers,
    losses: Losses,
) -> tuple[Vector, ...]:
    """Return the recoveries after a loss in a state of the radio: `Recovery` with two arrays `leads_to`.

    They are the chances of starts after a fast recovery, and after timeouts, (ends, starts). The last array
    has the chances of the states of the radio at the end of a flight that a fast recovery repairs.
    """
    holes, flight = np.arange(1, MOST_HOLES + 1), ends.flight
    found = losses.chance * _shown(path.timeless, top)
    if path.variant == "reno":
        return _reno(path, ends, found, starts, late, _answered(path, flight), timers, losses)
    answered = _answered(path, flight)
    repaired = found * losses.repaired * answered[:, None]
    good, quick = repaired.sum(axis=1), found.sum(axis=1)
    # the first repetition waits behind the flight, later ones behind the new segments of the recovery
    later = path.round_trip(np.maximum(flight[:, None] / 2.0 + 1.0 - holes, 1.0))
    seconds = (repaired * later) @ (_rounds(path.variant, holes.astype(float)) - 1.0)
    seconds += good * (path.repair_trip(flight) + _until_found_s(path, flight))
    seconds += (1.0 - good) * (timers.seconds + path.round_trip(1.0))
    mean_holes, (left, in_vain) = losses.chance @ holes, _left(path, flight, found, losses)
    place, (fast, slow) = _places(tuple(starts)), np.zeros((2, len(flight), len(starts)))
    every = np.arange(len(flight))
    half = np.maximum(4, flight)
    slow[every, place[SLOW][half]] += 1.0 - quick
    slow[every, place[SLOW][np.maximum(4, expired_flight(path, flight))]] += quick - good
    if path.variant == "tahoe":
        fast[every, place[SLOW][half]] += good
    else:
        fast[every, place[LATE][half]] += good * late
        fast[every, place[AVOIDANCE][half]] += good * (1.0 - late)
    return (
        seconds,
        (1.0 - good) * timers.number + good * late,
        quick,
        _lost(path, losses, mean_holes, left, (1.0 - good) * timers.number * timers.lost + quick - good),
        np.maximum(flight - mean_holes, 0.0),
        left,
        in_vain,
        fast,
        slow,
        _mean_state(repaired, losses),
    )


def _reno(
    path: LossyPath,
    ends: Ends,
    found: Vector,
    starts: Sequence[Start],
    late: Vector,
    answered: Vector,
    timers: Timers,
    losses: Losses,
) -> tuple[Vector, ...]:
    """Return the recoveries of Reno (`_in_state`); a fast one ends at the first new acknowledgement.

    A second hole, at place j of f, has to be found anew, by duplicate acknowledgements of the segments sent
    in the first recovery and at its end: the window, inflated to f/2 + f - 2, lets out n segments beyond f,
    and deflated to f/2 some more where j is late. If these are fewer than three, or a third hole follows, the
    timer repairs it. (A third one would need more than 20 segments in flight, and a late second one, to be
    found.)
    """
    flight = ends.flight
    every = np.arange(len(flight))
    lone = found[:, 0] * losses.repaired[:, 0] * answered
    place, (fast, slow) = _places(tuple(starts)), np.zeros((2, len(flight), len(starts)))
    quick = found.sum(axis=1)
    expired, (again, twice, shown) = 1.0 - quick + found[:, 0] - lone, np.zeros((3, len(flight)))
    half, further = np.maximum(4, flight), losses.chance @ np.arange(MOST_HOLES)
    slow[every, place[SLOW][half]] += expired
    fast[every, place[LATE][half]] += lone * late
    fast[every, place[AVOIDANCE][half]] += lone * (1.0 - late)
    for f in range(DUPLICATE_THRESHOLD + 2, ends.most + 1):
        j = np.arange(2, f + 1)
        p, again_lost = further[f] / (f - 1.0), losses.again[f, 0]
        there = max(p, 1e-12) * (1.0 - p) ** (j - 2.0)
        there *= (quick[f] - found[f, 0]) / there.sum()
        sent = max(0, int(min(f // 2 + f - 2, path.window)) - f)
        left = f + sent - (j - 1)
        more = np.maximum(0, f // 2 - left)
        outstanding = np.minimum(left + more, ends.most)
        seen = sent + more >= DUPLICATE_THRESHOLD
        first = there * (1.0 - again_lost)
        second = np.where(seen, first * (1.0 - again_lost) * (1.0 - p) ** (f - j), 0.0)
        slow[f, place[SLOW][half[f]]] += (there - first).sum()
        np.add.at(fast[f], place[AVOIDANCE][np.maximum(4, outstanding)], second)
        np.add.at(slow[f], place[SLOW][np.maximum(4, outstanding)], first - second)
        again[f], twice[f] = first[seen].sum(), second.sum()
        # the inflated window lets segments out half a round before the end of the first recovery, or at it
        shown[f] = twice[f] * (0.5 if sent >= DUPLICATE_THRESHOLD else 1.0)
        expired[f] += (there - second).sum()
    mean_holes = losses.chance @ np.arange(1, MOST_HOLES + 1)
    left, in_vain = _left(path, flight, found, losses)
    repair = path.repair_trip(flight)
    after_repair = np.maximum(expired - (1.0 - quick) - (found[:, 0] - lone), 0.0)
    seconds = (lone + 2.0 * twice + after_repair) * repair
    seconds += (lone + twice + after_repair) * _until_found_s(path, flight)
    seconds += shown * path.round_trip(flight)
    seconds += expired * (timers.seconds + path.round_trip(1.0))
    chances = np.maximum((fast + slow).sum(axis=1, keepdims=True), 1e-300)
    return (
        seconds,
        expired * timers.number + lone * late,
        quick + again,
        _lost(path, losses, mean_holes, left, expired * timers.number * timers.lost + found[:, 0] - lone),
        np.maximum(flight - mean_holes, 0.0),
        left,
        in_vain,
        fast / chances,
        slow / chances,
        _mean_state(found, losses),
    )


def _lost(path: LossyPath, losses: Losses, holes: Vector, left: Vector, repetitions: Vector) -> Vector:
    """Return the mean number of segments lost, by end, with `repetitions` among them.

    Without states of a radio, and without limits for rows, a repetition is lost as often as any segment,
    which closes the balance exactly.
    """
    independent = losses.state.shape[-1] == 1 and path.row is None
    return left + (holes - left) / (1.0 - path.loss) if independent else holes + repetitions


def _mean_state(weights: Vector, losses: Losses) -> Vector:
    """Return the mean chances of the states of the radio over the numbers of holes, (ends, states)."""
    some = np.maximum(weights, 1e-300)[..., None]
    return (some * losses.state).sum(axis=1) / some.sum(axis=1)


def _left(path: LossyPath, flight: NDArray, found: Vector, losses: Losses) -> tuple[Vector, Vector]:
    """Return the segments of a flight that the next cycle sends, less those sent beyond the flight; by end.

    The second array is the part of them that has arrived.

    The slow start after a timer, or after Tahoe's fast retransmit, repairs the further holes. A fast recovery
    leaves those behind the first repetition that is lost, with SACK the other lost ones; Reno's timer repairs
    the second hole. Without SACK the segment after a hole is sent again, too.

    A recovery whose repetition is lost goes on until the timer expires: half of the flight less the holes, or
    with SACK the lost repetition, is sent anew in each round trip, until a segment is lost or the receive
    window ends. As many are sent in each round of a recovery behind the first.
    """
    p, holes = losses.again, np.arange(1, MOST_HOLES + 1)
    through = 1.0 - p
    behind = {
        "tahoe": holes - 1.0,
        "reno": np.maximum(holes - 2.0, 0.0),
        "sack": holes * p - 1.0 + losses.repaired,
        "newreno": holes - np.cumsum(through ** (holes - 1.0), axis=1),
    }[path.variant]
    further = (losses.chance - found) * (holes - 1.0) + found * behind
    others = np.maximum(flight - 1.0, 1.0)[:, None]
    again = np.maximum(1.0 - (holes - 1.0) / others, 0.0) * (1.0 - 1.0 / others)  # no hole, nor the last one
    in_vain = (further * again).sum(axis=1) * (path.variant != "sack")
    left = further.sum(axis=1) + in_vain
    silent = (1.0 - path.lone_success) ** np.maximum(flight - 2.0, 0.0)
    left += (1.0 - found.sum(axis=1)) * path.ack_loss * silent
    if path.variant == "tahoe":
        return left, in_vain
    failed = found * (p if path.variant == "reno" else 1.0 - losses.repaired)
    anew = np.maximum(flight[:, None] // 2 - (1 if path.variant == "sack" else holes), 0)
    rounds = np.maximum(path.window - flight, 0)[:, None] / np.maximum(anew, 1)
    rounds = np.minimum(rounds, path.min_rto_s / path.round_trip(1.0))
    beyond = failed * anew * through * (1.0 - through**rounds) / np.maximum(p, 1e-12)
    if path.variant != "reno":
        more = anew * (_rounds(path.variant, holes.astype(float)) - 1.0)
        more = np.minimum(more, np.maximum(path.window - flight, 0)[:, None])
        beyond += found * losses.repaired * through * more
    return left - beyond.sum(axis=1), in_vain


@lru_cache(maxsize=256)
def _places(starts: tuple[Start, ...]) -> dict[str, NDArray[np.int64]]:
    """Return the numbers of the starts by kind and half segments."""
    found = {kind: np.zeros(max(one.half for one in starts) + 1, int) for kind in (AVOIDANCE, SLOW, LATE)}
    for number, start in enumerate(starts):
        found[start.kind][start.half] = number
    return found


def _duplicates_come(path: LossyPath, behind: NDArray, room: NDArray) -> Vector:
    """Return the chance of three duplicate acknowledgements from `behind` segments after a hole.

    With limited transmit one or two are enough, if the new segments that they release arrive and the window
    has room for them. With SACK each acknowledgement tells of all segments before it.
    """
    lost, through, sack = path.ack_loss, path.lone_success, path.variant == "sack"
    if sack:
        one, two = (
            np.where(behind >= n, (1.0 - lost) * lost ** np.maximum(behind - n, 0), 0.0) for n in (1, 2)
        )
        found = np.where(behind > 2, 1.0 - lost ** np.maximum(behind - 2, 0), 0.0)
    else:
        trials = np.maximum(behind, 0)[..., None]
        none, one, two = np.moveaxis(binomial.probability(np.arange(3), trials, 1.0 - lost), -1, 0)
        found = 1.0 - none - one - two
    if not path.limited_transmit:
        return found
    alone = np.where(room >= 2, through**2, 0.0)
    if sack:
        alone = np.where(behind > 1, through * (room >= 1), alone)
    return found + one * alone + two * (1.0 - (1.0 - through) ** np.minimum(room, 2))


def _answered(path: LossyPath, flight: NDArray) -> Vector:
    """Return the probability that the end of a recovery is acknowledged.

    By the acknowledgement of the repetition, or of one of the segments that the inflated window let out.
    """
    further = np.clip(np.minimum(flight / 2.0 - 1.0, path.window - flight), 0.0, None)
    return 1.0 - path.ack_loss ** (1.0 + further)


def _until_found_s(path: LossyPath, flight: NDArray) -> Vector:
    """Return the time (s) from the last new acknowledgement to the third duplicate: of four segments.

    The first of them takes no time at the bottleneck if it was lost before.
    """
    return 4.0 * path.round_trip(flight) / np.maximum(flight, 1) - (1.0 - path.crossed) * path.service_s


def expired_flight(path: LossyPath, flight: NDArray) -> NDArray:
    """Return the segments in flight when a timer expires in recovery: `flight` and new segments."""
    return np.minimum(path.window, flight + np.maximum(flight // 2 - 2, 0))


def _rounds(variant: str, holes: Vector) -> Vector:
    """Return the round trips of a recovery, by the number of holes.

    With SACK all others are sent again between half a round trip, when the pipe has drained, and the time
    that the last one shows, uniform over the round.
    """
    if variant == "sack":
        later = holes - 1.0
        last = 0.5 ** (later + 1) + later / (later + 1) * (1.0 - 0.5 ** (later + 1))
        return 1.0 + np.where(later > 0, last, 0.0)
    return np.ones_like(holes) if variant == "tahoe" else holes


def _timers(path: LossyPath, ends: Ends) -> Timers:
    """Return the timeouts after a loss, by end: the first timeout and the timeouts of lost repetitions.

    Meanwhile the radio moves on by its rates, and a repetition that is lost makes its worse state likelier.
    A doubled timeout lasts until a new segment is acknowledged (RFC 6298, section 5.7), so that a loss right
    behind a repetition finds it doubled.
    """
    states, factor = path.states, 2.0 if path.backoff else 1.0
    first = np.maximum(path.min_rto_s, path.round_trip(ends.flight))
    waits = [first, *(np.minimum(path.max_rto_s, first * factor**k) for k in range(1, path.doublings + 1))]
    crossing_s = max(states.crossing_s, default=0.0)
    answered = 1.0 - np.array(states.ack_loss)
    through = np.maximum(states.arriving(crossing_s) * answered, 1e-12)
    fails, moves = states.moved(crossing_s) - through, [states.moved(wait) for wait in waits]

    def expire(begins: Sequence[Vector], moves: Sequence[Vector]) -> tuple[list[Vector], list[Vector]]:
        """Return the chances of expiries, and of the states at repetitions, by number of doublings."""
        expired, sent, at = [], [], np.zeros_like(begins[0])
        for k, (begin, move) in enumerate(zip(begins, moves, strict=True)):
            at = at + begin
            if k == path.doublings:  # as do all later timeouts
                at = at @ np.linalg.inv(np.eye(len(fails)) - move @ fails)
            expired.append(at)
            sent.append(at @ move)
            at = sent[-1] @ fails
        return expired, sent

    each = np.broadcast_to(np.eye(len(fails)), (len(ends.flight), *fails.shape))
    doubled = np.eye(path.doublings + 1)[0]
    if path.keeps_backoff and path.doublings and states.loss.max() > 0.0:
        pair = [move[2:3] for move in moves]  # the window behind a repetition is two segments
        passes = states.arriving(path.spacing(2)) * (1.0 - path.unanswered(2, np.array(states.ack_loss)))
        fall = through @ (states.moved(path.spacing(2)) - passes)
        lost = states.moved(inf)[:1] * np.maximum(states.loss, 1e-12)
        now = [lost[None] / lost.sum(), *[np.zeros_like(lost[None])] * path.doublings]
        doubled = np.zeros(path.doublings + 1)
        for _ in range(GENERATIONS):
            now = [one @ fall for one in expire(now, pair)[1]]
            now = [np.zeros_like(now[0]), *now[:-2], now[-2] + now[-1]]
            doubled += [float(one.sum()) for one in now]
        doubled /= doubled.sum()
    behind = (np.arange(len(each)) >= ends.again[0])[:, None, None]
    begins = [np.where(behind, part, float(k == 0)) * each for k, part in enumerate(doubled)]
    expired, sent = expire(begins, moves)
    repetitions, number = np.sum(sent, axis=0), np.sum(expired, axis=(0, -1))
    return Timers(
        np.sum([one.sum(axis=-1) * wait[:, None] for one, wait in zip(expired, waits, strict=True)], axis=0),
        number,
        repetitions @ states.loss / repetitions.sum(axis=-1),
        repetitions @ (states.arriving(float(path.round_trip(1.0))) * answered),
    )


def late_chance(path: LossyPath, flight: Vector, deviation: Vector) -> Vector:
    """Return the chance that the timer expires before a retransmission that arrives is acknowledged.

    The timer was started by the last new acknowledgement. The third duplicate acknowledgement is the fourth
    one after it. It comes in the same burst or, if one of the last three segments of a burst is lost, in the
    next burst. Segments of a burst are one service apart. If the last segment of a burst is lost, and
    acknowledgements are delayed, the segment before it waits for the receiver's timer, and this
    acknowledgement is new. The timeout is four mean deviations above the mean round trip. Segments wait for
    others of their burst; this wait is uniform over one service time.
    """
    trip = path.round_trip(flight)
    timeout = np.maximum(path.min_rto_s, trip + np.maximum(2.0 * path.service_s, 4.0 * deviation))
    crossing = np.minimum(1.0, DUPLICATE_THRESHOLD / flight)
    same = 4.0 * path.service_s
    following = np.maximum(trip - (flight - 4.0) * path.service_s, same)
    repair = path.repair_trip(flight)
    left_behind = np.maximum(following - path.ack_delay_s, same)
    # a segment waits for others of its burst, uniformly over one service time around the mean
    beyond = [(time + repair - timeout) / path.service_s for time in (same, following, left_behind)]
    late = [np.clip(0.5 + times, 0.0, 1.0) for times in beyond]
    shares = (2.0, 1.0) if path.ack_delay_s > 0.0 else (3.0, 0.0)
    next_burst = (shares[0] * late[1] + shares[1] * late[2]) / DUPLICATE_THRESHOLD
    return crossing * next_burst + (1.0 - crossing) * late[0]
