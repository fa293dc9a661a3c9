"""Ways of TCP flows over outside links and at most one piconet: what a segment takes, and what it waits for.

A *resource* is a medium outside, or the air of the piconet. A lone segment crosses its way in a time that
follows from sizes, rates and the order of polls; with all its places full, a resource passes segments at its
own pace. What is between the two follows from windows (`shares`, `loss`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.baseband import PACKET_TYPES, SLOT_S, segment
from btqueue.network.answers import NoConvergence
from btqueue.network.repetition import error_rate
from btqueue.scenario import Scenario
from btqueue.scenario.bounds import segments_of, window_of
from btqueue.scenario.network import OutsideLink
from btqueue.scenario.topology import FlowPlan, Hop, Topology, topology

Vector = NDArray[np.float64]

AIR = "air"
LARGEST_ERROR_RATE = 0.9
"""Of packets that are repeated; beyond, timers expire before segments get through."""
ONE_FRAME = ("round-robin", "1-limited")
NO_IDLE_POLLS = ("exhaustive", "fep")
"""Disciplines that leave a busy member only when nothing waits, or that leave idle ones out."""


class Train(NamedTuple):
    """The packets of a segment on one direction of a radio link.

    Attributes:
        slots: of each packet, shape (packets,).
        sent: mean transmissions of each, shape (packets,).
        loss: probability that one of them is lost for good.
        spread: mean of e / (1 - e) over the packets, with packet error rates e that ARQ repairs.
    """

    slots: Vector
    sent: Vector
    loss: float
    spread: float

    @property
    def frames(self) -> float:
        """Mean number of transmissions."""
        return float(self.sent.sum())

    @property
    def slots_sent(self) -> float:
        """Mean number of slots of all transmissions."""
        return float(self.sent @ self.slots)


class AirUse(NamedTuple):
    """What a segment and its share of an acknowledgement take of the piconet.

    Attributes:
        filled: slots of data.
        slots: of their exchanges, empty answers included.
        exchanges: of packets, one down and one up.
    """

    filled: float
    slots: float
    exchanges: float


@dataclass(frozen=True)
class Way:
    """What one flow meets.

    Attributes:
        kilobits: user data of a segment, mean over those of a message.
        window: receive window (segments).
        variant: of TCP.
        base_s: mean round trip of a lone segment that is acknowledged at once, or by the timer where the
            window holds fewer than share an acknowledgement; half of `run.jitter_s` passes at each end.
        service_s: time that a segment takes of each resource, its acknowledgement included, (resources,).
        places: segments that wait at most for each resource, (resources,); the least of several.
        loss, ack_loss: probability that a segment, or an acknowledgement, is lost.
        segments_per_ack: segments that share an acknowledgement.
        ports: on each resource, by which queue the data comes, for flows that share it.
        arq_s: variance that ARQ adds to a second of service of the air (s).
        in_packets: whether the smallest buffer of the bottleneck counts packets, not whole segments.
    """

    kilobits: float
    window: int
    variant: str
    base_s: float
    service_s: Vector
    places: Vector
    loss: float
    ack_loss: float
    segments_per_ack: int
    ports: tuple[tuple[int, ...] | None, ...]
    arq_s: float
    in_packets: bool

    @property
    def bottleneck(self) -> int:
        """The number of the slowest resource."""
        return int(np.argmax(self.service_s))

    @property
    def rate(self) -> float:
        """Segments a second of its slowest resource."""
        return 1.0 / float(self.service_s.max())

    @property
    def room(self) -> float:
        """Segments in flight that way and buffers hold without loss."""
        return float(self.places[self.bottleneck]) + self.base_s * self.rate


@dataclass(frozen=True)
class Ways:
    """The ways of all flows over the same resources.

    Attributes:
        resources: their names.
        ways: of the flows.
        members: of the piconet in use; 0 without one.
        one_frame: whether each of its visits is a single exchange.
        air: what a segment of each flow takes of it.
    """

    resources: tuple[str, ...]
    ways: tuple[Way, ...]
    members: int
    one_frame: bool
    air: tuple[AirUse, ...]


class _Air(NamedTuple):
    """The piconet in use: members, polling, and those of its members that carry the flows."""

    members: int
    discipline: str
    limit: int
    busy: frozenset[int]

    @property
    def others_slots(self) -> float:
        """Slots of the polls of the other members, all idle, between two visits of one."""
        return 2.0 * (self.members - 1)

    @property
    def per_visit(self) -> int:
        """Most exchanges of a visit."""
        return 1 if self.discipline in ONE_FRAME else self.limit

    def away_slots(self, number: float) -> float:
        """Return the slots that others take, all idle, while so many packets of one member are sent."""
        if self.discipline in NO_IDLE_POLLS:
            return 0.0
        return max(0.0, np.ceil(number / self.per_visit - 1e-9) - 1.0) * self.others_slots

    @property
    def overhead(self) -> float:
        """Slots of idle polls for each exchange, with all busy members' queues full."""
        if self.discipline in NO_IDLE_POLLS:
            return 0.0
        return 2.0 * (self.members - len(self.busy)) / len(self.busy) / self.per_visit


class _Network(NamedTuple):
    """What all ways have in common: the scenario, its topology and resources, and the piconet in use."""

    scenario: Scenario
    plan: Topology
    air: _Air | None
    resources: tuple[str, ...]

    def number(self, hop: Hop, *, back: bool = False) -> int:
        """Return the number of the resource that carries one direction of a hop."""
        return self.resources.index(medium_of(self.plan, hop, back))


def ways_of(scenario: Scenario) -> Ways:
    """Read the ways of the flows off a scenario that the model covers.

    Raises:
        NoConvergence: hardly any packet gets through the radio.
    """
    plan = topology(scenario)
    routes = [plan.route(flow.source, flow.target) for flow in plan.flows]
    airs = [(hop.index, member_of(plan, hop)) for route in routes for hop in route if hop.kind == "bluetooth"]
    air = None
    if airs:
        members = len(plan.piconets[airs[0][0]].members)
        busy = frozenset(member for _, member in airs)
        air = _Air(members, scenario.polling.discipline, scenario.polling.limit, busy)
    names = [medium_of(plan, hop, back) for route in routes for hop in route for back in (False, True)]
    resources = tuple(dict.fromkeys(names))
    network = _Network(scenario, plan, air, resources)
    found = [_way(network, flow, route) for flow, route in zip(plan.flows, routes, strict=True)]
    return Ways(
        resources,
        tuple(way for way, _ in found),
        air.members if air else 0,
        air is not None and air.discipline in ONE_FRAME,
        tuple(use for _, use in found),
    )


def _way(network: _Network, flow: FlowPlan, route: tuple[Hop, ...]) -> tuple[Way, AirUse]:
    """Return a flow's way, and its use of the piconet."""
    scenario, plan = network.scenario, network.plan
    sent, transport = segments_of(scenario, flow), scenario.transport
    shares = np.array([count for _, count in sent.sizes]) / sent.number
    sizes = [size for size, _ in sent.sizes]
    every = transport.ack_every_segments if transport.delayed_ack else 1
    service, use = _services(network, route, sizes, shares, every)
    # at the pace of the bottleneck the timer may let fewer segments gather, or the window may
    window = window_of(scenario, flow)
    gathered = min(every, 1 + int(transport.ack_delay_s / service.max()), window)
    if gathered < every:
        service, use = _services(network, route, sizes, shares, gathered)
    base = float(shares @ [_lone_s(network, route, size, at_once=window >= every) for size in sizes])
    loss = float(shares @ [loss_of(scenario, plan, route, size) for size in sizes])
    places, packets = (_places(network, route, sizes, shares, cut) for cut in (False, True))
    slowest = int(np.argmax(service))
    way = Way(
        kilobits=sent.kilobits / sent.number,
        window=window,
        variant=scenario.of_flow(flow.spec).transport.variant,
        base_s=base + scenario.run.jitter_s + (transport.ack_delay_s if window < every else 0.0),
        service_s=service,
        places=np.minimum(places, packets),
        loss=loss,
        ack_loss=loss_of(scenario, plan, reverse(route), 0),
        segments_per_ack=gathered,
        ports=_ports(network, route),
        arq_s=_arq_s(network, route, sizes[0]),
        in_packets=bool(packets[slowest] < places[slowest]),
    )
    return way, use


def reverse(route: tuple[Hop, ...]) -> tuple[Hop, ...]:
    """Return the way back."""
    return tuple(hop._replace(source=hop.target, target=hop.source) for hop in reversed(route))


def member_of(plan: Topology, hop: Hop) -> int:
    """Return the member of the piconet on a hop."""
    return hop.source if hop.target == plan.piconets[hop.index].central else hop.target


def medium_of(plan: Topology, hop: Hop, back: bool) -> str:
    """Return the resource that carries one direction of a hop."""
    if hop.kind == "bluetooth":
        return AIR
    outside = plan.outside[hop.index]
    link, forth = outside.link, (hop.source == outside.source) != back
    if link.medium is not None:
        return f"medium {link.medium}"
    return f"link {hop.index}" if link.half_duplex else f"link {hop.index} {'forth' if forth else 'back'}"


def wire_s(scenario: Scenario, link: OutsideLink, size: int) -> float:
    """Return the time that a segment with so many user bytes is on a wire."""
    return (size + scenario.transport.header_bytes + link.header_bytes) * 8e-3 / link.rate_kbps


def train(scenario: Scenario, plan: Topology, hop: Hop, size: int) -> Train:
    """Return the packets of a segment with so many user bytes on a hop of the piconet.

    Raises:
        NoConvergence: hardly any packet gets through the radio.
    """
    link, radio = scenario.link, scenario.radio
    frame = size + scenario.transport.header_bytes + link.l2cap_header_bytes
    pieces = segment(frame, [PACKET_TYPES[name] for name in link.packets], link.segmentation)
    up = hop.target == plan.piconets[hop.index].central
    member = plan.nodes[member_of(plan, hop)]
    for own in scenario.radio.links:
        if own.node == member and own.direction in ("both", "up" if up else "down"):
            radio = own.applied_to(radio)

    slots = np.array([float(piece.packet.slots) for piece in pieces])
    errors = np.array([error_rate(radio, piece.packet, radio.ber) for piece in pieces])
    if link.arq == "none":
        return Train(slots, np.ones_like(slots), 1.0 - float(np.prod(1.0 - errors)), 0.0)
    if (worst := float(errors.max())) > LARGEST_ERROR_RATE:
        raise NoConvergence(
            f"packets arrive damaged with probability {worst:.3g}: paths are solved up to "
            f"{LARGEST_ERROR_RATE:g}, beyond it hardly any gets through"
        )
    sent = 1.0 / (1.0 - errors)
    return Train(slots, sent, 0.0, float((errors * sent).mean()))


def _services(
    network: _Network, route: tuple[Hop, ...], sizes: list[int], shares: Vector, per_ack: float
) -> tuple[Vector, AirUse]:
    """Return what a segment and its share of an acknowledgement take of each resource (s), and of the air."""
    scenario, plan, air, resources = network
    service, use = np.zeros(len(resources)), AirUse(0.0, 0.0, 0.0)
    for hop, back in zip(route, reversed(reverse(route)), strict=True):
        if hop.kind == "outside":
            link = plan.outside[hop.index].link
            data = float(shares @ [wire_s(scenario, link, size) for size in sizes])
            service[network.number(hop)] += data
            service[network.number(hop, back=True)] += wire_s(scenario, link, 0) / per_ack
            continue
        assert air is not None
        packets = [train(scenario, plan, hop, size) for size in sizes]
        ack = train(scenario, plan, back, 0)
        data_frames = float(shares @ [one.frames for one in packets])
        ack_frames = ack.frames / per_ack
        filled = float(shares @ [one.slots_sent for one in packets]) + ack.slots_sent / per_ack
        exchanges = max(data_frames, ack_frames)
        empty = abs(data_frames - ack_frames)
        service[resources.index(AIR)] += (filled + empty + exchanges * air.overhead) * SLOT_S
        use = AirUse(use.filled + filled, use.slots + filled + empty, use.exchanges + exchanges)
    return service, use


def _lone_s(network: _Network, route: tuple[Hop, ...], size: int, *, at_once: bool) -> float:
    """Return the mean round trip of a lone segment.

    The first packet of a segment that comes from outside meets the cycle of polls at any place. An
    acknowledgement that a member gives at once just misses the answer to the last packet of its data, and one
    that the central gives misses the visit that has just ended, unless it goes on; the jitter of their host
    passes in the meantime.
    """
    scenario, plan, air, _ = network
    jitter_slots = scenario.run.jitter_s / SLOT_S
    seconds, turned = 0.0, False
    for way, bytes_ in ((route, size), (reverse(route), 0)):
        for place, hop in enumerate(way):
            if hop.kind == "outside":
                link = plan.outside[hop.index].link
                seconds += wire_s(scenario, link, bytes_) + link.delay_s + link.jitter_s
                turned = False
                continue
            assert air is not None
            up = hop.target == plan.piconets[hop.index].central
            sent = train(scenario, plan, hop, bytes_)
            others = 0.0 if air.discipline in NO_IDLE_POLLS else air.others_slots
            wait = (2.0 + air.others_slots) / 2.0
            missed = (2.0 + others if up else others) - jitter_slots / 2.0
            if at_once and turned and place == 0 and missed >= jitter_slots / 2.0:
                wait = missed
            failed = sent.frames - len(sent.slots)
            away = air.away_slots(len(sent.slots)) + failed * others
            slots = (
                wait + away + sent.slots_sent + sent.frames - 1.0
            )  # of which each is answered, but the last
            seconds += slots * SLOT_S
            turned = True
    return seconds


def loss_of(scenario: Scenario, plan: Topology, route: tuple[Hop, ...], size: int) -> float:
    """Return the probability that a segment with so many user bytes is lost at random on a way."""
    through = 1.0
    for hop in route:
        if hop.kind == "bluetooth":
            if scenario.link.arq == "none":
                through *= 1.0 - train(scenario, plan, hop, size).loss
            continue
        outside = plan.outside[hop.index]
        link, forth = outside.link, hop.source == outside.source
        loss = link.loss if forth or link.loss_back is None else link.loss_back
        wire_bytes = size + scenario.transport.header_bytes + link.header_bytes
        blocks = -(-wire_bytes // link.loss_block_bytes) if link.loss_block_bytes else 1
        through *= (1.0 - loss) ** blocks
    return 1.0 - through


def wires_lose(plan: Topology, route: tuple[Hop, ...]) -> bool:
    """Whether an outside link on a way, there or back, loses packets at random."""
    links = [plan.outside[hop.index].link for hop in route if hop.kind == "outside"]
    return any(link.loss or link.loss_back for link in links)


def _places(
    network: _Network, route: tuple[Hop, ...], sizes: Sequence[int], shares: Vector, cut: bool
) -> Vector:
    """Return the segments that find place before each resource, beside one on a wire.

    Of buffers that count whole segments, or the packets into which they are cut. The segment that is being
    sent over the air holds half of its places on average.
    """
    scenario, plan = network.scenario, network.plan
    places, control = np.full(len(network.resources), inf), scenario.flow_control
    for hop in route:
        number = network.number(hop)
        if hop.kind == "outside":
            room = inf if cut else float(plan.outside[hop.index].link.buffer_packets)
        elif cut:
            up = hop.target == plan.piconets[hop.index].central
            packets = control.places[up]
            held = float(shares @ [len(train(scenario, plan, hop, size).slots) for size in sizes])
            room = packets / held - 0.5
        else:
            fit = segments_held(scenario, float(shares @ sizes))
            room = fit if fit == inf else floor(fit) - 0.5
        places[number] = min(places[number], room)
    return places


def segments_held(scenario: Scenario, size: float) -> float:
    """Return the segments with so many user bytes that a node has room for, with a part of one."""
    link = scenario.link
    if link.node_buffer_bytes is None:
        return inf
    return link.node_buffer_bytes / (size + scenario.transport.header_bytes + link.l2cap_header_bytes)


def _ports(network: _Network, route: tuple[Hop, ...]) -> tuple[tuple[int, ...] | None, ...]:
    """Return the ends of the hops by which data comes to each resource."""
    ends: dict[int, tuple[int, ...]] = {}
    for hop in route:
        number = network.number(hop)
        ends[number] = (*ends.get(number, ()), hop.source, hop.target)
    return tuple(ends.get(number) for number in range(len(network.resources)))


def _arq_s(network: _Network, route: tuple[Hop, ...], size: int) -> float:
    """Return the variance (s) that ARQ adds to a second of service.

    A packet with error rate e takes a geometric number of cycles, of variance e/(1 - e)^2 around 1/(1 - e):
    for each second of uninterrupted service that is cycle e/(1 - e), by the renewal theorem.
    """
    worst, air = 0.0, network.air
    for hop in route:
        if hop.kind == "bluetooth" and air is not None:
            one = train(network.scenario, network.plan, hop, size)
            cycle = (float(one.slots.mean()) + 1.0 + air.overhead) * SLOT_S
            worst = max(worst, cycle * one.spread)
    return worst
