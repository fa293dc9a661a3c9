"""Topologies: piconets, bridges, flows and routes of the standard shapes, and of lists."""

from dataclasses import replace
from itertools import pairwise

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thesis import thesis_of

from btqueue.scenario import Scenario, ScenarioError
from btqueue.scenario.topology import Topology, topology


def plan_of(network: dict, **tables: dict) -> Topology:
    return topology(thesis_of({"network": network, **tables}))


def flows_of(plan: Topology) -> str:
    return " ".join(f"{plan.nodes[flow.source]}>{plan.nodes[flow.target]}" for flow in plan.flows)


def way(plan: Topology, source: str, target: str) -> list[str]:
    """Return the names of the nodes on a route, and make sure that its hops are joined."""
    hops = plan.route(plan.nodes.index(source), plan.nodes.index(target))
    assert all(a.target == b.source for a, b in pairwise(hops))
    return [plan.nodes[hop.source] for hop in hops] + [plan.nodes[hops[-1].target]]


SCATTERNET = {"topology": "scatternet"}


@pytest.mark.parametrize(
    ("network", "flows"),
    [
        ({"peripherals": 1}, "p1.1>p1.1"),
        ({"peripherals": 5, "flows": "pairs"}, "p1.1>p1.2 p1.2>p1.1 p1.3>p1.4 p1.4>p1.3"),
        ({"peripherals": 4, "active_flows": 2}, "p1.1>p1.2 p1.2>p1.3"),
        ({"flows": "downlink"}, "c1>p1.1 c1>p1.2"),
        ({"flows": "uplink"}, "p1.1>c1 p1.2>c1"),
        (SCATTERNET, "p1.1>p2.1 p2.1>p1.1 p1.2>p2.2 p2.2>p1.2"),
        ({**SCATTERNET, "piconets": 3, "peripherals": 1}, "p1.1>p3.1 p3.1>p1.1"),
        ({**SCATTERNET, "flows": "ring"}, "p1.1>p1.2 p1.2>p1.1 p2.1>p2.2 p2.2>p2.1"),
        ({**SCATTERNET, "peripherals": 1, "bridge": "MS", "flows": "uplink"}, "p1.1>c1 p2.1>c2"),
        ({"topology": "chain", "hops": 5}, "n0>n5"),
    ],
)
def test_flows_of_a_pattern(network, flows):
    assert flows_of(plan_of(network)) == flows


def test_a_reply_needs_a_reverse_flow():
    assert [f.reverse for f in plan_of({}, traffic={"source": "request-reply"}).flows] == [2, 3, 0, 1]
    flows = [{"from": "p1.1", "to": "c1"}, {"from": "p1.2", "to": "c1", "law": "request-reply"}]
    plan = plan_of({"flows": flows})
    assert [flow.reverse for flow in plan.flows] == [None, 2, 1]
    assert plan.flows[2].spec == plan.flows[1].spec


def test_ends_that_are_not_connected_are_named_with_what_could_be_meant():
    piconets = [
        {"name": "A", "central": "a", "peripherals": ["phone"]},
        {"name": "B", "central": "b", "peripherals": ["phone2"]},
    ]
    flows = [{"from": "a", "to": "phone"}, {"from": "a", "to": "phone2"}, {"from": "b", "to": "a"}]
    network = {"topology": "custom", "piconet_list": piconets, "flows": flows}
    with pytest.raises(ScenarioError) as caught:
        plan_of(network, traffic={"two_way": True})
    first, second = caught.value.problems  # one for each flow, none for its reverse
    assert (first.key, first.value, first.guess) == ("network.flows[2].to", "phone2", "phone")
    assert '"a", which reaches phone;' in first.message and "bridge or an outside link" in first.message
    assert second.key == "network.flows[3].to"


def custom(members: dict[str, list[str]], *flows: tuple[str, str]) -> Scenario:
    """Return a custom network of piconets, by central."""
    piconets = [{"name": name, "central": name, "peripherals": own} for name, own in members.items()]
    ends = [{"from": source, "to": target} for source, target in flows]
    network = {"topology": "custom", "piconet_list": piconets, "flows": ends}
    return Scenario.from_dict({"network": network})


def test_equally_short_ways_give_the_same_way_each_time_and_back():
    ring = custom({f"c{k}": [f"b{k}", f"b{(k - 1) % 6}"] for k in range(6)}, ("c0", "c3"), ("c3", "c0"))
    first = topology(ring)
    second = replace(first)  # which has looked for no way yet
    there = first.route(first.flows[0].source, first.flows[0].target)
    back = first.route(first.flows[1].source, first.flows[1].target)
    assert [(hop.index, hop.target, hop.source) for hop in reversed(there)] == [hop[1:] for hop in back]
    # asked in the other order
    assert second.route(second.flows[1].source, second.flows[1].target) == back
    assert second.route(second.flows[0].source, second.flows[0].target) == there


@given(st.integers(0, 2**32 - 1))
@settings(deadline=None, derandomize=True, max_examples=30)
def test_routes_are_as_short_as_networkx_finds_them(seed):
    graph = nx.random_labeled_tree(20, seed=seed)
    centrals = {node for node, depth in nx.single_source_shortest_path_length(graph, 0).items() if depth % 2}
    if any(graph.degree(node) > 7 for node in centrals):
        return
    plan = topology(custom({str(c): [str(node) for node in graph[c]] for c in centrals}, ("0", "1")))
    for a in range(20):
        for b in range(20):
            if a != b:
                assert way(plan, str(a), str(b)) == [str(n) for n in nx.shortest_path(graph, a, b)]


def test_a_list_of_too_many_peripherals_is_refused_with_its_length():
    names = [f"s{n}" for n in range(21)]
    network = {"topology": "custom", "piconet_list": [{"name": "hall", "central": "g", "peripherals": names}]}
    with pytest.raises(ScenarioError, match="a list of 21; it may have at most 20 entries"):
        Scenario.from_dict({"network": network | {"flows": [{"from": "s1", "to": "g"}]}})
