"""A peripheral in plain Python, to hold compiled recursions against: token bucket, both buffers, its end.

Nothing here is random. A packet's time of release from the token bucket follows from those before it, so it
is known as soon as the packet comes; what happens between two visits of the central is worked out at the next
one, in order of time. Times are in seconds.
"""

from collections import deque
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple, Protocol

from btqueue.network.ring_piconet.ring import Piece, Ring
from btqueue.network.ring_piconet.sequences import DELAYS, quantile


@dataclass(eq=False)
class Flow:
    """What is counted of a flow; `pair` is the number of its peripherals, the same in both piconets."""

    pair: int
    sent: int = 0
    lost: int = 0


@dataclass(eq=False, slots=True)
class Segment:
    """A data segment or an acknowledgement on its way.

    Attributes:
        flow: the flow that it belongs to.
        is_data: data, not an acknowledgement.
        number: of the segment, or the one that is expected next.
        stamp: when the segment was sent, or the time that is echoed (s).
        left: packets that have not yet arrived or been lost.
        damaged: a packet was lost.
    """

    flow: Flow
    is_data: bool
    number: int
    stamp: float
    left: int
    damaged: bool = False


def lose(segment: Segment, packets: int = 1) -> None:
    """Note that packets of a segment were lost."""
    segment.flow.lost += segment.is_data and not segment.damaged
    segment.damaged = True
    segment.left -= packets


class Packet(NamedTuple):
    """A baseband packet: its slots, the segment that it is part of, and when it came into its queue (s)."""

    slots: int
    segment: Segment
    since: float


class End(Protocol):
    """What sits at a peripheral: the sender of its flow and the receiver of the opposite one."""

    @property
    def deadline(self) -> float:
        """When something is to be sent without an arrival (s)."""
        ...

    def expire(self, now: float) -> list[Segment]:
        """Return what is to be sent now that the deadline has come."""
        ...

    def receive(self, segment: Segment, now: float) -> list[Segment]:
        """Take a segment; return what is to be sent because of it."""
        ...


@dataclass
class Tally:
    """Packets offered to and refused by both buffers, and the time (s) that packets spend in each queue."""

    offered_to_buffer: int = 0
    refused_at_buffer: int = 0
    offered_to_baseband: int = 0
    refused_at_baseband: int = 0
    time_in_buffer: float = 0.0
    time_in_uplink: float = 0.0
    time_in_downlink: float = 0.0


@dataclass
class Peripheral:
    """Buffers of a peripheral and the central's queue for it.

    Attributes:
        ring: packets, prices and places.
        end: sender and receiver.
        sequence: of processing delays.
    """

    ring: Ring
    end: End
    sequence: int
    tally: Tally = field(default_factory=Tally)
    downlink: deque[Packet] = field(default_factory=deque)
    uplink: deque[Packet] = field(default_factory=deque)
    entering: deque[tuple[float, Segment]] = field(default_factory=deque)
    releases: deque[tuple[float, int, Segment]] = field(default_factory=deque)
    tokens: float = field(init=False)
    updated_at: float = 0.0
    emitted: int = 0

    def __post_init__(self) -> None:
        """Start with a full bucket and empty queues."""
        self.tokens = float(self.ring.bucket_bytes)

    @property
    def next_event(self) -> float:
        """When something happens here by itself."""
        entering = self.entering[0][0] if self.entering else inf
        release = self.releases[0][0] if self.releases else inf
        return min(entering, release, self.end.deadline)

    def catch_up(self, now: float) -> None:
        """Let happen what was due up to now."""
        while True:
            entering = self.entering[0][0] if self.entering else inf
            deadline = self.end.deadline
            if min(entering, deadline) > now:
                break
            if deadline < entering:
                self.emit(self.end.expire(deadline), deadline)
            else:
                self._offer(*self.entering.popleft())
        if self.releases and self.releases[0][0] <= now:
            self._release(now)

    def arrive(self, now: float) -> None:
        """Deliver the head of the downlink queue."""
        packet = self.downlink.popleft()
        self.tally.time_in_downlink += now - packet.since
        segment = packet.segment
        segment.left -= 1
        if segment.left == 0 and not segment.damaged:
            self.emit(self.end.receive(segment, now), now)

    def depart(self, now: float) -> Packet:
        """Take the head of the uplink queue, whose transmission ends now."""
        packet = self.uplink.popleft()
        self.tally.time_in_uplink += now - packet.since
        return packet

    def emit(self, segments: list[Segment], now: float) -> None:
        """Send segments into L2CAP, in order; their processing delays come from a fixed sequence."""
        for segment in segments:
            segment.flow.sent += segment.is_data
            at = now
            if self.ring.jitter_s:
                self.emitted += 1
                at += self.ring.jitter_s * quantile(self.sequence, DELAYS, self.emitted)
            if self.entering:
                at = max(at, self.entering[-1][0])
            if at > now or self.entering:
                self.entering.append((at, segment))
            else:
                self._offer(now, segment)

    def _offer(self, now: float, segment: Segment) -> None:
        """Offer the packets of a segment to the token bucket."""
        pieces = self.ring.data if segment.is_data else self.ring.ack
        self._release(now)
        self.tally.offered_to_buffer += len(pieces)
        if self.ring.whole_segments and not self._fits(pieces, now):
            self._refuse(segment, len(pieces))
            return
        for piece in pieces:
            at, tokens = self._release_of(piece.price_bytes, now)
            if at > now and len(self.releases) >= self.ring.buffer:
                self._refuse(segment, 1)
                continue
            self.tokens, self.updated_at = tokens, at
            self.tally.time_in_buffer += at - now
            if at > now:
                self.releases.append((at, piece.packet.slots, segment))
            else:
                self._enter_uplink(at, piece.packet.slots, segment)

    def _refuse(self, segment: Segment, packets: int) -> None:
        self.tally.refused_at_buffer += packets
        lose(segment, packets)

    def _release(self, now: float) -> None:
        while self.releases and self.releases[0][0] <= now:
            self._enter_uplink(*self.releases.popleft())

    def _enter_uplink(self, at: float, slots: int, segment: Segment) -> None:
        self.tally.offered_to_baseband += 1
        if len(self.uplink) >= self.ring.baseband:
            self.tally.refused_at_baseband += 1
            lose(segment)
        else:
            self.uplink.append(Packet(slots, segment, at))

    def _release_of(self, price: float, now: float) -> tuple[float, float]:
        """Return when the next packet of this price leaves the token bucket, and the tokens left then."""
        rate = self.ring.token_rate
        if rate == inf:
            return now, self.tokens
        start = max(now, self.updated_at)
        tokens = min(self.ring.bucket_bytes, self.tokens + rate * (start - self.updated_at))
        if tokens >= price:
            return start, tokens - price
        return start + (price - tokens) / rate, 0.0

    def _fits(self, pieces: tuple[Piece, ...], now: float) -> bool:
        tokens, updated, waiting = self.tokens, self.updated_at, len(self.releases)
        for piece in pieces:
            at, left = self._release_of(piece.price_bytes, now)
            waiting += at > now
            self.tokens, self.updated_at = left, at
        self.tokens, self.updated_at = tokens, updated
        return waiting <= self.ring.buffer
