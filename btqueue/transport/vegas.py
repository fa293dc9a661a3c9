r"""TCP Vegas without loss: where its window settles behind a bottleneck, and its walk where times are random.

In each round trip Vegas compares the data that the least round trip would have let it send with the data
sent: ``excess = cwnd - sent Base / RTT`` segments are queued. Below ``alpha`` the window grows by 1/cwnd for
each acknowledgement, above ``beta`` it shrinks, between them it stays. With a fixed bottleneck the window
stops growing once ``alpha`` segments are queued. A link that repeats packets makes round trips random: Base
becomes the least of very many round trips, and the window makes a random walk, solved here as a Markov chain.

Sources: Brakmo & Peterson, IEEE JSAC 13 (1995); Low, Peterson & Wang, J. ACM 49 (2002).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from math import floor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import root_scalar
from scipy.special import gammainc

Vector = NDArray[np.float64]
Numbers = float | Vector

LEAST_WINDOW = 2.0
NEGLIGIBLE = 1e-15
"""Steps less likely than that in a round are not followed."""
ROUNDS = 10_000
"""Mean round trips of a connection. Base is the least of them, and the law of the window their average: where
it can rest in several places, it stays for long where slow start left it."""


@dataclass(frozen=True)
class Round:
    """The round trip of a marked segment with a given window, or with several (arrays).

    Attributes:
        mean: mean of its time (s): the least plus a gamma law.
        sd: standard deviation of its time (s).
        least: least of its times (s).
        sent: segments sent meanwhile, the marked one included.
        acks: acknowledgements that come meanwhile.
    """

    mean: Numbers
    sd: Numbers
    least: Numbers
    sent: Numbers
    acks: Numbers

    def shorter(self, time: Numbers) -> Vector:
        """Return the probability of a shorter round trip."""
        shape, scale = self._gamma
        beyond = np.maximum(np.asarray(time, float) - self.least, 0.0)
        certain = np.greater(time, self.mean)
        return np.where(self._random, gammainc(shape, beyond / scale), certain)

    @cached_property
    def _random(self) -> NDArray[np.bool_]:
        """Whether there is a spread beyond the least."""
        return np.greater(self.sd, 0.0) & np.greater(self.mean, self.least)

    @cached_property
    def _gamma(self) -> tuple[Vector, Vector]:
        """Shape and scale (s) of the time beyond the least; arbitrary values where there is no spread."""
        sd = np.where(self._random, self.sd, 1.0)
        beyond = np.where(self._random, np.subtract(self.mean, self.least), 1.0)
        return (beyond / sd) ** 2, sd**2 / beyond


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
    """Return the law of Vegas's window (per-acknowledgement adjustment) over a greedy connection.

    Windows and Base depend on each other: Base is the least of `ROUNDS` round trips from the law of the
    window, and of the round trips until the window first stays constant. If round trips do not vary, it stays
    at this value.

    Args:
        of_window: the round trip for each whole window.
        alpha: see above.
        beta: see above.
        gamma: excess at which slow start ends.
        window: receive window.
        start: initial congestion window.
        every: segments acknowledged together during slow start.

    Example:
        >>> from btqueue.transport.vegas import Round, window_walk
        >>> steady = {w: Round(0.1, 0.0, 0.1, w, w) for w in range(1, 9)}
        >>> window_walk(steady.__getitem__, alpha=1, beta=3, gamma=1, window=8, start=2).windows
        {8: 1.0}
    """
    rounds = {w: of_window(w) for w in range(1, window + 1)}
    # below the least window there is slow start only, for two round trips: their times are taken as the same
    least = rounds[min(int(LEAST_WINDOW), window)]
    rounds[1] = replace(least, sent=rounds[1].sent, acks=rounds[1].acks)
    first, passed = _settle(
        rounds, alpha=alpha, beta=beta, gamma=gamma, window=window, start=start, every=every
    )
    if all(one.sd == 0.0 for one in rounds.values()):
        base = float(min(rounds[w].mean for w in passed))
        return Walk({_whole(first, window): 1.0}, first, base, 0.0, 1)
    begun = _begun([rounds[w] for w in passed])
    # the square of cwnd moves by twice the acknowledgements: whole numbers, from where slow start leaves it
    squares = np.arange(int(LEAST_WINDOW**2), max(int(window + 1), 3) ** 2 + 1)
    cwnd = np.sqrt(squares)
    whole = np.minimum(np.floor(cwnd + 1e-9).astype(int), window)
    at_each = Round(
        *(np.array(column)[whole - 1] for column in zip(*map(astuple, rounds.values()), strict=True))
    )
    start_at = int(np.argmin(np.abs(squares - first**2)))

    def law(base: float) -> Vector:
        chances, places = _moves(cwnd, at_each, alpha, beta, base)
        return _mean_law(chances, places, start_at)

    def missing(base: float) -> float:
        return _least(at_each, law(base), begun) - base

    # Base stays that of the start if no window that follows falls below it
    base, steps = begun, 1
    if missing(below := begun * (1.0 - 1e-9)) < 0.0:
        root = root_scalar(missing, bracket=(1e-3 * begun, below), xtol=1e-12 * begun, method="brentq")
        base, steps = float(root.root), int(root.iterations)
    found = law(base)
    windows = {int(w): float(found[whole == w].sum()) for w in np.unique(whole)}
    return Walk(windows, float(cwnd @ found), base, abs(missing(base)) / base, steps)


def after(cwnd: Numbers, acks: Numbers) -> Vector:
    """Return cwnd after `acks` steps of 1/cwnd, up or (acks below 0) down: cwnd d(cwnd) = d(acks).

    Example:
        >>> from btqueue.transport.vegas import after
        >>> round(float(after(4.0, 2)), 4)
        4.4721
    """
    return np.sqrt(np.maximum(np.square(cwnd) + 2.0 * np.asarray(acks), LEAST_WINDOW**2))


def _whole(cwnd: float, window: int) -> int:
    return min(floor(cwnd + 1e-9), window)


def _begun(passed: Sequence[Round]) -> float:
    """Base (s) of a connection that has passed these round trips: median of the least of them."""

    def surplus(time: float) -> float:
        return float(np.prod([1.0 - one.shorter(time) for one in passed])) - 0.5

    longest = max(float(one.mean + 3.0 * one.sd) for one in passed)
    return float(root_scalar(surplus, bracket=(0.0, longest), xtol=1e-15, method="brentq").root)


def _settle(
    rounds: Mapping[int, Round],
    *,
    alpha: float,
    beta: float,
    gamma: float,
    window: int,
    start: float,
    every: int,
) -> tuple[float, list[int]]:
    """Follow cwnd from slow start, doubled in every other round trip, by mean round trips until it rests.

    Returns:
        cwnd, and the window of each round trip.
    """
    cwnd, base, slow, double = start, np.inf, True, False
    passed: list[int] = []
    for _ in range(1000):
        passed.append(_whole(cwnd, window))
        one = rounds[passed[-1]]
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
            cwnd = float(after(cwnd, one.acks))
        elif excess > beta and cwnd > LEAST_WINDOW:
            cwnd = float(after(cwnd, -one.acks))
        else:
            break
        cwnd = min(cwnd, window + 1.0)
    return cwnd, passed


def _least(rounds: Round, law: Vector, begun: float) -> float:
    """Return the time (s) that one round trip of all is expected to fall below, at most that of the start."""

    def surplus(time: float) -> float:
        return ROUNDS * float(law @ rounds.shorter(time)) - 1.0

    if surplus(begun) <= 0.0:
        return begun
    return float(root_scalar(surplus, bracket=(0.0, begun), xtol=1e-13 * begun, method="brentq").root)


def _moves(
    cwnd: Vector, rounds: Round, alpha: float, beta: float, base: float
) -> tuple[Vector, NDArray[np.int64]]:
    """Return by state the chances to grow and to shrink in a round, and where that leads (two columns)."""
    expected = np.asarray(rounds.sent) * base
    grows = np.where(cwnd > alpha, rounds.shorter(expected / np.maximum(cwnd - alpha, 1e-9)), 1.0)
    shrinks = np.where(cwnd > beta, 1.0 - rounds.shorter(expected / np.maximum(cwnd - beta, 1e-9)), 0.0)
    steps = np.stack([np.asarray(rounds.acks), -np.asarray(rounds.acks)], axis=1)
    places = np.rint(np.square(after(cwnd[:, None], steps)) - cwnd[0] ** 2).astype(int)
    return np.stack([grows, shrinks], axis=1), np.minimum(places, len(cwnd) - 1)


def _mean_law(chances: Vector, places: NDArray[np.int64], start: int) -> Vector:
    """Return the mean law over connections that begin at ``start`` and last a geometric number of rounds."""
    reached = [start]
    for state in reached:  # grows while it is walked through
        for chance, place in zip(chances[state], places[state], strict=True):
            if chance > NEGLIGIBLE and place not in reached:
                reached.append(int(place))
    index = {state: i for i, state in enumerate(reached)}
    # visits to each state: one at the start, and the transitions into it from the round before
    system = np.eye(len(reached))
    for state in reached:
        stays = 1.0
        for chance, place in zip(chances[state], places[state], strict=True):
            if chance > NEGLIGIBLE:
                system[index[int(place)], index[state]] -= (1.0 - 1.0 / ROUNDS) * chance
                stays -= chance
        system[index[state], index[state]] -= (1.0 - 1.0 / ROUNDS) * stays
    visits = np.zeros(len(reached))
    visits[0] = 1.0 / ROUNDS
    law = np.zeros(len(chances))
    law[reached] = np.maximum(np.linalg.solve(system, visits), 0.0)
    return law / law.sum()
