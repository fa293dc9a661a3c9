"""The best point: by enumeration where the budget allows it, else by search from many starts.

Each point is solved once, in batches, within a budget. Enumeration proves that its best point is best; a
search cannot. A round of the search solves points at random and climbs from the best of them to neighbours.
At each neighbour the continuous keys go by steps that become smaller (Hooke and Jeeves, Journal of the ACM 8,
1961; models have kinks). Bounds follow the rules of Deb (2000). Rounds with other random numbers
follow until some in a row gain nothing or the budget is spent. The seeds are fixed.
"""

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from btqueue.scenario import ScenarioError
from btqueue.study.dimensioning.problem import STEP_SHARE, Place, Task
from btqueue.study.evaluate import Answer, Engine, Failure
from btqueue.study.many_points import map_points
from btqueue.study.points import Progress, label

SMALL_BATCH = 32
"""Least number of points for which further processes pay: models are compiled in this one already."""
NAMES: Mapping[Engine, str] = {"solve": "the model", "simulate": "the simulation"}
"""Of each engine, in messages."""


class BudgetSpent(Exception):
    """No further point may be solved."""


@dataclass(frozen=True)
class Candidate:
    """A point and its answer.

    Attributes:
        place: in the search.
        changes: values of the chosen keys.
        objective: value of the objective; NaN after a failure.
        sides: left side of each constraint; NaN after a failure.
        failure: why there is no answer.
        warnings: warnings of the engine about its answer.
        unserved: number of flows whose goodput is 0.
        answered_by: "theory", or "simulation" where theory does not stand.
        confirmed: whether it was simulated for the comparison; such points outrank all others.
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


@dataclass
class Table:
    """The candidates that are known; it grows by `look_up`.

    Attributes:
        task: the problem.
        budget: most points to solve.
        engine: whose answers are looked at.
        workers: processes at once.
        progress: called after each point.
        known: the candidates.
        expected: points that will probably be solved.
    """

    task: Task
    budget: int
    engine: Engine = "solve"
    workers: int | None = None
    progress: Progress | None = None
    known: dict[Place, Candidate] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.expected = self.budget if self.task.size is None else min(self.budget, self.task.size)

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

    def _solve(self, places: Sequence[Place]) -> None:
        """Add the engine's answers, all with the scenario's seed, so that differences vary less.

        A point at which theory stands and gives one of the task's metrics no value is simulated.
        """
        if not places:
            return
        points = [self.task.changes(place) for place in places]
        workers = 1 if self.engine == "solve" and len(points) < SMALL_BATCH else self.workers
        asked = map_points(
            self.task.base, points, engines=(self.engine,), workers=workers, metrics=self.task.metrics
        )
        with closing(asked) as results:
            for result in results:
                place = places[result.number]
                self.known[place] = self._candidate(place, points[result.number], result.answers[self.engine])
                if self.progress is not None:
                    self.progress(len(self.known), max(self.expected, len(self.known)))

    def _candidate(self, place: Place, changes: Mapping[str, Any], answer: Answer) -> Candidate:
        task, keys = self.task, self.task.keys(changes)
        sides = tuple(c.expression.value(answer.metrics, keys) for c in task.constraints)
        objective = task.objective.expression.value(answer.metrics, keys)
        failure = answer.failure
        missing = [name for name in task.metrics if not math.isfinite(answer.mean(name))]
        if failure is None and missing:
            never = any(name not in answer.metrics for name in missing)
            kind = "no metric" if never else "no value"
            engine: Engine = "simulate" if answer.notes.get("answered_by") == "simulation" else self.engine
            told = any(one.startswith("overloaded") for one in answer.notes.get("warnings", ()))
            here = "here: overloaded" if told else "here"
            failure = Failure(kind, f"{NAMES[engine]} gives no {', '.join(missing)} {here}")
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


HOPELESS = frozenset({"scenario", "not built", "no metric", "no value"})
"""Kinds of failures that no value of the keys can mend, if all points have one of them."""


def require_answers(table: Table, kinds: Collection[str] = HOPELESS) -> None:
    """Make sure that the points solved up to now do not all fail for a reason that no value can mend.

    Raises:
        ScenarioError: none of them is a scenario that the engine can answer, or it never gives a metric
            that was asked for.
    """
    failures = [c.failure for c in table.known.values() if c.failure is not None]
    if not failures or len(failures) < len(table.known):
        return
    if all(failure.kind in kinds for failure in failures):
        first = next(iter(table.known.values()))
        where = ", ".join(f"{key} = {label(value)}" for key, value in first.changes.items())
        raise ScenarioError(
            f"none of {len(failures)} points has an answer; at {where}: {failures[0].message}"
        )


MOST_LISTED = 1_000_000
"""Combinations that are gone through to see which of them the keys alone rule out."""
IDLE_ROUNDS = 20
"""Rounds in a row without a gain after which the search ends."""
STARTS, DRAWS = 15, 100
"""Random points of a round for each key; of so many draws for each the first that meet the bounds on keys."""
DIAGONALS = 3
"""Most keys in which a neighbour differs from a point."""
Outcome = Literal["proved", "ended", "spent"]
"""How a search ended: all combinations were solved, so that no point can be better; some rounds in a row
gained nothing; the budget was spent."""


def find_best(table: Table) -> Outcome:
    """Fill *table* with points until the best one is proved, or the search has ended.

    Raises:
        ScenarioError: the engine can answer no point, or gives none of the metrics.
    """
    task, size, places = table.task, table.task.size, None
    fixed = any(constraint.of_keys_only for constraint in task.constraints)
    if size is not None and size <= (max(table.budget, MOST_LISTED) if fixed else table.budget):
        places = [place for place in every_place(task) if not task.violation_by_keys(place)]
    if places is None or len(places) > table.budget:
        outcome = _search(table)
        require_answers(table)
        return outcome
    if not places:  # so that there is a nearest point, of all values that a bound rules out
        table.look_up([min(every_place(task), key=task.violation_by_keys)], replace(task, constraints=()))
    table.expected = len(places)
    for probe in (places[:1], places[-1:], places[len(places) // 2 :][:1]):
        table.look_up(probe)
        if any(candidate.failure is None for candidate in table.known.values()):
            break
    require_answers(table, {"no metric"})  # before thousands of points are solved
    table.look_up(places)
    require_answers(table)
    return "proved"


def every_place(task: Task) -> Iterator[Place]:
    """Yield all combinations of a task without continuous keys, the last key fastest."""
    return itertools.product(*(range(len(choice.values)) for choice in task.choices))


def _search(table: Table) -> Outcome:
    idle, best = 0, []  # nothing is known as long as the keys alone rule out all that was looked at
    try:
        for seed in itertools.count():
            _round(table, table.task, seed)
            before, best = best, [one.place for one in table.ranked()[:1]]
            idle = idle + 1 if best == before else 0
            if idle == IDLE_ROUNDS:
                return "ended"
    except BudgetSpent:
        pass
    return "spent"


def _round(table: Table, task: Task, seed: int) -> None:
    """Solve random points, and climb from the best of them.

    Raises:
        BudgetSpent: as `Table.look_up`.
        ScenarioError: no point has the metrics that are asked for.
    """
    keys = len(task.choices)
    shares = np.random.default_rng(seed).random((DRAWS * STARTS * keys, keys)).tolist()
    allowed = (place for place in map(task.place, shares) if not task.violation_by_keys(place))
    found = table.look_up(itertools.islice(allowed, STARTS * keys), task)
    require_answers(table, {"no metric"})  # before thousands of points are solved
    if found:
        climb(table, task, min(found, key=lambda one: one.rank(task)))


def neighbours(
    task: Task, place: Place, moving: Sequence[int], diagonals: int = DIAGONALS, share: float = STEP_SHARE
) -> list[Place]:
    """Return the points one step away in some choices, diagonals included; of unordered choices all values.

    Args:
        task: the problem, with the choices.
        place: the point to start from.
        moving: numbers of the choices that change.
        diagonals: most ordered choices that change at a time.
        share: step of a continuous key, as a share of its range.
    """
    steps = {number: task.choices[number].steps(place[number], share) for number in moving}
    stepping = [n for n in steps if task.choices[n].ordered]
    moved = [keys for count in range(1, diagonals + 1) for keys in itertools.combinations(stepping, count)]
    moved += [(n,) for n in steps if n not in stepping]
    found = []
    for keys in moved:
        for values in itertools.product(*(steps[n] for n in keys)):
            there = dict(zip(keys, values, strict=True))
            found.append(tuple(there.get(n, at) for n, at in enumerate(place)))
    return found


def climb(table: Table, task: Task, best: Candidate) -> None:
    """Go on from a point until no neighbour is better; continuous keys to the last digit at each.

    Raises:
        BudgetSpent: as `Table.look_up`.
    """
    best = polished(table, task, best)
    moving = [number for number, choice in enumerate(task.choices) if not choice.continuous]
    while True:
        around = table.look_up(neighbours(task, best.place, moving), task)
        top = min([best, *(polished(table, task, one) for one in around)], key=lambda one: one.rank(task))
        if top.rank(task) >= best.rank(task):
            return
        best = top


def search_again(table: Table, task: Task, start: Candidate, allowance: int) -> None:
    """Search around a point for a changed task, with *allowance* further points.

    Afterwards the table's budget is as before, or the number of solved points if that is more.
    """
    budget, table.budget = table.budget, len(table.known) + allowance
    try:
        climb(table, task, start)
        _round(table, task, seed=0)
    except BudgetSpent:
        pass
    finally:
        table.budget = max(budget, len(table.known))


LAST_SHARE, FINER = 1e-6, 4
"""Last step along continuous keys, as a share of the ranges; each step is so many times the next."""


def polished(table: Table, task: Task, best: Candidate) -> Candidate:
    """Go from a candidate along the continuous keys until no step is better, by smaller and smaller steps.

    Raises:
        BudgetSpent: as `Table.look_up`.
    """
    moving = [number for number, choice in enumerate(task.choices) if choice.continuous]
    share = STEP_SHARE if moving and best.failure is None else 0.0
    while share > LAST_SHARE:
        around = table.look_up(neighbours(task, best.place, moving, share=share), task)
        top = min([best, *around], key=lambda one: one.rank(task))
        share, best = share if top.rank(task) < best.rank(task) else share / FINER, top
    return best
