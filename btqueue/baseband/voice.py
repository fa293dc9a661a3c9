"""Synchronous voice links beside data: reserved slots, the gaps they leave, and what fits into a gap.

A voice link owns a pair of slots in every period: HV1 in every 2 slots, HV2 in every 4, HV3 in every 6, each
for 64 kbit/s both ways; the shorter periods pay for error correction. The links of a piconet lie side by side
at the start of the period, so data has one gap a period, and a frame (a packet and its answer) that does not
fit into it can never be sent.

Times are in slots. Source: Bluetooth Core Specification, Baseband part (SCO links, HV packets).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

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
        """Frames of so many slots, the answer included, that fit into one gap."""
        return self.gap // _frame(slots)


def fits(forward: PacketType, voice: VoiceLinks | None, *, reply_slots: int = 1) -> bool:
    """Whether a packet and an answer of ``reply_slots`` fit into a gap; they always do without voice."""
    return voice is None or voice.frames(forward.slots + reply_slots) > 0


def fitting_types(
    types: Iterable[PacketType], voice: VoiceLinks | None, *, reply_slots: int = 1
) -> tuple[PacketType, ...]:
    """Those of the packet types that fit beside the voice links, in the order given."""
    return tuple(packet for packet in types if fits(packet, voice, reply_slots=reply_slots))


def data_capacity_kbps(
    forward: PacketType, reverse: PacketType, voice: VoiceLinks | None
) -> tuple[float, float]:
    """User rates forward and reverse, back to back without errors, in kbit/s; 0 for frames that never fit."""
    frame = forward.slots + reverse.slots
    frames_a_slot = 1.0 / frame if voice is None else voice.frames(frame) / voice.period
    per_slot = frames_a_slot / (SLOT_S * 1e3)
    return forward.payload_bits * per_slot, reverse.payload_bits * per_slot


def wait_for_gap(voice: VoiceLinks, slots: int) -> NDArray[np.float64]:
    """Law of the slots that a frame of ``slots`` has to wait, ready at the start of a random slot.

    Returns:
        Vector of length ``period + 1``, indexed by slots.

    Raises:
        ValueError: such a frame never fits, or ``slots`` is not positive.
    """
    _require_fit(voice, slots)
    law = np.zeros(voice.period + 1)
    for phase in range(voice.period):
        fits_here = phase >= voice.reserved and phase + slots <= voice.period
        wait = 0 if fits_here else (voice.reserved - phase) % voice.period
        law[wait] += 1.0 / voice.period
    return law


def vacations(voice: VoiceLinks, slots: int) -> NDArray[np.float64]:
    """What voice leaves to data as a server with vacations: a visit a period, ``frames`` services at most.

    Row ``j`` is the law of the time from the end of the ``j``-th frame of a gap to the start of the next gap,
    a constant: ``period - j * slots``. A visit that finds the queue empty ends for this period; a server that
    looks again within the gap does better, and is exact as a queue served at `open_positions`.

    Returns:
        Shape ``(frames + 1, period + 1)``, rows indexed by frames served, columns by slots.

    Raises:
        ValueError: such a frame never fits, or ``slots`` is not positive.
    """
    _require_fit(voice, slots)
    served = np.arange(voice.frames(slots) + 1)
    laws = np.zeros((served.size, voice.period + 1))
    laws[served, voice.period - served * slots] = 1.0
    return laws


def open_positions(voice: VoiceLinks, slots: int) -> tuple[bool, ...]:
    """The period cut into pieces of ``slots``: False where voice has them, True where a frame can be sent.

    Raises:
        ValueError: reservation or gap is not a multiple of ``slots``, or the gap is empty.
    """
    _require_fit(voice, slots)
    if voice.reserved % slots or voice.gap % slots:
        raise ValueError(
            f"slots must divide {voice.reserved} reserved and {voice.gap} free slots, not {slots}"
        )
    return (False,) * (voice.reserved // slots) + (True,) * (voice.gap // slots)


def _frame(slots: int) -> int:
    if int(slots) != slots or slots < 1:
        raise ValueError(f"slots must be a whole number of at least 1, not {slots}")
    return int(slots)


def _require_fit(voice: VoiceLinks, slots: int) -> None:
    if voice.frames(slots) == 0:
        raise ValueError(f"a frame of {slots} slots never fits into a gap of {voice.gap}")
