"""The ACL packet table of the Bluetooth baseband: sizes, slots, coding and time on air.

Every packet opens with a 72-bit access code and an 18-bit header sent three times (54 bits), both at the
basic rate of one bit per microsecond.  The body that follows is payload header, user payload and CRC; DM
types protect it with the shortened Hamming (15,10) code, the enhanced-rate types send it at two or three bits
per symbol.

Source: Bluetooth Core Specification, Baseband part: v1.2 for the basic rate, v2.0 + EDR for 2-DHx and 3-DHx.
"""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

SLOT_NS: Final = 625_000
"""Length of a slot in nanoseconds (exact integer clock of the simulator)."""

SLOT_S: Final = SLOT_NS / 1e9
"""Length of a slot in seconds."""

SYNC_WORD_BITS: Final = 64
"""Part of the access code that the receiver correlates with."""

HEADER_BITS: Final = 18
"""Packet header before repetition: address, type, flow, ARQN, SEQN and HEC."""

CRC_BYTES: Final = 2
"""Length of the payload's cyclic redundancy check."""

FEC_BLOCK_BITS: Final = 15
"""Coded length of a block of the 2/3-rate code."""

FEC_INFORMATION_BITS: Final = 10
"""Information bits in a block of the 2/3-rate code."""

PREFIX_US: Final = 4 + SYNC_WORD_BITS + 4 + 3 * HEADER_BITS
"""Preamble, sync word and trailer, then the header, each of its bits three times (us)."""

ENHANCED_US: Final = 5 + 11 + 2
"""Guard time and synchronisation before an enhanced-rate body, and two trailer symbols after it (us)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PacketType:
    """One ACL data packet type of the baseband.

    Attributes:
        name: name in the specification, such as ``"DH5"`` or ``"2-DH3"``.
        slots: slots occupied, 1, 3 or 5.
        payload_bytes: most user bytes that one packet carries.
        payload_header_bytes: payload header, 1 byte in one-slot basic-rate types, 2 in others, 0 in voice.
        coded: whether the body is protected by the 2/3-rate (15,10) code.
        bits_per_symbol: 1 for GFSK (basic rate), 2 for pi/4-DQPSK, 3 for 8DPSK.
    """

    name: str
    slots: int
    payload_bytes: int
    payload_header_bytes: int
    coded: bool = False
    bits_per_symbol: int = 1

    @property
    def payload_bits(self) -> int:
        """User payload in bits."""
        return 8 * self.payload_bytes

    @property
    def body_bits(self) -> int:
        """Payload header, user payload and CRC in bits, before coding."""
        return 8 * (self.payload_header_bytes + self.payload_bytes + CRC_BYTES)

    @property
    def payload_fec_blocks(self) -> int:
        """Blocks of the 2/3-rate code that the user payload alone fills (0 for an uncoded type)."""
        return _blocks(self.payload_bits) if self.coded else 0

    @property
    def body_fec_blocks(self) -> int:
        """Blocks of the 2/3-rate code in the whole body (0 for an uncoded type)."""
        return _blocks(self.body_bits) if self.coded else 0

    @property
    def body_symbols(self) -> int:
        """Symbols, and microseconds, that the body takes on air."""
        bits = self.body_fec_blocks * FEC_BLOCK_BITS if self.coded else self.body_bits
        return -(-bits // self.bits_per_symbol)

    @property
    def air_time_us(self) -> int:
        """Microseconds from the first to the last symbol of a full packet."""
        return PREFIX_US + (ENHANCED_US if self.bits_per_symbol > 1 else 0) + self.body_symbols

    @property
    def asymmetric_kbps(self) -> float:
        """User rate in one direction, back to back, when the reply takes one slot."""
        return self.payload_bits * 1e6 / ((self.slots + 1) * SLOT_NS)

    @property
    def symmetric_kbps(self) -> float:
        """User rate in each direction, back to back, when the reply is of the same type."""
        return self.payload_bits * 1e6 / (2 * self.slots * SLOT_NS)


def packet_type(name: str) -> PacketType:
    """Look up an ACL packet type by its name in the specification.

    Raises:
        ValueError: unknown type; the message lists the known types and, if there is one, a close match.
    """
    try:
        return PACKET_TYPES[name]
    except KeyError:
        close = difflib.get_close_matches(name.upper(), PACKET_TYPES, n=1)
        meant = f"; did you mean {close[0]!r}?" if close else ""
        raise ValueError(
            f"unknown packet type {name!r}, must be one of {', '.join(PACKET_TYPES)}{meant}"
        ) from None


def packet_types(names: Iterable[str]) -> tuple[PacketType, ...]:
    """Look up several ACL packet types, in the order given.

    Raises:
        ValueError: one of the names is unknown.
    """
    return tuple(packet_type(name) for name in names)


def _blocks(information_bits: int) -> int:
    """Blocks needed for that many information bits; the last one is filled up with zeros."""
    return -(-information_bits // FEC_INFORMATION_BITS)


def types_by_name(sizes: Mapping[str, tuple[int, int]]) -> Mapping[str, PacketType]:
    """Return packet types by name (read-only), given the slots and the most user bytes of each."""
    found = {}
    for name, (slots, payload_bytes) in sizes.items():
        enhanced, voice = name[0].isdigit(), "EV" in name
        found[name] = PacketType(
            name=name,
            slots=slots,
            payload_bytes=payload_bytes,
            payload_header_bytes=0 if voice else 2 if enhanced or slots > 1 else 1,
            coded=name.startswith("DM") or name == "EV4",
            bits_per_symbol=int(name[0]) if enhanced else 1,
        )
    return MappingProxyType(found)


PACKET_TYPES: Final = types_by_name(
    {
        "DM1": (1, 17),
        "DH1": (1, 27),
        "DM3": (3, 121),
        "DH3": (3, 183),
        "DM5": (5, 224),
        "DH5": (5, 339),
        "2-DH1": (1, 54),
        "2-DH3": (3, 367),
        "2-DH5": (5, 679),
        "3-DH1": (1, 83),
        "3-DH3": (3, 552),
        "3-DH5": (5, 1021),
    }
)
"""ACL packet types by name (read-only)."""
