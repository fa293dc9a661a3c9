"""Two aims at once: the points that no other point beats in both (the Pareto front).

Of a task with two aims the second one is the left side of the last constraint, whose bound is infinite. Where
not all combinations are solved, the first aim is searched under one bound of the second after another
(Haimes, Lasdon and Wismer 1971).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from btqueue.study.dimensioning.choices import Place
from btqueue.study.dimensioning.confirmation import Confirmation, Simulated, Simulator, simulated
from btqueue.study.dimensioning.problem import Task
from btqueue.study.dimensioning.search import Outcome, find_best, search_again
from btqueue.study.dimensioning.table import Candidate, Table
from btqueue.study.summary import over_replications

LEVELS = 10
"""Bounds of the second aim that are searched between the ends of a front."""

SHARE = 20
"""Each of these searches may solve this part of the budget."""

FAR = 10.0
"""The bound that looks for the best of the second aim, in multiples of its value at the best of the first."""

MOST_SIMULATED = 5
"""Points of a front that are simulated, the ends among them."""


def find_front(table: Table) -> Outcome:
    """Fill *table* with points until the front is proved, or the searches along it have ended.

    Raises:
        NoAnswers: as `find_best`.
    """
    outcome = find_best(table)
    best = table.best()
    if outcome.proved or best is None:
        return outcome
    task, number, allowance = table.task, len(table.task.constraints) - 1, max(table.budget // SHARE, 1)
    aim, here = task.constraints[number], best.sides[number]
    far = FAR * (abs(here) or 1.0)
    bounds = [here - far if aim.sense == "<=" else here + far]
    for place in range(LEVELS + 1):
        tighter = task.with_constraint(number, replace(aim, bound=bounds[place]))
        search_again(table, tighter, table.best(tighter) or best, allowance)
        if place == 0:
            ends = front_of(task, list(table.known.values()))
            sides = (ends[0].sides[number], ends[-1].sides[number])
            bounds += np.linspace(*sides, LEVELS + 2)[1:-1].tolist()
    return outcome


def front_of(task: Task, known: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Return the feasible points that no other one beats in both aims, the best of the first aim first."""
    assert task.second is not None
    feasible = [candidate for candidate in known if candidate.feasible(task)]

    def losses(candidate: Candidate) -> tuple[float, float, Place]:
        assert task.second is not None
        return (
            task.objective.loss(candidate.objective),
            task.second.loss(candidate.sides[-1]),
            candidate.place,
        )

    kept: list[Candidate] = []
    for candidate in sorted(feasible, key=losses):
        if not kept or losses(candidate)[1] < losses(kept[-1])[1]:
            kept.append(candidate)
    return tuple(kept)


def spread(count: int, most: int) -> list[int]:
    """Return at most *most* of *count* places, evenly spread, the first and the last among them."""
    return sorted({round(place) for place in np.linspace(0, count - 1, min(count, most)).tolist()})


def simulated_front(
    task: Task,
    front: Sequence[Candidate],
    models: Mapping[Place, Candidate],
    simulator: Simulator,
    progress: Callable[[int, int], None] | None = None,
) -> Confirmation:
    """Simulate some points of a front, its ends among them, with common random numbers.

    Args:
        task: the problem.
        front: its points.
        models: the model's answers, by place.
        simulator: of one scenario.
        progress: called with the number of points simulated and of all.
    """
    points: list[Simulated] = []
    wanted = spread(len(front), MOST_SIMULATED)
    for number in wanted:
        one = front[number]
        point = simulated(task, f"{number + 1}.", one.changes, models.get(one.place), simulator)
        points.append(replace(point, verdict=""))  # nothing is compared
        if progress is not None:
            progress(len(points), len(wanted))
    return Confirmation(tuple(points), tuple(_doubts(task, points)), len(points[0].samples))


def _doubts(task: Task, points: Sequence[Simulated]) -> Iterator[str]:
    """Warn if the ends cannot be told apart in the first aim: then chance alone may have made a front."""
    first, last = points[0], points[-1]
    if len(points) < 2 or len(first.samples) != len(last.samples) or len(first.samples) < 2:
        return
    apart = over_replications(first.samples - last.samples)
    if abs(apart.mean) <= apart.ci95:
        yield (
            f"{first.role} and {last.role} cannot be told apart in {task.objective.text}: they differ by "
            f"{apart.mean:.3g} ± {apart.ci95:.2g} in pairs of replications; more run.replications may show a "
            "difference"
        )
