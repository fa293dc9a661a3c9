"""A TCP sender as its own host sees it: what it did, told from the packets alone.

Round-trip samples follow RFC 7323 where segments carry timestamps and Karn's rule where not. A segment sent
again is

- a fast retransmit if it is the oldest one missing and leaves at once after the third duplicate
  acknowledgement;
- a repair in the course of a recovery if it leaves at once after an acknowledgement of new data;
- a timeout if it is the oldest one missing and nothing that arrived explains it: it ends a silent gap.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

DUPLICATES = 3
SLOW_ANSWER_S = 0.02
"""No receiver's fastest acknowledgement takes longer than this."""
WRAP = 2**32

End = tuple[bytes, int]
"""Address and port."""


class Packet(NamedTuple):
    """A TCP packet; `stamp` and `echo` are its timestamps, -1 without."""

    time: float
    source: End
    target: End
    sequence: int
    acknowledged: int
    acknowledges: bool
    opens: bool
    length: int
    stamp: int
    echo: int


@dataclass
class Outstanding:
    """A segment that was sent and not acknowledged yet."""

    end: int
    sent_at: float
    again: bool = False


@dataclass
class SenderLog:
    """What a sender did: pairs of time (s) and value, or times."""

    sent: list[tuple[float, int]] = field(default_factory=list)
    acknowledged: list[tuple[float, int]] = field(default_factory=list)
    round_trips: list[tuple[float, float]] = field(default_factory=list)
    retransmissions: list[float] = field(default_factory=list)
    timeouts: list[float] = field(default_factory=list)
    fast_retransmits: list[float] = field(default_factory=list)
    backoff_gaps: list[tuple[float, float]] = field(default_factory=list)
    data_to_ack_s: float = float("inf")
    ack_to_data_s: float = float("inf")

    @property
    def near(self) -> bool:
        """Whether the capture was made at the sender, as far as the packets tell.

        There acknowledgements take a round trip to come and are answered faster than that; a receiver answers
        data at once, if only out of order.
        """
        return self.data_to_ack_s >= min(self.ack_to_data_s, SLOW_ANSWER_S)


class SenderObserver:
    """Follows one direction of data through a capture."""

    def __init__(self, sender: End, receiver: End, reaction_s: float) -> None:
        """Begin before the first packet; *reaction_s* is the longest answer to an acknowledgement."""
        self.sender, self.receiver, self.reaction_s = sender, receiver, reaction_s
        self.log = SenderLog()
        self.una = self.snd_max = -1
        self.duplicates = 0
        self.recovering_until = -1
        self.ack_at = -float("inf")
        self.ack_was_new = False
        self.timer_since = 0.0
        self.last_gap: tuple[int, float] | None = None
        self.waiting: deque[Outstanding] = deque()
        self.stamped_at: dict[int, float] = {}

    def follow(self, packets: Iterable[Packet]) -> SenderLog:
        """Return the log of all packets, in order of time."""
        for packet in packets:
            way = (packet.source, packet.target)
            if way == (self.sender, self.receiver) and packet.length:
                self._data(packet)
            elif way == (self.receiver, self.sender) and packet.acknowledges and not packet.opens:
                self._acknowledgement(packet)
        return self.log

    def _data(self, packet: Packet) -> None:
        log, now = self.log, packet.time
        begin = packet.sequence if self.una < 0 else _unwrapped(packet.sequence, self.snd_max)
        if self.una < 0:
            self.una = self.snd_max = begin
        log.sent.append((now, packet.length))
        log.ack_to_data_s = min(log.ack_to_data_s, now - self.ack_at)
        if packet.stamp >= 0:
            self.stamped_at.setdefault(packet.stamp, now)
        end = begin + packet.length
        if end > self.snd_max:
            if not self.waiting:
                self.timer_since = now
            self.waiting.append(Outstanding(end, now))
            self.snd_max = end
            return
        log.retransmissions.append(now)
        for segment in self.waiting:
            if segment.end == end:
                segment.again = True
                break
        if begin == self.una:
            self._oldest_again(now)

    def _oldest_again(self, now: float) -> None:
        """Tell why the oldest missing segment was sent again."""
        at_once = now - self.ack_at <= self.reaction_s
        recovering = self.una < self.recovering_until
        if at_once and not self.ack_was_new and self.duplicates >= DUPLICATES and not recovering:
            self.log.fast_retransmits.append(now)
            self.recovering_until = self.snd_max
        elif not (at_once and self.ack_was_new):
            self.log.timeouts.append(now)
            self.recovering_until = -1
            self.duplicates = 0
            gap = now - self.timer_since
            if self.last_gap is not None and self.last_gap[0] == self.una:
                self.log.backoff_gaps.append((self.last_gap[1], gap))
            self.last_gap = (self.una, gap)
        self.timer_since = now

    def _acknowledgement(self, packet: Packet) -> None:
        if self.una < 0:  # before the first data
            return
        log, now = self.log, packet.time
        number = _unwrapped(packet.acknowledged, self.una)
        if number > self.snd_max:  # of data that the capture does not have
            return
        if number > self.una:
            log.acknowledged.append((now, number - self.una))
            self._round_trip(packet, number)
            self.una, self.duplicates = number, 0
            self.ack_at, self.ack_was_new, self.timer_since = now, True, now
        elif number == self.una and not packet.length and self.waiting:
            self.duplicates += 1
            self.ack_at, self.ack_was_new = now, False

    def _round_trip(self, packet: Packet, number: int) -> None:
        """Take a sample: by the echo, or of the oldest segment that is acknowledged, unless sent twice."""
        oldest = self.waiting[0] if self.waiting else None
        newest = oldest
        again = False
        while self.waiting and self.waiting[0].end <= number:
            newest = self.waiting.popleft()
            again |= newest.again
        if newest is not None:
            self.log.data_to_ack_s = min(self.log.data_to_ack_s, packet.time - newest.sent_at)
        if packet.echo >= 0:
            if packet.echo in self.stamped_at:
                self.log.round_trips.append((packet.time, packet.time - self.stamped_at[packet.echo]))
                for stamp in [s for s in self.stamped_at if s < packet.echo]:
                    del self.stamped_at[stamp]
        elif oldest is not None and not again:
            self.log.round_trips.append((packet.time, packet.time - oldest.sent_at))


def _unwrapped(number: int, near: int) -> int:
    """Return the sequence number, counted on beyond 2^32, that is nearest to *near*."""
    return near + (number - near + WRAP // 2) % WRAP - WRAP // 2
