"""Proportional Rate Reduction during recovery with selective acknowledgements (RFC 6937, section 3).

While the data in the network exceed ssthresh, sending is spread over the recovery so that the window ends at
ssthresh; below it, the slow-start reduction bound lets the network fill up again.
"""

import math

from btqueue.simulator.machinery.numba_cache import compiled


@compiled
def start(conn, flight, delivered):
    """Begin at the fast retransmit; `delivered`: data reported by the ACK that started it."""
    conn.recover_fs = flight
    conn.prr_delivered = 0.0
    conn.prr_out = 0.0
    on_ack(conn, delivered)


@compiled
def on_ack(conn, delivered):
    """Set cwnd so that as many segments as RFC 6937 allows may follow this ACK, which reports `delivered`."""
    reduce(conn, delivered, True, 0.0)


@compiled
def on_safe_ack(conn, delivered, safe):
    """Reduce by RFC 9937, section 6.2: below ssthresh one segment more only if the ACK is `safe`.

    A safe ACK acknowledges new data and shows no further loss. The fast retransmit is sent in any case.
    """
    if delivered != 0.0:
        reduce(conn, delivered, safe, 0.0 if conn.prr_out > 0.0 else 1.0)


@compiled
def reduce(conn, delivered, safe, least):
    """Set cwnd so that the segments allowed may follow, `least` at least."""
    conn.prr_delivered += delivered
    if conn.pipe > conn.ssthresh:
        share = conn.prr_delivered * conn.ssthresh / conn.recover_fs
        quota = math.ceil(share) - float(conn.prr_out)
    else:
        quota = max(conn.prr_delivered - conn.prr_out, delivered)
        if safe:
            quota += 1.0
        quota = min(conn.ssthresh - conn.pipe, quota)
    conn.cwnd = conn.pipe + max(quota, least)
