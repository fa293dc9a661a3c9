"""Loss recovery as in Linux: five states, losses by time (`rack`) or by duplicates, tail loss probes, F-RTO.

Without SACK every duplicate stands for one segment that has arrived, three of them for a loss, and the first
segment is lost again at each partial acknowledgement. In all recoveries the window shrinks in proportion to
the arriving data (RFC 6937). A *tail loss probe* (RFC 8985, section 7) sends one segment two round trips
after the last, so that an acknowledgement shows the losses. After a timeout *F-RTO* (RFC 5682) sends new data
first: if segments sent before the timeout arrive, the timeout was wrong and is undone. One timer serves all:
it waits for late segments (`awaits_order`), for the probe (`awaits_probe`), or for the RTO.
"""

from btqueue.simulator.machinery.numba_cache import compiled, outlined
from btqueue.simulator.records import connections as kinds
from btqueue.simulator.records.conventions import NEVER, NOTHING, SECOND
from btqueue.simulator.records.packets import DATA
from btqueue.simulator.tcp import buffers, cubic, rack, rate_reduction
from btqueue.simulator.tcp import retransmission_timer as timer
from btqueue.simulator.tcp.congestion_avoidance import grow_window
from btqueue.simulator.tcp.fast_recovery import reduced_threshold
from btqueue.simulator.tcp.sack import DUPLICATE_THRESHOLD, first_with
from btqueue.simulator.tcp.stream import amount, flight_with, has_to_wait, lay_out, next_length, position


@outlined
def on_ack(conn, board, sent_at, starts, statistics, histogram, segment, now):
    """Handle an acknowledgement, in the order in which Linux does."""
    before, ack = int(conn.snd_una), max(segment.ack, conn.snd_una)
    advanced, outstanding = ack > before, conn.snd_max > before
    duplicate = outstanding and not advanced and (conn.sack or segment.kind != DATA)
    conn.original_arrived = False
    highest = int(conn.high_sacked)
    news, first, last = rack.take_blocks(conn, board, sent_at, starts, segment, now)
    delivered, sample, youngest = rack.take_cumulative(conn, board, sent_at, starts, ack, highest, now)
    delivered += news
    if advanced and not conn.sack:
        covered = ack - before
        delivered = max(float(covered - conn.duplicate_acks), 1.0)
        conn.duplicate_acks = max(conn.duplicate_acks - covered + 1, 0)
    if sample == NOTHING and first < NEVER:
        sample, youngest = now - first, now - last
        conn.least_rtt = min(conn.least_rtt, youngest)
    elif sample == NOTHING and advanced and conn.timestamps:
        sample = now - segment.echo
    conn.snd_una = ack
    if conn.tuned_buffers:
        wider = buffers.take_window(conn, starts, segment)
        duplicate = duplicate and (conn.sack or not wider)
    if advanced:
        conn.expiries = 0
    elif duplicate:
        statistics.duplicate_acks_received += 1
    if sample != NOTHING:
        timer.sample_round_trip(conn, statistics, histogram, sample)
    if conn.hystart and youngest != NOTHING:
        cubic.look_for_exit(conn, youngest, now)
    restart = advanced or first < sent_at[ack & (len(sent_at) - 1)]
    end_probe(conn, starts, ack, advanced or news > 0.0)
    waited, found = bool(conn.awaits_order), False
    conn.awaits_order = False
    if duplicate or news > 0.0 or conn.state != kinds.OPEN:
        found, more = decide(conn, board, sent_at, starts, statistics, advanced, duplicate, news > 0.0, now)
        delivered += more
    if restart and not conn.awaits_order:
        set_timer(conn, sent_at, waited, now)
    elif not conn.awaits_order:
        conn.awaits_order = waited
    conn.pipe = rack.pipe(conn, board, starts)
    if conn.state == kinds.RECOVERY or conn.state == kinds.REDUCING:
        if conn.rate_reduction:
            rate_reduction.on_safe_ack(conn, delivered, advanced and not found)
    elif advanced:
        used = conn.was_limited or (conn.cwnd < conn.ssthresh and conn.cwnd < 2.0 * conn.most_out)
        if used or not conn.window_limited_growth:
            grow_window(conn, delivered, now)
    if conn.tuned_buffers:
        buffers.on_ack(conn)


@outlined
def decide(conn, board, sent_at, starts, statistics, advanced, duplicate, reported, now):
    """Move between the states; return whether a loss was found, and how many duplicates count as arrived."""
    recovered = conn.snd_una > conn.recover
    if conn.state == kinds.RECOVERY and recovered:
        # without SACK something above must be acknowledged: duplicates of the end would look like a loss
        waits = not conn.sack and conn.snd_una == conn.recover + 1
        if not conn.sack:
            conn.duplicate_acks = 0
        if waits:
            return False, 0.0
        conn.cwnd = conn.ssthresh
        enter(conn, kinds.OPEN)
    elif conn.state == kinds.REDUCING and conn.snd_una > conn.recover + 1:
        conn.cwnd = conn.ssthresh
        enter(conn, kinds.OPEN)
    if conn.state == kinds.LOSS:
        return after_timeout(conn, board, sent_at, advanced, duplicate, reported, now)
    more = 0.0
    if not conn.sack:
        if advanced and conn.state != kinds.RECOVERY:
            conn.duplicate_acks = 0
        if duplicate:
            more = count_duplicate(conn, board)
    found = identify(conn, board, sent_at, advanced, now)
    if conn.state != kinds.RECOVERY:
        if first_with(board, conn.snd_una, conn.high_lost + 1, kinds.LOST, kinds.LOST) != NOTHING:
            start_recovery(conn, starts, statistics)
        else:
            settle(conn)
    return found, more


@outlined
def after_timeout(conn, board, sent_at, advanced, duplicate, reported, now):
    """Handle an acknowledgement while segments outstanding at a timeout are sent again; as `decide`."""
    recovered = conn.snd_una > conn.recover
    if conn.frto_runs:
        if conn.original_arrived:
            undo(conn, board)
            return False, 0.0
        if conn.snd_max > conn.recover + 1:
            if reported or duplicate:
                conn.frto_runs = False
        elif advanced and not recovered:
            conn.recover = conn.snd_max - 1
            conn.new_first = True
            return False, 0.0
    if recovered:
        if not conn.sack:
            conn.duplicate_acks = 0
        if conn.sack or conn.snd_una > conn.recover + 1:
            enter(conn, kinds.OPEN)
        return False, 0.0
    more = 0.0
    if not conn.sack:
        if conn.snd_max > conn.recover + 1 and duplicate:
            more = count_duplicate(conn, board)
        elif advanced:
            conn.duplicate_acks = 0
    return identify(conn, board, sent_at, advanced, now), more


@compiled
def enter(conn, state):
    """Enter a state; `in_recovery` is true in the state RECOVERY."""
    conn.state = state
    conn.in_recovery = state == kinds.RECOVERY


@compiled
def undo(conn, board):
    """Take a timeout back: no segment is lost, and the windows are restored (RFC 5682, section 3.1)."""
    for number in range(conn.snd_una, conn.high_lost + 1):
        place = number & (len(board) - 1)
        board[place] &= 255 - kinds.LOST
    conn.cwnd = max(conn.cwnd, conn.recover_fs)
    conn.ssthresh = conn.prior_ssthresh
    conn.frto_runs = False
    enter(conn, kinds.OPEN)


@compiled
def settle(conn):
    """Set the state outside recovery: disorder if any segment is missing, else open."""
    missing = conn.duplicate_acks > 0 if not conn.sack else conn.high_sacked >= conn.snd_una
    state = kinds.DISORDER if missing else kinds.OPEN
    if state != conn.state:
        enter(conn, state)
        conn.recover = conn.snd_max - 1


@compiled
def count_duplicate(conn, board):
    """Count a duplicate as a segment that has arrived, no more than there can be above the holes."""
    before, lost = conn.duplicate_acks, 0
    for number in range(conn.snd_una, conn.high_lost + 1):
        if board[number & (len(board) - 1)] & kinds.LOST:
            lost += 1
    conn.duplicate_acks = min(before + 1, conn.snd_max - conn.snd_una - max(lost, 1))
    return float(max(conn.duplicate_acks - before, 0))


@compiled
def identify(conn, board, sent_at, advanced, now):
    """Mark lost segments; return whether any is newly lost."""
    if conn.snd_una >= conn.snd_max:
        return False
    if conn.sack:
        if not conn.rack_advanced:
            return False
        conn.rack_advanced = False
        return rack.find_late(conn, board, sent_at, conn.state >= kinds.RECOVERY, now)
    lost = advanced
    if conn.state < kinds.RECOVERY:
        lost = conn.duplicate_acks >= DUPLICATE_THRESHOLD
    elif conn.state == kinds.LOSS:
        lost = False
    if not lost or board[conn.snd_una & (len(board) - 1)] & kinds.LOST:
        return False
    rack.mark_lost(conn, board, conn.snd_una)
    return True


@compiled
def start_reduction(conn, starts):
    """Begin to reduce the window: a loss has been found."""
    conn.recover = conn.snd_max - 1
    conn.recover_fs = conn.cwnd
    conn.prr_delivered = conn.prr_out = conn.window_count = 0.0
    conn.probe_end = NOTHING
    if conn.variant == kinds.CUBIC:
        cubic.on_loss(conn)
    conn.ssthresh = float(int(reduced_threshold(conn, starts)))


@compiled
def start_recovery(conn, starts, statistics):
    """Enter recovery. `next_segment` sends lost segments again as cwnd allows."""
    statistics.fast_retransmits += 1
    if conn.state != kinds.REDUCING:
        start_reduction(conn, starts)
        conn.cwnd = conn.ssthresh
    enter(conn, kinds.RECOVERY)


# ------------------------------------------------------------------------------------------- timers


@compiled
def set_timer(conn, sent_at, waited, now):
    """Progress was made: wait for the probe or the RTO; after another wait, count from the oldest segment."""
    if arm_probe(conn, now, conn.rto):
        return
    if conn.snd_una >= conn.snd_max:
        conn.rto_deadline = NEVER
    elif waited or conn.awaits_probe:
        timer.restart_from_head(conn, sent_at, now)
    else:
        timer.arm(conn, conn.rto, now)
    conn.awaits_probe = False


@compiled
def arm_probe(conn, now, rto_left):
    """Let the timer wait for a probe (RFC 8985, 7.2), if one may be sent; `rto_left`: when the RTO is due."""
    if not conn.loss_probes or not conn.sack or conn.snd_una >= conn.snd_max:
        return False
    if conn.state != kinds.OPEN and conn.state != kinds.REDUCING:
        return False
    wait = SECOND
    if conn.measured:
        wait = 2 * int(conn.srtt) + rack.least_wait(conn)
        if conn.snd_max - conn.snd_una == 1:  # its acknowledgement may be delayed
            wait = 2 * int(conn.srtt) + conn.min_rto
    if rto_left > 0:
        wait = min(wait, rto_left)
    timer.arm(conn, wait, now)
    conn.awaits_order = False
    conn.awaits_probe = True
    return True


@outlined
def on_other_timer(conn, board, sent_at, starts, statistics, now):
    """The wait for lateness or for a probe is over."""
    if conn.awaits_probe:
        probe(conn, sent_at, statistics, now)
        return
    conn.awaits_order = False
    rack.find_late(conn, board, sent_at, conn.state >= kinds.RECOVERY, now)
    if not conn.awaits_order:
        timer.restart_from_head(conn, sent_at, now)
    conn.pipe = rack.pipe(conn, board, starts)
    if rack.next_lost(conn, board) != NOTHING and conn.state < kinds.RECOVERY:
        start_recovery(conn, starts, statistics)
        if conn.rate_reduction:
            rate_reduction.on_safe_ack(conn, 1.0, False)


@compiled
def probe(conn, sent_at, statistics, now):
    """Send a new segment, else the last one again, whatever cwnd says; one probe at a time (7.3)."""
    conn.awaits_probe = False
    if conn.probe_end != NOTHING:
        timer.restart_from_head(conn, sent_at, now)
        return
    statistics.loss_probes += 1
    conn.forced = True
    timer.arm(conn, conn.rto, now)


@compiled
def forced_segment(conn, starts):
    """Return the segment that the probe sends."""
    conn.forced = False
    length = next_length(conn, starts)
    conn.probe_again = length == 0 or not window_takes(conn, starts, length)
    if conn.probe_again:
        number = conn.snd_max - 1
    else:
        number = conn.snd_nxt
        conn.snd_nxt += 1
    conn.probe_end = conn.snd_nxt
    return number


@compiled
def end_probe(conn, starts, ack, news):
    """An acknowledgement beyond the probe ends it; a retransmission that was needed shows a loss (7.4)."""
    if conn.probe_end == NOTHING or ack < conn.probe_end:
        return
    if not conn.probe_again or (ack == conn.probe_end and not news):
        conn.probe_end = NOTHING
    elif ack > conn.probe_end:
        start_reduction(conn, starts)
        conn.cwnd = conn.ssthresh
        enter(conn, kinds.REDUCING)
        settle(conn)


@outlined
def on_timeout(conn, board, sent_at, starts, now):
    """The timer expired: old segments are lost, and cwnd allows one segment beyond the data in the network.

    In a recovery ssthresh stays as it is; also if the timer has expired before and nothing was acknowledged
    since.
    """
    first = conn.state < kinds.RECOVERY
    if not conn.sack:
        conn.duplicate_acks = 0
    rack.on_timeout(conn, board, sent_at, not first, now)
    again = conn.state == kinds.LOSS and conn.expiries > 0
    if (
        conn.state <= kinds.DISORDER
        or conn.snd_una > conn.recover
        or (conn.state == kinds.LOSS and not again)
    ):
        conn.recover_fs = conn.cwnd
        conn.prior_ssthresh = conn.ssthresh
        conn.ssthresh = float(int(reduced_threshold(conn, starts)))
    if conn.variant == kinds.CUBIC:
        cubic.on_timeout(conn)
    conn.pipe = rack.pipe(conn, board, starts)
    conn.cwnd = conn.pipe + 1.0
    conn.window_count = 0.0
    conn.frto_runs = conn.frto and (first or conn.expiries > 0)
    conn.new_first = False
    conn.expiries += 1
    conn.recover = conn.snd_max - 1
    enter(conn, kinds.LOSS)
    conn.probe_end = NOTHING
    conn.awaits_order = conn.awaits_probe = False
    conn.retransmit = True
    timer.back_off(conn, now)
    timer.arm(conn, conn.rto, now)


# ------------------------------------------------------------------------------------------- sending


@outlined
def next_segment(conn, board, sent_at, starts, alone, now):
    """Return the first segment that counts as lost, else a new one; NOTHING if cwnd has no room.

    The first step of F-RTO has new data go first. `alone`: the application has just written a burst that
    nothing waits before (Linux `tcp_push_one`).
    """
    if conn.forced:
        return forced_segment(conn, starts)
    if not conn.new_first and conn.state >= kinds.RECOVERY and conn.pipe + 1.0 <= conn.cwnd:
        number = rack.next_lost(conn, board)
        if number != NOTHING:
            return number
    length = next_length(conn, starts)
    if conn.tuned_buffers and not alone and buffers.waits_for_burst(conn, sent_at, starts, now):
        rack.note_use(conn, buffers.cwnd_cuts(conn, starts))
        return NOTHING
    room = conn.pipe + length / conn.unit <= conn.cwnd and window_takes(conn, starts, length)
    if length > 0 and not room and conn.tuned_buffers and conn.pipe + 1.0 <= conn.cwnd:
        length = conn.cut = buffers.cut_short(conn, starts)
        room = length > 0
    if length > 0 and room and (conn.cut > 0 or not has_to_wait(conn, length)):
        conn.snd_nxt += 1
        return conn.snd_nxt - 1
    if conn.new_first:
        conn.new_first = False
        if conn.snd_max <= conn.recover + 1:  # there was none: as without F-RTO
            conn.frto_runs = False
            return rack.next_lost(conn, board) if conn.pipe + 1.0 <= conn.cwnd else NOTHING
    rack.note_use(conn, False)
    return NOTHING


@compiled
def window_takes(conn, starts, length):
    """Whether the receive window takes the next new segment, of this length."""
    if conn.tuned_buffers:
        end = position(conn, starts, conn.snd_nxt) + length
        if buffers.bytes_of(conn, end) > conn.send_edge:
            return False
    return flight_with(conn, starts, length) <= conn.rwnd


@outlined
def send_next(conn, board, sent_at, starts, statistics, now):
    """Return the number of the segment to send now and count it as sent, or NOTHING."""
    if conn.retransmit:
        conn.retransmit = False
        number = conn.snd_una
        conn.snd_nxt = max(conn.snd_nxt, number + 1)
    else:
        number = next_segment(conn, board, sent_at, starts, False, now)
        while number == NOTHING and conn.tuned_buffers and buffers.accept(conn, board, starts):
            alone = conn.tail_start <= position(conn, starts, conn.snd_nxt)
            number = next_segment(conn, board, sent_at, starts, alone, now)
    if number != NOTHING:
        count_sent(conn, board, sent_at, starts, statistics, number, now)
    return number


@compiled
def count_sent(conn, board, sent_at, starts, statistics, number, now):
    """Enter a segment that is sent now into the scoreboard; sending the oldest again restarts the timer."""
    again, place = number < conn.snd_max, number & (len(board) - 1)
    if again:
        statistics.segments_retransmitted += 1
        if conn.tuned_buffers and conn.pipe + 2.0 > conn.cwnd:  # it leaves alone: it is a separate piece
            buffers.set_end(conn, board, number, True)
        board[place] |= kinds.RETRANSMITTED | kinds.RESENT
        if number == conn.snd_una and not conn.awaits_order:
            conn.awaits_probe = False
            timer.arm(conn, conn.rto, now)
    else:
        lay_out(conn, starts)
        if number == conn.snd_una and number > 0 and conn.cubic_epoch != NOTHING:
            # CUBIC's curve waits while nothing is sent
            conn.cubic_epoch += now - sent_at[(number - 1) & (len(board) - 1)]
        board[place] &= kinds.PUSHED
        if conn.tuned_buffers:
            buffers.split(conn, board, starts, number)
    sent_at[place] = now
    size = amount(conn, starts, number, number + 1)
    conn.pipe += size
    conn.prr_out += size
    conn.snd_max = max(conn.snd_max, conn.snd_nxt)
    if conn.rto_deadline == NEVER:
        timer.arm(conn, conn.rto, now)
    if not again:
        left = sent_at[conn.snd_una & (len(sent_at) - 1)] + conn.rto - now
        arm_probe(conn, now, left)
