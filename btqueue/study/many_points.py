"""Many points of a study: here, in several processes, or on a cluster."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Sequence

from btqueue.scenario import Scenario
from btqueue.study.cluster import map_on_cluster
from btqueue.study.evaluate import Engine, Numbered, PointResult, available_cores, evaluate_point
from btqueue.study.workers import map_in_processes

FEW, ALONE_S = 200, 3.0
"""Number of points up to which one process evaluates them, until that has taken `ALONE_S` seconds."""


def map_points(
    base: Scenario,
    points: Numbered,
    *,
    engines: Sequence[Engine] = ("solve",),
    workers: int | None = None,
    numbers: Sequence[int] | None = None,
    cluster: str | None = None,
) -> Generator[PointResult]:
    """Evaluate many points and yield them as they are finished, in any order.

    Args:
        base: the scenario that the points change.
        points: changes by dotted key; `points[number]` is asked for as late as possible.
        engines: which to run.
        workers: processes at once, 1 for none but this one; by default all cores, unless few points are
            finished sooner without.
        numbers: which of the points; all by default.
        cluster: address of a dask scheduler ("tcp://host:8786"), or "local", in place of own processes.

    A point whose process dies is tried once more, then it is a failure of kind "worker". Closing the iterator
    (or Ctrl-C) ends all processes; results do not depend on where or in which order points are evaluated.

    Raises:
        KeyboardInterrupt: by Ctrl-C; the points yielded before stay valid.
    """
    wanted = range(len(points)) if numbers is None else numbers
    if cluster is not None:
        return map_on_cluster(base, points, engines, wanted, cluster, workers)
    if workers is None and len(wanted) <= FEW:
        return _at_first_here(base, points, engines, wanted)
    workers = min(len(wanted), workers or available_cores())
    if workers <= 1:
        return _here(base, points, engines, wanted)
    return map_in_processes(base, points, engines, wanted, workers)


def _at_first_here(
    base: Scenario, points: Numbered, engines: Sequence[Engine], numbers: Sequence[int]
) -> Generator[PointResult]:
    """Yield points of this process for a while, then of several processes: starting them takes seconds."""
    began = math.inf
    for place, result in enumerate(_here(base, points, engines, numbers), start=1):
        yield result
        began = min(began, time.monotonic())  # the first point is spent on imports and compilation
        if time.monotonic() - began > ALONE_S and place < len(numbers):
            yield from map_points(
                base, points, engines=engines, workers=available_cores(), numbers=numbers[place:]
            )
            return


def _here(
    base: Scenario, points: Numbered, engines: Sequence[Engine], numbers: Sequence[int]
) -> Generator[PointResult]:
    """Yield points of this process."""
    for number in numbers:
        yield evaluate_point(base, number, points[number], engines, threads=None)
