"""Losses found by time, with selective acknowledgements: RACK (RFC 8985, section 6) as Linux has it.

A segment is lost once a segment sent later has arrived and, since its last transmission, a round trip and the
*reordering window* have passed. Retransmissions that are lost are found by the same rule. `board` tells for
each segment whether it has arrived, counts as lost, and has been sent again since; `sent_at` is the time at
which it was sent last. `rack_sent` and `rack_number` are of the segment sent last among the arrived ones;
`rack_rtt` is the round trip of the last arrival. `pipe` is the data in the network: outstanding segments,
without arrived or lost ones, plus retransmissions.
"""

from btqueue.simulator.machinery.numba_cache import compiled
from btqueue.simulator.records.connections import ENDS, LOST, PUSHED, RESENT, RETRANSMITTED, SACKED
from btqueue.simulator.records.conventions import MILLISECOND, NEVER, NOTHING
from btqueue.simulator.tcp import buffers
from btqueue.simulator.tcp import retransmission_timer as timer
from btqueue.simulator.tcp.sack import DUPLICATE_THRESHOLD, first_with
from btqueue.simulator.tcp.stream import amount

KEPT = RETRANSMITTED | ENDS | PUSHED
"""Bits that no loss and no arrival changes."""


@compiled
def pipe(conn, board, starts):
    """Return the data in the network, in full segments."""
    inside = amount(conn, starts, conn.snd_una, conn.snd_max)
    if not conn.sack:  # each stands for a full segment, as packets count in Linux
        inside = max(inside - conn.duplicate_acks, 0.0)
    if max(conn.high_sacked, conn.high_lost) < conn.snd_una:
        return inside
    for number in range(conn.snd_una, conn.snd_max):
        bits = board[number & (len(board) - 1)]
        if bits & (SACKED | LOST):
            inside -= amount(conn, starts, number, number + 1)
        if bits & RESENT:
            inside += amount(conn, starts, number, number + 1)
    return max(inside, 0.0)


@compiled
def deliver(conn, board, sent_at, number, highest, now):
    """Take a segment that has arrived, unless it is a first transmission that counted as lost.

    A segment that was sent once and lies below the `highest` one reported before has been overtaken.
    """
    place = number & (len(board) - 1)
    sent = sent_at[place]
    if board[place] & RETRANSMITTED:
        if now - sent < conn.least_rtt:
            return
    elif number < highest:
        conn.reordered = True
    conn.rack_rtt = now - sent
    conn.rack_advanced = True
    if sent > conn.rack_sent or (sent == conn.rack_sent and number > conn.rack_number):
        conn.rack_sent = sent
        conn.rack_number = number


@compiled
def take_blocks(conn, board, sent_at, starts, segment, now):
    """Enter the blocks of an acknowledgement.

    Return the data that they report for the first time, and the sending times (ns) of the first and the last
    of these segments that were sent once; NEVER and NOTHING if there is none.
    """
    news, first, last = 0.0, NEVER, NOTHING
    least = max(conn.snd_una, segment.ack)
    for block in range(segment.blocks):
        for number in range(
            max(least, segment.block_start[block]), min(segment.block_end[block], conn.snd_max)
        ):
            place = number & (len(board) - 1)
            if not board[place] & SACKED:
                if not board[place] & RETRANSMITTED:
                    first, last = min(first, sent_at[place]), max(last, sent_at[place])
                    conn.original_arrived |= number <= conn.recover
                deliver(conn, board, sent_at, number, conn.high_sacked, now)
                board[place] = board[place] & KEPT | SACKED
                if conn.tuned_buffers:
                    buffers.merge(conn, board, number)
                news += amount(conn, starts, number, number + 1)
                conn.high_sacked = max(conn.high_sacked, number)
    return news, first, last


@compiled
def take_cumulative(conn, board, sent_at, starts, ack, highest, now):
    """Take all below `ack` as delivered; `snd_una` does not move yet. `highest`: as for `deliver`.

    Without SACK no arrival is timed (Linux `tcp_clean_rtx_queue`), so that a timeout finds all to be late.

    Return how much of it had not been reported before, and the round-trip times (ns) of the oldest and of the
    youngest segment, or NOTHING where a retransmission was among them (Karn).
    """
    delivered, first, last, again = 0.0, NEVER, NOTHING, False
    for number in range(conn.snd_una, ack):
        place = number & (len(board) - 1)
        if board[place] & RETRANSMITTED:
            again = True
        if not board[place] & SACKED:
            if not board[place] & RETRANSMITTED:
                first, last = min(first, sent_at[place]), sent_at[place]
                conn.original_arrived |= number <= conn.recover
            if conn.sack:
                deliver(conn, board, sent_at, number, highest, now)
            delivered += amount(conn, starts, number, number + 1)
        if board[place] & ENDS:
            conn.pieces -= 1
        board[place] = 0
    if again or first == NEVER:
        return delivered, NOTHING, NOTHING
    conn.least_rtt = min(conn.least_rtt, now - last)
    return delivered, now - first, now - last


@compiled
def next_lost(conn, board):
    """Return the first segment that counts as lost and was not sent again since, or NOTHING."""
    return first_with(board, conn.snd_una, conn.high_lost + 1, LOST | RESENT, LOST)


@compiled
def mark_lost(conn, board, number):
    """Count a segment as lost, also if it was sent again: then that was lost, too."""
    place = number & (len(board) - 1)
    board[place] = board[place] & KEPT | LOST
    conn.high_lost = max(conn.high_lost, number)


@compiled
def reordering_window(conn, board, settled):
    """Return how long (ns) a segment may be late (RFC 8985, section 6.2, step 4).

    As long as no reordering was seen, it is 0 once the duplicate threshold is reached or the loss is being
    repaired (`settled`).
    """
    if not conn.reordered:
        arrived = 0
        for number in range(conn.snd_una, conn.high_sacked + 1):
            if board[number & (len(board) - 1)] & SACKED:
                arrived += 1
        if settled or arrived >= DUPLICATE_THRESHOLD:
            return 0
    if conn.least_rtt == NEVER:
        return 0
    return min(conn.least_rtt // 4, int(conn.srtt))


@compiled
def lateness(conn, sent_at, number, window, now):
    """Return how long ago (ns) the segment was to have arrived; negative if that is still to come."""
    return now - sent_at[number & (len(sent_at) - 1)] - conn.rack_rtt - window


@compiled
def least_wait(conn):
    """Return the time added (ns) to the waits for lateness and for a probe (Linux TCP_TIMEOUT_MIN_US)."""
    return 2 * MILLISECOND if conn.timer_tick > 0 else 0


@compiled
def find_late(conn, board, sent_at, settled, now):
    """Mark late segments as lost; return whether there are any, and wait for segments not yet late."""
    window = reordering_window(conn, board, settled)
    found, wait = False, 0
    for number in range(conn.snd_una, conn.snd_max):
        place = number & (len(board) - 1)
        if board[place] & SACKED or board[place] & (LOST | RESENT) == LOST:
            continue
        if sent_at[place] > conn.rack_sent or (
            sent_at[place] == conn.rack_sent and number >= conn.rack_number
        ):
            continue
        late = lateness(conn, sent_at, number, window, now)
        if late >= 0:
            mark_lost(conn, board, number)
            found = True
        else:
            wait = max(wait, -late)
    if wait > 0:
        conn.awaits_order = True
        conn.awaits_probe = False
        timer.arm(conn, wait + least_wait(conn), now)
    return found


@compiled
def on_timeout(conn, board, sent_at, settled, now):
    """The oldest segment is lost, and segments sent earlier than a round trip and the window ago.

    Without SACK all are: there is no round trip (Linux `tcp_timeout_mark_lost`).
    """
    window = reordering_window(conn, board, settled) if conn.sack else 0
    for number in range(conn.snd_una, conn.snd_max):
        if not board[number & (len(board) - 1)] & SACKED and (
            number == conn.snd_una or lateness(conn, sent_at, number, window, now) >= 0
        ):
            mark_lost(conn, board, number)


@compiled
def note_use(conn, waits):
    """Remember whether cwnd limited the flight, after all permitted segments have been sent (Linux).

    It also limited the flight if a burst `waits` that cwnd would cut. This holds until the segments then
    outstanding are acknowledged; a greater flight replaces it.
    """
    limited = waits or conn.pipe + 1.0 > conn.cwnd
    if not limited and conn.snd_max == conn.use_end:
        return  # nothing was sent
    out = float(conn.snd_max - conn.snd_una)
    if conn.snd_una >= conn.use_end or limited or (not conn.was_limited and out > conn.most_out):
        conn.was_limited, conn.most_out, conn.use_end = limited, out, conn.snd_max
