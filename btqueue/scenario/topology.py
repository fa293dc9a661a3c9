"""The network as a plain graph: who hears whom, in which piconet, and which way the flows take.

A description only, shared by both engines: it knows nothing of queues, polling or time. Nodes are numbered in
the order of `Network.node_names`; piconets and outside links in the order of the scenario.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from btqueue.scenario.errors import Problem, ScenarioError, bracketed, shown
from btqueue.scenario.flow_patterns import active_flows
from btqueue.scenario.network import Flow, Network, OutsideLink
from btqueue.scenario.problems import closest

if TYPE_CHECKING:
    import networkx as nx

    from btqueue.scenario.scenario import Scenario


@dataclass(frozen=True)
class PiconetPlan:
    """A piconet: its central and its members in the order of the polling cycle."""

    name: str
    central: int
    members: tuple[int, ...]


@dataclass(frozen=True)
class BridgePlan:
    """A device in several piconets, a member or the central of each."""

    node: int
    piconets: tuple[int, ...]


@dataclass(frozen=True)
class OutsidePlan:
    """An outside link between two nodes."""

    link: OutsideLink
    source: int
    target: int


@dataclass(frozen=True)
class FlowPlan:
    """One direction of data.

    Attributes:
        source: the sending node.
        target: the receiving node.
        reverse: the flow in the opposite direction of the same connection; reverse flows stand after all
            others, so that the smaller of the two numbers is the flow that the scenario names.
        spec: the entry of `network.flows` with its overrides; None for a flow of a pattern.
        name: its name, by default its ends, as in "p1.1>c1"; a reverse flow is called after the flow whose
            answers it carries, as in "download back".
        group: name of its group, "" if it has none; reverse flows are another group, "sensors back".
    """

    source: int
    target: int
    reverse: int | None
    spec: Flow | None
    name: str
    group: str


class Hop(NamedTuple):
    """One step of a route: over piconet `index`, or over outside link `index`."""

    kind: Literal["bluetooth", "outside"]
    index: int
    source: int
    target: int


@dataclass(frozen=True)
class Topology:
    """Nodes, piconets, bridges, outside links and flows of a scenario."""

    nodes: tuple[str, ...]
    piconets: tuple[PiconetPlan, ...]
    bridges: tuple[BridgePlan, ...]
    outside: tuple[OutsidePlan, ...]
    flows: tuple[FlowPlan, ...]

    def graph(self) -> nx.Graph:
        """Return a new graph of node names.

        Nodes have a `role` ("central", "peripheral", "bridge" or "host"), edges a `kind`: "bluetooth" with
        the index of the `piconet`, or "outside" with the index of the `outside` link.
        """
        import networkx as nx

        roles = dict.fromkeys(self.nodes, "host")
        roles.update((self.nodes[member], "peripheral") for p in self.piconets for member in p.members)
        roles.update((self.nodes[bridge.node], "bridge") for bridge in self.bridges)
        roles.update((self.nodes[p.central], "central") for p in self.piconets)
        graph = nx.Graph()
        graph.add_nodes_from((name, {"role": roles[name]}) for name in self.nodes)
        graph.add_edges_from(
            (self.nodes[source], self.nodes[target], {"kind": kind, _INDEX[kind]: index})
            for (source, target), (kind, index) in self._edges.items()
        )
        return graph

    def route(self, source: int, target: int) -> tuple[Hop, ...]:
        """Return the shortest way from one node to another, over the fewest hops; the way back is the same.

        Among equally short ways the choice is fixed by the order of piconets and links. A node reaches itself
        by its central and back.

        Raises:
            ScenarioError: if the two nodes are not connected.
        """
        if (source, target) not in self._routes:
            forth = self._search(min(source, target), max(source, target))
            back = tuple(Hop(hop.kind, hop.index, hop.target, hop.source) for hop in reversed(forth))
            self._routes[min(source, target), max(source, target)] = forth
            self._routes[max(source, target), min(source, target)] = back
        return self._routes[source, target]

    def members(self, name: str) -> tuple[int, ...]:
        """Return the flows of this name, or of a group, counted from 1; none if there is neither."""
        own = tuple(number for number, flow in enumerate(self.flows, start=1) if flow.name == name)
        return own or tuple(number for number, kind in enumerate(self.kinds, start=1) if kind == name)

    @property
    def flow_names(self) -> list[str]:
        """The names of all flows."""
        return [flow.name for flow in self.flows]

    @property
    def link_names(self) -> list[str]:
        """The names of all links of piconets: central and member."""
        nodes = self.nodes
        return [f"{nodes[one.central]}-{nodes[member]}" for one in self.piconets for member in one.members]

    def flow_labels(self) -> dict[str, list[Any]]:
        """Return the labels of the flows in results: number, name, and group where flows differ."""
        labels: dict[str, list[Any]] = {
            "flow": list(range(1, len(self.flows) + 1)), "flow_name": self.flow_names
        }  # fmt: skip
        return labels | ({"group": list(self.kinds)} if len(set(self.kinds)) > 1 else {})

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The group of each flow; flows without a group are together if they are alike.

        Alike are flows with the same keys, on ways over as many hops of the same kinds. A reverse flow is
        with the flow whose answers it carries. The group is called after its first flow.
        """
        found: dict[Any, list[int]] = {}
        for number, flow in enumerate(self.flows):
            forth = flow
            if flow.reverse is not None and flow.reverse < number:
                forth = self.flows[flow.reverse]
            found.setdefault(flow.group or self._kind(forth), []).append(number)
        kinds = [""] * len(self.flows)
        for key, numbers in found.items():
            more = f" and {len(numbers) - 1} alike" if len(numbers) > 1 else ""
            for number in numbers:
                kinds[number] = key if isinstance(key, str) else self.flows[numbers[0]].name + more
        return tuple(kinds)

    def _kind(self, flow: FlowPlan) -> tuple[Any, ...]:
        """Return keys and way of a flow; flows of a pattern are all alike."""
        if flow.spec is None:
            return ()
        hops = (
            (hop.index,)
            if hop.kind == "outside"
            else (len(self.piconets[hop.index].members), hop.source == self.piconets[hop.index].central)
            for hop in self.route(flow.source, flow.target)
        )
        return repr(sorted(flow.spec.own.items())), *hops

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The names of all groups, as first written."""
        return tuple(dict.fromkeys(flow.group for flow in self.flows if flow.group))

    def connected(self, source: int, target: int) -> bool:
        """Return whether there is any way from one node to another."""
        return self._parts[source] == self._parts[target]

    def islands(self) -> list[int]:
        """Return for each node the number of the part of the network that it is in.

        Nothing that happens in one part matters to another: no way leads there and they share no medium.
        """
        media = [(link.source, link.link.medium) for link in self.outside if link.link.medium is not None]
        if not media:
            return self._parts
        graph = self._plain_graph.copy()
        shared: dict[str, int] = {}
        for source, medium in media:
            graph.add_edge(source, shared.setdefault(medium, source))
        return _numbered_parts(graph)

    def _search(self, source: int, target: int) -> tuple[Hop, ...]:
        if not self.connected(source, target):
            raise ScenarioError(_not_connected(self, "network.flows", source, target))
        steps = pairwise(self._path(source, target))
        return tuple(Hop(*self._edges[min(a, b), max(a, b)], a, b) for a, b in steps)

    def _path(self, source: int, target: int) -> Sequence[int]:
        if self._is_star:
            central, member = self.piconets[0].central, self.piconets[0].members[0]
            if source == target:
                return source, member if source == central else central, source
            return (source, target) if central in (source, target) else (source, central, target)
        import networkx as nx

        if source == target:
            return source, next(iter(self._plain_graph[source])), source
        near, far = self._plain_graph.adj[source], self._plain_graph.adj[target]
        if target in near:
            return source, target
        if len(between := [node for node in near if node in far]) == 1:
            return source, between[0], target
        # From both ends at once: a way inside a piconet never looks at the rest of the network.
        return nx.bidirectional_shortest_path(self._plain_graph, source, target)

    @cached_property
    def _is_star(self) -> bool:
        """Whether the network is one piconet: its routes need no search by networkx, which imports slowly."""
        return not self.outside and [1 + len(one.members) for one in self.piconets] == [len(self.nodes)]

    @cached_property
    def bridge_nodes(self) -> frozenset[int]:
        """The nodes that are bridges."""
        return frozenset(bridge.node for bridge in self.bridges)

    @cached_property
    def _routes(self) -> dict[tuple[int, int], tuple[Hop, ...]]:
        return {}

    @cached_property
    def _edges(self) -> dict[tuple[int, int], tuple[Literal["bluetooth", "outside"], int]]:
        """Kind and index of the piconet or outside link that joins two nodes, the smaller number first."""
        edges: dict[tuple[int, int], tuple[Literal["bluetooth", "outside"], int]] = {}
        for index, piconet in enumerate(self.piconets):
            for member in piconet.members:
                edges[min(piconet.central, member), max(piconet.central, member)] = ("bluetooth", index)
        for index, link in enumerate(self.outside):
            edges[min(link.source, link.target), max(link.source, link.target)] = ("outside", index)
        return edges

    @cached_property
    def _plain_graph(self) -> nx.Graph:
        import networkx as nx

        graph = nx.Graph()
        graph.add_nodes_from(range(len(self.nodes)))
        graph.add_edges_from(self._edges)
        return graph

    @cached_property
    def _parts(self) -> list[int]:
        """For each node the number of the connected part of the network that it is in."""
        return [0] * len(self.nodes) if self._is_star else _numbered_parts(self._plain_graph)


def _numbered_parts(graph: nx.Graph) -> list[int]:
    """Return for each node, in the order of their numbers, the number of its connected part."""
    import networkx as nx

    numbers = {node: number for number, part in enumerate(nx.connected_components(graph)) for node in part}
    return [numbers[node] for node in range(len(numbers))]


_INDEX = {"bluetooth": "piconet", "outside": "outside"}


def topology(scenario: Scenario) -> Topology:
    """Return the graph of *scenario* with its active flows, and a reverse flow where data goes both ways.

    Raises:
        ScenarioError: for every flow whose two ends are not connected.
    """
    frozen: Any = scenario.network  # and so hashable
    return _topology(frozen, scenario.traffic.source, scenario.traffic.two_way)


@lru_cache(maxsize=256)  # the points of a study have few
def _topology(network: Network, source: str, two_way: bool) -> Topology:
    nodes = network.node_names
    number = {name: i for i, name in enumerate(nodes)}
    piconets = tuple(
        PiconetPlan(p.name, number[p.central], tuple(number[name] for name in p.members))
        for p in network.piconet_names
    )
    outside = tuple(OutsidePlan(x, number[x.source], number[x.target]) for x in network.outside_links)
    plan = Topology(nodes, piconets, _bridges(piconets), outside, _flows(network, source, two_way, number))
    if lost := [
        _not_connected(plan, f"network.flows[{i}].to", flow.source, flow.target)
        for i, flow in enumerate(plan.flows, start=1)
        if (flow.reverse is None or flow.reverse >= i) and not plan.connected(flow.source, flow.target)
    ]:
        raise ScenarioError(lost)
    return plan


def _bridges(piconets: Iterable[PiconetPlan]) -> tuple[BridgePlan, ...]:
    of_node: dict[int, list[int]] = {}
    for index, piconet in enumerate(piconets):
        for node in (piconet.central, *piconet.members):
            of_node.setdefault(node, []).append(index)
    return tuple(BridgePlan(node, tuple(of_node[node])) for node in sorted(of_node) if len(of_node[node]) > 1)


def _flows(network: Network, source: str, two_way: bool, number: Mapping[str, int]) -> tuple[FlowPlan, ...]:
    """Return the active flows, then their reverse flows in the same order.

    Args:
        network: whose flows these are.
        source: law of the messages of flows without an overriding law.
        two_way: whether data of these flows goes both ways.
        number: number of each node.
    """
    flows, listed = active_flows(network), not isinstance(network.flows, str)
    forth: list[FlowPlan] = []
    back: list[FlowPlan] = []
    for i, flow in enumerate(flows):
        start, end, spec = number[flow.source], number[flow.target], flow if listed else None
        reverse = None
        if flow.own.get("two_way", two_way) or flow.own.get("source", source) == "request-reply":
            reverse = len(flows) + len(back)
            name = f"{flow.name} back" if flow.name else f"{flow.target}>{flow.source}"
            back.append(FlowPlan(end, start, i, spec, name, f"{flow.group} back" if flow.group else ""))
        forth.append(FlowPlan(start, end, reverse, spec, flow.label, flow.group or ""))
    return (*forth, *back)


def _not_connected(plan: Topology, key: str, source: int, target: int) -> Problem:
    """Describe a flow without a way, with the nearest name among the nodes that its source can reach."""
    start, end = plan.nodes[source], plan.nodes[target]
    reachable = [
        name for i, name in enumerate(plan.nodes) if i != source and plan.connected(source, i)
    ]  # fmt: skip
    guess = closest(end, reachable)
    some = ", ".join(reachable[:12]) + (", ..." if len(reachable) > 12 else "")
    hint = f'; did you mean "{guess}"?' if guess else ""
    message = (
        f"{bracketed(key)} = {shown(end)}: no way leads there from {shown(start)}, which reaches "
        f"{some or 'no other node'}; join the two by a bridge or an outside link{hint}"
    )
    return Problem(message, key=key, value=end, allowed=some, guess=guess)
