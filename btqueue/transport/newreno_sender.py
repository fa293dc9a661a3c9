"""A greedy NewReno sender as a deterministic machine, for models that follow one connection.

It answers, for a given order of acknowledgements and expiries, which segments are sent. There is no
randomness and no network in it; times are in seconds, numbers and windows in segments. Rules: RFC 5681, RFC
6582 (full ACK to ssthresh) and RFC 6298 with timestamps and one timer that every new acknowledgement
restarts.

The rules are functions of a sender: a record of an array in compiled code, or any object with these names.
`una`, `nxt` and `highest` are the oldest segment not acknowledged, the next one, and one past the highest
ever sent; `deadline` is when the timer expires, and `backoff` whether it doubles.
"""

from math import inf, isnan

import numpy as np

NO_SEGMENT = -1
DUPLICATE_THRESHOLD = 3  # RFC 5681 section 3.2


SENDER = np.dtype(
    [
        *((name, np.float64) for name in ("cwnd", "ssthresh", "rto", "min_rto", "max_rto", "deadline")),
        *((name, np.float64) for name in ("smoothed", "variation")),
        *((name, np.int64) for name in ("una", "nxt", "highest", "duplicates", "recover", "receive_window")),
        *((name, np.int64) for name in ("timeouts", "fast_retransmits")),
        *((name, np.bool_) for name in ("recovering", "backoff")),
    ]
)
"""A sender as a record, for compiled code; `smoothed` and `variation` are returned by `smooth`."""


def answer(sender, number, now):
    """Take an acknowledgement, after `rto` was set from its round trip; return the segment to repeat, or -1.

    Example:
        >>> from btqueue.transport.newreno_sender import answer
        >>> from types import SimpleNamespace
        >>> sender = SimpleNamespace(
        ...     una=4, nxt=9, highest=9, duplicates=2, recovering=False, recover=-1, cwnd=5.0, ssthresh=8.0,
        ...     rto=1.0, deadline=1.0, backoff=True, max_rto=64.0, timeouts=0, fast_retransmits=0,
        ... )
        >>> (answer(sender, 5, now=0.5), sender.cwnd)
        (-1, 6.0)
    """
    resend = NO_SEGMENT
    if number > sender.una:
        advanced = number - sender.una
        sender.una, sender.nxt, sender.duplicates = number, max(sender.nxt, number), 0
        if sender.recovering:
            resend = in_recovery(sender, number, advanced)
        else:
            sender.cwnd += 1.0 if sender.cwnd < sender.ssthresh else 1.0 / sender.cwnd
        sender.deadline = now + sender.rto if sender.una < sender.highest else inf
    elif sender.una < sender.highest:
        resend = duplicate(sender)
    if resend != NO_SEGMENT:
        sent_up_to(sender, max(sender.nxt, resend + 1), now)
    return resend


def duplicate(sender):
    """Count a duplicate acknowledgement; the third one sends the oldest segment again (RFC 5681).

    Example:
        >>> from btqueue.transport.newreno_sender import duplicate
        >>> from types import SimpleNamespace
        >>> sender = SimpleNamespace(
        ...     una=4, nxt=9, highest=9, duplicates=2, recovering=False, recover=-1, cwnd=5.0, ssthresh=8.0,
        ...     rto=1.0, deadline=1.0, backoff=True, max_rto=64.0, timeouts=0, fast_retransmits=0,
        ... )
        >>> (duplicate(sender), sender.ssthresh)
        (4, 2.5)
    """
    sender.duplicates += 1
    if sender.recovering:
        sender.cwnd += 1.0
    elif sender.duplicates == DUPLICATE_THRESHOLD and sender.una - 1 > sender.recover:
        sender.fast_retransmits += 1
        sender.ssthresh = max((sender.nxt - sender.una) / 2.0, 2.0)
        sender.cwnd, sender.recover, sender.recovering = sender.ssthresh + 3.0, sender.highest - 1, True
        return sender.una
    return NO_SEGMENT


def in_recovery(sender, number, advanced):
    """Take a full acknowledgement, which ends recovery, or a partial one, which sends the next hole again.

    Example:
        >>> from btqueue.transport.newreno_sender import in_recovery
        >>> from types import SimpleNamespace
        >>> sender = SimpleNamespace(
        ...     una=4, nxt=9, highest=9, duplicates=2, recovering=False, recover=-1, cwnd=5.0, ssthresh=8.0,
        ...     rto=1.0, deadline=1.0, backoff=True, max_rto=64.0, timeouts=0, fast_retransmits=0,
        ... )
        >>> (in_recovery(sender, 6, 2), sender.cwnd)
        (-1, 8.0)
    """
    if number > sender.recover:
        sender.recovering, sender.cwnd = False, sender.ssthresh
        return NO_SEGMENT
    sender.cwnd = max(sender.cwnd - advanced + 1.0, 1.0)
    return sender.una


def go_back(sender, now):
    """The timer has expired: go back to the oldest segment.

    Example:
        >>> from btqueue.transport.newreno_sender import go_back
        >>> from types import SimpleNamespace
        >>> sender = SimpleNamespace(
        ...     una=4, nxt=9, highest=9, duplicates=2, recovering=False, recover=-1, cwnd=5.0, ssthresh=8.0,
        ...     rto=1.0, deadline=1.0, backoff=True, max_rto=64.0, timeouts=0, fast_retransmits=0,
        ... )
        >>> go_back(sender, now=1.0)
        >>> (sender.cwnd, sender.nxt)
        (1.0, 4)
    """
    sender.timeouts += 1
    sender.ssthresh = max((sender.nxt - sender.una) / 2.0, 2.0)
    sender.cwnd, sender.recover = 1.0, sender.highest - 1
    sender.recovering, sender.duplicates = False, 0
    sender.nxt = sender.una
    if sender.backoff:
        sender.rto = min(2.0 * sender.rto, sender.max_rto)
    sender.deadline = now + sender.rto


def sent_up_to(sender, nxt, now):
    """Note that all segments before `nxt` have been sent, and start the timer if it is not running.

    Example:
        >>> from btqueue.transport.newreno_sender import sent_up_to
        >>> from types import SimpleNamespace
        >>> sender = SimpleNamespace(
        ...     una=4, nxt=9, highest=9, duplicates=2, recovering=False, recover=-1, cwnd=5.0, ssthresh=8.0,
        ...     rto=1.0, deadline=1.0, backoff=True, max_rto=64.0, timeouts=0, fast_retransmits=0,
        ... )
        >>> sent_up_to(sender, 10, now=0.5)
        >>> sender.highest
        10
    """
    if nxt > sender.nxt and sender.deadline == inf:
        sender.deadline = now + sender.rto
    sender.nxt = nxt
    sender.highest = max(sender.highest, nxt)


def smooth(smoothed, variation, rtt):
    """Return mean and mean deviation of round trips after a sample (RFC 6298); NaN before the first one.

    Example:
        >>> from btqueue.transport.newreno_sender import smooth
        >>> smoothed, variation = smooth(0.1, 0.02, 0.2)
        >>> (round(smoothed, 4), round(variation, 4))
        (0.1125, 0.04)
    """
    if isnan(smoothed):
        return rtt, rtt / 2.0
    return smoothed + 0.125 * (rtt - smoothed), variation + 0.25 * (abs(smoothed - rtt) - variation)


def timeout(sender, smoothed, variation):
    """Return the retransmission timeout (RFC 6298) without backoff.

    Example:
        >>> from btqueue.transport.newreno_sender import timeout
        >>> from types import SimpleNamespace
        >>> timeout(SimpleNamespace(min_rto=0.2, max_rto=64.0), smoothed=0.1, variation=0.05)
        0.30000000000000004
    """
    return min(max(smoothed + 4.0 * variation, sender.min_rto), sender.max_rto)
