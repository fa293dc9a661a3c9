"""A window over several piconets: how it piles up in front of the bridges, and when a node overflows.

Once bridges limit the rate, a window of W segments is spread over the queues in front of them, and
repetitions on the radio move it about at random. A round of the bridges takes ``min(queue, Binomial(L, s))``
pieces out of each queue. The state is the first queue of the chain, in pieces: what the other queues do not
hold is there. With one bridge, and so two queues, that is the whole state; with more the others are lumped
together and give back what a closed network of Bernoulli servers of their number would (Pestien &
Ramakrishnan, J. Appl. Prob. 31, 1994: the law of such a network weighs each busy station with 1/(1 - s)).

Approximations: queues are counted once a round; a round lasts as long with short queues as with long ones;
what is on its way is independent from round to round.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.network.chain.rounds import tabulate
from btqueue.transport import binomial

Law = NDArray[np.float64]

MOST_UNITS = 8
"""Units into which a segment is divided."""
LEAST_PROGRESS = 0.15
"""Success of a unit in a step up to which rounds are merged."""


@dataclass(frozen=True)
class Loop:
    """The closed way of data and acknowledgements, in units of a segment's pieces (see `loop_of`).

    Attributes:
        pieces: units of a segment.
        success: of a unit at an attempt, in a step.
        frames: attempts of a step.
        queues: in front of the bridges.
        rounds: of the bridges, in which a segment and its acknowledgement are on their way without queues.
        travelling: attempts of all those rounds but the first.
        once: probability that such an attempt succeeds.
        capacity: segments that a node holds; infinite without a limit.
        limit: largest window (segments).
        merged: rounds of the bridges that are one step.
    """

    pieces: int
    success: float
    frames: int
    queues: int
    travelling: int
    once: float
    rounds: float
    capacity: float
    limit: int
    merged: int

    def queued(self, window: int) -> int:
        """Units in the queues at the start of a step, the others being on their way."""
        whole = self.pieces * window
        return max(1, round(whole - min(self.travelling * self.once, whole * (1.0 - 1.0 / self.rounds))))


def loop_of(
    *, pieces: int, success: float, frames: int, queues: int, rounds: float, capacity: float, limit: int
) -> Loop:
    """The loop of segments of so many pieces, exchanges of so many frames, and success at an attempt.

    Many pieces are taken together, and rounds in which hardly anything gets through are merged, so that the
    work does not grow without bound.
    """
    together = -(-pieces // MOST_UNITS)
    merged = max(together, int(LEAST_PROGRESS * together / success))
    return Loop(
        pieces=-(-pieces // together),
        success=min(1.0, merged * success / together),
        frames=frames,
        queues=queues,
        travelling=round((rounds - 1.0) * frames / together),
        once=success,
        rounds=rounds,
        capacity=capacity,
        limit=limit,
        merged=merged,
    )


class Step(NamedTuple):
    """One round at a given window, on the pieces in the first queue.

    Attributes:
        kept, lost: ``(n + 1, n + 1)`` moves without and with the loss of a segment.
        moved: mean pieces that get through, by state.
    """

    kept: Law
    lost: Law
    moved: Law


def busy_share(queues: int, success: float, pieces: int) -> Law:
    """Probability that a given station is busy in a closed ring of Bernoulli servers with 0..`pieces`."""
    if queues == 0:
        return np.ones(pieces + 1)
    weight = np.full(pieces + 1, 1.0 / max(1.0 - success, 1e-12))
    weight[0] = 1.0
    without = np.eye(1, pieces + 1)[0]
    for _ in range(queues - 1):
        without = np.convolve(without, weight)[: pieces + 1]
        without /= without.max()
    total = np.convolve(without, weight)[: pieces + 1]
    return 1.0 - without / total


def one_round(loop: Loop, window: int) -> Step:
    """Return what a round does to the first queue while the window is so large."""
    total = loop.queued(window)
    overflow = _overflow(loop, total + loop.frames)
    taken = taken_law(loop.frames, loop.success, total + loop.frames)
    kept, lost = np.zeros((total + 1, total + 1)), np.zeros((total + 1, total + 1))
    moved = np.zeros(total + 1)
    returned = taken
    if loop.queues > 2:
        busy = busy_share(loop.queues - 1, loop.success, total + loop.frames)
        chance = loop.success * busy[:, None]
        returned = binomial.probability(np.arange(loop.frames + 1), loop.frames, chance)
    tabulate(kept, lost, moved, taken, returned, overflow, loop.queues == 2)
    return Step(kept, lost, moved)


def _overflow(loop: Loop, most: int) -> Law:
    """Probability that queues of 0..`most` exceed a node now, and did not a round ago.

    A queue is longer than usual by as much as fewer units are on their way. It was what it is now, less what
    has come back to it since, which left three rounds ago, and more by what has been taken. (What is on its
    way is nearly the same from round to round; without that a long queue would exceed the node anew in each.)
    """
    if not np.isfinite(loop.capacity):
        return np.zeros(most + 1)
    away = np.arange(loop.travelling + 1)
    law = binomial.probability(away, loop.travelling, loop.once)
    beyond = np.arange(most + 1)[:, None] + loop.travelling * loop.once - away - loop.pieces * loop.capacity
    steps = binomial.probability(np.arange(loop.frames + 1), loop.frames, loop.success)
    gained = np.convolve(steps, steps[::-1])[loop.frames :][::-1].cumsum()[::-1]
    by = np.ceil(beyond - 1e-9).astype(np.int64)
    rises = np.where((by >= 1) & (by <= loop.frames), gained[np.clip(by, 0, loop.frames)], 0.0)
    return (law * rises).sum(axis=1)


def taken_law(frames: int, success: float, most: int) -> Law:
    """Law of what a bridge takes from queues of 0..`most`, no more than there is: a row for each queue."""
    count = np.arange(frames + 1)
    served = binomial.probability(count, frames, success)
    queue = np.arange(most + 1)[:, None]
    beyond = np.concatenate([np.cumsum(served[::-1])[::-1], [0.0]])[1:]
    return np.where(count < queue, served, np.where(count == queue, served + beyond, 0.0))
