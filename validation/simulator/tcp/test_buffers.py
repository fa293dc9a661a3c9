"""Buffers as Linux tunes them: numbers that Linux 6.18 reported of itself (SO_MEMINFO, TCP_INFO)."""

import numpy as np
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


def test_of_several_sent_together_only_the_last_bears_a_mark(tuned):
    tuned.send(at=0)
    window = 79 * 1024
    for number in range(1, 23):
        tuned.ack(number, at=120 + 17 * number, window=window)
    tuned.ack(24, at=530, window=window)
    # the piece of 27 segments up to 60 was marked: half of the window had been written since the last mark
    assert tuned.board[60] & tuned.records.PUSHED
    assert tuned.ack(26, at=565, window=window) == [58, 59, 60, 61]
    assert [bool(tuned.board[n] & tuned.records.PUSHED) for n in range(58, 62)] == [False, True, False, True]


def test_a_marked_piece_that_takes_more_data_bears_the_mark_at_its_new_end(tuned):
    # the application waited after 210 segments, of which 30 are not sent; a piece holds 45
    conn, last = tuned.conn, len(tuned.board) - 1
    conn.written, conn.accepted, conn.pushed, conn.tail_start = 300 * MSS, 210 * MSS, 210 * MSS, 165 * MSS
    conn.snd_una, conn.snd_nxt, conn.snd_max, conn.most_window = 170, 180, 180, 151 * 1024
    tuned.starts[170 & last], tuned.starts[180 & last] = 170 * MSS, 180 * MSS
    tuned.board[209 & last] = tuned.records.PUSHED
    assert tuned.tcp.linux.buffers.accept(conn, tuned.board, tuned.starts)
    assert conn.accepted == 225 * MSS
    assert [n for n in range(180, 225) if tuned.board[n & last] & tuned.records.PUSHED] == [224]


@pytest.mark.parametrize(
    ("length", "less"),
    # 1448 + 575 and 449 + 575 bytes are in a block of 2048, 448 + 575 in one of 1024, 1 + 575 too
    [(1448, 0), (449, 0), (448, 1024), (1, 1024)],
)
def test_a_short_segment_that_waits_out_of_order_takes_less_memory(tuned, length, less):
    buffers, conn = tuned.tcp.linux.buffers, tuned.conn
    tuned.starts[3], tuned.starts[4] = 3 * MSS, 3 * MSS + length
    conn.spared = buffers.spared(conn, tuned.starts, 3)
    assert conn.spared == less
    # 160 of 256 bytes of memory are data: 131072 - 2 * 2304 = 126464 bytes are a window of 79040 bytes
    assert buffers.free_window(conn, 2) == 79_040 + less * 160 // 256


def test_memory_is_spared_as_long_as_the_short_segment_waits(plain):
    conn = one(plain.records, "connection", mss=MSS, packet_cost=COST, unit=MSS, tuned_buffers=True)
    start(plain.buffers, conn)
    starts = np.array([0, MSS, 2 * MSS, 2 * MSS + 100, 3 * MSS + 100, 0, 0, 0])
    kept, statistics = np.zeros(8, np.uint8), one(plain.records, "flow_statistics")
    spared = []
    for number in (2, 3, 2, 0, 1):
        segment = one(plain.records, "segment", number=number)
        plain.receiver.on_segment(conn, kept, starts, statistics, segment, 10**9)
        spared.append(int(conn.spared))
    assert spared == [1024, 1024, 1024, 1024, 0]
    assert conn.rcv_nxt == 4


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
