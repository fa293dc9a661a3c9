"""Bluetooth Low Energy: packets on the air, exchanges, and data cut into them, without time or chance.

Sections are of the Core Specification, as volume, part and section. Times are microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

PhyName = Literal["1M", "2M", "coded-s2", "coded-s8"]

ON_AIR_BYTES: Final = 4 + 2 + 3
"""Access address, header and CRC (6, B, 2.1), which bit errors can hit beside the payload."""
MIC_BYTES: Final = 4
"""Message integrity check of an encrypted packet that is not empty (6, B, 2.4)."""
FRAME_HEADER_BYTES: Final = 4
"""L2CAP header of a K-frame or of a frame of the attribute protocol (3, A, 3.1 and 3.4)."""
SDU_LENGTH_BYTES: Final = 2
"""Length of the SDU in its first K-frame (3, A, 3.4.2); it counts towards the MPS."""
CREDITS_BYTES: Final = 12
"""Frame that returns credits: L2CAP 4, code, identifier, length 2, channel 2, credits 2 (3, A, 4.24)."""
NOTIFICATION_HEADER_BYTES: Final = 3
"""Opcode and handle of a notification (3, F, 3.4.7.1)."""
CHANNELS: Final = 37
"""Data channels (6, B, 1.4.1)."""
IPHC_BYTES: Final = 3
"""IPv6 header between the ends of a link: RFC 6282 leaves 2 bytes, and one names TCP (RFC 7668, 3.2)."""
UDP_BYTES: Final = 7
"""UDP header as RFC 6282, 4.3, writes it with both ports and the checksum in full; it is named in a bit."""


class Phy(NamedTuple):
    """Air time of a packet on a PHY.

    Attributes:
        empty_us: time of a packet without payload (us).
        byte_us: time of each byte of payload and MIC (us).
    """

    empty_us: float
    byte_us: float


def _uncoded(preamble_bytes: int, byte_us: float) -> Phy:
    """Return preamble, access address 4, header 2 and CRC 3 (6, B, 2.1)."""
    return Phy((preamble_bytes + 4 + 2 + 3) * byte_us, byte_us)


def _coded(us_per_bit: float) -> Phy:
    """Return preamble 80 us, access address 256, CI 16, TERM1 24; then header, CRC and 3 bits (6, B, 2.2)."""
    return Phy(80.0 + 256.0 + 16.0 + 24.0 + (16 + 24 + 3) * us_per_bit, 8.0 * us_per_bit)


PHYS: Final[Mapping[str, Phy]] = MappingProxyType(
    {"1M": _uncoded(1, 8.0), "2M": _uncoded(2, 4.0), "coded-s2": _coded(2.0), "coded-s8": _coded(8.0)}
)


def air_time_us(phy: str, payload_bytes: float, *, encrypted: bool = False) -> float:
    """Return the air time of a data PDU."""
    empty_us, byte_us = PHYS[phy]
    mic = MIC_BYTES if encrypted and payload_bytes > 0 else 0
    return empty_us + (payload_bytes + mic) * byte_us


def exchange_us(
    phy: str, central_bytes: float, peripheral_bytes: float, *, frame_space_us: float, encrypted: bool = False
) -> float:
    """Return the time from the begin of the central's PDU to the end of the peripheral's (6, B, 4.5.1)."""
    there = air_time_us(phy, central_bytes, encrypted=encrypted)
    back = air_time_us(phy, peripheral_bytes, encrypted=encrypted)
    return there + frame_space_us + back


def exchanges_that_fit(window_us: float, exchange_us: float, needed_us: float, frame_space_us: float) -> int:
    """Return how many exchanges of equal length start in an event; the first one always does.

    Args:
        window_us: time of the event that can carry exchanges.
        exchange_us: time of an exchange (us).
        needed_us: time until the end of the window that an exchange must find to start: its own
            time (`fits`), or the time of the largest exchange both ways (`largest`).
        frame_space_us: between two PDUs, and between two exchanges.
    """
    return max(1, int((window_us - needed_us) / (exchange_us + frame_space_us) + 1e-9) + 1)


def k_frames(sdu_bytes: int, mps_bytes: int) -> tuple[int, ...]:
    """Return the bytes of the K-frames of an SDU, L2CAP headers included (3, A, 3.4)."""
    return _cut(sdu_bytes + SDU_LENGTH_BYTES, mps_bytes, FRAME_HEADER_BYTES)


def notifications(value_bytes: int, att_mtu_bytes: int) -> tuple[int, ...]:
    """Return the bytes of the notifications that carry a value, L2CAP headers included (3, F, 3.4.7.1)."""
    header = FRAME_HEADER_BYTES + NOTIFICATION_HEADER_BYTES
    return _cut(value_bytes, att_mtu_bytes - NOTIFICATION_HEADER_BYTES, header)


def pdus(frame_bytes: int, payload_bytes: int) -> tuple[int, ...]:
    """Return the payloads of the data PDUs that a frame is cut into (6, B, 2.4)."""
    return _cut(frame_bytes, payload_bytes, 0)


def _cut(total: int, most: int, header: int) -> tuple[int, ...]:
    """Cut bytes into full pieces and the rest, each with a header."""
    whole, rest = divmod(total, most)
    return (most + header,) * whole + ((rest + header,) if rest else ())
