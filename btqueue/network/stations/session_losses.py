"""Messages of a TCP sender that loses segments, as an absorbing Markov chain in arrays.

A *stretch* begins with no segment under way: with a message, an expiry of the timer, or the end of a
recovery. Its state is (message, missing segments, number of these sent before, window, threshold, doublings
of the timer). Segments follow each other through one bottleneck (Lindley's recursion). A stretch ends with
the last segment or with the first lost one, the k-th of the missing segments. A binomial number of the other
segments under way is lost, too. It decides on the repair (RFC 5681, 6582): three duplicates make a fast
retransmit, which repairs one loss in a round trip; else the timer expires (RFC 6298), and the missing
segments are sent again by slow start. So the chain moves towards fewer missing segments, but for repeated
expiries; its rewards are times and counts.

Exact for messages of one segment whose acknowledgements are not lost, given timeouts. Closures: after an
expiry a window holds lost segments in proportion; losses of acknowledgements count only if a whole flight or
the last one of a message is lost; a retransmission lost in a recovery ends in an expiry; a state has the mean
round trip over all transitions into it; a state visited rarely is replaced by a similar one; a message of
more than `LONGEST` segments is solved with `LONGEST` segments, and takes longer in proportion.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import splu
from scipy.spatial import KDTree
from scipy.special import comb

from btqueue.network.answers import NoConvergence

DUPLICATES = 3
LONGEST = 24, 64
"""Least and most segments of a message that are solved; between them, the number in which one is lost."""
NEGLIGIBLE = 1e-4
"""Probability of a transition below which it is left out; the others are raised in proportion."""
FEW, MOST_STATES = 100, 1000
"""States up to which a rare state matters, and the most states that are solved."""
UNFOLLOWED = {True: 1e-4, False: 5e-3}
"""Visits that may go to states that are not solved, while the states are few and when they are more."""
SWEEPS = 40
"""Sweeps for estimates of round trips, which forget an eighth of the past with each round trip."""
STEPS = 12
"""Steps of the chain that update the visits between two searches for states."""
SETTLED = 0.25
"""Relative error, of little effect, of the timeout that is assumed after a message."""
AFTER_LOST_SYN_S = 3.0
"""Least timeout after a handshake that had to be repeated (RFC 6298, 5.7)."""
QUARTERS = 4
"""Parts of a segment in which a state counts its window."""

MESSAGE, MISSING, AGAIN, WINDOW, DOUBLED, DOUBLINGS = range(6)
"""Fields of a state: message, missing segments, number of these sent before, window in quarters, twice the
threshold, doublings of the timer."""
UNLIKE = np.array([10_000, 1000, 100, 5, 2, 50])
"""Weight of a difference in each field when one state replaces another."""

FUTURE = np.dtype(
    [
        *((name, np.int64) for name in ("source", "doublings", "acknowledged")),
        ("target", np.int64, 6),
        *((name, np.float64) for name in ("probability", "time_s", "late_s", "ahead_s")),
        *((name, np.float64) for name in ("timeouts", "fast_retransmits")),
        ("whole", np.bool_),
    ]
)
"""How a stretch ends: state in which it began, state of the next one, and the probability; after how long,
without the timeout that it waits for unless the message is `whole`; doublings of that timeout; segments of
the stretch acknowledged before; a round trip measured afterwards of a segment whose acknowledgement was lost
(0: none); when the next stretch begins, after its message is written; and counts."""


@dataclass(frozen=True)
class Sender:
    """The messages of a sender and the conditions of its path; times in seconds.

    Attributes:
        messages: segments of each message, sent one after the other in repeated cycles.
        loss: of a full segment, `last_loss` of the last one of each message; `ack_loss` of acknowledgements.
        gaps_s: time from the arrival of each message until the next one is written.
        round_trip_s: round trip of a full segment alone; `back_s` is the part of the way back.
        spacing_s: between full segments in a row; `last_spacing_s` before the last one of each message.
        answer_s: extra delay of the last acknowledgement of each message, which comes behind the answer.
        room: segments that the bottleneck holds, the one in service included.
        windows: receive window, initial window and initial threshold (segments).
        timer_s: initial, least and largest timeout.
        backoff, timestamps, limited_transmit, hold_ssthresh, sack: as the keys of [transport] say.
        limited_growth: whether a window grows only while it limits the segments sent.
        waits: of each message, whether its last segment waits for all acknowledgements (Nagle's algorithm).
        held: whether a message waits until the previous message is acknowledged (Nagle's algorithm).
        ack_every, ack_delay_s: delayed acknowledgements.
        fresh: the connection is a new one at the first message.
        leaves: the connection ends before the last acknowledgement of the last message is there.
        handshake: round trip (s) that opened it and is its first sample, and share of handshakes with a lost
            SYN, which give no sample (Karn); None where no round trip is measured.
    """

    messages: tuple[int, ...]
    loss: float
    last_loss: tuple[float, ...]
    ack_loss: float
    gaps_s: tuple[float, ...]
    round_trip_s: float
    back_s: float
    spacing_s: float
    last_spacing_s: tuple[float, ...]
    answer_s: tuple[float, ...]
    room: float
    windows: tuple[int, float, float]
    timer_s: tuple[float, float, float]
    backoff: bool = True
    timestamps: bool = True
    limited_transmit: bool = False
    hold_ssthresh: bool = False
    sack: bool = False
    waits: tuple[bool, ...] = (False, False)
    held: bool = False
    limited_growth: bool = False
    ack_every: int = 1
    ack_delay_s: float = 0.0
    fresh: bool = False
    leaves: bool = False
    handshake: tuple[float, float] | None = None

    @property
    def most(self) -> int:
        """Largest window (segments) that makes a difference."""
        return min(self.windows[0], max(self.messages) + 1)


class Sent(NamedTuple):
    """The long run of a sender, for each round of all its messages.

    Attributes:
        spans_s: mean time of each message, from written to arrived, shape (messages,).
        counts: timeouts and fast retransmits, shape (2,).
        rtt_s: mean of the measured round trips.
        window: mean window at the beginning of the first message.
        unfollowed: visits to states that are replaced by similar ones, over the visits that end a message.
    """

    spans_s: np.ndarray
    counts: np.ndarray
    rtt_s: float
    window: float
    unfollowed: float


def costs(sender: Sender) -> Sent:
    """Return the extra time of messages by losses, and the counts of timeouts and fast retransmits.

    Raises:
        NoConvergence: messages end so rarely that the states left out by the chain matter more.
    """
    longest = int(np.clip(1.0 / max(sender.loss, 1e-9), *LONGEST))
    if max(sender.messages) <= longest:
        return _costs(sender)
    longer, shorter = (
        _costs(replace(sender, messages=tuple(min(count, most) for count in sender.messages)))
        for most in (longest, longest // 2)
    )
    more = np.array([max(count - longest, 0) / (longest - longest // 2) for count in sender.messages])
    return longer._replace(
        spans_s=longer.spans_s + more * (longer.spans_s - shorter.spans_s),
        counts=longer.counts + more.max() * (longer.counts - shorter.counts),
    )


@lru_cache(maxsize=256)
def _costs(sender: Sender) -> Sent:
    chain = Chain(sender)
    found = chain.solve()
    if sender.ack_loss and (abs(chain.at_end_s / chain.timeout_s - 1.0) > SETTLED).any():
        found = Chain(sender, chain.at_end_s).solve()
    spans, trips = without(sender)
    return found._replace(spans_s=found.spans_s - spans, rtt_s=found.rtt_s - _mean(trips, sender))


def without(sender: Sender) -> tuple[np.ndarray, np.ndarray]:
    """Return the times of messages of a sender without losses, and its round trips (s)."""
    sender = replace(sender, room=np.inf)
    count = len(sender.messages)
    message, missing = np.arange(count), np.array(sender.messages)
    start = np.full(count, sender.windows[1] if sender.fresh else float(sender.most))
    window = windows_of(sender, start, np.full(count, 2.0 * sender.windows[2]), missing)
    way = lay_out(sender, message, missing, window)
    return _arrival(sender, way, message, missing), np.where(
        _timed(sender, message, missing, way), _trips(way), np.nan
    )


def _mean(trips: np.ndarray, sender: Sender) -> float:
    """Return the mean of measured round trips; the round trip of a lone segment if there are none."""
    return float(np.nanmean(trips)) if np.isfinite(trips).any() else sender.round_trip_s


class Stretches(NamedTuple):
    """Stretches from their states, [state] or [state, k] for the k-th segment still missing, from 0 on.

    Attributes:
        sent: when it is sent (s after the beginning).
        acknowledged: when its acknowledgement comes, if it is not lost.
        flight: segments under way when it is the oldest.
        full: whether it finds the buffer full; `full_behind` the number of segments behind it that do.
    """

    sent: np.ndarray
    acknowledged: np.ndarray
    flight: np.ndarray
    full: np.ndarray
    full_behind: np.ndarray


def windows_of(sender: Sender, start: np.ndarray, doubled: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return the windows before each acknowledgement, [state, k], and after all of them.

    Slow start below the threshold, congestion avoidance from there on (RFC 5681, section 3.1); with limited
    growth only while the window limits the segments sent (RFC 7661, 4.1).
    """
    threshold = np.maximum(doubled / 2.0, 2.0)
    window, found = np.minimum(start, sender.most), []
    for k in range(int(missing.max()) + 1):
        if k and k % sender.ack_every == 0:
            slow = window < threshold
            grown = window + np.where(slow, 1.0, 1.0 / window)
            if sender.limited_growth:
                flight = np.minimum(np.floor(window), missing - (k - sender.ack_every))
                grown = np.where(np.where(slow, window < 2.0 * flight, flight + 1.0 > window), grown, window)
            window = np.minimum(grown, sender.most)
        found.append(window)
    return np.stack(found, axis=1)


def lay_out(sender: Sender, message: np.ndarray, missing: np.ndarray, window: np.ndarray) -> Stretches:
    """Return when segments pass the bottleneck while nothing is lost, by recursion over segments.

    A segment leaves with the acknowledgement that makes room for it in the window, and is served behind the
    one in front of it (Lindley); it finds the buffer full if the segment that is `room` places ahead is not
    served yet.

    Args:
        sender: sender of the messages.
        message: to which each stretch belongs, [state].
        missing: its segments, [state].
        window: in force before the k-th acknowledgement, [state, k or more].
    """
    states, most = len(missing), int(missing.max())
    every, whole = sender.ack_every, np.minimum(window[:, :most].astype(int), sender.windows[0])
    sent, acknowledged = (np.zeros((states, most)) for _ in range(2))
    full = np.zeros((states, most), bool)
    places, rows = np.arange(most), np.arange(states)
    last_spacing = np.array(sender.last_spacing_s)[message]
    reach = whole + places  # the first segment that does not fit before the k-th acknowledgement
    released = np.zeros(states, int)
    ahead = np.full((states, int(sender.room)), -np.inf) if sender.room < most else None
    last = np.full(states, -np.inf)
    answer, waits = np.array(sender.answer_s)[message], np.array(sender.waits)[message]
    for k in range(most):
        end = missing == k + 1
        released = np.where(end & waits, k, released)
        while (late := (released < k) & (reach[rows, released] <= k)).any():
            released = released + late
        sent[:, k] = np.where(released > 0, acknowledged[rows, released - 1], 0.0)
        start = np.maximum(sent[:, k], last)
        if ahead is not None:
            full[:, k] = ahead[:, 0] > sent[:, k] + 1e-12
        service = np.where(end, last_spacing, sender.spacing_s)
        last = np.where(full[:, k], last, start + service)
        if ahead is not None:
            pushed = np.concatenate([ahead[:, 1:], last[:, None]], axis=1)
            ahead = np.where(full[:, k, None], ahead, pushed)
        late = ((k + 1) % every > 0) * sender.ack_delay_s
        acknowledged[:, k] = last + sender.round_trip_s - sender.spacing_s + np.where(end, answer, 0.0) + late
        if k % every:  # the segment behind it completes the shared acknowledgement
            sooner = np.where(missing > k, acknowledged[:, k], np.inf)
            acknowledged[:, k - 1] = np.minimum(acknowledged[:, k - 1], sooner)
    flight = np.clip(np.minimum(whole, (missing - waits)[:, None] - places), 1, None)
    counted = np.concatenate([np.zeros((states, 1), int), np.cumsum(full, axis=1)], axis=1)
    behind = np.minimum(places + flight, most)
    full_behind = counted[rows[:, None], behind] - counted[:, 1:]
    return Stretches(sent, acknowledged, flight, full, np.maximum(full_behind, 0))


def _trips(way: Stretches) -> np.ndarray:
    return way.acknowledged - way.sent


def _arrival(sender: Sender, way: Stretches, message: np.ndarray, missing: np.ndarray) -> np.ndarray:
    """Return when the last segment of a stretch arrives, [state]."""
    done = way.acknowledged[np.arange(len(missing)), missing - 1]
    late = sender.ack_delay_s * (missing % sender.ack_every > 0)
    return done - sender.back_s - np.array(sender.answer_s)[message] - late


def _timed(sender: Sender, message: np.ndarray, missing: np.ndarray, way: Stretches) -> np.ndarray:
    """Return which segments of a stretch have an acknowledgement that shows a round trip, [state, k]."""
    k, missing = np.arange(way.sent.shape[1]), missing[:, None]
    found = (((k + 1) % sender.ack_every == 0) | (k == missing - 1)) & (k < missing)
    if sender.leaves:
        found &= (message[:, None] < len(sender.messages) - 1) | (k < missing - 1)
    return found


class Chain:
    """The chain of a sender: its states, found from the first message on, and their futures."""

    def __init__(self, sender: Sender, timeout_s: np.ndarray | None = None) -> None:
        """Solve states until the remaining ones hardly matter.

        `timeout_s`: usual timeout at the end of each message; by default the timeout without losses.
        """
        self.sender, self.most = sender, sender.most
        least, cap = sender.timer_s[1:]
        self.most_doublings = int(np.ceil(np.log2(cap / least))) if sender.backoff else 0
        self.timeout_s = self._usual_timeout_s() if timeout_s is None else timeout_s
        self.round_trips, self.sampled = [], []  # of each batch of states: s and probability, [state, k]
        self.states = np.array([self._beginning(0)])
        self.futures, visits = np.zeros(0, FUTURE), np.ones(1)
        codes, followed, frontier = self._codes(self.states), np.zeros(0, int), np.zeros(1, int)
        while len(frontier):
            more = self._futures(self.states[frontier])
            more["source"] = frontier[more["source"]]
            self.futures = np.concatenate([self.futures, more])
            followed = np.concatenate([followed, frontier])
            new, places = np.unique(self._codes(more["target"]), return_index=True)
            fresh = ~np.isin(new, codes)
            codes = np.concatenate([codes, new[fresh]])
            self.states = np.concatenate([self.states, more["target"][places[fresh]]])
            sorting = np.argsort(codes)
            self.target = sorting[np.searchsorted(codes, self._codes(self.futures["target"]), sorter=sorting)]
            visits = np.concatenate([visits, np.zeros(len(codes) - len(visits))])
            frontier, visits = self._worth_following(followed, visits)
        self._keep(followed)

    def _worth_following(self, followed: np.ndarray, visits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the states to be solved next, none if the remaining ones hardly matter, and the visits."""
        source, count = self.futures["source"], len(self.states)
        left = np.ones(count, bool)
        left[followed] = False
        self._normalise(count)
        begin = followed[np.argmax(visits[followed])]
        to = np.where(left[self.target], begin, self.target)
        moves = csr_array((self.odds, (to, source)), shape=(count, count))
        for _ in range(STEPS):
            visits = 0.5 * (visits + moves @ visits)
        visits /= visits.sum()
        inflow = np.bincount(self.target, self.odds * visits[source], count) * left
        rising = np.argsort(inflow)
        small = np.cumsum(inflow[rising]) <= UNFOLLOWED[len(followed) < FEW]
        self.unfollowed = float(inflow[rising][small].sum())
        chosen = rising[~small & (inflow[rising] > 0.0)]
        return (chosen if len(followed) < MOST_STATES else chosen[:0]), visits

    def _normalise(self, count: int) -> None:
        total = np.bincount(self.futures["source"], self.futures["probability"], count)
        self.odds = self.futures["probability"] / total[self.futures["source"]]

    def _keep(self, followed: np.ndarray) -> None:
        """Keep the states that have been solved; the most similar one replaces each of the others."""
        place = np.full(len(self.states), -1)
        place[followed] = np.arange(len(followed))
        others, kept = np.unique(self.target[place[self.target] < 0]), self.states[followed]
        if len(others):
            place[others] = KDTree(kept * UNLIKE).query(self.states[others] * UNLIKE, p=1)[1]
        self.target, self.states = place[self.target], kept
        self.futures["source"] = place[self.futures["source"]]
        self._normalise(len(kept))

    def _beginning(self, message: int) -> list[int]:
        start = int(min(self.sender.windows[1], self.most) * QUARTERS)
        threshold = int(min(2 * self.sender.windows[2], 2 * self.most + 2))
        return [message, self.sender.messages[message], 0, start, threshold, 0]

    def _codes(self, states: np.ndarray) -> np.ndarray:
        most = max(self.sender.messages) + 2
        sizes = (len(self.sender.messages), most, most, QUARTERS * self.most + 1, 2 * self.most + 3)
        return np.asarray(np.ravel_multi_index(tuple(states.T), (*sizes, self.most_doublings + 1)))

    def _usual_timeout_s(self) -> np.ndarray:
        """Return the timeout of messages without losses, with open windows."""
        samples = without(replace(self.sender, fresh=False, leaves=False))[1]
        mean = _mean(samples, self.sender)
        usual = mean + 4.0 * float(np.nanmean(abs(samples - mean)))
        return np.full(len(self.sender.messages), np.clip(usual, *self.sender.timer_s[1:]))

    # ------------------------------------------------------------------------------- futures of stretches

    def _futures(self, states: np.ndarray) -> np.ndarray:
        """Return the futures of stretches from these states; `source` is the place among them."""
        sender = self.sender
        message, missing, again, window, doubled, doublings = states.T
        rows, k = np.arange(len(states)), np.arange(int(missing.max()))
        opened = windows_of(sender, window / QUARTERS, doubled, missing)
        # a window over segments sent before includes segments that have arrived
        span = np.where(again <= doubled, doubled - 1.0, np.inf)
        density = np.clip((again - 1.0) / np.maximum(span, 1.0), sender.loss, 1.0)
        inside = np.rint(1.0 + (opened[:, :-1] - 1.0) * density[:, None])
        way = lay_out(sender, message, missing, np.where(k < again[:, None], inside, opened[:, :-1]))
        last = k == missing[:, None] - 1
        loss = np.where(last, np.array(sender.last_loss)[message][:, None], sender.loss)
        unheard = sender.loss + (1.0 - sender.loss) * sender.ack_loss
        silent = np.where(last, 0.0, sender.ack_loss * unheard ** (way.flight - 1))  # all ACKs are lost
        lost = np.where(way.full, 1.0, loss + (1.0 - loss) * silent) * (k < missing[:, None])
        reached = np.cumprod(np.concatenate([np.ones((len(states), 1)), 1.0 - lost], axis=1), axis=1)
        timed = _timed(sender, message, missing, way)
        if not sender.timestamps:
            timed &= k >= again[:, None]
        self.round_trips.append(np.where(timed, _trips(way), np.nan))
        self.sampled.append(reached[:, 1:] * timed)

        ended = np.zeros(len(states), FUTURE)  # the last segment arrives
        ended["source"], ended["probability"] = rows, reached[rows, missing]
        ended["whole"], ended["acknowledged"] = True, missing
        ended["time_s"] = _arrival(sender, way, message, missing)
        known = sender.timestamps | (missing > again)
        after = opened[rows, missing]
        ended["target"] = self._next(message, after, doubled, np.where(known, 0, doublings))
        before = np.where(missing > 1, way.acknowledged[rows, missing - 2], 0.0)
        room = (opened[rows, missing - 1] >= 2.0) & (not sender.held)
        parts = [self._tails(ended, before, again >= missing, room)]
        odds = lost * reached[:, :-1]
        parts.append(self._losses(states, way, np.where(odds > NEGLIGIBLE, odds, 0.0)))
        return np.concatenate(parts)

    def _losses(self, states: np.ndarray, way: Stretches, odds: np.ndarray) -> np.ndarray:
        """Return the futures in which the k-th segment is the first one lost, with probability `odds`."""
        sender, loss = self.sender, self.sender.loss
        r, c = np.nonzero(odds)
        if not len(r):
            return np.zeros(0, FUTURE)
        # the others under way with it are lost if they find the buffer full, and some of the rest at random
        others, full = way.flight[r, c] - 1, way.full_behind[r, c]
        spared = np.maximum(others - full, 0)[:, None]
        more = np.arange(others.max() + 1) - full[:, None]
        some = np.clip(more, 0, spared)
        shares = comb(spared, some) * loss**some * (1.0 - loss) ** (spared - some) * (more == some)
        i, holes = np.nonzero(shares * odds[r, c][:, None] > NEGLIGIBLE)
        odds = shares[i, holes] * odds[r, c][i]
        r, c, others = r[i], c[i], others[i]
        message, missing, again, _, doubled, doublings = states[r].T
        unsent = missing - c - 1 - others
        free = np.maximum(unsent - np.array(sender.waits)[message], 0)  # segments that duplicates may release
        before = np.where(c > 0, way.acknowledged[r, c - 1], 0.0)
        timer = np.where((c > 0) & (sender.timestamps | (c > again)), 0, doublings)
        heard = others - holes
        if sender.limited_transmit:  # the first two duplicates let one segment out each
            heard = heard + np.minimum(2 * (heard > 0), free)
        fast = (heard >= DUPLICATES) & (c >= again)
        threshold = np.minimum(others + 1, 2 * self.most + 2)
        none = np.zeros(len(r), int)
        parts = []

        def add(which: np.ndarray, share: np.ndarray, target: np.ndarray, **fields: Any) -> None:
            found = np.zeros(len(r), FUTURE)
            found["source"], found["probability"], found["acknowledged"] = r, odds * share, c
            found["target"] = target
            for name, value in fields.items():
                found[name] += value
            parts.append(found[which & (found["probability"] > 0.0)])

        def expired(left: np.ndarray, holes: np.ndarray, doublings: np.ndarray) -> np.ndarray:
            sent_before = np.minimum(holes + np.maximum(again - c - 1 - others, 0), left)
            later = np.minimum(doublings + 1, self.most_doublings)
            flight = np.where((c < again) & sender.hold_ssthresh, doubled, threshold)
            return np.stack([message, left, sent_before, none + QUARTERS, flight, later], axis=1)

        ones = np.ones(len(r))
        target = expired(unsent + 1 + holes, holes + 1, timer)
        add(~fast, ones, target, time_s=before, timeouts=1.0, doublings=timer)
        # a fast retransmit repairs one loss in each round trip, while further duplicates let new segments out
        end = missing - 1
        third = way.acknowledged[r, np.minimum(c + DUPLICATES, end)]
        queue = way.acknowledged[r, np.minimum(c + others, end)] - sender.round_trip_s
        rounds = 1 + holes * (not sender.sack)
        time = np.maximum(third, queue) + rounds * sender.round_trip_s
        beyond = np.clip(others - holes - (others + 1) // 2, 0, free)
        left, repaired, through = unsent - beyond, (1.0 - loss) ** (1 + holes), (1.0 - loss) ** beyond
        counts = {"fast_retransmits": 1.0}
        half = np.maximum(threshold / 2.0, 2.0)
        window = (np.minimum(half, self.most) * QUARTERS).astype(int)
        target = np.stack([message, left, none, window, none, none], axis=1)
        add(fast & (left > 0), repaired * through, target, time_s=time, **counts)
        target = self._next(message, half, threshold, none)
        add(fast & (left == 0), repaired * through, target, time_s=time - sender.back_s, whole=True, **counts)
        target = expired(left + 1, none + 1, none)
        add(fast, repaired * (1.0 - through), target, time_s=time, timeouts=1.0, **counts)
        target = expired(left + 1 + holes, holes + 1, timer)
        add(fast, 1.0 - repaired, target, time_s=before, timeouts=1.0, doublings=timer, **counts)
        return np.concatenate(parts)

    def _next(self, message: np.ndarray, window: Any, doubled: Any, doublings: Any) -> np.ndarray:
        """Return the states in which the next messages begin."""
        then = (message + 1) % len(self.sender.messages)
        missing = np.array(self.sender.messages)[then]
        window = np.minimum(window, self.most)
        doubled = np.where(2.0 * window < doubled, np.minimum(doubled, 2 * self.most + 2), 0)
        quarters = np.rint(window * QUARTERS).astype(int)
        following = np.stack([then, missing, np.zeros_like(then), quarters, doubled, doublings], axis=1)
        if self.sender.fresh:
            following[then == 0] = self._beginning(0)
        return following

    def _tails(
        self, ended: np.ndarray, before: np.ndarray, resent: np.ndarray, room: np.ndarray
    ) -> np.ndarray:
        """Add the cases where the last acknowledgement is lost; its predecessor came at `before`.

        The timer expires though all segments have arrived, unless an acknowledgement of the next message
        comes before; then a long round trip is measured where the oldest segment is timed. A segment that is
        sent again may be lost again. If it is not acknowledged when the next message is written, the message
        waits behind it.

        Args:
            ended: futures that end with the last segment.
            before: time at which the timer began to run, without its doublings.
            resent: whether the last segment was sent before its stretch.
            room: whether another one may be under way with it.
        """
        sender, following = self.sender, ended["target"][:, MESSAGE]
        message, karn = (following - 1) % len(sender.messages), not sender.timestamps
        written = ended["time_s"] + np.array(sender.gaps_s)[message]
        timeout = self.timeout_s[message] * 2.0 ** ended["target"][:, DOUBLINGS]
        lost = np.where((following == 0) & sender.fresh, 0.0, sender.ack_loss)
        parts, due, expiries = [ended.copy()], before + timeout, 1
        parts[0]["probability"] *= 1.0 - lost

        def add(which: np.ndarray, share: Any, **fields: Any) -> np.ndarray:
            found = ended.copy()
            found["probability"] *= lost * share
            for name, value in fields.items():
                found[name] += value
            which = which & (found["probability"] > NEGLIGIBLE / 10.0)
            parts.append(found[which])
            return parts[-1]["target"]

        def expire(target: np.ndarray, acks: int, *, doubled: bool) -> None:
            """Set the states after an expiry of the timer; `acks` acknowledgements have opened the window."""
            target[:, [WINDOW, DOUBLED]] = min(1 + acks, self.most) * QUARTERS, 2
            if doubled:
                target[:, DOUBLINGS] = np.minimum(target[:, DOUBLINGS] + expiries, self.most_doublings)

        # the next message is written first, and its acknowledgement comes before the timer expires, or after
        answered = written + sender.round_trip_s
        repaired = room & (due >= answered)
        late_s = np.where(resent, 0.0, (answered - before) * karn)  # a retransmission is not timed (Karn)
        target = add(repaired, 1.0, late_s=late_s)
        target[resent[repaired & (ended["probability"] * lost > NEGLIGIBLE / 10.0)] & karn, AGAIN] = 1
        first = room & ~repaired & (due >= written)
        target = add(first, 1.0, timeouts=1.0)
        expire(target, 1, doubled=karn)
        target[:, AGAIN] = karn
        lost = np.where(repaired | first, 0.0, lost)
        through = (1.0 - np.array(sender.last_loss)[message]) * (1.0 - sender.ack_loss)
        while (ended["probability"] * lost > NEGLIGIBLE).any():
            waits = due + sender.round_trip_s > written
            target = add(waits, 1.0, ahead_s=due - written, timeouts=expiries)
            expire(target, 0, doubled=True)
            target[:, AGAIN] = 1
            target[:, MISSING] += 1
            expire(add(~waits, through, timeouts=expiries), 1, doubled=karn)
            lost = np.where(waits, 0.0, lost * (1.0 - through))
            due, expiries = due + timeout * 2.0**expiries, expiries + 1
        return np.concatenate(parts)

    # --------------------------------------------------------------------------------------- the long run

    def solve(self) -> Sent:
        """Return the long run.

        Raises:
            NoConvergence: messages end so rarely that the states left out by the chain matter more.
        """
        futures, count, messages = self.futures, len(self.states), len(self.sender.messages)
        message = self.states[futures["source"], MESSAGE]
        moves = csr_array((self.odds, (futures["source"], self.target)), shape=(count, count))
        visits = visits_of(moves, count)
        often = visits[futures["source"]] * self.odds
        cycles = often[futures["whole"] & (message == messages - 1)].sum()
        if not (ending := cycles / visits.sum()) > self.unfollowed:
            raise NoConvergence(
                f"sessions hardly ever end: of the transmissions between losses {ending:.2g} end a message, "
                f"and the theory leaves out {self.unfollowed:.2g}; let more segments get through"
            )
        often = often / cycles
        timeout, rtt_s = self._timeouts(visits, often)
        time = futures["time_s"] + np.where(futures["whole"], 0.0, futures["timeouts"] * timeout)
        spans = np.bincount(message, often * time, messages)
        spans += np.roll(np.bincount(message, often * futures["ahead_s"], messages), 1)
        counts = [float((often * futures[name]).sum()) for name in ("timeouts", "fast_retransmits")]
        first = futures["whole"] & (message == messages - 1)
        window = float(often[first] @ self.states[self.target[first], WINDOW]) / QUARTERS
        return Sent(spans, np.array(counts), rtt_s, window, self.unfollowed / ending)

    def _timeouts(self, visits: np.ndarray, often: np.ndarray) -> tuple[np.ndarray, float]:
        """Return the timeout (s) that each future waits for, and the mean round trip.

        Smoothed round trip and deviation of a state are the means over all transitions into it (RFC 6298, 2.2
        and 2.3), each linear in the values before, given the round trips.
        """
        sender, futures, states = self.sender, self.futures, self.states
        source, taken, count = futures["source"], futures["acknowledged"], len(states)
        rtt, share = joined(self.round_trips, np.nan), joined(self.sampled, 0.0)
        weight = visits[:, None] * share
        seen = np.isfinite(rtt) & (weight > 0.0)
        mean = float(np.average(rtt[seen], weights=weight[seen])) if seen.any() else sender.round_trip_s
        # a connection without an acknowledged segment has measured only its handshake
        opening = (states[:, MESSAGE] == 0) & (states[:, MISSING] == sender.messages[0]) & sender.fresh
        initial, least, cap = sender.timer_s
        # the first sample R makes the mean R and the deviation R/2 (RFC 6298, 2.2), here before it is taken
        begin = np.array([1.0, 2.0 / 3.0]) * sender.round_trip_s
        if sender.handshake:
            begin = np.array([1.0, 0.5]) * sender.handshake[0]
        late = futures["late_s"]

        def after(known: np.ndarray, part: float, samples: np.ndarray, last: np.ndarray) -> np.ndarray:
            found = smoothed(samples, known, part)[source, taken]
            return np.where(late > 0.0, found + part * (last - found), found)

        def settled(part: float, samples: np.ndarray, last: np.ndarray, usual: list[float]) -> np.ndarray:
            none = after(np.zeros(count), part, samples, last)
            kept = after(np.ones(count), part, samples, last) - none
            to, once = (self.target, source), share_of * none
            begun = np.where(opening, usual[1], usual[0])
            moves = csr_array((share_of * kept, to), shape=(count, count))
            fixed, known = opening | (into <= 0.0), begun
            constant = np.bincount(self.target, once, count)
            for _ in range(SWEEPS):
                known = np.where(fixed, begun, moves @ known + constant)
            return known

        into = np.bincount(self.target, often, count)
        share_of = often / np.maximum(into, 1e-300)[self.target]
        level = settled(0.125, rtt, late, [mean, begin[0]])
        off = abs(rtt - smoothed(rtt, level, 0.125)[:, :-1])
        spread = float(np.average(off[seen], weights=weight[seen])) if seen.any() else begin[1]
        at = smoothed(rtt, level, 0.125)[source, taken]
        deviation = settled(0.25, off, abs(late - at), [spread, begin[1]])
        base = np.clip(at + 4.0 * smoothed(off, deviation, 0.25)[source, taken], least, cap)
        ends = [futures["whole"] & (states[source, MESSAGE] == m) for m in range(len(sender.messages))]
        self.at_end_s = np.array([np.average(base[which], weights=often[which]) for which in ends])
        unmeasured = sender.handshake[1] if sender.handshake else 1.0
        first = opening[source] & (taken == 0)
        base[first] += unmeasured * (max(initial, AFTER_LOST_SYN_S * bool(sender.handshake)) - base[first])
        return np.minimum(base * 2.0 ** futures["doublings"], np.maximum(cap, base)), mean


def smoothed(samples: np.ndarray, known: np.ndarray, part: float) -> np.ndarray:
    """Return exponentially weighted means after 0, 1, ... samples; `part` is the weight of a new sample.

    Args:
        samples: ``(rows, samples)``; NaN where nothing is measured.
        known: ``(rows,)``, before.
        part: part of a new sample.
    """
    found = [known]
    for sample in samples.T:
        found.append(np.where(np.isnan(sample), found[-1], found[-1] + part * (sample - found[-1])))
    return np.stack(found, axis=1)


def joined(parts: list[np.ndarray], fill: float) -> np.ndarray:
    """Return arrays below each other, the shorter rows filled up."""
    most = max(part.shape[1] for part in parts)
    return np.concatenate([
        np.pad(part, ((0, 0), (0, most - part.shape[1])), constant_values=fill) for part in parts
    ])  # fmt: skip


def visits_of(moves: csr_array, count: int) -> np.ndarray:
    """Return how often each state of a chain is visited in the long run, in proportion.

    Args:
        moves: ``(states, states)``, probabilities from row to column.
        count: count of the states.
    """
    guess = np.full(count, 1.0 / count)
    for _ in range(STEPS):
        guess = 0.5 * (guess + guess @ moves)
    known, found = int(np.argmax(guess)), np.ones(count)
    others = np.delete(np.arange(count), known)
    if len(others):
        inner = moves[others][:, others]
        one = csr_array((np.ones(len(others)), (np.arange(len(others)),) * 2))
        found[others] = splu((one - inner.T).tocsc()).solve(moves[[known]][:, others].toarray()[0])
    return np.maximum(found, 0.0)
