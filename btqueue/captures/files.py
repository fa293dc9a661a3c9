"""Frames of pcap, pcapng and btsnoop files; the first two by draft-ietf-opsawg-pcap and -pcapng.

Android and btmon write btsnoop files (RFC 1761 with Bluetooth's types of link).

Measurements must not be guessed: a packet that is cut off ends the file with a note, and an impossible length
is damage.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

PCAP_ORDERS = {
    b"\xa1\xb2\xc3\xd4": (">", 1e-6),
    b"\xd4\xc3\xb2\xa1": ("<", 1e-6),
    b"\xa1\xb2\x3c\x4d": (">", 1e-9),
    b"\x4d\x3c\xb2\xa1": ("<", 1e-9),
}
"""Byte order and unit of the stamps (s), by the first four bytes."""
SECTION, INTERFACE, OLD_PACKET, PACKET = 0x0A0D0D0A, 1, 2, 6
"""Blocks of pcapng; all others are passed over."""
SECTION_ORDERS = {b"\x1a\x2b\x3c\x4d": ">", b"\x4d\x3c\x2b\x1a": "<"}
RESOLUTION, OFFSET = 9, 14
"""Options of an interface: unit of its stamps, and seconds to add to them."""
LONGEST_PACKET, LONGEST_BLOCK = 2**18, 2**24
"""Bytes; beyond that libpcap takes the length of a packet, or of a block of pcapng, for damaged."""
SNOOP = b"btsnoop\0"
SNOOP_COMMANDS, SNOOP_UART, SNOOP_MONITOR = 1001, 1002, 2001
"""Types of link in btsnoop: HCI without the type of a packet, with it, and as Linux's monitor has it."""
SNOOP_START_US = 0x00DCDDB30F2F8000
"""Stamp of the year 1970: they count from the year 0."""
MONITOR_DATA = {4: 0, 5: 1}
"""The monitor's numbers of ACL data, with the direction: sent and received by the host."""
HCI = 201
"""Type of link whose frames are a direction and a packet of HCI (LINKTYPE_BLUETOOTH_HCI_H4_WITH_PHDR)."""
RAW_IP = 101
"""Type of link whose frames are IP packets (LINKTYPE_RAW)."""


class BadCapture(ValueError):
    """A capture cannot be read; the message names the file and the packet."""


class Frame(NamedTuple):
    """One captured packet: stamp (s), type of link, bytes, and whether the packet was captured whole."""

    time: float
    link: int
    raw: bytes
    whole: bool


class _Interface(NamedTuple):
    link: int
    snap: int
    unit_s: float
    offset_s: int


class CaptureWriter:
    """Writes IP packets to a pcap file, with stamps in nanoseconds."""

    def __init__(self, file: BinaryIO) -> None:
        """Begin the file, with packets of any length."""
        self._file = file
        file.write(b"\x4d\x3c\xb2\xa1" + struct.pack("<HHiIII", 2, 4, 0, 0, LONGEST_PACKET, RAW_IP))

    def write(self, packet: bytes, time_ns: int) -> None:
        """Append a packet."""
        head = struct.pack("<4I", *divmod(time_ns, 10**9), len(packet), len(packet))
        self._file.write(head + packet)


class _CutOff(Exception):
    """The file ends in the middle of a packet."""


class _Damaged(Exception):
    """A length or a reference in the file is impossible."""


def frames(path: Path, notes: list[str]) -> Iterator[Frame]:
    """Yield the frames of a file in its order; a note says if the last one is cut off.

    Raises:
        BadCapture: it is neither pcap nor pcapng nor btsnoop, or damaged.
    """
    count = 0
    with path.open("rb") as file:
        try:
            magic = _exactly(file, 4)
            if magic == SNOOP[:4]:
                found = _snoop(file)
            elif magic in PCAP_ORDERS:
                found = _pcap(file, magic)
            elif magic == SECTION.to_bytes(4, "big"):
                found = _pcapng(file)
            else:
                raise _Damaged
            for frame in found:
                count += 1
                yield frame
        except _CutOff:
            if not count:
                raise BadCapture(f"{path.name}: is cut off in its first packet, or no capture") from None
            notes.append(
                f"{path.name} ends in the middle of packet {count + 1} (it is cut off, or a length in it is "
                f"damaged): only the {count} packets before were read"
            )
        except _Damaged:
            fault = f"is damaged after {count} packets" if count else "is no pcap, pcapng or btsnoop file"
            raise BadCapture(f"{path.name}: {fault}") from None


def _exactly(file: BinaryIO, size: int, *, may_end: bool = False) -> bytes:
    """Return the next bytes; none where the file may end, and ends."""
    found = file.read(size)
    if len(found) < size and (found or not may_end):
        raise _CutOff
    return found


def _pcap(file: BinaryIO, magic: bytes) -> Iterator[Frame]:
    order, unit_s = PCAP_ORDERS[magic]
    *_, snap, link = struct.unpack(f"{order}HHiIII", _exactly(file, 20))
    longest = min(max(LONGEST_PACKET, snap), LONGEST_BLOCK)
    while head := _exactly(file, 16, may_end=True):
        seconds, fraction, size, length = struct.unpack(f"{order}4I", head)
        if size > longest:
            raise _Damaged
        whole = _whole(size, length, snap)
        yield Frame(seconds + fraction * unit_s, link & 0xFFFF, _exactly(file, size), whole)


def _snoop(file: BinaryIO) -> Iterator[Frame]:
    """Yield the records of a btsnoop file, all of one type of link; the first four bytes are read already."""
    rest, version, link = struct.unpack(">4sII", _exactly(file, 12))
    if rest != SNOOP[4:] or version != 1:
        raise _Damaged
    while head := _exactly(file, 24, may_end=True):
        length, size, flags, _, stamp = struct.unpack(">4Iq", head)
        if not size <= min(length, LONGEST_PACKET):
            raise _Damaged
        raw, direction, kind = _exactly(file, size), flags & 1, b""
        if link == SNOOP_COMMANDS:
            kind = b"\1\4"[direction : direction + 1] if flags & 2 else b"\2"
        elif link == SNOOP_MONITOR:
            code = flags & 0xFFFF
            direction, kind = MONITOR_DATA.get(code, 0), b"\2" if code in MONITOR_DATA else b"\0"
        elif link != SNOOP_UART:
            raise BadCapture(
                f"{Path(file.name).name}: type of link {link} of btsnoop is unknown: {SNOOP_COMMANDS}, "
                f"{SNOOP_UART} and {SNOOP_MONITOR} (HCI) can be read"
            )
        time = (stamp - SNOOP_START_US) * 1e-6
        yield Frame(time, HCI, direction.to_bytes(4, "big") + kind + raw, size == length)


def _pcapng(file: BinaryIO) -> Iterator[Frame]:
    """Yield the packets of all sections; the first block's type is read already."""
    order, interfaces, head = "", [], SECTION.to_bytes(4, "big")
    while head := head or _exactly(file, 4, may_end=True):
        if head == SECTION.to_bytes(4, "big"):  # alike in both orders of bytes
            size, magic = _exactly(file, 4), _exactly(file, 4)
            if magic not in SECTION_ORDERS:
                raise _Damaged
            order, interfaces = SECTION_ORDERS[magic], []
            _body(file, order, size, read=12)
        else:
            (kind,) = struct.unpack(f"{order}I", head)
            body = _body(file, order, _exactly(file, 4), read=8)
            if kind == INTERFACE:
                interfaces.append(_interface(order, body))
            elif kind in (PACKET, OLD_PACKET):
                yield _frame(order, body, interfaces, old=kind == OLD_PACKET)
        head = b""


def _body(file: BinaryIO, order: str, size: bytes, read: int) -> bytes:
    """Return the rest of a block after `read` bytes; the block's length stands at both of its ends."""
    (total,) = struct.unpack(f"{order}I", size)
    if not read + 4 <= total <= LONGEST_BLOCK or total % 4:
        raise _Damaged
    body = _exactly(file, total - read)
    if body[-4:] != size:
        raise _Damaged
    return body[:-4]


def _interface(order: str, body: bytes) -> _Interface:
    if len(body) < 8:
        raise _Damaged
    link, snap = struct.unpack_from(f"{order}H2xI", body)
    unit_s, offset_s, place = 1e-6, 0, 8
    while place + 4 <= len(body):
        code, size = struct.unpack_from(f"{order}HH", body, place)
        value = body[place + 4 : place + 4 + size]
        if code == RESOLUTION and len(value) == 1:
            unit_s = 2.0 ** -(value[0] & 0x7F) if value[0] & 0x80 else 10.0 ** -value[0]
        elif code == OFFSET and len(value) == 8:
            (offset_s,) = struct.unpack(f"{order}q", value)
        place += 4 + size + -size % 4
    return _Interface(link, snap, unit_s, offset_s)


def _frame(order: str, body: bytes, interfaces: list[_Interface], *, old: bool) -> Frame:
    if len(body) < 20:
        raise _Damaged
    number, high, low, size, length = struct.unpack_from(f"{order}{'H2x' if old else 'I'}4I", body)
    if number >= len(interfaces) or size > len(body) - 20:
        raise _Damaged
    interface = interfaces[number]
    time = (high << 32 | low) * interface.unit_s + interface.offset_s
    return Frame(time, interface.link, body[20 : 20 + size], _whole(size, length, interface.snap))


def _whole(size: int, length: int, snap: int) -> bool:
    """Whether a packet was not cut to the length that the capture was limited to; 0 is no limit.

    Not every writer says how long the packet was.
    """
    return size >= length and not 0 < snap <= size
