"""What a bulk transfer meets on its way: the stations of its route, read off a scenario.

A station (here: port) is one direction of a link. Ports of outside links share media, ports of the piconet
share its slots; everything else is a constant delay.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from btqueue.baseband import PACKET_TYPES, PacketType, segment
from btqueue.channel import packet_error_rate
from btqueue.scenario import Scenario
from btqueue.scenario.topology import FlowPlan, Hop, Topology, topology

LIMITS = {"round-robin": 1, "1-limited": 1, "fep": 1, "exhaustive": 2**31}


@dataclass(frozen=True)
class Layout:
    """A segment's sizes: user bytes, bytes of the IP packet, bytes of the L2CAP frame, baseband packets."""

    user_bytes: int
    ip_bytes: int
    frame_bytes: int
    packets: tuple[tuple[PacketType, int], ...]


@dataclass(frozen=True)
class MediumPath:
    """A transmitter that its ports share in turn.

    Attributes:
        bits_per_s: its rate.
        header_bytes: what it adds to a packet.
        ports: number of ports.
    """

    bits_per_s: float
    header_bytes: int
    ports: int


@dataclass(frozen=True)
class OutsidePort:
    """One direction of an outside link.

    Attributes:
        medium, place: the transmitter, and which of its ports this is.
        delay_s: time from the end of the transmission to the far side.
        places: most packets that wait.
        loss: probability that a packet is lost, or each of its blocks of `loss_block_bytes`.
    """

    medium: int
    place: int
    delay_s: float
    places: int
    loss: float
    loss_block_bytes: int | None

    def loss_of(self, wire_bytes: int) -> float:
        """Return the probability that a packet of so many bytes on the wire is lost."""
        blocks = -(-wire_bytes // self.loss_block_bytes) if self.loss_block_bytes else 1
        return 1.0 - (1.0 - self.loss) ** blocks


@dataclass(frozen=True)
class RadioPort:
    """One direction of a radio link: member `place` of the polling cycle, down or up.

    Attributes:
        node: the node at which its packets wait.
        places: most packets in its queue; None: no limit.
        error_rates: probability that a packet of each type arrives damaged.
    """

    place: int
    down: bool
    node: int
    places: int | None
    error_rates: dict[PacketType, float]


Port = OutsidePort | RadioPort


class SessionPath(NamedTuple):
    """What a client and its server say: lengths of the messages (segments), and the pause between (s)."""

    server: int
    request: int
    reply: int
    goodbye: int
    pause_s: float


@dataclass(frozen=True)
class FlowPath:
    """A flow: its ports forth and back, its ends, the sizes of its segments in turn, and its sender.

    The flow of a client has a `session`; that of its server, and a greedy one, has none.
    """

    forth: tuple[int, ...]
    back: tuple[int, ...]
    source: int
    target: int
    layouts: tuple[Layout, ...]
    variant: str
    window: int
    start_s: float
    session: SessionPath | None


@dataclass(frozen=True)
class Paths:
    """All that the flows of a scenario meet.

    Attributes:
        media, ports, flows: as above; `members` is the number of members of the piconet (0: none in use).
        discipline, frames: who is polled next, and most frames of a visit.
        node_bytes: bytes that a node holds below IP; None: no limit.
        ack: sizes of an acknowledgement.
        jitter_s: largest processing delay of a segment at a host.
    """

    media: tuple[MediumPath, ...]
    ports: tuple[Port, ...]
    flows: tuple[FlowPath, ...]
    members: int
    discipline: str
    frames: int
    node_bytes: int | None
    ack: Layout
    jitter_s: float

    @property
    def used_ports(self) -> list[Port]:
        """The ports that data or acknowledgements of some flow cross."""
        numbers = {number for flow in self.flows for number in (*flow.forth, *flow.back)}
        return [self.ports[number] for number in sorted(numbers)]

    def without_limits(self) -> "Paths":
        """Return the same paths with buffers that never overflow."""
        ports = tuple(
            replace(p, places=2**31) if isinstance(p, OutsidePort) else replace(p, places=None)
            for p in self.ports
        )
        return replace(self, ports=ports, node_bytes=None)


def paths_of(scenario: Scenario) -> Paths:
    """Read the paths off a scenario that the model covers."""
    plan = topology(scenario)
    hops = [(plan.route(f.source, f.target), plan.route(f.target, f.source)) for f in plan.flows]
    used = {hop.index for both in hops for way in both for hop in way if hop.kind == "bluetooth"}
    media, outside = _outside(plan)
    ports: list[Port] = list(outside.values())
    places = {key: number for number, key in enumerate(outside)}
    for index in used:
        for key, port in _radio(scenario, plan, index).items():
            places[key] = len(ports)
            ports.append(port)

    def ways(route: tuple[Hop, ...]) -> tuple[int, ...]:
        return tuple(places[hop.source, hop.target] for hop in route)

    return Paths(
        media=media,
        ports=tuple(ports),
        flows=tuple(
            _flow(scenario, number, flow, ways(forth), ways(back))
            for number, (flow, (forth, back)) in enumerate(zip(plan.flows, hops, strict=True))
        ),
        members=sum(len(plan.piconets[index].members) for index in used),
        discipline=scenario.polling.discipline,
        frames=LIMITS.get(scenario.polling.discipline, scenario.polling.limit),
        node_bytes=scenario.link.node_buffer_bytes,
        ack=_layout(scenario, 0),
        jitter_s=scenario.run.jitter_s,
    )


def _flow(
    scenario: Scenario, number: int, flow: FlowPlan, forth: tuple[int, ...], back: tuple[int, ...]
) -> FlowPath:
    def own(name: str, common: object) -> object:
        value = getattr(flow.spec, name, None)
        return common if value is None else value

    traffic, transport = scenario.traffic, scenario.transport
    messages = [int(str(own("message_bytes", traffic.message_bytes)))]
    session = None
    if flow.reverse is not None:
        client = flow.reverse > number
        messages = [traffic.request_bytes, traffic.goodbye_bytes] if client else [traffic.reply_bytes]
        request, reply, goodbye = (
            -(-size // transport.mss_bytes)
            for size in (traffic.request_bytes, traffic.reply_bytes, traffic.goodbye_bytes)
        )
        session = SessionPath(flow.reverse, request, reply, goodbye, traffic.pause_s) if client else None
    sizes = [size for message in messages for size in _pieces(message, transport.mss_bytes)]
    return FlowPath(
        forth,
        back,
        flow.source,
        flow.target,
        tuple(_layout(scenario, size) for size in sizes),
        str(own("variant", transport.variant)),
        int(str(own("receive_window_segments", transport.receive_window_segments))),
        float(str(own("start_s", traffic.start_s))),
        session,
    )


def _pieces(message_bytes: int, most: int) -> list[int]:
    """Return the user bytes of the segments of a message."""
    full, rest = divmod(message_bytes, most)
    return [most] * full + [rest] * (rest > 0)


def _layout(scenario: Scenario, user_bytes: int) -> Layout:
    link = scenario.link
    ip_bytes = user_bytes + scenario.transport.header_bytes
    frame = ip_bytes + link.l2cap_header_bytes
    cut = segment(frame, [PACKET_TYPES[name] for name in link.packets], link.segmentation)
    return Layout(user_bytes, ip_bytes, frame, tuple((piece.packet, piece.carried_bytes) for piece in cut))


def _outside(plan: Topology) -> tuple[tuple[MediumPath, ...], dict[tuple[int, int], OutsidePort]]:
    """Return the media, and the ports of outside links by their two ends."""
    sharing: dict[tuple, list[tuple[int, bool]]] = {}
    for index, outside in enumerate(plan.outside):
        for back in (False, True):
            link = outside.link
            alone = (index,) if link.half_duplex else (index, back)
            sharing.setdefault(alone if link.medium is None else (link.medium,), []).append((index, back))
    media, ports = [], {}
    for members in sharing.values():
        link = plan.outside[members[0][0]].link
        for place, (index, back) in enumerate(members):
            own = plan.outside[index]
            ends = (own.target, own.source) if back else (own.source, own.target)
            loss_back = own.link.loss if own.link.loss_back is None else own.link.loss_back
            ports[ends] = OutsidePort(
                len(media),
                place,
                own.link.delay_s,
                own.link.buffer_packets,
                loss_back if back else own.link.loss,
                own.link.loss_block_bytes,
            )
        media.append(MediumPath(link.rate_kbps * 1000.0, link.header_bytes, len(members)))
    return tuple(media), ports


def _radio(scenario: Scenario, plan: Topology, index: int) -> dict[tuple[int, int], RadioPort]:
    """Return the ports of a piconet by their two ends."""
    piconet = plan.piconets[index]
    control = scenario.flow_control
    ports = {}
    for place, member in enumerate(piconet.members):
        for down in (True, False):
            node, peer = (piconet.central, member) if down else (member, piconet.central)
            places = control.central_buffer_packets if down else control.baseband_packets
            rates = _error_rates(scenario, plan.nodes[member], down)
            ports[node, peer] = RadioPort(place, down, node, places, rates)
    return ports


def _error_rates(scenario: Scenario, member: str, down: bool) -> dict[PacketType, float]:
    """Return the packet error rate of each packet type on one direction of a member's link."""
    radio = scenario.radio
    for link in scenario.radio.links:
        if link.node == member and link.direction in ("both", "down" if down else "up"):
            radio = link.applied_to(radio)
    types = [PACKET_TYPES[name] for name in scenario.link.packets]
    if radio.model == "perfect":
        return dict.fromkeys(types, 0.0)
    if radio.per is not None:
        return dict.fromkeys(types, radio.per)
    return {kind: float(packet_error_rate(kind, radio.ber, bits=radio.bits)) for kind in types}
