"""Bluetooth baseband facts: packet table, slots, segmentation and forward error correction."""

from btqueue.baseband.fec import block_error_rate, block_success_rate
from btqueue.baseband.headers import (
    IP_HEADER_BYTES,
    L2CAP_HEADER_BYTES,
    TCP_HEADER_BYTES,
    TCP_PDU_OVERHEAD_BYTES,
)
from btqueue.baseband.packets import (
    PACKET_TYPES,
    SLOT_NS,
    SLOT_S,
    SYMBOL_S,
    PacketType,
    packet_type,
    packet_types,
)
from btqueue.baseband.segmentation import Fragment, Segmentation, segment

__all__ = [
    "IP_HEADER_BYTES",
    "L2CAP_HEADER_BYTES",
    "PACKET_TYPES",
    "SLOT_NS",
    "SLOT_S",
    "SYMBOL_S",
    "TCP_HEADER_BYTES",
    "TCP_PDU_OVERHEAD_BYTES",
    "Fragment",
    "PacketType",
    "Segmentation",
    "block_error_rate",
    "block_success_rate",
    "packet_type",
    "packet_types",
    "segment",
]
