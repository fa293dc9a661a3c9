"""The law of the session time: through the chain of stages on a lattice, then what else is random.

On top of the losses, which the chain knows, come the processing delays of the senders (uniform) and repeated
radio packets (a geometric number of frames each), as far as they lie on the longest path through the session
(`request_reply.route.Chain`). They are independent, so their laws are convolved.
"""

from typing import NamedTuple

import numpy as np

from btqueue.network.request_reply.carrying import MOVE, Laws, carry
from btqueue.network.request_reply.chain import Solved
from btqueue.network.request_reply.polled_hop import history_of
from btqueue.network.request_reply.records import NONE
from btqueue.network.request_reply.route import Chain

POINTS = {True: 2048, False: 8192}
"""Points of the lattice, with losses, whose laws are broad, and without."""

LEFT_OVER = 1e-6
"""Share of the sessions that may still be going on when the law is cut."""

MOST_STAGES = 60
"""Timeouts in one session after which the law is cut as well."""

QUANTILES = (50, 90, 95, 99)


class Law(NamedTuple):
    """Probabilities on the lattice of `step_s`."""

    step_s: float
    probabilities: np.ndarray

    @property
    def mean(self) -> float:
        """Mean (s)."""
        return float(self._times @ self.probabilities / self.probabilities.sum())

    @property
    def deviation(self) -> float:
        """Standard deviation (s)."""
        second = float(self._times**2 @ self.probabilities / self.probabilities.sum())
        return float(np.sqrt(max(0.0, second - self.mean**2)))

    def quantile(self, percent: float) -> float:
        """Time (s) that so many percent stay below."""
        rising = np.cumsum(self.probabilities)
        index = int(np.searchsorted(rising, percent / 100))
        return float(self._times[min(index, len(rising) - 1)])

    @property
    def _times(self) -> np.ndarray:
        return np.arange(len(self.probabilities)) * self.step_s


def metrics_of(law: Law, mean: float, wide: Law | None = None) -> dict[str, float]:
    """Return deviation and quantiles of the session time, the mean given (the lattice may cut it off).

    `wide` is the same law on a coarser lattice: for the deviation, and for quantiles beyond the fine one.
    """
    wide = law if wide is None else wide
    held = 100 * float(law.probabilities.sum())
    found = {
        f"session_time_p{percent}_s": (law if percent < held else wide).quantile(percent)
        for percent in QUANTILES
    }
    return {"session_time_s": mean, "session_time_sd_s": wide.deviation, **found}


def add_at(law: np.ndarray, weights: np.ndarray, places: float) -> None:
    """Add weights to the law, moved by so many places, which need not be a whole number."""
    whole, part = int(places), places - int(places)
    if whole < len(law):
        law[whole:] += (1.0 - part) * weights[: len(law) - whole]
    if whole + 1 < len(law):
        law[whole + 1 :] += part * weights[: len(law) - whole - 1]


class Moves(NamedTuple):
    """What carries sessions through the chain, as `MOVE` records.

    Attributes:
        stages: number of stages that are met within a session, a row each.
        chains: what is random on the way to the end of a session, a row each.
        begin, begin_end: from the one row of sessions that have just begun, to stages, and to the end.
        go_on, end: from stages to stages, and to the end.
    """

    stages: int
    chains: list[Chain]
    begin: np.ndarray
    begin_end: np.ndarray
    go_on: np.ndarray
    end: np.ndarray


def moves_of(solved: Solved) -> Moves:
    """Return how sessions go through the chain."""
    futures, inside = solved.found.futures[: len(solved.shares)], solved.found.states["in_session"]
    begins, ends = futures["started"] != NONE, futures["finished"] != NONE
    goes_on = ~ends & inside[solved.targets] & (begins | inside[futures["source"]])
    ends &= begins | inside[futures["source"]]
    stages = np.unique(
        np.concatenate([futures["source"][~begins & (goes_on | ends)], solved.targets[goes_on]])
    )
    chains, rows = chains_of(solved, ends)
    moves = np.zeros(len(futures), MOVE)
    moves["source"] = np.where(begins, 0, np.searchsorted(stages, futures["source"]))
    moves["share"] = np.where(begins, solved.shares, solved.probabilities)
    moves["target"] = np.where(ends, rows, np.searchsorted(stages, solved.targets))
    until = np.where(ends, futures["finished"], solved.elapsed)
    moves["time"] = until - np.where(begins, futures["started"], 0)
    return Moves(len(stages), chains, *(moves[which].view(np.recarray) for which in (
        begins & goes_on, begins & ends, ~begins & goes_on, ~begins & ends,
    )))  # fmt: skip


def chains_of(solved: Solved, ends: np.ndarray) -> tuple[list[Chain], np.ndarray]:
    """Return what is random on the ways to the ends of sessions, and which of it belongs to each future."""
    futures = solved.found.futures[: len(solved.shares)]
    pairs = np.stack([futures["delays"], futures["history"]], axis=1)
    distinct, back = np.unique(pairs[ends], axis=0, return_inverse=True)
    found: dict[Chain, int] = {}
    rows = np.array([
        found.setdefault(Chain(int(delays), history_of(solved.net, int(history))), len(found))
        for delays, history in distinct
    ], np.int64)  # fmt: skip
    numbers = np.zeros(len(futures), np.int64)
    numbers[ends] = rows[back.ravel()]
    return list(found), numbers


def session_law(moves: Moves, points: int, *, longest_s: float, jitter_s: float, slot_s: float) -> Law:
    """Return the law of the session time, up to `longest_s`, on so many points."""
    step = longest_s / points
    origin, ended = Laws(1, points), Laws(len(moves.chains), points)
    now, then = Laws(moves.stages, points), Laws(moves.stages, points)
    origin.weights[0, 0], origin.held[0] = 1.0, (0, 1)
    carry(origin, moves.begin, step * 1e9, now)
    carry(origin, moves.begin_end, step * 1e9, ended)
    begun, going_on = ended.total + now.total, now.total
    for _ in range(MOST_STAGES):
        if going_on <= LEFT_OVER * begun:
            break
        carry(now, moves.go_on, step * 1e9, then)
        carry(now, moves.end, step * 1e9, ended)
        now.clear()
        now, then = then, now
        going_on = now.total
    total = sum(
        with_chance(law, chain, step, jitter_s, slot_s)
        for chain, law in zip(moves.chains, ended.weights, strict=True)
        if law.any()
    )
    return Law(step, np.asarray(total) / begun)


def with_chance(law: np.ndarray, chain: Chain, step: float, jitter_s: float, slot_s: float) -> np.ndarray:
    """Convolve a law with processing delays, whose means it contains, and with repeated frames.

    By Fourier transform; the lattice is twice as long, so that nothing folds back into it from its own end. A
    time between two points is shared between them, so that nothing rings.
    """
    if not chain.frames and (not chain.delays or not jitter_s):
        return law
    points = 2 * len(law)
    z = np.exp(-2j * np.pi * np.arange(len(law) + 1) / points)
    transform = np.fft.rfft(law, points) * np.fft.rfft(_box(jitter_s / step, points)) ** chain.delays
    for failing, slots in chain.frames:
        whole, part = divmod(slots * slot_s / step, 1.0)
        transform *= (1.0 - failing) / (1.0 - failing * z**whole * (1.0 - part + part * z))
    return np.maximum(np.fft.irfft(transform, points)[: len(law)], 0.0)


def _box(width: float, points: int) -> np.ndarray:
    """Return the uniform law of this width (in steps) about 0 on a ring of points."""
    if width == 0.0:
        return np.eye(1, points)[0]
    reach = int(width / 2 + 0.5)
    places = np.arange(-reach, reach + 1)
    edges = np.clip(np.append(places - 0.5, reach + 0.5), -width / 2, width / 2)
    law = np.zeros(points)
    np.add.at(law, places % points, np.diff(edges) / width)
    return law
