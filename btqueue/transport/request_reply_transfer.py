"""A TCP connection that carries messages: a NewReno sender of finite data and its receiver, as machines.

They answer, for a given order of arrivals and expiries, which segments and acknowledgements leave. There is
no randomness and no network in them. They are functions of records, so that a machine is copied by copying
its record, several futures can be followed, and compiled loops can call them. Numbers and windows count
segments, times are in any one unit, here whole nanoseconds.

Rules: RFC 5681 (slow start, congestion avoidance, delayed acknowledgements), RFC 6582 (NewReno, full
acknowledgement to ssthresh), RFC 6298 (timer; doubled until a round trip is measured), RFC 7323 (time stamps)
or Karn's rule (a segment sent twice is not timed).
"""

from math import inf

import numpy as np

from btqueue.transport.compilation import part

DUPLICATES = 3
"""Duplicate acknowledgements that start a fast retransmit."""

NO_SEGMENT = -1
TWICE = -1.0
"""In place of the time at which a segment was sent, if it was sent more than once."""

RULES = np.dtype(
    [
        *((name, np.int64) for name in ("receive_window", "ack_every")),
        *((name, np.float64) for name in ("initial_window", "initial_ssthresh", "initial_rto")),
        *((name, np.float64) for name in ("min_rto", "max_rto", "ack_delay")),
        *((name, np.bool_) for name in ("backoff", "timestamps")),
    ]
)
"""What both ends of a connection go by: `ack_every` segments are acknowledged together (1: each at once), and
`ack_delay` is the longest wait of an acknowledgement that is delayed."""

SENDER = np.dtype(
    [
        *((name, np.int64) for name in ("una", "nxt", "highest", "written", "duplicates", "recover")),
        *((name, np.int64) for name in ("doublings", "resent", "timeouts", "fast_retransmits")),
        *((name, np.int64) for name in ("sampled", "set_after", "based_after")),
        *((name, np.float64) for name in ("cwnd", "ssthresh", "rto", "smoothed", "variation", "deadline")),
        *((name, np.float64) for name in ("set_at", "based_rto", "based_smoothed", "based_variation")),
        ("recovering", np.bool_),
    ]
)
"""A sender of what has been `written`; `deadline` is when its timer expires, inf if it does not run.

Counted since a stage began: what was `resent`, `timeouts`, `fast_retransmits`, and the round trips `sampled`.
The timer was set last at `set_at`, `set_after` so many samples (-1: before the stage). Its estimates go back
to those with which the stage began, or, with `based_after` >= 0, to those of the moment after so many samples
at which they were set anew."""

RECEIVER = np.dtype(
    [
        *((name, np.int64) for name in ("expected", "acknowledged", "waiting", "held")),
        *((name, np.float64) for name in ("echo", "deadline")),
    ]
)
"""A receiver; `held` segments have come too early, and an acknowledgement that waits leaves at `deadline`."""


@part
def open_sender(rules, sender):
    """Begin a new connection; nothing written."""
    sender.una = sender.nxt = sender.highest = sender.written = sender.duplicates = sender.doublings = 0
    sender.recover, sender.recovering = -1, False
    sender.cwnd, sender.ssthresh = rules.initial_window, rules.initial_ssthresh
    sender.rto, sender.smoothed, sender.variation = rules.initial_rto, 0.0, 0.0
    sender.deadline, sender.set_after = inf, -1
    base(sender)


@part
def open_receiver(receiver):
    """Begin a new connection; nothing received."""
    receiver.expected = receiver.acknowledged = receiver.waiting = receiver.held = 0
    receiver.echo, receiver.deadline = 0.0, inf


@part
def base(sender):
    """Note the estimates of the timer as those that later ones go back to."""
    sender.based_after = sender.sampled
    sender.based_rto, sender.based_smoothed = sender.rto, sender.smoothed
    sender.based_variation = sender.variation


@part
def acknowledge(rules, sender, timed, samples, number, echo, now):
    """Take an acknowledgement that asks for `number` next; return the segment to be sent again because of it.

    `timed` holds when each segment under way was sent; `samples` takes round trips as they are measured.
    """
    if number > sender.una:
        return _advance(rules, sender, timed, samples, number, echo, now)
    if sender.una < sender.highest:
        return _count_duplicate(sender)
    return NO_SEGMENT


@part
def expire(rules, sender, now):
    """The timer has expired: go back to the oldest segment (RFC 6298, section 5)."""
    sender.timeouts += 1
    sender.doublings += 1
    sender.ssthresh = max((sender.nxt - sender.una) / 2.0, 2.0)
    sender.cwnd, sender.recover = 1.0, sender.highest - 1
    sender.recovering, sender.duplicates = False, 0
    sender.nxt = sender.una
    if rules.backoff:
        sender.rto = min(2.0 * sender.rto, rules.max_rto)
    set_timer(sender, now)


@part
def set_timer(sender, now):
    """Let the timer run from now on."""
    sender.deadline, sender.set_at, sender.set_after = now + sender.rto, now, sender.sampled


@part
def estimated(rules, rto, smoothed, variation, sample):
    """Return timeout, mean and mean deviation of round trips after a sample (RFC 6298, 2.2 to 2.4)."""
    if smoothed > 0.0:
        variation += 0.25 * (abs(smoothed - sample) - variation)
        smoothed += 0.125 * (sample - smoothed)
    else:
        smoothed, variation = sample, sample / 2.0
    return min(max(smoothed + 4.0 * variation, rules.min_rto), rules.max_rto), smoothed, variation


@part
def measure(rules, sender, sample):
    """Take a round-trip time into the timer."""
    sender.rto, sender.smoothed, sender.variation = estimated(
        rules, sender.rto, sender.smoothed, sender.variation, sample
    )
    sender.doublings = 0


@part
def fitting(rules, sender):
    """Return how many segments, from `nxt` on, the window lets out."""
    window = min(sender.cwnd, float(rules.receive_window))
    return max(0, min(sender.written - sender.nxt, int(window - (sender.nxt - sender.una))))


@part
def note_sent(sender, timed, number, now):
    """A segment leaves."""
    if number < sender.highest:
        sender.resent += 1
        timed[number % len(timed)] = TWICE
    else:
        timed[number % len(timed)] = now
    sender.nxt = max(sender.nxt, number + 1)
    sender.highest = max(sender.highest, sender.nxt)
    if sender.deadline == inf:
        set_timer(sender, now)


@part
def _advance(rules, sender, timed, samples, number, echo, now):
    advanced, resend = number - sender.una, NO_SEGMENT
    _time(rules, sender, timed, samples, number, echo, now)
    sender.una, sender.nxt, sender.duplicates = number, max(sender.nxt, number), 0
    if not sender.recovering:
        sender.cwnd += 1.0 if sender.cwnd < sender.ssthresh else 1.0 / sender.cwnd
    elif number > sender.recover:
        sender.recovering, sender.cwnd = False, sender.ssthresh
    else:
        sender.cwnd = max(sender.cwnd - advanced + 1.0, 1.0)
        resend = sender.una
    if sender.una < sender.highest:
        set_timer(sender, now)
    else:
        sender.deadline = inf
    return resend


@part
def _time(rules, sender, timed, samples, number, echo, now):
    """Take a round-trip sample, of the oldest segment acknowledged unless one of them was sent twice."""
    sample = now - timed[sender.una % len(timed)]
    if rules.timestamps:
        sample = now - echo
    else:
        for old in range(sender.una, number):
            if timed[old % len(timed)] == TWICE:
                return
    samples[min(sender.sampled, len(samples) - 1)] = sample
    sender.sampled += 1
    measure(rules, sender, sample)


@part
def _count_duplicate(sender):
    sender.duplicates += 1
    if sender.recovering:
        sender.cwnd += 1.0
    elif sender.duplicates == DUPLICATES and sender.una - 1 > sender.recover:
        sender.fast_retransmits += 1
        sender.ssthresh = max((sender.nxt - sender.una) / 2.0, 2.0)
        sender.cwnd = sender.ssthresh + DUPLICATES
        sender.recover, sender.recovering = sender.highest - 1, True
        return sender.una
    return NO_SEGMENT


@part
def take(rules, receiver, early, number, sent_at, now):
    """Take a segment; return whether an acknowledgement has to leave now; `early` is what came too early."""
    if number <= receiver.acknowledged:
        receiver.echo = max(receiver.echo, sent_at)
    if number != receiver.expected:
        if number > receiver.expected and not early[number % len(early)]:
            early[number % len(early)] = True
            receiver.held += 1
        return True
    filled = receiver.held > 0
    receiver.expected += 1
    while early[receiver.expected % len(early)]:
        early[receiver.expected % len(early)] = False
        receiver.held -= 1
        receiver.expected += 1
    receiver.waiting += 1
    if filled or receiver.waiting >= rules.ack_every:
        return True
    if receiver.deadline == inf:
        receiver.deadline = now + rules.ack_delay
    return False


@part
def note_acknowledged(receiver):
    """An acknowledgement leaves, which asks for `expected` and echoes `echo`."""
    receiver.acknowledged, receiver.waiting, receiver.deadline = receiver.expected, 0, inf
