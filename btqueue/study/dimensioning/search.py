"""The best point: by enumeration where the budget allows it, else by search from many starts.

Enumeration proves what it finds. The search cannot: it looks at a coarse grid, descends from its best points
(pattern search of Hooke and Jeeves 1961, with diagonal moves), searches continuous keys locally without
derivatives (COBYLA, Powell 1994; models have kinks), branches into the neighbours of the whole-numbered ones,
and then shakes the best point ever harder and descends again (variable neighbourhood search, Mladenović and
Hansen 1997) until nothing is gained or the budget is spent. Random numbers have a fixed seed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from btqueue.study.dimensioning.choices import Place
from btqueue.study.dimensioning.moves import Steps, coarse_grid, descend, finest, neighbours, shaken, span
from btqueue.study.dimensioning.polish import polished
from btqueue.study.dimensioning.problem import Task
from btqueue.study.dimensioning.table import BudgetSpent, Candidate, Table, require_answers

MOST_LISTED = 1_000_000
"""Combinations that are gone through to see which of them the keys alone rule out."""

STARTS = 6
"""Descents from the coarse grid."""

ROUNDS = 32
"""Shakes in a row without a gain after which the search ends."""

RADII = (0.05, 0.1, 0.2, 0.4)
"""How far a shake goes, as shares of the ranges."""

SEED = 20061
"""Of the shakes."""


@dataclass(frozen=True)
class Outcome:
    """How a search ended.

    Attributes:
        method: "enumeration" of all combinations, or "search".
        proved: whether no point can be better.
        spent: whether the budget ended the search.
        total: number of combinations; None if a key is continuous.
    """

    method: Literal["enumeration", "search"]
    proved: bool
    spent: bool
    total: int | None


def find_best(table: Table) -> Outcome:
    """Fill *table* with what it takes to know, or to believe, what is best.

    Raises:
        NoAnswers: no point is a scenario that the engine can answer, or it gives no such metric.
    """
    task = table.task
    places = _all_places(table)
    if places is None:
        spent = _search(table)
        require_answers(table)
        return Outcome("search", False, spent, task.size)
    if not places:
        _look_up_least_ruled_out(table)
    table.expected = len(places)
    for probe in (places[:1], places[-1:], places[len(places) // 2 :][:1]):
        table.look_up(probe)
        if any(candidate.failure is None for candidate in table.known.values()):
            break
    _refuse_missing_metrics(table)
    table.look_up(places)
    require_answers(table)
    return Outcome("enumeration", True, False, task.size)


def _refuse_missing_metrics(table: Table) -> None:
    """Stop before thousands of points are solved for a metric that the model never gives."""
    if all(c.failure is not None and c.failure.kind == "no value" for c in table.known.values()):
        require_answers(table)


def every_place(task: Task) -> Iterator[Place]:
    """Yield all combinations of a task without continuous keys, the last key fastest."""
    return itertools.product(*(range(len(choice.values)) for choice in task.choices))


def _all_places(table: Table) -> list[Place] | None:
    """Return all places that the keys do not rule out, None if they are more than the budget."""
    task, size = table.task, table.task.size
    if size is None or size > max(table.budget, MOST_LISTED):
        return None
    if size > table.budget and not any(c.of_keys_only for c in task.constraints):
        return None
    places = [place for place in every_place(task) if not task.rules_out(task.changes(place))]
    return places if len(places) <= table.budget else None


def _look_up_least_ruled_out(table: Table) -> None:
    """Solve the place that violates the bounds of the keys least, so that there is a nearest point."""
    task = table.task

    def violation(place: Place) -> float:
        keys = task.keys(task.changes(place))
        return sum(c.violation(c.expression.value({}, keys)) for c in task.constraints if c.of_keys_only)

    table.look_up([min(every_place(task), key=violation)], task.without_bounds())


def _search(table: Table) -> bool:
    """Search; return whether the budget ended it."""
    task, random = table.task, np.random.default_rng(SEED)
    try:
        levels, grid = coarse_grid(task, max(table.budget // 3, 8))
        table.look_up(grid)
        if not table.known:  # all of the coarse grid is ruled out by the keys alone
            table.look_up(shaken(task, grid[len(grid) // 2], 1.0, random) for _ in range(table.budget // 3))
        _refuse_missing_metrics(table)
        spacing = tuple(
            span(choice) / max(count - 1, 1) for choice, count in zip(task.choices, levels, strict=True)
        )
        for start in _starts(table, spacing):
            descend(table, task, start, spacing)
        improve(table, task)
        _shake(table, task, random, ROUNDS)
    except BudgetSpent:
        return True
    return False


def _starts(table: Table, spacing: Steps) -> list[Candidate]:
    """Return the best known candidates, no two of them neighbours on the coarse grid."""
    starts: list[Candidate] = []
    for candidate in table.ranked():
        if candidate.failure is None and all(
            any(
                abs(a - b) > 1.5 * step
                for a, b, step in zip(candidate.place, other.place, spacing, strict=True)
            )
            for other in starts
        ):
            starts.append(candidate)
            if len(starts) == STARTS:
                break
    return starts


def _shake(table: Table, task: Task, random: np.random.Generator, rounds: int) -> None:
    """Shake the best point and descend, until so many rounds in a row gain nothing."""
    idle = 0
    while idle < rounds and table.known:
        before = table.ranked(task)[0]
        radius = RADII[idle % len(RADII)]
        shaken_places = [shaken(task, before.place, radius, random) for _ in range(4)]
        landed = table.look_up(shaken_places, task)
        if landed:
            start = min(landed, key=lambda candidate: candidate.rank(task))
            descend(table, task, start, tuple(radius * span(choice) / 2 for choice in task.choices))
        if table.ranked(task)[0].place == before.place:
            idle += 1
        else:
            improve(table, task)
            idle = 0


def improve(table: Table, task: Task) -> None:
    """Improve the best point: continuous keys to the last digit, the others by branching to neighbours."""
    if not table.known or not any(choice.continuous for choice in task.choices):
        return
    polished(table, task, table.ranked(task)[0])
    while True:
        best = table.ranked(task)[0]
        branches = [
            place
            for place in neighbours(task, best.place, finest(task))
            if all(a == b for a, b, c in zip(place, best.place, task.choices, strict=True) if c.continuous)
        ]
        for branch in table.look_up(branches, task):
            if branch.failure is None:
                polished(table, task, branch)
        if table.ranked(task)[0].rank(task) >= best.rank(task):
            return


def search_again(table: Table, task: Task, start: Candidate, allowance: int) -> None:
    """Search around a point for a changed task, with *allowance* further points.

    The table's budget is as before afterwards, or what was spent if that is more.
    """
    budget, table.budget = table.budget, len(table.known) + allowance
    try:
        descend(table, task, start, tuple(RADII[1] * span(choice) for choice in task.choices))
        improve(table, task)
        _shake(table, task, np.random.default_rng(SEED), len(RADII))
    except BudgetSpent:
        pass
    finally:
        table.budget = max(budget, len(table.known))
