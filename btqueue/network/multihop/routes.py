"""What the model needs to know of a network of piconets: airs, links, bridges, and the hops of each train.

A link is that of a central to one member of its piconet. A train is the packets of a segment, or of its
acknowledgement; it crosses a row of links, its hops.
"""

from typing import NamedTuple

import numpy as np

from btqueue.network.piconet.disciplines import limit_of
from btqueue.network.piconet.ports import Train, error_rate, train_of
from btqueue.scenario import Scenario
from btqueue.scenario.topology import FlowPlan, Topology, topology

DATA, ACK = range(2)
DOWN, UP = range(2)
NONE = -1


class Links(NamedTuple):
    """Every link of a central to a member, (L,).

    Attributes:
        air: number of the piconet.
        bridge: number of the bridge that the member is; `NONE` if it is none.
        limit: most frames of a visit.
        room: packets that the member can hold for the central; only those of bridges are of concern.
    """

    air: np.ndarray
    bridge: np.ndarray
    limit: np.ndarray
    room: np.ndarray


class Bridges(NamedTuple):
    """Every bridge, (B,).

    Attributes:
        first, second: links of it as a member; a bridge that is a central has the link of its other piconet
            as both.
        own: piconet that it is the central of, `NONE` if there is none.
    """

    first: np.ndarray
    second: np.ndarray
    own: np.ndarray


class Hops(NamedTuple):
    """Every hop of every train, (H,), in order.

    Attributes:
        flow: number of the flow.
        kind: `DATA` or `ACK`.
        link: that is crossed.
        way: `DOWN` or `UP`.
    """

    flow: np.ndarray
    kind: np.ndarray
    link: np.ndarray
    way: np.ndarray


class Routes(NamedTuple):
    """A network of piconets: members of each, whether its central is a bridge, links, bridges, hops."""

    members: np.ndarray
    away: np.ndarray
    links: Links
    bridges: Bridges
    hops: Hops


def routes_of(scenario: Scenario) -> Routes:
    """Read the network off a scenario that the model covers."""
    plan = topology(scenario)
    polling, limit = scenario.polling, limit_of(scenario.polling)
    bridge_of = {bridge.node: number for number, bridge in enumerate(plan.bridges)}
    links: dict[tuple[int, int], int] = {}
    rows = []
    for air, piconet in enumerate(plan.piconets):
        ordinary = max(1, sum(member not in bridge_of for member in piconet.members))
        for member in piconet.members:
            bridge = bridge_of.get(member, NONE)
            links[air, member] = len(rows)
            usual = 1 if limit == 1 else ordinary * limit
            most = limit if bridge == NONE else polling.bridge_limit or usual
            room = polling.bridge_buffer_packets or ordinary * limit
            rows.append((air, bridge, most, room))
    bridges = []
    for bridge in plan.bridges:
        own = [p for p in bridge.piconets if plan.piconets[p].central == bridge.node]
        member = [links[p, bridge.node] for p in bridge.piconets if p not in own]
        bridges.append((member[0], member[-1], own[0] if own else NONE))
    hops = [row for flow, ends in enumerate(plan.flows) for row in _hops(plan, links, flow, ends)]
    central_of = [bridge_of.get(piconet.central, NONE) for piconet in plan.piconets]
    return Routes(
        members=np.array([len(piconet.members) for piconet in plan.piconets], float),
        away=np.array(central_of),
        links=Links(*(np.array(column) for column in zip(*rows, strict=True))),
        bridges=Bridges(*(np.array(column, int) for column in zip(*bridges, strict=True))),
        hops=Hops(*(np.array(column) for column in zip(*hops, strict=True))),
    )


def _hops(
    plan: Topology, links: dict[tuple[int, int], int], flow: int, ends: FlowPlan
) -> list[tuple[int, ...]]:
    """Return the hops of the data of a flow, and of its acknowledgements."""
    rows = []
    for kind, start, end in ((DATA, ends.source, ends.target), (ACK, ends.target, ends.source)):
        for hop in plan.route(start, end):
            up = plan.piconets[hop.index].central == hop.target
            member = hop.source if up else hop.target
            rows.append((flow, kind, links[hop.index, member], UP if up else DOWN))
    return rows


def trains_of(scenario: Scenario) -> tuple[Train, Train]:
    """Return the packets of a segment, and of its acknowledgement."""
    headers = scenario.link.l2cap_header_bytes + scenario.transport.header_bytes
    return train_of(scenario, scenario.traffic.message_bytes + headers), train_of(scenario, headers)


def loads_of(scenario: Scenario) -> np.ndarray:
    """Return the load of each flow (kbit/s), (F,)."""
    own = [scenario.of_flow(flow.spec).traffic.load_kbps for flow in topology(scenario).flows]
    return np.array(own, float)


def error_rates(scenario: Scenario, train: Train) -> np.ndarray:
    """Return the error rate of each packet of a train, (K,)."""
    return np.array([error_rate(scenario, packet) for packet in train.packets])
