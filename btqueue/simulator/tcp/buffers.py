"""Send and receive buffers that grow with the connection, as Linux tunes them.

The *send buffer* holds data of the application until they are acknowledged, in pieces. Data sent together are
a piece, mostly two segments at most; of data not yet sent, a piece has at most half of the peer's window. A
piece costs its data and `OVERHEAD`. An application that writes waits when the buffer is full, until a third
of it is free. The buffer grows to twice cwnd, but only while the window is not full and the application
waits.

The *receive buffer* is tuned by the data that the application reads in a round trip (dynamic right-sizing):
when these grow, the buffer becomes twice as large, and larger in slow start. The offered window grows towards
it by two segments for each that arrives. As long as it grows, each segment is acknowledged at once.

The numbers were reported by Linux 6.18 (SO_MEMINFO, TCP_INFO) in transfers of 1,448-byte segments.
"""

from btqueue.simulator.machinery.numba_cache import compiled, outlined
from btqueue.simulator.records.connections import ENDS, NO_NAGLE, PUSHED, RECOVERY, SACKED
from btqueue.simulator.records.conventions import MILLISECOND, NOTHING, SECOND
from btqueue.simulator.tcp.stream import position

OVERHEAD = 832
"""Memory (bytes) of a piece of the send buffer beyond its data."""
LEAST_WINDOW = 10
"""Segments that the send buffer allows for at least."""
MOST_IN_A_PIECE = 45
"""Segments that one piece holds at most: 64 KiB."""
GSO_MOST = 65_160
"""Bytes that are sent together at most."""
FIRST_SPACE, FIRST_WINDOW = 131072, 65536
"""The first receive buffer, and the first window (bytes)."""
PACKET, HEADROOM = 256, 575
"""Memory (bytes) of a packet beyond its data: apart from them, and in one block with them.

The block is a power of two.
"""
SCALE = 1024
"""Unit (bytes) of the window field, for buffers of 32 MiB at most."""


def initial_values(mss: int, packet_cost: int) -> dict[str, object]:
    """Return the variables of a new connection's buffers that are not 0 or False, as fields."""
    window = FIRST_WINDOW // max(mss, 1) * mss
    return {
        **dict.fromkeys(("receive_threshold", "receive_edge", "send_edge", "most_window"), window),
        **dict.fromkeys(("receive_last", "drained_since"), NOTHING),
        "writing": True,
        "send_space": 2 * LEAST_WINDOW * packet_cost,
        "receive_space": FIRST_SPACE,
        "drained": LEAST_WINDOW * mss,
    }


# ------------------------------------------------------------------------------------------- sending


@compiled
def bytes_of(conn, length):
    """Return a length of the stream in bytes."""
    return length * conn.mss // conn.unit


@compiled
def piece_goal(conn):
    """Return the most data of the stream in a piece that is not sent yet."""
    return min(max(conn.most_window // 2 // conn.mss, 1), MOST_IN_A_PIECE) * conn.unit


@compiled
def memory(conn, starts):
    """Return the memory (bytes) that the send buffer takes."""
    sent = position(conn, starts, conn.snd_max)
    pieces = conn.pieces + (1 if conn.piece_length > 0 else 0)
    if conn.accepted > sent:
        goal = piece_goal(conn)
        pieces += 1 + (max(conn.tail_start - sent, 0) + goal - 1) // goal
    return bytes_of(conn, conn.accepted - position(conn, starts, conn.snd_una)) + OVERHEAD * pieces


@compiled
def grow(conn):
    """Let the send buffer grow to twice cwnd."""
    window = max(LEAST_WINDOW, int(conn.cwnd))
    conn.send_space = max(conn.send_space, 2 * window * conn.packet_cost)


@compiled
def on_ack(conn):
    """Let the send buffer of a waiting application grow if one burst does not fill cwnd.

    Recordings of Linux show this growth also if an acknowledgement releases two bursts at once.
    """
    if not conn.writing and conn.pipe + most_together(conn) < conn.cwnd:
        grow(conn)


@outlined
def accept(conn, board, starts):
    """Take more data of the application; return whether there were data, and room for them.

    A piece that is marked (PSH) and not full takes more data and keeps its mark (Linux `tcp_sendmsg_locked`).
    """
    if not conn.writing:
        if conn.pipe < conn.cwnd:
            grow(conn)
        if 3 * memory(conn, starts) > 2 * conn.send_space:
            return False
        conn.writing = True
    sent = position(conn, starts, conn.snd_max)
    goal, tail = piece_goal(conn), max(conn.tail_start, sent)
    keeps_mark = False
    most = sent + (conn.snd_una + len(board) - 2 - conn.snd_max) * conn.unit  # room of the scoreboard
    if conn.accepted == conn.written or conn.accepted >= most:
        push(conn, board, sent)
        return False
    if conn.accepted == sent or conn.accepted - tail >= goal:
        if memory(conn, starts) >= conn.send_space:
            conn.writing = False
            push(conn, board, sent)
            return False
        conn.tail_start = tail = conn.accepted
    elif conn.pushed == conn.accepted:  # the longer piece bears the mark at its new end
        board[last_accepted(conn, sent) & (len(board) - 1)] &= 255 - PUSHED
        keeps_mark = True
    conn.accepted = min(tail + goal, conn.written, most)
    if keeps_mark:
        board[last_accepted(conn, sent) & (len(board) - 1)] |= PUSHED
    if bytes_of(conn, conn.accepted - conn.pushed) > conn.most_window // 2:
        push(conn, board, sent)
    return True


@compiled
def last_accepted(conn, sent):
    """Return the number of the last segment that the buffer holds; some of it is not sent."""
    return conn.snd_max + (conn.accepted - sent + conn.unit - 1) // conn.unit - 1


@compiled
def push(conn, board, sent):
    """Let the last segment in the buffer bear PSH."""
    if conn.accepted > sent:
        board[last_accepted(conn, sent) & (len(board) - 1)] |= PUSHED
        conn.pushed = conn.accepted


@compiled
def most_together(conn):
    """Return the most segments sent together: the segments of 1/1024 s at twice the rate, at least two.

    Twice the rate in slow start, 1.2 times else; a short round trip allows for more.
    """
    if conn.srtt == 0.0:
        return 2
    share = 2.0 if 2.0 * conn.cwnd < conn.ssthresh else 1.2
    window = max(conn.cwnd, float(conn.snd_max - conn.snd_una))
    size = int(share * window * conn.mss * (SECOND / 1024.0) / conn.srtt)
    halvings = conn.least_rtt // 512_000
    if halvings < 32:
        size += GSO_MOST >> halvings
    return max(size // conn.mss, 2)


@compiled
def waits_for_burst(conn, sent_at, starts, now):
    """Whether the next burst waits for an acknowledgement that is near, because the windows cut it.

    Only a burst directly after another one waits. A third of the window goes at once (Linux
    `tcp_tso_should_defer`, since 6.18).
    """
    if conn.piece_length > 0 or conn.snd_max == conn.snd_una or conn.state >= RECOVERY:
        return False
    last = len(sent_at) - 1
    if now - sent_at[(conn.snd_max - 1) & last] > MILLISECOND:
        return False
    here = bytes_of(conn, position(conn, starts, conn.snd_nxt))
    if bytes_of(conn, conn.accepted) - here <= conn.mss:  # one segment is no burst
        return False
    window = (conn.cwnd - conn.pipe) * conn.mss
    room = min(conn.send_edge - here, window)
    if room >= most_together(conn) * conn.mss or 3 * room >= min(conn.last_window, conn.cwnd * conn.mss):
        return False
    left = sent_at[conn.snd_una & last] + int(conn.srtt) - now
    return left <= min(MILLISECOND, int(conn.srtt) // 2)


@compiled
def cwnd_cuts(conn, starts):
    """Whether cwnd, and not the receive window, leaves less room for the next burst."""
    here = bytes_of(conn, position(conn, starts, conn.snd_nxt))
    return (conn.cwnd - conn.pipe) * conn.mss < conn.send_edge - here


@compiled
def split(conn, board, starts, number):
    """A new segment is sent: it ends a piece, or shares one with the next segment if the window allows both.

    The last segment of several that are sent together bears PSH, and only this one, also where a piece of the
    buffer that was marked ends among them (Linux `tcp_grow_skb`, since 6.11; `__tcp_transmit_skb`).
    """
    conn.piece_length += 1
    end = position(conn, starts, number + 1)
    last = end == conn.accepted or conn.piece_length >= most_together(conn)
    shut = bytes_of(conn, end) + conn.mss > conn.send_edge and cut_short(conn, starts) == 0
    if last or conn.pipe + 2.0 > conn.cwnd or shut:
        board[number & (len(board) - 1)] |= ENDS if conn.piece_length == 1 else ENDS | PUSHED
        conn.pieces += 1
        conn.piece_length = 0
    else:
        board[number & (len(board) - 1)] &= 255 - PUSHED


@compiled
def set_end(conn, board, number, ends):
    """Let a piece end with this segment, or join it with the next one."""
    place = number & (len(board) - 1)
    if ends and not board[place] & ENDS:
        board[place] |= ENDS
        conn.pieces += 1
    elif not ends and board[place] & ENDS:
        board[place] &= 255 - ENDS
        conn.pieces -= 1


@compiled
def merge(conn, board, number):
    """A segment is reported to have arrived: it joins the neighbours that are also reported."""
    if number > conn.snd_una:
        set_end(conn, board, number - 1, not board[(number - 1) & (len(board) - 1)] & SACKED)
    if number + 1 < conn.snd_max:
        set_end(conn, board, number, not board[(number + 1) & (len(board) - 1)] & SACKED)


@compiled
def cut_short(conn, starts):
    """Return the length of a segment that fills the window behind a full segment; 0 if there is none.

    There is none while another short segment is unacknowledged.
    """
    if conn.piece_length == 0 or (conn.nagle != NO_NAGLE and conn.last_short >= conn.snd_una):
        return 0
    here = position(conn, starts, conn.snd_nxt)
    room = (conn.send_edge - bytes_of(conn, here)) * conn.unit // conn.mss
    if room >= conn.unit:  # another limit than the window holds the segment back
        return 0
    return max(min(room, conn.accepted - here), 0)


@compiled
def take_window(conn, starts, segment):
    """Take the window that an acknowledgement of `snd_una` offers; an earlier offer stays valid.

    Return whether it is wider than the last one: then the acknowledgement is no duplicate.
    """
    conn.heard = segment.timestamp
    wider = segment.window > conn.last_window
    conn.last_window = segment.window
    conn.most_window = max(conn.most_window, segment.window)
    edge = bytes_of(conn, position(conn, starts, conn.snd_una)) + segment.window
    conn.send_edge = max(conn.send_edge, edge)
    return wider


# ------------------------------------------------------------------------------------------- receiving


@compiled
def window_of(conn, space):
    """Return the window (bytes) for `space` bytes of memory: the share of data in a full packet."""
    return space * (256 * conn.mss // conn.packet_cost) // 256


@outlined
def on_data(conn, segment, now):
    """Measure the receiver's round trip: from an acknowledgement to the data that it released."""
    if conn.drained_since == NOTHING:
        conn.drained_since = segment.timestamp
    conn.receive_last = max(conn.receive_last, segment.number)
    if segment.echo == 0 or segment.echo == conn.drain_echo:
        return
    conn.drain_echo = segment.echo
    sample = float(max(now // MILLISECOND - segment.echo // MILLISECOND, 1) * MILLISECOND)
    if conn.drain_rtt == 0.0 or sample < conn.drain_rtt:
        conn.drain_rtt = sample
    else:
        conn.drain_rtt += (sample - conn.drain_rtt) / 8.0


@outlined
def offer_more(conn, held):
    """Let the window grow by a segment that has arrived, while `held` segments take memory."""
    room = free_window(conn, held) - conn.receive_threshold
    if room > 0:
        conn.receive_threshold += min(room, 2 * conn.mss)
        conn.quick_left |= 1


@compiled
def free_window(conn, held):
    """Return the window (bytes) that is left when `held` segments take memory, some less than others."""
    return max(window_of(conn, conn.receive_space + conn.spared - held * conn.packet_cost), 0)


@compiled
def spared(conn, starts, number):
    """Return how much less memory (bytes) a segment takes than a full one.

    Linux charges a packet with its `truesize`, of which the block comes from `kmalloc` (`__alloc_skb`).
    """
    length = bytes_of(conn, position(conn, starts, number + 1) - position(conn, starts, number))
    block = 1
    while block <= length + HEADROOM:
        block *= 2
    return conn.packet_cost - PACKET - block


@outlined
def offer(conn, starts, segment):
    """Write the window into an acknowledgement: the free space, up to the threshold, in units of `SCALE`.

    An offered window is not taken back. With less than half of it free, quick acknowledgements end.
    """
    free, here = free_window(conn, conn.charged), bytes_of(conn, position(conn, starts, conn.rcv_nxt))
    if 2 * free < window_of(conn, conn.receive_space):
        conn.quick_left = 0
        free = free // SCALE * SCALE
        if 16 * free < window_of(conn, conn.receive_space) or free < conn.mss:
            free = 0
    window = max(min(free, conn.receive_threshold), conn.receive_edge - here)
    segment.window = (window + SCALE - 1) // SCALE * SCALE
    conn.receive_edge = here + segment.window


@outlined
def tune(conn, read):
    """Make the buffer twice the data read in a round trip, more if these grow, and add the waiting data."""
    window = 2 * read
    window += 2 * (window * (read - conn.drained) // conn.drained)
    if conn.held > 0:
        window += (conn.receive_last + 1 - conn.rcv_nxt) * conn.mss
    conn.drained = read
    conn.receive_space = max(conn.receive_space, window * 256 // (256 * conn.mss // conn.packet_cost))


@outlined
def drain(conn, first, now):
    """The application reads up to the next segment expected, from segment `first` on; tune the buffer.

    If several segments can be read at once, only the first is read before the buffer is tuned, and the others
    are subtracted (Linux `tcp_rcv_space_adjust`, since 6.16).
    """
    if conn.drain_rtt == 0.0 or now - conn.drained_since < conn.drain_rtt:
        return
    read = (2 * (first + 1) - conn.drained_from - conn.rcv_nxt) * conn.mss
    if read > conn.drained:
        tune(conn, read)
    conn.drained_from = first + 1
    conn.drained_since = now
