"""Which part of the vocabulary an engine, or a model of the solver, covers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from btqueue.scenario.description import description, given, is_trait
from btqueue.scenario.errors import Problem, bracketed, shown
from btqueue.scenario.flow_patterns import active_flows
from btqueue.scenario.scenario import Scenario
from btqueue.scenario.traffic import Traffic


class Limit(NamedTuple):
    """A part of a scenario that is not covered: the key, its value, and the available values in words.

    `lacks` is the kind of station, or the law, that has this property, if one has.
    """

    key: str
    value: object
    available: str
    lacks: str = ""


OWN = frozenset(
    {
        *("traffic.source", "traffic.load_kbps", "traffic.message_bytes", "traffic.start_s"),
        *("transport.variant", "transport.receive_window_segments"),
    }
)
"""Keys of which a model of the solver lets a flow have its own, if it does not refuse them itself."""


class Scope(NamedTuple):
    """The scenarios that a model covers.

    Attributes:
        name: as it appears in messages.
        values: the covered values of each key, unless all of its values are covered.
        further: yields further limits, which lists of values cannot express.
        own: keys of `traffic` and `transport` that a flow may override; None for all.
    """

    name: str
    values: Mapping[str, tuple[object, ...]]
    further: Callable[[Scenario], Iterator[Limit]]
    own: frozenset[str] | None = OWN


def in_tables(scenario: Scenario, but: frozenset[str] = frozenset()) -> Scenario:
    """Return the same network as models read it, in whichever of its tables and flows a key was written.

    Each key of `[traffic]` and `[transport]` gets the value of most active flows to which the key makes a
    difference; with a tie, the last of these values. Flows keep the keys that differ from the tables.

    Args:
        scenario: as the user wrote it.
        but: keys of the two tables that stay where they were written.
    """
    flows = scenario.network.flows
    if isinstance(flows, str) or not any(flow.own for flow in flows):
        return scenario
    frozen: Any = scenario  # and so hashable
    return _in_tables(frozen, but)


@lru_cache(maxsize=256)  # more than a sweep answers together
def _in_tables(scenario: Scenario, but: frozenset[str]) -> Scenario:
    flows = active_flows(scenario.network)
    laws = [(*flow.arrivals.traits, *flow.transport.traits) for flow in description(scenario).flows]
    matters = [{one.kind for one in traits} for traits in laws[: len(flows)]]
    views = [scenario.of_flow(flow) for flow in flows]
    own: list[dict[str, Any]] = [{key: flow.own[key] for key in but & flow.own.keys()} for flow in flows]
    tables: dict[str, Any] = {}
    for name in ("traffic", "transport"):
        common, common_values = getattr(scenario, name), {}
        for key in type(common).model_fields.keys() - but:
            values = [getattr(getattr(view, name), key) for view in views]
            counted = [
                value for value, kinds in zip(values, matters, strict=True) if f"{name}.{key}" in kinds
            ]
            (most, _), *_ = Counter(reversed(counted or values)).most_common(1)
            common_values[key] = most = None if None in values else most  # no flow can take a value back
            for flow, value in zip(own, values, strict=True):
                flow |= {} if value == most else {key: value}
        tables[name] = common.model_copy(update=common_values)
    listed = tuple(
        type(flow)(
            source=flow.source, target=flow.target, **{_OF_A_FLOW.get(key, key): kept[key] for key in kept}
        )
        for flow, kept in zip(flows, own, strict=True)
    )
    network = scenario.network.model_copy(update={"flows": listed, "active_flows": "all"})
    return scenario.model_copy(update={**tables, "network": network})


_OF_A_FLOW = {"source": "law"}
"""Keys of the tables that have another name in an entry of `network.flows`."""


def key_of_table(key: str) -> str:
    """Return the table's key that a flow's key overrides; any other key without the numbers of entries."""
    key = re.sub(r"\[\d+\]", "", key)
    place, _, name = key.rpartition(".")
    if place != "network.flows":
        return key
    name = next((table for table, own in _OF_A_FLOW.items() if own == name), name)
    return f"{'traffic' if name in Traffic.model_fields else 'transport'}.{name}"


def problems_of(scope: Scope, scenario: Scenario) -> list[Problem]:
    """Return a problem for each trait of *scenario* (`btqueue.scenario.description`) outside *scope*.

    Each names the key that set the trait. Keys without an effect are no problem.
    """
    traits, plain = description(scenario).traits, in_tables(scenario)
    names = {one.key for one in traits}
    by_flows = {one for one in traits if one.key.startswith("network.flows[")}
    apart = {one.kind for one in description(plain).traits if one.key.startswith("network.flows[")}
    apart -= apart if scope.own is None else scope.own
    found = [
        Limit(one.key, one.value, _listed(allowed), traits.get(one, ""))
        for kind, allowed in scope.values.items()
        for one in (traits if is_trait(kind) else given(scenario, kind))
        if one.kind == kind and one.value not in allowed
    ]
    found += [
        Limit(one.key, one.value, "one value for all flows", lacks)
        for one, lacks in traits.items()
        if one.kind in apart and (one in by_flows or one.kind not in {other.kind for other in by_flows})
    ]
    for limit in scope.further(plain):
        key = limit.key if limit.key in names else key_of_table(limit.key)
        there = [one for one in traits if key in one]
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
