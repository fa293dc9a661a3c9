"""The bytes of a capture, read back with dpkt; sequence numbers are computed by hand."""

import io
import socket
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from state_tables import zeros

from btqueue.captures.files import RAW_IP
from btqueue.captures.packets import address
from btqueue.simulator.records.connections import connection_dtype
from btqueue.simulator.records.conventions import NOTHING
from btqueue.simulator.records.packets import ACK, CONTROL, DATA, DATAGRAM, SYN, SYN_ACK, layout_dtype
from btqueue.simulator.records.run import log_dtype
from btqueue.simulator.traces import trace
from btqueue.simulator.traces.pcap import PcapWriter

dpkt = pytest.importorskip("dpkt", reason="another reader of captures")

MS = 1_000_000
HOST, FAR = 4, 300
"""Numbers of the two nodes: 10.0.0.5 and 10.0.1.45."""


def network(sizes=((1000,), (200, 300)), two_way=True, **fields) -> Any:
    """Flow 0 from HOST to FAR, and flow 1 back, each with a pattern of segment sizes."""
    flows = 2 if two_way else 1
    connections, layouts = zeros(connection_dtype, flows), zeros(layout_dtype, sum(map(len, sizes)))
    layouts.application = [size for pattern in sizes for size in pattern]
    connections.source, connections.destination = [HOST, FAR][:flows], [FAR, HOST][:flows]
    connections.reverse = [1, 0] if two_way else NOTHING
    connections.pattern = [0, len(sizes[0])][:flows]
    connections.pattern_length = [len(pattern) for pattern in sizes][:flows]
    connections.rwnd, connections.unit = 10, 1
    for name, value in fields.items():
        connections[name] = value
    return SimpleNamespace(connections=connections, patterns=np.arange(len(layouts)), layouts=layouts)


def entry(time, kind, flow=0, *, backward=False, sent=None, **fields):
    """A segment in the log, as HOST sends or receives it."""
    log = zeros(log_dtype, 1)
    if sent is None:
        sent = (flow == 0) != backward
    log.time, log.kind, log.flow, log.backward, log.node = time, kind, flow, backward, HOST
    log.event = trace.SEGMENT_SENT if sent else trace.SEGMENT_RECEIVED
    for name, value in fields.items():
        log[name] = value
    return log[0]


def captured(sim, *entries):
    """Write the entries and return the IP packets in the file."""
    file = io.BytesIO()
    PcapWriter(file, sim, HOST).write(entries)
    file.seek(0)
    reader = dpkt.pcap.Reader(file)
    assert reader.datalink() == RAW_IP
    return [dpkt.ip.IP(raw) for _, raw in reader]


def segments(sim, *entries):
    return [packet.data for packet in captured(sim, *entries)]


def options(segment):
    return {kind: data for kind, data in dpkt.tcp.parse_opts(segment.opts) if kind != dpkt.tcp.TCP_OPT_NOP}


def ones_complement_sum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(int.from_bytes(data[place : place + 2], "big") for place in range(0, len(data), 2))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def test_data_and_acknowledgements_of_a_two_way_connection():
    first, second, answer, pure = segments(
        network(),
        entry(0, DATA, number=0, application=1000),
        entry(1 * MS, DATA, number=1, application=1000),
        entry(2 * MS, DATA, flow=1, number=0, application=200, acknowledges=True, ack=2),
        entry(3 * MS, ACK, flow=1, backward=True, sent=True, acknowledges=True, ack=1),
    )
    assert second.seq == first.seq + 1000
    assert answer.ack == first.seq + 2000
    assert pure.seq == answer.ack
    assert pure.ack == answer.seq + 200
    assert first.ack == answer.seq
    assert (answer.sport, answer.dport) == (first.dport, first.sport) == (pure.dport, pure.sport)
    assert [len(segment.data) for segment in (first, second, answer, pure)] == [1000, 1000, 200, 0]
    assert {segment.flags for segment in (first, second, answer, pure)} == {dpkt.tcp.TH_ACK}


def test_a_retransmission_has_the_old_sequence_number_and_does_not_move_the_next():
    sent = [entry(n, DATA, number=number, application=1000) for n, number in enumerate((0, 1, 0))]
    pure = entry(3, ACK, flow=1, backward=True, sent=True, acknowledges=True, ack=0)
    first, _, again, pure = segments(network(), *sent, pure)
    assert again.seq == first.seq
    assert pure.seq == first.seq + 2000


def test_sequence_numbers_wrap_around():
    far = 10_000_000
    segment, ack = segments(
        network(),
        entry(0, DATA, number=far, application=1000),
        entry(1, ACK, backward=True, acknowledges=True, ack=far + 1),
    )
    (start,) = segments(network(), entry(0, DATA, number=0, application=1000))
    assert segment.seq == (start.seq + 1000 * far) % 2**32
    assert ack.ack == (segment.seq + 1000) % 2**32


def test_handshake_and_what_it_negotiates():
    sim = network(sizes=((1460,), (1460,)), rwnd=200, sack=True, timestamps=True)
    syn, answer, request = segments(
        sim,
        entry(5 * MS, SYN, timestamp=5 * MS),
        entry(9 * MS, SYN_ACK, backward=True, timestamp=8 * MS, echo=5 * MS),
        entry(9 * MS, DATA, number=0, application=1460, timestamp=9 * MS, echo=8 * MS),
    )
    assert syn.flags == dpkt.tcp.TH_SYN
    assert answer.flags == dpkt.tcp.TH_SYN | dpkt.tcp.TH_ACK
    assert answer.ack == request.seq == syn.seq + 1
    assert request.ack == answer.seq + 1
    for hello in (syn, answer):
        assert options(hello)[dpkt.tcp.TCP_OPT_MSS] == (1460 + 12).to_bytes(2, "big")
        assert dpkt.tcp.TCP_OPT_SACKOK in options(hello)
        assert hello.win == 65_535
    shift = options(syn)[dpkt.tcp.TCP_OPT_WSCALE][0]
    assert shift == 3  # the smallest with which 200 * 1460 bytes fit
    assert request.win << shift == 200 * 1460 // 8 * 8
    assert options(request)[dpkt.tcp.TCP_OPT_TIMESTAMP] == bytes([0, 0, 0, 9, 0, 0, 0, 8])
    assert dpkt.tcp.TCP_OPT_MSS not in options(request)


@pytest.mark.parametrize(("rwnd", "shown"), [(10, 10 * 1000), (70, 65_535)])
def test_without_a_handshake_windows_are_unscaled_and_capped(rwnd, shown):
    (answer,) = segments(network(rwnd=rwnd), entry(0, ACK, backward=True, acknowledges=True, ack=0))
    assert answer.win == shown


@pytest.mark.parametrize(("timestamps", "shown"), [(False, 4), (True, 3)])
def test_selective_acknowledgements_are_ranges_of_bytes(timestamps, shown):
    sim = network(sack=True, timestamps=timestamps)
    data, ack = segments(
        sim,
        entry(0, DATA, number=0, application=1000),
        entry(
            1, ACK, backward=True, acknowledges=True, ack=1, blocks=4,
            block_start=[9, 7, 5, 3], block_end=[11, 8, 6, 4],
        ),
    )  # fmt: skip
    raw = options(ack)[dpkt.tcp.TCP_OPT_SACK]
    edges = np.frombuffer(raw, ">u4").astype(int) - data.seq
    assert edges.reshape(-1, 2).tolist() == [[9000, 11000], [7000, 8000], [5000, 6000], [3000, 4000]][:shown]
    assert len(ack.opts) <= 40


@pytest.mark.parametrize("kind", [DATA, DATAGRAM])
@pytest.mark.parametrize("size", [0, 1, 999, 1460])
def test_lengths_and_checksums_are_valid(kind, size):
    (packet,) = captured(network(timestamps=True), entry(0, kind, number=3, application=size))
    raw = bytes(packet)
    header, rest = raw[:20], raw[20:]
    assert packet.len == len(raw)
    assert ones_complement_sum(header) == 0xFFFF
    pseudo = packet.src + packet.dst + bytes([0, packet.p]) + len(rest).to_bytes(2, "big")
    assert ones_complement_sum(pseudo + rest) == 0xFFFF
    assert rest.endswith(bytes(size))


def test_datagrams_and_control_messages_are_udp():
    sent = entry(0, DATAGRAM, number=0, application=500), entry(1, CONTROL, flow=1, application=8)
    there, back = captured(network(), *sent)
    assert there.p == back.p == dpkt.ip.IP_PROTO_UDP
    assert (there.data.ulen, back.data.ulen) == (508, 16)
    assert (there.data.sport, there.data.dport) == (back.data.dport, back.data.sport)


def test_addresses_come_from_the_numbers_of_nodes():
    (packet,) = captured(network(), entry(0, DATA, application=1))
    assert socket.inet_ntoa(packet.src) == "10.0.0.5"
    assert socket.inet_ntoa(packet.dst) == "10.0.1.45"
    assert address(2**24 - 3) == b"\x0a\xff\xff\xfe"


def test_times_are_exact_to_the_nanosecond():
    times = [0, 999_999_999, 1_000_000_001, 86_399_999_999_999]
    file = io.BytesIO()
    PcapWriter(file, network(), HOST).write([entry(time, DATA, application=1) for time in times])
    raw, found, place = file.getvalue(), [], 24
    while place < len(raw):
        seconds, fraction, length, _ = np.frombuffer(raw[place : place + 16], "<u4").tolist()
        found.append(seconds * 10**9 + fraction)
        place += 16 + length
    assert found == times
