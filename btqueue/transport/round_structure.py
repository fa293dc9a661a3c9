"""NewReno by rounds: the states in which a round of segments can start, and where each outcome leads.

What the exact chain remembers of every segment is forgotten at the end of a loss
event. A state is the start of a round: how many segments it has, and where the next growth of the window is
due. The congestion window is a real number that grows by 1/cwnd an ACK from a whole one, so the state that
congestion avoidance is in says at which ACK of this round, and of the next, one more segment is let out.

A loss event is sorted by the place of the first loss. Behind it are the *early* segments of the same round,
and the *late* ones that the ACKs before it let out in the next round; those of them that arrive send
duplicate ACKs. With three of them the holes are filled one a round (RFC 6582); else the timer expires.

States: the retransmission after k timeouts; slow start; congestion avoidance; a round that is one segment
short, because the ACK of the last segment of the round before was lost (cumulative ACKs make up for it one
round later); and the last round of recovery, that begins with the retransmission which fills the last hole.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Entry = Any  # a number in one row of a table, or the column of all rows

DUPLICATE_THRESHOLD = 3  # RFC 5681 section 3.2
MAX_BACKOFF = 6  # 2**6 = 64: the usual cap on the doubling of the retransmission timer
LARGEST_WINDOW = 16
MOST_HOLES = 3
"""Segments lost in one window that recovery fills; with more the timer is taken to expire."""

RETRANSMISSION, SLOW_START, AVOIDANCE, SHORT, RECOVERY_END = range(5)


class State(NamedTuple):
    """Start of a round.

    Attributes:
        kind: one of the five above.
        window: congestion window in whole segments; timeouts in a row for RETRANSMISSION.
        more: threshold (RETRANSMISSION, SLOW_START), real congestion window (AVOIDANCE, SHORT), or new
            segments that follow the retransmission (RECOVERY_END).
    """

    kind: int
    window: int
    more: float


class Losses(NamedTuple):
    """Loss events by the place of the first loss, columns of E rows.

    Attributes:
        source: state in which the round starts.
        first: place of the first loss, from 0.
        early, late: segments behind it in this round and in the next.
        unheard: whether the sender does not know of the segments before it if the last ACK is lost: none of
            these starts the timer anew.
        expired: state after a timeout for want of duplicate ACKs.
    """

    source: Entry
    first: Entry
    early: Entry
    late: Entry
    unheard: Entry
    expired: Entry


class Recoveries(NamedTuple):
    """Loss events with enough duplicate ACKs, columns of R rows.

    Attributes:
        event: row of `Losses`.
        holes: segments lost.
        duplicates: that arrive behind the first hole.
        next_round: chance that the third duplicate is among the late segments.
        refill: new segments let out by the duplicates.
        recovered, first_failed, later_failed: states after recovery, and after a timeout of the first or of
            a later retransmission.
    """

    event: Entry
    holes: Entry
    duplicates: Entry
    next_round: Entry
    refill: Entry
    recovered: Entry
    first_failed: Entry
    later_failed: Entry


class Moves(NamedTuple):
    """Transitions from round to round, columns of M rows.

    They are, by state: all went well, the last acknowledgement was lost, all were; by event of `Losses`:
    timeout; by recovery: the first retransmission failed, a later one did, none did.

    Attributes:
        source, target: states.
        sent, late: segments sent of this round, and of the next.
        lossy: whether one of them was lost.
    """

    source: Integers
    target: Integers
    sent: Integers
    late: Integers
    lossy: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class RoundStructure:
    """The rounds of one receive window; constant arrays, free of probabilities and times.

    Attributes:
        window: receive window in segments.
        size: (S,) segments of a round.
        filled: (S,) whether its first one fills a hole and has got through.
        timeouts: (S,) timeouts in a row before it; 0 but for a retransmission.
        found: (S,) congestion window that the first of its ACKs finds.
        grown, shortened, silent: (S,) next state if the last ACK arrives, if it is lost, if all are.
        losses, recoveries: see there.
    """

    window: int
    size: Integers
    filled: NDArray[np.bool_]
    timeouts: Integers
    found: NDArray[np.float64]
    grown: Integers
    shortened: Integers
    silent: Integers
    losses: Losses
    recoveries: Recoveries

    @property
    def states(self) -> int:
        """Number S of states."""
        return self.size.size

    @cached_property
    def moves(self) -> Moves:
        """The transitions."""
        state, losses, found = np.arange(self.states), self.losses, self.recoveries
        of, late = losses.source[found.event], losses.late[found.event]
        blocks = (
            (state, self.grown, 0 * state),
            (state, self.shortened, 0 * state),
            (state, self.silent, 0 * state),
            (losses.source, losses.expired, losses.late),
            (of, found.first_failed, late),
            (of, found.later_failed, late),
            (of, found.recovered, late + 1),
        )
        source, target, late = (np.concatenate(column) for column in zip(*blocks, strict=True))
        lossy = np.arange(source.size) >= 3 * self.states
        return Moves(source, target, (self.size - self.filled)[source], late, lossy)


@lru_cache(maxsize=16)
def round_structure(window: int) -> RoundStructure:
    """Enumerate the rounds of a receive window of 1 to 16 segments.

    Raises:
        ValueError: the window is out of range.

    Example:
        >>> from btqueue.transport.round_structure import round_structure
        >>> round_structure(4).window
        4
    """
    if not 1 <= window <= LARGEST_WINDOW:
        raise ValueError(f"window must be 1 to {LARGEST_WINDOW} segments, got {window}")
    return _Enumeration(window).structure()


class _Enumeration:
    """Breadth-first enumeration of the rounds."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.states: list[State] = []
        self.index: dict[State, int] = {}
        self.alike: dict[tuple[int, ...], State] = {}
        self.next: list[tuple[int, int, int]] = []
        self.losses: list[Losses] = []
        self.recoveries: list[Recoveries] = []

    def structure(self) -> RoundStructure:
        self.after_timeout(self.window)
        for source, state in enumerate(self.states):  # grows while it is read
            self.outcomes(source, state)
            self.loss_events(source, state)
        kinds = np.array([state.kind for state in self.states])
        windows = np.array([state.window for state in self.states])
        grown, shortened, silent = np.array(self.next).T
        return RoundStructure(
            window=self.window,
            size=np.array([self.size(state) for state in self.states]),
            filled=kinds == RECOVERY_END,
            timeouts=np.where(kinds == RETRANSMISSION, windows, 0),
            found=np.where(kinds == RETRANSMISSION, 1.0, windows),
            grown=grown,
            shortened=shortened,
            silent=silent,
            losses=Losses(*map(np.array, zip(*self.losses, strict=True))),
            recoveries=Recoveries(*map(np.array, zip(*self.recoveries, strict=True)))
            if self.recoveries
            else Recoveries(*(np.zeros(0, np.int64) for _ in Recoveries._fields)),
        )

    def place(self, state: State) -> int:
        if state not in self.index:
            self.index[state] = len(self.states)
            self.states.append(state)
        return self.index[state]

    def size(self, state: State) -> int:
        """Segments that a round sends."""
        return {
            RETRANSMISSION: 1,
            SLOW_START: state.window,
            AVOIDANCE: state.window,
            SHORT: state.window - 1,
            RECOVERY_END: 1 + int(state.more),
        }[state.kind]

    def opened(self, cwnd: float, acks: int, threshold: float = 0.0) -> list[float]:
        """Return the window after each of so many ACKs."""
        found = []
        for _ in range(acks):
            cwnd = min(cwnd + (1.0 if cwnd < threshold else 1.0 / cwnd), float(self.window))
            found.append(cwnd)
        return found

    def lets_out_more(self, cwnd: float) -> int:
        """Return after which ACK of a round the window has grown by a segment; never: a large number."""
        for number, opened in enumerate(self.opened(cwnd, int(cwnd)), start=1):
            if int(opened) > int(cwnd):
                return number
        return 2 * self.window

    def avoidance(self, cwnd: float) -> int:
        """Return the state of congestion avoidance: windows that grow at the same ACKs are one."""
        cwnd = min(cwnd, float(self.window))
        first = self.lets_out_more(cwnd)
        then = self.opened(cwnd, int(cwnd))[-1]
        alike = (AVOIDANCE, int(cwnd), first, int(then), self.lets_out_more(then))
        return self.place(self.alike.setdefault(alike, State(AVOIDANCE, int(cwnd), cwnd)))

    def shorter(self, window: int, cwnd: float) -> int:
        """Return the round without its last segment; where in it the window grows is not kept."""
        return self.place(self.alike.setdefault((SHORT, window), State(SHORT, window, cwnd)))

    def after_timeout(self, outstanding: int) -> int:
        return self.place(State(RETRANSMISSION, 1, float(_halved(outstanding))))

    def cwnd_after(self, state: State) -> float:
        """Return the congestion window that the ACKs of a whole round leave."""
        if state.kind == RETRANSMISSION:
            return float(min(2, self.window))
        if state.kind == RECOVERY_END:
            return min(state.window + state.more / state.window, float(self.window))
        if state.kind == SLOW_START:
            return self.opened(float(state.window), state.window, state.more)[-1]
        return self.opened(state.more, self.size(state))[-1]

    def outcomes(self, source: int, state: State) -> None:
        """Note where a round without a loss leads."""
        cwnd, threshold = self.cwnd_after(state), state.more
        if state.kind in (RETRANSMISSION, SLOW_START) and int(cwnd) < min(threshold, self.window):
            grown = self.place(State(SLOW_START, int(cwnd), threshold))
        else:
            grown = self.avoidance(cwnd)
        shortened = source  # nothing to shorten
        if state.kind != SHORT and state.kind != RETRANSMISSION and state.window > 1:
            begun = state.more if state.kind == AVOIDANCE else float(state.window)
            shortened = self.shorter(state.window, begun)
        if state.kind == RETRANSMISSION:
            silent = self.place(State(RETRANSMISSION, min(state.window + 1, MAX_BACKOFF + 1), 2.0))
        else:
            silent = self.after_timeout(self.size(state))
        self.next.append((grown, shortened, silent))

    def loss_events(self, source: int, state: State) -> None:
        size, filled = self.size(state), int(state.kind == RECOVERY_END)
        more_from = self.lets_out_more(state.more) if state.kind == AVOIDANCE else 2 * self.window
        for first in range(filled, size):
            early = size - first - 1
            late = first  # let out by the ACKs before the loss
            if state.kind == SLOW_START:
                late = 2 * first
            elif state.kind == RECOVERY_END:
                late = state.window - int(state.more) + first - 1
            elif first >= more_from or (state.kind == SHORT and first > 0):
                late += 1
            late = max(min(late, self.window - early - 1), 0)
            if state.kind == RETRANSMISSION:
                expired = self.place(State(RETRANSMISSION, min(state.window + 1, MAX_BACKOFF + 1), 2.0))
            else:
                expired = self.after_timeout(early + late + 1)
            unheard = first > filled or state.kind == SHORT
            self.losses.append(Losses(source, first, early, late, unheard, expired))
            for holes in range(1, min(MOST_HOLES, early + late + 1 - DUPLICATE_THRESHOLD) + 1):
                self.recovery(early, late, holes)

    def recovery(self, early: int, late: int, holes: int) -> None:
        outstanding = early + late + 1
        duplicates = outstanding - holes
        threshold = min(_halved(outstanding), self.window)
        refill = max(min(threshold + duplicates, self.window) - outstanding, 0)
        self.recoveries.append(
            Recoveries(
                event=len(self.losses) - 1,
                holes=holes,
                duplicates=duplicates,
                next_round=_too_few(early, late, duplicates),
                refill=refill,
                recovered=self.place(State(RECOVERY_END, threshold, min(refill + holes - 1, threshold - 1))),
                first_failed=self.after_timeout(min(outstanding + refill, self.window)),
                later_failed=self.after_timeout(max(outstanding // 2, 2)),
            )
        )


def _halved(outstanding: int) -> int:
    return max(outstanding // 2, 2)


def _too_few(early: int, late: int, duplicates: int) -> float:
    """Chance that fewer than three of the duplicates fall among the early segments (hypergeometric)."""
    few = range(min(DUPLICATE_THRESHOLD - 1, early, duplicates) + 1)
    return sum(comb(early, k) * comb(late, duplicates - k) for k in few) / comb(early + late, duplicates)
