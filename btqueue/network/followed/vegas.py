"""The window of TCP Vegas: how many segments a flow has in queues decides whether it opens.

By acknowledgement: one segment is marked in each round trip; when it is acknowledged, the expected rate
cwnd/base is compared with the rate of the round, and the difference times the base moves the window by 1/cwnd
at each acknowledgement (Brakmo and Peterson 1995, as read by Johansson et al. 2000, section 3.3). By round:
the window that would just fill the path is compared once in a round trip, and cwnd moves by whole segments.
`round_end` is the segment whose acknowledgement ends the round; 0: none is being measured.
"""

from btqueue.network.compilation import part, subroutine

LEAST_WINDOW = 2.0
FEW = 2
"""Up to so many round trips, all of a round may be those of delayed acknowledgements."""


@part
def end_round(own):
    """Drop the measurement in progress: a segment may be lost."""
    own.round_end, own.round_samples = 0, 0


@part
def mark(own, number, position, now):
    """Begin a round with a new segment, at this position of the stream, if one is to be marked."""
    if own.per_round == 0 and own.round_end == 0:
        own.round_first, own.round_end, own.round_started = position, number + 1, now


@part
def observe(own, rtt):
    """Take a round trip: the least of the connection, and of the round."""
    own.shortest = rtt if own.shortest == 0.0 else min(own.shortest, rtt)
    own.least = rtt if own.round_samples == 0 else min(own.least, rtt)
    own.round_samples += 1


@subroutine
def adjusts(own, end, now):
    """Change the window after an acknowledgement of new data; return False if it grows as in NewReno.

    The stream was sent up to `end`.
    """
    if own.per_round:
        return adjusts_by_round(own)
    if own.una >= own.round_end > 0:
        trip = now - own.round_started
        own.shortest = min(own.shortest, trip)
        own.excess = own.cwnd - (end - own.round_first) / own.unit * own.shortest / trip
        if own.cwnd < own.ssthresh and own.doubles == 0 and own.excess > own.gamma:
            own.ssthresh = own.cwnd
        own.doubles = 1 - own.doubles
        end_round(own)
    if own.cwnd < own.ssthresh:
        own.cwnd += own.doubles
    elif own.excess < own.alpha:
        own.cwnd += 1.0 / own.cwnd
    elif own.excess > own.beta:
        own.cwnd = max(own.cwnd - 1.0 / own.cwnd, LEAST_WINDOW)
    return True


@subroutine
def adjusts_by_round(own):
    """At the end of a round compare windows; until then only slow start goes on."""
    if own.una <= own.recover:
        return False
    if own.round_end == 0:
        own.round_end, own.round_samples = own.nxt, 0
    if own.una < own.round_end:
        return own.cwnd >= own.ssthresh
    adjusted = own.round_samples > FEW and compares(own)
    own.round_end, own.round_samples = own.nxt, 0
    return adjusted


@part
def compares(own):
    """Move the window by a segment after a round; return False while slow start goes on."""
    window = int(own.cwnd)
    target = int(window * own.shortest / own.least)
    excess = window - target
    if own.cwnd < own.ssthresh:
        if excess <= own.gamma:
            return False
        own.cwnd = float(min(window, target + 1))
        own.ssthresh = max(min(own.ssthresh, own.cwnd - 1.0), LEAST_WINDOW)
    elif excess > own.beta:
        own.cwnd = window - 1.0
        own.ssthresh = max(min(own.ssthresh, own.cwnd - 1.0), LEAST_WINDOW)
    elif excess < own.alpha:
        own.cwnd = window + 1.0
    own.cwnd = max(own.cwnd, LEAST_WINDOW)
    own.ssthresh = max(own.ssthresh, 0.75 * own.cwnd)
    return True
