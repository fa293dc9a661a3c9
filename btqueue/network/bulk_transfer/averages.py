"""Long-run averages along the orbit of bulk transfers.

A transfer that loses nothing is steady after a few round trips; one that overflows a buffer goes round in a
sawtooth. A lone flow is averaged over whole teeth. Several flows that share a buffer have several limit
cycles, in step and out of step; orbits from several starts, which differ in the phase of the hosts'
processing jitter, are averaged together.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.network.bulk_transfer.orbit import Orbit
from btqueue.network.bulk_transfer.records import ROUND_TRIP, SESSION, SUMMED

BLOCK = 250
"""Segments between two looks at the averages; more for large windows, so that growth shows."""
SETTLING, FOLLOWED, MOST = 1250, 2000, 15_000
"""Segments that a sawtooth is given to settle, and is then followed at least and at most."""
SHARING = 2
"""Times as long for several flows."""
TEETH = 2
"""Losses for congestion that every flow is to have meanwhile."""
STEADY = 0.012
"""Relative difference of loss-free blocks that count as the same: their ends are known to three segments,
and growth would show as four segments of at most 128 each block."""
LONGEST_S = 1e5
"""An orbit that hardly moves is followed for at most this long (s)."""
PHASES = (0.0, 0.33, 0.67)


class Mark(NamedTuple):
    """All counts at a time (s): of each flow those of `SUMMED`, and of its samples, [flow, kind]."""

    time: float
    visits: int
    data_slots: int
    flows: NDArray[np.float64]
    samples: NDArray[np.int64]


@dataclass(frozen=True)
class Followed:
    """Differences between two marks; round trips and sessions (s) of each flow between them.

    `residual` is the relative difference between the two halves in rate or mean round trip.
    """

    elapsed: float
    visits: int
    data_slots: int
    flows: NDArray[np.float64]
    rtts: tuple[NDArray[np.float64], ...]
    sessions: tuple[NDArray[np.float64], ...]
    residual: float

    def of(self, name: str) -> NDArray[np.float64]:
        """Return the count of this name of every flow."""
        return self.flows[:, SUMMED.index(name)]


def mark(orbit: Orbit) -> Mark:
    """Read all counts."""
    state = orbit.state
    flows = np.array([state.senders[name] for name in SUMMED], float).T
    data_slots = int(state.piconet["data_slots"][0])
    return Mark(orbit.now, orbit.visits, data_slots, flows, state.counts.copy())


def between(orbit: Orbit, marks: list[Mark]) -> Followed:
    """Return the differences between the first and the last of these marks."""
    first, middle, last = marks[0], marks[len(marks) // 2], marks[-1]
    return Followed(
        last.time - first.time,
        last.visits - first.visits,
        last.data_slots - first.data_slots,
        last.flows - first.flows,
        _samples(orbit, ROUND_TRIP, first, last),
        _samples(orbit, SESSION, first, last),
        _difference(orbit, first, middle, last) if len(marks) > 2 else 0.0,
    )


def _samples(orbit: Orbit, kind: int, first: Mark, last: Mark) -> tuple[NDArray[np.float64], ...]:
    """Return the samples of a kind that each flow has taken between two marks."""
    ranges = zip(first.samples[:, kind], last.samples[:, kind], strict=True)
    return tuple(orbit.samples(kind, flow)[a:b] for flow, (a, b) in enumerate(ranges))


def _difference(orbit: Orbit, first: Mark, middle: Mark, last: Mark) -> float:
    rates, means = [], []
    for a, b in ((first, middle), (middle, last)):
        rates.append((b.flows - a.flows)[:, 1].sum() / max(b.time - a.time, 1e-9))
        trips = np.concatenate(_samples(orbit, ROUND_TRIP, a, b))
        means.append(float(trips.mean()) if trips.size else 0.0)
    return max(abs(y - x) / max(x, y, 1e-9) for x, y in (rates, means))


def follow(orbit: Orbit) -> Followed:
    """Follow an orbit from its start until its averages stand."""
    block = max(BLOCK, 8 * max(path.window for path in orbit.paths.flows))
    alone = len(orbit.paths.flows) == 1
    longer = 1 if alone else SHARING
    marks = [mark(orbit)]
    for _ in range(-(-longer * SETTLING // block)):
        orbit.play(block, LONGEST_S)
        marks.append(mark(orbit))
        if not orbit.has_sessions and len(marks) > 3 and _steady(orbit, marks[-3:]):
            return between(orbit, marks[-3:])
    if alone:
        orbit.play_to_loss(MOST, LONGEST_S)
    marks = [mark(orbit)]
    segments = teeth = 0.0
    while segments < longer * FOLLOWED or (not orbit.has_sessions and teeth < TEETH and segments < MOST):
        if alone:
            orbit.play_to_loss(MOST, LONGEST_S)
        else:
            orbit.play(block, LONGEST_S)
        marks.append(mark(orbit))
        sums = between(orbit, [marks[0], marks[-1]])
        segments = sums.of("ended").sum()
        teeth = (sums.of("timeouts") + sums.of("fast_retransmits")).min()
        if not orbit.has_sessions and _steady(orbit, marks[-3:]):
            return between(orbit, marks[-3:])
    return between(orbit, marks)


def _steady(orbit: Orbit, marks: list[Mark]) -> bool:
    lost = marks[-1].flows[:, 3] - marks[0].flows[:, 3]
    return len(marks) == 3 and not lost.any() and _difference(orbit, *marks) < STEADY


def follow_from_starts(new_orbit: Callable[[float], Orbit]) -> list[Followed]:
    """Follow orbits from several starts, by the phase of the jitter; one, where there is no choice."""
    orbit = new_orbit(PHASES[0])
    found = [follow(orbit)]
    several = found[0].of("lost").any() or orbit.has_sessions
    if len(orbit.paths.flows) > 1 and orbit.paths.jitter_s and several:
        found += [follow(new_orbit(phase)) for phase in PHASES[1:]]
    return found
