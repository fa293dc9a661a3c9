"""Messages of a TCP sender that loses segments, as an absorbing Markov chain in arrays.

A *stretch* begins with nothing under way: with a message, an expiry of the timer, or the end of a recovery.
Its state is (message, segments still missing, those of them sent before, how its window opens, doublings of
the timer). In a stretch the window opens by one rule, and segments follow each other through one bottleneck
(`request_reply.stretches`). It ends with the last segment or with the first one lost, the k-th of those
missing. Of the others under way with it a binomial number is lost too, and decides (RFC 5681, 6582): three
duplicates make a fast retransmit, which repairs one loss in a round trip; else the timer expires (RFC 6298),
and what is missing is sent again by slow start. So the chain moves towards fewer missing segments, but for
repeated expiries; its rewards are times and counts.

Exact without losses, and for messages of one segment whose acknowledgements are not lost, given timeouts.
Closures: after an expiry a window holds lost segments in proportion; losses of acknowledgements count only if
a whole flight or the last one of a message is lost; a retransmission lost in a recovery ends in an expiry;
a state knows round trips in the mean over all ways into it; a state visited rarely is replaced by one alike.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import splu
from scipy.special import comb

from btqueue.network.answers import NoConvergence
from btqueue.network.request_reply.law import Mixture
from btqueue.network.request_reply.stretches import (
    AFTER_EXPIRY,
    AFTER_RECOVERY,
    AT_FIRST,
    Course,
    Stretches,
    follow_estimates,
    lay_out,
    windows_table,
)

DUPLICATES = 3

NEGLIGIBLE = 1e-4
"""Probability of a future of a stretch that is left out, the others raised in proportion."""

UNFOLLOWED, MOST_STATES = 2e-3, 3000
"""Visits that may go to states that are not followed, and how many are followed at most."""

STEPS = 12
"""Steps of the chain that update the visits between two searches for states."""

SWEEPS, STEADY = 40, 1e-4
"""Sweeps at most for estimates of round trips, and their relative change that is none."""

SETTLED = 0.25
"""Relative error of the timeout, assumed for what follows a message, that decides on little."""

MOST_STRETCHES = 200

AFTER_LOST_SYN_S = 3.0
"""Least timeout after a handshake that had to be repeated (RFC 6298, 5.7)."""

MESSAGE, MISSING, AGAIN, OPENS, DOUBLED, ACKS, DOUBLINGS = range(7)
"""Of a state: message, missing segments, those of them sent before, how the window opens, twice the
threshold, acknowledgements since it began to open, doublings of the timer."""

UNLIKE = np.array([10_000, 1000, 100, 20, 5, 1, 50])
"""How much a difference in each field counts when one state goes on for another."""

FUTURE = np.dtype(
    [
        *((name, np.int64) for name in ("source", "doublings", "acknowledged")),
        ("target", np.int64, 7),
        *((name, np.float64) for name in ("probability", "time_s", "late_s", "ahead_s")),
        *((name, np.float64) for name in ("timeouts", "fast_retransmits", "resent")),
        ("whole", np.bool_),
    ]
)
"""How a stretch ends: state in which it began, state of the next one, and the probability; after how long,
without the timeout that it waits for unless the message is `whole`; doublings of that timeout; segments of
the stretch acknowledged before; a round trip measured afterwards of a segment whose acknowledgement was lost
(0: none); when the next stretch begins, after its message is written; and counts."""


class Sent(NamedTuple):
    """The long run of a sender.

    Attributes:
        laws: of its messages, from written to arrived.
        timeouts, fast_retransmits, resent: counts for each round of all its messages.
        round_trips: those measured (s), and how often in proportion.
        unfollowed: share of the visits that go to states replaced by others like them.
        against_ends: that share, of the share of the visits that end a message.
    """

    laws: list[Mixture]
    timeouts: float
    fast_retransmits: float
    resent: float
    round_trips: tuple[np.ndarray, np.ndarray]
    unfollowed: float
    against_ends: float


@lru_cache(maxsize=256)
def long_run(course: Course) -> Sent:
    """Return the long run of a sender, whose timeouts decide on what is sent again behind a message."""
    chain = Sender(course)
    found = chain.solve()
    if not course.ack_loss or (abs(chain.at_end_s / chain.timeout_s - 1.0) < SETTLED).all():
        return found
    return Sender(course, chain.at_end_s).solve()


class Sender:
    """The chain of a sender: its states, found from the first message on, and their futures."""

    def __init__(self, course: Course, timeout_s: np.ndarray | None = None) -> None:
        """Follow states until those that are not hardly matter.

        `timeout_s`: usual at the end of each message; by default that without losses.
        """
        self.course = course
        self.most = min(course.windows[0], max(course.messages) + 1)
        self.table = windows_table(self.most, float(min(course.windows[1], self.most)))
        least, cap = course.timer_s[1:]
        self.most_doublings = int(np.ceil(np.log2(cap / least))) if course.backoff else 0
        self.timeout_s = self._usual_timeout_s() if timeout_s is None else timeout_s
        self.round_trips, self.sampled = [], []  # of each batch of states: s and probability, [state, k]
        self.states = np.array([self._beginning(0)])
        self.futures, visits = np.zeros(0, FUTURE), np.ones(1)
        codes, followed, frontier = self._codes(self.states), np.zeros(0, int), np.zeros(1, int)
        while len(frontier):
            more = self._futures(self.states[frontier])
            more["source"] = frontier[more["source"]]
            self.futures, followed = (
                np.concatenate([self.futures, more]),
                np.concatenate([followed, frontier]),
            )
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
        """Return the states to be followed next, none if those that are not hardly matter, and the visits."""
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
        small = np.cumsum(inflow[rising]) <= UNFOLLOWED
        self.unfollowed = float(inflow[rising][small].sum())
        chosen = rising[~small & (inflow[rising] > 0.0)]
        return (chosen if len(followed) < MOST_STATES else chosen[:0]), visits

    def _normalise(self, count: int) -> None:
        total = np.bincount(self.futures["source"], self.futures["probability"], count)
        self.odds = self.futures["probability"] / total[self.futures["source"]]

    def _keep(self, followed: np.ndarray) -> None:
        """Keep the states that have been followed; one like it goes on for each of the others."""
        place = np.full(len(self.states), -1)
        place[followed] = np.arange(len(followed))
        others, kept = np.unique(self.target[place[self.target] < 0]), self.states[followed]
        for some in np.array_split(others, len(others) // 256 + 1):
            unlike = (abs(kept[None] - self.states[some][:, None]) * UNLIKE).sum(axis=2)
            place[some] = np.argmin(unlike, axis=1)
        self.target, self.states = place[self.target], kept
        self.futures["source"] = place[self.futures["source"]]
        self._normalise(len(kept))

    def _beginning(self, message: int) -> list[int]:
        threshold = int(min(2 * self.course.windows[2], self.table.shape[1] - 1))
        return [message, self.course.messages[message], 0, AT_FIRST, threshold, 0, 0]

    def _codes(self, states: np.ndarray) -> np.ndarray:
        most = max(self.course.messages) + 2
        sizes = (len(self.course.messages), most, most, *self.table.shape, self.most_doublings + 1)
        return np.asarray(np.ravel_multi_index(tuple(states.T), sizes))

    def _usual_timeout_s(self) -> np.ndarray:
        """Return the timeout of messages that lose nothing, with windows open."""
        times = []
        for message, missing in enumerate(self.course.messages):
            window = np.full((1, missing), float(self.most))
            way = lay_out(self.course, np.array([message]), np.array([missing]), window)
            times.append((way.acknowledged - way.sent)[0])
        samples = np.concatenate(times)
        usual = samples.mean() + 4.0 * abs(samples - samples.mean()).mean()
        return np.full(len(self.course.messages), np.clip(usual, *self.course.timer_s[1:]))

    # ------------------------------------------------------------------------------- futures of stretches

    def _futures(self, states: np.ndarray) -> np.ndarray:
        """Return the futures of stretches from these states; `source` is the place among them."""
        course = self.course
        message, missing, again, opens, doubled, acks, doublings = states.T
        rows, k = np.arange(len(states)), np.arange(int(missing.max()))
        at = np.minimum(acks[:, None] + k // course.ack_every, self.table.shape[2] - 1)
        opened = self.table[opens[:, None], doubled[:, None], at]
        # a window over what was sent before holds segments, too, that have arrived
        span = np.where(again <= doubled, doubled - 1.0, np.inf)
        density = np.clip((again - 1.0) / np.maximum(span, 1.0), course.loss, 1.0)
        inside = np.rint(1.0 + (opened - 1.0) * density[:, None])
        way = lay_out(course, message, missing, np.where(k < again[:, None], inside, opened))
        last = k == missing[:, None] - 1
        loss = np.where(last, np.array(course.last_loss)[message][:, None], course.loss)
        unheard = course.loss + (1.0 - course.loss) * course.ack_loss
        silent = np.where(last, 0.0, course.ack_loss * unheard ** (way.flight - 1))  # all of a flight unheard
        lost = np.where(way.full, 1.0, loss + (1.0 - loss) * silent) * (k < missing[:, None])
        reached = np.cumprod(np.concatenate([np.ones((len(states), 1)), 1.0 - lost], axis=1), axis=1)
        self._measure(states, way, reached)

        ended = np.zeros(len(states), FUTURE)  # the last segment arrives
        ended["source"], ended["probability"] = rows, reached[rows, missing]
        ended["whole"], ended["acknowledged"], ended["resent"] = True, missing, again
        done = way.acknowledged[rows, missing - 1] - course.back_s - np.array(course.answer_s)[message]
        ended["time_s"] = done - course.ack_delay_s * (missing % course.ack_every > 0)
        known = course.timestamps | (missing > again)
        final = at[rows, missing - 1]
        ended["target"] = self._next(message, opens, doubled, final + 1, np.where(known, 0, doublings))
        before = np.where(missing > 1, way.acknowledged[rows, missing - 2], 0.0)
        room = self.table[opens, doubled, final] >= 2.0
        parts = [self._tails(ended, before, again >= missing, room)]
        odds = lost * reached[:, :-1]
        parts.append(self._losses(states, way, np.where(odds > NEGLIGIBLE, odds, 0.0)))
        return np.concatenate(parts)

    def _losses(self, states: np.ndarray, way: Stretches, odds: np.ndarray) -> np.ndarray:
        """Return the futures in which the k-th segment is the first one lost, with probability `odds`."""
        course, loss = self.course, self.course.loss
        r, c = np.nonzero(odds)
        if not len(r):
            return np.zeros(0, FUTURE)
        # of the others under way with it those that find the buffer full are lost, and some of the rest
        others, full = way.flight[r, c] - 1, way.full_behind[r, c]
        spared = np.maximum(others - full, 0)[:, None]
        more = np.arange(others.max() + 1) - full[:, None]
        some = np.clip(more, 0, spared)
        shares = comb(spared, some) * loss**some * (1.0 - loss) ** (spared - some) * (more == some)
        i, holes = np.nonzero(shares * odds[r, c][:, None] > NEGLIGIBLE)
        odds = shares[i, holes] * odds[r, c][i]
        r, c, others = r[i], c[i], others[i]
        message, missing, again, *_, doublings = states[r].T
        unsent = missing - c - 1 - others
        before = np.where(c > 0, way.acknowledged[r, c - 1], 0.0)
        timer = np.where((c > 0) & (course.timestamps | (c > again)), 0, doublings)
        fast = (others - holes >= DUPLICATES) & (c >= again)
        threshold = np.minimum(others + 1, self.table.shape[1] - 1)
        none = np.zeros(len(r), int)
        parts = []

        def add(which: np.ndarray, share: np.ndarray, target: np.ndarray, **fields: Any) -> None:
            found = np.zeros(len(r), FUTURE)
            found["source"], found["probability"], found["acknowledged"] = r, odds * share, c
            found["target"], found["resent"] = target, np.minimum(again, c + 1 + others)
            for name, value in fields.items():
                found[name] += value
            parts.append(found[which & (found["probability"] > 0.0)])

        def expired(left: np.ndarray, holes: np.ndarray, doublings: np.ndarray) -> np.ndarray:
            sent_before = np.minimum(holes + np.maximum(again - c - 1 - others, 0), left)
            later = np.minimum(doublings + 1, self.most_doublings)
            opens = np.full(len(r), AFTER_EXPIRY)
            return np.stack([message, left, sent_before, opens, threshold, none, later], axis=1)

        ones = np.ones(len(r))
        target = expired(unsent + 1 + holes, holes + 1, timer)
        add(~fast, ones, target, time_s=before, timeouts=1.0, doublings=timer)
        # a fast retransmit repairs one loss in each round trip, while further duplicates let new segments out
        end = missing - 1
        third = way.acknowledged[r, np.minimum(c + DUPLICATES, end)]
        queue = way.acknowledged[r, np.minimum(c + others, end)] - course.round_trip_s
        time = np.maximum(third, queue) + (1 + holes) * course.round_trip_s
        beyond = np.clip(others - holes - (others + 1) // 2, 0, unsent)
        left, repaired, through = unsent - beyond, (1.0 - loss) ** (1 + holes), (1.0 - loss) ** beyond
        counts = {"fast_retransmits": 1.0, "resent": 1.0 + holes}
        opens = np.full(len(r), AFTER_RECOVERY)
        target = np.stack([message, left, none, opens, threshold, none, none], axis=1)
        add(fast & (left > 0), repaired * through, target, time_s=time, **counts)
        target = self._next(message, opens, threshold, none, none)
        add(fast & (left == 0), repaired * through, target, time_s=time - course.back_s, whole=True, **counts)
        target = expired(left + 1, none + 1, none)
        add(fast, repaired * (1.0 - through), target, time_s=time, timeouts=1.0, **counts)
        target = expired(left + 1 + holes, holes + 1, timer)
        add(fast, 1.0 - repaired, target, time_s=before, timeouts=1.0, doublings=timer, **counts)
        return np.concatenate(parts)

    def _next(self, message: np.ndarray, opens: Any, doubled: Any, acks: Any, doublings: Any) -> np.ndarray:
        """Return the states in which the next messages begin."""
        then = (message + 1) % len(self.course.messages)
        missing = np.array(self.course.messages)[then]
        acks = np.minimum(acks, self.table.shape[2] - 1)
        following = np.stack([then, missing, np.zeros_like(then), opens, doubled, acks, doublings], axis=1)
        if self.course.fresh:
            following[then == 0] = self._beginning(0)
        return following

    def _tails(
        self, ended: np.ndarray, before: np.ndarray, resent: np.ndarray, room: np.ndarray
    ) -> np.ndarray:
        """Add that the last acknowledgement is lost, `before` being when the one in front of it came.

        The timer expires though all has arrived, unless an acknowledgement of the next message comes before;
        that gives a long round trip where the oldest segment is timed. What is sent again may be lost again.
        If it is not acknowledged when the next message is written, that waits behind it.

        Args:
            ended: futures that end with the last segment.
            before: when the timer began to run, but for its doublings.
            resent: whether the last segment was sent before its stretch.
            room: whether another one may be under way with it.
        """
        course, following = self.course, ended["target"][:, MESSAGE]
        message, karn = (following - 1) % len(course.messages), not course.timestamps
        written = ended["time_s"] + np.array(course.gaps_s)[message]
        timeout = self.timeout_s[message] * 2.0 ** ended["target"][:, DOUBLINGS]
        lost = np.where((following == 0) & course.fresh, 0.0, course.ack_loss)
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
            """Let the timer have expired in these states; of the window so many acknowledgements are in."""
            target[:, [OPENS, DOUBLED, ACKS]] = AFTER_EXPIRY, 2, min(acks, self.table.shape[2] - 1)
            if doubled:
                target[:, DOUBLINGS] = np.minimum(target[:, DOUBLINGS] + expiries, self.most_doublings)

        # the next message is written first, and its acknowledgement comes before the timer expires, or after
        answered = written + course.round_trip_s
        repaired = room & (due >= answered)
        late_s = np.where(resent, 0.0, (answered - before) * karn)  # one sent again is not timed (Karn)
        target = add(repaired, 1.0, late_s=late_s)
        target[resent[repaired & (ended["probability"] * lost > NEGLIGIBLE / 10.0)] & karn, AGAIN] = 1
        first = room & ~repaired & (due >= written)
        target = add(first, 1.0, timeouts=1.0, resent=1.0)
        expire(target, 1, doubled=karn)
        target[:, AGAIN] = karn
        lost = np.where(repaired | first, 0.0, lost)
        through = (1.0 - np.array(course.last_loss)[message]) * (1.0 - course.ack_loss)
        while (ended["probability"] * lost > NEGLIGIBLE).any():
            counts: dict[str, Any] = {"timeouts": expiries, "resent": expiries}
            waits = due + course.round_trip_s > written
            target = add(waits, 1.0, ahead_s=due - written, **counts)
            expire(target, 0, doubled=True)
            target[:, AGAIN] = 1
            target[:, MISSING] += 1
            expire(add(~waits, through, **counts), 1, doubled=karn)
            lost = np.where(waits, 0.0, lost * (1.0 - through))
            due, expiries = due + timeout * 2.0**expiries, expiries + 1
        return np.concatenate(parts)

    def _measure(self, states: np.ndarray, way: Stretches, reached: np.ndarray) -> None:
        """Note the round trips of these stretches, and how likely each is measured (RFC 6298, section 3)."""
        course, k, missing = self.course, np.arange(way.sent.shape[1]), states[:, MISSING, None]
        counts = (((k + 1) % course.ack_every == 0) | (k == missing - 1)) & (k < missing)
        if not course.timestamps:
            counts &= k >= states[:, AGAIN, None]
        if course.leaves:
            counts &= (states[:, MESSAGE, None] < len(course.messages) - 1) | (k < missing - 1)
        self.round_trips.append(np.where(counts, way.acknowledged - way.sent, np.nan))
        self.sampled.append(reached[:, 1:] * counts)

    # --------------------------------------------------------------------------------------- the long run

    def solve(self) -> Sent:
        """Return the long run.

        Raises:
            NoConvergence: messages end so rarely that what the chain leaves out matters more.
        """
        futures, count = self.futures, len(self.states)
        message = self.states[futures["source"], MESSAGE]
        visits = visits_of(
            csr_array((self.odds, (futures["source"], self.target)), shape=(count, count)), count
        )
        often = visits[futures["source"]] * self.odds
        cycles = often[futures["whole"] & (message == len(self.course.messages) - 1)].sum()
        if not (ending := cycles / visits.sum()) > UNFOLLOWED:
            raise NoConvergence(
                f"sessions hardly ever end: of the stretches between losses {ending:.2g} end a message, and "
                f"the model leaves out {UNFOLLOWED:g}; let more segments get through"
            )
        timeout, samples = self._timeouts(visits, often)
        time = futures["time_s"] + np.where(futures["whole"], 0.0, futures["timeouts"] * timeout)
        laws = [self._law(place, time, often) for place in range(len(self.course.messages))]
        timeouts, fast, resent = (
            float((often * futures[name]).sum() / cycles)
            for name in ("timeouts", "fast_retransmits", "resent")
        )
        return Sent(laws, timeouts, fast, resent, samples, self.unfollowed, self.unfollowed / ending)

    def _timeouts(
        self, visits: np.ndarray, often: np.ndarray
    ) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
        """Return the timeout (s) that each future waits for, and all round trips with their weights.

        Estimates of round trips are linear in what was known before, but for an absolute value and two
        bounds: so each state has the mean over all ways into it, a fixed point.
        """
        course, futures, states = self.course, self.futures, self.states
        rtt, share = joined(self.round_trips, np.nan), joined(self.sampled, 0.0)
        weight = visits[:, None] * share
        seen = np.isfinite(rtt) & (weight > 0.0)
        values, weights = rtt[seen], weight[seen]
        usual = (values, weights) if seen.any() else (np.array([course.round_trip_s]), np.ones(1))
        mean = float(np.average(usual[0], weights=usual[1]))
        known = np.tile([mean, np.average(abs(usual[0] - mean), weights=usual[1])], (len(states), 1))
        into = np.maximum(np.bincount(self.target, often, len(states)), 1e-300)
        # a connection none of whose segments is acknowledged has measured nothing but its handshake
        opening = (states[:, MESSAGE] == 0) & (states[:, MISSING] == course.messages[0]) & course.fresh
        initial, least, cap = course.timer_s
        # the first sample R makes the mean R and the deviation R/2 (RFC 6298, 2.2), here before it is taken
        begin = np.array([1.0, 2.0 / 3.0]) * course.round_trip_s
        if course.handshake:
            begin = np.array([1.0, 0.5]) * course.handshake[0]
        known[opening] = begin
        late = np.flatnonzero(futures["late_s"])
        for _ in range(SWEEPS):
            after = follow_estimates(rtt, known)[futures["source"], futures["acknowledged"]]
            after[late] = follow_estimates(futures["late_s"][late, None], after[late])[:, -1]
            new = np.stack(
                [np.bincount(self.target, often * part, len(states)) / into for part in after.T], axis=1
            )
            new[opening] = begin
            change, known = abs(new - known).max(), new
            if change < STEADY * mean:
                break
        along = follow_estimates(rtt, known)[futures["source"], futures["acknowledged"]]
        base = np.clip(along[:, 0] + 4.0 * along[:, 1], least, cap)
        ends = [
            futures["whole"] & (states[futures["source"], MESSAGE] == m) for m in range(len(course.messages))
        ]
        self.at_end_s = np.array([np.average(base[which], weights=often[which]) for which in ends])
        unmeasured = course.handshake[1] if course.handshake else 1.0
        first = opening[futures["source"]] & (futures["acknowledged"] == 0)
        base[first] += unmeasured * (max(initial, AFTER_LOST_SYN_S * bool(course.handshake)) - base[first])
        return np.minimum(base * 2.0 ** futures["doublings"], np.maximum(cap, base)), (values, weights)

    def _law(self, message: int, time: np.ndarray, often: np.ndarray) -> Mixture:
        """Return the time of a message by the stretches that it takes, from its first moments."""
        futures, count = self.futures, len(self.states)
        of = self.states[futures["source"], MESSAGE]
        arriving = futures["whole"] & (of == (message - 1) % len(self.course.messages))
        share, ahead = often[arriving] / often[arriving].sum(), futures["ahead_s"][arriving]
        waits = ahead != 0.0  # behind a timer of the message before: as after a stretch
        moments, later = (
            np.stack([np.bincount(self.target[arriving], share * which * ahead**n, count) for n in range(3)])
            for which in (~waits, waits)
        )

        def carrier(which: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
            """Return what carries mass, first and second moment along these futures."""
            place = self.target[which], futures["source"][which]
            once, timed, squared = (
                csr_array((self.odds[which] * time[which] ** n, place), shape=(count, count))
                for n in range(3)
            )
            return lambda m: np.stack([
                once @ m[0], once @ m[1] + timed @ m[0],
                once @ m[2] + 2.0 * (timed @ m[1]) + squared @ m[0],
            ])  # fmt: skip

        inside, found = of == message, []
        end, go_on = carrier(inside & futures["whole"]), carrier(inside & ~futures["whole"])
        while moments[0].sum() > NEGLIGIBLE and len(found) < MOST_STRETCHES:
            found.append(end(moments).sum(axis=1))
            moments, later = go_on(moments) + later, 0.0 * later
        table = np.array(found)
        rare = np.flatnonzero(table[::-1, 0].cumsum()[::-1] < NEGLIGIBLE)
        if len(rare):  # the longest ones are one part
            table = np.concatenate([table[: rare[0]], table[rare[0] :].sum(axis=0, keepdims=True)])
        weights, first, second = table[table[:, 0] > 0.0].T
        means = first / weights
        return Mixture(weights / weights.sum(), means, np.maximum(second / weights - means**2, 0.0))


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
        count: of the states.
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
