"""Delayed acknowledgements (RFC 5681, section 4.2), also by a free-running clock (Johansson 2000, 4.1).

As Linux does, a receiver may acknowledge the first `quick_acks` segments of a connection at once, and as many
after one that came twice, so that a sender in slow start or after a timeout does not wait.
"""

from btqueue.simulator.machinery.numba_cache import compiled


@compiled
def on_segment_in_order(conn, size):
    """Count a segment of this length in the stream that waits; `ack_every` full ones have it sent at once."""
    conn.unacknowledged += size
    if conn.quick_left > 0:
        conn.quick_left -= 1
        conn.ack_now = True
    if not conn.delayed_ack or conn.unacknowledged >= conn.ack_every * conn.unit:
        conn.ack_now = True


@compiled
def deadline(conn, now):
    """Return when (ns) the acknowledgement of a segment that begins to wait now has to leave.

    `ack_delay` later, or at the next tick of a clock with that period which ticks at `tick_phase`.
    """
    if conn.ack_tick:
        ticks = (now - conn.tick_phase) // conn.ack_delay
        return conn.tick_phase + (ticks + 1) * conn.ack_delay
    return now + conn.ack_delay


@compiled
def on_timer(conn):
    """The deadline is here: acknowledge, if anything still waits."""
    conn.ack_now = conn.ack_now or conn.unacknowledged > 0
    conn.charged = conn.held
