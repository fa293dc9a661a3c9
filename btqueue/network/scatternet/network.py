"""What the models need to know of a scatternet: who is polled where, and the ways of flows.

A *link* is the membership of a device in a piconet, with an uplink queue at the device and a downlink queue
at the central. Link f is that of the source of flow f in its piconet; the others follow.
"""

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from btqueue.baseband import SLOT_S
from btqueue.network.ring_piconet.network import RadioErrors, radio_of
from btqueue.network.ring_piconet.ring import Ring, ring_of
from btqueue.scenario import Scenario
from btqueue.scenario.topology import FlowPlan, Topology, topology

NO_LIMIT = 1 << 30


class Place(NamedTuple):
    """A queue: of a link, and in which direction."""

    link: int
    down: bool


class Piconet(NamedTuple):
    """A piconet.

    Attributes:
        members: links in the order of the polling cycle.
        central_bridge: the bridge that is its central, if one is.
        ordinary: how many members are no bridges.
    """

    members: tuple[int, ...]
    central_bridge: int | None
    ordinary: int


class Bridge(NamedTuple):
    """A device in several piconets, which it visits in turn.

    Attributes:
        piconets: their numbers.
        links: its link in each; None where it is the central.
        first: the place in `piconets` of the one that it begins in.
    """

    piconets: tuple[int, ...]
    links: tuple[int | None, ...]
    first: int


class Connection(NamedTuple):
    """A flow: the queues that its data go through, and those of its acknowledgements."""

    forth: tuple[Place, ...]
    back: tuple[Place, ...]
    plan: FlowPlan


@dataclass(frozen=True)
class Scatternet:
    """Piconets joined by walk-in bridges, and flows between their peripherals.

    Attributes:
        ring: how segments are cut, priced and buffered at a peripheral, and how often it is polled; the same
            in a ring piconet.
        radio: how links damage packets; `shared`: all those of a piconet have one channel.
        polled: the piconets.
        bridge_of: for each link the number of the bridge whose membership it is; None for a peripheral.
        bridge_limit: most frames of an exchange with a bridge; None: `ring.limit` for each peripheral.
        bridge_buffer: packets that a bridge may hold for a piconet; None: as many.
        polling_limit: most frames of a visit that `polling.limit` names, under any discipline.
        stay: "visit", "cycle" or "complete".
        stay_cycles: cycles that a bridge stays for.
        switch_slots: longest time of a switch between piconets.
    """

    ring: Ring
    radio: RadioErrors
    polled: tuple[Piconet, ...]
    bridges: tuple[Bridge, ...]
    connections: tuple[Connection, ...]
    bridge_of: tuple[int | None, ...]
    bridge_limit: int | None
    bridge_buffer: int | None
    polling_limit: int
    stay: str
    stay_cycles: int
    switch_slots: float

    @property
    def piconets(self) -> int:
        """How many piconets there are."""
        return len(self.polled)

    @property
    def links(self) -> int:
        """How many links there are."""
        return len(self.bridge_of)

    @property
    def flows(self) -> int:
        """Flows of the network."""
        return len(self.connections)

    @cached_property
    def air_capacity(self) -> float:
        """Segments per second and flow that the slots of the busiest piconet can carry."""
        ring, hops = self.ring, Counter(self._piconets_of_hops())
        return 1.0 / (max(hops.values()) * (ring.data_slots + ring.ack_slots) * SLOT_S)

    @cached_property
    def home_of(self) -> dict[int, int]:
        """The piconet of each link."""
        return {link: number for number, piconet in enumerate(self.polled) for link in piconet.members}

    @cached_property
    def ends(self) -> frozenset[int]:
        """The links of peripherals that send or receive."""
        ways = [way for connection in self.connections for way in (connection.forth, connection.back)]
        return frozenset(way[place].link for way in ways for place in (0, -1))

    @cached_property
    def busiest_slots(self) -> tuple[int, ...]:
        """Slots of a segment and its acknowledgement in the busiest piconet, of each flow."""
        hops = Counter(self._piconets_of_hops())
        busiest = max(hops, key=lambda number: hops[number])

        def passed(way: tuple[Place, ...]) -> int:
            return sum(self.home_of[place.link] == busiest for place in way)

        data, ack = self.ring.data_slots, self.ring.ack_slots
        return tuple(passed(c.forth) * data + passed(c.back) * ack for c in self.connections)

    def _piconets_of_hops(self) -> list[int]:
        return [self.home_of[place.link] for connection in self.connections for place in connection.forth]


def scatternet_of(scenario: Scenario) -> Scatternet:
    """Read the scatternet off a scenario that the model covers."""
    polling, plan = scenario.polling, topology(scenario)
    numbers = _links(plan)
    bridge_of = {bridge.node: index for index, bridge in enumerate(plan.bridges)}
    ring = ring_of(scenario)
    return Scatternet(
        ring=ring,
        radio=radio_of(scenario, ring),
        polled=tuple(
            Piconet(
                tuple(numbers[index, member] for member in piconet.members),
                bridge_of.get(piconet.central),
                max(1, sum(member not in bridge_of for member in piconet.members)),
            )
            for index, piconet in enumerate(plan.piconets)
        ),
        bridges=tuple(_bridge(plan, bridge.node, bridge.piconets, numbers) for bridge in plan.bridges),
        connections=tuple(_connection(plan, flow, numbers) for flow in plan.flows),
        bridge_of=tuple(bridge_of.get(member) for _, member in numbers),
        bridge_limit=polling.bridge_limit or (1 if polling.discipline == "1-limited" else None),
        bridge_buffer=polling.bridge_buffer_packets,
        polling_limit=polling.limit,
        stay=polling.residence,
        stay_cycles=polling.residence_cycles,
        switch_slots=2.0 if polling.switch_delay else 0.0,
    )


def _links(plan: Topology) -> dict[tuple[int, int], int]:
    """Number the links, each a piconet and a member, in that order: first those of the sources of flows."""
    every = [(index, member) for index, piconet in enumerate(plan.piconets) for member in piconet.members]
    home = {member: (index, member) for index, member in every}
    sources = [home[flow.source] for flow in plan.flows]
    return {link: number for number, link in enumerate(dict.fromkeys([*sources, *every]))}


def _bridge(plan: Topology, node: int, piconets: tuple[int, ...], numbers: dict) -> Bridge:
    own = [place for place, piconet in enumerate(piconets) if plan.piconets[piconet].central == node]
    links = tuple(numbers.get((piconet, node)) for piconet in piconets)
    return Bridge(piconets, links, own[0] if own else 0)


def _connection(plan: Topology, flow: FlowPlan, numbers: dict) -> Connection:
    def way(source: int, target: int) -> tuple[Place, ...]:
        return tuple(
            Place(numbers[hop.index, hop.target if down else hop.source], down)
            for hop in plan.route(source, target)
            for down in [plan.piconets[hop.index].central == hop.source]
        )

    return Connection(way(flow.source, flow.target), way(flow.target, flow.source), flow)
