"""Connections that overflow token buffers again and again: one of them, in the mean field of the others.

In a ring behind token buckets that are scarcer than the slots, a window that outgrows the buffer goes round
in a cycle: it grows, the end of a burst is refused, and a fast retransmit or a timeout follows. A connection
is an exact recursion in whole packets. Of the others it meets two things only: their acknowledgements, which
share its bucket, and their bursts, behind which its own acknowledgements wait in the bucket of the next
station. All connections are alike, and their cycles drift against each other. So the first are a stream of
the same rate, and the wait is that of the connection itself at another, equally likely, time of its cycle.
This law of the wait is the unknown of a fixed point: the recursion runs in the waits of its last pass.

A mean wait in the place of its law is no use: behind bursts acknowledgements come in bursts, and these are
what overflows the buffer.
"""

from math import inf
from typing import NamedTuple

import numpy as np

from btqueue.network.compilation import compiled, part
from btqueue.network.piconet.covers import AT_ONCE
from btqueue.network.piconet.ports import Piconet
from btqueue.scenario import Scenario
from btqueue.transport import newreno_sender
from btqueue.transport.newreno_sender import NO_SEGMENT, answer, go_back, sent_up_to, smooth, timeout

PASSES, COUNTED = 8, 4
"""Passes of the fixed point, and the last ones, of which the mean is taken."""
SEGMENTS, SETTLING = 1500, 30
"""Segments of a pass that are counted, and those before."""
FIRST_RATE = 0.85
"""Share of what tokens carry that others are taken to send on the first pass."""
GRID = 16
"""Values of the wait kept in the time in which tokens for a segment come."""
GOLDEN = 0.6180339887498949
"""Its multiples, without whole parts, are an even sequence of times in the cycle."""
PLACES = 256
"""Packets that can wait, and segments and acknowledgements that can be under way."""

SENDER = np.dtype(
    [
        *((name, np.float64) for name in ("cwnd", "ssthresh", "rto", "min_rto", "max_rto", "deadline")),
        *((name, np.float64) for name in ("smoothed", "variation")),
        *((name, np.int64) for name in ("una", "nxt", "highest", "duplicates", "recover", "receive_window")),
        *((name, np.int64) for name in ("timeouts", "fast_retransmits")),
        *((name, np.bool_) for name in ("recovering", "backoff")),
    ]
)
"""With the names that `transport.newreno_sender` has."""


class Station(NamedTuple):
    """What a connection meets, times in seconds.

    Attributes:
        prices: tokens of the packets of a segment (bytes).
        ack_price: tokens of an acknowledgement (bytes).
        depth: of the token bucket (bytes).
        token_rate: bytes a second.
        buffer: packets that may wait for tokens.
        forth_s, back_s: ways of the last packet of a segment, and of its acknowledgement, through the air.
        gap_s: between acknowledgements of others.
        grid_s: between two values of the wait.
    """

    prices: np.ndarray
    ack_price: float
    depth: float
    token_rate: float
    buffer: int
    forth_s: float
    back_s: float
    gap_s: float
    grid_s: float


class Cycle(NamedTuple):
    """A connection in the long run.

    Attributes:
        delivered, sent: segments a second.
        round_trip_s: mean (s).
        timeouts, fast_retransmits: a second.
        residual: relative standard error of `delivered` over the last passes.
    """

    delivered: float
    sent: float
    round_trip_s: float
    timeouts: float
    fast_retransmits: float
    residual: float = 0.0


def by_tokens(net: Piconet) -> bool:
    """Whether stations of a ring, all alike, have fewer tokens than slots, and no long bursts of them."""
    assert net.ack is not None
    price = net.data.tokens + net.ack.tokens
    in_step = net.bucket_bytes <= AT_ONCE * net.data.tokens
    return in_step and net.layers_s == 0.0 and net.token_rate * net.stations * _exchange_s(net) <= price


def _exchange_s(net: Piconet) -> float:
    """Return the time on the air of a segment and its acknowledgement, on both hops."""
    assert net.ack is not None
    return 2 * net.slot_s * sum(packet.slots for packet in (*net.data.packets, *net.ack.packets))


def cycle_of(scenario: Scenario, net: Piconet) -> Cycle:
    """Return the cycle of the greedy connections of a ring (see `covers.overflows_in_cycles`)."""
    assert net.ack is not None
    ack_slots = sum(packet.slots for packet in net.ack.packets)
    exchange_s, last, n = _exchange_s(net), net.data.packets[-1].slots, net.stations
    limit = net.token_rate / float(net.data.tokens + net.ack.tokens)  # segments a second
    rate, waits, found = FIRST_RATE * limit, np.zeros(1), []
    for _ in range(PASSES):
        # packets come as their tokens do, so that only the last one needs the air still. It, and later its
        # acknowledgement, comes at any time of a cycle; others make this longer as in processor sharing
        busier = net.slot_s / (1.0 - min((n - 1) * rate * exchange_s, 1.0 - 1.0 / n))
        station = Station(
            np.array(net.data.charges, float), float(net.ack.tokens), float(net.bucket_bytes),
            net.token_rate, net.buffer,
            forth_s=(n + 3 + 2 * last) * busier, back_s=(3 * n - 1 + 2 * ack_slots) * busier,
            gap_s=1.0 / rate, grid_s=1.0 / (GRID * limit),
        )  # fmt: skip
        one, waits = _pass(scenario, station, waits)
        rate = 0.5 * (rate + one.delivered)
        found.append(one)
    last_ones = np.array(found[-COUNTED:])
    mean, deviation = last_ones.mean(axis=0), last_ones[:, 0].std(ddof=1)
    return Cycle(*mean[:-1].tolist(), residual=float(deviation / mean[0] / COUNTED**0.5))


def _pass(scenario: Scenario, station: Station, waits: np.ndarray) -> tuple[Cycle, np.ndarray]:
    """Return the cycle in these waits for the next station's tokens, and the waits for its own."""
    transport = scenario.transport
    sender = np.zeros(1, SENDER).view(np.recarray)
    sender.cwnd, sender.ssthresh = transport.initial_window_segments, transport.initial_ssthresh_segments
    sender.rto, sender.min_rto = transport.initial_rto_s, transport.min_rto_s
    sender.max_rto, sender.backoff = transport.max_rto_s, transport.rto_backoff
    sender.receive_window, sender.deadline, sender.smoothed, sender.recover = (
        transport.receive_window_segments, inf, np.nan, -1,
    )  # fmt: skip
    longest = int(4.0 * SEGMENTS * GRID)  # of cycles that deliver a quarter of what tokens carry
    own, counts = np.zeros(longest), np.zeros(7)
    early = np.zeros(SETTLING + SEGMENTS + 2 * PLACES, np.bool_)
    flights = np.zeros((2, PLACES, 3))  # time, number and stamp of segments, and of acknowledgements
    follow(station, sender, waits, own, early, np.zeros(PLACES), flights, counts)
    seconds, delivered, sent, trips, trip_s, kept, _ = counts
    ends = int(sender.timeouts[0]), int(sender.fast_retransmits[0])
    cycle = Cycle(delivered / seconds, sent / seconds, trip_s / trips, ends[0] / seconds, ends[1] / seconds)
    return cycle, own[: int(kept)].copy()


@compiled(str(newreno_sender.__file__))
def follow(station, sender, waits, own, early, releases, flights, counts):
    """Follow a connection until so many segments were delivered; count what comes after those that settle.

    Args:
        station: `Station`.
        sender: a `SENDER` record.
        waits: of an acknowledgement for tokens at the next station, by time of a cycle.
        own: the same at this station, to be written.
        early: False for each segment.
        releases: (PLACES,) of packets that wait for tokens.
        flights: (2, PLACES, 3).
        counts: seconds, segments delivered and sent, round trips, their sum, waits kept: to be written.
    """
    one = sender[0]
    bucket = np.array((station.depth, 0.0))  # tokens, and since when
    queue = np.zeros(2, np.int64)  # place of the oldest release, and how many
    rows, heads = np.zeros(2, np.int64), np.zeros(2, np.int64)  # under way: how many, and the oldest
    now, other, expected, echo, last_back = 0.0, 0.5 * station.gap_s, 0, 0.0, 0.0
    period, moved, events, beginning, settled = waits.size * station.grid_s, 0.0, 0, 0.0, False
    send_window(station, one, bucket, queue, releases, flights, rows, heads, counts, now)
    while expected < SETTLING + SEGMENTS:
        if not settled and expected >= SETTLING:
            settled, beginning = True, now
            one.timeouts, one.fast_retransmits = 0, 0
            counts[:] = 0.0
            counts[1] = -expected
        arrival = flights[0, heads[0], 0] if rows[0] > 0 else inf
        back = flights[1, heads[1], 0] if rows[1] > 0 else inf
        then = min(min(arrival, back), min(other, one.deadline))
        while settled and counts[5] < own.size and beginning + counts[5] * station.grid_s < then:
            missing = bucket[1] - (beginning + counts[5] * station.grid_s)
            own[int(counts[5])] = missing + station.ack_price / station.token_rate if missing > 0.0 else 0.0
            counts[5] += 1
        now = then
        if other <= now:
            take_tokens(station, bucket, queue, releases, station.ack_price, now)
            other += station.gap_s
            continue
        losses = one.timeouts + one.fast_retransmits
        if arrival <= now:
            number, stamp = int(flights[0, heads[0], 1]), flights[0, heads[0], 2]
            heads[0], rows[0] = (heads[0] + 1) % PLACES, rows[0] - 1
            if number <= expected:
                echo = max(echo, stamp)
            early[number] = True
            while early[expected]:
                expected += 1
            wait = waits[int(((now + moved) % period) / station.grid_s) % waits.size]
            last_back = max(now + wait + station.back_s, last_back)
            put(flights[1], rows, heads, 1, last_back, expected, echo)
            continue
        if back <= now:
            number, stamp = int(flights[1, heads[1], 1]), flights[1, heads[1], 2]
            heads[1], rows[1] = (heads[1] + 1) % PLACES, rows[1] - 1
            if number > one.una:
                counts[3] += 1
                counts[4] += now - stamp
                one.smoothed, one.variation = smooth(one.smoothed, one.variation, now - stamp)
                one.rto = timeout(one, one.smoothed, one.variation)
            again = answer(one, number, now)
            if again != NO_SEGMENT:
                send(station, again, bucket, queue, releases, flights, rows, heads, counts, now)
        else:
            go_back(one, now)
        send_window(station, one, bucket, queue, releases, flights, rows, heads, counts, now)
        if one.timeouts + one.fast_retransmits > losses:  # a new cycle meets another time of the others'
            events += 1
            moved = (events * GOLDEN % 1.0) * period - now
    counts[0], counts[1] = now - beginning, counts[1] + expected


def send_window(station, one, bucket, queue, releases, flights, rows, heads, counts, now):
    """Send what the window lets out."""
    first, last = one.nxt, int(one.una + min(one.cwnd, float(one.receive_window)))
    if last > first:
        sent_up_to(one, last, now)
    for number in range(first, last):
        send(station, number, bucket, queue, releases, flights, rows, heads, counts, now)


def send(station, number, bucket, queue, releases, flights, rows, heads, counts, now):
    """Offer the packets of a segment to the bucket; it arrives if none of them is refused."""
    whole, last = True, now
    for price in station.prices:
        at = take_tokens(station, bucket, queue, releases, price, now)
        whole = whole and at < inf
        last = max(last, at)
    counts[2] += 1
    if whole:
        put(flights[0], rows, heads, 0, last + station.forth_s, number, now)


def take_tokens(station, bucket, queue, releases, price, now):
    """Return when a packet has its tokens; infinity if it finds the buffer full."""
    while queue[1] > 0 and releases[queue[0]] <= now:
        queue[0], queue[1] = (queue[0] + 1) % PLACES, queue[1] - 1
    if bucket[1] < now:
        bucket[0] = min(station.depth, bucket[0] + station.token_rate * (now - bucket[1]))
        bucket[1] = now
    if bucket[1] <= now and bucket[0] >= price:
        bucket[0] -= price
        return now
    if queue[1] >= station.buffer:
        return inf
    bucket[1] += (price - bucket[0]) / station.token_rate
    bucket[0] = 0.0
    releases[(queue[0] + queue[1]) % PLACES] = bucket[1]
    queue[1] += 1
    return bucket[1]


def put(flight, rows, heads, kind, at, number, stamp):
    """Note what is under way: in order of time, as all take the same way."""
    place = (heads[kind] + rows[kind]) % PLACES
    flight[place, 0], flight[place, 1], flight[place, 2] = at, number, stamp
    rows[kind] += 1


RULES = (
    *(answer, newreno_sender.duplicate, newreno_sender.in_recovery),
    go_back,
    sent_up_to,
    smooth,
    timeout,
)
for _rule in (*RULES, send_window, send, take_tokens, put):
    part(_rule)
