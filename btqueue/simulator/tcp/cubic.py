"""CUBIC's congestion avoidance (RFC 9438): the window is a cubic function of the time since the last loss.

W_cubic(t) = C (t - K)^3 + W_max, in segments and seconds, is flat near `cubic_max`, the window at which a
segment was lost. Where Reno with the same mean window would send more, its window is used (section 4.3). An
*epoch* begins with the first acknowledgement of congestion avoidance after a loss, or after a time in which
the application, not the window, limited the flight (section 5.8).

HyStart (Ha and Rhee, "Taming the elephants", Computer Networks 55, 2011) ends slow start before a loss does,
as in Linux: when the acknowledgements of a round trip come without a gap for half of the least round trip, or
when the least round trip of a round has grown by an eighth. With `byte_counting` the window opens by whole
segments in Linux's arithmetic.
"""

from btqueue.simulator.machinery.numba_cache import compiled, outlined
from btqueue.simulator.records.conventions import MILLISECOND, NOTHING, SECOND

C = 0.4
BETA = 0.7
"""Share of the window that a loss leaves (section 4.6)."""
RENO_ALPHA = 3.0 * (1.0 - BETA) / (1.0 + BETA)
"""Segments a round trip by which Reno's window has to open to have the same mean with this share."""
STEEPEST = 1.5
"""Most by which the window opens in a round trip (section 4.2)."""


HYSTART_WINDOW = 16.0
"""Segments from which on slow start may end (Linux: hystart_low_window)."""
TRAIN_GAP, ACK_DELAY = 2 * MILLISECOND, MILLISECOND
"""Most between two acknowledgements of a train, and how long they may be held together on their way (ns)."""
ROUND_SAMPLES = 8
"""Round-trip times that a round has before they count."""
LEAST_GROWTH, MOST_GROWTH = 4 * MILLISECOND, 16 * MILLISECOND
"""Bounds of the eighth (ns)."""


@outlined
def look_for_exit(conn, sample, now):
    """Take the round-trip time (ns) of the youngest segment acknowledged; end slow start if it is time."""
    if conn.cubic_epoch != NOTHING and now - conn.cubic_epoch < SECOND:  # queues are still from the loss
        return
    conn.base_rtt = sample if conn.base_rtt == 0 else min(conn.base_rtt, sample)
    if conn.slow_start_left or conn.cwnd >= conn.ssthresh:
        return
    if conn.snd_una > conn.round_end:
        conn.round_end = conn.snd_nxt
        conn.round_started_at = conn.train_until = now
        conn.round_rtt, conn.round_samples = sample, 0
    if conn.cwnd < HYSTART_WINDOW:
        return
    left = False
    if now - conn.train_until <= TRAIN_GAP:
        conn.train_until = now
        left = now - conn.round_started_at > (conn.base_rtt + ACK_DELAY) // 2
    conn.round_rtt = min(conn.round_rtt, sample)
    if conn.round_samples < ROUND_SAMPLES:
        conn.round_samples += 1
    else:
        growth = min(max(conn.base_rtt // 8, LEAST_GROWTH), MOST_GROWTH)
        left = left or conn.round_rtt > conn.base_rtt + growth
    if left:
        conn.slow_start_left = True
        conn.ssthresh = conn.cwnd


@compiled
def share(conn):
    """Return the share of the window that a loss leaves; Linux has it in 1/1024."""
    return 717.0 / 1024.0 if conn.byte_counting else BETA


@compiled
def on_loss(conn):
    """Remember the window at a loss, or a smaller one if it is below the last (section 4.7)."""
    conn.cubic_prior = conn.cwnd
    conn.cubic_max = conn.cwnd * (1.0 + share(conn)) / 2.0 if conn.cwnd < conn.cubic_max else conn.cwnd
    if conn.byte_counting:
        conn.cubic_max = float(int(conn.cubic_max))
    conn.cubic_epoch = NOTHING


@compiled
def on_timeout(conn):
    """The epoch after slow start will begin at the top of the curve (section 4.8)."""
    on_loss(conn)
    conn.cubic_max = 0.0
    if conn.byte_counting:
        conn.cubic_prior = 0.0
    conn.slow_start_left = False
    conn.base_rtt = 0
    conn.round_end = 0


@compiled
def begin_epoch(conn, now):
    """Begin at this window: K is the time (s) until the curve is back at its top (section 4.2)."""
    conn.cubic_epoch = now
    conn.cubic_estimate = conn.cwnd
    conn.cubic_k = 0.0
    if conn.cwnd < conn.cubic_max:
        conn.cubic_k = ((conn.cubic_max - conn.cwnd) / C) ** (1.0 / 3.0)
    else:
        conn.cubic_max = conn.cwnd


@compiled
def curve(conn, time):
    """Return W_cubic (segments) `time` seconds after the epoch began."""
    return C * (time - conn.cubic_k) ** 3 + conn.cubic_max


@outlined
def grow_by_whole_segments(conn, arrived, now):
    """Open the window by a segment for each `cubic_wait` that arrive, as Linux does.

    Linux computes `cubic_wait` anew when the window has changed or 1/32 s has passed, at most once a tick.
    """
    tick = max(conn.timer_tick, 1)
    now -= now % tick
    window = float(int(conn.cwnd))
    conn.cubic_acked += arrived
    if conn.cubic_seen != window or now - conn.cubic_seen_at > SECOND // 32:
        if conn.cubic_epoch == NOTHING or now != conn.cubic_seen_at:
            conn.cubic_seen, conn.cubic_seen_at = window, now
            if conn.cubic_epoch == NOTHING:
                begin_epoch(conn, now)
                conn.cubic_acked = arrived
            time = (now - conn.cubic_epoch + conn.base_rtt) / SECOND
            below = conn.cubic_max - curve(conn, time)
            target = conn.cubic_max - float(int(below))
            conn.cubic_wait = window // (target - window) if target > window else 100.0 * window
            if conn.cubic_prior == 0.0:
                conn.cubic_wait = min(conn.cubic_wait, 20.0)
        reno = (15.0 * window) // 8.0
        while conn.cubic_acked > reno:
            conn.cubic_acked -= reno
            conn.cubic_estimate += 1.0
        if conn.cubic_estimate > window:
            conn.cubic_wait = min(conn.cubic_wait, window // (conn.cubic_estimate - window))
        conn.cubic_wait = max(conn.cubic_wait, 2.0)
    count_arrived(conn, arrived, conn.cubic_wait)


@compiled
def count_arrived(conn, arrived, wait):
    """Open cwnd by a segment for each `wait` that have arrived, as Linux does."""
    if conn.window_count >= wait:
        conn.window_count = 0.0
        conn.cwnd += 1.0
    conn.window_count += arrived
    conn.cwnd += conn.window_count // wait
    conn.window_count %= wait


@outlined
def grow(conn, arrived, now):
    """Open the window at an acknowledgement of `arrived` full segments in congestion avoidance."""
    if conn.byte_counting:
        grow_by_whole_segments(conn, arrived, now)
        return
    if conn.cubic_epoch == NOTHING:
        begin_epoch(conn, now)
    time = (now - conn.cubic_epoch) / SECOND
    alpha = RENO_ALPHA if conn.cubic_estimate < conn.cubic_prior else 1.0
    conn.cubic_estimate += alpha * arrived / conn.cwnd
    if curve(conn, time) < conn.cubic_estimate:
        conn.cwnd = max(conn.cwnd, conn.cubic_estimate)
        return
    target = min(max(curve(conn, time + conn.srtt / SECOND), conn.cwnd), STEEPEST * conn.cwnd)
    conn.cwnd += (target - conn.cwnd) / conn.cwnd
