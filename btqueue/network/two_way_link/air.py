"""The air of one link with ARQ: what a segment and an acknowledgement cost, read off a scenario.

A frame lasts its own packet and what comes the other way: the one-slot POLL or NULL, or a packet too.
"""

from dataclasses import dataclass
from functools import cached_property

from btqueue.baseband import SLOT_S
from btqueue.network.repetition import Train, layers_s, segment_bytes, train_of
from btqueue.scenario import Scenario


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
    ber = scenario.radio.ber if scenario.radio.model == "constant" else 0.0
    data, ack = (train_of(scenario, size, ber) for size in (segment_bytes(scenario), 0))
    return Air(data, ack, layers_s(scenario))
