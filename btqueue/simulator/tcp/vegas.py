"""TCP Vegas's window adjustment, in two forms.

PER_ACK (Johansson 2000, section 3.3, after Brakmo and Peterson): one segment is marked in each round trip;
when it is acknowledged, the expected rate cwnd / BaseRTT is compared with the actual rate, the segments sent
in the meantime / its round-trip time. Their difference, times BaseRTT, in segments, then moves cwnd by 1/cwnd
at every acknowledgement, and slow start doubles in every other round trip.

PER_RTT (Linux, ns-3): the window that would just fill the path, cwnd BaseRTT / RTT with the least RTT of the
round, is compared with cwnd once in a round trip; cwnd moves by whole segments.

`round_end` is the segment whose acknowledgement ends the round, 0 when no round is being measured.
"""

from btqueue.scenario.transport import Transport
from btqueue.simulator.machinery.numba_cache import compiled
from btqueue.simulator.records.connections import PER_ACK
from btqueue.simulator.records.conventions import NOTHING
from btqueue.simulator.tcp.stream import position

FEW_SAMPLES = 2
"""Up to this number of round-trip times, all of a round may be from delayed acknowledgements."""
GAMMA = Transport.gamma
LEAST_WINDOW = 2.0
"""Segments that Vegas always keeps."""


@compiled
def end_round(conn):
    """Drop the measurement in progress: a segment may be lost."""
    conn.round_end = 0
    conn.round_samples = 0


@compiled
def mark(conn, starts, number, now):
    """Begin a round with this new segment, if no round is under way (`PER_ACK`)."""
    if conn.vegas_adjustment == PER_ACK and conn.round_end == 0:
        conn.round_first = position(conn, starts, number)
        conn.round_end = number + 1
        conn.round_started_at = now


@compiled
def observe(conn, starts, sample, now):
    """Take a round-trip time (ns, or NOTHING) at an acknowledgement of new data; compare rates per round.

    With `vegas_on_srtt` the smoothed time is taken at every acknowledgement (as in ns-3).
    """
    if conn.vegas_on_srtt and conn.measured:
        sample = int(conn.srtt)
    if sample != NOTHING:
        take_base(conn, sample)
        if conn.round_samples == 0 or sample < conn.round_rtt:
            conn.round_rtt = sample
        conn.round_samples += 1
    if conn.vegas_adjustment == PER_ACK and conn.snd_una >= conn.round_end > 0:
        compare_rates(conn, starts, now)


@compiled
def take_base(conn, sample):
    """BaseRTT is the least round-trip time (ns) of the connection; 0 before the first."""
    if conn.base_rtt == 0 or sample < conn.base_rtt:
        conn.base_rtt = sample


@compiled
def compare_rates(conn, starts, now):
    """The marked segment is acknowledged: Diff = (Expected - Actual) BaseRTT in segments (section 3.3)."""
    round_trip = now - conn.round_started_at
    take_base(conn, round_trip)
    sent = (position(conn, starts, conn.snd_max) - conn.round_first) / conn.unit
    conn.vegas_excess = conn.cwnd - sent * conn.base_rtt / round_trip
    if conn.cwnd < conn.ssthresh and not conn.double_this_round and conn.vegas_excess > GAMMA:
        conn.ssthresh = conn.cwnd
    conn.double_this_round = not conn.double_this_round
    end_round(conn)


@compiled
def adjusts_window(conn):
    """Change cwnd after an acknowledgement of new data; return False if it should grow as in NewReno."""
    if conn.vegas_adjustment == PER_ACK:
        adjust_per_ack(conn)
        return True
    return adjust_per_round(conn)


@compiled
def adjust_per_ack(conn):
    """Slow start in every other round trip, else a small step towards alpha to beta segments in queues."""
    if conn.cwnd < conn.ssthresh:
        if conn.double_this_round:
            conn.cwnd += 1.0
    elif conn.vegas_excess < conn.alpha:
        conn.cwnd += 1.0 / conn.cwnd
    elif conn.vegas_excess > conn.beta:
        conn.cwnd = max(conn.cwnd - 1.0 / conn.cwnd, LEAST_WINDOW)


@compiled
def adjust_per_round(conn):
    """At the end of a round compare windows; until then only slow start goes on."""
    if conn.snd_una <= conn.recover:
        return False  # segments outstanding at a timeout are being sent again
    if conn.round_end == 0:
        conn.round_end = conn.snd_nxt
        conn.round_samples = 0
    if conn.snd_una < conn.round_end:
        return conn.cwnd >= conn.ssthresh
    enough = conn.round_samples > FEW_SAMPLES
    adjusted = enough and compare_windows(conn)
    conn.round_end = conn.snd_nxt
    conn.round_samples = 0
    return adjusted


@compiled
def compare_windows(conn):
    """Move cwnd by a segment, or leave slow start, after a round; return False while slow start goes on."""
    window = int(conn.cwnd)
    target = int(window * conn.base_rtt / conn.round_rtt)
    excess = window - target
    if conn.cwnd < conn.ssthresh:
        if excess <= GAMMA:
            return False
        conn.cwnd = float(min(window, target + 1))
        lower_threshold(conn)
    elif excess > conn.beta:
        conn.cwnd = window - 1.0
        lower_threshold(conn)
    elif excess < conn.alpha:
        conn.cwnd = window + 1.0
    conn.cwnd = max(conn.cwnd, LEAST_WINDOW)
    conn.ssthresh = max(conn.ssthresh, 0.75 * conn.cwnd)
    return True


@compiled
def lower_threshold(conn):
    """Keep ssthresh below cwnd, so that slow start does not begin again."""
    conn.ssthresh = max(min(conn.ssthresh, conn.cwnd - 1.0), LEAST_WINDOW)
