"""Packets that are repeated until they arrive: what a segment costs on a link with ARQ.

A packet goes again in its sender's next turn, so its number of frames is geometric, and that of a segment a
sum of such numbers: means and variances are exact. The types of its packets follow from the bit error rate
where they are adapted (Chen and others, ICC 2004, section IV).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from btqueue.baseband import PacketType, packet_types, segment
from btqueue.channel import ber_from_link_quality, best_packet, packet_error_rate
from btqueue.scenario import Scenario
from btqueue.scenario.radio import Radio

HARDLY_EVER = 1e-9
"""A packet of less success is given this one: it takes days, and the connection stands still either way."""


@dataclass(frozen=True)
class Train:
    """The packets of a segment, or of an acknowledgement: slots and error rate of each."""

    packets: tuple[tuple[int, float], ...]

    @cached_property
    def frames(self) -> float:
        """Mean frames until all have arrived."""
        return sum(1.0 / (1.0 - error) for _, error in self.packets)

    @cached_property
    def slots(self) -> float:
        """Mean slots that they fill, repetitions included."""
        return sum(slots / (1.0 - error) for slots, error in self.packets)

    @cached_property
    def spread(self) -> float:
        """Variance of the frames."""
        return sum(error / (1.0 - error) ** 2 for _, error in self.packets)

    def time(self, other: float = 1.0) -> float:
        """Mean time (slots) where a frame's other half has so many slots."""
        return self.slots + other * self.frames

    def variance(self, other: float = 1.0) -> float:
        """Variance (slots squared) of that time."""
        return sum((slots + other) ** 2 * error / (1.0 - error) ** 2 for slots, error in self.packets)

    def least(self, other: float = 1.0) -> float:
        """Time (slots) without an error."""
        return sum(slots + other for slots, _ in self.packets)


def train_of(scenario: Scenario, user_bytes: int, ber: float, quality: float = 255.0) -> Train:
    """Return the packets of so many bytes of user data at this bit error rate and link quality."""
    size = user_bytes + scenario.transport.header_bytes + scenario.link.l2cap_header_bytes
    most = 1.0 - HARDLY_EVER
    return Train(
        tuple(
            (kind.slots, min(error_rate(scenario.radio, kind, ber), most))
            for kind in kinds_of(scenario, size, ber, quality)
        )
    )


def segment_bytes(scenario: Scenario) -> int:
    """Return the user data of a segment."""
    return min(scenario.transport.mss_bytes, scenario.traffic.message_bytes)


def layers_s(scenario: Scenario) -> float:
    """Return the time (s) of a segment in the layers of both hosts, from TCP to TCP."""
    transport, link = scenario.transport, scenario.link
    return 2.0 * (transport.tcp_delay_s + transport.ip_delay_s + link.l2cap_delay_s + link.baseband_delay_s)


def error_rate(radio: Radio, kind: PacketType, ber: float) -> float:
    """Return the share of the transmissions of a packet that fail at this bit error rate."""
    if radio.model == "perfect":
        return 0.0
    if radio.model == "constant" and radio.per is not None:
        return radio.per
    return float(packet_error_rate(kind, ber, bits=radio.bits))


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
