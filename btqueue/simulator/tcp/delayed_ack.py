"""Delayed acknowledgements (RFC 5681, section 4.2), also by a free-running clock (Johansson 2000, 4.1).

As Linux does, a receiver may acknowledge the first `quick_acks` segments of a connection at once, and as many
after one that came twice, so that a sender in slow start or after a timeout does not wait. An adaptive wait
(`ack_wait`) begins with `ack_delay` and follows the gaps between segments in order (Linux
`tcp_event_data_recv`, `tcp_send_delayed_ack`, `tcp_delack_timer_handler`).
"""

from btqueue.simulator.machinery.numba_cache import compiled, outlined
from btqueue.simulator.records.connections import ADAPTIVE, TICKS
from btqueue.simulator.records.conventions import MILLISECOND, NOTHING, SECOND

LONGEST_WAIT = 200 * MILLISECOND
"""Of an adaptive acknowledgement (Linux TCP_DELACK_MAX)."""


@compiled
def on_segment_in_order(conn, size, now):
    """Count a waiting segment of this length; after `ack_every` full segments acknowledge at once."""
    if conn.ack_clock == ADAPTIVE:
        follow_gap(conn, now)
    conn.unacknowledged += size
    if conn.quick_left > 0:
        count_quick(conn)
        conn.ack_now = True
    if not conn.delayed_ack or conn.unacknowledged >= conn.ack_every_segments * conn.unit:
        conn.ack_now = True


@compiled
def count_quick(conn):
    """Count a quick acknowledgement; after the last one an adaptive wait begins anew."""
    conn.quick_left = max(conn.quick_left - 1, 0)
    if conn.quick_left == 0:
        conn.ack_wait = conn.ack_delay


@outlined
def follow_gap(conn, now):
    """Let the wait follow the gap since the last segment in order, both in whole ticks.

    After a gap longer than the receiver's retransmission timeout, segments are acknowledged at once again.
    """
    tick = max(conn.timer_tick, 1)
    now, last = now - now % tick, conn.in_order_at
    conn.in_order_at = now
    if last == NOTHING:
        return
    gap = now - last
    half = conn.ack_wait // (2 * tick) * tick
    if gap <= conn.ack_delay // 2:
        conn.ack_wait = half + conn.ack_delay // 2
    elif gap < conn.ack_wait:
        conn.ack_wait = min(half + gap, timeout_of(conn))
    elif gap > timeout_of(conn):
        conn.quick_left = max(conn.quick_left, conn.quick_acks)


@compiled
def timeout_of(conn):
    """Return the receiver's retransmission timeout (ns), which only its handshake has set (RFC 6298, 2.2)."""
    if conn.receiver_rtt == NOTHING:
        return SECOND
    return conn.receiver_rtt + max(2 * conn.receiver_rtt, conn.min_rto)


@compiled
def deadline(conn, now):
    """Return when (ns) the acknowledgement of a segment that begins to wait now has to leave.

    `ack_delay` later, or at the next tick of a clock with that period which ticks at `tick_phase`. An
    adaptive wait is at most the round trip that the receiver knows, and ends with a tick of the host.
    """
    if conn.ack_clock == ADAPTIVE:
        wait = min(conn.ack_wait, LONGEST_WAIT)
        if conn.receiver_rtt != NOTHING:
            wait = min(wait, max(conn.receiver_rtt, conn.ack_delay))
        tick = max(conn.timer_tick, 1)
        return -(-(now + wait) // tick) * tick
    if conn.ack_clock == TICKS:
        ticks = (now - conn.tick_phase) // conn.ack_delay
        return conn.tick_phase + (ticks + 1) * conn.ack_delay
    return now + conn.ack_delay


@compiled
def on_timer(conn):
    """The deadline is here: acknowledge, if anything still waits; an adaptive wait was too short."""
    if conn.unacknowledged > 0 and conn.ack_clock == ADAPTIVE:
        conn.ack_wait = min(2 * conn.ack_wait, timeout_of(conn))
    conn.ack_now = conn.ack_now or conn.unacknowledged > 0
    conn.charged = conn.held
