"""A greedy NewReno sender and its receiver as a deterministic machine, for models that follow one connection.

It answers, for a given order of acknowledgements and expiries, which segments are sent. There is no
randomness and no network in it; times are in seconds, numbers and windows in segments. Rules: RFC 5681, RFC
6582 (full ACK to ssthresh) and RFC 6298 with timestamps and one timer that every new acknowledgement
restarts.
"""

from dataclasses import dataclass, field
from math import inf


@dataclass
class Receiver:
    """Cumulative acknowledgement; remembers what came out of order and which timestamp to echo."""

    expected: int = 0
    early: set[int] = field(default_factory=set)
    echo: float = 0.0

    def take(self, number: int, sent_at: float) -> tuple[int, float]:
        """Take a segment; return the acknowledgement number and the echoed time of sending (RFC 7323)."""
        if number <= self.expected:
            self.echo = max(self.echo, sent_at)
        if number >= self.expected:
            self.early.add(number)
        while self.expected in self.early:
            self.early.remove(self.expected)
            self.expected += 1
        return self.expected, self.echo


@dataclass
class Sender:
    """A sender that always has data; `deadline` is when its timer expires."""

    receive_window: int
    ssthresh: float
    min_rto: float
    max_rto: float
    rto: float
    backoff: bool = True
    cwnd: float = 1.0
    una: int = 0
    nxt: int = 0
    highest: int = 0
    duplicates: int = 0
    recover: int = -1
    recovering: bool = False
    deadline: float = inf
    smoothed: float | None = None
    variation: float = 0.0
    timeouts: int = 0
    fast_retransmits: int = 0

    @property
    def window(self) -> float:
        """Segments that may be in flight."""
        return min(self.cwnd, float(self.receive_window))

    def sendable(self, now: float) -> list[int]:
        """Return the new segments that the window lets out now, and count them as sent."""
        count = max(0, int(self.una + self.window) - self.nxt)
        numbers = list(range(self.nxt, self.nxt + count))
        self._sent(self.nxt + count, now)
        return numbers

    def acknowledge(self, number: int, echo: float, now: float) -> list[int]:
        """Take an acknowledgement; return the segments to send because of it."""
        resend: list[int] = []
        if number > self.una:
            advanced = number - self.una
            self.una, self.nxt, self.duplicates = number, max(self.nxt, number), 0
            self._sample(now - echo)
            if self.recovering:
                resend = self._in_recovery(number, advanced)
            else:
                self.cwnd += 1.0 if self.cwnd < self.ssthresh else 1.0 / self.cwnd
            self.deadline = now + self.rto if self.una < self.highest else inf
        elif self.una < self.highest:
            resend = self._duplicate()
        for number in resend:
            self._sent(max(self.nxt, number + 1), now)
        return resend + self.sendable(now)

    def expire(self, now: float) -> list[int]:
        """The timer has expired: go back to the oldest segment; return it."""
        self.timeouts += 1
        self.ssthresh = max((self.nxt - self.una) / 2.0, 2.0)
        self.cwnd, self.recover, self.recovering, self.duplicates = 1.0, self.highest - 1, False, 0
        self.nxt = self.una
        if self.backoff:
            self.rto = min(2.0 * self.rto, self.max_rto)
        self.deadline = now + self.rto
        return self.sendable(now)

    def _sent(self, nxt: int, now: float) -> None:
        if nxt > self.nxt and self.deadline == inf:
            self.deadline = now + self.rto
        self.nxt = nxt
        self.highest = max(self.highest, nxt)

    def _duplicate(self) -> list[int]:
        self.duplicates += 1
        if self.recovering:
            self.cwnd += 1.0
        elif self.duplicates == 3 and self.una - 1 > self.recover:
            self.fast_retransmits += 1
            self.ssthresh = max((self.nxt - self.una) / 2.0, 2.0)
            self.cwnd, self.recover, self.recovering = self.ssthresh + 3.0, self.highest - 1, True
            return [self.una]
        return []

    def _in_recovery(self, number: int, advanced: int) -> list[int]:
        if number > self.recover:
            self.recovering, self.cwnd = False, self.ssthresh
            return []
        self.cwnd = max(self.cwnd - advanced + 1.0, 1.0)
        return [self.una]

    def _sample(self, rtt: float) -> None:
        if self.smoothed is None:
            self.smoothed, self.variation = rtt, rtt / 2.0
        else:
            self.variation += 0.25 * (abs(self.smoothed - rtt) - self.variation)
            self.smoothed += 0.125 * (rtt - self.smoothed)
        self.rto = min(max(self.smoothed + 4.0 * self.variation, self.min_rto), self.max_rto)
