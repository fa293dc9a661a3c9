"""The TCP receiver: cumulative and selective acknowledgements (RFC 5681, RFC 2018), timestamps (RFC 7323).

Segments that arrive out of order are kept, within the receive window, and acknowledged at once with a
duplicate; so is a segment that fills a gap. Others may wait (`delayed_ack`). `recent_blocks` holds one
segment of each of the last blocks that grew, the latest first; a number up to `rcv_nxt` stands for none.
"""

from btqueue.simulator.machinery.numba_cache import compiled, outlined
from btqueue.simulator.records.packets import DATA, SACK_BLOCKS
from btqueue.simulator.tcp import buffers
from btqueue.simulator.tcp.delayed_ack import count_quick, on_segment_in_order
from btqueue.simulator.tcp.stream import position


@compiled
def on_segment(conn, out_of_order, starts, statistics, segment, now):
    """Take a data segment; return how many segments the application can read in order because of it."""
    # the timestamp to echo: of the last segment at or below the last acknowledgement (RFC 7323, section 4.3)
    if segment.number <= conn.last_ack_sent and segment.timestamp >= conn.ts_recent:
        conn.ts_recent = segment.timestamp
    if conn.tuned_buffers:
        return into_tuned_buffer(conn, out_of_order, starts, statistics, segment, now)
    if segment.number == conn.rcv_nxt:
        return on_expected_segment(conn, out_of_order, starts, now)
    keep(conn, out_of_order, statistics, segment.number)
    return 0


@outlined
def into_tuned_buffer(conn, out_of_order, starts, statistics, segment, now):
    """Take a data segment as Linux does: the buffer and the window that it offers may grow (`buffers`)."""
    number = segment.number
    buffers.on_data(conn, segment, now)
    if number == conn.rcv_nxt:
        conn.charged = conn.held + 1
        buffers.offer_more(conn, conn.charged)
        in_order = on_expected_segment(conn, out_of_order, starts, now)
        for released in range(number + 1, conn.rcv_nxt):
            conn.spared -= buffers.spared(conn, starts, released)
        if segment.pushed and conn.held == 0 and not conn.ack_now:
            conn.ack_now = True
            conn.charged = 0
        buffers.drain(conn, number, now)
        return in_order
    if has_room_for(conn, out_of_order, number):
        conn.spared += buffers.spared(conn, starts, number)
        if conn.sack:
            buffers.offer_more(conn, conn.held)
    keep(conn, out_of_order, statistics, number)
    if conn.held > 0:
        buffers.tune(conn, conn.drained)
    conn.charged = conn.held
    return 0


@compiled
def has_room_for(conn, out_of_order, number):
    """Whether a segment beyond the expected one is in the window, and not there yet."""
    place = number & (len(out_of_order) - 1)
    return conn.rcv_nxt < number < window_end(conn, out_of_order) and out_of_order[place] == 0


@compiled
def keep(conn, out_of_order, statistics, number):
    """Keep a segment that is not the expected one, unless it is there already; acknowledge at once."""
    end = window_end(conn, out_of_order)
    if has_room_for(conn, out_of_order, number):
        out_of_order[number & (len(out_of_order) - 1)] = 1
        conn.held += 1
    elif number < end:
        statistics.duplicates_received += 1
    if conn.sack and conn.rcv_nxt < number < end:
        remember_block(conn, out_of_order, number)
    conn.ack_now = True
    if number < conn.rcv_nxt:
        conn.quick_left, conn.ack_wait = conn.quick_acks, conn.ack_delay
    else:
        count_quick(conn)


@compiled
def window_end(conn, out_of_order):
    """Return the first segment beyond the window; with short segments, beyond the largest possible flight."""
    if conn.unit == 1:
        return conn.rcv_nxt + conn.rwnd
    return conn.rcv_nxt + len(out_of_order)


@compiled
def on_expected_segment(conn, out_of_order, starts, now):
    """Advance over the expected segment and kept segments that follow it; return their number."""
    before = conn.rcv_nxt
    size = position(conn, starts, before + 1) - position(conn, starts, before)
    conn.rcv_nxt += 1
    if conn.held > 0:
        conn.ack_now = True  # it fills a gap, or lies below one
        place = conn.rcv_nxt & (len(out_of_order) - 1)
        while out_of_order[place] == 1:
            out_of_order[place] = 0
            conn.held -= 1
            conn.rcv_nxt += 1
            place = conn.rcv_nxt & (len(out_of_order) - 1)
    on_segment_in_order(conn, size, now)
    return conn.rcv_nxt - before


@compiled
def block_start(conn, out_of_order, number):
    """Return the first segment of the block of kept segments that `number` is in."""
    while number - 1 > conn.rcv_nxt and out_of_order[(number - 1) & (len(out_of_order) - 1)] == 1:
        number -= 1
    return number


@compiled
def block_end(conn, out_of_order, number):
    """Return the segment after the block of kept segments that `number` is in."""
    limit = window_end(conn, out_of_order)
    while number < limit and out_of_order[number & (len(out_of_order) - 1)] == 1:
        number += 1
    return number


@compiled
def remember_block(conn, out_of_order, number):
    """Put the block of the segment just kept first; forget blocks joined with it (RFC 2018, section 4)."""
    start, end = block_start(conn, out_of_order, number), block_end(conn, out_of_order, number)
    moved, place = number, 0
    for old in range(SACK_BLOCKS):
        here = conn.recent_blocks[old]
        if not start <= here < end:
            conn.recent_blocks[place] = moved
            moved = here
            place += 1
    while place < SACK_BLOCKS:
        conn.recent_blocks[place] = moved
        moved = 0
        place += 1


@compiled
def fill_blocks(conn, out_of_order, segment):
    """Write the blocks to report into an acknowledgement, the most recent first (RFC 2018, section 4)."""
    count = 0
    for place in range(SACK_BLOCKS):
        number = conn.recent_blocks[place]
        if number > conn.rcv_nxt and count < conn.sack_blocks:
            segment.block_start[count] = block_start(conn, out_of_order, number)
            segment.block_end[count] = block_end(conn, out_of_order, number)
            count += 1
    segment.blocks = count


@compiled
def fill_acknowledgement(conn, out_of_order, starts, segment, now):
    """Write the acknowledgement into a segment that leaves now; it covers all segments received.

    Without selective acknowledgements, an acknowledgement on a data segment does not count as a duplicate
    (RFC 5681, section 2). So while there is a gap, an acknowledgement that is due leaves alone.
    """
    segment.acknowledges = True
    segment.ack = conn.rcv_nxt
    segment.echo = conn.ts_recent
    segment.blocks = 0
    if conn.sack and conn.held > 0:
        fill_blocks(conn, out_of_order, segment)
    if conn.tuned_buffers:
        buffers.offer(conn, starts, segment)
    conn.last_ack_sent = conn.rcv_nxt
    conn.unacknowledged = 0.0
    if segment.kind != DATA or conn.sack or conn.held == 0:
        conn.ack_now = False
