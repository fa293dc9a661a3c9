"""How acknowledgements open cwnd: slow start and congestion avoidance (RFC 5681, section 3.1)."""

from btqueue.simulator.machinery.numba_cache import compiled
from btqueue.simulator.records.connections import CUBIC, VEGAS
from btqueue.simulator.tcp import cubic, vegas
from btqueue.simulator.tcp.fast_recovery import flight_size


@compiled
def is_window_limited(conn, starts):
    """Whether cwnd, not the application or the receive window, limits the flight (RFC 7661, section 4.1).

    In slow start it is enough to use more than half of it, because it doubles in a round trip.
    """
    if conn.cwnd < conn.ssthresh:
        return conn.cwnd < 2.0 * flight_size(conn, starts)
    return flight_size(conn, starts) + 1.0 > conn.cwnd


@compiled
def grow_window(conn, arrived, now):
    """Slow start below ssthresh, congestion avoidance from there on (RFC 5681, section 3.1).

    Each acknowledgement counts once, in slow start at most as the segments that have `arrived`, or with
    `byte_counting` as many times as full segments have `arrived` (RFC 3465 without its limit, as in Linux).
    It does not count where only segments outstanding at a timeout have arrived (`timeout_exit_holds`).
    """
    if arrived == 0.0 or (conn.variant == VEGAS and vegas.adjusts_window(conn)):
        return
    if conn.byte_counting and conn.cwnd < conn.ssthresh:
        before = conn.cwnd
        conn.cwnd = min(before + arrived, conn.ssthresh)
        arrived -= conn.cwnd - before
        if not conn.rack or arrived <= 0.0:  # in Linux the others count in congestion avoidance
            return
    if conn.variant == CUBIC and conn.cwnd >= conn.ssthresh:
        cubic.grow(conn, arrived, now)
    elif conn.byte_counting:
        cubic.count_arrived(conn, arrived, float(max(int(conn.cwnd), 1)))
    elif conn.cwnd < conn.ssthresh:
        conn.cwnd += min(arrived, 1.0)
    else:
        conn.cwnd += 1.0 / conn.cwnd
