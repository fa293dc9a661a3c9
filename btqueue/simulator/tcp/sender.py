"""The TCP sender: RFC 5681 congestion control; Tahoe, Reno, NewReno (RFC 6582), SACK (RFC 6675), Vegas.

No input or output: a function takes an event and the time `now`, and changes the connection; `next_segment`
then gives, one by one, the segments that may be sent. Sequence numbers count segments; windows are in
segments of one MSS, of which a shorter segment is a part (`stream`). `board`, `sent_at` and `starts` are
rings indexed by segment number: the scoreboard, the time at which a segment was sent first (ns), and the
place where it begins in the stream.
"""

from btqueue.simulator.machinery.numba_cache import compiled, outlined
from btqueue.simulator.records.connections import CUBIC, RETRANSMITTED, VEGAS
from btqueue.simulator.records.conventions import NOTHING
from btqueue.simulator.records.packets import DATA
from btqueue.simulator.tcp import cubic, fast_recovery, linux, sack, vegas
from btqueue.simulator.tcp import retransmission_timer as timer
from btqueue.simulator.tcp.congestion_avoidance import grow_window, is_window_limited
from btqueue.simulator.tcp.stream import amount, flight_with, has_to_wait, lay_out, next_length

LIMITED_TRANSMIT = 2
"""Segments that the first duplicate ACKs may release beyond cwnd (RFC 3042, section 2)."""


@compiled
def is_after_timeout(conn):
    """Whether segments outstanding at a timeout are still being sent again (slow start after an expiry)."""
    return conn.snd_una <= conn.recover and not conn.in_recovery


@compiled
def send_window(conn):
    """Return the number of segments that may be in flight (RFC 5681, section 3.1)."""
    return min(conn.cwnd, float(conn.rwnd))


@compiled
def has_room(conn, starts, length):
    """Whether the windows leave room for the next segment, of this length.

    The receive window limits the flight; cwnd limits it as well, or with selective acknowledgements `pipe`,
    the estimated data in the network.
    """
    flight = flight_with(conn, starts, length)
    if flight > conn.rwnd:
        return False
    if conn.sack and (conn.limited_transmit or is_after_timeout(conn)):
        return conn.pipe + length / conn.unit <= conn.cwnd
    if conn.limited_transmit and not conn.in_recovery and not is_after_timeout(conn):
        return flight <= conn.cwnd + min(conn.duplicate_acks, LIMITED_TRANSMIT)
    return flight <= conn.cwnd


@compiled
def sample_window(conn, statistics):
    """Count the window in force when an ACK or a timeout comes (Venugopal 2006, section 3.2.2)."""
    statistics.window_samples += 1
    statistics.cwnd_sum += conn.cwnd
    statistics.window_sum += send_window(conn)


@compiled
def on_ack(conn, board, sent_at, starts, statistics, histogram, segment, now):
    """Handle the acknowledgement that `segment` carries: it asks for segment `segment.ack` next.

    A duplicate acknowledges nothing new while data is outstanding and carries no data (RFC 5681, section 2);
    with selective acknowledgements it is one that reports news (RFC 6675, section 2).
    """
    sample_window(conn, statistics)
    news = 0.0
    if conn.rack:
        linux.on_ack(conn, board, sent_at, starts, statistics, histogram, segment, now)
        return
    if conn.sack:
        news = sack.update(conn, board, starts, segment)
    if segment.ack > conn.snd_una:
        on_new_data_acknowledged(conn, board, sent_at, starts, statistics, histogram, segment, news, now)
    elif segment.ack == conn.snd_una and conn.snd_max > conn.snd_una:
        duplicate = news > 0 if conn.sack else segment.kind != DATA
        if duplicate:
            fast_recovery.on_duplicate_ack(conn, board, starts, statistics, news)


@compiled
def on_new_data_acknowledged(conn, board, sent_at, starts, statistics, histogram, segment, news, now):
    """Advance the window, sample the round-trip time, open cwnd or go on with recovery."""
    acknowledged = amount(conn, starts, conn.snd_una, segment.ack)
    sample = timer.round_trip_time(conn, board, sent_at, segment, now)
    delivered = acknowledged
    if conn.sack:
        delivered += news - sack.count_reported(conn, board, starts, segment.ack)
    limited = is_window_limited(conn, starts)
    if conn.timeout_exit_holds and is_after_timeout(conn) and segment.ack > conn.recover:
        delivered = amount(conn, starts, conn.recover + 1, segment.ack)
    conn.snd_una = segment.ack
    conn.snd_nxt = max(conn.snd_nxt, segment.ack)
    conn.duplicate_acks = 0
    if sample != NOTHING:
        timer.sample_round_trip(conn, statistics, histogram, sample)
        if conn.hystart:
            cubic.look_for_exit(conn, sample, now)
    if conn.variant == VEGAS:
        vegas.observe(conn, starts, sample, now)
    if conn.sack:
        conn.pipe = sack.pipe(conn, board, starts)
    if not conn.in_recovery:
        if limited or not conn.window_limited_growth:
            grow_window(conn, delivered, now)
        if conn.variant == CUBIC and not limited:
            conn.cubic_epoch = NOTHING  # this time does not count
    elif segment.ack > conn.recover or fast_recovery.recovers_once(conn):
        fast_recovery.on_full_ack(conn, board, starts)
        if conn.recovery_exit_grows:
            grow_window(conn, acknowledged, now)
    else:
        fast_recovery.on_partial_ack(conn, acknowledged, delivered)
    if news > 0 and not conn.in_recovery:
        fast_recovery.on_duplicate_ack(conn, board, starts, statistics, news)
    timer.on_new_ack(conn, now)


@outlined
def on_timeout(conn, board, sent_at, starts, statistics, now):
    """The timer expired: back to one segment, and go back to the oldest unacknowledged one.

    With `hold_ssthresh` the threshold stays when a segment that the timer has sent again is lost again (RFC
    5681, section 3.1); selective acknowledgements are forgotten (RFC 2018, section 8).
    """
    sample_window(conn, statistics)
    statistics.timeouts += 1
    if conn.rack:
        linux.on_timeout(conn, board, sent_at, starts, now)
        return
    if not (conn.hold_ssthresh and is_after_timeout(conn)):
        if conn.variant == CUBIC:
            cubic.on_timeout(conn)
        conn.ssthresh = fast_recovery.reduced_threshold(conn, starts)
    conn.cwnd = 1.0
    conn.recover = conn.snd_max - 1
    conn.in_recovery = False
    conn.retransmit = False
    conn.duplicate_acks = 0
    conn.snd_nxt = conn.snd_una
    if conn.sack:
        sack.forget(conn, board)
    if conn.variant == VEGAS:
        vegas.end_round(conn)
    timer.back_off(conn, now)


@compiled
def next_segment(conn, board, sent_at, starts, statistics, now):
    """Return the number of the segment to send now and count it as sent, or NOTHING.

    A pending retransmission goes first and regardless of the window; then whatever window and application
    allow. After a timeout, segments that the receiver is known to have are left out.
    """
    if conn.rack:
        return linux.send_next(conn, board, sent_at, starts, statistics, now)
    number = NOTHING
    if conn.retransmit:
        conn.retransmit = False
        number = conn.snd_una
        conn.snd_nxt = max(conn.snd_nxt, number + 1)
    elif conn.sack and conn.in_recovery:
        if conn.pipe + 1.0 <= conn.cwnd:
            number = sack.next_segment(conn, board, starts)
    else:
        if conn.sack:
            while conn.snd_nxt < conn.snd_max and sack.is_sacked(board, conn.snd_nxt):
                conn.snd_nxt += 1
        length = next_length(conn, starts)
        if length > 0 and has_room(conn, starts, length) and not has_to_wait(conn, length):
            number = conn.snd_nxt
            conn.snd_nxt += 1
    if number != NOTHING:
        count_sent(conn, board, sent_at, starts, statistics, number, now)
    return number


@compiled
def count_sent(conn, board, sent_at, starts, statistics, number, now):
    """Enter a segment that is sent now into the sender's records."""
    again = number < conn.snd_max
    if again:
        statistics.segments_retransmitted += 1
    else:
        lay_out(conn, starts)
    if conn.sack or not conn.timestamps:
        place = number & (len(board) - 1)
        if again:
            board[place] |= RETRANSMITTED
        else:
            board[place] = 0
            sent_at[place] = now
    if conn.sack:
        size = amount(conn, starts, number, number + 1)
        conn.pipe += size
        conn.prr_out += size
    if conn.variant == VEGAS and not again:
        vegas.mark(conn, starts, number, now)
    conn.snd_max = max(conn.snd_max, conn.snd_nxt)
    timer.start_if_stopped(conn, now)
