"""The retransmission timeout (RFC 6298) and the single timer's rules (Venugopal 2006, section 4.1.1).

Round-trip times come from timestamps, so every acknowledgement of new data gives a sample, also during
recovery (RFC 7323, section 4). The clock granularity G of RFC 6298 is 0.
"""

from btqueue.simulator.compilation import compiled
from btqueue.simulator.records import NEVER


@compiled
def measure(conn, sample):
    """Take a round-trip time (ns) into SRTT, RTTVAR and RTO (RFC 6298, 2.2 to 2.5)."""
    if conn.measured:
        conn.rttvar = 0.75 * conn.rttvar + 0.25 * abs(conn.srtt - sample)
        conn.srtt = 0.875 * conn.srtt + 0.125 * sample
    else:
        conn.measured = True
        conn.srtt = float(sample)
        conn.rttvar = sample / 2.0
    rto = int(conn.srtt + 4.0 * conn.rttvar)
    conn.rto = min(max(rto, conn.min_rto), conn.max_rto)


@compiled
def start_if_stopped(conn, now):
    """Rule 1: sending a segment starts the timer if it is not running."""
    if conn.rto_deadline == NEVER:
        conn.rto_deadline = now + conn.rto


@compiled
def on_new_ack(conn, now):
    """Rule 2: stop when everything sent is acknowledged, restart with the current RTO otherwise."""
    if conn.snd_una >= conn.snd_max:
        conn.rto_deadline = NEVER
    else:
        conn.rto_deadline = now + conn.rto


@compiled
def back_off(conn, now):
    """Rule 3: after an expiry double the RTO, up to its maximum, and restart."""
    if conn.backoff:
        conn.rto = min(2 * conn.rto, conn.max_rto)
    conn.rto_deadline = now + conn.rto
