"""Rounds of a bridge that comes and goes without notice: its visits, and its waits for polls."""

from __future__ import annotations

from math import ceil, exp, inf, isnan
from typing import NamedTuple

import numpy as np
from scipy.special import binom, gammaincc

from btqueue.network.stations.network import EMPTY, Train

STEPS = 10
"""Newton's steps to the round of a bridge; from the previous round two or three suffice."""


class Legs(NamedTuple):
    """The visits of a bridge that walks in, as a member and then as a central (slots).

    Attributes:
        here: numbers of the links.
        gaps: times between polls of the links at which it is a member.
        early: time that it may be late for a poll (`Bridge.early`), of these links.
        least: visits without data, of these links.
        load, most, full, probes: attributes of `Links`, for each link.
        rest: rest of a round, without any flow.
        polls: polls of members of its own piconet that have no flow.
    """

    here: list[int]
    gaps: list[float]
    early: list[float]
    least: list[float]
    load: list[float]
    most: list[float]
    full: list[bool]
    probes: list[float]
    rest: float
    polls: float

    def visits(
        self, sizes: list[tuple[float, float, float]], total: float
    ) -> tuple[float, float, float, float, list[float], list[float]]:
        """Return the time that the visits take in a round.

        These are the stay as a central and its slope in the round, the part of a round that is known and its
        slope, and the visits as a member and their slopes.

        Args:
            sizes: of each visit its slots in any case, its further slots for each slot of the round, and its
                most slots.
            total: the round.
        """
        count = len(self.gaps)
        stay, slope, known, known_slope = self.polls, 0.0, self.polls + self.rest, 0.0
        known += EMPTY * (len(self.here) - count)
        visits, slopes = [], []
        for k, (first, each, most) in enumerate(sizes):
            taken = first + each * total
            if most < inf:
                taken = min(taken, most)
                each = each if taken < most else 0.0
                taken += EMPTY * (taken < most or not taken)
            if k < count:
                visits.append(self.least[k] - EMPTY + taken)
                slopes.append(each)
            else:
                met = min(self.probes[k] * total, EMPTY)
                met_slope = self.probes[k] * (met < EMPTY)
                stay, slope = stay + taken + met, slope + each + met_slope
                known, known_slope = known + met, known_slope + met_slope
        return stay, slope, known, known_slope, visits, slopes


class Tour(NamedTuple):
    """The work of a central for other links between two full visits to a bridge (slots).

    Attributes:
        mean, variance: of the time for the segments that the last visit brought, if it brought any.
        sure: time taken in any case.
        some: chance that the last visit has brought anything.
        polls: time between two polls of the bridge after that.
        whole: longest visit to another link, with the poll behind it, if visits are limited.
    """

    mean: float
    variance: float
    sure: float
    some: float
    polls: float
    whole: float

    def wait(self, absence: float, variance: float) -> tuple[float, float]:
        """Return mean and mean square of the wait of a bridge for its poll after an absence (slots).

        Args:
            absence: mean of the time that it is elsewhere.
            variance: variance of this time.
        """
        mean = square = 0.0
        full, empty = self.sure + self.mean, self.sure  # after an empty visit absences are hardly shorter
        cases = ((self.some, full, self.variance + variance), (1.0 - self.some, empty, 0.0))
        for chance, tour, spread in cases:
            late, first, second = _beyond(tour, max(spread, 1e-3), absence)
            if (
                0.0 < self.whole < 20.0 * first / max(late, 1e-12)
            ):  # the rest of a visit, of exponential times
                rest = first / late - self.whole / np.expm1(self.whole * late / first)
                first, second = late * rest, 2.0 * late * rest**2
            mean += chance * (first + (1.0 - late) * self.polls / 2.0)
            square += chance * (second + (1.0 - late) * self.polls**2 / 3.0)
        return mean, square


def _beyond(mean: float, variance: float, bound: float) -> tuple[float, float, float]:
    """Return P(V > d), E (V - d)^+ and the mean of its square for a gamma law of V, and a bound d > 0."""
    if mean == 0.0:
        return 0.0, 0.0, 0.0
    shape, point = mean**2 / variance, bound * mean / variance
    late, longer, longest = (float(gammaincc(shape + more, point)) for more in range(3))
    square = mean**2 + variance
    first = mean * longer - bound * late
    return late, max(first, 0.0), max(square * longest - 2.0 * bound * mean * longer + bound**2 * late, 0.0)


LONGEST_TURN, SAME = 6, 1e-4
"""Most steps in which rounds come in turn, at a jump of the wait for a poll, and their difference (steps)."""


def until_polled(gone: float, more: float, gap: float, first: float) -> float:
    """Return the mean wait (slots) of a bridge for its poll.

    Args:
        gone: mean time after which it comes back; a part of it is exponential, with mean `more`.
        more: taken as a slot at least, because no time is known better.
        gap: time from one poll to the next.
        first: time of the first poll.
    """
    return _until_polled(gone, more, gap, first)[0]


def _until_polled(gone: float, more: float, gap: float, first: float) -> tuple[float, float, float]:
    """Return the wait of `until_polled`, and its slopes in `gone` and in `more`."""
    if isnan(gone) or isnan(gap):
        raise FloatingPointError("the round of a bridge is no number")
    random = max(more, 1.0)
    missed = max(ceil((gone - random - first) / gap), 0)
    ahead = first + missed * gap - gone
    rest = exp(-gap / random)
    late = exp(-(ahead + random) / random) / (1.0 - rest)
    slope = gap * late * (ahead + gap * rest / (1.0 - rest)) / random**2 if more > 1.0 else 0.0
    return ahead + late * gap, gap * late / random - 1.0, slope


def newton(
    legs: Legs, sizes: list[tuple[float, float, float]], total: float, wait: list[float]
) -> tuple[float, float, list[float]] | None:
    """Return round, stay as a central and waits by Newton's steps from these; None if they do not settle."""
    wait, count, rest, all_least = wait.copy(), len(wait), legs.rest, sum(legs.least)
    for _ in range(STEPS):
        stay, slope, known, known_slope, visits, slopes = legs.visits(sizes, total)
        over, left = rest + stay + sum(visits) + sum(wait) - total, 1.0 - slope - sum(slopes)
        largest, parts = abs(over), []
        for k in range(count):
            gone, sure = total - visits[k] - wait[k], known + all_least - legs.least[k]
            new, by_gone, by_more = _until_polled(
                gone - legs.early[k], gone - sure, legs.gaps[k], legs.gaps[k] - EMPTY
            )
            move = new - legs.early[k] - wait[k]
            largest = max(largest, abs(move))
            both = by_gone + by_more
            if 1.0 + both < 1e-9:  # it meets the same poll for any absence
                return None
            grows = (both * (1.0 - slopes[k]) - by_more * known_slope) / (1.0 + both)
            parts.append((move / (1.0 + both), grows))
            over, left = over + parts[k][0], left - grows
        if largest < 1e-11 * total:
            return total, stay, wait
        if left == 0.0:
            return None
        step = over / left
        total += step
        if not 0.0 < total < inf:
            return None
        for k, (move, grows) in enumerate(parts):
            wait[k] += move + grows * step
    return None


def halving(
    legs: Legs, sizes: list[tuple[float, float, float]], wait: list[float], total: float
) -> tuple[float, list[float]]:
    """Return round and waits by steps of half the change from these, their means where they come in turn."""
    wait, all_least, past = wait.copy(), sum(legs.least), []
    for _ in range(200):
        stay, _, known, _, visits, _ = legs.visits(sizes, total)
        total = legs.rest + stay + sum(visits) + sum(wait)
        for k, visit in enumerate(visits):
            gone, sure = total - visit - wait[k], known + all_least - legs.least[k]
            # behind a visit that takes the place of a frame of POLL and NULL
            first = legs.gaps[k] - EMPTY
            new = until_polled(gone - legs.early[k], gone - sure, legs.gaps[k], first) - legs.early[k]
            total += (new - wait[k]) / 2.0
            wait[k] = (new + wait[k]) / 2.0
        step, least = abs(total - past[-1][0]) if past else 0.0, 1e-10 * total
        past.append([total, *wait])
        for period in range(1, min(LONGEST_TURN, len(past) - 1) + 1):
            if abs(total - past[-1 - period][0]) < (least if period == 1 else max(least, SAME * step)):
                total, *wait = np.mean(past[-period:], axis=0).tolist()
                return total, wait
    return total, wait


def completed(frames: float, train: Train) -> tuple[float, float, float]:
    """Return mean and variance of the segments that `frames` frames complete, and the chance of any.

    Packets come through independently: their number B is binomial. The first segment may have been begun at
    any of its p packets, so that B packets complete the whole part of B / p segments, or one more.
    """
    tries, packets, through = round(frames), max(round(train.packets), 1), train.packets / train.frames
    number = np.arange(tries + 1.0)
    chance = binom(tries, number) * through**number * (1.0 - through) ** (tries - number)
    rest = number / packets % 1.0
    spread = frames * through * (1.0 - through) / packets**2 + float(chance @ (rest * (1.0 - rest)))
    return frames / train.frames, spread, float(chance @ np.minimum(number / packets, 1.0))
