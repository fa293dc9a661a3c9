"""A TCP sender: Tahoe, Reno, NewReno, SACK or Vegas.

Acknowledgements and expiries go in, the numbers of the segments to send come out; there is no network in it.
Rules: RFC 5681 (window), RFC 6582 (NewReno, full acknowledgement to ssthresh), RFC 6675 (SACK), RFC 6298 with
time stamps or Karn's rule, RFC 3042 (limited transmit), RFC 7661 (growth of a window that is used).
"""

from math import floor, isnan, nan

from btqueue.network.compilation import part, subroutine
from btqueue.network.followed.scoreboard import (
    DUPLICATES,
    forget,
    is_reported,
    lost_below,
    next_in_recovery,
    pipe,
    report,
)
from btqueue.network.followed.stream import amount, has_to_wait, in_flight, lay_out, next_length, position
from btqueue.network.followed.vegas import adjusts, end_round, mark, observe
from btqueue.network.followed.world import NEVER, NONE, SAMPLES

TAHOE, RENO, NEWRENO, SACK, VEGAS = range(5)
LEAST_THRESHOLD = 2.0
LIMITED_TRANSMIT = 2
"""Segments that the first duplicates may release beyond the window (RFC 3042)."""


@part
def acknowledge(w, flow, item, now):
    """Take an acknowledgement; `next_number` tells what to send because of it."""
    own, number, echo = w.flows[flow], w.items[item].number, w.items[item].stamp
    count_window(own)
    news = 0.0
    if own.variant == SACK and w.items[item].blocks > 0:
        news = report(w, flow, item)
    if number > own.una:
        measure(w, flow, number, echo, now)
        advance(w, flow, number, news, now)
        own.deadline = now + own.rto if own.una < own.highest else NEVER
    elif number == own.una and own.highest > own.una and (news > 0.0 or own.variant != SACK):
        duplicate(w, flow)


@subroutine
def expire(w, flow, now):
    """The timer has expired: back to one segment, and to the oldest one that is outstanding."""
    own = w.flows[flow]
    count_window(own)
    own.timeouts += 1
    if not (own.hold_ssthresh == 1 and repeats(own)):
        own.ssthresh = reduced(w, flow)
    own.cwnd, own.recover, own.recovering = 1.0, own.highest - 1, 0
    own.retransmit, own.duplicates, own.nxt = 0, 0, own.una
    forget(w, flow, own.highest)
    end_round(own)
    if own.backoff:
        own.rto = min(2.0 * own.rto, own.max_rto)
    own.deadline = now + own.rto


@part
def next_number(w, flow):
    """Return the number of the next segment that may be sent; NONE if there is none."""
    own = w.flows[flow]
    if own.retransmit:
        own.retransmit = 0
        return own.una
    if own.variant == SACK:
        if own.recovering:
            return next_in_recovery(w, flow) if pipe(w, flow) + 1.0 <= own.cwnd else NONE
        while own.nxt < own.highest and is_reported(w, flow, own.nxt):
            own.nxt += 1
    length = next_length(w, flow)
    if length <= 0 or has_to_wait(w, flow, length):
        return NONE
    used, allowed, size = amount(w, flow, own.una, own.nxt), own.cwnd, length / own.unit
    if used + size > own.window:
        return NONE
    if own.variant == SACK and (own.limited_transmit == 1 or repeats(own)):
        used = pipe(w, flow)
    elif own.limited_transmit == 1 and own.recovering == 0 and not repeats(own):
        allowed += min(own.duplicates, LIMITED_TRANSMIT)
    return own.nxt if used + size <= allowed else NONE


@part
def note_sent(w, flow, number, now):
    """Note that a segment is sent now; return whether it was sent before."""
    own, sent = w.flows[flow], in_flight(w, flow, number)
    again = number < own.highest
    if again:
        sent.again = 1
    else:
        sent.at, sent.again = now, 0
        lay_out(w, flow)
        if own.variant == VEGAS:
            mark(own, number, position(w, flow, number), now)
    own.nxt = max(own.nxt, number + 1)
    own.highest = max(own.highest, own.nxt)
    if own.deadline >= NEVER:
        own.deadline = now + own.rto
    return again


@part
def repeats(own):
    """Return whether what the timer found outstanding is still being sent again."""
    return own.una <= own.recover and own.recovering == 0


@part
def count_window(own):
    """Count the window in force when an acknowledgement or a timeout comes."""
    own.samples += 1
    own.cwnd_sum += own.cwnd
    own.window_sum += min(own.cwnd, float(own.window))


@part
def measure(w, flow, number, echo, now):
    """Take the round trip that a new acknowledgement shows, if one, into the timeout and the samples.

    Without time stamps nothing that was sent again is timed (Karn's rule).
    """
    own = w.flows[flow]
    rtt = now - echo
    if own.timestamps == 0:
        rtt = now - in_flight(w, flow, own.una).at
        for old in range(own.una, number):
            if in_flight(w, flow, old).again:
                rtt = nan
    if isnan(rtt):
        return
    if own.smoothed < 0.0:
        own.smoothed, own.variation = rtt, rtt / 2.0
    else:
        own.variation += 0.25 * (abs(own.smoothed - rtt) - own.variation)
        own.smoothed += 0.125 * (rtt - own.smoothed)
    own.rto = min(max(own.smoothed + max(own.granularity, 4.0 * own.variation), own.min_rto), own.max_rto)
    kept = w.sizes[SAMPLES]
    w.trips[flow * kept + (own.trips & (kept - 1))] = rtt
    own.trips += 1
    own.trip_time += rtt
    own.trip_squares += rtt * rtt
    if own.variant == VEGAS:
        observe(own, rtt)


@part
def advance(w, flow, number, news, now):
    """New data is acknowledged: open the window, or go on with recovery, or leave it."""
    own = w.flows[flow]
    advanced, flight = amount(w, flow, own.una, number), amount(w, flow, own.una, own.nxt)
    slow = own.cwnd < own.ssthresh
    limited = own.cwnd < 2.0 * flight if slow else flight + 1.0 > own.cwnd
    delivered = advanced + news
    if own.reports > 0:
        delivered -= forget(w, flow, number)
    own.una, own.nxt, own.duplicates = number, max(own.nxt, number), 0
    if own.recovering == 0:
        grows = limited or own.window_limited == 0
        if grows and (own.variant != VEGAS or not adjusts(own, position(w, flow, own.highest), now)):
            own.cwnd += min(delivered, 1.0) if slow else 1.0 / own.cwnd
    elif number > own.recover or recovers_once(own):
        own.recovering, own.cwnd = 0, own.ssthresh
    elif own.variant != SACK:
        own.cwnd = max(own.cwnd - advanced + floor(min(advanced, 1.0)), 1.0)
        own.retransmit = 1
    if news > 0.0 and own.recovering == 0:
        duplicate(w, flow)


@part
def recovers_once(own):
    """Return whether the first new acknowledgement ends a recovery: Reno, and Vegas as of 1995."""
    return own.variant == RENO or (own.variant == VEGAS and own.per_round == 0)


@subroutine
def duplicate(w, flow):
    """Take one more duplicate acknowledgement; the third one has the oldest segment sent again."""
    own = w.flows[flow]
    own.duplicates += 1
    end_round(own)
    if own.recovering:
        own.cwnd += 0.0 if own.variant == SACK else 1.0
        return
    if own.variant == SACK:
        enough = own.duplicates >= DUPLICATES or own.una < lost_below(w, flow)
        known = own.una
    else:
        enough = own.duplicates == DUPLICATES
        known = own.una - 1
    if not enough or known <= own.recover:
        return
    own.fast_retransmits += 1
    own.ssthresh = reduced(w, flow)
    if not recovers_once(own):
        own.recover = own.highest - 1
    if own.variant == TAHOE:
        own.cwnd, own.nxt = 1.0, own.una
        return
    own.recovering, own.retransmit = 1, 1
    own.cwnd = own.ssthresh + (0.0 if own.variant == SACK else DUPLICATES)
    own.repaired = own.rescued = own.una


@part
def reduced(w, flow):
    """Return the threshold after a loss (RFC 5681, equation 4)."""
    own = w.flows[flow]
    flight = amount(w, flow, own.una, own.nxt)
    if own.limited_transmit:
        flight = min(flight, floor(own.cwnd))
    half = flight / 2.0
    if own.variant == VEGAS and own.per_round == 0:
        half = own.cwnd / 2.0
    return max(half, LEAST_THRESHOLD)
