"""Loss recovery with selective acknowledgements (RFC 6675), on the lock-step `Connection`.

The sender's scoreboard is a bitmap like the receiver's: what the last ACK to arrive told. Every ACK is taken
to tell all that the receiver holds; with three blocks to an ACK (RFC 2018) that is exact up to a window of
seven segments. Outside recovery nothing counts as lost, and duplicate ACKs release nothing (no limited
transmit). After a timeout the scoreboard is forgotten (RFC 2018, section 8).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcp_chains.newreno_chain import Connection

DUPLICATE_THRESHOLD = 3  # RFC 6675 section 2: DupThresh
RESCUE_ALLOWED = -1  # `rescued` once what it named is acknowledged


def lost_below(conn: Connection) -> int:
    """Return the segment below which all that was not reported counts as lost (IsLost)."""
    reported, number = 0, conn.sacked.bit_length()
    while number > 0 and reported < DUPLICATE_THRESHOLD:
        number -= 1
        reported += conn.sacked >> number & 1
    return number if reported == DUPLICATE_THRESHOLD else 0


def pipe(conn: Connection) -> int:
    """Return the estimated number of segments in the network (SetPipe)."""
    lost = lost_below(conn) if conn.in_recovery else 0
    inside = 0
    for number in range(conn.snd_nxt):
        if not conn.sacked >> number & 1:
            inside += number >= lost
            inside += conn.in_recovery and number < conn.high_rxt
    return inside


def begin(conn: Connection) -> None:
    """Enter recovery: `cwnd` is `ssthresh` already; the first segment goes out again, come what may."""
    conn.in_recovery, conn.recover = True, conn.snd_max
    conn.high_rxt, conn.rescued = 1, 0  # step 4.3: no rescue before that is acknowledged
    conn.released += (0,)


def send(conn: Connection, cwnd: int, window: int) -> None:
    """Release segments while the pipe has room for them (RFC 6675, section 5, step C)."""
    room = cwnd - pipe(conn)
    while room > 0 and (segment := _next_segment(conn, window)) is not None:
        conn.released += (segment,)
        room -= 1


def _next_segment(conn: Connection, window: int) -> int | None:
    """Return the next segment to send, or None (NextSeg, rules 1 to 4)."""
    if not conn.in_recovery:
        while conn.snd_nxt < conn.snd_max and conn.sacked >> conn.snd_nxt & 1:
            conn.snd_nxt += 1  # go-back-N passes over what has been reported since
        return _new(conn) if conn.snd_nxt < window else None
    highest = conn.sacked.bit_length() - 1
    hole = next((k for k in range(conn.high_rxt, highest) if not conn.sacked >> k & 1), None)
    if hole is not None and hole < lost_below(conn):  # rule 1
        conn.high_rxt = hole + 1
        return hole
    if conn.snd_nxt < window:  # rule 2
        return _new(conn)
    if hole is not None:  # rule 3
        conn.high_rxt = hole + 1
        return hole
    if conn.rescued != RESCUE_ALLOWED:
        return None
    conn.rescued = conn.recover  # rule 4: once, and again when that is acknowledged
    return next(k for k in reversed(range(conn.snd_nxt)) if not conn.sacked >> k & 1)


def _new(conn: Connection) -> int:
    conn.snd_nxt += 1
    conn.snd_max = max(conn.snd_max, conn.snd_nxt)
    return conn.snd_nxt - 1


def advance(conn: Connection, acknowledged: int) -> None:
    """Move the scoreboard up with `snd_una`."""
    conn.sacked >>= acknowledged
    conn.high_rxt = max(conn.high_rxt - acknowledged, 0)
    if conn.rescued != RESCUE_ALLOWED:
        conn.rescued = conn.rescued - acknowledged if conn.rescued >= acknowledged else RESCUE_ALLOWED


def end(conn: Connection) -> None:
    """Leave recovery; the window stays at `ssthresh`."""
    conn.in_recovery, conn.high_rxt, conn.rescued = False, 0, RESCUE_ALLOWED


def forget(conn: Connection) -> None:
    """Empty the scoreboard after a timeout."""
    end(conn)
    conn.sacked = 0
