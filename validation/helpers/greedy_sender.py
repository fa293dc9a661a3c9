"""A greedy NewReno sender and its receiver, made of the rules of `btqueue.transport.newreno_sender`."""

from dataclasses import dataclass, field
from math import inf, nan

from btqueue.transport.newreno_sender import NO_SEGMENT, answer, go_back, sent_up_to, smooth, timeout


@dataclass
class Receiver:
    """Cumulative acknowledgement; remembers what came out of order."""

    expected: int = 0
    early: set[int] = field(default_factory=set)

    def take(self, number: int) -> int:
        """Take a segment; return the acknowledgement number."""
        if number >= self.expected:
            self.early.add(number)
        while self.expected in self.early:
            self.early.remove(self.expected)
            self.expected += 1
        return self.expected


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
        first = self.nxt
        sent_up_to(self, max(first, int(self.una + self.window)), now)
        return list(range(first, self.nxt))

    def acknowledge(self, number: int, echo: float, now: float) -> list[int]:
        """Take an acknowledgement; return the segments to send because of it."""
        if number > self.una:
            self._sample(now - echo)
        resend = answer(self, number, now)
        return ([] if resend == NO_SEGMENT else [resend]) + self.sendable(now)

    def expire(self, now: float) -> list[int]:
        """The timer has expired: go back to the oldest segment; return it."""
        go_back(self, now)
        return self.sendable(now)

    def _sample(self, rtt: float) -> None:
        before = nan if self.smoothed is None else self.smoothed
        self.smoothed, self.variation = smooth(before, self.variation, rtt)
        self.rto = timeout(self, self.smoothed, self.variation)
