"""Which part of the vocabulary an engine, or a model of the solver, covers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from btqueue.scenario.description import description, given, is_trait
from btqueue.scenario.errors import Problem, bracketed, shown
from btqueue.scenario.scenario import Scenario


class Limit(NamedTuple):
    """A part of a scenario that is not covered: the key, its value, and in words what is available.

    `lacks` is the kind of station, or the law, that has this property, if one has.
    """

    key: str
    value: object
    available: str
    lacks: str = ""


def never(scenario: Scenario) -> bool:
    """Return False, whatever the scenario."""
    return False


def always(scenario: Scenario) -> bool:
    """Return True, whatever the scenario."""
    return True


OWN = frozenset(
    {
        *("traffic.source", "traffic.load_kbps", "traffic.message_bytes", "traffic.start_s"),
        *("transport.variant", "transport.receive_window_segments"),
    }
)
"""Keys of which a model of the solver lets a flow have its own, if it does not refuse them itself."""


class Scope(NamedTuple):
    """What is covered.

    Attributes:
        name: as it appears in messages.
        values: for each key of which not all values are covered: those that are.
        further: yields what is not covered and no list of values can say.
        follows: whether the answer for a scenario is found by following packets or connections, in whole or
            in part, and not by solving queues and chains.
        own: keys of `traffic` and `transport` of which a flow may have its own; None for all.
    """

    name: str
    values: Mapping[str, tuple[object, ...]]
    further: Callable[[Scenario], Iterator[Limit]]
    follows: Callable[[Scenario], bool] = never
    own: frozenset[str] | None = OWN


def problems_of(scope: Scope, scenario: Scenario) -> list[Problem]:
    """Return a problem for each trait of *scenario* (`btqueue.scenario.description`) outside *scope*.

    Each is about the key that brought the trait in. Keys that make no difference are no problem.
    """
    traits = description(scenario).traits
    found = [
        Limit(one.key, one.value, _listed(allowed), traits.get(one, ""))
        for kind, allowed in scope.values.items()
        for one in (traits if is_trait(kind) else given(scenario, kind))
        if one.kind == kind and one.value not in allowed
    ]
    found += [
        Limit(one.key, one.value, "one value for all flows", lacks)
        for one, lacks in traits.items()
        if scope.own is not None and one.kind not in scope.own and one.key.startswith("network.flows[")
    ]
    for limit in scope.further(scenario):
        there = [one for one in traits if one.kind == limit.key]
        culprits = [one for one in there if one.value == limit.value] or there[:1]
        found += [limit._replace(key=one.key, lacks=traits[one]) for one in culprits]
        if not (there or is_trait(limit.key)):
            found.append(limit)
    first = {limit.key: limit for limit in reversed(found)}
    return [_problem(scope, limit, scenario.origin(limit.key)) for limit in reversed(first.values())]


def _listed(values: tuple[object, ...]) -> str:
    return " or ".join(
        "a scenario without this key" if value is None or value == () else shown(value) for value in values
    )


def _problem(scope: Scope, limit: Limit, origin: str) -> Problem:
    key, value, available, lacks = limit
    shown_value = f"a list of {len(value)}" if isinstance(value, tuple) else shown(value)
    said = f"{bracketed(key)} = {shown_value}" + (f" ({origin})" if origin else "")
    message = f"{said}: {scope.name} does not cover this {lacks or 'value'}; it covers {available}"
    return Problem(message, key=key, value=value, allowed=available)
