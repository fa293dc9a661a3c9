"""The sawtooth of a window that overflows at random (`chain.window`): how it grows, and where it ends.

The window grows by a segment each round trip. It enters the first queue, and a queue that exceeds the node's
buffer loses a segment. Three duplicates later the sender halves its window, which the first queue, cut off
from its source, pays for. The stationary law of window and queue at a loss is found by iterating the
sawtooth; a window at its limit that never overflows is an answer as well. Slow start is left out.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.network.chain.rounds import LARGEST, LOSSES, SAFE, SEGMENTS, TIMED, WINDOWS, follow
from btqueue.network.chain.window import Law, Loop, Step, one_round

SMALLEST_WINDOW = 2
DOUBLINGS = 24
"""A window that loses nothing in two to this power rounds is taken to stay at its limit."""
NOTHING = 1e-18
"""Probability from which on something is taken to be lost for certain."""
RARE = 1e-6
"""Probability that it stays there from which on it is taken to do so in the end."""
TOLERANCE = 1e-5
MOST_PASSES = 400


class Sawtooth(NamedTuple):
    """Averages: by window the shares of time and of the segments delivered, and the rates a round.

    Attributes:
        windows: segments.
        time: share of the rounds at each.
        delivered: segments a round at each.
        timed: round trips a round that end at each, with so many segments in the network.
        recoveries, losses: a round.
        passes, residual: of the iteration.
    """

    windows: NDArray[np.int64]
    time: Law
    delivered: Law
    timed: Law
    recoveries: float
    losses: float
    passes: int
    residual: float


def sawtooth(loop: Loop) -> Sawtooth:
    """Return the stationary sawtooth of the window."""
    windows = np.arange(min(SMALLEST_WINDOW, loop.limit), loop.limit + 1)
    steps = [one_round(loop, int(window)) for window in windows]
    safe = _safe(steps[-1])
    table = _table(steps, safe)
    begin = np.zeros(table.moved.shape)
    begin[len(begin) // 2, table.sizes[len(begin) // 2] - 1] = 1.0
    work, totals = np.empty((6, table.moved.shape[1])), np.zeros(3)
    passes, residual, sums = 0, np.inf, np.zeros((3, len(windows)))
    while passes < MOST_PASSES and residual > TOLERANCE:
        passes += 1
        after, sums, totals = np.zeros_like(begin), np.zeros((3, len(windows))), np.zeros(3)
        follow(*table, int(windows[0]), loop.pieces, loop.frames, begin, after, sums, totals, work)
        if totals[SAFE] > RARE * totals[LARGEST]:
            return _without_loss(windows, steps, loop.pieces, passes)
        residual = float(np.abs(begin - after).sum())
        # Where repetitions are rare the sawtooth is nearly periodic; the mean of two steps is not.
        begin = (begin + after) / 2.0
    rounds = sums[WINDOWS].sum()
    time, delivered, timed = sums[WINDOWS] / rounds, sums[SEGMENTS] / rounds, sums[TIMED] / rounds
    return Sawtooth(
        windows, time, delivered, timed, 1.0 / rounds, float(totals[LOSSES]) / rounds, passes, residual
    )


class Table(NamedTuple):
    """The steps of all windows: see `rounds.follow`."""

    sizes: NDArray[np.int64]
    kept: Law
    lost: Law
    both: Law
    moved: Law
    visits: Law
    safe: Law


def _table(steps: list[Step], safe: Law) -> Table:
    sizes = np.array([len(step.moved) for step in steps])
    most, levels = int(sizes.max()), len(steps)
    kept, lost, moved = (
        np.zeros((levels, most, most)),
        np.zeros((levels, most, most)),
        np.zeros((levels, most)),
    )
    for level, (step, size) in enumerate(zip(steps, sizes, strict=True)):
        kept[level, :size, :size], lost[level, :size, :size], moved[level, :size] = step
    # States that lose nothing for ever are not reached, but would make the matrix singular.
    left = np.where(safe[:, None] > 0.5, 0.0, steps[-1].kept)
    visits = np.asarray(np.linalg.inv(np.eye(len(safe)) - left), float)
    return Table(sizes, kept, lost, kept + lost, moved, visits, safe)


def _safe(step: Step) -> Law:
    """Probability, by state, that a window that stays never loses anything: see `DOUBLINGS`."""
    left = step.kept
    for _ in range(DOUBLINGS):
        left = left @ left
        if left.max() < NOTHING:
            return np.zeros(len(left))
    return left.sum(axis=1)


def _without_loss(windows: NDArray[np.int64], steps: list[Step], pieces: int, passes: int) -> Sawtooth:
    """The window stays at its limit."""
    time = np.eye(len(windows))[-1]
    law = np.linalg.matrix_power(steps[-1].kept + steps[-1].lost, 4096)[-1]
    delivered = time * float(law @ steps[-1].moved) / pieces
    return Sawtooth(windows, time, delivered, delivered, 0.0, 0.0, passes, 0.0)
