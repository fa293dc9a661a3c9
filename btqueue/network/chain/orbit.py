"""A greedy NewReno connection over one piconet: the sawtooth between two overflows of a node's buffer.

The link never idles, so nothing but the order of segments matters, and that is deterministic: the sender's
machine (`newreno_sender`) is followed from one fast retransmit to the same one some periods later, against
one of two pipes.

* `Line`, one hop: all segments wait at their sender, acknowledgements pace them, and a segment that finds
  the sender's node full is lost at once.
* `Rounds`, two hops under exhaustive service: a visit ends only when nothing is left, so that the whole
  window moves from the sender to the central, then to the receiver, and the next window comes with the
  acknowledgements. A round is two visits; a segment that finds the central full, the last of its round, is
  lost.

Repetitions on the radio stretch the time. They matter to the order through the retransmission timer alone:
the timer's estimate sees their deviation, and a recovery that outlasts the timer does so with a probability
(`chance_of_expiry`). An expiry is counted, its consequences are not followed.
"""

from collections import deque
from dataclasses import dataclass, field
from functools import cached_property
from math import erf, exp, inf, pi, sqrt

from btqueue.baseband import SLOT_S
from btqueue.network.chain.link import HopService
from btqueue.transport.newreno_sender import Receiver, Sender

SETTLING_PERIODS = 2
PERIODS = 4
MOST_ACKNOWLEDGEMENTS = 4000
"""An orbit in which nothing is lost is followed so far if it does not repeat; half of it counts."""
SAME = 1e-9
"""Relative difference of round trips up to which a window repeats the one before."""
MEMORY = sqrt(2.0 / (0.125 * (2.0 - 0.125)))
"""Deviation of a random walk from its average with gain 1/8 (RFC 6298), in steps of two gaps each."""
TIMER_SPREAD = 4.0 * sqrt(2.0 / pi) * sqrt(pi / 2.0 - 1.0) * 0.727
"""Deviation of four mean deviations with gain 1/4, in deviations of a round trip: neighbours are correlated
by (7/8)^2, which leaves 0.727 of the deviation of a single one."""


@dataclass(frozen=True)
class Pace:
    """Times of the hops of a piconet (s): see `Line` and `Rounds`."""

    hop: HopService
    hops: int

    @cached_property
    def segment(self) -> float:
        """Time of the air for a segment and its acknowledgement on all hops."""
        return self.hop.segment_slots * self.hops * SLOT_S

    @cached_property
    def variance(self) -> float:
        """Variance of `segment` (s^2)."""
        return self.hop.variance * self.hops * SLOT_S**2

    @cached_property
    def alone(self) -> float:
        """Round trip of a segment with nothing else on its way."""
        return self.hop.alone_slots * self.hops * SLOT_S

    @cached_property
    def ack_gap(self) -> float:
        """Between acknowledgements that arrive in a visit."""
        return self.hop.ack_gap[0] * SLOT_S

    def visit(self, segments: int, acks: int) -> float:
        """Duration of a visit that carries so many segments one way and acknowledgements the other.

        The first acknowledgement comes before the segments that it lets out, the last one after its segment,
        in frames that carry nothing else; and POLL and NULL end the visit.
        """
        hop = self.hop
        silent = abs(segments * hop.data_frames - acks * hop.ack_frames)
        ends = 2.0 * (hop.ack_frames + 1.0)
        return (segments * hop.data_slots + acks * hop.ack_slots + silent + ends) * SLOT_S

    @cached_property
    def noise(self) -> float:
        """Deviation of a round trip from the sender's average, besides what the orbit shows.

        Round trips of neighbours differ by the difference of two gaps between acknowledgements; on one hop
        of two services.
        """
        return MEMORY * (sqrt(self.variance) if self.hops == 1 else sqrt(self.hop.ack_gap[1]) * SLOT_S)

    def spread(self, gap: float) -> float:
        """Deviation of the difference between a gap and the timer's setting."""
        return sqrt(self.variance * gap / self.segment + (TIMER_SPREAD * self.noise) ** 2)


class Line:
    """One hop: segments wait at the sender; acknowledgements come a service time after each other."""

    def __init__(self, pace: Pace, holds: float):
        self._pace, self._holds = pace, holds
        self._waiting: deque[tuple[int, float]] = deque()

    def offer(self, number: int, now: float) -> bool:
        """Put a segment in, unless the node is full."""
        fits = len(self._waiting) < self._holds
        if fits:
            self._waiting.append((number, now))
        return fits

    def take(self, now: float) -> tuple[int, float, float]:
        """Return the next segment, when it was sent, and when its acknowledgement comes."""
        number, sent = self._waiting.popleft()
        return number, sent, max(now + self._pace.segment, sent + self._pace.alone)

    def __len__(self) -> int:
        return len(self._waiting)


class Rounds:
    """Two hops, each served until nothing is left: the window goes round as one batch."""

    def __init__(self, pace: Pace, holds: float):
        self._pace, self._holds = pace, holds
        self._arriving: deque[tuple[int, float]] = deque()
        self._sent: deque[tuple[int, float]] = deque()
        self._start, self._place, self._taken = 0.0, 0, 0

    def offer(self, number: int, now: float) -> bool:
        """Put a segment in, unless its round has filled the central."""
        fits = len(self._sent) < self._holds
        if fits:
            self._sent.append((number, now))
        return fits

    def take(self, now: float) -> tuple[int, float, float]:
        """Return the next segment, when it was sent, and when its acknowledgement comes."""
        if not self._arriving:
            self._arriving, self._sent = self._sent, self._arriving
            self._place = 0
            segments = len(self._arriving)
            busy = self._pace.visit(segments, self._taken) + self._pace.visit(segments, segments)
            self._start = max(self._start + busy, now)
            self._taken = segments
        self._place += 1
        number, sent = self._arriving.popleft()
        return number, sent, self._start + self._place * self._pace.ack_gap

    def __len__(self) -> int:
        return len(self._arriving) + len(self._sent)


@dataclass
class TimedSender(Sender):
    """A sender whose round trips deviate by `noise` (s) besides what the orbit shows."""

    noise: float = 0.0

    def _sample(self, rtt: float) -> None:
        if self.smoothed is None:
            super()._sample(rtt)
            return
        self.variation += 0.25 * (_folded(rtt - self.smoothed, self.noise) - self.variation)
        self.smoothed += 0.125 * (rtt - self.smoothed)
        self.rto = min(max(self.smoothed + 4.0 * self.variation, self.min_rto), self.max_rto)


def _folded(shift: float, noise: float) -> float:
    """E|shift + noise Z| of a normal Z."""
    if noise == 0.0:
        return abs(shift)
    ratio = shift / noise
    return noise * sqrt(2.0 / pi) * exp(-(ratio**2) / 2.0) + shift * erf(ratio / sqrt(2.0))


def chance_of_expiry(gap: float, timeout: float, spread: float) -> float:
    """Probability that a normal gap of the given deviation outlasts the timer."""
    if spread == 0.0:
        return float(gap > timeout)
    return 0.5 * (1.0 + erf((gap - timeout) / (spread * sqrt(2.0))))


@dataclass
class Tally:
    """What is added up along the orbit; times in seconds."""

    acknowledgements: int = 0
    windows: float = 0.0
    cwnds: float = 0.0
    delivered: int = 0
    sent: int = 0
    lost: int = 0
    expiries: float = 0.0
    recoveries: int = 0
    began: float = 0.0
    ended: float = 0.0
    rtts: list[tuple[float, int]] = field(default_factory=list)  # with the segments on their way

    @property
    def elapsed(self) -> float:
        """Seconds that were counted."""
        return self.ended - self.began


def follow(sender: TimedSender, pipe: Line | Rounds, pace: Pace, *, expires: bool = False) -> Tally:
    """Follow the connection and return what it did in some of its periods.

    Args:
        sender: at its start.
        pipe: empty.
        pace: that of the pipe.
        expires: whether the timer expires in every recovery, before the lost segment is acknowledged.
    """
    receiver, tally = Receiver(), Tally()
    now, last_progress, last, cwnd = 0.0, 0.0, MOST_ACKNOWLEDGEMENTS, 0.0
    _send(sender.sendable(now), now, pipe, tally)
    for count in range(MOST_ACKNOWLEDGEMENTS):
        if len(pipe) == 0:
            now = sender.deadline if sender.deadline < inf else now
            tally.expiries += 1.0
            _send(sender.expire(now), now, pipe, tally)
        number, sent, now = pipe.take(now)
        acknowledged, echo = receiver.take(number, sent)
        tally.acknowledgements += 1
        tally.windows += sender.window
        tally.cwnds += sender.cwnd
        if acknowledged > sender.una:
            gap = now - last_progress
            late = chance_of_expiry(gap, sender.rto, pace.spread(gap)) if tally.delivered else 0.0
            if expires and sender.recovering:
                tally.expiries += 1
                _send(sender.expire(now), now, pipe, tally)
            elif not expires:
                tally.expiries += late
            tally.delivered += acknowledged - sender.una
            tally.rtts.append((now - echo, len(pipe) + 1))
            last_progress = now
        recoveries = sender.fast_retransmits
        _send(sender.acknowledge(acknowledged, echo, now), now, pipe, tally)
        tally.ended = now
        if sender.fast_retransmits > recoveries:
            tally.recoveries += 1
            if sender.fast_retransmits == SETTLING_PERIODS:
                tally = Tally(began=now, ended=now)
            elif sender.fast_retransmits == SETTLING_PERIODS + PERIODS:
                return tally
        if count == last:
            tally.cwnds = cwnd * tally.acknowledgements
            return tally
        if last == MOST_ACKNOWLEDGEMENTS and sender.fast_retransmits == 0:
            if _repeats(sender, tally):
                last = count + sender.receive_window
                cwnd = _later_window(sender, count)
            if last < MOST_ACKNOWLEDGEMENTS or count == MOST_ACKNOWLEDGEMENTS // 2:
                tally = Tally(began=now, ended=now)
    return tally


def _repeats(sender: TimedSender, tally: Tally) -> bool:
    """Whether the window is at its limit, and its round trips are those of the window before."""
    count = sender.receive_window
    if sender.cwnd < count or len(tally.rtts) % count or len(tally.rtts) < 3 * count:
        return False
    pairs = zip(tally.rtts[-count:], tally.rtts[-2 * count : -count], strict=True)
    return all(abs(now - before) <= SAME * now for (now, _), (before, _) in pairs)


def _later_window(sender: TimedSender, count: int) -> float:
    """Return the mean congestion window of the half that would count, had the orbit been followed on.

    It grows for ever where nothing is lost, though the receive window alone matters.
    """
    cwnd, total = sender.cwnd, 0.0
    for later in range(count + 1, MOST_ACKNOWLEDGEMENTS):
        total += cwnd if later > MOST_ACKNOWLEDGEMENTS // 2 else 0.0
        cwnd += 1.0 if cwnd < sender.ssthresh else 1.0 / cwnd
    return total / (MOST_ACKNOWLEDGEMENTS - 1 - MOST_ACKNOWLEDGEMENTS // 2)


def _send(numbers: list[int], now: float, pipe: Line | Rounds, tally: Tally) -> None:
    for number in numbers:
        tally.sent += 1
        tally.lost += not pipe.offer(number, now)
