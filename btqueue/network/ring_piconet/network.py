"""What the model needs to know of a ring piconet: how segments are sent, radio errors and voice."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from btqueue.baseband.voice import VoiceLinks
from btqueue.channel import packet_error_rate
from btqueue.network.ring_piconet.ring import Ring, ring_of
from btqueue.scenario import Scenario

EMPTY_FRAME_SLOTS = 2
"""POLL and NULL."""


class RadioErrors(NamedTuple):
    """How links damage packets; `btqueue.channel.TwoStateChannel` has the formulas.

    Attributes:
        lossy: whether they do.
        two_states: whether a channel has a good and a bad state, or one.
        hazards: -log(1 - packet error rate), [state, data or acknowledgement, packet of the segment].
        chances: packet error rates, likewise.
        stays_s: mean stays in the states (s).
        relaxation_rate: rate at which a channel forgets its state (1/s).
        bad_share: long-run share of the bad state.
        shared: all links have one channel.
    """

    lossy: bool
    two_states: bool
    hazards: np.ndarray
    chances: np.ndarray
    stays_s: np.ndarray
    relaxation_rate: float
    bad_share: float
    shared: bool


class VoiceSlots(NamedTuple):
    """Slots from one reservation to the next, and reserved ones at the beginning; an empty frame without."""

    period: int = EMPTY_FRAME_SLOTS
    reserved: int = 0


@dataclass(frozen=True)
class RingNetwork:
    """One piconet of n peripherals; the k-th sends to the next one, through the central.

    Attributes:
        ring: how segments are cut, priced, buffered and polled.
        radio: how links damage packets.
        voice: which slots are reserved.
    """

    ring: Ring
    radio: RadioErrors
    voice: VoiceSlots

    @property
    def flows(self) -> int:
        """Flows of the network: every peripheral is the source of one."""
        return self.ring.peripherals


def network_of(scenario: Scenario) -> RingNetwork:
    """Read the network off a scenario that the model covers."""
    ring = ring_of(scenario)
    return RingNetwork(ring, radio_of(scenario, ring), voice_of(scenario))


def voice_of(scenario: Scenario) -> VoiceSlots:
    """Read the reserved slots off a scenario."""
    if scenario.voice.packet == "none":
        return VoiceSlots()
    links = VoiceLinks(packet=scenario.voice.packet, links=scenario.voice.links)
    return VoiceSlots(links.period, links.reserved)


def radio_of(scenario: Scenario, ring: Ring) -> RadioErrors:
    """Read the radio errors off a scenario."""
    radio = scenario.radio
    two_states = radio.model == "gilbert-elliott"
    rate = radio.ber if radio.model == "constant" else 0.0
    rates = np.array([radio.ber_good, radio.ber_bad] if two_states else [rate, rate])
    hazards = np.zeros((2, 2, max(len(ring.data), len(ring.ack))))
    for kind, pieces in enumerate((ring.data, ring.ack)):
        for place, piece in enumerate(pieces):
            with np.errstate(divide="ignore"):  # a packet that never gets through: an infinite hazard
                hazards[:, kind, place] = -np.log(
                    1.0 - packet_error_rate(piece.packet, rates, bits=radio.bits)
                )
    return RadioErrors(
        lossy=bool((hazards > 0.0).any()),
        two_states=two_states,
        hazards=hazards,
        chances=1.0 - np.exp(-hazards),
        stays_s=np.array([radio.good_s, radio.bad_s]),
        relaxation_rate=1.0 / radio.good_s + 1.0 / radio.bad_s if two_states else 0.0,
        bad_share=radio.bad_s / (radio.good_s + radio.bad_s) if two_states else 0.0,
        shared=radio.fading == "per-piconet",
    )
