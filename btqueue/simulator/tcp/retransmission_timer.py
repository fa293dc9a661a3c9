"""The retransmission timeout (RFC 6298) and the single timer's rules (Venugopal 2006, section 4.1.1).

With timestamps every acknowledgement of new data gives a round-trip time, also during recovery (RFC 7323,
section 4). Without them Karn's algorithm holds: only segments that were sent once are timed.
"""

from btqueue.simulator.machinery.numba_cache import compiled, outlined
from btqueue.simulator.records.connections import RETRANSMITTED
from btqueue.simulator.records.conventions import NEVER, NOTHING
from btqueue.simulator.statistics.histograms import count

LONGEST_BY_TICKS = 63
"""The longest wait (ticks) after which a timer of Linux fires at any tick."""


@compiled
def round_trip_time(conn, board, sent_at, segment, now):
    """Return the round-trip time (ns) that this acknowledgement of new data shows, or NOTHING.

    Call it before `snd_una` moves. Without timestamps the oldest segment that is acknowledged is timed,
    unless a segment acknowledged with it was sent twice (RFC 6298, section 3).
    """
    if conn.timestamps:
        return now - segment.echo
    mask = len(board) - 1
    for number in range(conn.snd_una, segment.ack):
        if board[number & mask] & RETRANSMITTED:
            return NOTHING
    return now - sent_at[conn.snd_una & mask]


@compiled
def sample_round_trip(conn, statistics, histogram, sample):
    """Take a round-trip time (ns) into the estimator and the statistics."""
    if statistics.rtt_samples == 0:
        statistics.rtt_least = sample
        statistics.rtt_most = sample
    statistics.rtt_least = min(statistics.rtt_least, sample)
    statistics.rtt_most = max(statistics.rtt_most, sample)
    statistics.rtt_samples += 1
    statistics.rtt_sum += sample
    statistics.rtt_squares += float(sample) * float(sample)
    count(histogram, sample)
    measure(conn, sample)


@compiled
def measure(conn, sample):
    """Take a round-trip time (ns) into SRTT and RTTVAR and compute the RTO (RFC 6298, 2.2 and 2.3)."""
    if conn.largest_variation:
        measure_largest(conn, sample)
        return
    if conn.measured:
        conn.rttvar = 0.75 * conn.rttvar + 0.25 * abs(conn.srtt - sample)
        conn.srtt = 0.875 * conn.srtt + 0.125 * sample
    else:
        conn.measured = True
        conn.srtt = float(sample)
        conn.rttvar = sample / 2.0
    estimate(conn)


@outlined
def measure_largest(conn, sample):
    """Take a round-trip time as Linux does: RTTVAR is the largest variation of a round trip, falling slowly.

    RTTVAR is at least a fourth of the least timeout, so the timer waits for a round trip and 200 ms. A sample
    below SRTT counts for an eighth.
    """
    least = conn.min_rto / 4.0
    if not conn.measured:
        conn.measured = True
        conn.srtt = float(sample)
        conn.variation = sample / 2.0
        conn.rttvar = max(conn.variation, least)
        conn.variation_most = conn.rttvar
        conn.variation_end = conn.snd_nxt
        estimate_in_ticks(conn)
        return
    error = sample - conn.srtt
    conn.srtt += error / 8.0
    change = abs(error) - conn.variation
    if error < 0.0 and change > 0.0:
        change /= 8.0
    conn.variation += change / 4.0
    conn.variation_most = max(conn.variation_most, conn.variation)
    conn.rttvar = max(conn.rttvar, conn.variation_most)
    if conn.snd_una > conn.variation_end:
        conn.rttvar -= max(conn.rttvar - conn.variation_most, 0.0) / 4.0
        conn.variation_end = conn.snd_nxt
        conn.variation_most = least
    estimate_in_ticks(conn)


@compiled
def estimate_in_ticks(conn):
    """Set the RTO in whole ticks, rounded up (Linux `__tcp_set_rto`)."""
    estimate(conn)
    tick = max(conn.timer_tick, 1)
    conn.rto = -(-conn.rto // tick) * tick


@outlined
def arm(conn, wait, now):
    """Let the timer fire `wait` (ns) later as in Linux: at a tick of the host's clock, never early.

    The wait is counted in whole ticks from the last tick on. A timer of more than 63 ticks fires at an eighth
    tick only, of more than 504 at a 64th, and so on (Linux kernel/time/timer.c, `calc_wheel_index`).
    """
    tick = conn.timer_tick
    if tick == 0:
        conn.rto_deadline = now + wait
        return
    ticks, step = -(-wait // tick), 1
    while ticks > LONGEST_BY_TICKS * step:
        step *= 8
    conn.rto_deadline = ((now // tick + ticks) // step + 1) * step * tick


@compiled
def estimate(conn):
    """Set the RTO (ns) from SRTT and RTTVAR, within its bounds (RFC 6298, 2.3 to 2.5)."""
    rto = int(conn.srtt + max(float(conn.clock_granularity), 4.0 * conn.rttvar))
    conn.rto = min(max(rto, conn.min_rto), conn.max_rto)


@compiled
def fires_at(conn):
    """Return the time (ns) at which the timer fires: when due, or at the next tick of the host's clock."""
    if conn.timer_tick > 0 and conn.rto_deadline < NEVER - conn.timer_tick:
        return -(-conn.rto_deadline // conn.timer_tick) * conn.timer_tick
    return conn.rto_deadline


@compiled
def start_if_stopped(conn, now):
    """Rule 1 of the timer: sending a segment starts it if it is not running."""
    if conn.rto_deadline == NEVER:
        conn.rto_deadline = now + conn.rto


@compiled
def on_new_ack(conn, now):
    """Rule 2 of the timer: stop when everything sent is acknowledged, else restart with the current RTO.

    A doubled RTO lasts until a round trip is measured (RFC 6298, 5.7), unless `ack_ends_backoff`: then any
    acknowledgement of new data ends it (as in ns-3). An `impatient` sender restarts the timer only at the
    first partial acknowledgement of a recovery (RFC 6582, section 4).
    """
    if conn.in_recovery:
        conn.partial_acks += 1
        if conn.impatient_timer and conn.partial_acks > 1:
            return
    else:
        conn.partial_acks = 0
    if conn.ack_ends_backoff and conn.measured:
        estimate(conn)
    if conn.snd_una >= conn.snd_max:
        conn.rto_deadline = NEVER
    else:
        conn.rto_deadline = now + conn.rto


@compiled
def restart_from_head(conn, sent_at, now):
    """Restart with the RTO counted from when the oldest segment was sent last, or stop."""
    if conn.snd_una >= conn.snd_max:
        conn.rto_deadline = NEVER
    else:
        due = sent_at[conn.snd_una & (len(sent_at) - 1)] + conn.rto
        arm(conn, max(due - now, min(conn.timer_tick, 1)), now)


@compiled
def back_off(conn, now):
    """Rule 3 of the timer: after an expiry double the RTO, up to its maximum, and restart."""
    if conn.rto_backoff:
        conn.rto = min(2 * conn.rto, conn.max_rto)
    conn.rto_deadline = now + conn.rto
