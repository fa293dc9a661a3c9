"""IP packets in captures of a Bluetooth host: HCI, L2CAP and BNEP, the way of personal area networks.

ACL packets (Core Specification 5.4, volume 4, part E, 5.4.2) are put together to frames of L2CAP (volume 3,
part A, 3.1), and frames of the dynamic channels are taken for BNEP (version 1.0, 2.4) if an IP packet of the
right length is in them: a capture that begins late has missed the opening of the channel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import unpack_from

from btqueue.captures.files import HCI, RAW_IP, Frame

HCI_UNDIRECTED = 187
"""Type of link whose frames are packets of HCI without their direction (LINKTYPE_BLUETOOTH_HCI_H4)."""
ACL_DATA = 2
CONTINUES = 1
"""Flag of an ACL packet that goes on with the frame before."""
FIRST_DYNAMIC = 0x40
"""Lowest number of a channel that is opened by name of a service."""
ADDRESSES = {0: 12, 2: 0, 3: 6, 4: 6}
"""Bytes of addresses by the type of a BNEP packet: general, compressed, with one of the two only."""
LEAST_BYTES = 90
"""Of a packet that was captured in part: with this many the headers down to TCP are whole."""


def ip_frames(found: Iterable[Frame]) -> Iterator[Frame]:
    """Yield frames of IP in place of frames of HCI, as many: empty where none ends; others as they are."""
    parts: dict[tuple[int, int], bytes] = {}
    for frame in found:
        if frame.link not in (HCI, HCI_UNDIRECTED):
            yield frame
            continue
        direction, raw = (frame.raw[3:4], frame.raw[4:]) if frame.link == HCI else (b"\0", frame.raw)
        packet = b""
        if len(raw) >= 5 and raw[0] == ACL_DATA and (frame.whole or len(raw) >= LEAST_BYTES):
            flags, length = unpack_from("<HH", raw, 1)
            way = direction[0] & 1, flags & 0xFFF
            data = raw[5 : 5 + length].ljust(length, b"\0")  # of a packet captured in part
            if flags >> 12 & 3 == CONTINUES:
                data = parts.pop(way, b"") + data
            packet = _frame_of_l2cap(data, parts, way)
        yield Frame(frame.time, RAW_IP, packet, whole=True)


def _frame_of_l2cap(data: bytes, parts: dict[tuple[int, int], bytes], way: tuple[int, int]) -> bytes:
    """Return the IP packet in a frame, empty if there is none; keep a frame that is not whole."""
    if len(data) < 4:
        return b""
    length, channel = unpack_from("<HH", data)
    if len(data) < 4 + length:
        parts[way] = data
        return b""
    return _packet_of_bnep(data[4 : 4 + length]) if channel >= FIRST_DYNAMIC else b""


def _packet_of_bnep(data: bytes) -> bytes:
    """Return the IP packet in a BNEP packet, behind its addresses and extensions; empty without."""
    kind, more = (data[0] & 0x7F, data[0] & 0x80) if data else (1, 0)
    if kind not in ADDRESSES:
        return b""
    place = 3 + ADDRESSES[kind]
    protocol = data[place - 2 : place]
    while more and len(data) > place + 1:
        more, place = data[place] & 0x80, place + 2 + data[place + 1]
    packet = data[place:]
    if protocol == b"\x08\x00" and len(packet) >= 20 and packet[0] >> 4 == 4:
        return packet if int.from_bytes(packet[2:4], "big") == len(packet) else b""
    if protocol == b"\x86\xdd" and len(packet) >= 40 and packet[0] >> 4 == 6:
        return packet if int.from_bytes(packet[4:6], "big") == len(packet) - 40 else b""
    return b""
