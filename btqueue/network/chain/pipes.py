"""What a window goes through in one piconet: the times of its acknowledgements, and how chance moves them.

* `Line`, one hop: all segments wait at their sender, acknowledgements pace them, and a segment that finds
  the sender's node full is lost at once.
* `Rounds`, two hops under exhaustive service: a visit ends only when nothing is left, so that the whole
  window moves from the sender to the central, then to the receiver, and the next window comes with the
  acknowledgements. A round is two visits; a segment that finds the central full, the last of its round, is
  lost, but has crossed the first hop.

The times are means; `Chance` says what repetitions on the radio add to them.
"""

from collections import deque
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import NamedTuple

from btqueue.baseband import SLOT_S
from btqueue.network.chain.link import HopService, moments


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

    def visit(self, segments: int) -> float:
        """Duration of a visit to the receiver: segments, each acknowledged when it is there.

        The first segment comes before all acknowledgements and the last acknowledgement after its segment,
        in frames that carry nothing else; and POLL and NULL end the visit.
        """
        hop = self.hop
        frames = max(segments * hop.data_frames + hop.ack_frames, hop.data_frames + segments * hop.ack_frames)
        silent = 2.0 * frames - segments * (hop.data_frames + hop.ack_frames)
        return (segments * hop.carried_slots + silent + 2.0) * SLOT_S


class Chance(NamedTuple):
    """What repetitions add to the time between an acknowledgement and the one before: two independent parts.

    Attributes:
        leap: deviation of what came before the acknowledgements that arrive together (s).
        leap_skewness: of that.
        step: deviation of the acknowledgement's own frames (s).
        step_skewness: of that.
        back: part of `step` that its visit does not take longer, for data crossed in those frames (s).
    """

    leap: float
    leap_skewness: float
    step: float
    step_skewness: float
    back: float

    @staticmethod
    def skewness(variance: float, third: float) -> float:
        """Return the skewness of a law of this variance and third central moment."""
        return third / variance**1.5 if variance > 0.0 else 0.0


class Arrival(NamedTuple):
    """An acknowledgement: of which segment, after how many others that was sent, its time and its chance."""

    number: int
    sent: int
    time: float
    chance: Chance


class Line:
    """One hop: segments wait at the sender; acknowledgements come a service time after each other."""

    def __init__(self, pace: Pace, holds: float):
        self._pace, self._holds = pace, holds
        self._waiting: deque[tuple[int, int, float]] = deque()
        variance, third = moments(pace.hop.data, pace.hop.ack)
        skewness = Chance.skewness(variance, third)
        self._chance = Chance(sqrt(variance) * SLOT_S, skewness, 0.0, 0.0, 0.0)

    def offer(self, number: int, after: int, now: float) -> bool:
        """Put a segment in, sent after so many acknowledgements, unless the node is full."""
        fits = len(self._waiting) < self._holds
        if fits:
            self._waiting.append((number, after, now))
        return fits

    def take(self, now: float) -> Arrival:
        """Return what becomes of the next segment."""
        number, after, sent = self._waiting.popleft()
        time = max(now + self._pace.segment, sent + self._pace.alone)
        return Arrival(number, after, time, self._chance)

    @property
    def turns(self) -> bool:
        """Whether the next acknowledgement begins a batch."""
        return False

    @property
    def next_number(self) -> int | None:
        """The segment that is acknowledged next."""
        return self._waiting[0][0] if self._waiting else None

    def copied(self) -> "Line":
        """Return one that goes on by itself."""
        line = copy(self)
        line._waiting = self._waiting.copy()
        return line

    def __len__(self) -> int:
        return len(self._waiting)


class Rounds:
    """Two hops, each served until nothing is left: the window goes round as one batch."""

    def __init__(self, pace: Pace, holds: float):
        self._pace, self._holds = pace, holds
        self._arriving: deque[tuple[int, int]] = deque()
        self._sent: deque[tuple[int, int]] = deque()
        self._backlog, self._crossed, self._clock = 0.0, 0, 0.0
        self._data = pace.hop.data_slots / pace.hop.data_frames
        attempts = sqrt(sum(piece.spread for piece in pace.hop.ack))
        self._back = (self._data + 1.0) / pace.hop.ack_frames * attempts * SLOT_S
        self._steps = (_of_ack(pace.hop, 1.0), _of_ack(pace.hop, self._data))

    def offer(self, number: int, after: int, now: float) -> bool:
        """Put a segment in, sent after so many acknowledgements, unless the central is full."""
        if not self:  # the central comes to see
            self._clock = max(self._clock, now)
        fits = len(self._sent) < self._holds
        self._backlog += self._pace.hop.data_frames
        self._crossed += 1
        if fits:
            self._sent.append((number, after))
        return fits

    def take(self, now: float) -> Arrival:
        """Return what becomes of the next segment."""
        leap = self._turn() if not self._arriving else (0.0, 0.0)
        hop = self._pace.hop
        busy = min(self._backlog, hop.ack_frames)
        slots = hop.ack_slots + busy * self._data + hop.ack_frames - busy
        self._backlog -= busy
        self._clock += slots * SLOT_S
        number, after = self._arriving.popleft()
        chance = Chance(*leap, *self._steps[busy > 0.0], self._back * busy)
        return Arrival(number, after, max(self._clock, now), chance)

    def _turn(self) -> tuple[float, float]:
        """Let the rest of the visit to the sender pass, and that to the receiver; return what chance adds."""
        hop = self._pace.hop
        rest = self._backlog * (self._data + 1.0) + 2.0
        self._clock += rest * SLOT_S + self._pace.visit(len(self._sent))
        variance, third = moments(hop.data, hop.ack, self._crossed + len(self._sent), len(self._sent))
        self._arriving, self._sent = self._sent, self._arriving
        self._backlog, self._crossed = 0.0, 0
        return sqrt(variance) * SLOT_S, Chance.skewness(variance, third)

    @property
    def turns(self) -> bool:
        """Whether the next acknowledgement begins a batch."""
        return not self._arriving

    @property
    def next_number(self) -> int | None:
        """The segment that is acknowledged next."""
        batch = self._arriving or self._sent
        return batch[0][0] if batch else None

    def copied(self) -> "Rounds":
        """Return one that goes on by itself."""
        rounds = copy(self)
        rounds._arriving, rounds._sent = self._arriving.copy(), self._sent.copy()
        return rounds

    def __len__(self) -> int:
        return len(self._arriving) + len(self._sent)


def _of_ack(hop: HopService, answer: float) -> tuple[float, float]:
    """Deviation and skewness of the frames of an acknowledgement that are answered in so many slots."""
    variance = sum((piece.slots + answer) ** 2 * piece.spread for piece in hop.ack)
    third = sum((piece.slots + answer) ** 3 * piece.lean for piece in hop.ack)
    return sqrt(variance) * SLOT_S, Chance.skewness(variance, third)
