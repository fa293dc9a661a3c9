"""Continuous keys to the last digit: bounded local search without derivatives."""

from __future__ import annotations

import warnings

import numpy as np

from btqueue.study.dimensioning.choices import Place
from btqueue.study.dimensioning.problem import Task
from btqueue.study.dimensioning.table import Candidate, Table

MARGIN = 1e-7
"""Relative distance from bounds that the search aims at, so that its answers are on the right side."""
BEGIN, END = 0.02, 1e-6
"""First and last size of the search's simplex, as shares of the ranges."""
WALL = 10.0
"""Relative loss of a point without an answer, or with more flows that get nothing."""


def polished(table: Table, task: Task, start: Candidate) -> None:
    """Search around a candidate along the continuous keys; the points found are added to *table*.

    Raises:
        BudgetSpent: as `Table.look_up`.
    """
    from scipy.optimize import NonlinearConstraint, minimize

    moving = [number for number, choice in enumerate(task.choices) if choice.continuous]
    scale = abs(start.objective) or 1.0

    def place(x: np.ndarray) -> Place:
        there = list(start.place)
        for number, share in zip(moving, x, strict=True):
            there[number] = round(float(min(max(share, 0.0), 1.0)), 12)
        return tuple(there)

    def candidate(x: np.ndarray) -> Candidate | None:
        found = table.look_up([place(x)], task)
        return found[0] if found and found[0].failure is None else None

    def loss(x: np.ndarray) -> float:
        found = candidate(x)
        if found is None or found.unserved > start.unserved:
            return WALL
        return -task.objective.gain(found.objective, start.objective) / scale

    def slacks(x: np.ndarray) -> np.ndarray:
        keys, found = task.keys(task.changes(place(x))), candidate(x)
        return np.array(
            [
                c.slack(c.expression.value({}, keys)) / c.scale
                if c.of_keys_only
                else -1.0
                if found is None
                else c.slack(found.sides[number]) / c.scale
                for number, c in enumerate(task.constraints)
            ]
        )

    bounds = NonlinearConstraint(slacks, MARGIN, np.inf)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an unfinished search is as good as its best point
        minimize(
            loss,
            [start.place[number] for number in moving],
            method="COBYLA",
            bounds=[(0.0, 1.0)] * len(moving),
            constraints=[bounds] if task.constraints else [],
            options={"rhobeg": BEGIN, "tol": END, "maxiter": 40 * (len(moving) + 1)},
        )
