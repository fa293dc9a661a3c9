"""What the models need to know of a ring piconet: how segments are cut, priced and sent."""

from dataclasses import dataclass

from btqueue.baseband import PACKET_TYPES, SLOT_S, TCP_PDU_OVERHEAD_BYTES, PacketType, segment
from btqueue.scenario import Scenario

LEAST_RATE = 1e-100
"""Bytes a second below which tokens never come, and times until they do would be infinite."""


@dataclass(frozen=True)
class Piece:
    """One baseband packet of a segment: its type and its price in tokens (bytes)."""

    packet: PacketType
    price_bytes: int


@dataclass(frozen=True)
class Ring:
    """A ring piconet: n peripherals, each sending data to the next and acknowledgements to the one before.

    Attributes:
        peripherals: number n of peripherals, each the source of one flow.
        limit: most frames a visit (M).
        data, ack: packets of a data segment and of an acknowledgement.
        buffer, baseband: places S and L, in packets.
        bucket_bytes: depth of the token bucket.
        token_rate: tokens in bytes/s; infinite without flow control.
        whole_segments: a full S refuses the whole segment.
        jitter_s: largest processing delay of a segment at its sender.
    """

    peripherals: int
    limit: int
    data: tuple[Piece, ...]
    ack: tuple[Piece, ...]
    buffer: int
    baseband: int
    bucket_bytes: int
    token_rate: float
    whole_segments: bool
    jitter_s: float

    @property
    def data_slots(self) -> int:
        """Slots of a data segment on one hop."""
        return sum(piece.packet.slots for piece in self.data)

    @property
    def ack_slots(self) -> int:
        """Slots of an acknowledgement on one hop."""
        return sum(piece.packet.slots for piece in self.ack)

    @property
    def exchange_slots(self) -> int:
        """Slots of a data segment and its acknowledgement on both hops (52 in the thesis)."""
        return 2 * (self.data_slots + self.ack_slots)

    @property
    def exchange_packets(self) -> int:
        """Packets of a data segment and its acknowledgement on one hop."""
        return len(self.data) + len(self.ack)

    @property
    def exchange_bytes(self) -> int:
        """Tokens for a data segment and an acknowledgement."""
        return sum(piece.price_bytes for piece in (*self.data, *self.ack))

    @property
    def air_capacity(self) -> float:
        """Segments per second and flow that the slots can carry."""
        return 1.0 / (self.peripherals * self.exchange_slots * SLOT_S)

    @property
    def token_capacity(self) -> float:
        """Segments per second and flow that the tokens pay for."""
        return self.token_rate / self.exchange_bytes


def ring_of(scenario: Scenario) -> Ring:
    """Read the ring off a scenario that the engines can run."""
    types = [PACKET_TYPES[name] for name in scenario.link.packets]
    control = scenario.flow_control

    def cut(size: int) -> tuple[Piece, ...]:
        fragments = segment(size, types, scenario.link.segmentation)
        full = control.charge == "payload"
        return tuple(Piece(f.packet, f.packet.payload_bytes if full else f.carried_bytes) for f in fragments)

    limits = {"e-limited": scenario.polling.limit, "1-limited": 1, "exhaustive": 2**31}
    return Ring(
        peripherals=scenario.network.peripherals,
        limit=limits[scenario.polling.discipline],
        data=cut(scenario.traffic.message_bytes + TCP_PDU_OVERHEAD_BYTES),
        ack=cut(TCP_PDU_OVERHEAD_BYTES),
        buffer=control.buffer_packets,
        baseband=control.baseband_packets,
        bucket_bytes=control.bucket_bytes,
        token_rate=max(control.token_rate_kbps * 125.0, LEAST_RATE) if control.enabled else float("inf"),
        whole_segments=control.drop == "segment",
        jitter_s=scenario.run.jitter_s,
    )
