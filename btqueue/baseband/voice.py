"""Synchronous voice links beside data: reserved slots, gaps, and the frames that fit into a gap.

A voice link owns a pair of slots in every period: HV1 in every 2 slots, HV2 in every 4, HV3 in every 6, each
for 64 kbit/s both ways; the shorter periods pay for error correction. The links of a piconet lie side by side
at the start of the period, so data has one gap a period, and a frame (a packet and its answer) that does not
fit into it can never be sent.

Times are in slots. Source: Bluetooth Core Specification, Baseband part (SCO links, HV packets).
"""

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from btqueue.baseband.packets import SLOT_S, PacketType

VOICE_PERIOD_SLOTS: Final = MappingProxyType({"HV1": 2, "HV2": 4, "HV3": 6})
"""Slots from one reserved pair of a voice link to its next (read-only)."""

RESERVED_SLOTS: Final = 2
"""Slots that a voice link owns in each period: one each way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VoiceLinks:
    """The voice links of a piconet, all of one packet type.

    Attributes:
        packet: ``"HV1"``, ``"HV2"`` or ``"HV3"``.
        links: number of links, at least 1.

    Raises:
        ValueError: an unknown packet, or more links than the period has room for.
    """

    packet: str
    links: int = 1

    def __post_init__(self) -> None:
        if self.packet not in VOICE_PERIOD_SLOTS:
            raise ValueError(f"packet must be one of {', '.join(VOICE_PERIOD_SLOTS)}, not {self.packet!r}")
        most = VOICE_PERIOD_SLOTS[self.packet] // RESERVED_SLOTS
        if int(self.links) != self.links or not 1 <= self.links <= most:
            raise ValueError(
                f"links must be a whole number within 1..{most} of {self.packet}, not {self.links}"
            )

    @property
    def period(self) -> int:
        """Slots from one reservation to the next."""
        return VOICE_PERIOD_SLOTS[self.packet]

    @property
    def reserved(self) -> int:
        """Slots of the period that voice takes."""
        return RESERVED_SLOTS * self.links

    @property
    def gap(self) -> int:
        """Slots of the period left in one piece."""
        return self.period - self.reserved

    def frames(self, slots: int) -> int:
        """Frames of `slots` slots, the answer included, that fit into one gap."""
        return self.gap // _frame(slots)


def data_capacity_kbps(
    forward: PacketType, reverse: PacketType, voice: VoiceLinks | None
) -> tuple[float, float]:
    """User rates forward and reverse, back to back without errors, in kbit/s; 0 for frames that never fit."""
    frame = forward.slots + reverse.slots
    frames_a_slot = 1.0 / frame if voice is None else voice.frames(frame) / voice.period
    per_slot = frames_a_slot / (SLOT_S * 1e3)
    return forward.payload_bits * per_slot, reverse.payload_bits * per_slot


def _frame(slots: int) -> int:
    if int(slots) != slots or slots < 1:
        raise ValueError(f"slots must be a whole number of at least 1, not {slots}")
    return int(slots)
