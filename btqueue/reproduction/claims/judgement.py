"""Whether a published statement holds in simulations or in a model: the statistics behind the verdicts.

A sample has one value for each replication, the mean over flows of one metric; samples of a sweep have the
shape (points, replications). Points that share their seeds share their random numbers, so differences are
taken within a replication. Every test of a trend or an order has a false-alarm rate of ALPHA: with that
probability it finds a trend where there is none. Tolerances come from the wording of the publication: WORDS
has one rule for each word.

A model's answer is a sample of one replication. It has no interval, and an order holds in it if the values
differ by more than RESOLUTION; a trend may have the same steps backward as in a simulation.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from btqueue.simulator.statistics.student import student_half_width

ALPHA = 0.001
"""False-alarm rate of each test."""
RESOLUTION = 1e-6
"""Values of a model that differ by less than this share are the same."""
BACKWARD = 0.05
"""A step against the trend counts if it is significant and more than this share of the range of the sweep."""


class Word(NamedTuple):
    """A rule for a word of the publications.

    Attributes:
        limit: a share, or a rate in 1/s, that the reading explains.
        reading: words that have this meaning, and their reading.
    """

    limit: float
    reading: str


WORDS = {
    "about": Word(0.2, "a number, with “about”, “around”, “roughly” or without: within 20 % of it"),
    "slots": Word(0.1, "a goodput without bit errors, which is a count of slots: within 10 %"),
    "one run": Word(0.5, "a number that is read off a single random run: within half of it"),
    "same": Word(0.05, "“the same”, “no change”, “does not help”: at most 5 % apart"),
    "hardly": Word(
        0.1, "“hardly changed”, “nearly the same”, “flat”, “constant”, “uniform”: at most 10 % apart"
    ),
    "significantly": Word(
        0.8, "“significantly”, “clearly”: the lower value is at most 80 % of the higher one"
    ),
    "slightly": Word(0.8, "“slightly”: a change, but the lower value is more than 80 % of the higher one"),
    "far": Word(
        0.5, "“far”, “much”, “strongly”, “drastically”, “dramatically”, “massively”: at most half of it"
    ),
    "almost ten": Word(0.2, "“almost tenfold”, “almost an order of magnitude”: at most a fifth of it"),
    "order of": Word(2.5, "“of the order of”: within a factor of 2.5"),
    "few": Word(
        0.1, "“few”, “hardly ever”, “nearly none”, “next to nothing”: at most a tenth of all, or of the most"
    ),
    "negligible": Word(
        0.01, "“negligible”, “none”, of losses that cost a second: at most one in 100 s and connection"
    ),
    "best": Word(0.02, "“best”, “enough”: a lead of at most 2 % is a tie, and a tie is no “best”"),
}
"""One rule for each word, used by all claims; a number may have a narrower tolerance of its own."""


def limit(check: Mapping[str, Any], otherwise: float = 0.0) -> float:
    """Return the limit of a check's word, or its own tolerance."""
    return check.get("rel_tol", WORDS[check["word"]].limit if check.get("word") else otherwise)


class Finding(NamedTuple):
    """Whether a check passed, and the observed values in words."""

    holds: bool
    seen: str


def interval(sample: np.ndarray) -> tuple[float, float]:
    """Return mean and half-width of the 95 % interval over the replications of one point."""
    width = student_half_width(sample)
    mean = float(sample.mean())
    return mean, 0.0 if np.isnan(width) or width <= 1e-9 * abs(mean) else width


def shown(sample: np.ndarray, digits: int = 5) -> str:
    """Return mean and half-width as text, the mean with the digits that the half-width leaves.

    Where replications do not differ it has `digits` significant ones.
    """
    mean, width = interval(sample)
    if not np.isfinite(mean):
        return "none"
    if not width:
        return f"{mean:.{digits}g}"
    decimals = max(0, 1 - int(np.floor(np.log10(width))))
    return f"{mean:.{decimals}f} ± {width:.{decimals}f}"


def rounded(*samples: np.ndarray, digits: int = 3) -> str:
    """Return means with `digits` significant digits, and half-widths above a thousandth of the mean."""
    return ", ".join(
        f"{mean:.{digits}g} ± {width:.2g}" if width > 1e-3 * abs(mean) else f"{mean:.{digits}g}"
        for mean, width in map(interval, samples)
    )


def listed(samples: Iterable[np.ndarray], form: str = ".3g") -> str:
    """Return the means of several samples, each in this format."""
    return ", ".join(f"{float(sample.mean()):{form}}" for sample in samples)


def value(sample: np.ndarray, published: float, tolerance: float) -> Finding:
    """Check that the published number is met: our interval touches published ± tolerance."""
    mean, width = interval(sample)
    return Finding(abs(mean - published) <= tolerance + width, shown(sample))


def bound(sample: np.ndarray, lower: float = -np.inf, upper: float = np.inf) -> Finding:
    """Check that the mean lies between the bounds, widened by its half-width."""
    mean, width = interval(sample)
    return Finding(lower - width <= mean <= upper + width, shown(sample))


def exceeds(high: np.ndarray, low: np.ndarray, alpha: float = ALPHA) -> bool:
    """Whether `high` has the greater mean: one-sided t-test of paired replications."""
    return positive(high - low, np.maximum(np.abs(high), np.abs(low)), alpha)


def positive(difference: np.ndarray, size: np.ndarray, alpha: float = ALPHA) -> bool:
    """Whether the mean of paired differences is positive; `size` is the size of the compared values."""
    if len(difference) == 1:
        return bool(difference[0] > RESOLUTION * size[0])
    if np.all(difference == difference[0]):
        return bool(difference[0] > 0)
    score = difference.mean() / (difference.std(ddof=1) / np.sqrt(len(difference)))
    return bool(stats.t.sf(score, len(difference) - 1) < alpha)


def falling(samples: Sequence[np.ndarray]) -> bool:
    """Whether each sample exceeds the next one."""
    return all(exceeds(high, low) for high, low in pairwise(samples))


def trend(samples: np.ndarray, places: np.ndarray, rising: bool) -> Finding:
    """Check that a metric rises (or falls) along a sweep.

    The least-squares slope against `places` must be significant over the replications, and no step between
    neighbours may go significantly backward by more than BACKWARD of the range.
    """
    ahead = samples if rising else -samples
    centred = places - places.mean()
    slopes = centred @ ahead / (centred @ centred)
    allowed = BACKWARD * float(np.ptp(ahead.mean(axis=1)))
    steps = range(len(places) - 1)
    backward = any(exceeds(ahead[i] - allowed, ahead[i + 1], ALPHA / len(steps)) for i in steps)
    ahead_at_all = positive(slopes, np.abs(ahead).max(axis=0) / np.ptp(places))
    return Finding(ahead_at_all and not backward, listed(samples))


def flat(samples: np.ndarray, spread: float) -> Finding:
    """Check that a metric stays within `spread` (relative to its mean), widened by the largest half-width."""
    means = samples.mean(axis=1)
    widest = max(interval(sample)[1] for sample in samples)
    return Finding(float(np.ptp(means)) <= spread * float(means.mean()) + widest, listed(samples))


def order(samples: list[np.ndarray], share: float = 1.0, *, logarithmic: bool = False) -> Finding:
    """Check that `share` of each sample exceeds the next one, by paired tests at ALPHA.

    Args:
        samples: the greatest first.
        share: share of each sample.
        logarithmic: compare logarithms, of values that differ by factors between replications.
    """
    scale = np.log if logarithmic else np.asarray
    holds = all(exceeds(scale(share * high), scale(low)) for high, low in pairwise(samples))
    return Finding(holds, " > ".join(map(shown, samples)))


def best(samples: np.ndarray, places: list[float], lower: float, upper: float) -> Finding:
    """Check that the largest mean lies between `lower` and `upper`, and no other place ties with it."""
    good = _ties(samples)
    return Finding(
        all(lower <= place <= upper for place, tie in zip(places, good, strict=True) if tie), listed(samples)
    )


def smallest_sufficient(samples: np.ndarray, places: list[float], lower: float, upper: float) -> Finding:
    """Check that the first place that ties with the largest mean lies between the bounds."""
    first = places[int(np.argmax(_ties(samples)))]
    return Finding(lower <= first <= upper, f"{first:g} ({listed(samples)})")


def _ties(samples: np.ndarray) -> np.ndarray:
    means = samples.mean(axis=1)
    return means >= (1 - WORDS["best"].limit) * means.max()


def inner(samples: np.ndarray, places: list[float], lower: float, upper: float, least: bool) -> Finding:
    """Check that a local extreme lies inside [lower, upper].

    It must differ significantly from the farthest mean on either side (shared among all places: Bonferroni).
    """
    ahead = -samples if least else samples
    means = ahead.mean(axis=1)
    inside = [i for i, place in enumerate(places) if lower <= place <= upper]
    top = max(inside, key=lambda i: means[i])
    sides = [range(top), range(top + 1, len(places))]
    feet = [min(side, key=lambda i: means[i]) for side in sides if side]
    holds = len(feet) == 2 and all(exceeds(ahead[top], ahead[foot], ALPHA / len(places)) for foot in feet)
    return Finding(holds, listed(samples))
