"""The TCP receiver: cumulative acknowledgements, one for each segment, with timestamps echoed (RFC 7323).

Segments that arrive out of order are kept, within the receive window, and acknowledged at once with a
duplicate.
"""

from btqueue.simulator.compilation import compiled
from btqueue.simulator.records import RECEIVE_WINDOW_LIMIT


@compiled
def on_segment(conn, number, timestamp):
    """Take segment `number`; return how many segments the application can read in order because of it."""
    remember_timestamp(conn, number, timestamp)
    if number != conn.rcv_nxt:
        if conn.rcv_nxt < number < conn.rcv_nxt + conn.rwnd:
            conn.out_of_order[number % RECEIVE_WINDOW_LIMIT] = 1
        return 0
    before = conn.rcv_nxt
    conn.rcv_nxt += 1
    while conn.out_of_order[conn.rcv_nxt % RECEIVE_WINDOW_LIMIT] == 1:
        conn.out_of_order[conn.rcv_nxt % RECEIVE_WINDOW_LIMIT] = 0
        conn.rcv_nxt += 1
    return conn.rcv_nxt - before


@compiled
def remember_timestamp(conn, number, timestamp):
    """Keep the timestamp to echo: of the last segment at or below the last acknowledgement (section 4.3)."""
    if number <= conn.last_ack_sent and timestamp >= conn.ts_recent:
        conn.ts_recent = timestamp


@compiled
def acknowledge(conn):
    """Return the acknowledgement number to send now; the echo is `ts_recent`."""
    conn.last_ack_sent = conn.rcv_nxt
    return conn.rcv_nxt
