"""A TCP sender as its own host sees it: the sender's events, told from the packets alone.

The observer keeps a sender's books: the oldest missing byte, the segments that were sent again or
selectively acknowledged (RFC 2018), the smoothed round trip and the timeout. Round-trip samples follow
RFC 7323 where segments carry timestamps and Karn's rule where not. The first reason of this list that
holds explains a segment that is sent again:

- *probe* (TLP, RFC 8985, section 7): after a silence the last segment is sent, although an older one is
  missing, and no acknowledgement reports a loss;
- *timeout* (RFC 6298): after a silence the oldest missing segment is sent, a whole timeout after its
  timer was started. The timer starts anew when new data is acknowledged and when the oldest segment is
  sent. Its length is estimated with the least one in use, Linux's: smoothed round trip and 0.2 s, or four
  mean deviations. Timers that fire later, or double, take longer. While duplicate acknowledgements still
  arrive, it is a timeout only of a segment that was sent again before. Until the data sent before the
  timeout is acknowledged, segments that are sent again are repairs by slow start;
- *recovery* (RFC 5681, 6675, 8985): acknowledgements report a missing segment: by duplicates, selectively,
  or because later segments have arrived. Until the data sent before the recovery is acknowledged, segments
  that are sent again are repairs. Lost repairs begin another recovery after a timeout, and at the end of a
  recovery if the sender takes losses from the order of time (RACK), as Linux does.

A capture cannot tell everything. A probe of the only segment on its way looks like a timeout: it is taken
for a probe if selective acknowledgements are in use, the sender has a timer shorter than RFC 6298's least
of 1 s, never let several segments wait for a timeout without a probe, and did not double its timer
afterwards. Probes with new data repeat nothing and are not seen. The state that a sender restores after a
needless timeout (RFC 5682, RFC 4015) cannot be seen: segments that it sends again afterwards count as
repairs. Before the first round trip is known the timeout is taken for 1 s. `validation/peers/captures`
has the errors against a kernel's own counters.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappop, heappush

from btqueue.captures.packets import WRAP, End, Packet

DUPLICATES = 3
SLOW_ANSWER_S = 0.02
"""No receiver's fastest acknowledgement takes longer than this."""
FIRST_TIMEOUT_S = 1.0
"""Before the first round trip is known (RFC 6298, section 2)."""
LEAST_VARIATION_S = 0.2
"""Linux's least value of the deviations in a timeout; RFC 6298 has 1 s for the least timeout."""
TIMER_SLACK = 0.9
"""Least share of its estimated length after which a timer may expire: the estimate is not the sender's."""
DOUBLED = 1.5
"""Least ratio of two waits of a timer that has doubled."""


@dataclass
class Outstanding:
    """A segment that was sent and not acknowledged yet.

    `seen` is false if the capture has a gap there; `timeouts` counts the timeouts before it was last sent.
    """

    begin: int
    end: int
    sent_at: float
    timeouts: int
    times_sent: int = 1
    seen: bool = True


class Segments:
    """The segments that wait for an acknowledgement, in the order of their bytes, which have no gaps.

    Each is found by bisection: a capture of a million packets takes as many steps, however many of them are
    on their way at a time.
    """

    def __init__(self) -> None:
        self._all: list[Outstanding] = []
        self._first = 0
        self._missing: list[Outstanding] = []
        """The segments that were not selectively acknowledged, in the same order."""

    def __len__(self) -> int:
        return len(self._all) - self._first

    @property
    def oldest(self) -> Outstanding:
        """Return the segment with the first bytes."""
        return self._all[self._first]

    @property
    def sacked(self) -> int:
        """Return how many were selectively acknowledged."""
        return len(self) - len(self._missing)

    def append(self, one: Outstanding) -> None:
        """Add a segment that follows the last one."""
        self._all.append(one)
        self._missing.append(one)

    def pop(self) -> Outstanding:
        """Remove the oldest segment and return it."""
        if self._missing and self._missing[0] is self.oldest:
            del self._missing[0]
        self._first += 1
        return self._all[self._first - 1]

    def touched(self, begin: int, end: int) -> list[Outstanding]:
        """Return the segments with bytes in an interval."""
        first = bisect_right(self._all, begin, self._first, key=lambda one: one.end)
        return self._all[first : bisect_left(self._all, end, first, key=lambda one: one.begin)]

    def sack(self, begin: int, end: int) -> list[Outstanding]:
        """Mark the segments within an interval as arrived, and return the newly marked segments."""
        first = bisect_left(self._missing, begin, key=lambda one: one.begin)
        last = bisect_right(self._missing, end, first, key=lambda one: one.end)
        found = self._missing[first:last]
        del self._missing[first:last]
        return found

    def any_repeated_missing(self) -> bool:
        """Whether a segment that was sent again has not been selectively acknowledged."""
        return any(one.times_sent > 1 for one in self._missing)


@dataclass
class SenderLog:
    """The actions of a sender: pairs of time (s) and value, or times.

    `fast_retransmits` are the beginnings of recoveries; `unseen_bytes` were acknowledged and never captured.
    `repeated` are bytes that were sent again, and `under_way` bytes that were sent and not acknowledged,
    after each packet. `least_round_trips` are by the bytes of the smallest segment acknowledged. `filled` are
    holes in the order of bytes: when a later segment showed them, and when their segment came.
    """

    sent: list[tuple[float, int]] = field(default_factory=list)
    acknowledged: list[tuple[float, int]] = field(default_factory=list)
    round_trips: list[tuple[float, float]] = field(default_factory=list)
    retransmissions: list[float] = field(default_factory=list)
    timeouts: list[float] = field(default_factory=list)
    fast_retransmits: list[float] = field(default_factory=list)
    probes: list[float] = field(default_factory=list)
    backoff_gaps: list[tuple[float, float]] = field(default_factory=list)
    repeated: list[tuple[float, int]] = field(default_factory=list)
    under_way: list[tuple[float, int]] = field(default_factory=list)
    least_round_trips: dict[int, float] = field(default_factory=dict)
    filled: list[tuple[float, float]] = field(default_factory=list)
    unseen_bytes: int = 0
    data_to_ack_s: float = float("inf")
    ack_to_data_s: float = float("inf")

    @property
    def near(self) -> bool:
        """Whether the capture was made at the sender, as far as the packets tell.

        At the sender an acknowledgement comes a round trip after its data, and data follow it sooner. A
        receiver acknowledges data at once, at least if out of order.
        """
        return self.data_to_ack_s >= min(self.ack_to_data_s, SLOW_ANSWER_S)


@dataclass
class RoundTrips:
    """Smoothed round trip and its mean deviation (RFC 6298, section 2); None before the first sample."""

    smoothed_s: float | None = None
    deviation_s: float = 0.0

    def add(self, sample_s: float) -> None:
        """Take a sample."""
        if self.smoothed_s is None:
            self.smoothed_s, self.deviation_s = sample_s, sample_s / 2
            return
        self.deviation_s += (abs(self.smoothed_s - sample_s) - self.deviation_s) / 4
        self.smoothed_s += (sample_s - self.smoothed_s) / 8

    @property
    def timeout_s(self) -> float:
        """Return the least timeout that a sender may have."""
        if self.smoothed_s is None:
            return FIRST_TIMEOUT_S
        return self.smoothed_s + max(4 * self.deviation_s, LEAST_VARIATION_S)


class SenderObserver:
    """Follows one direction of data through a capture."""

    def __init__(self, sender: End, receiver: End, reaction_s: float) -> None:
        """Begin before the first packet; *reaction_s* is the longest answer to an acknowledgement."""
        self.sender, self.receiver, self.reaction_s = sender, receiver, reaction_s
        self.log = SenderLog()
        self.trips = RoundTrips()
        self.una = self.snd_max = -1
        self.duplicates = 0
        self.window = -1
        self.recover = self.repaired = -1
        self.permitted = 0
        self.mss = 0
        self.opened_at = float("inf")
        self.ack_at = self.sent_at = self.delivered_sent_at = -float("inf")
        self.ack_was_new = False
        self.timer_since = 0.0
        self.last_gap: tuple[int, float] | None = None
        self.waiting = Segments()
        self.stamped_at: dict[int, float] = {}
        self.stamps: list[int] = []
        self.lone: list[float] = []
        self.short_timer = self.racks = self.probed = self.never_probes = False

    def follow(self, packets: Iterable[Packet]) -> SenderLog:
        """Return the log of all packets, in the order of the capture."""
        for packet in packets:
            forth = (packet.source, packet.target) == (self.sender, self.receiver)
            if packet.opens:
                self._opening(packet, forth=forth)
            elif forth and packet.length:
                self._data(packet)
            elif not forth and packet.acknowledges:
                self._acknowledgement(packet)
        if self.selective and self.short_timer and not self.never_probes:
            self.log.probes = sorted([*self.log.probes, *self.lone])
            lone = set(self.lone)
            self.log.timeouts = [time for time in self.log.timeouts if time not in lone]
        return self.log

    @property
    def selective(self) -> bool:
        """Whether acknowledgements may be selective: both ends have said so, or one was seen."""
        return self.permitted >= 2

    @property
    def recovering(self) -> bool:
        """Whether a recovery goes on; without selective acknowledgements one byte longer (RFC 6582)."""
        return self.una < self.recover + (not self.selective)

    @property
    def repairing(self) -> bool:
        """Whether segments that were under way at a timeout are still being sent again."""
        return self.una < self.repaired + (not self.selective)

    def _opening(self, packet: Packet, *, forth: bool) -> None:
        self.permitted += packet.selective
        self.mss = min(self.mss or packet.mss, packet.mss)
        if forth:
            self.opened_at = packet.time
        elif packet.acknowledges and self.trips.smoothed_s is None and self.opened_at < packet.time:
            self.trips.add(packet.time - self.opened_at)

    def _data(self, packet: Packet) -> None:
        log, now = self.log, packet.time
        begin = packet.sequence if self.una < 0 else _unwrapped(packet.sequence, self.snd_max)
        if self.una < 0:
            self.una = self.snd_max = begin
        size = self.mss - packet.option_bytes
        segments = -(-packet.length // size) if size > 0 else 1  # of one handed to the device in one piece
        log.sent.append((now, packet.length))
        log.ack_to_data_s = min(log.ack_to_data_s, now - self.ack_at)
        if packet.stamp >= 0 and packet.stamp not in self.stamped_at:
            self.stamped_at[packet.stamp] = now
            heappush(self.stamps, packet.stamp)
        end, before = begin + packet.length, self.snd_max
        if begin > before:
            self._append(begin, now, seen=False)
        touched = self.waiting.touched(begin, end)
        if end > before:
            self._append(end, now, seen=True)
        if begin < before:
            if touched and not any(one.seen for one in touched):  # the capture has it late
                log.filled.append((touched[0].sent_at, now))
                for one in touched:
                    one.seen, one.sent_at = True, now
            else:
                log.repeated.append((now, min(end, before) - begin))
                log.retransmissions += [now] * segments
                if touched:
                    self._again(touched, now, last=end >= before)
        self.sent_at = now
        log.under_way.append((now, self.snd_max - self.una))

    def _append(self, end: int, now: float, *, seen: bool) -> None:
        if not self.waiting:
            self.timer_since = now
        self.waiting.append(Outstanding(self.snd_max, end, now, len(self.log.timeouts), seen=seen))
        self.snd_max = end

    def _again(self, touched: list[Outstanding], now: float, *, last: bool) -> None:
        """Tell why segments were sent again; the module's docstring lists the reasons, in this order."""
        log, first = self.log, touched[0]
        oldest = first is self.waiting.oldest
        silent = now - max(self.ack_at, self.sent_at) > self.reaction_s
        if self.recovering and not oldest:  # without a selective acknowledgement nobody knows of another gap
            self.permitted = 2
        quiet = not self.duplicates and not self.waiting.sacked
        undisturbed = quiet and not self.recovering and not self.repairing
        gap = now - self.timer_since
        if silent and last and undisturbed and not oldest and self.selective:
            log.probes.append(now)
            self.probed, self.timer_since = True, now
        elif oldest and self._timed_out(gap, silent=silent):
            self.short_timer |= gap < TIMER_SLACK * FIRST_TIMEOUT_S
            if undisturbed and not self.probed:
                if len(self.waiting) == 1:
                    self.lone.append(now)
                else:
                    self.never_probes |= self.selective
            self._timeout(now, gap)
        elif (not quiet or self.delivered_sent_at > first.sent_at) and self._begins(first):
            self.racks |= self.selective and self.waiting.sacked < DUPLICATES
            self._recovery(now)
        for one in touched:
            one.times_sent += 1
            one.timeouts = len(log.timeouts)
            one.sent_at = now
        if oldest:
            self.timer_since = now

    def _timed_out(self, gap: float, *, silent: bool) -> bool:
        """Whether the oldest missing segment, which is sent again, can have timed out."""
        if silent:
            return gap >= TIMER_SLACK * self.trips.timeout_s
        return not self.ack_was_new and self.waiting.oldest.times_sent > 1 and gap >= self.trips.timeout_s

    def _timeout(self, now: float, gap: float) -> None:
        self.log.timeouts.append(now)
        self.recover, self.repaired = -1, self.snd_max
        self.duplicates = 0
        if self.last_gap is not None and self.last_gap[0] == self.una:
            self.log.backoff_gaps.append((self.last_gap[1], gap))
            if self.lone and self.timer_since == self.lone[-1] and gap > DOUBLED * self.last_gap[1]:
                self.never_probes = True  # the timer does not double after a probe
        self.last_gap = (self.una, gap)

    def _recovery(self, now: float) -> None:
        self.log.fast_retransmits.append(now)
        self.recover, self.repaired = self.snd_max, -1

    def _begins(self, first: Outstanding) -> bool:
        """Whether a segment sent again because later ones arrived begins a recovery."""
        if self.repairing:
            return self.selective and first.timeouts == len(self.log.timeouts)
        if self.recovering:  # Reno leaves recovery early and begins again (RFC 5681)
            anew = first.times_sent == 1 and self.duplicates == DUPLICATES
            return anew and not self.selective
        return True

    def _acknowledgement(self, packet: Packet) -> None:
        if self.una < 0:  # before the first data
            return
        log, now = self.log, packet.time
        number = _unwrapped(packet.acknowledged, self.una)
        if number > self.snd_max:  # of data that the capture does not have
            return
        news = self._selected(packet, number)
        recovering = self.recovering
        if number > self.una:
            log.acknowledged.append((now, number - self.una))
            self._round_trip(packet, number)
            self.una, self.duplicates, self.probed = number, 0, False
            log.under_way.append((now, self.snd_max - number))
            self.ack_at, self.ack_was_new, self.timer_since = now, True, now
            ended = recovering and not self.recovering
            if ended and self.racks and self.waiting.any_repeated_missing():
                self._recovery(now)
        elif number == self.una and not packet.length and self.waiting:
            if news or (not packet.blocks and packet.window == self.window):
                self.duplicates += 1
            self.ack_at, self.ack_was_new = now, False
        self.window = packet.window

    def _selected(self, packet: Packet, number: int) -> bool:
        """Note the segments that have arrived above a gap, and return whether some are new.

        A block below the acknowledgement, or within the next block, reports a copy (RFC 2883).
        """
        if not packet.blocks:
            return False
        self.permitted = 2
        news = False
        for left, right in packet.blocks:
            begin, end = _unwrapped(left, self.una), _unwrapped(right, self.una)
            for one in self.waiting.sack(begin, end) if begin >= number else ():
                news = True
                self.delivered_sent_at = max(self.delivered_sent_at, one.sent_at)
        return news

    def _round_trip(self, packet: Packet, number: int) -> None:
        """Take a sample: by the echo, or of the oldest segment that is acknowledged, unless sent twice."""
        oldest = self.waiting.oldest if self.waiting else None
        newest = oldest
        again, least = False, WRAP
        while self.waiting and self.waiting.oldest.end <= number:
            newest = self.waiting.pop()
            least = min(least, newest.end - newest.begin)
            self.delivered_sent_at = max(self.delivered_sent_at, newest.sent_at)
            again |= newest.times_sent > 1
            if not newest.seen:
                self.log.unseen_bytes += newest.end - newest.begin
        if newest is not None:
            self.log.data_to_ack_s = min(self.log.data_to_ack_s, packet.time - newest.sent_at)
        if packet.echo >= 0:
            if packet.echo in self.stamped_at:
                self._sample(packet.time, self.stamped_at[packet.echo], least)
                while self.stamps[0] < packet.echo:
                    del self.stamped_at[heappop(self.stamps)]
        elif oldest is not None and not again:
            self._sample(packet.time, oldest.sent_at, least)

    def _sample(self, now: float, sent_at: float, size: int) -> None:
        trip = now - sent_at
        self.log.round_trips.append((now, trip))
        self.log.least_round_trips[size] = min(trip, self.log.least_round_trips.get(size, trip))
        self.trips.add(trip)


def _unwrapped(number: int, near: int) -> int:
    """Return the sequence number, counted on beyond 2^32, that is nearest to *near*."""
    return near + (number - near + WRAP // 2) % WRAP - WRAP // 2
