"""A small approximate chain of NewReno for any window: one state a round instead of one a segment.

What the exact chain remembers of every segment is forgotten at the end of a loss event. States are the
starts of
rounds: congestion avoidance with w segments in flight; slow start with w segments and its threshold; the
round in which fast recovery ends; and the retransmission after k timeouts. A loss event is enumerated by the
place of the first loss and the number of duplicate ACKs that follow it; the holes are then filled one a round
(RFC 6582). Events are kept as monomials in the loss probability, so that the rates are smooth in it.

The solution and its measured errors are in `tcp_chains.reduced_cost`.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import comb, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.transport.newreno_sender import DUPLICATE_THRESHOLD
from tcp_chains import MAX_BACKOFF

AVOIDANCE = "congestion avoidance"
SLOW_START = "slow start"
RECOVERY_END = "recovery end"
RETRANSMISSION = "retransmission"


class RoundState(NamedTuple):
    """Start of a round.

    Attributes:
        kind: one of the four above.
        flight: segments in flight; for RETRANSMISSION, timeouts in a row.
        threshold: slow-start threshold where it still matters, else 0.
    """

    kind: str
    flight: int
    threshold: int


Entry = Any  # a number in one row of a table, or the column of all rows


class Growth(NamedTuple):
    """A round that loses no segment, with chance `share` * (1 - p)**lossy.

    Attributes:
        source: state in which the round starts.
        target: next state, if the ACKs arrive.
        stalled: next state, if too few arrive to open the window.
        silent: state after the timeout that follows if no ACK arrives.
        share: weight among the outcomes of such a round.
        segments: segments delivered.
        lossy: segments that might have been lost.
    """

    source: Entry
    target: Entry
    stalled: Entry
    silent: Entry
    share: Entry
    segments: Entry
    lossy: Entry


class LossEvent(NamedTuple):
    """A loss event with chance `ways` * p**lost * (1 - p)**passed in a round that starts in `source`.

    Attributes:
        source: state in which the round starts.
        ways: number of patterns of losses.
        lost: segments lost, all of them holes to fill.
        passed: segments that got through.
        duplicates: segments delivered behind the first hole: the duplicate ACKs, if none is lost.
        delivered: segments delivered by the end of the duplicates, on average.
        rounds: rounds until the third duplicate ACK is in, on average.
        timed_rounds: rounds after which the timer starts, where no fast retransmit comes.
        late: segments that the ACKs before the first loss release.
        refill: new segments released in each round of recovery.
        recovered: state after recovery.
        first_failed: state after a timeout of the first retransmission.
        later_failed: state after a timeout of a later one.
        expired: state after a timeout for want of duplicate ACKs.
    """

    source: Entry
    ways: Entry
    lost: Entry
    passed: Entry
    duplicates: Entry
    delivered: Entry
    rounds: Entry
    timed_rounds: Entry
    late: Entry
    refill: Entry
    recovered: Entry
    first_failed: Entry
    later_failed: Entry
    expired: Entry


@dataclass(frozen=True, eq=False)
class ReducedStructure:
    """The reduced chain of one receive window; constant arrays, free of probabilities.

    Attributes:
        window: receive window in segments.
        flight: (n,) segments in flight by state (1 in a retransmission).
        window_seen: (n,) window that the ACKs of the round leave, on average.
        retransmission: (n,) timeouts in a row by state, 0 elsewhere.
        fresh: (n,) state after the ACK of a retransmission.
        again: (n,) state after the loss of a retransmission.
        growth: columns of `Growth`.
        events: columns of `LossEvent`.
    """

    window: int
    flight: NDArray[np.float64]
    window_seen: NDArray[np.float64]
    retransmission: NDArray[np.int64]
    fresh: NDArray[np.int64]
    again: NDArray[np.int64]
    growth: Growth
    events: LossEvent


@lru_cache(maxsize=16)
def reduced_structure(window: int) -> ReducedStructure:
    """Enumerate the reduced chain of a receive window of 1 to 64 segments."""
    return _Enumeration(window).structure()


class _Enumeration:
    """Breadth-first enumeration of the reduced chain."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.index: dict[RoundState, int] = {}
        self.states: list[RoundState] = []
        self.growth: list[Growth] = []
        self.events: list[LossEvent] = []

    def structure(self) -> ReducedStructure:
        fresh, again = {}, {}
        self.after_timeout(self.window)
        for source, state in enumerate(self.states):  # grows while it is read
            if state.kind is RETRANSMISSION:
                fresh[source] = self.opening(min(2, self.window), state.threshold)
                again[source] = self.place(RETRANSMISSION, min(state.flight + 1, MAX_BACKOFF + 1), 2)
            else:
                self.lossless(source, state)
                self.loss_events(source, state)
        n = len(self.states)
        waits = np.array([s.flight if s.kind is RETRANSMISSION else 0 for s in self.states])
        return ReducedStructure(
            window=self.window,
            flight=np.array([1.0 if s.kind is RETRANSMISSION else s.flight for s in self.states]),
            window_seen=np.array([self.window_seen(s) for s in self.states]),
            retransmission=waits,
            fresh=np.array([fresh.get(k, 0) for k in range(n)]),
            again=np.array([again.get(k, 0) for k in range(n)]),
            growth=Growth(*map(np.array, zip(*self.growth, strict=True))),
            events=LossEvent(*map(np.array, zip(*self.events, strict=True))),
        )

    def place(self, kind: str, flight: int, threshold: int = 0) -> int:
        state = RoundState(kind, flight, threshold)
        if state not in self.index:
            self.index[state] = len(self.states)
            self.states.append(state)
        return self.index[state]

    def opening(self, flight: int, threshold: int) -> int:
        """Slow start below the threshold, congestion avoidance from there."""
        if flight < min(threshold, self.window):
            return self.place(SLOW_START, flight, threshold)
        return self.place(AVOIDANCE, min(flight, self.window))

    def after_timeout(self, outstanding: int) -> int:
        return self.place(RETRANSMISSION, 1, _halved(outstanding))

    def window_seen(self, state: RoundState) -> float:
        w = state.flight
        if state.kind is RETRANSMISSION:
            return float(min(2, self.window))
        if state.kind is SLOW_START:
            return 0.5 * (w + 1 + min(2 * w, state.threshold, self.window))
        return min(w + 0.5, self.window) if state.kind is AVOIDANCE else float(w)

    def lossless(self, source: int, state: RoundState) -> None:
        w, silent = state.flight, self.after_timeout(state.flight)
        if state.kind is SLOW_START:
            grown = min(2 * w, state.threshold, self.window)
            target = self.opening(grown, state.threshold)
            self.growth.append(Growth(source, target, source, silent, 1.0, w, w))
        elif state.kind is RECOVERY_END:  # the last hole is filled; the window stays what recovery left
            target = self.place(AVOIDANCE, w)
            self.growth.append(Growth(source, target, target, silent, 1.0, w, w - 1))
        else:
            # w ACKs of 1/cwnd each open the window by a little less than one segment
            share = sqrt(w * w + 2.0 * w) - w if w < self.window else 0.0
            if share:
                grown = self.place(AVOIDANCE, w + 1)
                self.growth.append(Growth(source, grown, source, silent, share, w, w))
            self.growth.append(Growth(source, source, source, silent, 1.0 - share, w, w))

    def loss_events(self, source: int, state: RoundState) -> None:
        filled = 1 if state.kind is RECOVERY_END else 0  # the last hole's retransmission has got through
        lossy = state.flight - filled
        for first in range(1, lossy + 1):
            early = lossy - first  # behind the first loss in the same round
            late = filled + first - 1  # released by the ACKs before it, in the next round
            if state.kind is SLOW_START:
                late = min(2 * late, self.window - early - 1)
            for duplicates in range(early + late + 1):
                self.events.append(self.loss_event(source, filled, first, early, late, duplicates))

    def loss_event(
        self, source: int, filled: int, first: int, early: int, late: int, duplicates: int
    ) -> LossEvent:
        behind = early + late
        outstanding = behind + 1
        lost = outstanding - duplicates
        share = duplicates / behind if behind else 0.0
        in_round = filled + first - 1 + share * early
        threshold = _halved(outstanding)
        refill = max(min(threshold + duplicates, self.window) - outstanding, 0)
        next_round = _too_few(early, late, duplicates) if duplicates >= DUPLICATE_THRESHOLD else 1.0
        return LossEvent(
            source=source,
            ways=float(comb(behind, duplicates)),
            lost=lost,
            passed=first - 1 + duplicates,
            duplicates=duplicates,
            delivered=in_round + next_round * share * late,
            rounds=1.0 + next_round,
            timed_rounds=1 if first + filled > 1 else 0,
            late=late,
            refill=refill,
            recovered=self.place(RECOVERY_END, min(threshold, self.window)),
            first_failed=self.after_timeout(min(outstanding + refill, self.window)),
            later_failed=self.after_timeout(max(outstanding // 2, 2)),
            expired=self.after_timeout(outstanding),
        )


def _halved(outstanding: int) -> int:
    return max(outstanding // 2, 2)


def _too_few(early: int, late: int, duplicates: int) -> float:
    """Chance that fewer than three of the duplicates fall among the early segments (hypergeometric)."""
    few = range(min(DUPLICATE_THRESHOLD - 1, early, duplicates) + 1)
    return sum(comb(early, k) * comb(late, duplicates - k) for k in few) / comb(early + late, duplicates)
