"""The TCP sender: RFC 5681 congestion control; Tahoe, Reno, NewReno (RFC 6582), SACK (RFC 6675), Vegas.

No input or output: a function takes what happened, `now`, and changes the connection; `next_segment` then
says, one by one, what may be sent. Sequence numbers count segments; windows are in segments of one MSS, of
which a shorter segment is a part (`stream`). `board`, `sent_at` and `starts` are rings indexed by segment
number: the scoreboard, when a segment was sent first (ns), and where in the stream it begins.
"""

from btqueue.simulator.machinery.compilation import compiled, outlined
from btqueue.simulator.records.connections import CUBIC, RESENT, RETRANSMITTED, VEGAS
from btqueue.simulator.records.conventions import NEVER, NOTHING
from btqueue.simulator.records.packets import DATA
from btqueue.simulator.statistics.histograms import count
from btqueue.simulator.tcp import cubic, rack, rate_reduction, sack, vegas
from btqueue.simulator.tcp.fast_recovery import (
    flight_size,
    on_duplicate_ack,
    on_full_ack,
    on_partial_ack,
    recovers_once,
    reduced_threshold,
)
from btqueue.simulator.tcp.retransmission_timer import (
    back_off,
    measure,
    on_new_ack,
    restart_from_head,
    round_trip_time,
    start_if_stopped,
)
from btqueue.simulator.tcp.stream import amount, flight_with, has_to_wait, lay_out, next_length

LIMITED_TRANSMIT = 2
"""Segments that the first duplicate ACKs may release beyond cwnd (RFC 3042, section 2)."""


@compiled
def is_after_timeout(conn):
    """Whether what the timer found outstanding is still being sent again (slow start after an expiry)."""
    return conn.snd_una <= conn.recover and not conn.in_recovery


@compiled
def send_window(conn):
    """Return the number of segments that may be in flight (RFC 5681, section 3.1)."""
    return min(conn.cwnd, float(conn.rwnd))


@compiled
def has_room(conn, starts, length):
    """Whether the windows leave room for the next segment, of this length.

    The receive window limits the flight; cwnd limits it as well, or with selective acknowledgements `pipe`,
    what is estimated to be in the network.
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


@outlined
def on_ack(conn, board, sent_at, starts, statistics, histogram, segment, now):
    """Handle the acknowledgement that `segment` carries: it asks for segment `segment.ack` next.

    A duplicate acknowledges nothing new while data is outstanding and carries no data (RFC 5681, section 2);
    with selective acknowledgements it is one that reports news (RFC 6675, section 2).
    """
    sample_window(conn, statistics)
    news = 0.0
    if conn.sack:
        if conn.rack:
            on_ack_by_time(conn, board, sent_at, starts, statistics, histogram, segment, now)
            return
        news = sack.update(conn, board, starts, segment)
    if segment.ack > conn.snd_una:
        on_new_data_acknowledged(conn, board, sent_at, starts, statistics, histogram, segment, news, now)
    elif segment.ack == conn.snd_una and conn.snd_max > conn.snd_una:
        duplicate = news > 0 if conn.sack else segment.kind != DATA
        if duplicate:
            on_duplicate_ack(conn, board, starts, statistics, news)


@compiled
def on_new_data_acknowledged(conn, board, sent_at, starts, statistics, histogram, segment, news, now):
    """Advance the window, sample the round-trip time, open cwnd or go on with recovery."""
    acknowledged = amount(conn, starts, conn.snd_una, segment.ack)
    sample = round_trip_time(conn, board, sent_at, segment, now)
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
        sample_round_trip(conn, statistics, histogram, sample)
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
            cubic.on_pause(conn)
    elif segment.ack > conn.recover or recovers_once(conn):
        on_full_ack(conn, board, starts)
        if conn.exit_grows:
            grow_window(conn, acknowledged, now)
    else:
        on_partial_ack(conn, acknowledged, delivered)
    if news > 0 and not conn.in_recovery:
        on_duplicate_ack(conn, board, starts, statistics, news)
    on_new_ack(conn, now)


@outlined
def on_ack_by_time(conn, board, sent_at, starts, statistics, histogram, segment, now):
    """Handle an acknowledgement where losses are found by time (`rack`), in the order in which Linux does."""
    before, ack = int(conn.snd_una), max(segment.ack, conn.snd_una)
    advanced, outstanding = ack > before, conn.snd_max > before
    repairing, after_timeout = bool(conn.in_recovery), is_after_timeout(conn)
    news, first, last = rack.take_blocks(conn, board, sent_at, starts, segment, now)
    delivered, sample, youngest = rack.take_cumulative(conn, board, sent_at, starts, ack, now)
    delivered += news
    if sample == NOTHING and first < NEVER:
        sample, youngest = now - first, now - last
        conn.least_rtt = min(conn.least_rtt, youngest)
    elif sample == NOTHING and advanced and conn.timestamps:
        sample = now - segment.echo
    conn.snd_una = ack
    if advanced:
        conn.expiries = 0
        conn.duplicate_acks = 0
    elif outstanding:
        conn.duplicate_acks += 1
        statistics.duplicate_acks_received += 1
    if sample != NOTHING:
        sample_round_trip(conn, statistics, histogram, sample)
    if conn.hystart and youngest != NOTHING:
        cubic.look_for_exit(conn, youngest, now)
    if conn.awaits_order and (advanced or news > 0.0):
        conn.awaits_order = False
        restart_from_head(conn, sent_at, now)
    elif advanced or first < sent_at[ack & (len(sent_at) - 1)]:
        on_new_ack(conn, now)
    found = False
    if repairing and ack > conn.recover:
        conn.in_recovery = False
        conn.cwnd = conn.ssthresh
    disorder = news > 0.0 or (outstanding and not advanced) or conn.high_sacked >= before
    if (disorder or repairing or after_timeout) and not (after_timeout and ack > conn.recover):
        if conn.rack_advanced:
            conn.rack_advanced = False
            settled = conn.in_recovery or after_timeout
            found = rack.find_late(conn, board, sent_at, settled, now)
        if not conn.in_recovery and not after_timeout and rack.has_lost(conn, board):
            start_timed_recovery(conn, starts, statistics)
    conn.pipe = rack.pipe(conn, board, starts)
    if conn.in_recovery:
        if conn.rate_reduction:
            rate_reduction.on_safe_ack(conn, delivered, advanced and not found)
    elif advanced:
        used = conn.was_limited or (conn.cwnd < conn.ssthresh and conn.cwnd < 2.0 * conn.most_out)
        if used or not conn.window_limited_growth:
            grow_window(conn, delivered, now)
        elif conn.variant == CUBIC:
            cubic.on_pause(conn)


@compiled
def start_timed_recovery(conn, starts, statistics):
    """Enter recovery: a segment counts as lost. `next_segment` sends it again as cwnd allows."""
    statistics.fast_retransmits += 1
    conn.in_recovery = True
    conn.recover = conn.snd_max - 1
    conn.recover_fs = conn.cwnd
    conn.prr_delivered = conn.prr_out = conn.window_count = 0.0
    if conn.variant == CUBIC:
        cubic.on_loss(conn)
    conn.ssthresh = float(int(reduced_threshold(conn, starts)))
    conn.cwnd = conn.ssthresh


@outlined
def on_order_timer(conn, board, sent_at, starts, statistics, now):
    """The reordering window is over (RFC 8985, section 6.3): repair what is late."""
    settled = conn.in_recovery or is_after_timeout(conn)
    lost = rack.on_order_timer(conn, board, sent_at, settled, now)
    conn.pipe = rack.pipe(conn, board, starts)
    if lost and not settled:
        start_timed_recovery(conn, starts, statistics)
        if conn.rate_reduction:
            rate_reduction.on_safe_ack(conn, 1.0, False)


@compiled
def is_window_limited(conn, starts):
    """Whether cwnd, not the application or the receive window, limits what is sent (RFC 7661, section 4.1).

    In slow start it is enough to use more than half of it, because it doubles in a round trip.
    """
    if conn.cwnd < conn.ssthresh:
        return conn.cwnd < 2.0 * flight_size(conn, starts)
    return flight_size(conn, starts) + 1.0 > conn.cwnd


@compiled
def grow_window(conn, arrived, now):
    """Slow start below ssthresh, congestion avoidance from there on (RFC 5681, section 3.1).

    Each acknowledgement counts once, in slow start as at most what has `arrived`, or with `byte_counting` as
    many times as full segments have `arrived` (RFC 3465 without its limit, as in Linux). Nothing counts where
    only what a timeout found outstanding has arrived (`timeout_exit_holds`).
    """
    if arrived == 0.0 or (conn.variant == VEGAS and vegas.adjusts_window(conn)):
        return
    if conn.variant == CUBIC and conn.cwnd >= conn.ssthresh:
        cubic.grow(conn, arrived, now)
    elif conn.byte_counting:
        count_arrived(conn, arrived)
    elif conn.cwnd < conn.ssthresh:
        conn.cwnd += min(arrived, 1.0)
    else:
        conn.cwnd += 1.0 / conn.cwnd


@compiled
def count_arrived(conn, arrived):
    """Open cwnd by whole segments for those that have arrived, as Linux's Reno does."""
    if conn.cwnd < conn.ssthresh:
        conn.cwnd = min(conn.cwnd + arrived, conn.ssthresh)
        return
    window = max(int(conn.cwnd), 1)
    if conn.window_count >= window:
        conn.window_count = 0.0
        conn.cwnd += 1.0
    conn.window_count += arrived
    conn.cwnd += conn.window_count // window
    conn.window_count %= window


@outlined
def on_timeout(conn, board, sent_at, starts, statistics, now):
    """The timer expired: back to one segment, and go back to the oldest unacknowledged one.

    With `hold_ssthresh` the threshold stays when a segment that the timer has sent again is lost again (RFC
    5681, section 3.1); what was selectively acknowledged is forgotten (RFC 2018, section 8).
    """
    sample_window(conn, statistics)
    statistics.timeouts += 1
    if conn.rack:
        on_timeout_by_time(conn, board, sent_at, starts, now)
        return
    if not (conn.hold_ssthresh and is_after_timeout(conn)):
        if conn.variant == CUBIC:
            cubic.on_timeout(conn)
        conn.ssthresh = reduced_threshold(conn, starts)
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
    back_off(conn, now)


@outlined
def on_timeout_by_time(conn, board, sent_at, starts, now):
    """The timer expired: what is old is lost, and one segment more than what is in the network may be sent.

    ssthresh stays as it is in a recovery, and when the timer has expired before without any progress since.
    """
    settled = conn.in_recovery or is_after_timeout(conn)
    rack.on_timeout(conn, board, sent_at, settled, now)
    if not settled or (not conn.in_recovery and conn.expiries == 0):
        if conn.variant == CUBIC:
            cubic.on_timeout(conn)
        conn.ssthresh = float(int(reduced_threshold(conn, starts)))
    conn.expiries += 1
    conn.pipe = rack.pipe(conn, board, starts)
    conn.cwnd = conn.pipe + 1.0
    conn.window_count = 0.0
    conn.recover = conn.snd_max - 1
    conn.in_recovery = False
    conn.awaits_order = False
    conn.retransmit = True
    back_off(conn, now)


@outlined
def next_segment(conn, board, sent_at, starts, statistics, now):
    """Return the number of the segment to send now and count it as sent, or NOTHING.

    A pending retransmission goes first and regardless of the window; then whatever window and application
    allow. After a timeout, segments that the receiver is known to have are left out.
    """
    number = NOTHING
    if conn.retransmit:
        conn.retransmit = False
        number = conn.snd_una
        conn.snd_nxt = max(conn.snd_nxt, number + 1)
    elif conn.sack and (conn.in_recovery or conn.rack):
        if conn.rack:
            number = next_by_time(conn, board, starts)
        elif conn.pipe + 1.0 <= conn.cwnd:
            number = sack.next_segment(conn, board, starts)
    else:
        if conn.sack:
            sack.skip_arrived(conn, board)
        length = next_length(conn, starts)
        if length > 0 and has_room(conn, starts, length) and not has_to_wait(conn, length):
            number = conn.snd_nxt
            conn.snd_nxt += 1
    if number != NOTHING:
        count_sent(conn, board, sent_at, starts, statistics, number, now)
    return number


@outlined
def next_by_time(conn, board, starts):
    """Return the first segment that counts as lost, else a new one; NOTHING if cwnd has no room."""
    if conn.pipe + 1.0 <= conn.cwnd:
        number = rack.next_lost(conn, board)
        if number != NOTHING:
            return number
    length = next_length(conn, starts)
    room = conn.pipe + length / conn.unit <= conn.cwnd and flight_with(conn, starts, length) <= conn.rwnd
    if length > 0 and room and not has_to_wait(conn, length):
        conn.snd_nxt += 1
        return conn.snd_nxt - 1
    rack.note_use(conn)
    return NOTHING


@compiled
def count_sent(conn, board, sent_at, starts, statistics, number, now):
    """Enter a segment that is sent now into what the sender remembers."""
    again = number < conn.snd_max
    if again:
        statistics.segments_retransmitted += 1
    else:
        lay_out(conn, starts)
    if conn.sack or not conn.timestamps:
        place = number & (len(board) - 1)
        if again and conn.rack:
            board[place] |= RETRANSMITTED | RESENT
            sent_at[place] = now
            if number == conn.snd_una:
                conn.awaits_order = False
                conn.rto_deadline = now + conn.rto
        elif again:
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
    start_if_stopped(conn, now)
