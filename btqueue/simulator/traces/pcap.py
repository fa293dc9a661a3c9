"""Segments of the log as IPv4 packets in a pcap file, as `tcpdump` at one host would have written them.

Segments have numbers, TCP has bytes: a sequence number is the connection's initial one plus all user bytes
before the segment. Headers follow RFC 791 (IP), RFC 768 (UDP), RFC 9293 (TCP), RFC 2018 (SACK) and RFC 7323
(window scale, timestamps in milliseconds). Payloads are zeros.

A window field holds 65 535 bytes at most; larger windows need the scale that SYN and SYN-ACK agree on. A
capture without them shows larger windows as 65 535.
"""

import struct
from collections.abc import Iterable
from typing import Any, BinaryIO

import numpy as np

from btqueue.captures import packets
from btqueue.captures.files import CaptureWriter
from btqueue.captures.packets import SYN as SYN_FLAG
from btqueue.simulator.records.arrays import State
from btqueue.simulator.records.conventions import MILLISECOND, NOTHING
from btqueue.simulator.records.packets import CONTROL, DATA, DATAGRAM, SYN, SYN_ACK
from btqueue.simulator.traces.trace import SEGMENT_RECEIVED, SEGMENT_SENT

LARGEST_WINDOW = 65_535
"""Bytes in the window field of a header."""
LARGEST_SHIFT = 14
"""Of window scaling (RFC 7323, section 2.3)."""
OPTION_BYTES = 40
"""Room for options in a TCP header (RFC 9293, section 3.1)."""
SERVER_PORT = 5001
"""TCP port that all flows go to, iperf's."""
FIRST_CLIENT_PORT, CLIENT_PORTS = 10_000, 50_000


class PcapWriter:
    """Writes the segments that one host sends and receives."""

    def __init__(self, file: BinaryIO, sim: State, node: int) -> None:
        """Start a capture at `node`; connections are looked up in `sim`."""
        self.node = node
        patterns = zip(sim.connections.pattern, sim.connections.pattern_length, strict=True)
        self.sizes = [
            sim.layouts.application[sim.patterns[first : first + length]] for first, length in patterns
        ]
        self.streams: dict[tuple[int, int], ByteStream] = {}
        self.connections: Any = sim.connections.copy()
        self.ends: dict[tuple[int, bool, int], End] = {}
        self.file = CaptureWriter(file)

    def write(self, entries: Iterable[Any]) -> None:
        """Append the entries of the log, in order of time, that are segments seen at the host."""
        for entry in entries:
            if entry.event == SEGMENT_SENT and entry.kind == DATA:
                self.stream(entry.flow, entry).learn(int(entry.number), int(entry.application))
            if entry.node == self.node and entry.event in (SEGMENT_SENT, SEGMENT_RECEIVED):
                self.file.write(self.packet(entry), int(entry.time))

    def stream(self, flow: int, entry: Any) -> "ByteStream":
        """Return the bytes of a flow, in the incarnation of the entry's connection."""
        key = (int(flow), int(entry.incarnation))
        if key not in self.streams:
            conn = self.connections[key[0]]
            self.streams[key] = ByteStream(self.sizes[key[0]], int(conn.rwnd), repeated=conn.unit == 1)
        return self.streams[key]

    def packet(self, entry: Any) -> bytes:
        """Return the IP packet of a log entry and update the records of its connection."""
        conn = self.connections[entry.flow]
        sender, receiver = (
            (conn.destination, conn.source) if entry.backward else (conn.source, conn.destination)
        )
        udp = entry.kind in (DATAGRAM, CONTROL)
        data = bytes(int(entry.application))
        content = packets.udp_datagram(self.ports(entry), data) if udp else self.segment(entry)
        return packets.ip_packet(
            packets.address(sender), packets.address(receiver), packets.UDP if udp else packets.TCP, content
        )

    def ports(self, entry: Any) -> tuple[int, int]:
        """Return the ports of the segment's sender and receiver: a new incarnation has new ports."""
        conn = self.connections[entry.flow]
        first = int(entry.flow) if conn.reverse == NOTHING else min(int(entry.flow), int(conn.reverse))
        number = first + int(entry.incarnation) * len(self.connections)
        client = FIRST_CLIENT_PORT + number % CLIENT_PORTS
        server = SERVER_PORT + number // CLIENT_PORTS % (FIRST_CLIENT_PORT - SERVER_PORT)
        towards_server = (entry.flow == first) != bool(entry.backward)
        return (client, server) if towards_server else (server, client)

    def segment(self, entry: Any) -> bytes:
        """Return the TCP segment, with all its options."""
        sender, other = self.end(entry, bool(entry.backward)), self.end(entry, not entry.backward)
        begin = sender.note_sent(entry)
        if entry.kind in (SYN, SYN_ACK):
            sender.said_hello = True
        if entry.acknowledges:
            sender.acknowledged = other.sequence(other.stream.before(int(entry.ack)))
        flags = 0 if entry.kind == SYN else packets.ACK
        if entry.kind in (SYN, SYN_ACK):
            flags |= SYN_FLAG
            begin = sender.first
        return packets.tcp_segment(
            self.ports(entry),
            begin,
            sender.acknowledged if flags & packets.ACK else 0,
            flags,
            window_field(entry, sender, other),
            self.options(entry, sender, other),
            bytes(int(entry.application) if entry.kind == DATA else 0),
        )

    def end(self, entry: Any, backward: bool) -> "End":
        """Return the end of the entry's connection that sends forward, or backward, along its flow."""
        flow = int(entry.flow)
        reverse = int(self.connections[flow].reverse)
        own, other = (reverse, flow) if backward else (flow, reverse)
        # the receiver of a one-way flow is an end without data
        key = (flow, True, int(entry.incarnation)) if own == NOTHING else (own, False, int(entry.incarnation))
        if key not in self.ends:
            empty = ByteStream(np.zeros(1, np.int64), 0, repeated=True)
            shown = self.stream(own, entry) if own != NOTHING else empty
            received = self.stream(other, entry) if other != NOTHING else empty
            self.ends[key] = End(len(self.ends), shown, received)
            self.ends[key].acknowledged = self.end(entry, not backward).sequence(0)
        return self.ends[key]

    def options(self, entry: Any, sender: "End", other: "End") -> bytes:
        """Return the options of a TCP header, filled up to whole words."""
        conn = self.connections[entry.flow]
        parts = b""
        if entry.kind in (SYN, SYN_ACK):
            # MSS counts the options of data segments as if there were none (RFC 6691)
            room = 12 * bool(conn.timestamps)
            longest = max(sender.stream.longest, sender.received.longest)
            parts += struct.pack("!BBH", packets.MSS, 4, longest + room)
            if conn.sack:
                parts += bytes([packets.SACK_PERMITTED, 2])
            parts += bytes([packets.NO_OPERATION, packets.WINDOW_SCALE, 3, sender.shift])
        if conn.timestamps:
            ticks = [max(int(time), 0) // MILLISECOND % 2**32 for time in (entry.timestamp, entry.echo)]
            parts += struct.pack("!4B2I", 1, 1, packets.TIMESTAMPS, 10, *ticks)
        blocks = min(int(entry.blocks), (OPTION_BYTES - len(parts) - 4) // 8)  # as many as fit (RFC 2018)
        if blocks > 0:
            parts += bytes([1, 1, packets.SACK, 2 + 8 * blocks])
            for block in range(blocks):
                for edge in (entry.block_start[block], entry.block_end[block]):
                    position = other.sequence(other.stream.before(int(edge)))
                    parts += struct.pack("!I", position % 2**32)
        return parts + bytes([packets.NO_OPERATION]) * (-len(parts) % 4)


class ByteStream:
    """The user bytes of a flow, whose segment sizes repeat in a pattern or are learnt one by one."""

    def __init__(self, sizes: np.ndarray, rwnd: int, *, repeated: bool) -> None:
        """Take the sizes that segments have, in turn if they are `repeated`; an end that sends none has 0."""
        self.repeated = repeated
        self.sums = [0, *np.cumsum(sizes).tolist()] if repeated else [0]
        self.longest = int(sizes.max())
        self.rwnd = rwnd

    def learn(self, number: int, size: int) -> None:
        """Remember the size of a segment that is sent, for the first time or again."""
        if not self.repeated and number == len(self.sums) - 1:
            self.sums.append(self.sums[-1] + size)

    def before(self, number: int) -> int:
        """Return the user bytes in all segments before this one."""
        if not self.repeated:
            return self.sums[number]
        rounds, place = divmod(number, len(self.sums) - 1)
        return rounds * self.sums[-1] + self.sums[place]

    def window(self, number: int) -> int:
        """Return the receive window in bytes after `number` segments came in order."""
        if self.rwnd == 0:
            return LARGEST_WINDOW
        if not self.repeated:
            return self.rwnd * self.longest
        return self.before(number + self.rwnd) - self.before(number)


class End:
    """One end of a connection as the captured host sees it; sequence numbers are not yet modulo 2^32."""

    def __init__(self, number: int, stream: ByteStream, received: ByteStream) -> None:
        """Start with nothing sent or acknowledged; `number` tells connections apart."""
        self.stream, self.received = stream, received
        self.first = 1_000_003 * (number + 1)
        self.next = self.acknowledged = self.first + 1
        self.acknowledged_segments = 0
        self.said_hello = False
        largest = received.rwnd * received.longest
        self.shift = min(LARGEST_SHIFT, max(0, (largest // (LARGEST_WINDOW + 1)).bit_length()))

    def sequence(self, offset: int) -> int:
        """Return the sequence number of the byte at this place of the stream."""
        return self.first + 1 + offset

    def note_sent(self, entry: Any) -> int:
        """Return the sequence number of a segment that this end sends, and remember how far it has come."""
        if entry.acknowledges:
            self.acknowledged_segments = int(entry.ack)
        if entry.kind != DATA:
            return self.next
        number = int(entry.number)
        self.next = max(self.next, self.sequence(self.stream.before(number + 1)))
        return self.sequence(self.stream.before(number))


def window_field(entry: Any, sender: End, other: End) -> int:
    """Return the window field: scaled after SYN and SYN-ACK, not in these two (RFC 7323, section 2.2)."""
    window = sender.received.window(sender.acknowledged_segments)
    if sender.said_hello and other.said_hello and entry.kind not in (SYN, SYN_ACK):
        window >>= sender.shift
    return min(window, LARGEST_WINDOW)
