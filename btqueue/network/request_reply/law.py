"""The law of the session time on a lattice, with processing delays and repeated radio packets."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from btqueue.network.request_reply.timetable import NS, Chance
from btqueue.scenario import Scenario

QUANTILES = (50, 90, 95, 99)

NARROW = 400.0
"""Mean squared in variances from which on a law is as good as normal."""


class Law(NamedTuple):
    """Probabilities on the lattice of `step_s`."""

    step_s: float
    probabilities: np.ndarray

    @property
    def deviation(self) -> float:
        """Standard deviation (s)."""
        times = np.arange(len(self.probabilities)) * self.step_s
        share = self.probabilities / self.probabilities.sum()
        return float(np.sqrt(max(0.0, share @ times**2 - (share @ times) ** 2)))

    def quantiles(self) -> dict[int, float]:
        """Times (s) that so many percent stay below, where the lattice reaches as far."""
        rising = np.cumsum(self.probabilities)
        places = {percent: int(np.searchsorted(rising, percent / 100)) for percent in QUANTILES}
        return {percent: place * self.step_s for percent, place in places.items() if place < len(rising)}


class Mixture(NamedTuple):
    """The time of a message as a mixture, by stretches: weights, means and variances, ``(stretches,)``."""

    weights: np.ndarray
    means: np.ndarray
    variances: np.ndarray

    @property
    def mean(self) -> float:
        """Mean (s)."""
        return float(self.weights @ self.means)

    @property
    def variance(self) -> float:
        """Variance (s2)."""
        return float(self.weights @ (self.variances + self.means**2)) - self.mean**2

    def transform(self, step_s: float, points: int) -> np.ndarray:
        """Return the Fourier transform on a lattice of twice as many points.

        Each part is a gamma law of its mean and variance, or a normal one where it is narrow.
        """
        turn = 2j * np.pi * np.arange(points + 1)[:, None] / (2 * points)
        means, variances = (
            self.means / step_s,
            self.variances / step_s**2 + 0.5,
        )  # no narrower than the lattice
        narrow = means**2 > NARROW * variances
        shape, scale = means**2 / variances, variances / means
        gamma = (1.0 + turn * np.where(narrow, 0.0, scale)) ** -np.where(narrow, 0.0, shape)
        normal = np.exp(-turn * means + turn**2 / 2.0 * np.where(narrow, variances, 0.0))
        # too small a product for the threads of linear algebra
        return (np.where(narrow, normal, gamma) * self.weights).sum(axis=1)


def one_way(value: float) -> np.ndarray:
    """Return a metric that only the requesting flow has."""
    return np.array([value, np.nan])


def session_metrics(
    scenario: Scenario, law: Law, session_s: float, deviation_s: float, cycle_s: float
) -> dict[str, np.ndarray]:
    """Return what any protocol has: rates, goodput, and moments and quantiles of the session time.

    Args:
        scenario: that has the messages.
        law: of the session time, for quantiles.
        session_s: mean of that time; the lattice may cut it off.
        deviation_s: its standard deviation.
        cycle_s: mean time from one session to the next.
    """
    traffic = scenario.traffic
    sizes = np.array([traffic.request_bytes + traffic.goodbye_bytes, traffic.reply_bytes])
    quantiles = {f"session_time_p{percent}_s": one_way(time) for percent, time in law.quantiles().items()}
    return {
        "sessions_per_s": one_way(1.0 / cycle_s), "sessions_lost": one_way(0.0),
        "session_time_s": one_way(session_s), "session_time_sd_s": one_way(deviation_s), **quantiles,
        "goodput_kbps": sizes * 8 / 1000 / cycle_s,
    }  # fmt: skip


def law_of_period(times_s: Sequence[float], step_s: float, points: int) -> np.ndarray:
    """Return the law of times that are equally frequent, each shared between two points of a lattice."""
    law, each = np.zeros(points), 1.0 / len(times_s)
    for time in times_s:
        whole, part = divmod(time / step_s, 1.0)
        for place, share in ((int(whole), 1.0 - part), (int(whole) + 1, part)):
            if place < points:
                law[place] += share * each
    return law


def with_chance(law: np.ndarray, chance: Chance, step: float, jitter_s: float) -> np.ndarray:
    """Convolve a law with processing delays, whose means it contains, and with repeated radio packets.

    Repetitions are many small times: a gamma law of their mean and variance. By Fourier transform; the
    lattice is twice as long, so that nothing folds back into it from its own end.
    """
    points = 2 * len(law)
    transform = np.fft.rfft(law, points)
    if chance.delays and jitter_s:
        transform = transform * np.fft.rfft(_box(jitter_s / step, points)) ** chance.delays
    if chance.variance:
        scale = chance.variance / chance.repeated_ns / NS / step
        shape = chance.repeated_ns / NS / step / scale
        turn = 2j * np.pi * np.arange(len(law) + 1) / points
        transform = transform * (1.0 + turn * scale) ** -shape
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
