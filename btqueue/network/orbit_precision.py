"""How certain averages are over connections that are followed: from batches of several runs.

Batches are compared with the others of their run, since what runs differ in (the limit cycle that they fell
into) longer ones do not mend; with control variates all batches are fitted together. They are taken for
independent.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from btqueue.network.control_variates import relative_error


class Batches(NamedTuple):
    """What the batches of one run counted, [batch].

    Attributes:
        time: how long they are (s).
        delivered: segments in order.
        trips: round-trip times measured.
        trip_time: their sum (s).
    """

    time: np.ndarray
    delivered: np.ndarray
    trips: np.ndarray
    trip_time: np.ndarray

    @classmethod
    def between(cls, notes: np.ndarray) -> "Batches":
        """Return what was counted between notes, of which the first four columns are these."""
        return cls(*(notes[1:, :4] - notes[:-1, :4]).T)


BATCHES = 8
"""Batches of a run that are compared: the longer it is, the longer they are."""
GOODPUT, ROUND_TRIP = 0.006, 0.01
"""Relative standard errors at which it is enough."""
TIMEOUTS, SELDOM = 100, 0.01
"""Timeouts that are enough, and those per second and flow that need not be known."""


class Precision(NamedTuple):
    """Relative standard errors."""

    goodput: float
    round_trip: float


UNKNOWN = Precision(np.inf, np.inf)


def enough(found: Precision, timeouts: float, seconds: float) -> bool:
    """Return whether goodput, round trip and timeouts are known as well as they need be.

    Args:
        found: how well.
        timeouts: how many there were.
        seconds: times flows.
    """
    if found.goodput > GOODPUT or found.round_trip > ROUND_TRIP:
        return False
    return timeouts >= TIMEOUTS or timeouts <= SELDOM * seconds


def precision_of(
    runs: Sequence[Batches], excess: np.ndarray | None = None, *, carried: bool = False
) -> Precision:
    """Return the relative standard errors of goodput and of the mean round trip over runs.

    Args:
        runs: of at least two batches each.
        excess: control variates of all batches (see `control_variates`), if there are any.
        carried: the load is delivered, so that goodput is known.
    """
    if excess is None:
        goodput = 0.0 if carried else ratio_error([(run.delivered, run.time) for run in runs])
        return Precision(goodput, ratio_error([(run.trip_time, run.trips) for run in runs]))
    time, delivered, trips, trip_time = (np.concatenate(x) for x in zip(*runs, strict=True))
    goodput = 0.0 if carried or not delivered.any() else relative_error(time, delivered, excess)
    return Precision(goodput, relative_error(trip_time, trips, excess))


def of_long_batches(notes: np.ndarray) -> np.ndarray:
    """Return the first and the last note and those between that make `BATCHES` of about one length.

    All of them if they are fewer. Runs can end before all their batches are full, so the number of notes is
    any.
    """
    last = len(notes) - 1
    return notes[np.round(np.linspace(0, last, min(last, BATCHES) + 1)).astype(int)]


def ratio_error(runs: Sequence[tuple[np.ndarray, np.ndarray]]) -> float:
    """Return the relative standard error of a ratio of sums over all batches (Cochran 1977, chapter 6).

    The sums of each run are taken as they are: batches scatter around the ratio of their run.
    """
    whole = sum(float(parts.sum()) for parts, _ in runs)
    if whole <= 0.0:
        return 0.0
    variance = 0.0
    for parts, wholes in runs:
        share = parts.sum() / max(wholes.sum(), 1e-300)
        scatter = parts - share * wholes
        variance += float(scatter @ scatter) * len(parts) / max(len(parts) - 1, 1)
    return variance**0.5 / whole
