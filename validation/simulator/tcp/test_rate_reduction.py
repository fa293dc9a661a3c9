"""Proportional rate reduction: the examples of RFC 6937 and its two bounds."""

import numpy as np
import pytest


@pytest.fixture
def recovery(plain):
    """Begin a recovery of 20 in flight, ssthresh 10, with so many in the network before it."""

    def make(pipe):
        conn = np.zeros(1, plain.records.connection_dtype).view(np.recarray)[0]
        conn.pipe, conn.ssthresh, conn.recover_fs = pipe, 10.0, 20
        plain.rate_reduction.start(conn, float(conn.recover_fs), 1)
        conn.pipe, conn.prr_out = pipe + 1, 1
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
    conn = recovery(16)
    sent = answers(plain, conn, 11)
    assert sum(sent) == 5
    assert max(sent) == 1
    assert all(a + b == 1 for a, b in zip(sent[1::2], sent[2::2], strict=False))
    answers(plain, conn, 7)
    assert conn.pipe == 10, "the window ends at ssthresh"


def test_after_heavy_loss_each_acknowledgement_sends_two_up_to_ssthresh(plain, recovery):
    # section 4, second example: 15 of 20 lost; the slow-start reduction bound lets pipe grow by one each time
    conn = recovery(3)
    assert answers(plain, conn, 8) == [2, 2, 2, 2, 2, 2, 1, 1]
    assert conn.pipe == 10
