"""What the radio does to a segment and its acknowledgement, with what that tells of the channels.

Data go up on the sender's link and down on the receiver's, the acknowledgement goes back over both. The two
channels are independent, so each may be looked at on a clock of its own: the hidden state is that of the
sender's link when the segment begins there, and that of the receiver's link when it begins there. A segment
that got through makes a good channel more likely: the matrices of `Crossing` hold the channel's state at the
end of the segment jointly with its fate, by the exact law of a train of packets.

Approximation: an acknowledgement meets the channels as they are likely to be after its data, but its own fate
tells nothing more of them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from btqueue.baseband import SLOT_S, PacketType
from btqueue.channel import TwoStateChannel, packet_error_rate
from btqueue.channel.packet_trains import packet_success_matrix, train_success_matrix
from btqueue.network.coupled.path import Timing
from btqueue.scenario import Scenario

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Crossing:
    """Fates of a segment on C channel states.

    Attributes:
        channel: the channel of one link; None if errors are independent.
        links: links whose state is followed: 0, 1 or 2.
        hops: (N, 2, 2) success matrices of the packets of the data on what one channel decides.
        gaps_s: (N - 1,) least gaps between them.
        second_hop_s: from the one hop to the other, if one channel decides both, one after the other (s).
        own_ack, next_ack: (2,) probability that the acknowledgement gets through, by the state of the
            sender's and the receiver's channel at the end of the data there.
        independent: probability that data and that acknowledgements get through, if errors are independent.
        train_s: from the beginning to the end of the data, with the least gaps (s).
        steps_s: (N - 1,) least times from one packet to the next (s).
    """

    channel: TwoStateChannel | None
    links: int
    hops: Array
    gaps_s: Array
    second_hop_s: float | None
    own_ack: Array
    next_ack: Array
    independent: tuple[float, float]
    train_s: float
    steps_s: Array

    @property
    def states(self) -> int:
        """Number C of channel states."""
        return 1 if self.channel is None else 2**self.links

    def transition(self, elapsed: Array) -> Array:
        """(...) times (s) -> (..., C, C) transition matrices of the channels."""
        if self.channel is None:
            return np.ones((*elapsed.shape, 1, 1))
        one = self.channel.transition(elapsed)
        return one if self.links == 1 else kron(one, one)

    def fates(self, later: Array, ack_refused: float) -> Array:
        """Return (3, ..., C, C) probabilities of the fates, each with the channels' state after the data.

        Args:
            later: (N - 1, ...) by how much the gaps between the packets are longer than the least (s).
            ack_refused: probability that a buffer refuses the acknowledgement.
        """
        if self.channel is None:
            through, back = self.independent
            acked = through * back * (1.0 - ack_refused)
            one = np.ones((*later.shape[1:], 1, 1))
            return np.stack([(1.0 - through) * one, acked * one, (through - acked) * one])
        data = np.broadcast_to(self.hops[0], (*later.shape[1:], 2, 2))
        for gap, more, hop in zip(self.gaps_s, later, self.hops[1:], strict=True):
            data = data @ (self.channel.transition(gap + more) @ hop)
        if self.second_hop_s is not None:
            data = data @ self.channel.transition(self.second_hop_s) @ data
        along = self.channel.transition(self.train_s + later.sum(axis=0))
        if self.links == 1:
            acked = data * (self.own_ack * (1.0 - ack_refused))
            return np.stack([along - data, acked, data - acked])
        through = kron(data, data)
        acked = kron(data * self.own_ack, data * self.next_ack) * (1.0 - ack_refused)
        return np.stack([kron(along, along) - through, acked, through - acked])


def kron(one: Array, other: Array) -> Array:
    """(..., 2, 2) matrices of two links -> (..., 4, 4) of both."""
    both = one[..., :, None, :, None] * other[..., None, :, None, :]
    return both.reshape(*both.shape[:-4], 4, 4)


def crossing(scenario: Scenario, timing: Timing) -> Crossing:
    """Return the fates of a segment whose packets and acknowledgement follow each other in these times."""
    radio, ring = scenario.radio, timing.ring
    data, ack = ([piece.packet for piece in pieces] for pieces in (ring.data, ring.ack))
    gaps = np.array(timing.gaps_s(timing.ring.data))
    steps = gaps + np.array([packet.slots * SLOT_S for packet in data[1:]]) * (2 if timing.lone else 1)
    times = gaps, None
    if radio.model != "gilbert-elliott":
        ones = np.ones(2)
        independent = _independent(scenario, data), _independent(scenario, ack)
        return Crossing(
            None, 0, np.ones((len(data), 2, 2)), *times, ones, ones, independent, timing.train_s, steps
        )
    channel = TwoStateChannel(
        ber_good=radio.ber_good, ber_bad=radio.ber_bad, good_s=radio.good_s, bad_s=radio.bad_s
    )
    back = train_success_matrix(channel, ack, gap_s=timing.gaps_s(timing.ring.ack), bits=radio.bits)
    hops = np.stack([packet_success_matrix(channel, packet, bits=radio.bits) for packet in data])
    one_channel = timing.lone or radio.fading == "per-piconet"
    if one_channel:
        back = back @ channel.transition(timing.ack_between_hops_s) @ back
    own, following = (
        (channel.transition(wait) @ back).sum(axis=1)
        for wait in (timing.ack_on_own_link_s, timing.ack_wait_s)
    )
    end = (1.0, 1.0), timing.data_s if one_channel else timing.train_s, steps
    if timing.lone:  # what goes up comes down in the next frame, beside the packet that goes up then
        return Crossing(channel, 1, hops @ hops, 0.0 * gaps, None, following, following, *end)
    if one_channel and ring.limit < len(data):  # each comes down before the next goes up
        away = np.array([packet.slots * SLOT_S for packet in data[1:]])
        pause = np.maximum(gaps - away, 0.0)
        return Crossing(channel, 1, hops @ hops, pause, None, following, following, *end)
    if one_channel:
        return Crossing(channel, 1, hops, gaps, timing.between_hops_s, following, following, *end)
    return Crossing(channel, 2, hops, *times, own, following, *end)


def _independent(scenario: Scenario, packets: list[PacketType]) -> float:
    """Return the chance that packets get through both hops, with independent bit errors or none."""
    ber = scenario.radio.ber if scenario.radio.model == "constant" else 0.0
    errors = [float(packet_error_rate(packet, ber, bits=scenario.radio.bits)) for packet in packets]
    return float(np.prod([(1.0 - error) ** 2 for error in errors]))
