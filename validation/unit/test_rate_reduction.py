"""Proportional rate reduction: the examples of RFC 6937 and its two bounds."""

import numpy as np
import pytest


@pytest.fixture
def recovery(plain):
    def make(*, flight, pipe, ssthresh):
        conn = np.zeros(1, plain.records.connection_dtype).view(np.recarray)[0]
        conn.pipe, conn.ssthresh, conn.recover_fs = pipe, ssthresh, flight
        return conn

    return make


def answers(plain, conn, acks):
    """Let `acks` acknowledgements report one segment each; send what they allow; return how many each."""
    sent = []
    for _ in range(acks):
        conn.pipe -= 1
        plain.rate_reduction.on_ack(conn, 1)
        quota = max(int(conn.cwnd) - int(conn.pipe), 0)
        conn.pipe += quota
        conn.prr_out += quota
        sent.append(quota)
    return sent


def test_one_loss_of_twenty_sends_for_every_second_acknowledgement(plain, recovery):
    # RFC 6937, section 4, first example: 20 in flight, the first lost, ssthresh 10. After the third duplicate
    # (16 in the network) and the retransmission the rest of the acknowledgements send one for two.
    conn = recovery(flight=20, pipe=16, ssthresh=10.0)
    plain.rate_reduction.start(conn, float(conn.recover_fs), 1)
    conn.pipe, conn.prr_out = 17, 1
    sent = answers(plain, conn, 11)
    assert sum(sent) == 5
    assert max(sent) == 1
    assert all(a + b == 1 for a, b in zip(sent[1::2], sent[2::2], strict=False))


def test_the_window_ends_at_ssthresh(plain, recovery):
    conn = recovery(flight=20, pipe=16, ssthresh=10.0)
    plain.rate_reduction.start(conn, float(conn.recover_fs), 1)
    conn.pipe, conn.prr_out = 17, 1
    answers(plain, conn, 18)
    assert conn.pipe == 10


def test_after_heavy_loss_each_acknowledgement_sends_two_up_to_ssthresh(plain, recovery):
    # section 4, second example: 15 of 20 lost; the slow-start reduction bound lets pipe grow by one each time
    conn = recovery(flight=20, pipe=3, ssthresh=10.0)
    plain.rate_reduction.start(conn, float(conn.recover_fs), 1)
    conn.pipe, conn.prr_out = 4, 1
    assert answers(plain, conn, 8) == [2, 2, 2, 2, 2, 2, 1, 1]
    assert conn.pipe == 10


def test_nothing_delivered_sends_nothing(plain, recovery):
    conn = recovery(flight=20, pipe=16, ssthresh=10.0)
    plain.rate_reduction.start(conn, float(conn.recover_fs), 1)
    conn.prr_out = 5
    plain.rate_reduction.on_ack(conn, 0)
    assert conn.cwnd == conn.pipe
