"""One hop of a chain under repetition: how a segment and its acknowledgement share the air.

A frame is a packet down and one up; the side without data sends POLL or NULL of one slot. A segment goes in
pieces, each repeated until it gets through, ``1/s`` times at success ``s``; its acknowledgement goes the
other way in the frames of the segments that follow. So a segment costs the slots of its own pieces, those of
the acknowledgement's, and one slot for each frame in which the other side is silent. Exact in the mean for
reliable feedback. The type of a piece follows from the bit error rate where packets are adapted (Chen and
others, ICC 2004, section IV): what is left of the segment goes in the shortest packet of the chosen family
that holds it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from btqueue.baseband import PacketType, packet_types, segment
from btqueue.channel import ber_from_link_quality, best_packet, packet_error_rate
from btqueue.scenario import Scenario

LEAST_SUCCESS = 1e-9
"""A packet of less success is given this one: it takes days, and the connection stands still either way."""


class Piece(NamedTuple):
    """A packet that carries a part of a segment: its slots and the probability that it gets through."""

    slots: int
    success: float

    @property
    def spread(self) -> float:
        """Variance of the attempts."""
        return (1.0 - self.success) / self.success**2

    @property
    def lean(self) -> float:
        """Third central moment of the attempts."""
        return (1.0 - self.success) * (2.0 - self.success) / self.success**3


@dataclass(frozen=True)
class HopService:
    """What a segment and its acknowledgement need on one hop: their pieces in order."""

    data: tuple[Piece, ...]
    ack: tuple[Piece, ...]

    @cached_property
    def data_frames(self) -> float:
        """Mean frames with data of a segment, repetitions included."""
        return sum(1.0 / piece.success for piece in self.data)

    @cached_property
    def ack_frames(self) -> float:
        """Mean frames with data of an acknowledgement."""
        return sum(1.0 / piece.success for piece in self.ack)

    @cached_property
    def data_slots(self) -> float:
        """Mean slots of a segment's packets, repetitions included."""
        return sum(piece.slots / piece.success for piece in self.data)

    @cached_property
    def ack_slots(self) -> float:
        """Mean slots of an acknowledgement's packets, repetitions included."""
        return sum(piece.slots / piece.success for piece in self.ack)

    @property
    def carried_slots(self) -> float:
        """Mean slots of both."""
        return self.data_slots + self.ack_slots

    @cached_property
    def segment_slots(self) -> float:
        """Mean slots for a segment and an acknowledgement while neither waits for the other."""
        return self.carried_slots + abs(self.data_frames - self.ack_frames)

    @cached_property
    def alone_slots(self) -> float:
        """Mean slots for a segment and then its acknowledgement, with nothing else to send."""
        return self.carried_slots + self.data_frames + self.ack_frames

    @cached_property
    def variance(self) -> float:
        """Variance of `segment_slots`: attempts of each piece are geometric."""
        return moments(self.data, self.ack)[0]


def moments(
    data: tuple[Piece, ...], ack: tuple[Piece, ...], segments: int = 1, acks: int = 1
) -> tuple[float, float]:
    """Variance and third central moment of the slots of segments and acknowledgements.

    Further attempts of data take their packet and a slot in return; those of acknowledgements take the place
    of that slot.
    """
    found = []
    for power in (2, 3):
        forth = sum((piece.slots + 1) ** power * _moment(piece, power) for piece in data)
        back = sum((piece.slots - 1) ** power * _moment(piece, power) for piece in ack)
        found.append(segments * forth + acks * back)
    return found[0], found[1]


def _moment(piece: Piece, power: int) -> float:
    return piece.spread if power == 2 else piece.lean


def hop_service(scenario: Scenario, ber: float, quality: float) -> HopService:
    """Return the service on a hop whose radio has this bit error rate and link quality."""
    header = scenario.transport.header_bytes + scenario.link.l2cap_header_bytes
    sizes = (min(scenario.transport.mss_bytes, scenario.traffic.message_bytes) + header, header)
    data, ack = (
        tuple(
            Piece(kind.slots, max(success(scenario, kind, ber), LEAST_SUCCESS))
            for kind in kinds_of(scenario, size, ber, quality)
        )
        for size in sizes
    )
    return HopService(data, ack)


def success(scenario: Scenario, kind: PacketType, ber: float) -> float:
    """Probability that a packet of the type gets through at once."""
    if scenario.radio.model == "constant" and scenario.radio.per is not None:
        return 1.0 - scenario.radio.per
    return 1.0 - float(packet_error_rate(kind, ber, bits=scenario.radio.bits))


def kinds_of(scenario: Scenario, size: int, ber: float, quality: float) -> list[PacketType]:
    """Return the types of the packets in which `size` bytes cross."""
    link = scenario.link
    cut = packet_types(link.packets)
    if link.adaptation == "fixed":
        return [fragment.packet for fragment in segment(size, cut, link.segmentation)]
    if link.adaptation_estimate == "link-quality":
        ber = float(ber_from_link_quality(int(quality + 0.5)))
    if link.adaptation == "best":
        return _in_family(best_packet(cut, ber, bits=scenario.radio.bits), cut, size)
    adapted = packet_types(link.adaptation_packets)
    wanted = adapted[sum(threshold <= ber for threshold in link.adaptation_thresholds)]
    return _in_family(wanted, tuple(dict.fromkeys((*cut, *adapted))), size)


def _in_family(wanted: PacketType, types: Sequence[PacketType], size: int) -> list[PacketType]:
    """Cut into packets of the wanted type, the last one the smallest of its family that holds the rest."""
    found = [wanted] * ((size - 1) // wanted.payload_bytes)
    rest = size - len(found) * wanted.payload_bytes
    family = [
        kind
        for kind in types
        if (kind.coded, kind.bits_per_symbol) == (wanted.coded, wanted.bits_per_symbol)
        and rest <= kind.payload_bytes <= wanted.payload_bytes
    ]
    return [*found, min(family, key=lambda kind: kind.payload_bytes)]
