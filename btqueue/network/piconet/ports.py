"""What the model needs to know of a piconet: its ports, its flows, and the trains of packets that they send.

A port is one direction of the link to a station, that is a member of the piconet. A train is the packets of a
segment, or of an acknowledgement. The data of a flow cross one port if the central is at one end, and two
between two stations; its acknowledgements cross the opposite ports on their way back.
"""

from dataclasses import dataclass
from typing import NamedTuple

from btqueue.baseband import PACKET_TYPES, SLOT_S, PacketType, segment
from btqueue.baseband.voice import VoiceLinks
from btqueue.channel import spared_by_neighbour
from btqueue.network.piconet.covers import fills_gaps
from btqueue.network.piconet.disciplines import limit_of, visits_of
from btqueue.network.piconet.lone import Visits
from btqueue.network.repetition import error_rate as of_packet
from btqueue.scenario import Scenario
from btqueue.scenario.radio import Radio
from btqueue.scenario.topology import FlowPlan, PiconetPlan, topology

DOWN, UP = range(2)
SHORTEST_PERIOD_S = 1e-9
"""Period of a radio's states below which nothing changes any more: packets take a thousand times as long."""
LAYERS = (
    ("transport", "tcp_delay_s"),
    ("transport", "ip_delay_s"),
    ("link", "l2cap_delay_s"),
    ("link", "baseband_delay_s"),
)
"""Delays of a segment at each end, by table and name."""


class Port(NamedTuple):
    """One direction of the link to a station."""

    station: int
    way: int


@dataclass(frozen=True)
class Train:
    """The packets of a segment.

    Attributes:
        packets: their types.
        charges: bytes that a token bucket charges for each.
    """

    packets: tuple[PacketType, ...]
    charges: tuple[int, ...]

    @property
    def tokens(self) -> int:
        """Bytes that a token bucket charges for all."""
        return sum(self.charges)


class Sender(NamedTuple):
    """One flow.

    Attributes:
        data: ports that its data cross, in turn.
        rate: messages a second; infinite for a greedy source.
        own_load: whether the load is given for this flow alone.
        law: of the source.
        window: receive window (segments).
        vegas: whether TCP Vegas holds the window.
    """

    data: tuple[Port, ...]
    rate: float
    own_load: bool = False
    law: str = "poisson"
    window: int = 8
    vegas: bool = False

    @property
    def port(self) -> Port:
        """The first port of the data, where they wait for tokens and for each other."""
        return self.data[0]

    @property
    def back(self) -> tuple[Port, ...]:
        """The ports of the acknowledgements, in turn."""
        return tuple(Port(port.station, 1 - port.way) for port in reversed(self.data))


@dataclass(frozen=True)
class Piconet:
    """A piconet of n stations.

    Attributes:
        stations: number n.
        limit: most frames of a visit (M).
        most_transmissions: of a packet; 1 without ARQ, infinite if it is repeated for ever.
        segment_bytes: of a segment, without headers.
        segments: of a message.
        data, ack: trains of a segment and of its acknowledgement; no `ack` without a transport protocol.
        senders: the flows.
        places: packets that may wait in the queue of a port, by way; infinite without limit.
        buffer: packets that may wait for tokens (S).
        bucket_bytes: depth of a token bucket.
        token_rate: bytes a second; infinite without flow control.
        jitter_s: largest random processing delay of a segment at its sender (s).
        layers_s: that the layers of both hosts hold a segment (s).
        ack_clock: what ends the wait of a delayed acknowledgement; empty if there is none.
        ack_every: segments of an acknowledgement.
        interferers: fully loaded piconets nearby.
        on_air: whether errors can hit all bits on the air, or payloads only.
        worst_error: largest error rate of a packet.
        fading: what has two states under endless repetition, "links" or the "piconet"; "tries" if a packet is
            given up in either state; empty if the radio has one.
        whole: whether the central puts a segment together before it passes it on.
        fills_gaps: whether the longest packet and its answer take all that voice links leave in a row.
        slot_s: mean time from one slot that voice links leave to the next (s).
        visits: what the polling discipline makes of an idle piconet.
    """

    stations: int
    limit: int
    most_transmissions: float
    segment_bytes: float
    segments: int
    data: Train
    ack: Train | None
    senders: tuple[Sender, ...]
    places: tuple[float, float]
    buffer: int
    bucket_bytes: int
    token_rate: float
    jitter_s: float
    layers_s: float
    ack_clock: str
    ack_every: int
    interferers: int
    on_air: bool
    worst_error: float
    fading: str
    whole: bool
    slot_s: float
    fills_gaps: bool
    visits: Visits


def load_key(sender: Sender, flow: int) -> str:
    """Return the key of the load of a flow, counted from 0; keys count flows from 1."""
    return f"network.flows[{flow + 1}].load_kbps" if sender.own_load else "traffic.load_kbps"


def train_of(scenario: Scenario, size_bytes: int) -> Train:
    """Return the packets of so many bytes with their headers, and the tokens that they take."""
    pieces = segment(
        size_bytes, [PACKET_TYPES[name] for name in scenario.link.packets], scenario.link.segmentation
    )
    full = scenario.flow_control.charge == "payload"
    return Train(
        tuple(piece.packet for piece in pieces),
        tuple(piece.packet.payload_bytes if full else piece.carried_bytes for piece in pieces),
    )


def piconet_of(scenario: Scenario) -> Piconet:
    """Read the piconet off a scenario that the model covers."""
    link, control, traffic, transport = (
        scenario.link, scenario.flow_control, scenario.traffic, scenario.transport,
    )  # fmt: skip
    types = [PACKET_TYPES[name] for name in link.packets]
    headers = link.l2cap_header_bytes + transport.header_bytes
    plan = topology(scenario)
    (piconet,) = plan.piconets
    stations, limit = len(piconet.members), limit_of(scenario.polling)
    segments = -(-traffic.message_bytes // transport.mss_bytes) if transport.protocol == "tcp" else 1
    data = train_of(scenario, -(-traffic.message_bytes // segments) + headers)
    frames = sum(packet.slots + 1.0 for packet in data.packets)
    return Piconet(
        stations=stations,
        limit=limit,
        most_transmissions=_most_transmissions(link.arq),
        segment_bytes=traffic.message_bytes / segments,
        segments=segments,
        data=data,
        ack=train_of(scenario, headers) if transport.protocol == "tcp" else None,
        senders=tuple(_sender(scenario, piconet, flow) for flow in plan.flows),
        places=control.places,
        buffer=control.buffer_packets,
        bucket_bytes=control.bucket_bytes,
        token_rate=control.token_rate_kbps * 125.0 if control.enabled else float("inf"),
        jitter_s=scenario.run.jitter_s,
        layers_s=sum(2.0 * getattr(getattr(scenario, table), name) for table, name in LAYERS),
        ack_clock=transport.ack_clock if transport.delayed_ack else "",
        ack_every=transport.ack_every_segments if transport.delayed_ack else 1,
        interferers=scenario.radio.interferers,
        on_air=scenario.radio.bits == "on-air",
        worst_error=max(error_rate(scenario, packet) for packet in types),
        fading=_fading(scenario, len(piconet.members)),
        whole=scenario.network.relay == "segment",
        slot_s=_slot_s(scenario),
        fills_gaps=fills_gaps(scenario),
        visits=visits_of(scenario.polling, stations, len(plan.flows), frames),
    )


def _slot_s(scenario: Scenario) -> float:
    """Return the mean time of a slot.

    Beside voice links data have a gap in each of their periods. Frames of packets of one slot fill it without
    rest, so that the piconet is one whose slots are longer: in the long run exactly, and for each wait on
    average.
    """
    voice = scenario.voice
    if voice.packet == "none":
        return SLOT_S
    links = VoiceLinks(packet=voice.packet, links=voice.links)
    return SLOT_S * links.period / links.gap


def _sender(scenario: Scenario, piconet: PiconetPlan, flow: FlowPlan) -> Sender:
    own = scenario.of_flow(flow.spec)
    traffic, transport = own.traffic, own.transport
    ends = ((flow.source, UP), (flow.target, DOWN))
    data = tuple(Port(piconet.members.index(node), way) for node, way in ends if node != piconet.central)
    source, window = traffic.source, transport.receive_window_segments
    rate = float("inf") if source == "greedy" else traffic.load_kbps * 1000 / (8 * traffic.message_bytes)
    own_load = flow.spec is not None and flow.spec.load_kbps is not None
    return Sender(data, rate, own_load, source, window, transport.variant == "vegas")


def _fading(scenario: Scenario, stations: int) -> str:
    radio = scenario.radio
    if radio.model not in ("gilbert-elliott", "alternating") or radio.ber_good == radio.ber_bad:
        return ""
    if min(stays(radio)) == 0.0:
        return ""
    if scenario.link.arq != "unlimited":
        return "tries"
    at_once = (
        radio.fading == "per-piconet" or radio.model == "alternating"
    )  # its schedule is that of all links
    return "piconet" if at_once and stations > 1 else "links"


def _most_transmissions(arq: str | int) -> float:
    return {"none": 1.0, "unlimited": float("inf")}[arq] if isinstance(arq, str) else float(arq)


def error_rate(scenario: Scenario, packet: PacketType) -> float:
    """Return the long-run share of the transmissions of a packet that fail on one hop."""
    radio = scenario.radio
    spared = float(spared_by_neighbour(packet.air_time_us)) ** radio.interferers
    return 1.0 - (1.0 - _of_the_channel(radio, packet)) * spared


def _of_the_channel(radio: Radio, packet: PacketType) -> float:
    if radio.model in ("perfect", "constant"):
        return of_packet(radio, packet, radio.ber)
    good, bad = (of_packet(radio, packet, ber) for ber in (radio.ber_good, radio.ber_bad))
    good_s, bad_s = stays(radio)
    return (good * good_s + bad * bad_s) / (good_s + bad_s)


def stays(radio: Radio) -> tuple[float, float]:
    """Return the mean times in the good and in the bad state (s), as of a radio whose stays are exponential.

    Fixed stays of y let as much pile up as exponential ones of mean y / 2: E[y^2] / (2 E[y]) decides.
    """
    if radio.model == "alternating":
        half_s = max(radio.period_s, SHORTEST_PERIOD_S) / 2.0
        return half_s, half_s
    return radio.good_s, radio.bad_s
