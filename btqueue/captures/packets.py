"""TCP packets in frames, read and written: RFC 791 and RFC 8200 below, RFC 9293, 7323, 2018 and 768 above.

In captures of a Bluetooth host ACL packets (Core Specification 5.4, volume 4, part E, 5.4.2) are put together
to frames of L2CAP (volume 3, part A, 3.1), and frames of the dynamic channels are taken for BNEP (version
1.0, 2.4) if an IP packet of the right length is in them: a capture that begins late has missed the opening of
the channel.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from struct import unpack_from
from typing import NamedTuple

from btqueue.captures.files import HCI, RAW_IP, BadCapture, Frame

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
    """Yield a frame of IP for each frame of HCI, empty where no IP packet ends; others as they are."""
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


ETHERNET, PPP = 1, 9
"""Types of links (LINKTYPE_ of libpcap)."""
BEFORE_IP = {12: 0, 14: 0, RAW_IP: 0, 228: 0, 229: 0, 0: 4, 113: 16, 276: 20}
"""Bytes before the IP packet by the type of link: raw IP, loopback, and Linux's two cooked captures."""
TCP, UDP = 6, 17
EXTENSIONS = (0, 43, 60)
"""Headers of IPv6 that may stand before TCP: hop-by-hop options, routing, destination options."""
SYN, RST, ACK = 2, 4, 16
NO_OPERATION, MSS, WINDOW_SCALE, SACK_PERMITTED, SACK, TIMESTAMPS = 1, 2, 3, 4, 5, 8
DO_NOT_FRAGMENT, HOPS = 0x4000, 64
"""In the headers of IPv4 that are written."""
WRAP = 2**32

End = tuple[bytes, int]
"""Address and port."""


class Packet(NamedTuple):
    """A TCP packet.

    Attributes:
        opens: whether it is a SYN or a RST, which are no part of the exchange of data.
        length: length of the data, by the header of IP, for captures may leave payloads out.
        stamp: stamp of RFC 7323, and `echo`; -1 without.
        blocks: first and last sequence number of each block of a selective acknowledgement.
        window: as the header has it.
        selective: whether a SYN permits selective acknowledgements.
        mss: longest segment that a SYN announces, 0 without; `option_bytes` in a segment come off it.
        begins: whether it is a SYN, the first packet of its direction.
        scale: scale of later windows (RFC 7323), as a SYN announces it; -1 without.
    """

    time: float
    source: End
    target: End
    sequence: int
    acknowledged: int
    acknowledges: bool
    opens: bool
    length: int
    stamp: int = -1
    echo: int = -1
    blocks: tuple[tuple[int, int], ...] = ()
    window: int = 0
    selective: bool = False
    mss: int = 0
    option_bytes: int = 0
    begins: bool = False
    scale: int = -1


class Malformed(ValueError):
    """A header contradicts itself or the captured bytes."""


def tcp_packet(frame: Frame, source: str, number: int) -> tuple[Packet | None, bool]:
    """Return the TCP packet in a frame, None if there is none in it, and whether its options can be read.

    Args:
        frame: as captured.
        source: name of the file, for messages.
        number: number of the packet in it.

    Raises:
        BadCapture: the type of link is unknown, or the packet is shorter than its header says.
        Malformed: a header is cut short or wrong.
    """
    network = _network_layer(frame, source)
    if network is None:
        return None, True
    if network[0] >> 4 == 4:
        total, header, protocol = int.from_bytes(network[2:4], "big"), (network[0] & 15) * 4, network[9]
        if len(network) < total and frame.whole:
            raise BadCapture(f"{source}: packet {number} is shorter than its IP header says")
        ends = network[12:16], network[16:20]
        carried = (total or len(network)) - header  # 0: segmentation is left to the device
        fragment = int.from_bytes(network[6:8], "big") & 0x1FFF
        if header < 20:
            raise Malformed
    else:
        header, protocol, fragment = 40, network[6], 0
        ends = network[8:24], network[24:40]
        while protocol in EXTENSIONS and len(network) >= header + 8:
            protocol, header = network[header], header + 8 * (network[header + 1] + 1)
        carried = int.from_bytes(network[4:6], "big") + 40 - header
    segment = network[header:]
    if protocol != TCP or fragment:
        return None, True
    if len(segment) < 20 or segment[12] >> 4 < 5:
        raise Malformed
    ports, sequence, acknowledged, offset, flags, window = (
        segment[:4], *struct.unpack_from("!IIBBH", segment, 4)
    )  # fmt: skip
    size = (offset >> 4) * 4
    options, well = _options(segment[20:size])
    stamp, echo = (
        struct.unpack("!II", options[TIMESTAMPS]) if len(options.get(TIMESTAMPS, b"")) == 8 else (-1, -1)
    )
    edges = options.get(SACK, b"")
    blocks = tuple(struct.iter_unpack("!II", edges)) if len(edges) % 8 == 0 else ()
    packet = Packet(
        frame.time,
        (ends[0], int.from_bytes(ports[:2], "big")),
        (ends[1], int.from_bytes(ports[2:], "big")),
        sequence,
        acknowledged,
        bool(flags & ACK),
        bool(flags & (SYN | RST)),
        max(0, carried - size),
        stamp,
        echo,
        blocks,
        window,
        SACK_PERMITTED in options,
        int.from_bytes(options.get(MSS, b""), "big"),
        size - 20,
        bool(flags & SYN) and not flags & RST,
        options[WINDOW_SCALE][0] if len(options.get(WINDOW_SCALE, b"")) == 1 else -1,
    )
    return packet, well


def _options(field: bytes) -> tuple[dict[int, bytes], bool]:
    """Return the options of a header by kind, and whether all could be read; if not, none."""
    found, place = {}, 0
    while place < len(field) and field[place]:
        if field[place] == NO_OPERATION:
            place += 1
            continue
        size = field[place + 1] if place + 1 < len(field) else 0
        if size < 2 or place + size > len(field):
            return {}, False
        found[field[place]] = field[place + 2 : place + size]
        place += size
    return found, True


def _network_layer(frame: Frame, source: str) -> bytes | None:
    """Return the IP packet behind the link's header, None for any other protocol."""
    raw, link = frame.raw, frame.link
    if link in BEFORE_IP:
        found = raw[BEFORE_IP[link] :]
    elif link == ETHERNET:
        skip = 18 if raw[12:14] == b"\x81\x00" else 14
        found = raw[skip:] if raw[skip - 2 : skip] in (b"\x08\x00", b"\x86\xdd") else b""
    elif link == PPP:
        body = raw[2:] if raw[:2] == b"\xff\x03" else raw
        found = body[2:] if body[:2] in (b"\x00\x21", b"\x00\x57") else b""
    else:
        raise BadCapture(
            f"{source}: link type {link} of the capture is unknown: Ethernet, PPP, raw IP and HCI can be read"
        )
    if len(found) < 20 or found[0] >> 4 not in (4, 6):
        return None
    return None if found[0] >> 4 == 6 and len(found) < 40 else found


def tcp_segment(
    ports: tuple[int, int],
    sequence: int,
    acknowledged: int,
    flags: int,
    window: int,
    options: bytes,
    data: bytes,
) -> bytes:
    """Return a TCP segment without its checksum; the options fill whole words, numbers may exceed 2^32."""
    words = (5 + len(options) // 4) << 4
    numbers = sequence % WRAP, acknowledged % WRAP
    return struct.pack("!HHIIBBHHH", *ports, *numbers, words, flags, window, 0, 0) + options + data


def udp_datagram(ports: tuple[int, int], data: bytes) -> bytes:
    """Return a UDP datagram without its checksum."""
    return struct.pack("!4H", *ports, 8 + len(data), 0) + data


def ip_packet(source: bytes, target: bytes, protocol: int, content: bytes) -> bytes:
    """Return an IPv4 packet; its checksum and its segment's or datagram's are computed.

    Args:
        source: address of the sender.
        target: address of the receiver.
        protocol: `TCP` or `UDP`.
        content: segment or datagram, with zeros in place of its checksum.
    """
    place = {TCP: 16, UDP: 6}[protocol]
    own = _checksum(source + target + struct.pack("!2H", protocol, len(content)) + content)
    if protocol == UDP:
        own = own or 0xFFFF  # 0 means none (RFC 768)
    length = 20 + len(content)
    header = struct.pack("!BBHHHBBH", 4 << 4 | 5, 0, length, 0, DO_NOT_FRAGMENT, HOPS, protocol, 0)
    header = header[:10] + struct.pack("!H", _checksum(header + source + target)) + source + target
    return header + content[:place] + struct.pack("!H", own) + content[place + 2 :]


def _checksum(data: bytes) -> int:
    """Return the checksum of the Internet (RFC 1071)."""
    total = sum(struct.unpack(f"!{(len(data) + 1) // 2}H", data + bytes(len(data) % 2)))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return 0xFFFF - total


def address(node: int) -> bytes:
    """Return the IPv4 address of a node in captures that are written here: 10.0.0.1 for the first."""
    return struct.pack("!I", (10 << 24) + int(node) + 1)
