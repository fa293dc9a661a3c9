"""A TCP connection that carries messages: a NewReno sender of finite data and its receiver, as machines.

They answer, for a given order of arrivals and expiries, which segments and acknowledgements leave. There is
no randomness and no network in them; a machine can be copied, so that several futures can be followed.
Numbers and windows count segments, times are in any one unit, here whole nanoseconds.

Rules: RFC 5681 (slow start, congestion avoidance, delayed acknowledgements), RFC 6582 (NewReno, full
acknowledgement to ssthresh), RFC 6298 (timer; doubled until a round trip is measured), RFC 7323 (time stamps)
or Karn's rule (a segment sent twice is not timed).
"""

from dataclasses import dataclass
from math import inf
from typing import NamedTuple

DUPLICATES = 3
"""Duplicate acknowledgements that start a fast retransmit."""


@dataclass(frozen=True)
class Rules:
    """What both ends of a connection go by; windows in segments, times in the machines' unit.

    Attributes:
        ack_every: segments that are acknowledged together; 1: each at once.
        ack_delay: longest wait of an acknowledgement that is delayed.
    """

    receive_window: int
    initial_window: float
    initial_ssthresh: float
    initial_rto: float
    min_rto: float
    max_rto: float
    backoff: bool = True
    timestamps: bool = True
    ack_every: int = 1
    ack_delay: float = 0.0


class Sent(NamedTuple):
    """A segment that leaves: its number, and when (the time stamp)."""

    number: int
    at: float


class MessageSender:
    """A sender of what has been `written`; `deadline` is when its timer expires."""

    def __init__(self, rules: Rules) -> None:
        """Begin a new connection; nothing written."""
        self.rules = rules
        self.written = self.una = self.nxt = self.highest = self.duplicates = 0
        self.recover, self.recovering = -1, False
        self.cwnd, self.ssthresh = rules.initial_window, rules.initial_ssthresh
        self.rto, self.smoothed, self.variation = rules.initial_rto, 0.0, 0.0
        self.deadline: float = inf
        self.timed: dict[int, float | None] = {}  # when a segment under way was sent; None: twice
        self.resent = self.timeouts = self.fast_retransmits = 0
        self.samples: list[float] = []

    def copy(self) -> "MessageSender":
        """Return a sender with the same past."""
        other = MessageSender.__new__(MessageSender)
        vars(other).update(vars(self))
        other.timed, other.samples = self.timed.copy(), self.samples.copy()
        return other

    @property
    def flight(self) -> int:
        """Segments sent and not acknowledged (RFC 5681, section 2)."""
        return self.nxt - self.una

    def write(self, segments: int, now: float) -> list[Sent]:
        """Take a message from the application; return what leaves because of it."""
        self.written += segments
        return self._send_what_fits(now)

    def acknowledge(self, number: int, echo: float, now: float) -> list[Sent]:
        """Take an acknowledgement that asks for `number` next; return what leaves because of it."""
        again: list[Sent] = []
        if number > self.una:
            again = self._advance(number, echo, now)
        elif self.una < self.highest:
            again = self._count_duplicate(now)
        return again + self._send_what_fits(now)

    def expire(self, now: float) -> list[Sent]:
        """The timer has expired: go back to the oldest segment (RFC 6298, section 5)."""
        self.timeouts += 1
        self.ssthresh = max(self.flight / 2.0, 2.0)
        self.cwnd, self.recover, self.recovering, self.duplicates = 1.0, self.highest - 1, False, 0
        self.nxt = self.una
        if self.rules.backoff:
            self.rto = min(2.0 * self.rto, self.rules.max_rto)
        self.deadline = now + self.rto
        return self._send_what_fits(now)

    def measure(self, sample: float) -> None:
        """Take a round-trip time into the timer (RFC 6298, sections 2.2 to 2.4)."""
        if self.smoothed:
            self.variation += 0.25 * (abs(self.smoothed - sample) - self.variation)
            self.smoothed += 0.125 * (sample - self.smoothed)
        else:
            self.smoothed, self.variation = sample, sample / 2.0
        rto = self.smoothed + 4.0 * self.variation
        self.rto = min(max(rto, self.rules.min_rto), self.rules.max_rto)

    def _advance(self, number: int, echo: float, now: float) -> list[Sent]:
        advanced = number - self.una
        self._time(number, echo, now)
        self.una, self.nxt, self.duplicates = number, max(self.nxt, number), 0
        again: list[Sent] = []
        if not self.recovering:
            self.cwnd += 1.0 if self.cwnd < self.ssthresh else 1.0 / self.cwnd
        elif number > self.recover:
            self.recovering, self.cwnd = False, self.ssthresh
        else:
            self.cwnd = max(self.cwnd - advanced + 1.0, 1.0)
            again = [self._send(self.una, now)]
        self.deadline = now + self.rto if self.una < self.highest else inf
        return again

    def _time(self, number: int, echo: float, now: float) -> None:
        """Take a round-trip sample, of the oldest segment acknowledged unless one of them was sent twice."""
        times = [self.timed.pop(old, None) for old in range(self.una, number)]
        if self.rules.timestamps:
            sample = now - echo
        elif None in times:
            return
        else:
            sample = now - times[0]  # pyright: ignore[reportOperatorIssue]
        self.samples.append(sample)
        self.measure(sample)

    def _count_duplicate(self, now: float) -> list[Sent]:
        self.duplicates += 1
        if self.recovering:
            self.cwnd += 1.0
        elif self.duplicates == DUPLICATES and self.una - 1 > self.recover:
            self.fast_retransmits += 1
            self.ssthresh = max(self.flight / 2.0, 2.0)
            self.cwnd = self.ssthresh + DUPLICATES
            self.recover, self.recovering = self.highest - 1, True
            return [self._send(self.una, now)]
        return []

    def _send_what_fits(self, now: float) -> list[Sent]:
        window = min(self.cwnd, self.rules.receive_window)
        sent = []
        while self.nxt < self.written and self.flight + 1.0 <= window:
            sent.append(self._send(self.nxt, now))
        return sent

    def _send(self, number: int, now: float) -> Sent:
        if number < self.highest:
            self.resent += 1
            self.timed[number] = None
        else:
            self.timed[number] = now
        self.nxt = max(self.nxt, number + 1)
        self.highest = max(self.highest, self.nxt)
        if self.deadline == inf:
            self.deadline = now + self.rto
        return Sent(number, now)


class MessageReceiver:
    """Acknowledges, at once or delayed; `deadline` is when an acknowledgement that waits has to leave."""

    def __init__(self, rules: Rules) -> None:
        """Nothing received yet."""
        self.rules = rules
        self.expected = self.acknowledged = self.waiting = 0
        self.early: frozenset[int] = frozenset()
        self.echo = 0.0
        self.deadline: float = inf

    def copy(self) -> "MessageReceiver":
        """Return a receiver with the same past."""
        other = MessageReceiver.__new__(MessageReceiver)
        vars(other).update(vars(self))
        return other

    def take(self, sent: Sent, now: float) -> bool:
        """Take a segment; return whether an acknowledgement has to leave now."""
        if sent.number <= self.acknowledged:
            self.echo = max(self.echo, sent.at)
        if sent.number != self.expected:
            if sent.number > self.expected:
                self.early |= {sent.number}
            return True
        filled = bool(self.early)
        self.expected += 1
        while self.expected in self.early:
            self.early -= {self.expected}
            self.expected += 1
        self.waiting += 1
        if filled or self.waiting >= self.rules.ack_every:
            return True
        if self.deadline == inf:
            self.deadline = now + self.rules.ack_delay
        return False

    def acknowledgement(self) -> tuple[int, float]:
        """Return the number asked for and the time stamp echoed, in an acknowledgement that leaves now."""
        self.acknowledged, self.waiting, self.deadline = self.expected, 0, inf
        return self.expected, self.echo
