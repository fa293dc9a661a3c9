"""The stream of a connection, and the segments that it is cut into.

Segments are numbered from 0. The data of a segment are fixed when it is sent first: `starts`, a ring indexed
by segment number, holds the place where it begins in the stream. Amounts of data (windows, flight, arrivals)
are in full segments of `unit` bytes, so that a segment of 50 bytes counts as 50 / unit. Where windows count
segments (`unit` is 1), or where all segments are full, the stream is counted in segments: a segment then
begins at its number, and `starts` is not used.
"""

from btqueue.simulator.machinery.numba_cache import compiled
from btqueue.simulator.records.connections import MINSHALL, NO_NAGLE


@compiled
def position(conn, starts, number):
    """Return where in the stream the segment begins: one not yet acknowledged, or the next new one."""
    if conn.unit == 1:
        return number
    return starts[number & (len(starts) - 1)]


@compiled
def layout_of(sim, flow, number):
    """Return the layout of the flow's segment with this number.

    The pattern of a stream of bytes has the layouts of all lengths that occur, at equal steps up to a full
    segment.
    """
    conn, starts = sim.connections[flow], sim.starts[flow]
    if conn.unit > 1:
        length = position(conn, starts, number + 1) - position(conn, starts, number)
        return sim.patterns[conn.pattern + length * conn.pattern_length // conn.unit - 1]
    return sim.patterns[conn.pattern + number % conn.pattern_length]


@compiled
def user_bytes(sim, flow, first, end):
    """Return the bytes of user data in the flow's segments from `first` up to `end`."""
    conn, starts = sim.connections[flow], sim.starts[flow]
    if conn.unit > 1:
        return position(conn, starts, end) - position(conn, starts, first)
    if conn.pattern_length == 1:
        return (end - first) * sim.layouts[sim.patterns[conn.pattern]].application
    total = 0
    for number in range(first, end):
        total += sim.layouts[layout_of(sim, flow, number)].application
    return total


@compiled
def amount(conn, starts, first, end):
    """Return how much the segments from `first` up to `end` carry, in full segments."""
    if conn.unit == 1:
        return float(end - first)
    return (position(conn, starts, end) - position(conn, starts, first)) / conn.unit


@compiled
def next_length(conn, starts):
    """Return the length of the segment that is next in order, 0 if the application has written no more.

    A segment that was sent before keeps its length; a new segment takes the written data, up to a full
    segment.
    """
    if conn.snd_nxt < conn.snd_max:
        return position(conn, starts, conn.snd_nxt + 1) - position(conn, starts, conn.snd_nxt)
    return min(conn.unit, accepted(conn) - position(conn, starts, conn.snd_nxt))


@compiled
def accepted(conn):
    """Return the end of the application's data in the send buffer (`buffers`)."""
    return conn.accepted if conn.tuned_buffers else conn.written


@compiled
def flight_with(conn, starts, length):
    """Return the flight after the next segment, of this length, is sent."""
    end = position(conn, starts, conn.snd_nxt) + length
    return (end - position(conn, starts, conn.snd_una)) / conn.unit


@compiled
def has_to_wait(conn, length):
    """Whether a new segment is too short to be sent while data is unacknowledged (Nagle; RFC 1122, 4.2.3.4).

    With Minshall's change (draft-minshall-nagle-00), which Linux has, only short segments that are
    unacknowledged hold it back: the end of a message does not wait for the segments before it. The windows
    never cut a segment short: a sender waits until all its data, or a full segment, fit (silly window
    syndrome avoidance, same section).
    """
    if conn.nagle == NO_NAGLE or length >= conn.unit or conn.snd_nxt < conn.snd_max:
        return False
    if conn.nagle == MINSHALL:
        return conn.last_short >= conn.snd_una
    return conn.snd_max > conn.snd_una


@compiled
def lay_out(conn, starts):
    """Fix the length of the next new segment: the segment after it begins where it ends."""
    if conn.unit > 1:
        here = starts[conn.snd_max & (len(starts) - 1)]
        length = min(conn.unit, accepted(conn) - here)
        if conn.cut > 0:
            length = conn.cut
            conn.cut = 0
        starts[(conn.snd_max + 1) & (len(starts) - 1)] = here + length
        if length < conn.unit:
            conn.last_short = conn.snd_max
