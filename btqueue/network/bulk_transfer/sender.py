"""A TCP sender as a deterministic machine: Tahoe, Reno, NewReno or SACK.

Acknowledgements and expiries go in, the numbers of the segments to send come out; there is no network and no
chance in it. Rules: RFC 5681 (window), RFC 6582 (NewReno, full acknowledgement to ssthresh), RFC 6675 (SACK,
`bulk_transfer.scoreboard`), RFC 6298 with time stamps or Karn's rule. These are parts of the compiled loop in
`bulk_transfer.steps`; a sender is a `SENDER` record, and its numbers in flight are a row of `SENT` records.
"""

from math import inf, isnan, nan

from btqueue.network.bulk_transfer.rules import RENO, SACK, TAHOE
from btqueue.network.bulk_transfer.scoreboard import (
    DUPLICATES,
    forget,
    is_reported,
    lost_below,
    next_in_recovery,
    pipe,
    report,
)
from btqueue.transport.compilation import part
from btqueue.transport.newreno_sender import NO_SEGMENT, go_back, smooth, timeout

LEAST_THRESHOLD = 2.0


@part
def acknowledge(own, flight, number, echo, blocks, now):
    """Take an acknowledgement of all below `number`; return a segment to send again, and the round trip.

    Either may be missing: NO_SEGMENT, not a number. New segments are for `next_number` to find.
    """
    count_window(own)
    news = own.variant == SACK and report(own, flight, blocks)
    resend, rtt = NO_SEGMENT, nan
    if number > own.una:
        rtt = round_trip(own, flight, number, echo, now)
        resend = advance(own, flight, number, news)
        own.deadline = now + own.rto if own.una < own.highest else inf
    elif number == own.una and own.highest > own.una and (news or own.variant != SACK):
        resend = duplicate(own, flight)
    return resend, rtt


@part
def expire(own, flight, now):
    """The timer has expired: back to one segment, and to the oldest one that is outstanding."""
    count_window(own)
    forget(own, flight, own.highest)
    go_back(own, now)


@part
def next_number(own, flight):
    """Return the number of the next segment that the windows let out; NO_SEGMENT if there is none."""
    if own.variant == SACK and own.recovering:
        return next_in_recovery(own, flight) if pipe(own, flight) + 1.0 <= own.cwnd else NO_SEGMENT
    while own.nxt < own.highest and is_reported(own, flight, own.nxt):
        own.nxt += 1
    in_flight = own.nxt - own.una
    repeating = own.variant == SACK and own.una <= own.recover
    used = pipe(own, flight) if repeating else in_flight
    if in_flight >= own.receive_window or used + 1.0 > own.cwnd or own.nxt >= own.written:
        return NO_SEGMENT
    return own.nxt


@part
def note_sent(own, flight, number, now):
    """Note that a segment is sent now."""
    sent = flight[number & (len(flight) - 1)]
    if number < own.highest:
        sent.again = True
    else:
        sent.at, sent.again = now, False
    own.nxt = max(own.nxt, number + 1)
    own.highest = max(own.highest, own.nxt)
    if own.deadline == inf:
        own.deadline = now + own.rto


@part
def count_window(own):
    """Count the window in force when an acknowledgement or a timeout comes."""
    own.acknowledgements += 1
    own.cwnd_sum += own.cwnd
    own.window_sum += min(own.cwnd, float(own.receive_window))


@part
def round_trip(own, flight, number, echo, now):
    """Return the round trip that a new acknowledgement shows, if one, and take it into the timeout.

    Without time stamps nothing that was sent again is timed (Karn's rule).
    """
    rtt = now - echo
    if not own.timestamps:
        rtt = now - flight[own.una & (len(flight) - 1)].at
        for old in range(own.una, number):
            if flight[old & (len(flight) - 1)].again:
                rtt = nan
    if not isnan(rtt):
        own.smoothed, own.variation = smooth(own.smoothed, own.variation, rtt)
        own.rto = timeout(own, own.smoothed, own.variation)
    return rtt


@part
def advance(own, flight, number, news):
    """New data is acknowledged: open the window, or go on with recovery, or leave it."""
    advanced = number - own.una
    forget(own, flight, number)
    own.una, own.nxt, own.duplicates = number, max(own.nxt, number), 0
    if not own.recovering:
        own.cwnd += 1.0 if own.cwnd < own.ssthresh else 1.0 / own.cwnd
    elif number > own.recover or own.variant == RENO:
        own.recovering, own.cwnd = False, own.ssthresh
    elif own.variant != SACK:
        own.cwnd = max(own.cwnd - advanced + 1.0, 1.0)
        return number
    return duplicate(own, flight) if news and not own.recovering else NO_SEGMENT


@part
def duplicate(own, flight):
    """Take one more duplicate acknowledgement; return what has to be sent again at once."""
    own.duplicates += 1
    if own.recovering:
        own.cwnd += 0.0 if own.variant == SACK else 1.0
        return NO_SEGMENT
    if own.variant == SACK:
        enough = own.duplicates >= DUPLICATES or own.una < lost_below(own, flight)
        known = own.una
    else:
        enough = own.duplicates == DUPLICATES
        known = own.una - 1
    return recover(own) if enough and known > own.recover else NO_SEGMENT


@part
def recover(own):
    """Fast retransmit: halve the window and send the first hole again; Tahoe starts slowly instead."""
    own.fast_retransmits += 1
    own.ssthresh = max((own.nxt - own.una) / 2.0, LEAST_THRESHOLD)
    if own.variant != RENO:
        own.recover = own.highest - 1
    if own.variant == TAHOE:
        own.cwnd, own.nxt = 1.0, own.una
        return NO_SEGMENT
    own.recovering = True
    own.cwnd = own.ssthresh + (0.0 if own.variant == SACK else DUPLICATES)
    own.repaired = own.rescued = own.una
    return own.una
