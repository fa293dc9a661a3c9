"""What is known at one instant of a ring of connections, as arrays of records for the compiled loop.

Peripheral k is the sender of flow k and the receiver of flow k - 1. A packet knows its stream (2 f for the
data of flow f, 2 f + 1 for the acknowledgements) and the serial number of its segment in that stream. All
queues on the way are first come, first served, so the packets of a stream arrive in the order of their serial
numbers: the receiver needs no more than a count to put a segment together, and a gap in the serial numbers is
a loss.

Times are in seconds, windows in segments, tokens in bytes.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from btqueue.network.ring_piconet.network import RingNetwork
from btqueue.network.ring_piconet.ring import Piece, Ring
from btqueue.network.ring_piconet.sequences import ERRORS, MESSAGES, gap, quantile
from btqueue.transport.newreno_sender import Sender

ENTERING, BUFFER, UPLINK, DOWNLINK = range(4)
"""Queues of a peripheral: segments on their way into L2CAP, packets in the token buffer, in the uplink queue,
and at the central for the peripheral."""
QUEUES = 4
UNBOUNDED = 1 << 62
BAD = 1
SHORTEST_S = 1e-9
"""Time between messages for those who always have data."""
BEGINNING_S = 0.5
"""Time within which greedy connections begin."""

ITEM_FIELDS: list[tuple] = [
    *((name, np.float64) for name in ("at", "since", "stamp")),
    *((name, np.int64) for name in ("number", "serial")),
    *((name, np.int32) for name in ("stream", "piece", "slots", "damaged")),
]
ITEM = np.dtype(ITEM_FIELDS)
"""A segment or a packet in a queue: `at` when it can leave it, `since` when it came; `number` is that of the
segment or the one expected next, `stamp` the time of sending that an acknowledgement echoes; `piece` is the
packet's place in its segment, `damaged` 0 or 1. It fits into a line of the processor's cache."""

_SUMS = ("window_sum", "cwnd_sum", "time_in_buffer", "time_in_uplink", "time_in_downlink")
_TALLIES = ("samples", "sent", "lost", "received", "damaged", "timeouts", "fast_retransmits")
_BUFFERS = ("offered_to_buffer", "refused_at_buffer", "offered_to_baseband", "refused_at_baseband")
SUMMED = (*_SUMS, *_TALLIES, *_BUFFERS)
"""What is added up of a peripheral; everything else is its state."""

PERIPHERAL = np.dtype(
    [
        *((name, np.float64) for name in ("ssthresh", "min_rto", "max_rto", "rto", "cwnd", "deadline")),
        *((name, np.float64) for name in ("smoothed", "variation", "echo", "tokens", "updated_at")),
        *((name, np.float64) for name in ("interval", "message", "due", *_SUMS)),
        *((name, np.int64) for name in ("receive_window", "una", "nxt", "highest", "duplicates", "recover")),
        *((name, np.int64) for name in ("expected", "emitted", "messages")),
        ("sequence", np.int64),
        *((name, np.int64) for name in SUMMED[len(_SUMS) :]),
        *((name, np.int64, (2,)) for name in ("sent_serial", "serial", "pieces", "complete")),
        *((name, np.bool_) for name in ("backoff", "recovering")),
    ],
    align=True,
)
"""A sender (with the names of `transport.newreno_sender.Sender`), its messages, a receiver, a token bucket.

`due` is when something happens next without an arrival. The pairs are for data and acknowledgements: the
serial number of the last segment sent, of the one that is arriving, its intact packets so far, and the last
one that was complete."""

CLOCK_FIELDS: list[tuple] = [
    *((name, np.float64) for name in ("now", "trip_time", "bad_surprise", "hit_surprise")),
    *((name, np.int64) for name in ("delivered", "round_trips", "cycles", "frames", "data_slots", "notes")),
    ("too_small", np.bool_),
]
CLOCK = np.dtype(CLOCK_FIELDS, align=True)
"""Time; the sum of all round-trip times; what of the radio was a surprise (`ring_piconet.radio`); segments
delivered in order; round trips measured; polling cycles, frames that were followed and slots with data;
notes taken; whether a queue had fewer places than it needed."""

NOTED = 6
"""What is noted of the clock at the end of a batch: time, segments delivered, round trips, their sum, and
both surprises."""

LINK = np.dtype(
    [
        *((name, np.float64) for name in ("until", "left")),
        *((name, np.int64) for name in ("level", "stays", "errors", "sequence")),
    ]
)
"""A channel: the end of its stay in a state, the hazard left until its next error, the state (0 good, 1 bad),
how many stays and errors there have been, and which sequences it follows."""


class Rules(NamedTuple):
    """What does not change.

    Attributes:
        limit: most frames of a visit.
        buffer, baseband: places of token buffer and uplink queue.
        depth, token_rate: of the token bucket (bytes, bytes/s).
        whole_segments: a full token buffer refuses the whole segment.
        jitter_s: longest processing delay.
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
    pieces: np.ndarray
    prices: np.ndarray
    slots: np.ndarray


class State(NamedTuple):
    """A ring at one instant.

    Attributes:
        clock: one `CLOCK` record.
        peripherals: a `PERIPHERAL` record each.
        links: a `LINK` record each.
        early: segments that came out of order, [peripheral, number modulo width].
        queues: `ITEM` records, [peripheral, queue, place]; a power of two of places.
        marks: oldest place and entries of each queue, [peripheral, queue, 2].
        rtts: samples of the round-trip time, a power of two; older ones are written over.
        notes: what is `NOTED` when the connections have settled, and at the end of each batch, [note, what].
    """

    clock: np.ndarray
    peripherals: np.ndarray
    links: np.ndarray
    early: np.ndarray
    queues: np.ndarray
    marks: np.ndarray
    rtts: np.ndarray
    notes: np.ndarray


def rules_of(ring: Ring) -> Rules:
    """Return the rules of a ring."""
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
        np.array([len(kind) for kind in kinds]),
        table(lambda piece: piece.price_bytes, np.float64),
        table(lambda piece: piece.packet.slots, np.int64),
    )


def zeros(shape: tuple[int, ...], kind: np.dtype) -> np.ndarray:
    """Return records that are zero."""
    return np.zeros(shape, kind).view(np.recarray)


def at_rest(net: RingNetwork, window: int, places: int, samples: int, batches: int = 1) -> State:
    """Return empty queues and full buckets; windows of at most `window` segments."""
    count = net.flows
    peripherals, links = np.zeros(count, PERIPHERAL), np.zeros(count, LINK)
    peripherals["tokens"] = net.ring.bucket_bytes
    peripherals["deadline"] = peripherals["message"] = np.inf
    peripherals["recover"], peripherals["smoothed"] = -1, np.nan
    links["until"] = 0.0 if net.radio.two_states else np.inf
    links["level"] = BAD if net.radio.two_states else 0  # the first look finds that the bad stay is over
    return State(
        clock=zeros((1,), CLOCK),
        peripherals=peripherals.view(np.recarray),
        links=links.view(np.recarray),
        early=np.zeros((count, 1 << window.bit_length()), np.bool_),
        queues=zeros((count, QUEUES, places), ITEM),
        marks=np.zeros((count, QUEUES, 2), np.int64),
        rtts=np.zeros(samples),
        notes=np.zeros((batches + 1, NOTED)),
    )


def begin(state: State, sender: Sender, interval: float, number: int) -> None:
    """Give the flows a sender, and messages; greedy ones begin at irregular times within `BEGINNING_S`.

    Args:
        state: a ring at rest.
        sender: what every sender is at first.
        interval: mean time between messages (s); 0: there are always data.
        number: which sequences they follow.
    """
    own, links = state.peripherals.view(np.ndarray), state.links.view(np.ndarray)
    for name, value in vars(sender).items():
        own[name] = np.nan if value is None else value
    sequences = [k + number * len(own) for k in range(len(own))]
    own["sequence"] = links["sequence"] = sequences
    own["message"] = [first_message(interval, k) for k in sequences]
    own["interval"] = interval
    links["left"] = [gap(k, ERRORS, 0) for k in sequences]


def first_message(interval: float, sequence: int) -> float:
    """Return when the first message of a flow comes (s)."""
    if interval > 0.0:
        return interval * gap(sequence, MESSAGES, 0)
    return BEGINNING_S * quantile(sequence, MESSAGES, 0)


def written(own: np.ndarray, now: float) -> np.ndarray:
    """Return how many messages have been written, [peripheral].

    Those that the window left no room for were not looked at: they count with what is expected.

    Args:
        own: `PERIPHERAL` records.
        now: time (s).
    """
    since = np.maximum(now - own["message"], 0.0)
    return own["messages"] + np.where(since > 0.0, 1.0 + since / np.maximum(own["interval"], SHORTEST_S), 0.0)
