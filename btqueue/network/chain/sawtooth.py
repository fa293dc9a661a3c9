"""The sawtooth of a window that overflows at random (`chain.window`): how it grows, and where it ends.

The window grows by a segment each round trip. It enters the first queue, and a queue that exceeds the node's
buffer loses a segment. Three duplicates later the sender halves its window, which the first queue, cut off
from its source, pays for. The stationary law of window and queue at a loss is found by iterating the
sawtooth; a window at its limit that never overflows is an answer as well. Slow start is left out.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.network.chain.rounds import LOST, MOVED, ROUNDS, grow, recover
from btqueue.network.chain.window import Law, Loop, Step, one_round

SMALLEST_WINDOW = 2
FOR_EVER = 2**24
"""Rounds without a loss after which the window is taken to stay at its limit."""
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
        recoveries, losses: a round.
        passes, residual: of the iteration.
    """

    windows: NDArray[np.int64]
    time: Law
    delivered: Law
    recoveries: float
    losses: float
    passes: int
    residual: float


def sawtooth(loop: Loop) -> Sawtooth:
    """Return the stationary sawtooth of the window."""
    windows = np.arange(min(SMALLEST_WINDOW, loop.limit), loop.limit + 1)
    steps = [one_round(loop, int(window)) for window in windows]
    begin = [np.zeros(len(step.moved)) for step in steps]
    begin[len(begin) // 2][-1] = 1.0
    safe = _safe(steps[-1])
    passes, residual = 0, np.inf
    period = Period(np.zeros(len(windows)), np.zeros(len(windows)))
    while passes < MOST_PASSES and residual > TOLERANCE:
        passes += 1
        found = _one_period(loop, windows, steps, safe, begin)
        if found is None:
            return _without_loss(windows, steps, loop.pieces, passes)
        period, after = found
        residual = float(sum(np.abs(a - b).sum() for a, b in zip(begin, after, strict=True)))
        # Where repetitions are rare the sawtooth is nearly periodic; the mean of two steps is not.
        begin = [(a + b) / 2.0 for a, b in zip(begin, after, strict=True)]
    rounds = period.time.sum()
    time, delivered = period.time / rounds, period.delivered / rounds
    return Sawtooth(windows, time, delivered, 1.0 / rounds, period.losses / rounds, passes, residual)


@dataclass
class Period:
    """Sums over a period of the sawtooth: rounds and segments delivered by window, and segments lost."""

    time: Law
    delivered: Law
    losses: float = 0.0

    def add(self, level: int, rounds: float, segments: float, losses: float) -> None:
        """Count rounds at a window."""
        self.time[level] += rounds
        self.delivered[level] += segments
        self.losses += losses


def _one_period(
    loop: Loop, windows: NDArray[np.int64], steps: list[Step], safe: Law, begin: list[Law]
) -> tuple[Period, list[Law]] | None:
    """Follow the law from the windows after a loss to those after the next; None if there is no next."""
    period = Period(np.zeros(len(windows)), np.zeros(len(windows)))
    after = [np.zeros_like(law) for law in begin]
    law = np.zeros(0)
    for level, step in enumerate(steps):
        law = begin[level] + _joined(law, len(step.moved))
        if level < len(steps) - 1:
            law, at_loss = _grow(loop, int(windows[level]), level, law, step, period)
        elif law @ safe > RARE * law.sum():
            return None
        else:
            at_loss = _stay(loop, level, law, step, safe, period)
        at_loss = _recover(loop, int(windows[level]), level, at_loss, step, period)
        halved = max(int(windows[level]) // 2 - int(windows[0]), 0)
        shrunk = len(step.moved) - len(after[halved])
        places = np.clip(np.arange(len(at_loss)) - shrunk, 0, len(after[halved]) - 1)
        np.add.at(after[halved], places, at_loss)
    return period, after


def _grow(loop: Loop, window: int, level: int, law: Law, step: Step, period: Period) -> tuple[Law, Law]:
    """A round trip, after which the window grows; return the laws without and with a loss."""
    left, at_loss, sums, work = law.copy(), np.zeros_like(law), np.zeros(3), np.empty((2, len(law)))
    grow(left, at_loss, *step, loop.frames, _rounds(loop, window, law, step), sums, work)
    period.add(level, sums[ROUNDS], sums[MOVED] / loop.pieces, sums[LOST])
    return left, at_loss


def _stay(loop: Loop, level: int, law: Law, step: Step, safe: Law, period: Period) -> Law:
    """All rounds at the largest window; return the law at its loss."""
    if not law.any():
        return np.zeros_like(law)
    # States that lose nothing for ever are not reached, but would make the matrix singular.
    kept = np.where(safe[:, None] > 0.5, 0.0, step.kept)
    visits = np.linalg.solve((np.eye(len(law)) - kept).T, law)
    at_loss = visits @ step.lost
    period.add(level, visits.sum(), float(visits @ step.moved) / loop.pieces, at_loss.sum())
    return at_loss


def _recover(loop: Loop, window: int, level: int, at_loss: Law, step: Step, period: Period) -> Law:
    """A round trip until the loss is noticed, one until it is repaired; return the law at the end.

    In the first the window grows once more and may lose another segment.
    """
    law, sums, work = at_loss.copy(), np.zeros(3), np.empty((2, len(at_loss)))
    recover(law, at_loss.copy(), *step, loop.frames, _rounds(loop, window, at_loss, step), sums, work)
    period.add(level, 2.0 * sums[ROUNDS], 2.0 * sums[MOVED] / loop.pieces, sums[LOST])
    return law


def _safe(step: Step) -> Law:
    """Probability, by state, that a window that stays never loses anything: not in `FOR_EVER` rounds."""
    return np.linalg.matrix_power(step.kept, FOR_EVER).sum(axis=1)


def _rounds(loop: Loop, window: int, law: Law, step: Step) -> float:
    """The rounds of one round trip."""
    mass = law.sum()
    moved = float(law @ step.moved) / mass if mass > 0.0 else 0.0
    return window * loop.pieces / moved if moved > 0.0 else 1.0


def _joined(law: Law, size: int) -> Law:
    """The law after a segment has joined the first queue."""
    shifted = np.zeros(size)
    if len(law):
        places = np.clip(np.arange(len(law)) + (size - len(law)), 0, size - 1)
        np.add.at(shifted, places, law)
    return shifted


def _without_loss(windows: NDArray[np.int64], steps: list[Step], pieces: int, passes: int) -> Sawtooth:
    """The window stays at its limit."""
    time = np.eye(len(windows))[-1]
    law = np.linalg.matrix_power(steps[-1].kept + steps[-1].lost, 4096)[-1]
    delivered = time * float(law @ steps[-1].moved) / pieces
    return Sawtooth(windows, time, delivered, 0.0, 0.0, passes, 0.0)
