"""Places of a search: coarse grids, neighbours, descent by pattern search, random shakes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from btqueue.study.dimensioning.choices import Choice, Place
from btqueue.study.dimensioning.problem import Task
from btqueue.study.dimensioning.table import Candidate, Table

FINEST_SHARE = 1 / 256
"""Shortest step of a pattern search along a continuous key, as a share of its range."""

DIAGONALS = 3
"""Up to so many keys a pattern search moves along any number of them at once, beyond along two."""

Steps = tuple[float, ...]
"""Length of a step of each choice, in the unit of places."""


def span(choice: Choice) -> float:
    """Return the distance between the first and the last place."""
    return 1.0 if choice.continuous else float(len(choice.values) - 1)


def coarse_grid(task: Task, most: int) -> tuple[tuple[int, ...], list[Place]]:
    """Return the number of levels of each choice, and an even grid of at most about *most* places.

    Unordered choices have all of their values in it, thinned out evenly if these alone are too many.
    """
    levels = [1 if choice.ordered else len(choice.values) for choice in task.choices]
    full = [math.inf if choice.continuous else len(choice.values) for choice in task.choices]
    while True:
        growing = [
            number
            for number, count in enumerate(levels)
            if count < full[number] and math.prod(levels) // count * (count + 1) <= most
        ]
        if not growing:
            break
        levels[min(growing, key=lambda number: levels[number])] += 1
    axes = [_even(choice, count) for choice, count in zip(task.choices, levels, strict=True)]
    size = math.prod(len(axis) for axis in axes)
    stride = -(-size // most)
    return tuple(levels), list(itertools.islice(itertools.product(*axes), 0, None, stride))


def _even(choice: Choice, count: int) -> list[float]:
    ends = np.linspace(0.0, span(choice), count) if count > 1 else np.array([span(choice) / 2])
    return ends.tolist() if choice.continuous else list(dict.fromkeys(round(end) for end in ends))


def finest(task: Task) -> Steps:
    """Return the shortest steps."""
    return tuple(FINEST_SHARE if choice.continuous else 1.0 for choice in task.choices)


def neighbours(task: Task, place: Place, steps: Steps) -> list[Place]:
    """Return the places one step away: along keys, along diagonals, and all values of unordered choices."""
    found: dict[Place, None] = {}
    ordered = [number for number, choice in enumerate(task.choices) if choice.ordered]
    for moves in _signs(len(ordered)):
        there = list(place)
        for number, sign in zip(ordered, moves, strict=True):
            there[number] = _moved(task.choices[number], place[number], sign * steps[number])
        found[tuple(there)] = None
    for number, choice in enumerate(task.choices):
        if not choice.ordered:
            for value in range(len(choice.values)):
                found[(*place[:number], value, *place[number + 1 :])] = None
    found.pop(place, None)
    return list(found)


def _signs(count: int) -> Iterator[tuple[int, ...]]:
    """Yield directions: -1, 0 or 1 for each key."""
    for signs in itertools.product((-1, 0, 1), repeat=count) if count <= DIAGONALS else _pairs(count):
        if any(signs):
            yield signs


def _pairs(count: int) -> Iterator[tuple[int, ...]]:
    for a, b in itertools.combinations(range(count), 2):
        for x, y in itertools.product((-1, 0, 1), repeat=2):
            signs = [0] * count
            signs[a], signs[b] = x, y
            yield tuple(signs)


def _moved(choice: Choice, place: float, by: float) -> float:
    there = min(max(place + by, 0.0), span(choice))
    return round(there, 12) if choice.continuous else round(there)


def descend(table: Table, task: Task, start: Candidate, steps: Steps) -> Candidate:
    """Return where a pattern search from *start* ends: no neighbour is better at the shortest steps.

    Raises:
        BudgetSpent: as `Table.look_up`.
    """
    least = finest(task)
    steps = tuple(
        max(step if choice.continuous else float(round(step)), low)
        for choice, step, low in zip(task.choices, steps, least, strict=True)
    )
    here = start
    while True:
        around = table.look_up(neighbours(task, here.place, steps), task)
        best = min([here, *around], key=lambda candidate: candidate.rank(task))
        if best is not here:
            here = best
        elif steps == least:
            return here
        else:
            steps = tuple(
                max(step / 2 if choice.continuous else float(step // 2), low)
                for choice, step, low in zip(task.choices, steps, least, strict=True)
            )


def shaken(task: Task, place: Place, radius: float, random: np.random.Generator) -> Place:
    """Return a random place within *radius* (a share of the ranges) of another one."""
    there = []
    for choice, at in zip(task.choices, place, strict=True):
        if choice.ordered:
            reach = max(radius * span(choice), 0.0 if choice.continuous else min(2.0, span(choice)))
            there.append(_moved(choice, at, random.uniform(-reach, reach)))
        else:
            other = int(random.integers(len(choice.values)))
            there.append(other if random.random() < radius else at)
    return tuple(there)
