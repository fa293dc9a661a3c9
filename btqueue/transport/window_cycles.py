"""A bulk transfer that loses segments at random: the renewal chain of its congestion window.

The window after a recovery decides, with the number N of segments acknowledged until the next one is lost,
everything up to the end of the next recovery. So the windows at the ends of recoveries are a Markov chain
with a few states for each segment of the receive window, whatever the loss probability; a cycle's length,
deliveries and events are its rewards (Markov renewal theorem). Within a cycle the window opens by the
square-root law, w^2 grows by 2 for each acknowledgement, or by one for each below the threshold of a slow
start, and a round trip takes as long as the path needs for w segments. How a cycle ends is in
`btqueue.transport.recovery`. Where radios fade, the chain has their states beside the windows, and they move
on while segments pass and timers run.

Sources: Padhye, Firoiu, Towsley & Kurose, IEEE/ACM Transactions on Networking 8(2), 2000 (cycles between
losses); Mathis, Semke, Mahdavi & Ott, Computer Communication Review 27(3), 1997.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.transport.newreno_sender import DUPLICATE_THRESHOLD
from btqueue.transport.radio import Radio
from btqueue.transport.recovery import (
    AVOIDANCE,
    LATE,
    SLOW,
    Ends,
    LossyPath,
    Recovery,
    Start,
    ends_of,
    expired_flight,
    recovery_of,
)

Vector = NDArray[np.floating]

MOST_CYCLES = 2000
FORGOTTEN = 1e-12
"""A loss-free row of segments with less than this chance is left out."""
BLOCK = 24
"""Blocks of segments that are followed before a block is twice as long."""


class LossyRates(NamedTuple):
    """Rates per second, the mean window, round trips (s) and their weights over the acknowledgements."""

    goodput: float
    timeouts: float
    fast_retransmits: float
    losses: float
    window: float
    rtts: Vector
    weights: Vector
    residual: float
    states: int


class _Cycles(NamedTuple):
    """Windows that open without loss, from each start, until the next segment is lost first, or overflows.

    Starts and ends are counted with the states of the radio, in a row.

    Attributes:
        ended: chances of the ends (`recovery.Ends`), (starts, ends).
        fresh: mean segments acknowledged, by the number in flight then, (starts, flights).
        seen: the same by the number in flight a round trip ago, when the acknowledged segments were sent.
        steps: mean parts of a window that pass, by the number in flight, (starts, flights).
        last: chance that the cycle ends, by the number in flight, (starts, flights).
        steady: mean segments that pass with the window at its greatest; none if it overflows, (starts,).
        avoids: whether a start is in congestion avoidance, (starts,).
    """

    ended: Vector
    fresh: Vector
    seen: Vector
    steps: Vector
    last: Vector
    steady: Vector
    avoids: NDArray[np.bool_]


def lossy_rates(path: LossyPath) -> LossyRates:
    """Return the rates of a connection, from the stationary law of the chain of its windows.

    Example:
        >>> from btqueue.transport.recovery import LossyPath
        >>> from btqueue.transport.window_cycles import lossy_rates
        >>> path = LossyPath(0.01, 1.0, 8, 100.0, 0.1, 0.001, "newreno", 1.0, 64.0, True)
        >>> bool(60.0 < lossy_rates(path).goodput < 80.0)
        True
    """
    top = int(max(2, min(path.window, path.room)))
    ends = ends_of(top, overflows=path.room < path.window)
    trips = _trips(path, np.arange(ends.most + 1.0))
    starts = _starts(path.timeless, ends.most)
    recovery = recovery_of(path, top, starts, trips.deviation)
    if path.loss == 0.0 and path.row is None:  # every cycle ends by overflow, and leads to few starts
        used = recovery.leads_to[ends.overflow] > 0.0
        starts = tuple(start for start, one in zip(starts, used, strict=True) if one)
        recovery = recovery._replace(leads_to=recovery.leads_to[:, used])
    cycles = (
        _faded_cycles(path, path.radio, starts, top) if path.radio else _cycles(path.timeless, starts, top)
    )
    law, residual = _stationary(cycles.ended, recovery.leads_to)
    steady = float(law @ cycles.steady)
    longest = float(trips.mean[top])
    fresh, number_seen, end = law @ cycles.fresh, law @ cycles.seen, law @ cycles.ended
    flight, states = np.maximum(np.arange(ends.most + 1.0), 1.0), len(path.states.ack_loss)
    lag = np.where(cycles.avoids[:, None], *_lag(path, flight))
    seconds = float(law @ (cycles.steps @ (trips.mean / flight) + (cycles.last * lag).sum(axis=1)))
    seconds += float(end @ recovery.seconds) + steady * longest / top
    at_end = np.repeat(ends.flight, states)
    segments = float(fresh.sum() + end @ (at_end - recovery.left)) + steady
    timeouts, fast = float(end @ recovery.timeouts), float(end @ recovery.fast_retransmits)
    losses = float(end @ recovery.losses)
    # segments that find no room before the bottleneck have not crossed it
    refused = 0.0
    if ends.overflow is not None:
        full = slice(ends.overflow * states, (ends.overflow + 1) * states)
        refused = float(end[full] @ recovery.losses[full])
    seconds = max(seconds, (segments + path.crossed * (losses - refused)) * path.service_s)
    in_vain = float(end @ recovery.in_vain) if path.radio else 0.0
    fresh[top] += steady
    number_seen[top] += steady
    number_seen[1] += timeouts * (1.0 - path.loss) * path.segments_per_ack  # repetitions, alone on their way
    everything = fresh / path.segments_per_ack + _duplicates(path, at_end, recovery, end, ends.most)
    return LossyRates(
        goodput=segments / seconds,
        timeouts=timeouts / seconds,
        fast_retransmits=fast / seconds,
        losses=losses / (segments + losses + in_vain),
        window=float(everything @ np.arange(ends.most + 1.0) / everything.sum()),
        rtts=trips.samples.ravel(),
        weights=((number_seen / number_seen.sum())[:, None] * trips.shares).ravel(),
        residual=residual,
        states=len(starts),
    )


class _Trips(NamedTuple):
    """Round trips of new segments, by the number in flight.

    Attributes:
        mean: the round trip that gives the delivery rate, one window in each.
        samples: (flights, kinds) the round trips measured by acknowledgements.
        shares: shares of each sample.
    """

    mean: Vector
    samples: Vector
    shares: Vector

    @property
    def deviation(self) -> Vector:
        """Mean deviation of the measured round trips, by the number in flight (s)."""
        mean = (self.samples * self.shares).sum(axis=1, keepdims=True)
        return (np.abs(self.samples - mean) * self.shares).sum(axis=1)


def _trips(path: LossyPath, windows: Vector) -> _Trips:
    """Return the round trips of new segments, by the number in flight (`windows`).

    Two segments share an acknowledgement, so that the last one of an odd window waits until the first one of
    the next round comes, or its timer expires. Meanwhile one segment less passes. In a window that stays it
    then falls behind its round, and meets the next one at any time. A segment alone is a repetition, which is
    acknowledged at once, unless the window is never larger.

    Approximation: all segments of a window come in one group. Windows that open from half of their size,
    followed acknowledgement by acknowledgement, take 8 % longer to 4 % shorter than here, and 15 % longer
    from two and three segments on a path that holds four.
    """
    together = path.trip_of_new(windows)
    odd = (windows % 2.0) * ((windows > 2.0) | (path.window == 1)) * (path.gathered > 1)
    pause = np.maximum(together - windows * path.service_s, 0.0)
    waits, timed = odd * np.minimum(path.ack_delay_s, pause), pause > path.ack_delay_s
    steady = (windows == path.window) & (windows > 1.0)
    cut = np.where(timed & steady, waits / together, 0.0)  # a segment alone falls behind its round
    rates = (windows - waits * (1.0 - cut / 2.0) / together) / together
    rates = np.where(windows == 1.0, 1.0 / (together + waits), rates)
    pairs = np.maximum((windows - odd) / 2.0, 1.0)
    share = np.where(waits > 0.0, odd * (1.0 - cut) / (pairs + odd * timed), 0.0)
    share = np.where(windows == 1.0, odd, np.minimum(share, 1.0))
    return _Trips(
        np.divide(windows, rates, out=together.copy(), where=windows > 0.0),
        np.stack([together, path.round_trip(windows) + waits], axis=1),
        np.stack([1.0 - share, share], axis=1),
    )


@lru_cache(maxsize=256)
def _starts(path: LossyPath, top: int) -> tuple[Start, ...]:
    """Return the starts that there may be, up to the greatest one, in halves of a segment."""
    most = max(4, int(expired_flight(path, np.array(top))))
    return tuple(Start(kind, half) for kind in (AVOIDANCE, SLOW, LATE) for half in range(4, most + 1))


class _Growth(NamedTuple):
    """Windows as segments are acknowledged from each start, (starts, n).

    Attributes:
        flight: segments in flight.
        seen: segments in flight when the acknowledged segment was sent.
        slower: part by which a slow start lasts longer than an even flow.
        last: number of the segment at which the window is at its greatest, or a loss is certain, (starts,).
    """

    flight: NDArray[np.int64]
    seen: NDArray[np.int64]
    slower: Vector
    last: NDArray[np.int64]


def _growth(path: LossyPath, starts: tuple[Start, ...], top: int, longest: float) -> _Growth:
    """Open windows for up to `longest` segments, or until they are at their greatest."""
    b = path.segments_per_ack
    begin = np.array([start.begin(path.window) for start in starts])[:, None]
    threshold = np.array([start.threshold(path.window) for start in starts])[:, None]
    full = b * (np.maximum((top + 1.0) ** 2 - threshold**2, 0.0) / 2.0 + threshold)
    last = np.minimum(longest, full).astype(np.int64) + 2
    acks = np.arange(int(last.max()) + 1)[None, :] / b
    opening = threshold - begin
    square = threshold**2 + 2.0 * np.maximum(acks - opening, 0.0)
    avoiding = np.sqrt(square + np.log(square / threshold**2))  # 1/w for each, to the second order
    cwnd = np.where(acks < opening, begin + acks, avoiding)
    flight = np.maximum(np.minimum(cwnd, top), 1.0).astype(np.int64)
    # The segments acknowledged now were sent with a window smaller by 1/b. Of segments that share an ACK the
    # first waits in the queue for the segments behind it. These were sent with it, or with the next: half as
    # long.
    waits = (path.gathered - 1.0) / 2.0
    before = np.where(acks < opening, cwnd / (1.0 + 1.0 / b), np.maximum(cwnd - 1.0 / b + waits, begin))
    seen = np.maximum(np.minimum(before, top), 1.0).astype(np.int64)
    # A slow start multiplies its window by 1 + 1/b a round: in bursts, not by the flow's exponential.
    slower = np.where(acks < opening, 1.0 / (b * np.log1p(1.0 / b)), 1.0)
    return _Growth(flight, seen, slower, last[:, 0])


def _first_ends(path: LossyPath, starts: tuple[Start, ...], ends: Ends, flight: NDArray) -> NDArray[np.int64]:
    """Return the numbers of the ends at which the first segment of a cycle is lost, (starts,)."""
    avoids = np.array([start.kind == AVOIDANCE for start in starts])
    slow = np.array([start.kind == SLOW and path.variant != "sack" for start in starts])
    # no fast retransmit before data beyond the last recovery
    silent = avoids & (path.variant == "newreno")
    return np.where(slow, ends.again[flight], np.where(silent, ends.blocked[flight], flight))


@lru_cache(maxsize=256)
def _cycles(path: LossyPath, starts: tuple[Start, ...], top: int) -> _Cycles:
    """Open windows until they are at their greatest, or a row without loss is too unlikely to matter."""
    ends = ends_of(top, overflows=path.room < path.window)
    longest = np.log(FORGOTTEN) / np.log1p(-path.loss) if path.loss > 0.0 else np.inf
    flight, seen, slower, last = _growth(path, starts, top, longest)
    n, last = np.arange(flight.shape[1])[None, :], last[:, None]
    # or no acknowledgement of a window comes
    loss = path.loss + (1.0 - path.loss) * path.unanswered(flight, path.ack_loss)
    if path.row is not None:
        fits, refused = path.row
        behind, ahead = loss[:, fits:], flight[:, : flight.shape[1] - fits]  # of segments that find room
        # segments of a recovery are apart, until the window grows
        apart = [0 if start.kind == SLOW else min(flight[s, 0], top - 1) for s, start in enumerate(starts)]
        behind += (1.0 - behind) * refused * (ahead > np.maximum(fits, apart)[:, None])
    through = np.cumprod(np.append(np.ones((len(loss), 1)), 1.0 - loss[:, :-1], axis=1), axis=1)
    lost = np.where(n < last, loss * through, np.where(n == last, through, 0.0))
    end = flight.copy()
    if ends.overflow is not None:
        end[n == last] = ends.overflow
    end[:, 0] = _first_ends(path, starts, ends, flight[:, 0])
    reached = np.cumsum(lost[:, ::-1], axis=1)[:, -2::-1]  # that more segments are acknowledged
    row = np.arange(len(starts))

    def by(number: NDArray[np.int64], value: Vector, most: int = ends.most + 1) -> Vector:
        """Return the sums of values by a number, (starts, most)."""
        places = (row[:, None] * most + number).ravel()
        return np.bincount(places, value.ravel(), len(row) * most).astype(float).reshape(-1, most)

    steady = np.zeros(len(row))
    if ends.overflow is None:
        most = loss[row, last[:, 0]]
        steady = lost[row, last[:, 0]] * (1.0 - most) / most
    return _Cycles(
        ended=by(end, lost, len(ends.flight)),
        fresh=by(flight[:, :-1], reached),
        seen=by(seen[:, :-1], reached),
        steps=by(flight[:, :-1], reached * slower[:, :-1]),
        last=by(flight, lost),
        steady=steady,
        avoids=np.array([start.kind == AVOIDANCE for start in starts]),
    )


@lru_cache(maxsize=64)
def _faded_cycles(path: LossyPath, radio: Radio, starts: tuple[Start, ...], top: int) -> _Cycles:
    """Open windows as `_cycles` does, while the states of a radio move on.

    A segment that passes, or fails, moves the radio from its state to the state at the next segment. Late
    segments of a cycle are taken in blocks of equal windows, and the rest of a block at the greatest window.
    Where rows of segments have limited room, any segment of a larger window is refused, the first ones too.
    """
    ends, count = ends_of(top, overflows=path.room < path.window), len(radio.ack_loss)
    least = float(radio.loss.min())
    longest = np.log(FORGOTTEN) / np.log1p(-least) if least > 0.0 else np.inf
    flight, seen, slower, last = _growth(path, starts, top, longest)
    windows = np.arange(ends.most + 1)
    spacing_s = path.spacing(windows)
    answered = 1.0 - path.unanswered(windows[:, None], np.array(radio.ack_loss))
    passes = radio.arriving(spacing_s) * answered[:, None]
    if path.row is not None:
        fits, refused = path.row
        passes *= np.where(windows > fits, 1.0 - refused, 1.0)[:, None, None]
    fails = np.maximum(radio.moved(spacing_s) - passes, 0.0)
    row, most = np.arange(len(starts)), ends.most + 1
    ended = np.zeros((len(row), len(ends.flight), count, count))
    fresh, found_seen, steps, lost_by = np.zeros((4, len(row), most, count))
    at = np.broadcast_to(np.eye(count), (len(row), count, count))
    n, size, sums, whole = 0, 1, np.broadcast_to(np.eye(count), passes.shape), passes
    while n < flight.shape[1] and at.max() > FORGOTTEN:
        going = np.minimum(size, last - n).clip(0) == size
        here = flight[:, n]
        block = np.where(going[:, None, None], at, 0.0)
        left, through = block @ sums[here] @ fails[here], block @ whole[here]
        acked = (block @ (sums @ passes)[here]).sum(axis=-1)
        ended[row, _first_ends(path, starts, ends, here) if n == 0 else here] += left
        fresh[row, here] += acked
        found_seen[row, seen[:, n]] += acked
        steps[row, here] += acked * slower[:, n, None]
        lost_by[row, here] += left.sum(axis=-1)
        at = np.where(going[:, None, None], through, at)
        n += size
        if n >= BLOCK * size * 2:
            sums, whole, size = sums + whole @ sums, whole @ whole, 2 * size
    # of the windows that are at their greatest
    steady = np.zeros((len(row), count))
    if ends.overflow is None:
        at = at @ np.linalg.inv(np.eye(count) - passes[top])
        steady, at = (at @ passes[top]).sum(axis=-1), at @ fails[top]
    ended[:, top if ends.overflow is None else ends.overflow] += at
    lost_by[:, top] += at.sum(axis=-1)

    def in_a_row(array: Vector) -> Vector:
        """Return an array by start, number and state by start and state, and number."""
        return array.swapaxes(1, 2).reshape(len(row) * count, -1)

    return _Cycles(
        in_a_row(ended), in_a_row(fresh), in_a_row(found_seen), in_a_row(steps), in_a_row(lost_by),
        steady.ravel(), np.repeat([start.kind == AVOIDANCE for start in starts], count),
    )  # fmt: skip


def _lag(path: LossyPath, flight: Vector) -> tuple[Vector, Vector]:
    """Return how far acknowledgements lag behind an even flow (s), after a recovery and in a slow start.

    Segments go in bursts: in a slow start at the beginning of the round; after a recovery half a round later
    than an even flow. The lag is smaller by the segments that the inflated window released a round before, on
    average f/8 of the f/2 segments, or fewer where the receive window limits them. If it released none, the
    path is empty: the first acknowledgement comes a round later, and the others as the bottleneck serves.
    """
    busy = np.minimum(flight * path.service_s / path.base_s, 1.0)
    room = np.clip(path.window - flight, 0.0, flight / 2.0)
    early, held = (room - room**2 / flight) / flight, (1.0 - 2.0 * room / flight) ** 2
    trip = path.round_trip(flight)
    empty = held * busy * (1.0 - 1.0 / flight) * path.base_s
    idle_s = (1.0 - busy) * trip
    return np.maximum(0.5 - early - 1.0 / flight, 0.0) * idle_s + empty, 0.5 * idle_s


def _duplicates(
    path: LossyPath, flight: NDArray[np.int64], recovery: Recovery, end: Vector, most: int
) -> Vector:
    """Return the mean number of duplicate acknowledgements of a cycle that find each window."""
    found = np.zeros(most + 1)
    before = np.minimum(recovery.duplicates, DUPLICATE_THRESHOLD)
    np.add.at(found, flight, end * before)
    later = recovery.duplicates - before
    half = flight / 2.0
    inflated = {"sack": half, "tahoe": np.ones_like(half)}.get(
        path.variant, half + DUPLICATE_THRESHOLD + later / 2.0
    )
    np.add.at(found, np.minimum(inflated, most).astype(np.int64), end * later)
    return found


def _stationary(ended: Vector, leads_to: Vector) -> tuple[Vector, float]:
    """Return the law of the starts, and how far a further cycle moves it.

    Each cycle leads from starts to ends to starts, and nearly forgets its start. Two cycles in a row are
    averaged, as starts may alternate. Sums without BLAS, whose threads cost more time than these small sums.
    """
    law, before, moved = np.full(len(ended), 1.0 / len(ended)), np.zeros(len(ended)), np.inf
    for _ in range(MOST_CYCLES):
        after = np.einsum("e,es->s", np.einsum("s,se->e", law, ended), leads_to)
        moved = float(np.abs(after - before).max()) / 2.0
        before, law = law, after
        if moved < FORGOTTEN:
            break
    law = (law + before) / 2.0
    return law / law.sum(), moved
