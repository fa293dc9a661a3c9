"""Losses found by time (RFC 8985), and how far a recovery reduces the window (RFC 6937, and Linux)."""

import pytest
from state_tables import one
from tcp_sender_calls import linux


def write_three(tcp):
    """Let the application write a segment every 30 ms; return what is sent."""
    sent = []
    for number in range(3):
        tcp.conn.written = number + 1
        sent.append(tcp.send(at=30 * number))
    return sent


def order_timer(tcp):
    """Let the reordering timer fire when it is due; return when that was (ms), and what is sent."""
    at = int(tcp.timer.fires_at(tcp.conn)) / 1e6
    assert tcp.conn.awaits_order
    rings = tcp.board, tcp.sent_at, tcp.starts
    tcp.tcp.linux.on_other_timer(tcp.conn, *rings, tcp.statistics, round(at * 1e6))
    return at, tcp.send(round(at))


def test_a_lost_tail_is_found_when_the_retransmission_arrives(plain):
    # section 8.1, first example: P1 and P3 are lost, each segment is sent a reordering window after the last
    tcp = linux(plain, 100, written=0)
    assert write_three(tcp) == [[0], [1], [2]]
    assert tcp.ack(0, at=130, blocks=[(1, 2)]) == [0]
    assert tcp.ack(2, at=230) == [2]
    assert (tcp.statistics.fast_retransmits, tcp.statistics.segments_retransmitted) == (1, 2)


def test_a_lost_retransmission_is_found(plain):
    # section 8.1, second example: P1 and P2 are lost, then the retransmission of P1
    tcp = linux(plain, 100, written=0)
    write_three(tcp)
    assert tcp.ack(0, at=160, blocks=[(2, 3)]) == [0]
    assert tcp.ack(0, at=161, blocks=[(2, 3)]) == []
    tcp.conn.cwnd = 3.0
    assert tcp.send(at=165) == [1]
    assert tcp.ack(0, at=265, blocks=[(1, 3)]) == [0]


@pytest.mark.parametrize(("tick_ms", "due_ms"), [(0, 125), (4, 132)])
def test_what_is_late_by_less_than_the_window_is_waited_for(plain, tick_ms, due_ms):
    # section 6.2, step 4: a quarter of the least round trip, while fewer than three have arrived; Linux waits
    # 2 ms longer, and fires at the tick after 7 whole ones
    tcp = linux(plain, 100, written=3, timer_tick=tick_ms * 10**6)
    assert tcp.send(at=0) == [0, 1, 2]
    assert tcp.ack(0, at=100, blocks=[(1, 2)]) == []
    assert order_timer(tcp) == (due_ms, [0])


def test_what_arrives_in_time_is_no_loss(plain):
    tcp = linux(plain, 100, written=3)
    tcp.send(at=0)
    tcp.ack(0, at=100, blocks=[(1, 2)])
    assert tcp.ack(2, at=110) == []
    assert not tcp.conn.awaits_order
    assert tcp.conn.reordered
    assert tcp.statistics.segments_retransmitted == 0


def test_three_that_have_arrived_close_the_window_except_in_a_network_that_reorders(plain):
    for reordered, third in ((False, [0]), (True, [])):
        tcp = linux(plain, 100, written=6, reordered=reordered)
        tcp.send(at=0)
        assert [tcp.ack(0, at=100 + n, blocks=[(1, 2 + n)]) for n in range(3)] == [[], [], third]
    assert order_timer(tcp)[1] == [0]


def test_a_recovery_halves_the_window_and_ends_there(plain):
    tcp = linux(plain, 100, written=1000)
    assert tcp.send(at=0) == list(range(10))
    sent = [tcp.ack(0, at=200 + n, blocks=[(1, 2 + n)]) for n in range(9)]
    # what has arrived makes room before the recovery; in it one is sent for two, until five are out
    assert sent == [[10], [11], [0], [], [12], [], [13], [], []]
    assert tcp.conn.ssthresh == 5.0
    assert tcp.ack(11, at=300) == [14, 15]
    assert tcp.conn.in_recovery
    assert tcp.ack(12, at=310) == [16]
    assert not tcp.conn.in_recovery
    assert tcp.conn.pipe == tcp.conn.cwnd == 5.0


def test_a_timeout_loses_only_what_is_old_and_keeps_what_has_arrived(plain):
    tcp = linux(plain, 100, written=4)
    tcp.send(at=0)
    tcp.ack(0, at=100, blocks=[(2, 3)])
    tcp.conn.written = 5
    tcp.send(at=1050)
    assert tcp.timeout(at=1100) == [0]
    lost = [n for n in range(5) if tcp.board[n] & tcp.records.LOST]
    assert lost == [0, 1, 3]
    assert tcp.conn.cwnd == 2.0
    # what was sent before the retransmission that has arrived is late by now, too
    assert tcp.ack(1, at=1200) == [1, 3, 4]


def test_without_sack_a_timeout_loses_all(plain):
    tcp = linux(plain, 100, written=4, sack=False)
    tcp.send(at=0)
    tcp.ack(1, at=100)
    tcp.conn.written = 5
    tcp.send(at=1090)
    assert tcp.timeout(at=1100) == [1]
    assert [n for n in range(1, 5) if tcp.board[n] & tcp.records.LOST] == [1, 2, 3, 4]
    assert tcp.conn.cwnd == 1.0


def test_the_second_timeout_in_a_row_leaves_ssthresh(plain):
    tcp = linux(plain, 100, written=20, cwnd=20.0, ssthresh=64.0)
    tcp.send(at=0)
    for at in (1000, 3000):
        tcp.timeout(at)
        assert tcp.conn.ssthresh == 10.0
    assert tcp.statistics.timeouts == 2


def answers(plain, pipe, acks):
    """Begin a recovery of 20 in flight, ssthresh 10, with so many in the network before it.

    Each acknowledgement reports one segment; return how many each of them sends, and how many are left.
    """
    conn, sent = one(plain.records, "connection", pipe=pipe, ssthresh=10.0, recover_fs=20), []
    plain.rate_reduction.start(conn, 20.0, 1)
    conn.pipe, conn.prr_out = pipe + 1, 1
    for _ in range(acks):
        conn.pipe -= 1
        plain.rate_reduction.on_ack(conn, 1)
        quota = max(int(conn.cwnd) - int(conn.pipe), 0)
        conn.pipe += quota
        conn.prr_out += quota
        sent.append(quota)
    return sent, conn.pipe


def test_one_loss_of_twenty_sends_for_every_second_acknowledgement(plain):
    # RFC 6937, section 4, first example: 20 in flight, the first lost, ssthresh 10. After the third duplicate
    # (16 in the network) and the retransmission the rest of the acknowledgements send one for two.
    sent, pipe = answers(plain, 16, 18)
    assert sum(sent[:11]) == 5
    assert max(sent[:11]) == 1
    assert all(a + b == 1 for a, b in zip(sent[1:11:2], sent[2:11:2], strict=False))
    assert pipe == 10, "the window ends at ssthresh"


def test_after_heavy_loss_each_acknowledgement_sends_two_up_to_ssthresh(plain):
    # section 4, second example: 15 of 20 lost; the slow-start reduction bound lets pipe grow by one each time
    assert answers(plain, 3, 8) == ([2, 2, 2, 2, 2, 2, 1, 1], 10)
