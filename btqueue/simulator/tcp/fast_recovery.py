"""Fast retransmit and fast recovery: Tahoe, Reno (RFC 5681), NewReno (RFC 6582), SACK (RFC 6675).

`recover` is, as in RFC 6582 and (as RecoveryPoint) in RFC 6675, the highest number transmitted when recovery
began or the timer expired; it starts as -1.
"""

from btqueue.simulator.machinery.numba_cache import compiled
from btqueue.simulator.records import connections as kinds
from btqueue.simulator.tcp import cubic, rate_reduction, sack, vegas
from btqueue.simulator.tcp.sack import DUPLICATE_THRESHOLD
from btqueue.simulator.tcp.stream import amount

MINIMUM_SSTHRESH = 2.0
"""Segments (RFC 5681, equation 4)."""


@compiled
def flight_size(conn, starts):
    """Return the data sent and not yet acknowledged, in full segments (RFC 5681, section 2)."""
    return amount(conn, starts, conn.snd_una, conn.snd_nxt)


@compiled
def recovers_once(conn):
    """Whether the first new acknowledgement ends recovery: Reno (RFC 5681, 3.2) and Johansson's Vegas."""
    return conn.variant == kinds.RENO or (
        conn.variant == kinds.VEGAS and conn.vegas_adjustment == kinds.PER_ACK
    )


@compiled
def on_duplicate_ack(conn, board, starts, statistics, news):
    """Count a duplicate; the third starts fast retransmit and recovery, more inflate cwnd (RFC 6582, 3.2).

    With selective acknowledgements recovery also starts earlier, when three segments above the first have
    arrived; then `pipe` takes the place of inflation (RFC 6675, section 5).
    """
    statistics.duplicate_acks_received += 1
    conn.duplicate_acks += 1
    if conn.variant == kinds.VEGAS:
        vegas.end_round(conn)
    if conn.sack:
        conn.pipe = sack.pipe(conn, board, starts)
    if conn.in_recovery:
        if not conn.sack:
            conn.cwnd += 1.0
        elif conn.rate_reduction:
            rate_reduction.on_ack(conn, news)
    elif conn.sack:
        enough = conn.duplicate_acks >= DUPLICATE_THRESHOLD or sack.is_lost(conn, board, starts, conn.snd_una)
        if enough and conn.snd_una > conn.recover:
            start_selective_recovery(conn, board, starts, statistics, news)
    elif conn.duplicate_acks == DUPLICATE_THRESHOLD and conn.snd_una - 1 > conn.recover:
        start_recovery(conn, starts, statistics)


@compiled
def pipe_without_sack(conn, starts):
    """Return how many segments are in the network if each counted duplicate has taken one out of it."""
    departed = 0.0
    if conn.in_recovery:
        departed = conn.cwnd - conn.ssthresh
    elif conn.duplicate_acks == DUPLICATE_THRESHOLD:
        departed = 1.0
    return flight_size(conn, starts) - departed


@compiled
def reduced_threshold(conn, starts):
    """Return ssthresh after a loss (RFC 5681, equation 4, or another rule: `conn.ssthresh_rule`).

    Segments that limited transmit has sent beyond cwnd do not count as flight (RFC 5681, section 3.2, step
    2).
    """
    flight = flight_size(conn, starts)
    if conn.limited_transmit:
        flight = min(flight, float(int(conn.cwnd)))
    share = cubic.share(conn) if conn.variant == kinds.CUBIC else 0.5
    reduced = flight * share
    if conn.ssthresh_rule == kinds.HALF_WINDOW or (
        conn.variant == kinds.VEGAS and conn.vegas_adjustment == kinds.PER_ACK
    ):
        reduced = conn.cwnd * share
    elif conn.ssthresh_rule == kinds.HALF_PIPE:
        reduced = (conn.pipe if conn.sack else pipe_without_sack(conn, starts)) * share
    elif conn.ssthresh_rule == kinds.ONE_LESS:
        reduced = min(conn.ssthresh, conn.cwnd - 1.0)
    return max(reduced, MINIMUM_SSTHRESH)


@compiled
def start_recovery(conn, starts, statistics):
    """Fast retransmit, then fast recovery (RFC 6582, section 3.2, step 2); Tahoe begins a slow start.

    Tahoe goes back to the lost segment and sends all again, so that later duplicates are ignored, as after a
    timeout. Reno does not use `recover` again before the next timeout.
    """
    statistics.fast_retransmits += 1
    if conn.variant == kinds.CUBIC:
        cubic.on_loss(conn)
    conn.ssthresh = reduced_threshold(conn, starts)
    if not recovers_once(conn):
        conn.recover = conn.snd_max - 1
    if conn.variant == kinds.TAHOE:
        conn.cwnd = 1.0
        conn.snd_nxt = conn.snd_una
    else:
        conn.in_recovery = True
        conn.retransmit = True
        conn.cwnd = conn.ssthresh + (1 if conn.inflate_by_one else DUPLICATE_THRESHOLD)


@compiled
def start_selective_recovery(conn, board, starts, statistics, news):
    """Retransmit the first segment presumed lost and enter loss recovery (RFC 6675, section 5, step 4)."""
    statistics.fast_retransmits += 1
    conn.in_recovery = True
    conn.recover = conn.snd_max - 1
    conn.high_rxt = conn.snd_una - 1
    conn.pipe = sack.pipe(conn, board, starts)
    if conn.variant == kinds.CUBIC:
        cubic.on_loss(conn)
    conn.ssthresh = reduced_threshold(conn, starts)
    conn.cwnd = conn.ssthresh
    conn.retransmit = True
    conn.high_rxt = conn.snd_una
    conn.rescue_rxt = conn.snd_una
    if conn.rate_reduction:
        rate_reduction.start(conn, flight_size(conn, starts), news)


@compiled
def on_partial_ack(conn, acknowledged, delivered):
    """Retransmit the next hole; deflate by the acknowledged data (RFC 6582, section 3.2, step 3).

    If at least a full segment was acknowledged, one is added back.

    With selective acknowledgements the scoreboard gives the segments to send (RFC 6675, section 5, step B).
    """
    if not conn.sack:
        conn.retransmit = True
        conn.cwnd = max(conn.cwnd - acknowledged + int(min(acknowledged, 1.0)), 1.0)
    elif conn.rate_reduction:
        rate_reduction.on_ack(conn, delivered)


@compiled
def on_full_ack(conn, board, starts):
    """All sent before recovery has arrived: deflate to ssthresh and leave (RFC 6582, step 3, option 2)."""
    conn.in_recovery = False
    conn.cwnd = conn.ssthresh
    if conn.sack:
        conn.pipe = sack.pipe(conn, board, starts)
