"""The solved points of a dimensioning: each is solved once, in batches, within a budget."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from btqueue.scenario import Scenario, ScenarioError
from btqueue.study.dimensioning.problem import Place, Task
from btqueue.study.evaluate import Answer, Engine, Failure, PointResult
from btqueue.study.many_points import map_points
from btqueue.study.points import label

Solver = Callable[[Scenario, Sequence[Mapping[str, Any]], int | None], Iterable[PointResult]]
"""Solves points (changes by key) of a scenario in a number of processes, in any order."""

Progress = Callable[[int, int], None]
"""Called with the number of points solved and the most that will be solved."""

SMALL_BATCH = 32
"""Least number of points for which further processes pay: models are compiled in this one already."""


NAMES: Mapping[Engine, str] = {"solve": "the model", "simulate": "the simulation"}
"""Of each engine, in messages."""


class NoAnswers(ScenarioError):
    """No point has an answer, for a reason that has nothing to do with the values of the keys."""


class BudgetSpent(Exception):
    """No further point may be solved."""


@dataclass(frozen=True)
class Candidate:
    """A point and the model's answer.

    Attributes:
        place: in the search.
        changes: values of the chosen keys.
        objective: value of the objective; NaN after a failure.
        sides: left side of each constraint; NaN after a failure.
        failure: why there is no answer.
        warnings: warnings of the engine about its answer.
        unserved: number of flows that get nothing.
        answered_by: "theory", or "simulation" where theory does not stand.
        confirmed: whether it was simulated to be compared with others; these outrank all others.
    """

    place: Place
    changes: Mapping[str, Any]
    objective: float
    sides: tuple[float, ...]
    failure: Failure | None = None
    warnings: tuple[str, ...] = ()
    unserved: int = 0
    answered_by: str = "theory"
    confirmed: bool = False

    def violations(self, task: Task) -> tuple[float, ...]:
        """Return the relative violation of each constraint, 0 for one that is met."""
        return tuple(
            constraint.violation(side) for constraint, side in zip(task.constraints, self.sides, strict=True)
        )

    def feasible(self, task: Task) -> bool:
        """Whether all constraints are met, and every flow gets something."""
        return self.failure is None and not self.unserved and not any(self.violations(task))

    def rank(self, task: Task) -> tuple[Any, ...]:
        """Return the sorting key of candidates, the best first.

        First feasible candidates, the confirmed ones before others, by the objective. Then infeasible
        candidates, by the number of flows without goodput, then by the sum of their violations (Deb 2000).
        Last failures. Among equals the candidate whose values stand first in the choices.
        """
        if self.failure is not None:
            return (2, 0.0, self.place)
        if not self.feasible(task):
            return (1, self.unserved, sum(self.violations(task)), self.place)
        return (0, not self.confirmed, task.objective.loss(self.objective), self.place)


class Table:
    """The candidates that are known; it grows by `look_up`."""

    def __init__(
        self,
        task: Task,
        budget: int,
        *,
        engine: Engine = "solve",
        solver: Solver | None = None,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Begin with nothing.

        Args:
            task: the problem.
            budget: most points to solve.
            engine: whose answers are looked at.
            solver: solver of points; the engine's own by default.
            workers: processes at once.
            progress: called after each point.
        """
        self.task, self.budget, self.known = task, budget, dict[Place, Candidate]()
        self.expected = budget if task.size is None else min(budget, task.size)
        self.engine: Engine = engine
        self._solver, self._workers, self._progress = solver or self._answers, workers, progress

    def look_up(self, places: Iterable[Place], task: Task | None = None) -> list[Candidate]:
        """Return the candidates at places, solving unknown ones.

        Places whose keys alone violate a bound of *task* (by default the table's own) are left out: they need
        no solving.

        Raises:
            BudgetSpent: there are more unknown places than the budget allows; the first of them are solved.
        """
        task = task or self.task
        wanted = list(dict.fromkeys(places))
        new = [place for place in wanted if place not in self.known and not task.violation_by_keys(place)]
        left = self.budget - len(self.known)
        self._solve(new[:left])
        if len(new) > left:
            raise BudgetSpent
        return [self.known[place] for place in wanted if place in self.known]

    def _answers(
        self, base: Scenario, points: Sequence[Mapping[str, Any]], workers: int | None
    ) -> Iterator[PointResult]:
        """Yield the engine's answers, all with the scenario's seed, so that differences vary less."""
        few = self.engine == "solve" and len(points) < SMALL_BATCH
        return map_points(base, points, engines=(self.engine,), workers=1 if few else workers)

    def _solve(self, places: Sequence[Place]) -> None:
        if not places:
            return
        points = [self.task.changes(place) for place in places]
        results = iter(self._solver(self.task.base, points, self._workers))
        try:
            for result in results:
                place = places[result.number]
                self.known[place] = self._candidate(place, points[result.number], result.answers[self.engine])
                if self._progress is not None:
                    self._progress(len(self.known), max(self.expected, len(self.known)))
        finally:
            if isinstance(results, Generator):
                results.close()

    def _candidate(self, place: Place, changes: Mapping[str, Any], answer: Answer) -> Candidate:
        task, keys = self.task, self.task.keys(changes)
        sides = tuple(c.expression.value(answer.metrics, keys) for c in task.constraints)
        objective = task.objective.expression.value(answer.metrics, keys)
        failure = answer.failure
        linears = [task.objective.expression, *(c.expression for c in task.constraints)]
        wanted = dict.fromkeys(name for linear in linears for name in linear.metrics)
        missing = [name for name in wanted if not math.isfinite(answer.mean(name))]
        if failure is None and missing:
            never = any(name not in answer.metrics for name in missing)
            kind = "no metric" if never else "no value"
            failure = Failure(kind, f"{NAMES[self.engine]} gives no {', '.join(missing)} here")
        elif failure is None and not all(map(math.isfinite, (objective, *sides))):
            failure = Failure("no value", "an expression is too large a number here")
        warnings, unserved = tuple(answer.notes.get("warnings", ())), answer.notes.get("unserved", 0)
        answered_by = answer.notes.get("answered_by", "theory")
        return Candidate(place, changes, objective, sides, failure, warnings, unserved, answered_by)

    def ranked(self, task: Task | None = None) -> list[Candidate]:
        """Return all known candidates, the best first; of another task if one is given."""
        wanted = task or self.task
        return sorted(self.known.values(), key=lambda candidate: candidate.rank(wanted))

    def best(self, task: Task | None = None) -> Candidate | None:
        """Return the best candidate that is feasible, confirmed or not."""
        wanted = task or self.task
        feasible = (c for c in self.known.values() if c.feasible(wanted))
        return min(feasible, key=lambda one: (wanted.objective.loss(one.objective), one.place), default=None)


def require_answers(table: Table) -> None:
    """Make sure that the points solved up to now do not all fail for a reason that no value can mend.

    Raises:
        NoAnswers: none of them is a scenario that the engine can answer, or it never gives a metric that was
            asked for.
    """
    failures = [c.failure for c in table.known.values() if c.failure is not None]
    if not failures or len(failures) < len(table.known):
        return
    kinds = {failure.kind for failure in failures}
    if kinds <= {"scenario", "not built", "no metric", "no value"}:
        first = next(iter(table.known.values()))
        where = ", ".join(f"{key} = {label(value)}" for key, value in first.changes.items())
        raise NoAnswers(f"none of {len(failures)} points has an answer; at {where}: {failures[0].message}")
