"""The sawtooth of a window between two overflows of a node's buffer.

*One piconet.* Segments pass in order, and the air is always busy: nothing is random but time, and a period
between two losses is counted (`in_one_piconet`).

*Over bridges* all segments that a round of the bridges does not need wait in front of the bridges.
Repetitions move them about at random: a birth-and-death chain of what is in front of the first bridge
(`Queues`). A segment is lost when a queue comes to exceed its node (`over_bridges`).
"""

from dataclasses import dataclass
from math import ceil, inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.transport import binomial

Vector = NDArray[np.float64]

LEAST_WINDOW = 2
DOUBLINGS = 3
"""A round trip is two to this power steps of Euler's implicit method."""
SELDOM = 1e-9
"""Losses in a round of the bridges up to which there are none."""
TOLERANCE = 1e-4
"""Relative change of round trips and rates up to which they have settled."""
MOST_PASSES = 200
"""Passes over all connections, after which the last answer is taken, with its residual."""


class Sawtooth(NamedTuple):
    """What a period between two losses is like.

    Attributes:
        flights: segments in the network at which round trips are sampled.
        weights: how many of these there are at each.
        window: mean window.
        delivered: segments of a period; infinite where nothing is lost.
        losses: of a period.
    """

    flights: Vector
    weights: Vector
    window: float
    delivered: float
    losses: float


def full(window: float) -> Sawtooth:
    """Return the sawtooth of a window that stays at its limit."""
    return Sawtooth(np.array([float(window)]), np.ones(1), float(window), inf, 0.0)


def in_one_piconet(hops: int, capacity: float, limit: int) -> Sawtooth:
    """Return the sawtooth of one or two hops, where a node holds so many segments.

    In congestion avoidance the window obeys c' = c + 1/c at each acknowledgement, c^2 = h^2 + 2 k from the
    half h that a recovery leaves. With one more segment than fits the last one is lost, and the window of
    acknowledgements before it goes by. Over two hops, a window at a time (exhaustive polling), another last
    one is lost meanwhile. The duplicates of a window follow, then the repetition. Exact but for half
    segments.
    """
    if limit <= capacity:
        return full(limit)
    room = int(capacity)
    losses = 1 if hops == 1 or limit == room + 1 else 2
    half = max((room + losses) / 2.0, float(LEAST_WINDOW))
    low = int(half)
    grows = ceil(((room + 1) ** 2 - half**2) / 2.0)
    if hops == 2:  # to the end of the window in which it happens
        grows = max(grows, low + sum(range(low, room + 1)))
    windows = np.sqrt(half**2 + 2.0 * np.arange(grows))
    inflated = np.minimum(half + 3.0 + np.arange(room), limit)
    let_out = max(0.0, inflated[-1] - room - 1.0) + 1.0
    drained = np.linspace(min(let_out, half), half, low) if hops == 1 else np.full(low, half)
    flights = np.concatenate(
        [drained, np.minimum(windows.astype(int), room), np.arange(low + 1.0, room + 1.0)]
    )
    flights, often = np.unique(flights, return_counts=True)
    delivered = grows + 2.0 * room + (1.0 if hops == 1 else 3.0)
    at_loss = np.minimum(np.linspace(room + 1.0, room + 2.0, room), limit)
    window = (windows.sum() + at_loss.sum() + inflated.sum() + half) / (grows + 2.0 * room + 1.0)
    return Sawtooth(flights, often.astype(float), float(window), delivered, float(losses))


@dataclass(frozen=True)
class Queues:
    """The queues in front of the bridges.

    Attributes:
        count: of queues.
        packets: of a segment.
        frames: of an exchange.
        success: share of the packets that get through.
        rounds: of the bridges that a segment and its acknowledgement take with every queue empty.
        capacity: segments that a node holds; infinite without a limit.
    """

    count: int
    packets: int
    frames: int
    success: float
    rounds: float
    capacity: float

    @property
    def mean(self) -> float:
        """Segments that a bridge takes from a queue in a round, if there are enough."""
        return self.frames * self.success / self.packets

    @property
    def variance(self) -> float:
        """Variance of that: packets get through independently."""
        return self.mean * (1.0 - self.success) / self.packets

    @property
    def travelling(self) -> float:
        """Segments on their way besides those that wait, where that many are in the chain."""
        return (self.rounds - 1.0) * self.mean

    def waiting(self, window: float) -> float:
        """Return how many segments of a window wait; at least one round's share of it."""
        return window - min(self.travelling, window * (1.0 - 1.0 / self.rounds))

    def busy(self, window: float) -> float:
        """Return the share of its rounds that a bridge takes: diffusion of queues between empty ones.

        Of a walk of variance 2 v a round between 0 and N the share v / N is lost at an end; with more queues
        each of the others may be the one that is empty, as in a closed network of exponential servers.
        """
        return 1.0 / (1.0 + (self.count - 1) * self.variance / (self.mean * self.waiting(window)))

    def exceeding(self, most: int) -> Vector:
        """Return the chance that a queue of 0 to `most` segments comes to exceed its node in a round.

        It is longer than that by as much as fewer packets are on their way. Of these a round's number arrives
        while another one starts: B + C after A + B, all binomial; it exceeds the node by a small C after a
        large A. And it grows by a segment as the queues move, beyond a node that it has not exceeded yet.
        """
        stays = round((self.rounds - 2.0) * self.frames)
        on_way = stays + self.frames
        counts = np.arange(-1, on_way + 1)
        few = binomial.at_most(counts[:, None] - np.arange(stays + 1), self.frames, self.success)
        comes = (few * (1.0 - few)) @ binomial.probability(np.arange(stays + 1), stays, self.success)
        over = np.append(0.0, np.cumsum(binomial.probability(counts[1:], on_way, self.success)))
        room = self.capacity - np.arange(most + 1)
        # fewer on their way than these and one more exceed the node; between whole numbers interpolated
        least = on_way * self.success - self.packets * room - 1.0
        now, grown = np.interp(least, counts, over), np.interp(least + self.packets, counts, over)
        grows = np.where(now < 1.0 - SELDOM, (grown - now) / np.maximum(1.0 - now, SELDOM), 1.0)
        return np.interp(least, counts, comes) + self.variance * grows


def over_bridges(queues: Queues, limit: int) -> Sawtooth:
    """Return the stationary sawtooth of a window up to this limit.

    Each window lasts a round trip, and the largest one until a loss. A loss is noticed a round trip later and
    repaired in a further one, at the same window, which is then halved at the cost of the first queue. Queues
    have whole numbers of segments; between two such numbers for what travels the answer is interpolated.
    """
    if limit <= queues.capacity:
        return full(limit)
    whole, part = divmod(queues.travelling, 1.0)
    found = [(share, _walk(queues, limit, int(whole) + more)) for share, more in ((1.0 - part, 0), (part, 1))]
    some = [(share, one) for share, one in found if share > 0.0]
    rates = [(share / one.delivered, one) for share, one in some]
    rate = sum(per for per, _ in rates)
    return Sawtooth(
        np.concatenate([one.flights for _, one in some]),
        np.concatenate([share * one.weights / one.weights.sum() for share, one in some]),
        sum(share * one.window for share, one in some),
        1.0 / rate if rate > 0.0 else inf,
        sum(per * one.losses for per, one in rates) / rate if rate > 0.0 else 0.0,
    )


class _Levels(NamedTuple):
    """The windows, by level, and what a round trip of each does to the law of the first queue.

    Attributes:
        windows: segments.
        sizes: of these, that wait.
        rounds: of a round trip.
        after: (levels, n, n) moves of a round trip without a loss; of nothing at the largest window.
        spent: (levels, n, n) rounds meanwhile by state; until the loss at the largest window.
        lost: (levels, n) chance of a loss in a round.
        second: (levels, n) further losses in the round trip after a loss.
    """

    windows: NDArray[np.int64]
    sizes: NDArray[np.int64]
    rounds: Vector
    after: Vector
    spent: Vector
    lost: Vector
    second: Vector


def _levels(queues: Queues, limit: int, travelling: int) -> _Levels:
    windows = np.arange(min(LEAST_WINDOW, limit), limit + 1)
    sizes = np.maximum(windows - travelling, 1)
    most = int(sizes[-1]) + 1
    rounds = windows / (queues.mean * np.array([queues.busy(window) for window in windows.tolist()]))
    exceeding = queues.exceeding(most)
    moves, lost = np.zeros((len(windows), most, most)), np.zeros((len(windows), most))
    for level, size in enumerate(sizes):
        moves[level, : size + 1, : size + 1], lost[level, : size + 1] = _moves(queues, exceeding, int(size))
    moves -= lost[:, :, None] * np.eye(most)
    part = (rounds / 2**DOUBLINGS)[:, None, None]
    after = np.asarray(np.linalg.inv(np.eye(most) - part * moves), float)
    spent = after
    for _ in range(DOUBLINGS):
        spent = spent + after @ spent
        after = after @ after
    spent = part * spent
    second = (spent @ lost[:, :, None])[:, :, 0]
    spent[-1], after[-1] = np.linalg.inv(np.eye(most) * SELDOM - moves[-1]), 0.0
    return _Levels(windows, sizes, rounds, after, spent, lost, second)


def _moves(queues: Queues, exceeding: Vector, size: int) -> tuple[Vector, Vector]:
    """Return the moves of the first queue in a round, and the chance of a loss, by its segments.

    The others give back what a closed network of exponential servers does (W. Gordon and G. Newell,
    Operations Research 15, 1967). One other queue loses segments too; of several each has too few.
    """
    others, first = queues.count - 1, np.arange(size + 1)
    left = size - first
    gets = queues.variance * left / np.maximum(left + others - 1, 1)
    gives = np.where(first > 0, queues.variance, 0.0)
    moves = np.diag(gets[:-1], 1) + np.diag(gives[1:], -1)
    lost = exceeding[: size + 1]
    if others == 1:  # what is on its way comes to the first queue
        lost = lost + np.where(left >= queues.capacity, gives, 0.0)
    return moves - np.diag(moves.sum(axis=1)), lost


def _walk(queues: Queues, limit: int, travelling: int) -> Sawtooth:
    levels = _levels(queues, limit, travelling)
    if levels.lost.max() < SELDOM and levels.sizes[-1] <= queues.capacity:
        return full(limit)
    windows, most = levels.windows, levels.lost.shape[1]
    halved = np.searchsorted(windows, np.maximum(windows // 2, windows[0]))
    starts = np.unique(halved)
    begin = np.zeros((len(starts), most))
    fitting = np.flatnonzero(levels.sizes[starts] <= queues.capacity)
    first = int(fitting.max(initial=0))
    begin[first, levels.sizes[starts[first]]] = 1.0
    again, *sums = _periods(queues, levels, halved, starts)
    residual, passes = inf, 0
    while residual > TOLERANCE and passes < MOST_PASSES:
        passes += 1
        after = (begin.ravel() @ again).reshape(begin.shape)
        after /= after.sum()
        residual = float(np.abs(begin - after).sum())
        begin = (begin + after) / 2.0
    lasting, lossy, second = (begin.ravel() @ one for one in sums)
    segments = windows / levels.rounds
    delivered = (lasting + 2.0 * lossy * levels.rounds) * segments
    weights = lasting * segments
    weights[:-1] += (lossy * levels.rounds * segments)[1:]  # without the segment that is lost
    return Sawtooth(
        windows.astype(float),
        weights,
        float(windows @ delivered / delivered.sum()),
        float(delivered.sum() / lossy.sum()),
        float(1.0 + second.sum() / lossy.sum()),
    )


def _periods(
    queues: Queues, levels: _Levels, halved: NDArray[np.int64], starts: NDArray[np.int64]
) -> tuple[Vector, Vector, Vector, Vector]:
    """Follow the law of the first queue from a loss to the next, the window a level higher each round trip.

    Args:
        queues: in front of the bridges.
        levels: of the window.
        halved: to which level a loss leads from each.
        starts: these levels, in order.

    Returns:
        By level and queue at which a period begins, (starts x n, ...): chances of the same for the next one,
        rounds at each level, chances of the loss there, and of a further one.
    """
    n = levels.lost.shape[1]
    law, after = np.zeros((len(starts), n, n)), np.zeros((len(starts), n, len(starts), n))
    lasting, lossy, second = np.zeros((3, len(starts), n, len(halved)))
    full_at = int(min(queues.capacity, n)) + 1
    for level, size in enumerate(levels.sizes):
        over = np.zeros_like(law)
        if level and size > levels.sizes[level - 1]:  # the further segment waits in the first queue
            last = law[..., -1:]
            law = np.concatenate([np.zeros_like(last), law[..., :-2], law[..., -2:-1] + last], axis=-1)
            if full_at < n:
                over[..., full_at], law[..., full_at] = law[..., full_at], 0.0
        law[starts == level] = np.eye(n)
        time = law @ levels.spent[level]
        at_loss = over + time * levels.lost[level]
        law = law @ levels.after[level]
        lasting[..., level], lossy[..., level] = time.sum(axis=-1), at_loss.sum(axis=-1)
        second[..., level] = at_loss[..., 1:] @ levels.second[level, :-1]
        by = int(size - levels.sizes[halved[level]])
        kept = after[:, :, np.searchsorted(starts, halved[level])]
        kept[..., : n - by] += at_loss[..., by:]
        kept[..., 0] += at_loss[..., :by].sum(axis=-1)
    after, lasting, lossy, second = (
        one.reshape(len(starts) * n, -1) for one in (after, lasting, lossy, second)
    )
    return after, lasting, lossy, second
