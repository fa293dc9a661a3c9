"""A scenario from a networkx graph: a scatternet of any shape, as a custom topology."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from btqueue.scenario.errors import Problem, ScenarioError, bad_value, shown
from btqueue.scenario.network import MOST_PERIPHERALS, OutsideLink
from btqueue.scenario.scenario import Scenario

if TYPE_CHECKING:
    import networkx as nx

LINK_KEYS = frozenset(OutsideLink.model_fields) - {"name", "source", "target"}
"""Edge attributes that make an edge an outside link."""


def scenario_from_graph(
    graph: nx.Graph, flows: Iterable[tuple[object, object] | Mapping[str, Any]], **tables: Any
) -> Scenario:
    """Return the scenario of a network that is given as a graph.

    Nodes with the attribute `role = "central"` are centrals, each of a piconet of its name; the name of a
    node is its `str`. An edge with any key of an outside link (`kind`, `rate_kbps`, `delay_s`, ...) is an
    outside link, unless it has `kind = "bluetooth"`; an attribute `link` is its name. Every other edge joins
    a central to a peripheral, or two centrals: then the second of them, in the order of the graph's nodes, is
    a peripheral of the first (MS bridge). Peripherals are polled in the order of the graph's nodes;
    peripherals in several piconets are bridges. Other attributes are ignored.

    Args:
        graph: undirected and simple.
        flows: pairs (from, to), or mappings with overrides as in `network.flows`.
        tables: the other tables of the scenario, and other keys of `network`.

    Raises:
        ScenarioError: if the graph is no scatternet, or the scenario is not valid.
    """
    if graph.is_directed() or graph.is_multigraph():
        raise ScenarioError("the graph must be undirected, with at most one edge between two nodes")
    names = _names(graph)
    order = {node: i for i, node in enumerate(graph)}
    peripherals: dict[object, list[object]] = {
        node: [] for node, role in graph.nodes(data="role") if role == "central"
    }
    links, problems = [], []
    for edge in graph.edges:
        a, b = sorted(edge, key=order.__getitem__)
        attributes = graph.edges[edge]
        if attributes.get("kind") != "bluetooth" and LINK_KEYS & set(attributes):
            own = {key: value for key, value in attributes.items() if key in LINK_KEYS}
            name = str(attributes.get("link", f"{names[a]}-{names[b]}"))
            links.append({"name": name, "from": names[a], "to": names[b], **own})
        elif a in peripherals:
            peripherals[a].append(b)
        elif b in peripherals:
            peripherals[b].append(a)
        else:
            problems.append(_without_central(names[a], names[b]))
    for central, members in peripherals.items():
        members.sort(key=order.__getitem__)
        if len(members) > MOST_PERIPHERALS:
            problems.append(_too_many(names[central], len(members)))
    if problems:
        raise ScenarioError(problems)
    network = {
        "topology": "custom",
        "piconet_list": [
            {"name": names[central], "central": names[central], "peripherals": [names[m] for m in members]}
            for central, members in peripherals.items()
            if members
        ],
        "outside_links": links,
        "flows": [_flow(flow) for flow in flows],
    }
    return Scenario.from_dict({**tables, "network": {**tables.get("network", {}), **network}})


def _names(graph: nx.Graph) -> dict[object, str]:
    """Return the name of each node.

    Raises:
        ScenarioError: if two nodes would have the same name.
    """
    names = {node: str(node) for node in graph}
    if len(set(names.values())) != len(names):
        first: dict[str, object] = {}
        for node, name in names.items():
            if first.setdefault(name, node) is not node:
                raise ScenarioError(Problem(f"two nodes of the graph are named {shown(name)}", value=name))
    return names


def _flow(flow: tuple[object, object] | Mapping[str, Any]) -> dict[str, Any]:
    if isinstance(flow, Mapping):
        return {**flow, **{end: str(flow[end]) for end in ("from", "to") if end in flow}}
    ends = tuple(flow) if isinstance(flow, Sequence) and not isinstance(flow, str | bytes) else ()
    if len(ends) != 2:
        raise ScenarioError(bad_value("network.flows", flow, "a pair (from, to), or a mapping"))
    return {"from": str(ends[0]), "to": str(ends[1])}


def _without_central(a: str, b: str) -> Problem:
    return Problem(
        f'the edge between {shown(a)} and {shown(b)} joins no central: give one of them role = "central", or '
        "the edge a rate_kbps to make it an outside link",
        value=f"{a} - {b}",
        allowed="an edge at a central, or with the keys of an outside link",
    )


def _too_many(central: str, count: int) -> Problem:
    return Problem(
        f"the central {shown(central)} has {count} peripherals: a piconet has at most {MOST_PERIPHERALS}",
        value=count,
        allowed=f"at most {MOST_PERIPHERALS}",
    )
