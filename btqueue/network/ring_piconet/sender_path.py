"""The way of one representative connection through its own buffers, by exact recursions in continuous time.

By symmetry every peripheral of the ring is alike, so one stands for all: what it sends to the next is also
what it receives from the one before, and its acknowledgements share its buffers with its data. The others
enter only through the time that the air takes for a packet. Both queues are first come, first served with
times that do not depend on later arrivals, so a packet's departure follows at once from those before it
(Lindley's recursion): the token bucket releases it when its price has gathered, the uplink queue serves it
`service_s` after the packet before.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf, sqrt

from btqueue.baseband import SLOT_S
from btqueue.network.ring_piconet.ring import Piece, Ring

GOLDEN_RATIO = (sqrt(5.0) - 1.0) / 2.0


@dataclass(frozen=True)
class Air:
    """Time that the polled air takes, seen by one connection that shares it with its likes.

    Attributes:
        stretch: seconds per second of own transmissions, because the others are served in turn.
        companion: mean slots that the answer takes for every slot beyond the first of a packet.
        poll_wait_s: mean time until the next visit, for a packet that finds the uplink queue empty.
        data_relay_s, ack_relay_s: time from the end of the first hop to the end of the second.
    """

    stretch: float
    companion: float
    poll_wait_s: float
    data_relay_s: float
    ack_relay_s: float

    def service_s(self, slots: int) -> float:
        """Return the time that an uplink packet takes, its companion in the other direction included."""
        return (slots + 1.0 + self.companion * (slots - 1.0)) * self.stretch * SLOT_S


@dataclass
class Counts:
    """Packets offered to and refused by the two buffers, and the time (s) that packets spend in each."""

    offered_to_buffer: int = 0
    refused_at_buffer: int = 0
    offered_to_baseband: int = 0
    refused_at_baseband: int = 0
    time_in_buffer: float = 0.0
    time_in_baseband: float = 0.0


def sum_counts(counts: Iterable[Counts]) -> Counts:
    """Add counts up."""
    total = Counts()
    for count in counts:
        for name in vars(total):
            setattr(total, name, getattr(total, name) + getattr(count, name))
    return total


@dataclass
class SenderPath:
    """State of the two buffers of the representative peripheral."""

    ring: Ring
    air: Air
    tokens: float = field(init=False)
    updated_at: float = 0.0
    entered_at: float = 0.0
    emitted: int = 0
    releases: deque[float] = field(default_factory=deque)
    departures: deque[float] = field(default_factory=deque)
    counts: Counts = field(default_factory=Counts)

    def __post_init__(self) -> None:
        """Start with a full bucket and empty queues."""
        self.tokens = float(self.ring.bucket_bytes)

    def send(self, pieces: tuple[Piece, ...], now: float) -> float:
        """Offer the packets of a segment; return when the last has crossed the uplink, inf if one is lost."""
        now = self._after_processing(now)
        while self.releases and self.releases[0] <= now:
            self.releases.popleft()
        if self.ring.whole_segments and not self._fits(pieces, now):
            self.counts.offered_to_buffer += len(pieces)
            self.counts.refused_at_buffer += len(pieces)
            return inf
        last = now
        for piece in pieces:
            last = max(last, self._send_packet(piece, now))
        return last

    def _after_processing(self, now: float) -> float:
        """Return when the segment reaches L2CAP: jitter by a golden-ratio sequence, uniform on average."""
        self.emitted += 1
        delay = self.ring.jitter_s * ((self.emitted * GOLDEN_RATIO) % 1.0)
        self.entered_at = max(self.entered_at, now + delay)
        return self.entered_at

    def _send_packet(self, piece: Piece, now: float) -> float:
        self.counts.offered_to_buffer += 1
        release, tokens = self._release(piece.price_bytes, now)
        if release > now:
            if len(self.releases) >= self.ring.buffer:
                self.counts.refused_at_buffer += 1
                return inf
            self.releases.append(release)
            self.counts.time_in_buffer += release - now
        self.tokens, self.updated_at = tokens, release
        self.counts.offered_to_baseband += 1
        while self.departures and self.departures[0] <= release:
            self.departures.popleft()
        if len(self.departures) >= self.ring.baseband:
            self.counts.refused_at_baseband += 1
            return inf
        start = self.departures[-1] if self.departures else release + self.air.poll_wait_s
        self.departures.append(start + self.air.service_s(piece.packet.slots))
        self.counts.time_in_baseband += self.departures[-1] - release
        return self.departures[-1]

    def _release(self, price: float, now: float) -> tuple[float, float]:
        """Return when the next packet of this price can leave the token buffer, and the tokens left then."""
        if self.ring.token_rate == inf:
            return now, self.tokens
        start = max(now, self.updated_at)
        depth, rate = self.ring.bucket_bytes, self.ring.token_rate
        tokens = min(depth, self.tokens + rate * (start - self.updated_at))
        if tokens >= price:
            return start, tokens - price
        return start + (price - tokens) / rate, 0.0

    def _fits(self, pieces: tuple[Piece, ...], now: float) -> bool:
        tokens, updated, waiting = self.tokens, self.updated_at, len(self.releases)
        for piece in pieces:
            release, left = self._release(piece.price_bytes, now)
            waiting += release > now
            self.tokens, self.updated_at = left, release
        self.tokens, self.updated_at = tokens, updated
        return waiting <= self.ring.buffer
