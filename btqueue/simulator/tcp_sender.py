"""The TCP NewReno sender: RFC 5681 congestion control with the fast recovery of RFC 6582.

No input or output: a function takes what happened, `now`, and changes the connection; `next_segment` then
says, one by one, what may be sent. Sequence numbers and windows count segments of one MSS. `recover` is, as
in RFC 6582, the highest number transmitted when recovery began.
"""

from btqueue.simulator.compilation import compiled
from btqueue.simulator.records import NOTHING
from btqueue.simulator.retransmission_timer import back_off, measure, on_new_ack, start_if_stopped

DUPLICATE_THRESHOLD = 3
MINIMUM_SSTHRESH = 2.0


@compiled
def flight_size(conn):
    """Return the number of segments sent and not yet acknowledged (RFC 5681, section 2)."""
    return conn.snd_nxt - conn.snd_una


@compiled
def send_window(conn):
    """Return the number of segments that may be in flight (RFC 5681, section 3.1)."""
    return min(conn.cwnd, float(conn.rwnd))


@compiled
def on_ack(conn, statistics, ack, echoed_timestamp, now):
    """Handle an acknowledgement that asks for segment `ack` next."""
    sample_window(conn, statistics)
    if ack > conn.snd_una:
        on_new_data_acknowledged(conn, ack, echoed_timestamp, statistics, now)
    elif ack == conn.snd_una and conn.snd_max > conn.snd_una:
        on_duplicate_ack(conn, statistics, now)


@compiled
def sample_window(conn, statistics):
    """Count the window in force when an ACK or a timeout comes (Venugopal 2006, section 3.2.2)."""
    statistics.window_samples += 1
    statistics.cwnd_sum += conn.cwnd
    statistics.window_sum += send_window(conn)


@compiled
def on_new_data_acknowledged(conn, ack, echoed_timestamp, statistics, now):
    """Advance the window, sample the round-trip time, open cwnd or go on with recovery."""
    acknowledged = ack - conn.snd_una
    conn.snd_una = ack
    conn.snd_nxt = max(conn.snd_nxt, ack)
    conn.duplicate_acks = 0
    statistics.rtt_samples += 1
    statistics.rtt_sum += now - echoed_timestamp
    measure(conn, now - echoed_timestamp)
    if not conn.in_recovery:
        grow_window(conn)
    elif ack > conn.recover:
        on_full_ack(conn)
    else:
        on_partial_ack(conn, acknowledged)
    on_new_ack(conn, now)


@compiled
def grow_window(conn):
    """Slow start below ssthresh, congestion avoidance from there on (RFC 5681, section 3.1)."""
    if conn.cwnd < conn.ssthresh:
        conn.cwnd += 1.0
    else:
        conn.cwnd += 1.0 / conn.cwnd


@compiled
def on_duplicate_ack(conn, statistics, now):
    """Count; the third starts fast retransmit and recovery, more inflate cwnd (RFC 6582, section 3.2)."""
    conn.duplicate_acks += 1
    if conn.in_recovery:
        conn.cwnd += 1.0
    elif conn.duplicate_acks == DUPLICATE_THRESHOLD and conn.snd_una - 1 > conn.recover:
        conn.ssthresh = max(flight_size(conn) / 2.0, MINIMUM_SSTHRESH)
        conn.recover = conn.snd_max - 1
        conn.in_recovery = True
        conn.retransmit = True
        conn.cwnd = conn.ssthresh + DUPLICATE_THRESHOLD
        statistics.fast_retransmits += 1


@compiled
def on_partial_ack(conn, acknowledged):
    """Retransmit the next hole; deflate by what was acknowledged, add back one segment (RFC 6582, step 3)."""
    conn.retransmit = True
    conn.cwnd = max(conn.cwnd - acknowledged + 1.0, 1.0)


@compiled
def on_full_ack(conn):
    """All sent before recovery has arrived: deflate to ssthresh and leave (RFC 6582, step 3, option 2)."""
    conn.in_recovery = False
    conn.cwnd = conn.ssthresh


@compiled
def on_timeout(conn, statistics, now):
    """The timer expired: back to one segment, and go back to the oldest unacknowledged one."""
    sample_window(conn, statistics)
    statistics.timeouts += 1
    conn.ssthresh = max(flight_size(conn) / 2.0, MINIMUM_SSTHRESH)
    conn.cwnd = 1.0
    conn.recover = conn.snd_max - 1
    conn.in_recovery = False
    conn.retransmit = False
    conn.duplicate_acks = 0
    conn.snd_nxt = conn.snd_una
    back_off(conn, now)


@compiled
def next_segment(conn, now):
    """Return the number of the segment to send now and count it as sent, or NOTHING.

    A pending retransmission goes first and regardless of the window; then whatever window and application
    allow.
    """
    number = NOTHING
    if conn.retransmit:
        conn.retransmit = False
        number = conn.snd_una
        conn.snd_nxt = max(conn.snd_nxt, number + 1)
    elif conn.snd_nxt < conn.written and flight_size(conn) + 1.0 <= send_window(conn):
        number = conn.snd_nxt
        conn.snd_nxt += 1
    if number != NOTHING:
        conn.snd_max = max(conn.snd_max, conn.snd_nxt)
        start_if_stopped(conn, now)
    return number
