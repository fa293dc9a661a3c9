"""The price of each bound: how much better the best point would be if the bound were a little looser."""

from __future__ import annotations

import math
from dataclasses import dataclass

from btqueue.study.dimensioning.problem import ROUNDING, Constraint, Task
from btqueue.study.dimensioning.search import Outcome, every_place, search_again
from btqueue.study.dimensioning.table import Candidate, Table

RELAXATION = 0.01
"""Share of a bound by which it is relaxed."""

ALLOWANCE = 150
"""Points that a price may cost where not all combinations are known."""


@dataclass(frozen=True)
class Price:
    """One bound at the best point.

    Attributes:
        constraint: the bound.
        side: its left side at the best point.
        slack: distance from the bound, in the unit of the left side; 0 or more.
        binding: whether some point that only this bound excludes would be better.
        relaxed_by: 1 % of the bound; 0 for a bound of 0, of which there is no share.
        gain: how much better the best point is with the bound so relaxed; 0 if it stays.
        per_unit: gain per unit of the bound (the shadow price), NaN without a relaxation.
        step: smallest relaxation known to change the best point; NaN if there is none.
        step_gain: how much better the best point is then.
        step_changes: the values of the keys then, None if there is none.
        exact: whether all combinations are known; else a search has found the gains: they are lower bounds.
    """

    constraint: Constraint
    side: float
    slack: float
    binding: bool
    relaxed_by: float
    gain: float
    per_unit: float
    step: float
    step_gain: float
    step_changes: dict[str, object] | None
    exact: bool


def prices(table: Table, best: Candidate, outcome: Outcome) -> tuple[Price, ...]:
    """Return the price of every bound of the table's task; may solve a few more points."""
    return tuple(_price(table, best, outcome, number) for number in range(len(table.task.constraints)))


def _price(table: Table, best: Candidate, outcome: Outcome, number: int) -> Price:
    task, constraint = table.task, table.task.constraints[number]
    by = RELAXATION * abs(constraint.bound)
    relaxed = task.with_constraint(number, constraint.relaxed(by)) if by > 0 else task
    if not outcome.proved:
        if by > 0:
            search_again(table, relaxed, best, ALLOWANCE)
        known = True
    else:
        known = not constraint.of_keys_only or _solve_excluded(table, number, by)
    loosened = table.best(relaxed) or best
    gain = max(task.objective.gain(loosened.objective, best.objective), 0.0)
    gain = 0.0 if gain <= ROUNDING * abs(best.objective) else gain
    following = _next_step(table, best, number)
    step, step_gain, step_changes = math.nan, 0.0, None
    if following is not None:
        step = -constraint.slack(following.sides[number])
        step_gain = task.objective.gain(following.objective, best.objective)
        step_changes = dict(following.changes)
    side = best.sides[number]
    return Price(
        constraint, side, constraint.slack(side), gain > 0 or following is not None, by, gain,
        gain / by if by > 0 else math.nan, step, step_gain, step_changes,
        outcome.proved and (known or following is not None),
    )  # fmt: skip


def _next_step(table: Table, best: Candidate, number: int) -> Candidate | None:
    """Return the point that is better than the best one and violates this bound alone, and by the least."""
    task = table.task
    better = [
        candidate
        for candidate in table.known.values()
        if candidate.failure is None
        and _violates_only(task, candidate, number)
        and not candidate.unserved
        and task.objective.loss(candidate.objective) < task.objective.loss(best.objective)
    ]
    violation = task.constraints[number].violation
    return min(better, key=lambda c: (violation(c.sides[number]), c.rank(task)), default=None)


def _violates_only(task: Task, candidate: Candidate, number: int) -> bool:
    broken = [place for place, violation in enumerate(candidate.violations(task)) if violation > 0]
    return broken == [number]


def _solve_excluded(table: Table, number: int, by: float) -> bool:
    """Solve points that a bound of the keys alone has excluded, the smallest violations first.

    Returns:
        Whether all of them are known now.
    """
    task, constraint = table.task, table.task.constraints[number]
    others = task.without_constraint(number)
    excluded = {}
    for place in every_place(task):
        changes = task.changes(place)
        side = constraint.expression.value({}, task.keys(changes))
        if place not in table.known and constraint.violation(side) > 0 and not others.rules_out(changes):
            excluded[place] = -constraint.slack(side)
    nearest = sorted(excluded, key=lambda place: (excluded[place], place))
    least = min(excluded.values(), default=0.0)
    wanted = [place for place in nearest if excluded[place] <= max(by, least) * (1 + ROUNDING)]
    taken = nearest[: max(ALLOWANCE, len(wanted))]
    table.budget = max(table.budget, len(table.known) + len(taken))
    table.look_up(taken, others)
    return len(taken) == len(nearest)
