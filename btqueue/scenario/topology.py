"""The network as a plain graph: who hears whom, in which piconet, and which way the flows take.

A description only, shared by both engines: it knows nothing of queues, polling or time. Nodes are numbered in
the order of `Network.node_names`; piconets and outside links in the order of the scenario.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from btqueue.scenario.errors import Problem, ScenarioError, bad_value, shown
from btqueue.scenario.network import Flow, Network, OutsideLink
from btqueue.scenario.problems import closest
from btqueue.scenario.radio import RadioLink

if TYPE_CHECKING:
    import networkx as nx

    from btqueue.scenario.scenario import Scenario


class PiconetPlan(NamedTuple):
    """A piconet: its central and its members in the order of the polling cycle."""

    name: str
    central: int
    members: tuple[int, ...]


class BridgePlan(NamedTuple):
    """A device in several piconets, a member or the central of each."""

    node: int
    piconets: tuple[int, ...]


class OutsidePlan(NamedTuple):
    """An outside link between two nodes."""

    link: OutsideLink
    source: int
    target: int


class FlowPlan(NamedTuple):
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
    """Nodes, piconets, bridges, outside links and flows of a scenario, and the radio links with own keys."""

    nodes: tuple[str, ...]
    piconets: tuple[PiconetPlan, ...]
    bridges: tuple[BridgePlan, ...]
    outside: tuple[OutsidePlan, ...]
    flows: tuple[FlowPlan, ...]
    radios: tuple[RadioLink, ...] = ()

    def __hash__(self) -> int:
        """Return a hash of the names of the nodes alone: flows and links would take long."""
        return hash(self.nodes)

    def graph(self) -> nx.Graph:
        """Return a new graph of node names.

        Nodes have a `role` ("central", "peripheral", "bridge" or "host"), edges a `kind`: "bluetooth" or
        "outside".
        """
        import networkx as nx

        roles = dict.fromkeys(range(len(self.nodes)), "host")
        roles.update((member, "peripheral") for p in self.piconets for member in p.members)
        roles.update(dict.fromkeys(self.bridge_nodes, "bridge"))
        roles.update((p.central, "central") for p in self.piconets)
        graph = nx.Graph()
        graph.add_nodes_from((self.nodes[node], {"role": role}) for node, role in roles.items())
        for node, near in enumerate(self._near):
            edges = (
                (self.nodes[node], self.nodes[other], {"kind": kind}) for other, (kind, _) in near.items()
            )
            graph.add_edges_from(edges)
        return graph

    def route(self, source: int, target: int) -> tuple[Hop, ...]:
        """Return the shortest way from one node to another, over the fewest hops; the way back is the same.

        Among equally short ways the choice is fixed by the order of piconets and links. A node reaches itself
        by its central and back.

        Raises:
            ScenarioError: if the two nodes are not connected.
        """
        if not (way := self._way(source, target)):
            raise ScenarioError(_not_connected(self, "network.flows", source, target))
        return way

    def members(self, name: str) -> tuple[int, ...]:
        """Return the flows of this name, or of a group, counted from 1; none if there is neither."""
        own = tuple(number for number, flow in enumerate(self.flows, start=1) if flow.name == name)
        return own or tuple(number for number, kind in enumerate(self.kinds, start=1) if kind == name)

    def links_of(self, flows: Iterable[int]) -> tuple[int, ...]:
        """Return the links over which peripherals are ends of these flows; both are counted from 1."""
        ends = set()
        for flow in (self.flows[number - 1] for number in flows):
            for hop in self.route(flow.source, flow.target):
                if hop.kind == "bluetooth":
                    own = {hop.source, hop.target} & {flow.source, flow.target}
                    ends |= {(hop.index, node) for node in own}
        links = [(index, node) for index, one in enumerate(self.piconets) for node in one.members]
        return tuple(number for number, link in enumerate(links, start=1) if link in ends)

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

        Alike are flows with the same keys, on ways over as many hops of the same kinds, whose radio links
        have the same keys. A reverse flow is with the flow whose answers it carries. The group is called
        after its first flow.
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
        """Return keys and way of a flow; of a flow of a pattern the keys of radio links alone."""
        route = self.route(flow.source, flow.target)
        radios = [
            (self.nodes.index(one.node) == hop.source, one.direction, repr(one.overrides))
            for hop in route
            if hop.kind == "bluetooth"
            for one in self.radios
            if one.node in (self.nodes[hop.source], self.nodes[hop.target])
        ]
        if flow.spec is None:
            return tuple(radios)
        hops = (
            (hop.index,)
            if hop.kind == "outside"
            else (len(self.piconets[hop.index].members), hop.source == self.piconets[hop.index].central)
            for hop in route
        )
        return repr(sorted(flow.spec.own.items())), *hops, *radios

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The names of all groups, as first written."""
        return tuple(dict.fromkeys(flow.group for flow in self.flows if flow.group))

    def connected(self, source: int, target: int) -> bool:
        """Return whether there is any way from one node to another."""
        return bool(self._way(source, target))

    def islands(self) -> list[int]:
        """Return for each node the number of the part of the network that it is in.

        Nothing that happens in one part matters to another: no way leads there and they share no medium.
        """
        near = [list(one) for one in self._near]
        first_on_medium: dict[str, int] = {}
        for one in self.outside:
            if one.link.medium is not None:
                other = first_on_medium.setdefault(one.link.medium, one.source)
                near[one.source].append(other)
                near[other].append(one.source)
        numbers: dict[int, int] = {}
        fresh = count()
        for node in range(len(near)):
            if node not in numbers:
                numbers |= dict.fromkeys((node, *_reached(near, node)), next(fresh))
        return [numbers[node] for node in range(len(near))]

    def _way(self, source: int, target: int) -> tuple[Hop, ...]:
        """Return the hops of a route; none if the two nodes are not connected."""
        if (source, target) not in self._ways:
            first, last = sorted((source, target))
            before, nodes = _reached(self._near, first, last), [last]
            while last in before and (len(nodes) == 1 or nodes[-1] != first):
                nodes.append(before[nodes[-1]])
            back = tuple(Hop(*self._near[a][b], a, b) for a, b in pairwise(nodes))
            self._ways[last, first] = back
            self._ways[first, last] = tuple(Hop(*hop[:2], hop.target, hop.source) for hop in reversed(back))
        return self._ways[source, target]

    @cached_property
    def bridge_nodes(self) -> frozenset[int]:
        """The nodes that are bridges."""
        return frozenset(bridge.node for bridge in self.bridges)

    @cached_property
    def _ways(self) -> dict[tuple[int, int], tuple[Hop, ...]]:
        return {}

    @cached_property
    def _near(self) -> list[dict[int, tuple[Literal["bluetooth", "outside"], int]]]:
        """For each node its neighbours, with kind and index of the piconet or outside link between them."""
        near: list[dict[int, tuple[Literal["bluetooth", "outside"], int]]] = [{} for _ in self.nodes]
        for index, piconet in enumerate(self.piconets):
            for member in piconet.members:
                near[member][piconet.central] = near[piconet.central][member] = ("bluetooth", index)
        for index, link in enumerate(self.outside):
            near[link.source][link.target] = near[link.target][link.source] = ("outside", index)
        return near


def _reached(near: Sequence[Iterable[int]], source: int, target: int = -1) -> dict[int, int]:
    """Return the nodes reached from a source, each with the node before it on a way of the fewest hops.

    Args:
        near: the neighbours of each node.
        source: where the search begins.
        target: the search ends when it is reached.
    """
    before: dict[int, int] = {}
    reached = [source]
    for node in reached:
        for other in near[node]:
            if other not in before:
                before[other] = node
                reached.append(other)
        if target in before:
            break
    return before


def topology(scenario: Scenario) -> Topology:
    """Return the graph of *scenario* with its active flows, and a reverse flow where data goes both ways.

    Raises:
        ScenarioError: for every flow whose two ends are not connected.
    """
    frozen: Any = (scenario.network, scenario.radio.links)  # and so hashable
    return _topology(*frozen, scenario.traffic.source, scenario.traffic.two_way)


@lru_cache(maxsize=256)  # the points of a study have few
def _topology(network: Network, radios: tuple[RadioLink, ...], source: str, two_way: bool) -> Topology:
    nodes = network.node_names
    number = {name: i for i, name in enumerate(nodes)}
    piconets = tuple(
        PiconetPlan(p.name, number[p.central], tuple(number[name] for name in p.members))
        for p in network.piconet_names
    )
    outside = tuple(OutsidePlan(x, number[x.source], number[x.target]) for x in network.outside_links)
    flows = _flows(network, source, two_way, number)
    plan = Topology(nodes, piconets, _bridges(piconets), outside, flows, radios)
    if lost := [
        _not_connected(plan, f"network.flows[{i}].to", flow.source, flow.target)
        for i, flow in enumerate(plan.flows, start=1)
        if (flow.reverse is None or flow.reverse >= i) and not plan.connected(flow.source, flow.target)
    ]:
        raise ScenarioError(lost)
    return plan


def flows_of(network: Network) -> tuple[Flow, ...]:
    """Return every flow of *network*, of its pattern or as listed, whether active or not."""
    if not isinstance(network.flows, str):
        return network.flows
    return tuple(Flow(source=source, target=target) for source, target in _pattern(network))


def active_flows(network: Network) -> tuple[Flow, ...]:
    """Return the flows that are not switched off."""
    flows = flows_of(network)
    return flows if network.active_flows == "all" else flows[: network.active_flows]


def _pattern(network: Network) -> Iterator[tuple[str, str]]:
    """Yield sender and receiver of each flow of a pattern; bridges neither send nor receive."""
    piconets = [network.own_peripherals(k) for k in range(1, network.piconets + 1)]
    match network.flows:
        case "ring":  # from each peripheral to the next of its piconet; a lone one to itself
            for names in piconets:
                yield from zip(names, [*names[1:], names[0]], strict=True)
        case "pairs":  # both ways: of a piconet, or between the first and the last piconet
            here, there = piconets[0], piconets[-1]
            if network.topology == "piconet":
                here, there = here[0::2], here[1::2]
            for one, other in zip(here, there, strict=False):
                yield from ((one, other), (other, one))
        case "downlink":
            yield from ((f"c{k}", name) for k, names in enumerate(piconets, start=1) for name in names)
        case "uplink":
            yield from ((name, f"c{k}") for k, names in enumerate(piconets, start=1) for name in names)
        case "end-to-end":
            yield "n0", f"n{network.hops}"


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
    reachable = [plan.nodes[node] for node in sorted({*_reached(plan._near, source)} - {source})]
    guess = closest(end, reachable)
    some = ", ".join(reachable[:12]) + (", ..." if len(reachable) > 12 else "") or "no other node"
    how = "; use a bridge or an outside link"
    return bad_value(key, end, f"joined to {shown(start)}, which reaches {some}{how}", guess=guess)


def own_length(scenario: Scenario) -> float:
    """Return how long a replication must be (s); 0 where it may have any length."""
    late = any(scenario.of_flow(flow.spec).traffic.start_s > 0.0 for flow in topology(scenario).flows)
    if not (scenario.traffic.load_schedule or scenario.files or late):
        return 0.0
    warmup_s = scenario.run.warmup_s
    return scenario.run.duration_s + (scenario.run.duration_s if warmup_s == "auto" else warmup_s)
