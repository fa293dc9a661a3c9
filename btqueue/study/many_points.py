"""Many points of a study: here, in several processes, or on a cluster."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from btqueue.caches import say_once
from btqueue.scenario import Scenario, ScenarioError
from btqueue.study.cluster import map_on_cluster
from btqueue.study.evaluate import Engine, Numbered, PointResult, available_cores, evaluate_point
from btqueue.study.workers import map_in_processes, useful_workers

if TYPE_CHECKING:
    from btqueue.network.ahead import Ahead

AT_ONCE = 64
"""Points of which analytic answers are found together."""

FEW, ALONE_S = 200, 3.0
"""So many points or fewer are evaluated in one process, until that has taken so long (s)."""


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
        KeyboardInterrupt: by Ctrl-C; what was yielded before stays good.
    """
    wanted = range(len(points)) if numbers is None else numbers
    if cluster is not None:
        return map_on_cluster(base, points, engines, wanted, cluster, workers)
    if workers is None and len(wanted) <= FEW:
        return _at_first_here(base, points, engines, wanted)
    workers = useful_workers(len(wanted), workers)
    if workers == 1:
        return _here(base, points, engines, wanted)
    return map_in_processes(base, points, engines, wanted, workers)


def _at_first_here(
    base: Scenario, points: Numbered, engines: Sequence[Engine], numbers: Sequence[int]
) -> Generator[PointResult]:
    """Yield points of this process for a while, then those of several: starting them takes seconds."""
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
    """Yield points of this process; analytic answers of many are found together beforehand."""
    for begin in range(0, len(numbers), AT_ONCE):
        some = numbers[begin : begin + AT_ONCE]
        ahead = _ahead(base, [points[number] for number in some]) if "solve" in engines else None
        for number in some:
            yield evaluate_point(base, number, points[number], engines, threads=None, ahead=ahead)


def _ahead(base: Scenario, changes: Iterable[Mapping[str, Any]]) -> Ahead | None:
    """Return what is known of these points beforehand; nothing of those that are no scenarios.

    Where a point lets the whole batch fail nothing is, which is said: each is asked alone then, and that one
    fails.
    """
    from btqueue.network import answers_ahead

    scenarios = []
    for change in changes:
        with suppress(ScenarioError):
            scenarios.append(base.changed(change) if change else base)
    try:
        return answers_ahead(scenarios)
    except Exception as error:
        say_once(
            f"analytic answers of {len(scenarios)} points were not found together "
            f"({type(error).__name__}: {error}); each is asked for alone"
        )
        return None
