"""The piconet of a path alone: its flows begin and end at the gateway, and nothing is outside."""

from __future__ import annotations

from dataclasses import dataclass

from btqueue.scenario import Scenario
from btqueue.scenario.network import Flow
from btqueue.scenario.topology import FlowPlan, Hop, Topology, topology


@dataclass(frozen=True)
class Reduced:
    """What a path has of a piconet.

    Attributes:
        scenario: the piconet alone.
        flows: the numbers of the flows that cross it, in its order.
    """

    scenario: Scenario
    flows: tuple[int, ...]


def on_air(route: tuple[Hop, ...]) -> tuple[Hop, ...]:
    """Return the hops of a route in piconets."""
    return tuple(hop for hop in route if hop.kind == "bluetooth")


def routes_of(plan: Topology) -> list[tuple[Hop, ...]]:
    """Return the routes of all flows, two-way ones in both directions."""
    return [plan.route(flow.source, flow.target) for flow in plan.flows]


def in_one_stretch(route: tuple[Hop, ...]) -> bool:
    """Whether all hops of a route in piconets follow each other."""
    places = [place for place, hop in enumerate(route) if hop.kind == "bluetooth"]
    return not places or places[-1] - places[0] == len(places) - 1


def reduced(scenario: Scenario) -> Reduced | None:
    """Return the only piconet that flows cross; None if they cross none."""
    plan = topology(scenario)
    crossing = {number: on_air(route) for number, route in enumerate(routes_of(plan))}
    crossing = {number: hops for number, hops in crossing.items() if hops}
    if not crossing:
        return None
    piconet = plan.piconets[next(iter(crossing.values()))[0].index]
    forth = [number for number in crossing if not _is_back(plan.flows[number], number)]
    flows = [_between(plan, plan.flows[number], crossing[number]) for number in forth]
    alone = {
        "network": {
            "topology": "custom",
            "relay": scenario.network.relay,
            "piconet_list": [
                {
                    "name": piconet.name,
                    "central": plan.nodes[piconet.central],
                    "peripherals": [plan.nodes[member] for member in piconet.members],
                }
            ],
            "flows": [flow.model_dump(by_alias=True, exclude_none=True) for flow in flows],
        }
    }
    others = {name: table for name, table in scenario.to_dict(resolved=False).items() if name != "network"}
    back = [number for number in crossing if number not in forth]
    return Reduced(Scenario.from_dict({**others, **alone}), (*forth, *back))


def _is_back(flow: FlowPlan, number: int) -> bool:
    """Whether a flow is the second direction of a connection."""
    return flow.reverse is not None and flow.reverse < number


def _between(plan: Topology, flow: FlowPlan, hops: tuple[Hop, ...]) -> Flow:
    """Return a flow with its ends in the piconet."""
    source, target = plan.nodes[hops[0].source], plan.nodes[hops[-1].target]
    plain = Flow(source=source, target=target)
    return flow.spec.model_copy(update={"source": source, "target": target}) if flow.spec else plain
