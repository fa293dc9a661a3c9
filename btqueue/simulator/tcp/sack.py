"""Loss recovery with selective acknowledgements: the scoreboard of RFC 6675.

The scoreboard is a ring of bits indexed by segment number; `high_rxt` is the highest segment retransmitted
in this recovery (HighRxt), `rescue_rxt` limits the rescue retransmission to one, `high_sacked` is the highest
segment ever reported, and `pipe` estimates how many segments are in the network. All segments have one MSS,
so that "more than two MSS above" is "three segments above".
"""

from btqueue.simulator.machinery.compilation import compiled
from btqueue.simulator.records.connections import RETRANSMITTED, SACKED
from btqueue.simulator.records.conventions import NOTHING

DUPLICATE_THRESHOLD = 3


@compiled
def is_sacked(board, number):
    """Whether the receiver has reported this segment."""
    return board[number & (len(board) - 1)] & SACKED != 0


@compiled
def update(conn, board, segment):
    """Enter the blocks of an acknowledgement; return how many segments they report for the first time."""
    news = 0
    least = max(conn.snd_una, segment.ack)
    for block in range(segment.blocks):
        for number in range(
            max(least, segment.block_start[block]), min(segment.block_end[block], conn.snd_max)
        ):
            if not is_sacked(board, number):
                board[number & (len(board) - 1)] |= SACKED
                news += 1
                conn.high_sacked = max(conn.high_sacked, number)
    return news


@compiled
def count_reported(conn, board, ack):
    """Return how many of the segments below `ack` that it newly acknowledges had been reported before."""
    reported = 0
    if conn.high_sacked > conn.snd_una:
        for number in range(conn.snd_una, ack):
            if is_sacked(board, number):
                reported += 1
    return reported


@compiled
def lost_below(conn, board):
    """Return the segment below which all that has not been reported counts as lost (IsLost)."""
    arrived = 0
    number = conn.high_sacked + 1
    while number > conn.snd_una and arrived < DUPLICATE_THRESHOLD:
        number -= 1
        if is_sacked(board, number):
            arrived += 1
    return number


@compiled
def is_lost(conn, board, number):
    """Whether three segments above this one have arrived (IsLost)."""
    return number < lost_below(conn, board)


@compiled
def pipe(conn, board):
    """Return the estimated number of segments in the network (SetPipe).

    Outside recovery nothing counts as lost: after a timeout that is true of what has been sent since.
    """
    if not conn.in_recovery and conn.high_sacked <= conn.snd_una:
        return conn.snd_nxt - conn.snd_una
    lost = lost_below(conn, board) if conn.in_recovery else conn.snd_una
    inside = 0
    for number in range(conn.snd_una, conn.snd_nxt):
        if not is_sacked(board, number):
            if number >= lost:
                inside += 1
            if conn.in_recovery and number <= conn.high_rxt:
                inside += 1
    return inside


@compiled
def next_hole(conn, board):
    """Return the first segment above HighRxt, below one that has arrived, that has not; or NOTHING."""
    for number in range(max(conn.high_rxt + 1, conn.snd_una), conn.high_sacked):
        if not is_sacked(board, number):
            return number
    return NOTHING


@compiled
def next_segment(conn, board):
    """Return the next segment to send in recovery, or NOTHING (NextSeg, rules 1 to 4)."""
    hole = next_hole(conn, board)
    if hole == NOTHING or not is_lost(conn, board, hole):
        if conn.snd_nxt < conn.written and conn.snd_nxt - conn.snd_una < conn.rwnd:
            conn.snd_nxt += 1
            return conn.snd_nxt - 1
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
def skip_arrived(conn, board):
    """After a timeout: pass over the segments that have been reported since."""
    while conn.snd_nxt < conn.snd_max and is_sacked(board, conn.snd_nxt):
        conn.snd_nxt += 1


@compiled
def forget(conn, board):
    """Forget all that has been reported (RFC 2018, section 8): the receiver may have dropped it."""
    for number in range(conn.snd_una, conn.high_sacked + 1):
        board[number & (len(board) - 1)] &= RETRANSMITTED
    conn.high_sacked = conn.snd_una
    conn.pipe = 0
