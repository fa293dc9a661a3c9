"""What the model needs to know of a network of piconets: airs, links, bridges, and the hops of each train.

A link is that of a central to one member of its piconet. A train is the packets of a segment, or of its
acknowledgement; it crosses a row of links, its hops. What a hop waits for depends on where the train comes
from: its host, another member of the same piconet, or the bridge that has carried it there.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from btqueue.network.piconet.disciplines import limit_of
from btqueue.network.piconet.lone import EMPTY_FRAME
from btqueue.network.piconet.ports import Train, error_rate, train_of
from btqueue.scenario import Scenario
from btqueue.scenario.topology import Topology, topology

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
        tie: slots by which a bridge that leaves the other piconet in the slot of its poll here is early: a
            bridge that comes from an earlier piconet is in time, one from a later one waits for the next.
    """

    air: np.ndarray
    bridge: np.ndarray
    limit: np.ndarray
    room: np.ndarray
    tie: np.ndarray


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
    """Every hop of every train, (H,). Slots are those of an idle network; flags are 0 or 1.

    Attributes:
        flow: number of the flow.
        kind: `DATA` or `ACK`.
        link: that is crossed.
        way: `DOWN` or `UP`.
        idle: slots of polls before this one in the same air, that load makes longer.
        wraps: whether a cycle ends meanwhile, at which a central that is a bridge leaves.
        before, before_air: the same in the air that the bridge comes from, and that air.
        cycle: whether the train comes at any time, and waits for half a cycle.
        turn: whether an acknowledgement has just missed its visit and waits for a cycle.
        arrives: whether the train comes with its bridge, which waits to be polled.
        leaves: whether an acknowledgement has just missed its bridge, and waits until it is back.
        meets: whether the bridge may be away when it is polled; it has had time to come back since the train
            began to cross the hop before.
        anytime: whether the train has come at any time, so that the bridge had none.
        ends: whether the train has arrived after this hop.
        first: whether it is the first hop of the train.
    """

    flow: np.ndarray
    kind: np.ndarray
    link: np.ndarray
    way: np.ndarray
    idle: np.ndarray
    wraps: np.ndarray
    before: np.ndarray
    before_air: np.ndarray
    cycle: np.ndarray
    turn: np.ndarray
    arrives: np.ndarray
    leaves: np.ndarray
    meets: np.ndarray
    anytime: np.ndarray
    ends: np.ndarray
    first: np.ndarray


class Routes(NamedTuple):
    """A network of piconets: members of each, whether its central is a bridge, links, bridges, hops."""

    members: np.ndarray
    away: np.ndarray
    links: Links
    bridges: Bridges
    hops: Hops


class _Step(NamedTuple):
    """A hop by names: piconet, place of the member in the polling order, link, bridge of it, and way."""

    air: int
    place: int
    link: int
    bridge: int
    way: int


def routes_of(scenario: Scenario) -> Routes:
    """Read the network off a scenario that the model covers."""
    plan = topology(scenario)
    polling, limit = scenario.polling, limit_of(scenario.polling)
    bridge_of = {bridge.node: number for number, bridge in enumerate(plan.bridges)}
    links: dict[tuple[int, int], tuple[int, int, int]] = {}
    rows = []
    for air, piconet in enumerate(plan.piconets):
        ordinary = max(1, sum(member not in bridge_of for member in piconet.members))
        for place, member in enumerate(piconet.members):
            bridge = bridge_of.get(member, NONE)
            links[air, member] = (len(rows), place, bridge)
            usual = 1 if limit == 1 else ordinary * limit
            most = limit if bridge == NONE else polling.bridge_limit or usual
            tie = 0.0
            if bridge != NONE:
                here, other = air, next(p for p in plan.bridges[bridge].piconets if p != air)
                tie = -EMPTY_FRAME / 2.0 if other < here else EMPTY_FRAME / 2.0
            room = polling.bridge_buffer_packets or ordinary * limit
            rows.append((air, bridge, most, room, tie))
    bridges = []
    for bridge in plan.bridges:
        own = [p for p in bridge.piconets if plan.piconets[p].central == bridge.node]
        member = [links[p, bridge.node][0] for p in bridge.piconets if p not in own]
        bridges.append((member[0], member[-1], own[0] if own else NONE))
    hops = [
        row
        for flow, one in enumerate(plan.flows)
        for row in _hops(plan, links, flow, one.source, one.target, full=_fills(scenario, limit))
    ]
    central_of = [bridge_of.get(piconet.central, NONE) for piconet in plan.piconets]
    return Routes(
        members=np.array([len(piconet.members) for piconet in plan.piconets], float),
        away=np.array(central_of),
        links=Links(*(np.array(column) for column in zip(*rows, strict=True))),
        bridges=Bridges(*(np.array(column, int) for column in zip(*bridges, strict=True))),
        hops=Hops(*(np.array(column) for column in zip(*hops, strict=True))),
    )


def _fills(scenario: Scenario, limit: int) -> bool:
    """Whether the last visit of a lone segment ends with its last packet."""
    return len(trains_of(scenario)[DATA].packets) % limit == 0


def _hops(
    plan: Topology,
    links: dict[tuple[int, int], tuple[int, int, int]],
    flow: int,
    source: int,
    target: int,
    *,
    full: bool,
) -> list[tuple[float, ...]]:
    """Return the hops of the data of a flow, and of its acknowledgements."""
    central = [piconet.central for piconet in plan.piconets]

    def steps(start: int, end: int) -> list[_Step]:
        found = []
        for hop in plan.route(start, end):
            up = central[hop.index] == hop.target
            member = hop.source if up else hop.target
            found.append(_Step(hop.index, *_place(links[hop.index, member]), UP if up else DOWN))
        return found

    def size(air: int) -> int:
        return len(plan.piconets[air].members)

    rows = []
    forth, back = steps(source, target), steps(target, source)
    for kind, train in ((DATA, forth), (ACK, back)):
        for number, (last, here) in enumerate(pairwise([None, *train])):
            assert here is not None
            row = dict.fromkeys(Hops._fields, 0.0)
            row |= {"flow": flow, "kind": kind, "link": here.link, "way": here.way, "before_air": here.air}
            row |= {"first": float(number == 0), "ends": float(number == len(train) - 1)}
            bridge = here.bridge != NONE
            if last is None and kind == DATA:
                row |= {"meets": 1.0, "anytime": 1.0} if bridge else {"cycle": 1.0}
            elif last is None:
                came = forth[-1]
                if bridge:
                    row["leaves"] = 1.0
                elif came.way == UP or full:
                    row["turn"] = 1.0
            elif last.air == here.air:  # up at one member, down at another
                row["idle"] = EMPTY_FRAME * ((here.place - last.place - 1) % size(here.air))
                row["meets"] = float(bridge)
                row["wraps"] = float(here.place < last.place)
            elif here.way == UP and last.way == DOWN:  # a bridge carries it from one central to another
                row["arrives"] = 1.0
            elif here.way == UP:  # a bridge that is the central leaves at the end of its cycle
                row |= {"arrives": 1.0, "before_air": last.air}
                row["before"] = EMPTY_FRAME * (size(last.air) - 1 - last.place)
            else:  # a bridge comes back to its own piconet, and begins a cycle
                row["idle"] = EMPTY_FRAME * here.place
                row["meets"] = float(bridge)
            rows.append(tuple(row.values()))
    return rows


def _place(link: tuple[int, int, int]) -> tuple[int, int, int]:
    number, place, bridge = link
    return place, number, bridge


def trains_of(scenario: Scenario) -> tuple[Train, Train]:
    """Return the packets of a segment, and of its acknowledgement."""
    headers = scenario.link.l2cap_header_bytes + scenario.transport.header_bytes
    return train_of(scenario, scenario.traffic.message_bytes + headers), train_of(scenario, headers)


def rates_of(scenario: Scenario) -> np.ndarray:
    """Return the segments a second of each flow, (F,)."""
    traffic = scenario.traffic
    own = [flow.spec.load_kbps if flow.spec is not None else None for flow in topology(scenario).flows]
    loads = np.array([traffic.load_kbps if load is None else load for load in own])
    return loads * 1000.0 / (8.0 * traffic.message_bytes)


def error_rates(scenario: Scenario, train: Train) -> np.ndarray:
    """Return the error rate of each packet of a train, (K,)."""
    return np.array([error_rate(scenario, packet) for packet in train.packets])
