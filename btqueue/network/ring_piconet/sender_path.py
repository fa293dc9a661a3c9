"""The way of one representative connection through its own buffers, by exact recursions in continuous time.

By symmetry every peripheral of the ring is alike, so one stands for all: what it sends to the next is also
what it receives from the one before, and its acknowledgements share its buffers with its data. The others
enter only through the time that the air takes for a packet. Both queues are first come, first served with
times that do not depend on later arrivals, so a packet's departure follows at once from those before it
(Lindley's recursion): the token bucket releases it when its price has gathered, the uplink queue serves it
`service_s` after the packet before.

The recursions run in compiled code and in plain Python; `SenderPath` is one path for Python.
"""

from dataclasses import dataclass
from math import inf, sqrt
from typing import NamedTuple

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.network.ring_piconet.ring import Piece, Ring
from btqueue.network.ring_piconet.ring_buffer import SMALLEST, append, drop_until, place
from btqueue.transport.compilation import part

GOLDEN_RATIO = (sqrt(5.0) - 1.0) / 2.0

PATH = np.dtype(
    [
        *((name, np.float64) for name in ("tokens", "updated_at", "entered_at")),
        *((name, np.int64) for name in ("emitted", "offered_to_buffer", "refused_at_buffer")),
        *((name, np.int64) for name in ("offered_to_baseband", "refused_at_baseband")),
        *((name, np.float64) for name in ("time_in_buffer", "time_in_baseband")),
    ]
)
"""State of a path: its bucket, its clock of entering segments, and what `Counts` adds up."""


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


class Limits(NamedTuple):
    """What a path allows: places of its buffers, depth and rate of its bucket, jitter, wait for the poll."""

    buffer: int
    baseband: int
    depth: float
    token_rate: float
    whole_segments: bool
    jitter_s: float
    poll_wait_s: float


class Packets(NamedTuple):
    """The packets of a segment: their prices (bytes) and service times (s)."""

    prices: np.ndarray
    services: np.ndarray


class Paths(NamedTuple):
    """Paths, one a row: `PATH` records and both queues, as times of release and departure, with marks."""

    states: np.ndarray
    releases: np.ndarray
    release_marks: np.ndarray
    departures: np.ndarray
    departure_marks: np.ndarray


def limits_of(ring: Ring, air: Air) -> Limits:
    """Return what the ring and the air allow."""
    return Limits(
        ring.buffer,
        ring.baseband,
        float(ring.bucket_bytes),
        float(ring.token_rate),
        ring.whole_segments,
        ring.jitter_s,
        air.poll_wait_s,
    )


def packets_of(pieces: tuple[Piece, ...], air: Air) -> Packets:
    """Return prices and service times of a segment's packets."""
    return Packets(
        np.array([float(piece.price_bytes) for piece in pieces]),
        np.array([air.service_s(piece.packet.slots) for piece in pieces]),
    )


def full_buckets(count: int, places: int, ring: Ring) -> Paths:
    """Return paths with empty queues."""
    states = np.zeros(count, PATH).view(np.recarray)
    states["tokens"] = ring.bucket_bytes
    queues, marks = np.zeros((2, count, places)), np.zeros((2, count, 2), np.int64)
    return Paths(states, queues[0], marks[0], queues[1], marks[1])


@part
def send(paths, row, limits, packets, now):
    """Offer a segment's packets; return when the last has crossed the uplink, inf if one is lost."""
    state = paths.states[row]
    now = after_processing(state, limits.jitter_s, now)
    drop_until(paths.releases[row], paths.release_marks[row], now)
    if limits.whole_segments and not fits(state, paths.release_marks[row, 1], limits, packets, now):
        state.offered_to_buffer += len(packets.prices)
        state.refused_at_buffer += len(packets.prices)
        return inf
    last = now
    for k in range(len(packets.prices)):
        last = max(last, send_packet(paths, row, limits, packets.prices[k], packets.services[k], now))
    return last


@part
def after_processing(state, jitter_s, now):
    """Return when the segment reaches L2CAP: jitter by a golden-ratio sequence, uniform on average."""
    state.emitted += 1
    delay = jitter_s * ((state.emitted * GOLDEN_RATIO) % 1.0)
    state.entered_at = max(state.entered_at, now + delay)
    return state.entered_at


@part
def send_packet(paths, row, limits, price, service, now):
    """Offer one packet; return when it has crossed the uplink, inf if it is lost."""
    state = paths.states[row]
    departures, marks = paths.departures[row], paths.departure_marks[row]
    state.offered_to_buffer += 1
    release, tokens = release_of(limits, state.tokens, state.updated_at, price, now)
    if release > now:
        if paths.release_marks[row, 1] >= limits.buffer:
            state.refused_at_buffer += 1
            return inf
        append(paths.releases[row], paths.release_marks[row], release)
        state.time_in_buffer += release - now
    state.tokens, state.updated_at = tokens, release
    state.offered_to_baseband += 1
    drop_until(departures, marks, release)
    waiting = marks[1]
    if waiting >= limits.baseband:
        state.refused_at_baseband += 1
        return inf
    start = release + limits.poll_wait_s
    if waiting > 0:
        start = departures[place(departures, marks, waiting - 1)]
    departure = start + service
    append(departures, marks, departure)
    state.time_in_baseband += departure - release
    return departure


@part
def release_of(limits, tokens, updated_at, price, now):
    """Return when the next packet of this price can leave the token buffer, and the tokens left then."""
    if limits.token_rate == inf:
        return now, tokens
    start = max(now, updated_at)
    tokens = min(limits.depth, tokens + limits.token_rate * (start - updated_at))
    if tokens >= price:
        return start, tokens - price
    return start + (price - tokens) / limits.token_rate, 0.0


@part
def fits(state, waiting, limits, packets, now):
    """Return whether the token buffer has places for all packets of a segment that have to wait."""
    tokens, updated_at = state.tokens, state.updated_at
    for price in packets.prices:
        updated_at, tokens = release_of(limits, tokens, updated_at, price, now)
        if updated_at > now:
            waiting += 1
    return waiting <= limits.buffer


class SenderPath:
    """One path for Python, with a full bucket and empty queues at first."""

    def __init__(self, ring: Ring, air: Air) -> None:
        """Read the limits off the ring and the air."""
        self.air, self.limits = air, limits_of(ring, air)
        places = SMALLEST
        while places < max(ring.buffer, ring.baseband):
            places *= 2
        self.paths = full_buckets(1, places, ring)

    def send(self, pieces: tuple[Piece, ...], now: float) -> float:
        """Offer the packets of a segment; return when the last has crossed the uplink, inf if one is lost."""
        return float(send(self.paths, 0, self.limits, packets_of(pieces, self.air), now))

    @property
    def tokens(self) -> float:
        """Tokens in the bucket at the last release."""
        return float(self.paths.states[0].tokens)

    @property
    def counts(self) -> Counts:
        """What has been counted so far."""
        return Counts(*(self.paths.states[name][0].item() for name in vars(Counts())))

    @property
    def releases(self) -> list[float]:
        """Times at which the packets in the token buffer leave it."""
        return self._entries(self.paths.releases[0], self.paths.release_marks[0])

    @property
    def departures(self) -> list[float]:
        """Times at which the packets in the uplink queue have crossed."""
        return self._entries(self.paths.departures[0], self.paths.departure_marks[0])

    @staticmethod
    def _entries(queue: np.ndarray, marks: np.ndarray) -> list[float]:
        return [float(queue[place(queue, marks, k)]) for k in range(marks[1])]
