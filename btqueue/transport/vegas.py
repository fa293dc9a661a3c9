r"""TCP Vegas without loss: where its window settles behind a bottleneck, and its walk where times are random.

Vegas compares in each round trip what it would have sent in the least round trip with what it has sent:
``excess = cwnd - sent Base / RTT`` segments are queued. Below ``alpha`` the window grows by 1/cwnd for each
acknowledgement, above ``beta`` it shrinks, between them it rests. With a fixed bottleneck that is all: the
flight stops at the first window with ``alpha`` segments queued. A link that repeats packets makes round trips
random, Base becomes the least of very many, and the rest a random walk, solved here as a Markov chain.

Sources: Brakmo & Peterson, IEEE JSAC 13 (1995); Low, Peterson & Wang, J. ACM 49 (2002).
"""

from collections.abc import Callable, Mapping
from math import ceil, floor, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, gammaincinv

LEAST_WINDOW = 2.0
CELLS = 8
"""Grid points of the walk for each segment of window; three times as many move round trips by 1 to 3 %."""
ROUNDS = 10_000
"""Base is the least of so many round trips; ten times as many lower it by about a twentieth."""


class Equilibrium(NamedTuple):
    """Segments in flight, round-trip time (s), and segments a second behind a fixed bottleneck."""

    flight: int
    rtt: float
    rate: float


def equilibrium(rate: float, base_s: float, alpha: float, window: int) -> Equilibrium:
    """Return where Vegas settles, coming from below, behind a bottleneck of ``rate`` segments a second.

    Args:
        rate: of the bottleneck.
        base_s: least round-trip time, with one service.
        alpha: least number of segments queued at which the window rests.
        window: most segments in flight.
    """
    flight = min(ceil(rate * base_s + alpha - 1e-9), window)
    rtt = max(flight / rate, base_s)
    return Equilibrium(flight, rtt, flight / rtt)


class Round(NamedTuple):
    """The round trip of a marked segment with a given window.

    Attributes:
        mean, sd, least: of its time (s): the least plus a gamma law.
        sent: segments sent meanwhile, the marked one included.
        acks: acknowledgements that come meanwhile.
    """

    mean: float
    sd: float
    least: float
    sent: int
    acks: int

    def shorter(self, time: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """Return the probability of a shorter round trip."""
        time = np.asarray(time, float)
        if self.sd == 0.0:
            return np.where(time > self.mean, 1.0, 0.0)
        shape = ((self.mean - self.least) / self.sd) ** 2
        return gammainc(shape, shape * np.maximum(time - self.least, 0.0) / (self.mean - self.least))

    def quantile(self, share: NDArray[np.float64] | float) -> NDArray[np.float64]:
        """Return the time (s) that this share of the round trips stays below."""
        if self.sd == 0.0:
            return np.full(np.shape(share), self.mean)
        shape = ((self.mean - self.least) / self.sd) ** 2
        return self.least + (self.mean - self.least) / shape * gammaincinv(shape, np.asarray(share, float))


class Walk(NamedTuple):
    """Law of the window in whole segments, mean of cwnd, Base (s), and the residual of the fixed point."""

    windows: Mapping[int, float]
    cwnd: float
    base_s: float
    residual: float
    iterations: int


def window_walk(
    of_window: Callable[[int], Round],
    *,
    alpha: float,
    beta: float,
    gamma: float,
    window: int,
    start: float,
    every: int = 1,
) -> Walk:
    """Return the stationary law of Vegas's window (per-acknowledgement adjustment), for ever greedy.

    Windows and Base depend on each other: Base is the least of `ROUNDS` round trips from the law of the
    window, and of the two at the least window with which a connection begins. If round trips do not vary, the
    window rests where slow start leaves it.

    Args:
        of_window: the round trip for each whole window.
        alpha: see above.
        beta: see above.
        gamma: excess at which slow start ends.
        window: receive window.
        start: initial congestion window.
        every: segments acknowledged together during slow start.
    """
    rounds = {w: of_window(w) for w in range(1, window + 1)}
    first = _settle(rounds, alpha=alpha, beta=beta, gamma=gamma, window=window, start=start, every=every)
    if all(one.sd == 0.0 for one in rounds.values()):
        return Walk({_whole(first, window): 1.0}, first, _begun(rounds, window), 0.0, 1)
    grid = np.arange(LEAST_WINDOW, max(window + 1.0, LEAST_WINDOW + 1.0), 1.0 / CELLS)
    whole = np.minimum(np.floor(grid + 1e-9).astype(int), window)
    law = np.zeros(len(grid))
    law[int(np.argmin(np.abs(grid - first)))] = 1.0
    base, residual = _begun(rounds, window), 1.0
    for iteration in range(1, 61):
        found = _least(rounds, whole, law, window)
        residual = abs(found - base) / found
        base = found
        if iteration > 2 and residual < 1e-6:
            break
        law = 0.5 * law + 0.5 * _stationary(_moves(grid, whole, rounds, alpha, beta, base))
    windows = {int(w): float(law[whole == w].sum()) for w in np.unique(whole)}
    return Walk(windows, float(grid @ law), base, residual, iteration)


def after(cwnd: float, acks: int) -> float:
    """Return cwnd after so many steps of 1/cwnd, up or (acks below 0) down: cwnd d(cwnd) = d(acks)."""
    return sqrt(max(cwnd**2 + 2.0 * acks, LEAST_WINDOW**2))


def _whole(cwnd: float, window: int) -> int:
    return min(floor(cwnd + 1e-9), window)


def _begun(rounds: Mapping[int, Round], window: int) -> float:
    """Base (s) of a connection that has just begun: median of the lesser of two round trips.

    At the least window slow start doubles in every other round trip, so that there are two.
    """
    return float(rounds[min(int(LEAST_WINDOW), window)].quantile(1.0 - sqrt(0.5)))


def _settle(
    rounds: Mapping[int, Round],
    *,
    alpha: float,
    beta: float,
    gamma: float,
    window: int,
    start: float,
    every: int,
) -> float:
    """Follow cwnd from slow start, doubled in every other round trip, by mean round trips until it rests."""
    cwnd, base, slow, double = start, np.inf, True, False
    for _ in range(1000):
        one = rounds[_whole(cwnd, window)]
        base = min(base, one.mean)
        # Assumed, not derived: in slow start the window before it grew follows the marked segment.
        # With the grown window, two-way traffic without errors would leave slow start one segment higher.
        sent = rounds[max(_whole(cwnd, window) - 1, 1)].sent if slow else one.sent
        excess = cwnd - sent * base / one.mean
        slow = slow and (double or excess <= gamma)
        double = not double
        if slow:
            cwnd += max(_whole(cwnd, window) // every, 1) if double else 0
        elif excess < alpha and cwnd < window + 1.0:
            cwnd = after(cwnd, one.acks)
        elif excess > beta and cwnd > LEAST_WINDOW:
            cwnd = after(cwnd, -one.acks)
        else:
            break
        cwnd = min(cwnd, window + 1.0)
    return cwnd


def _least(
    rounds: Mapping[int, Round], whole: NDArray[np.int64], law: NDArray[np.float64], window: int
) -> float:
    """Return the time (s) that one round trip of all is expected to fall below, at most that of the start."""
    shares = {int(w): float(law[whole == w].sum()) * ROUNDS for w in np.unique(whole)}
    low, high = 0.0, _begun(rounds, window)
    for _ in range(60):
        middle = 0.5 * (low + high)
        expected = sum(count * float(rounds[w].shorter(middle)) for w, count in shares.items())
        low, high = (low, middle) if expected > 1.0 else (middle, high)
    return high


def _moves(
    grid: NDArray[np.float64],
    whole: NDArray[np.int64],
    rounds: Mapping[int, Round],
    alpha: float,
    beta: float,
    base: float,
) -> NDArray[np.float64]:
    """Return the transition matrix of cwnd from round to round; a step between two points is shared."""
    moves = np.zeros((len(grid), len(grid)))
    for i, cwnd in enumerate(grid):
        one = rounds[int(whole[i])]
        grows = float(one.shorter(one.sent * base / max(cwnd - alpha, 1e-9))) if cwnd > alpha else 1.0
        shrinks = 1.0 - float(one.shorter(one.sent * base / (cwnd - beta))) if cwnd > beta else 0.0
        for chance, acks in ((grows, one.acks), (shrinks, -one.acks)):
            place = np.clip((after(cwnd, acks) - grid[0]) * CELLS, 0.0, len(grid) - 1.0)
            below = int(place)
            above = min(below + 1, len(grid) - 1)
            moves[i, below] += chance * (1.0 - (place - below))
            moves[i, above] += chance * (place - below)
        moves[i, i] += 1.0 - grows - shrinks
    return moves


def _stationary(moves: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the law that a transition matrix keeps, mixed with a trace of restarts where it has several."""
    size = len(moves)
    mixed = (1.0 - 1e-9) * moves + 1e-9 / size
    system = np.vstack([(mixed.T - np.eye(size))[:-1], np.ones(size)])
    right = np.zeros(size)
    right[-1] = 1.0
    law = np.maximum(np.linalg.solve(system, right), 0.0)
    return law / law.sum()
