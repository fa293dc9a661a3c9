"""Bluetooth baseband facts: packet table, slots, segmentation and forward error correction."""

from btqueue.baseband.fec import block_error_rate, block_success_rate
from btqueue.baseband.packets import PACKET_TYPES, SLOT_NS, SLOT_S, PacketType, packet_type, packet_types
from btqueue.baseband.segmentation import Fragment, Segmentation, segment

__all__ = [
    "PACKET_TYPES",
    "SLOT_NS",
    "SLOT_S",
    "Fragment",
    "PacketType",
    "Segmentation",
    "block_error_rate",
    "block_success_rate",
    "packet_type",
    "packet_types",
    "segment",
]
