"""Which part of the vocabulary an engine, or a model of the solver, covers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from btqueue.scenario.errors import Problem, bracketed, shown
from btqueue.scenario.scenario import Scenario


class Limit(NamedTuple):
    """A part of a scenario that is not covered: the key, its value, and in words what is available."""

    key: str
    value: object
    available: str


def never(scenario: Scenario) -> bool:
    """Return False, whatever the scenario."""
    return False


def always(scenario: Scenario) -> bool:
    """Return True, whatever the scenario."""
    return True


class Scope(NamedTuple):
    """What is covered.

    Attributes:
        name: as it appears in messages.
        values: for each key of which not all values are covered: those that are.
        further: yields what is not covered and no list of values can say.
        follows: whether the answer for a scenario is found by following packets or connections, in whole or
            in part, and not by solving queues and chains.
    """

    name: str
    values: Mapping[str, tuple[object, ...]]
    further: Callable[[Scenario], Iterator[Limit]]
    follows: Callable[[Scenario], bool] = never


def problems_of(scope: Scope, scenario: Scenario) -> list[Problem]:
    """Return a problem for each part of *scenario* outside *scope*."""
    found = []
    for key, available in scope.values.items():
        table, _, name = key.partition(".")
        value = getattr(getattr(scenario, table), name)
        if value not in available:
            found.append(_problem(scope, Limit(key, value, _listed(available))))
    return found + [_problem(scope, limit) for limit in scope.further(scenario)]


def _listed(values: tuple[object, ...]) -> str:
    return " or ".join("leaving it out" if value is None or value == () else shown(value) for value in values)


def _problem(scope: Scope, limit: Limit) -> Problem:
    key, value, available = limit
    given = f"a list of {len(value)}" if isinstance(value, tuple) else shown(value)
    message = f"{bracketed(key)} = {given}: valid, but not built yet in {scope.name}; "
    return Problem(f"{message}available today: {available}", key=key, value=value, allowed=available)
