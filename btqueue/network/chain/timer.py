"""When the retransmission timer of an orbit expires: the law of its setting against that of the wait.

The order of the segments in an orbit (`chain.orbit`) is certain; its times are means, to which repetitions on
the radio and changes of the radio add. Courses of these times are followed side by side from places all over
the radio's own course, with deviations from a Latin hypercube, so that the nodes are fixed and the answer is
smooth in the scenario. Each course carries the sender's smoothed round trip and deviation (RFC 6298) from
one new acknowledgement to the next, exactly. The wait for the next one is integrated.

Approximations: deviations follow gamma laws of the right variance and skewness, independent from visit to
visit; a wait that is cut off at the timer does not count as long in what follows.
"""

from functools import cache
from math import erfc, inf, nan, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.transport import newreno_sender
from btqueue.transport.compilation import compiled, part
from btqueue.transport.newreno_sender import smooth

COURSES = 256
NOTHING, PROGRESS, RECOVERY = range(3)
"""What an acknowledgement brings: nothing new, something new, or the third duplicate."""
BACKOFFS = 6
UNLIKELY = 1e-9
"""Expiries of one wait that are counted, and the chance from which on a further one is looked for."""
SYMMETRIC = 1e-3
"""Least skewness: a gamma law of less is a normal one."""

EVENT = np.dtype(
    [
        ("time", float),
        ("echo", np.int64),
        ("kind", np.int64),
        ("expired", np.int64),
        ("leap", float),
        ("leap_skewness", float),
        ("step", float),
        ("step_skewness", float),
        ("back", float),
    ]
)
"""An acknowledgement in an orbit: its time (s), after how many others the segment was sent that it answers,
what it brings, whether the timer has expired before it, and its `pipes.Chance`."""

Array = NDArray[np.float64]


@cache
def nodes(count: int) -> Array:
    """Return normal deviations, two for each of `count` events, of all courses: a Latin hypercube."""
    from scipy.special import ndtri

    even = ndtri((np.arange(COURSES) + 0.5) / COURSES)
    random = np.random.default_rng(0)
    columns = [random.permutation(even / even.std()) for _ in range(2 * count)]
    return np.ascontiguousarray(np.stack(columns, axis=1), float)


class Expiries(NamedTuple):
    """What the timer does in each course.

    Attributes:
        late: (courses, events) chance that it expires before an event, if it has not before.
        again: (courses, events) mean number of further expiries, with the timeout doubled each time.
        starts: (courses,) places in the radio's course where counting begins, in the orbit's time.
    """

    late: Array
    again: Array
    starts: Array


def chances(
    events: NDArray, begin: int, course: tuple[Array, Array], bounds: tuple[float, float]
) -> Expiries:
    """Return how likely the timer expires before each event; zero before those that count.

    Args:
        events: of an orbit, of dtype `EVENT`.
        begin: the first event that counts.
        course: of the radio: so much of the orbit's time has passed at these times (s).
        bounds: of the timeout (s).
    """
    count = len(events)
    found = Expiries(np.zeros((COURSES, count)), np.zeros((COURSES, count)), np.empty(COURSES))
    deviations = nodes(1 << max(9, (count - 1).bit_length()))
    rows = np.empty(count), np.empty(count)
    expiries(events.view(np.recarray), begin, deviations, *course, *bounds, *found, *rows)
    return found


@part
def across(place, edges_from, edges_to):
    """Map a place by a periodic piecewise linear function."""
    last = len(edges_from) - 1
    turns = np.floor(place / edges_from[last])
    rest = place - turns * edges_from[last]
    low, high = 0, last
    while high - low > 1:
        middle = (low + high) // 2
        if edges_from[middle] <= rest:
            low = middle
        else:
            high = middle
    share = (rest - edges_from[low]) / (edges_from[high] - edges_from[low])
    return turns * edges_to[last] + edges_to[low] + share * (edges_to[high] - edges_to[low])


@part
def skewed(deviation, skewness):
    """Turn a normal deviation into one of a gamma law of this skewness (Wilson and Hilferty's cube)."""
    shape = 4.0 / max(skewness, SYMMETRIC) ** 2
    cube = max(1.0 - 1.0 / (9.0 * shape) + deviation / (3.0 * sqrt(shape)), 0.0) ** 3
    return sqrt(shape) * (cube - 1.0)


@part
def beyond(wait, spread, skewness):
    """Return the chance that a gamma law of mean zero exceeds a wait: the inverse of `skewed`."""
    if spread == 0.0:
        return 1.0 if wait < 0.0 else 0.0
    shape = 4.0 / max(skewness, SYMMETRIC) ** 2
    cube = max(1.0 + wait / (spread * sqrt(shape)), 0.0)
    return 0.5 * erfc((cube ** (1.0 / 3.0) - 1.0 + 1.0 / (9.0 * shape)) * 3.0 * sqrt(shape / 2.0))


@compiled(newreno_sender)
def expiries(events, begin, deviations, passed, edges, min_rto, max_rto, late, again, starts, places, times):
    """Follow all courses; see `chances`. `places` and `times` are rows as long as the events."""
    count = len(deviations)
    for course in range(count):
        start = (course + 0.5) / count * passed[-1]
        began = across(start, passed, edges)
        carried = left = spread = third = moved = 0.0
        smoothed, variation, timeout = nan, 0.0, inf
        last = -1
        for number in range(len(events)):
            event = events[number]
            leap, step = deviations[course, 2 * number], deviations[course, 2 * number + 1]
            if event.leap > 0.0:
                moved += event.leap * skewed(leap, event.leap_skewness) - carried
                spread += event.leap**2
                third += event.leap_skewness * event.leap**3
                carried = 0.0
            if event.step > 0.0:
                step = skewed(step, event.step_skewness)
                moved += event.step * step
                carried += event.back * step
            places[number] = start + event.time + moved
            times[number] = across(places[number], passed, edges)
            if number == begin:
                starts[course] = places[number]
            if event.expired:
                last = -1
            if event.kind == PROGRESS:
                if last >= 0 and number >= begin:
                    mean = event.time - events[last].time - left
                    skewness = third / spread**1.5 if spread > 0.0 else 0.0
                    waited, next_timeout = 0.0, timeout
                    for expiry in range(BACKOFFS):
                        waited += next_timeout
                        due = across(times[last] + waited, edges, passed) - places[last]
                        chance = beyond(due - mean, sqrt(spread), skewness)
                        if expiry == 0:
                            late[course, number] = chance
                        else:
                            again[course, number] += chance
                        if chance < UNLIKELY:
                            break
                        next_timeout = min(2.0 * next_timeout, max_rto)
                sent = times[event.echo - 1] if event.echo > 0 else began
                smoothed, variation = smooth(smoothed, variation, times[number] - sent)
                timeout = min(max(smoothed + 4.0 * variation, min_rto), max_rto)
                last, left, spread, third = number, carried, 0.0, 0.0
