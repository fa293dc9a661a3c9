"""A bulk transfer that loses segments at random: the renewal chain of its congestion window.

The window after a recovery decides, with the number N of segments acknowledged until the next one is lost,
everything up to the end of the next recovery. So the windows at the ends of recoveries are a Markov chain
with a few states for each segment of the receive window, whatever the loss probability; a cycle's length,
deliveries and events are its rewards (Markov renewal theorem). Within a cycle the window opens by the
square-root law, w^2 grows by 2 for each acknowledgement, or by one for each below the threshold of a slow
start, and a round trip takes as long as the path needs for w segments. How a cycle ends is in
`bulk_transfer.recovery`.

Sources: Padhye, Firoiu, Towsley & Kurose, IEEE/ACM Transactions on Networking 8(2), 2000 (cycles between
losses); Mathis, Semke, Mahdavi & Ott, Computer Communication Review 27(3), 1997.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.network.bulk_transfer.odd_segments import odd_segments
from btqueue.network.bulk_transfer.recovery import (
    AVOIDANCE,
    DUPLICATES,
    LATE,
    SLOW,
    LossyPath,
    Recovery,
    Start,
    expired_flight,
    recovery_of,
)

Vector = NDArray[np.floating]

FORGOTTEN = 1e-12
"""A loss-free row of segments with less than this chance is left out."""


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


class _Cycle(NamedTuple):
    """A window that opens without loss, by the segments acknowledged so far.

    Attributes:
        cwnd: congestion window.
        time: time since the cycle began (s).
        lost_next: chance that the next segment is the first one lost. The last place stands for all after it:
            there the window is at its greatest, or overflows.
        flight: segments in flight when that is found out.
    """

    cwnd: Vector
    time: Vector
    lost_next: Vector
    flight: NDArray[np.int64]


def lossy_rates(path: LossyPath) -> LossyRates:
    """Solve the chain."""
    top = int(max(2, min(path.window, path.room)))
    starts = [
        Start(kind, half) for kind in (AVOIDANCE, SLOW, LATE) for half in range(4, _most(path, top) + 1)
    ]
    windows = np.arange(top + 1.0)
    trips = _trips(path, windows)
    cycles = [_cycle(path, start, top, trips.mean) for start in starts]
    recovery = recovery_of(path, top, starts, trips.deviation)
    ends = np.array([np.bincount(cycle.flight, cycle.lost_next, top + 1) for cycle in cycles])
    chain = ends @ recovery.leads_to
    rewards = np.array(
        [
            _rewards(path, cycle, recovery, start, trips.mean[top])
            for cycle, start in zip(cycles, starts, strict=True)
        ]
    )
    seen = np.array([_acknowledgements(path, cycle, recovery, top) for cycle in cycles])
    law = _stationary(chain)
    seconds, segments, timeouts, fast, losses = law @ rewards
    seconds = max(seconds, (segments + losses) * path.service_s)  # what is lost has crossed the bottleneck
    fresh, repeated = law @ seen[:, 0], law @ seen[:, 1]
    everything = fresh + repeated
    return LossyRates(
        goodput=segments / seconds,
        timeouts=timeouts / seconds,
        fast_retransmits=fast / seconds,
        losses=losses / (segments + losses),
        window=float(everything @ windows / everything.sum()),
        rtts=trips.samples.ravel(),
        weights=((fresh / fresh.sum())[:, None] * trips.shares).ravel(),
        residual=float(np.abs(law @ chain - law).max()),
        states=len(starts),
    )


class _Trips(NamedTuple):
    """Round trips of new segments, by the number in flight.

    Attributes:
        mean: that with which they are delivered, one window in each.
        samples: (flights, kinds) what acknowledgements show.
        shares: of these.
    """

    mean: Vector
    samples: Vector
    shares: Vector

    @property
    def deviation(self) -> Vector:
        """Mean deviation of what acknowledgements show, by the number in flight (s)."""
        mean = (self.samples * self.shares).sum(axis=1, keepdims=True)
        return (np.abs(self.samples - mean) * self.shares).sum(axis=1)


def _trips(path: LossyPath, windows: Vector) -> _Trips:
    """Return the round trips of new segments with so many in flight."""
    together = path.trip_of_new(windows)
    odd = odd_segments(windows, path.window, together, path.service_s, path.ack_delay_s)
    single = path.round_trip(windows)[:, None] + odd.waits
    rates = (windows - odd.alone) / together + odd.alone / (single * odd.chances).sum(axis=1)
    share = np.divide(2.0 * odd.alone, windows + odd.alone, out=np.zeros_like(windows), where=windows > 0.0)
    return _Trips(
        np.divide(windows, rates, out=together.copy(), where=windows > 0.0),
        np.concatenate([together[:, None], single], axis=1),
        np.concatenate([1.0 - share[:, None], share[:, None] * odd.chances], axis=1),
    )


def _most(path: LossyPath, top: int) -> int:
    """Return the greatest start there can be, in halves of a segment."""
    return max(4, int(expired_flight(path, np.array(top))))


def _cycle(path: LossyPath, start: Start, top: int, trips: Vector) -> _Cycle:
    """Open the window until it is at its greatest, or until a row without loss is too unlikely to matter."""
    begin, threshold = start.window, start.threshold
    longest = np.log(FORGOTTEN) / np.log1p(-path.loss)
    full = path.segments_per_ack * (max((top + 1.0) ** 2 - threshold**2, 0.0) / 2.0 + threshold)
    n = np.arange(int(min(longest, full)) + 3)
    acks = n / path.segments_per_ack
    opening = threshold - begin
    square = threshold**2 + 2.0 * np.maximum(acks - opening, 0.0)
    avoiding = np.sqrt(square + np.log(square / threshold**2))  # 1/w for each, to the second order
    cwnd = np.where(acks < opening, begin + acks, avoiding)
    used = np.maximum(np.floor(np.minimum(cwnd, top)), 1.0)
    # A slow start multiplies its window by 1 + 1/b a round: in bursts, not by the flow's exponential.
    b = path.segments_per_ack
    steps = trips[used.astype(np.int64)] / used * np.where(acks < opening, 1.0 / (b * np.log1p(1.0 / b)), 1.0)
    lost_next = path.loss * (1.0 - path.loss) ** n
    lost_next[-1] = (1.0 - path.loss) ** n[-1]
    return _Cycle(cwnd, np.concatenate([[0.0], np.cumsum(steps[:-1])]), lost_next, used.astype(np.int64))


def _steady(path: LossyPath, cycle: _Cycle) -> float:
    """Return the mean number of segments that pass with the window at its greatest, overflow aside."""
    return cycle.lost_next[-1] * (1.0 - path.loss) / path.loss if path.room > path.window else 0.0


def _rewards(path: LossyPath, cycle: _Cycle, recovery: Recovery, start: Start, longest: float) -> Vector:
    """Mean seconds, segments delivered, timeouts, fast retransmits and losses of a cycle.

    `longest` is the round trip of the greatest window.
    """
    flight, chance = cycle.flight, cycle.lost_next
    # Segments go in bursts: those of a slow start at the beginning of the round, those that a recovery
    # releases in its second half; so acknowledgements lag behind an even flow.
    idle = np.maximum(0.0, 1.0 - flight * path.service_s / path.base_s)
    share = np.maximum(0.25 - 1.0 / flight, 0.0) if start.kind == AVOIDANCE else 0.5
    lag = share * path.round_trip(flight) * idle
    rows = np.stack(
        [
            cycle.time + lag + recovery.seconds[flight],
            np.arange(flight.size) + flight,
            recovery.timeouts[flight],
            recovery.fast_retransmits[flight],
            recovery.losses[flight],
        ]
    )
    last = longest / flight[-1]
    return rows @ chance + _steady(path, cycle) * np.array([last, 1.0, 0.0, 0.0, 0.0])


def _acknowledgements(path: LossyPath, cycle: _Cycle, recovery: Recovery, top: int) -> Vector:
    """Return the mean number of new and of duplicate acknowledgements that find each window."""
    reached = np.cumsum(cycle.lost_next[::-1])[::-1]
    fresh: Vector = np.bincount(cycle.flight[:-1], reached[1:], top + 1).astype(float)
    fresh[top] += _steady(path, cycle)
    ends = np.bincount(cycle.flight, cycle.lost_next, top + 1)
    before = np.minimum(recovery.duplicates, DUPLICATES)
    repeated = ends * before
    later = recovery.duplicates - before
    half = np.arange(top + 1) / 2.0
    inflated = {"sack": half, "tahoe": np.ones_like(half)}.get(path.variant, half + DUPLICATES + later / 2.0)
    np.add.at(repeated, np.minimum(inflated, top).astype(np.int64), ends * later)
    return np.stack([fresh / path.segments_per_ack, repeated]).astype(float)


def _stationary(chain: Vector) -> Vector:
    size = len(chain)
    system = np.vstack([(np.eye(size) - chain.T)[:-1], np.ones(size)])
    return np.linalg.solve(system, np.concatenate([np.zeros(size - 1), [1.0]]))
