"""What the radio does to a segment and to its acknowledgement on the hops of a scatternet or a piconet.

Two hops in each piconet, each on a channel of its own or the two of a piconet on one. Channels that are
alike need not be told apart: the number of bad ones is a Markov chain, so four links have five states and not
sixteen.

Approximations: all links are seen at the same instant, the acknowledgement half a round trip later.
"""

from math import comb
from typing import Protocol

import numpy as np

from btqueue.baseband import SLOT_S, PacketType
from btqueue.channel import TwoStateChannel, packet_error_rate
from btqueue.channel.packet_trains import train_success_matrix
from btqueue.network.ring_piconet.ring import Ring
from btqueue.scenario import Scenario
from btqueue.transport import LossProcess

HOPS = 2
"""Hops in each piconet: up to the central and down from it."""


class Hops(Protocol):
    """What the losses need to know of a network: a scatternet, or a single piconet."""

    @property
    def ring(self) -> Ring:
        """How segments are cut."""
        ...

    @property
    def piconets(self) -> int:
        """How many piconets a segment crosses."""
        ...

    @property
    def idle_period_s(self) -> float:
        """Longest wait between two hops, with nothing else to send (s)."""
        ...


def alike_links(
    data: np.ndarray, ack: np.ndarray, channel: TwoStateChannel | None, count: int
) -> LossProcess:
    """Return the losses over `count` independent links that are alike, by the number of bad ones.

    Losses on one link are given by the state of its channel, good and bad; one entry without a channel, where
    they are independent.
    """
    if channel is None:
        return LossProcess.independent(*(1.0 - float((1.0 - x[0]) ** count) for x in (data, ack)))
    bad = np.arange(count + 1)
    through = [(1.0 - x[0]) ** (count - bad) * (1.0 - x[1]) ** bad for x in (data, ack)]

    def transition(elapsed: float) -> np.ndarray:
        one = channel.transition(elapsed)
        return np.array(
            [np.convolve(_binomial(k, one[1, 1]), _binomial(count - k, one[0, 1])) for k in range(count + 1)]
        )

    return LossProcess(1.0 - through[0], 1.0 - through[1], transition)


def _binomial(trials: int, chance: float) -> np.ndarray:
    k = np.arange(trials + 1)
    return np.array([comb(trials, int(i)) for i in k]) * chance**k * (1.0 - chance) ** (trials - k)


def loss_process(scenario: Scenario, net: Hops, rtt: float) -> LossProcess:
    """Return the losses of a data segment and of its acknowledgement over all hops.

    With `radio.fading = "per-piconet"` a channel decides both hops in its piconet; between them a packet
    waits for the bridge, on average half its idle period.
    """
    data, ack = ([piece.packet for piece in pieces] for pieces in (net.ring.data, net.ring.ack))
    if scenario.radio.model == "constant":
        losses = [
            np.array([1.0 - np.prod([1.0 - _per(scenario, packet) for packet in types])])
            for types in (data, ack)
        ]
        return alike_links(losses[0], losses[1], None, HOPS * net.piconets)
    channel = _channel(scenario)
    matrices = [_crossing(scenario, net, channel, types) for types in (data, ack)]
    later = channel.transition(rtt / 2)
    return alike_links(
        1.0 - matrices[0].sum(axis=1),
        1.0 - later @ matrices[1].sum(axis=1),
        channel,
        _channels(scenario, net),
    )


def packet_loss(scenario: Scenario, net: Hops) -> float:
    """Return the mean share of packets that arrive damaged after all hops."""
    types = [piece.packet for piece in (*net.ring.data, *net.ring.ack)]
    if scenario.radio.model == "constant":
        hops = HOPS * net.piconets
        return float(np.mean([1.0 - (1.0 - _per(scenario, packet)) ** hops for packet in types]))
    channel = _channel(scenario)
    through = [
        channel.stationary @ _crossing(scenario, net, channel, [packet]).sum(axis=1) for packet in types
    ]
    return float(np.mean(1.0 - np.array(through) ** _channels(scenario, net)))


def _channels(scenario: Scenario, net: Hops) -> int:
    return net.piconets if scenario.radio.fading == "per-piconet" else HOPS * net.piconets


def _channel(scenario: Scenario) -> TwoStateChannel:
    radio = scenario.radio
    return TwoStateChannel(
        ber_good=radio.ber_good, ber_bad=radio.ber_bad, good_s=radio.good_s, bad_s=radio.bad_s
    )


def _crossing(scenario: Scenario, net: Hops, channel: TwoStateChannel, types: list[PacketType]) -> np.ndarray:
    """Return the matrix of a train's success on all hops that one channel decides."""
    hop = train_success_matrix(channel, types, gap_s=SLOT_S, bits=scenario.radio.bits)
    if scenario.radio.fading != "per-piconet":
        return hop
    return hop @ channel.transition(net.idle_period_s / 2) @ hop


def _per(scenario: Scenario, packet: PacketType) -> float:
    return float(packet_error_rate(packet, scenario.radio.ber, bits=scenario.radio.bits))
