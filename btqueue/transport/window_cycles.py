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
STEPS = 8
"""Waits shorter than the timer of acknowledgements that are told apart."""


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
    """Solve the chain.

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
    if path.loss == 0.0:  # every cycle ends by overflow, and leads to few starts
        used = recovery.leads_to[ends.overflow] > 0.0
        starts = tuple(start for start, one in zip(starts, used, strict=True) if one)
        recovery = recovery._replace(leads_to=recovery.leads_to[:, used])
    cycles = _cycles(path if path.radio else path.timeless, starts, top)
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
    # segments lost at random have crossed the bottleneck; segments that find no room before it have not
    refused = 0.0
    if ends.overflow is not None:
        full = slice(ends.overflow * states, (ends.overflow + 1) * states)
        refused = float(end[full] @ recovery.losses[full])
    seconds = max(seconds, (segments + losses - refused) * path.service_s)
    fresh[top] += steady
    number_seen[top] += steady
    number_seen[1] += timeouts * (1.0 - path.loss) * path.segments_per_ack  # repetitions, alone on their way
    everything = fresh / path.segments_per_ack + _duplicates(path, at_end, recovery, end, ends.most)
    return LossyRates(
        goodput=segments / seconds,
        timeouts=timeouts / seconds,
        fast_retransmits=fast / seconds,
        losses=losses / (segments + losses),
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

    A segment that the receiver of delayed acknowledgements holds until its timer goes round alone. Of w
    segments n do: one more in (w - n) / 2w of the round trips, as a train that grows becomes odd; one less in
    n / w, as a segment joins it; two less in n^2 t, if a share t of a round trip is as long as the timer and
    another one comes meanwhile. The balance of these means gives n. Where the window stays at its limit, only
    its odd segment goes alone. The first other segment cuts a wait short.
    """
    together = path.trip_of_new(windows)
    longest = np.minimum(path.ack_delay_s, np.maximum(together - windows * path.service_s, 0.0))
    share, one = longest / together, 1.5 / np.maximum(windows, 1.0)
    alone = ((one**2 + 4.0 * share) ** 0.5 - one) / (4.0 * np.maximum(share, 1e-12))
    alone = np.where(windows < path.window, np.minimum(alone, windows) * (share > 0.0), windows % 2.0)
    edges = np.linspace(0.0, 1.0, STEPS + 1)[None, :] * longest[:, None]
    longer = (1.0 - edges / together[:, None]) ** np.maximum(alone, 1.0)[:, None]
    waits = np.concatenate([(edges[:, 1:] + edges[:, :-1]) / 2.0, longest[:, None]], axis=1)
    chances = np.concatenate([longer[:, :-1] - longer[:, 1:], longer[:, -1:]], axis=1)
    single = path.round_trip(windows)[:, None] + waits
    rates = (windows - alone) / together + alone / (single * chances).sum(axis=1)
    part = np.divide(2.0 * alone, windows + alone, out=np.zeros_like(windows), where=windows > 0.0)
    return _Trips(
        np.divide(windows, rates, out=together.copy(), where=windows > 0.0),
        np.concatenate([together[:, None], single], axis=1),
        np.concatenate([1.0 - part[:, None], part[:, None] * chances], axis=1),
    )


@lru_cache(maxsize=256)
def _starts(path: LossyPath, top: int) -> tuple[Start, ...]:
    """Return the starts that there may be, up to the greatest one, in halves of a segment."""
    most = max(4, int(expired_flight(path, np.array(top))))
    return tuple(Start(kind, half) for kind in (AVOIDANCE, SLOW, LATE) for half in range(4, most + 1))


@lru_cache(maxsize=256)
def _cycles(path: LossyPath, starts: tuple[Start, ...], top: int) -> _Cycles:
    """Open windows until they are at their greatest, or a row without loss is too unlikely to matter."""
    ends = ends_of(top, overflows=path.room < path.window)
    b = path.segments_per_ack
    begin = np.array([start.begin(path.window) for start in starts])[:, None]
    threshold = np.array([start.threshold(path.window) for start in starts])[:, None]
    losses = path.states.loss
    longest = np.log(FORGOTTEN) / np.log1p(-losses.min()) if losses.min() > 0.0 else np.inf
    full = b * (np.maximum((top + 1.0) ** 2 - threshold**2, 0.0) / 2.0 + threshold)
    last = np.minimum(longest, full).astype(np.int64) + 2
    n = np.arange(int(last.max()) + 1)[None, :]
    acks_seen = n / b
    opening = threshold - begin
    square = threshold**2 + 2.0 * np.maximum(acks_seen - opening, 0.0)
    avoiding = np.sqrt(square + np.log(square / threshold**2))  # 1/w for each, to the second order
    cwnd = np.where(acks_seen < opening, begin + acks_seen, avoiding)
    flight = np.maximum(np.minimum(cwnd, top), 1.0).astype(np.int64)
    # The segments acknowledged now were sent with a window smaller by 1/b. Of segments that share an ACK the
    # first waits in the queue for the segments behind it. These were sent with it, or with the next: half as
    # long.
    waits = (path.gathered - 1.0) / 2.0
    before = np.where(acks_seen < opening, cwnd / (1.0 + 1.0 / b), np.maximum(cwnd - 1.0 / b + waits, begin))
    seen = np.maximum(np.minimum(before, top), 1.0).astype(np.int64)
    passes, fails = _passages(path, ends.most)
    lost, through = _losses(passes, fails, flight, last[:, 0])
    row = np.arange(len(starts))
    rest = through  # of the windows that are at their greatest
    steady = np.zeros(rest.shape[:2])
    if ends.overflow is None:
        whole = path.states.arriving(path.spacing(top))
        rest = rest @ np.linalg.inv(np.eye(len(losses)) - whole)
        steady = rest @ whole.sum(axis=1)
        rest = rest @ (path.states.moved(path.spacing(top)) - whole)
    lost[row, last[:, 0]] = rest
    end = flight.copy()
    if ends.overflow is not None:
        end[n == last] = ends.overflow
    avoids = np.array([start.kind == AVOIDANCE for start in starts])
    slow = np.array([start.kind == SLOW for start in starts])
    if path.variant != "sack":  # no fast retransmit before data beyond the last recovery
        first = slow | avoids if path.variant == "newreno" else slow
        end[first, 0] = ends.blocked[flight[first, 0]]
    end[slow, 0] = ends.again[flight[slow, 0]]
    ended = lost.sum(axis=-1)
    reached = np.cumsum(ended[:, ::-1], axis=1)[:, -2::-1]  # that more segments are acknowledged
    # A slow start multiplies its window by 1 + 1/b a round: in bursts, not by the flow's exponential.
    slower = np.where(acks_seen < opening, 1.0 / (b * np.log1p(1.0 / b)), 1.0)[:, :-1]

    def by(number: NDArray[np.int64], value: Vector, most: int = ends.most + 1) -> Vector:
        """Return the sums of values (starts, n, ...) by a number, (starts x states, most, ...)."""
        places, rest = (row[:, None] * most + number).ravel(), value.shape[2:]
        sums = [np.bincount(places, one.ravel(), len(row) * most) for one in value.reshape(*value.shape[:2], -1).transpose(2, 0, 1)]
        return np.stack(sums, axis=-1).reshape(len(row), most, *rest).swapaxes(1, 2).reshape(len(row) * rest[0], most, *rest[1:])

    return _Cycles(
        ended=by(end, lost, len(ends.flight)).reshape(steady.size, -1),
        fresh=by(flight[:, :-1], reached),
        seen=by(seen[:, :-1], reached),
        steps=by(flight[:, :-1], reached * slower[..., None]),
        last=by(flight, ended),
        steady=steady.ravel(),
        avoids=np.repeat(avoids, len(losses)),
    )


def _passages(path: LossyPath, most: int) -> tuple[Vector, Vector]:
    """Return the chances that a segment passes, or fails, and of the radio's states at the next segment.

    A segment fails if it is lost, or no acknowledgement of a window comes. By segments in flight, and the
    states before and after, (most + 1, states, states).
    """
    flight = np.arange(most + 1)
    seconds = np.array([path.spacing(f) for f in flight])
    answered = 1.0 - np.array(path.states.ack_loss) ** np.maximum(flight, 1)[:, None]
    passes = path.states.arriving(seconds) * answered[:, None]
    return passes, path.states.moved(seconds) - passes


def _losses(passes: Vector, fails: Vector, flight: NDArray[np.int64], last: NDArray) -> tuple[Vector, Vector]:
    """Return the chances that each segment is lost first, and that none is lost before the last one.

    Args:
        passes, fails: chances of a segment by segments in flight (`_passages`).
        flight: segments in flight, (starts, n).
        last: number of the last segment, (starts,).

    Returns:
        (starts, n, states, states) by state at the start and after the loss, and (starts, states, states).
    """
    starts, count = flight.shape
    if passes.shape[-1] == 1:
        loss = fails[flight, 0, 0]
        through = np.cumprod(1.0 - loss, axis=1) / (1.0 - loss)
        lost = np.where(np.arange(count) < last[:, None], loss * through, 0.0)
        return lost[..., None, None], through[np.arange(starts), last][:, None, None]
    lost = np.zeros((starts, count, *passes.shape[1:]))
    at, whole = np.broadcast_to(np.eye(passes.shape[-1]), (starts, *passes.shape[1:])), np.array([])
    whole = np.zeros_like(at)
    for n in range(count):
        whole = np.where((last == n)[:, None, None], at, whole)
        going = (n < last)[:, None, None]
        lost[:, n] = np.where(going, at @ fails[flight[:, n]], 0.0)
        at = at @ passes[flight[:, n]]
    return lost, whole


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


def _duplicates(path: LossyPath, flight: Vector, recovery: Recovery, end: Vector, most: int) -> Vector:
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
