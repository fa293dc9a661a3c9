"""Loss recovery with selective acknowledgements: the scoreboard of RFC 6675.

The scoreboard is a ring of bits indexed by segment number; `high_rxt` is the highest segment retransmitted
in this recovery (HighRxt), `rescue_rxt` limits the rescue retransmission to one, `high_sacked` is the highest
segment ever reported, and `pipe` estimates how much is in the network, in full segments.
"""

from btqueue.simulator.machinery.numba_cache import compiled
from btqueue.simulator.records.connections import RETRANSMITTED, SACKED
from btqueue.simulator.records.conventions import NOTHING
from btqueue.simulator.tcp.stream import amount, flight_with, has_to_wait, next_length

DUPLICATE_THRESHOLD = 3
"""Duplicate acknowledgements that mean a loss (RFC 5681, section 3.2; DupThresh of RFC 6675)."""


@compiled
def is_sacked(board, number):
    """Whether the receiver has reported this segment."""
    return board[number & (len(board) - 1)] & SACKED != 0


@compiled
def first_with(board, first, end, mask, bits):
    """Return the first segment from `first` up to `end` that has these bits of a mask, or NOTHING."""
    for number in range(first, end):
        if board[number & (len(board) - 1)] & mask == bits:
            return number
    return NOTHING


@compiled
def update(conn, board, starts, segment):
    """Enter the blocks of an acknowledgement; return how much they report for the first time."""
    news = 0.0
    least = max(conn.snd_una, segment.ack)
    for block in range(segment.blocks):
        for number in range(
            max(least, segment.block_start[block]), min(segment.block_end[block], conn.snd_max)
        ):
            if not is_sacked(board, number):
                board[number & (len(board) - 1)] |= SACKED
                news += amount(conn, starts, number, number + 1)
                conn.high_sacked = max(conn.high_sacked, number)
    return news


@compiled
def count_reported(conn, board, starts, ack):
    """Return how much of the data below `ack` that it newly acknowledges had been reported before."""
    reported = 0.0
    if conn.high_sacked > conn.snd_una:
        for number in range(conn.snd_una, ack):
            if is_sacked(board, number):
                reported += amount(conn, starts, number, number + 1)
    return reported


@compiled
def lost_below(conn, board, starts):
    """Return the segment below which all unreported segments count as lost (IsLost).

    More than two full segments above it have arrived, or three blocks with gaps between.
    """
    arrived, blocks, before = 0.0, 0, False
    number = conn.high_sacked + 1
    while number > conn.snd_una and arrived <= DUPLICATE_THRESHOLD - 1 and blocks < DUPLICATE_THRESHOLD:
        number -= 1
        here = is_sacked(board, number)
        if here:
            arrived += amount(conn, starts, number, number + 1)
            if not before:
                blocks += 1
        before = here
    return number


@compiled
def is_lost(conn, board, starts, number):
    """Whether enough above this segment has arrived (IsLost)."""
    return number < lost_below(conn, board, starts)


@compiled
def pipe(conn, board, starts):
    """Return the estimate of the data in the network, in full segments (SetPipe).

    Outside recovery no segment counts as lost: after a timeout this holds for segments sent since.
    """
    if not conn.in_recovery and conn.high_sacked <= conn.snd_una:
        return amount(conn, starts, conn.snd_una, conn.snd_nxt)
    lost = lost_below(conn, board, starts) if conn.in_recovery else conn.snd_una
    inside = 0.0
    for number in range(conn.snd_una, conn.snd_nxt):
        if not is_sacked(board, number):
            size = amount(conn, starts, number, number + 1)
            if number >= lost:
                inside += size
            if conn.in_recovery and number <= conn.high_rxt:
                inside += size
    return inside


@compiled
def next_segment(conn, board, starts):
    """Return the next segment to send (NextSeg) or NOTHING; with `retransmit_only_lost` by rules 1 and 2."""
    # the first segment above HighRxt, below one that has arrived, that has not
    hole = first_with(board, max(conn.high_rxt + 1, conn.snd_una), conn.high_sacked, SACKED, 0)
    if hole == NOTHING or not is_lost(conn, board, starts, hole):
        length = next_length(conn, starts)
        room = flight_with(conn, starts, length) <= conn.rwnd
        if length > 0 and room and not has_to_wait(conn, length):
            conn.snd_nxt += 1
            return conn.snd_nxt - 1
        if conn.retransmit_only_lost:
            return NOTHING
        if hole == NOTHING:
            return rescue(conn, board)
    conn.high_rxt = hole
    return hole


@compiled
def rescue(conn, board):
    """Return the highest outstanding segment not reported, or NOTHING if done before (NextSeg, rule 4)."""
    if conn.snd_una <= conn.rescue_rxt:
        return NOTHING
    conn.rescue_rxt = conn.recover
    number = conn.snd_nxt - 1
    while is_sacked(board, number):
        number -= 1
    return number


@compiled
def forget(conn, board):
    """Forget all reported segments (RFC 2018, section 8): the receiver may have dropped them."""
    for number in range(conn.snd_una, conn.high_sacked + 1):
        board[number & (len(board) - 1)] &= RETRANSMITTED
    conn.high_sacked = conn.snd_una
    conn.pipe = 0.0
