"""Header bytes that the layers above the baseband put in front of application data."""

from typing import Final

L2CAP_HEADER_BYTES: Final = 4
"""Length and channel identifier of a basic-mode L2CAP frame (Bluetooth Core Specification, L2CAP part)."""

IP_HEADER_BYTES: Final = 20
"""IPv4 header without options (RFC 791)."""

TCP_HEADER_BYTES: Final = 20
"""TCP header without options (RFC 9293)."""

TCP_PDU_OVERHEAD_BYTES: Final = L2CAP_HEADER_BYTES + IP_HEADER_BYTES + TCP_HEADER_BYTES
"""Bytes that an L2CAP frame adds to the data of a TCP segment; also the size of the frame of a pure ACK."""
