"""What is known at one instant of a ring of connections, as arrays of records for the compiled loop.

Peripheral k is the sender of flow k and the receiver of flow k - 1. A packet knows its stream (2 f for the
data of flow f, 2 f + 1 for the acknowledgements) and the serial number of its segment in that stream. All
queues on the way are first come, first served, so the packets of a stream arrive in the order of their serial
numbers: the receiver needs no more than a count to put a segment together, and a gap in the serial numbers is
a loss.

Times are in seconds, windows in segments, tokens in bytes.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from btqueue.network.ring_piconet.ring import Piece, Ring
from btqueue.transport.newreno_sender import Sender

DUE, ENTERING, BUFFER, UPLINK, DOWNLINK = range(5)
"""Queues of a peripheral: paused segments of a pool, segments on their way into L2CAP, packets in the token
buffer, in the uplink queue, and at the central for the peripheral."""
QUEUES = 5
UNBOUNDED = 1 << 62

ITEM = np.dtype(
    [
        *((name, np.float64) for name in ("at", "since", "stamp")),
        *((name, np.int64) for name in ("stream", "number", "serial", "slots")),
    ]
)
"""A segment or a packet in a queue: `at` when it can leave it, `since` when it came; `number` is that of the
segment or the one expected next, `stamp` the time of sending that an acknowledgement echoes."""

_SUMS = ("window_sum", "cwnd_sum", "time_in_buffer", "time_in_uplink", "time_in_downlink")
_TALLIES = ("samples", "sent", "lost", "offered_to_buffer", "refused_at_buffer")
SUMMED = (*_SUMS, *_TALLIES, "offered_to_baseband", "refused_at_baseband", "timeouts", "fast_retransmits")
"""What is added up of a peripheral; everything else is its state."""

PERIPHERAL = np.dtype(
    [
        *((name, np.float64) for name in ("ssthresh", "min_rto", "max_rto", "rto", "cwnd", "deadline")),
        *((name, np.float64) for name in ("smoothed", "variation", "echo", "tokens", "updated_at")),
        *((name, np.float64) for name in ("interval", "message", *_SUMS)),
        *((name, np.int64) for name in ("receive_window", "una", "nxt", "highest", "duplicates", "recover")),
        *((name, np.int64) for name in ("expected", "emitted", "messages", "outstanding")),
        ("sequence", np.int64),
        *((name, np.int64) for name in SUMMED[len(_SUMS) :]),
        *((name, np.int64, (2,)) for name in ("sent_serial", "serial", "pieces", "complete")),
        *((name, np.bool_) for name in ("backoff", "recovering")),
    ]
)
"""A sender (with the names of `transport.newreno_sender.Sender`), its messages, a receiver, a token bucket.

The pairs are for data and acknowledgements: the serial number of the last segment sent, of the one that is
arriving, its packets so far, and the last one that was complete."""

CLOCK = np.dtype(
    [
        ("now", np.float64),
        *((name, np.int64) for name in ("delivered", "round_trips", "cycles", "data_slots", "launched")),
        ("too_small", np.bool_),
    ]
)
"""Time; segments delivered in order; round trips measured; polling cycles and slots with data; segments sent
by a pool; whether a queue had fewer places than it needed."""


class Rules(NamedTuple):
    """What does not change.

    Attributes:
        limit: most frames of a visit.
        buffer, baseband: places of token buffer and uplink queue.
        depth, token_rate: of the token bucket (bytes, bytes/s).
        whole_segments: a full token buffer refuses the whole segment.
        jitter_s: longest processing delay.
        active: flows that a pool may use; 0 if there is no pool and TCP decides.
        window: most segments of a flow in a pool.
        pause_s: longest pause of a pool.
        pieces: packets of a data segment and of an acknowledgement.
        prices, slots: of these packets, [data or acknowledgement, packet].
    """

    limit: int
    buffer: int
    baseband: int
    depth: float
    token_rate: float
    whole_segments: bool
    jitter_s: float
    active: int
    window: int
    pause_s: float
    pieces: np.ndarray
    prices: np.ndarray
    slots: np.ndarray


class State(NamedTuple):
    """A ring at one instant.

    Attributes:
        clock: one `CLOCK` record.
        peripherals: a `PERIPHERAL` record each.
        early: segments that came out of order, [peripheral, number modulo width].
        queues: `ITEM` records, [peripheral, queue, place]; a power of two of places.
        marks: oldest place and entries of each queue, [peripheral, queue, 2].
        rtts: samples of the round-trip time; older ones are written over.
    """

    clock: np.ndarray
    peripherals: np.ndarray
    early: np.ndarray
    queues: np.ndarray
    marks: np.ndarray
    rtts: np.ndarray


def rules_of(ring: Ring, active: int = 0, window: int = 0, pause_s: float = 0.0) -> Rules:
    """Return the rules of a ring, with a pool or without."""
    kinds = (ring.data, ring.ack)
    most = max(len(kind) for kind in kinds)

    def table(value: Callable[[Piece], float], dtype: type) -> np.ndarray:
        rows = [[value(piece) for piece in kind] + [0] * (most - len(kind)) for kind in kinds]
        return np.array(rows, dtype)

    return Rules(
        ring.limit,
        ring.buffer,
        ring.baseband,
        float(ring.bucket_bytes),
        float(ring.token_rate),
        ring.whole_segments,
        ring.jitter_s,
        active,
        window,
        pause_s,
        np.array([len(kind) for kind in kinds]),
        table(lambda piece: piece.price_bytes, np.float64),
        table(lambda piece: piece.packet.slots, np.int64),
    )


def at_rest(ring: Ring, window: int, places: int, samples: int) -> State:
    """Return empty queues and full buckets; windows of at most `window` segments."""

    def records(shape: tuple[int, ...], kind: np.dtype) -> np.ndarray:
        return np.zeros(shape, kind).view(np.recarray)

    count = ring.peripherals
    peripherals = records((count,), PERIPHERAL)
    peripherals["tokens"] = ring.bucket_bytes
    peripherals["deadline"] = peripherals["message"] = np.inf
    peripherals["recover"], peripherals["smoothed"] = -1, np.nan
    return State(
        clock=records((1,), CLOCK),
        peripherals=peripherals,
        early=np.zeros((count, 1 << window.bit_length()), np.bool_),
        queues=records((count, QUEUES, places), ITEM),
        marks=np.zeros((count, QUEUES, 2), np.int64),
        rtts=np.zeros(samples),
    )


def begin(state: State, sender: Sender, starts: Sequence[float], interval: float, sequence: int = 0) -> None:
    """Give the first flows a sender, and messages.

    Args:
        state: a ring at rest.
        sender: what every sender is at first.
        starts: when the flows get their first message (s).
        interval: mean time between messages (s); 0: there are always data.
        sequence: which sequences of gaps they follow.
    """
    for k, (own, start) in enumerate(zip(state.peripherals, starts, strict=False)):
        for name, value in vars(sender).items():
            own[name] = np.nan if value is None else value
        own["message"], own["interval"] = start, interval
        own["sequence"] = 1 + k + sequence * len(state.peripherals)
