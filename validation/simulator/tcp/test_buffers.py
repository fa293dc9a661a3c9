"""Buffers as Linux tunes them: numbers that Linux 6.18 reported of itself (SO_MEMINFO, TCP_INFO)."""

import pytest
from state_tables import one
from tcp_sender_calls import linux

MSS, WINDOW = 1448, 80 * 1024
RECEIVE_BUFFERS = [
    (14_480, 23_168, 0, 163_100),
    (14_480, 27_512, 0, 246_505),
    (14_480, 28_960, 0, 278_016),
    (14_480, 43_440, 11_584, 713_574),
    (14_480, 14_480, 55_024, 134_374),
]
"""Bytes read in a round trip before and now, up to the last that waits out of order, of the buffer."""
COST = 2304
"""Memory of a received packet of 1,448 bytes, and what the send buffer allows for each (bytes)."""


def start(buffers, conn):
    for name, value in buffers.initial_values(MSS, COST).items():
        setattr(conn, name, value)


@pytest.fixture
def tuned(plain):
    """Return a sender whose application writes 200 segments into a tuned buffer; times in ms."""
    usual = {"probe_end": -1, "window_limited_growth": True, "tuned_buffers": True}
    tcp = linux(plain, 40, ssthresh=1e6, rwnd=100, **usual)
    tcp.conn.unit, tcp.conn.mss, tcp.conn.packet_cost = MSS, MSS, COST
    tcp.conn.written = 200 * MSS
    start(tcp.tcp.linux.buffers, tcp.conn)
    return tcp


def test_the_send_buffer_holds_what_linux_reports(tuned):
    assert tuned.send(at=0) == list(range(10))
    # 22 segments in the first piece, less the ten that are sent in pairs; then it is filled up
    assert tuned.conn.accepted == 32 * MSS
    assert tuned.tcp.linux.buffers.memory(tuned.conn, tuned.starts) == 51_328
    assert tuned.conn.send_space == 46_080
    assert not tuned.conn.writing
    assert tuned.ack(1, at=40, window=WINDOW) == [10, 11]
    assert tuned.tcp.linux.buffers.memory(tuned.conn, tuned.starts) == 50_712


def test_the_send_buffer_grows_when_it_is_sent_empty(tuned):
    tuned.send(at=0)
    for number in range(1, 13):
        tuned.ack(number, at=40 + 17 * number, window=WINDOW)
    assert tuned.conn.cwnd == 22.0
    assert tuned.conn.send_space == 101_376


@pytest.mark.parametrize(("before", "read", "waiting", "space"), RECEIVE_BUFFERS)
def test_the_receive_buffer_follows_what_is_read(plain, before, read, waiting, space):
    conn = one(plain.records, "connection", mss=MSS, packet_cost=COST, receive_space=131_072, drained=before)
    conn.held, conn.receive_last = waiting > 0, waiting // MSS - 1
    plain.sender.linux.buffers.tune(conn, read)
    assert conn.receive_space == space


def test_the_window_grows_by_two_segments_for_each_that_arrives(plain):
    conn = one(plain.records, "connection", mss=MSS, packet_cost=COST, unit=1)
    start(plain.buffers, conn)
    grown = []
    for _ in range(7):
        plain.sender.linux.buffers.offer_more(conn, 1)
        grown.append(int(conn.receive_threshold))
    assert grown == [68_056, 70_952, 73_848, 76_744, 79_640, 80_480, 80_480]
    plain.sender.linux.buffers.offer_more(conn, 0)  # out of order: the packet itself takes no memory yet
    assert conn.receive_threshold == 81_920
