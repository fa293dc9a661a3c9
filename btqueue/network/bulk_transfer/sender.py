"""A TCP sender as a deterministic machine: Tahoe, Reno, NewReno or SACK.

Acknowledgements and expiries go in, the numbers of the segments to send come out; there is no network and no
chance in it. Times are in seconds, numbers and windows in segments of one size. Rules: RFC 5681 (window), RFC
6582 (NewReno, full acknowledgement to ssthresh), RFC 6675 (SACK), RFC 6298 with time stamps or Karn's rule.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import nlargest
from math import inf

DUPLICATES = 3
"""Duplicate acknowledgements, or segments reported above a hole, that make it lost (RFC 5681, RFC 6675)."""
LEAST_THRESHOLD = 2.0


@dataclass
class Timer:
    """The retransmission timer of RFC 6298; `deadline` is when it expires (s)."""

    rto: float
    least: float
    most: float
    backoff: bool
    smoothed: float | None = None
    variation: float = 0.0
    deadline: float = inf

    def measure(self, sample: float) -> None:
        """Take a round-trip time (s) into the estimate."""
        if self.smoothed is None:
            self.smoothed, self.variation = sample, sample / 2.0
        else:
            self.variation += 0.25 * (abs(self.smoothed - sample) - self.variation)
            self.smoothed += 0.125 * (sample - self.smoothed)
        self.rto = min(max(self.smoothed + 4.0 * self.variation, self.least), self.most)

    def restart(self, now: float) -> None:
        """Run anew from now."""
        self.deadline = now + self.rto

    def back_off(self, now: float) -> None:
        """After an expiry: wait twice as long."""
        if self.backoff:
            self.rto = min(2.0 * self.rto, self.most)
        self.restart(now)


@dataclass
class Counts:
    """What happened so far; rates are differences of two counts over the time between."""

    sent: int = 0
    timeouts: int = 0
    fast_retransmits: int = 0
    acknowledgements: int = 0
    cwnd: float = 0.0
    window: float = 0.0


@dataclass
class Sender:
    """State of the sender.

    Attributes:
        variant: "tahoe", "reno", "newreno" or "sack".
        receive_window: the window advertised.
        timer: the retransmission timer.
        written: segments that the application has written; a greedy one never runs out.
        timestamps: every new acknowledgement is timed by its echo; without, Karn's rule.
        una, nxt, highest: oldest number not acknowledged, next to send, one above all ever sent.
        recover: highest number sent when the last recovery began or the timer expired.
        reported: numbers above `una` that selective acknowledgements report.
        repaired: highest number sent again in this recovery (HighRxt).
        rescued: recovery point of the last rescue retransmission (RescueRxt).
        again, first_sent: numbers sent twice, and when each was sent first (s); without time stamps only.
    """

    variant: str
    receive_window: int
    timer: Timer
    timestamps: bool
    cwnd: float
    ssthresh: float
    una: int = 0
    nxt: int = 0
    highest: int = 0
    duplicates: int = 0
    recover: int = -1
    recovering: bool = False
    reported: set[int] = field(default_factory=set)
    repaired: int = -1
    rescued: int = -1
    written: float = inf
    again: set[int] = field(default_factory=set)
    first_sent: dict[int, float] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)

    @property
    def selective(self) -> bool:
        """Whether acknowledgements are selective."""
        return self.variant == "sack"

    @property
    def flight(self) -> int:
        """Segments sent and not acknowledged."""
        return self.nxt - self.una

    def acknowledge(
        self, number: int, echo: float, blocks: Iterable[tuple[int, int]], now: float
    ) -> tuple[list[int], float | None]:
        """Take an acknowledgement of all below `number`; return what to send, and the round trip it shows."""
        self._count_window()
        news = self._report(blocks) if self.selective else False
        resend: list[int] = []
        sample = None
        if number > self.una:
            sample = self._round_trip(number, echo, now)
            resend = self._advance(number, news)
            self.timer.deadline = inf if self.una >= self.highest else now + self.timer.rto
        elif number == self.una and self.highest > self.una and (news or not self.selective):
            resend = self._duplicate()
        for repeated in resend:
            self._note_sent(repeated, now)
        return resend + self.send(now), sample

    def expire(self, now: float) -> list[int]:
        """The timer has expired: back to one segment, and to the oldest one that is outstanding."""
        self._count_window()
        self.counts.timeouts += 1
        self.ssthresh = max(self.flight / 2.0, LEAST_THRESHOLD)
        self.cwnd, self.recover, self.recovering, self.duplicates = 1.0, self.highest - 1, False, 0
        self.nxt = self.una
        self.reported.clear()
        self.timer.back_off(now)
        return self.send(now)

    def send(self, now: float) -> list[int]:
        """Return the segments that the windows let out now, and count them as sent."""
        numbers = []
        number = self._next()
        while number is not None:
            self._note_sent(number, now)
            numbers.append(number)
            number = self._next()
        return numbers

    def _next(self) -> int | None:
        if self.selective and self.recovering:
            return self._next_in_recovery() if self._pipe() + 1.0 <= self.cwnd else None
        while self.nxt in self.reported:
            self.nxt += 1
        repeating = self.selective and self.una <= self.recover
        used = self._pipe() if repeating else self.flight
        if self.flight >= self.receive_window or used + 1.0 > self.cwnd or self.nxt >= self.written:
            return None
        return self.nxt

    def _next_in_recovery(self) -> int | None:
        """NextSeg of RFC 6675: a lost hole, new data, any hole, and once a rescue."""
        hole = self._next_hole()
        if hole is None or hole >= self._lost_below():
            if self.flight < self.receive_window and self.nxt < self.written:
                return self.nxt
            if hole is None:
                return self._rescue()
        self.repaired = hole
        return hole

    def _next_hole(self) -> int | None:
        top = max(self.reported, default=0)
        candidates = range(max(self.repaired + 1, self.una), top)
        return next((n for n in candidates if n not in self.reported), None)

    def _rescue(self) -> int | None:
        if self.una <= self.rescued:
            return None
        self.rescued = self.recover
        return next(n for n in range(self.nxt - 1, -1, -1) if n not in self.reported)

    def _lost_below(self) -> int:
        """Number below which all that is not reported is lost: the third highest reported."""
        top = nlargest(DUPLICATES, self.reported)
        return top[-1] if len(top) == DUPLICATES else self.una

    def _pipe(self) -> int:
        """Segments estimated to be in the network (SetPipe); outside recovery none counts as lost."""
        if not self.recovering:
            return self.flight - sum(n < self.nxt for n in self.reported)
        lost, repaired, reported = self._lost_below(), self.repaired, self.reported
        return sum((n >= lost) + (n <= repaired) for n in range(self.una, self.nxt) if n not in reported)

    def _note_sent(self, number: int, now: float) -> None:
        self.counts.sent += 1
        if not self.timestamps:
            if number < self.highest:
                self.again.add(number)
            else:
                self.first_sent[number] = now
        self.nxt = max(self.nxt, number + 1)
        self.highest = max(self.highest, self.nxt)
        if self.timer.deadline == inf:
            self.timer.restart(now)

    def _count_window(self) -> None:
        self.counts.acknowledgements += 1
        self.counts.cwnd += self.cwnd
        self.counts.window += min(self.cwnd, self.receive_window)

    def _report(self, blocks: Iterable[tuple[int, int]]) -> bool:
        before = len(self.reported)
        for start, end in blocks:
            self.reported.update(range(max(start, self.una), end))
        return len(self.reported) > before

    def _round_trip(self, number: int, echo: float, now: float) -> float | None:
        sample: float | None = now - echo
        if not self.timestamps:
            acknowledged = range(self.una, number)
            sample = None if any(n in self.again for n in acknowledged) else now - self.first_sent[self.una]
            for old in acknowledged:
                self.again.discard(old)
                self.first_sent.pop(old, None)
        if sample is not None:
            self.timer.measure(sample)
        return sample

    def _advance(self, number: int, news: bool) -> list[int]:
        """New data is acknowledged: open the window, or go on with recovery, or leave it."""
        advanced = number - self.una
        self.una, self.nxt, self.duplicates = number, max(self.nxt, number), 0
        if self.reported:
            self.reported = {n for n in self.reported if n >= number}
        if not self.recovering:
            self.cwnd += 1.0 if self.cwnd < self.ssthresh else 1.0 / self.cwnd
        elif number > self.recover or self.variant == "reno":
            self.recovering = False
            self.cwnd = self.ssthresh
        elif not self.selective:
            self.cwnd = max(self.cwnd - advanced + 1.0, 1.0)
            return [number]
        return self._duplicate() if news and not self.recovering else []

    def _duplicate(self) -> list[int]:
        """One more duplicate acknowledgement; return what has to be sent again at once."""
        self.duplicates += 1
        if self.recovering:
            self.cwnd += 0.0 if self.selective else 1.0
            return []
        enough = self.duplicates == DUPLICATES
        if self.selective:
            enough = self.duplicates >= DUPLICATES or self.una < self._lost_below()
        known = self.una if self.selective else self.una - 1
        return self._recover() if enough and known > self.recover else []

    def _recover(self) -> list[int]:
        """Fast retransmit: halve the window and send the first hole again; Tahoe starts slowly instead."""
        self.counts.fast_retransmits += 1
        self.ssthresh = max(self.flight / 2.0, LEAST_THRESHOLD)
        if self.variant != "reno":
            self.recover = self.highest - 1
        if self.variant == "tahoe":
            self.cwnd, self.nxt = 1.0, self.una
            return []
        self.recovering = True
        self.cwnd = self.ssthresh + (0 if self.selective else DUPLICATES)
        self.repaired = self.rescued = self.una
        return [self.una]
