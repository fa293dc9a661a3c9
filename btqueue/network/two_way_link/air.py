"""The air of one link with ARQ: what a segment and an acknowledgement cost, read off a scenario.

A packet is repeated in its sender's next turn until it arrives, so its number of frames is geometric. A frame
lasts its own packet and what comes the other way: the one-slot POLL or NULL, or a packet too.
"""

from dataclasses import dataclass
from functools import cached_property

from btqueue.baseband import PACKET_TYPES, SLOT_S, segment
from btqueue.channel import packet_error_rate
from btqueue.scenario import Scenario


@dataclass(frozen=True)
class Train:
    """The packets of a segment, or of an acknowledgement: slots and error rate of each."""

    packets: tuple[tuple[int, float], ...]

    @property
    def frames(self) -> float:
        """Mean frames until all have arrived."""
        return sum(1.0 / (1.0 - error) for _, error in self.packets)

    @property
    def slots(self) -> float:
        """Mean slots that they fill, repetitions included."""
        return sum(slots / (1.0 - error) for slots, error in self.packets)

    def time(self, other: float = 1.0) -> float:
        """Mean time (slots) where a frame's other half has so many slots."""
        return self.slots + other * self.frames

    def variance(self, other: float = 1.0) -> float:
        """Variance (slots squared) of that time."""
        return sum((slots + other) ** 2 * error / (1.0 - error) ** 2 for slots, error in self.packets)

    def least(self, other: float = 1.0) -> float:
        """Time (slots) without an error."""
        return sum(slots + other for slots, _ in self.packets)


@dataclass(frozen=True)
class Air:
    """A link and its two hosts.

    Attributes:
        data, ack: the packets of a segment and of a separate acknowledgement, the same both ways.
        layers_s: time of a segment in the layers of both hosts, from TCP to TCP.
    """

    data: Train
    ack: Train
    layers_s: float

    @cached_property
    def mean_packet(self) -> float:
        """Mean slots of a data packet on the air."""
        return self.data.slots / self.data.frames

    def alone(self, acks: float) -> float:
        """Mean time (s) of a segment with nothing but `acks` acknowledgements a segment the other way.

        An acknowledgement takes the place of the one-slot NULL: it lengthens the frames that it is in.
        """
        return (self.data.time() + acks * (self.ack.slots - self.ack.frames)) * SLOT_S

    def both(self, acks: float) -> float:
        """Mean time (s) of a segment each way, both directions busy: all slots carry packets."""
        return 2.0 * (self.data.slots + acks * self.ack.slots) * SLOT_S

    @property
    def turn_s(self) -> float:
        """Mean time (s) until an idle link begins a packet: half a frame of POLL and NULL."""
        return SLOT_S

    def return_s(self) -> float:
        """Mean time (s) of a separate acknowledgement that finds the link free, layers included."""
        return self.layers_s + self.turn_s + (self.ack.time() - 1.0) * SLOT_S


def air_of(scenario: Scenario) -> Air:
    """Read the link off a scenario that the model covers."""
    transport, link = scenario.transport, scenario.link
    per_layer = transport.tcp_delay_s + transport.ip_delay_s + link.l2cap_delay_s + link.baseband_delay_s
    size = min(scenario.traffic.message_bytes, transport.mss_bytes)
    return Air(_train(scenario, size), _train(scenario, 0), 2.0 * per_layer)


def _train(scenario: Scenario, user_bytes: int) -> Train:
    frame = user_bytes + scenario.transport.header_bytes + scenario.link.l2cap_header_bytes
    types = [PACKET_TYPES[name] for name in scenario.link.packets]
    radio = scenario.radio

    def error(kind) -> float:
        if radio.model == "perfect":
            return 0.0
        if radio.per is not None:
            return radio.per
        return float(packet_error_rate(kind, radio.ber, bits=radio.bits))

    return Train(
        tuple((p.packet.slots, error(p.packet)) for p in segment(frame, types, scenario.link.segmentation))
    )
