"""The simulator's state: one NumPy record type for each kind of entity, gathered in a `State`.

Behaviour lives in plain functions over these records. Times are whole nanoseconds; counts of bytes, slots and
segments are whole numbers; `NOTHING` stands for "no index". Fields are named as in the RFC or the paper.
"""

from typing import Any, NamedTuple

import numpy as np

NOTHING = -1
NEVER = np.int64(2**62)
"""A time that no run reaches (ns); the due time of a timer that is not running."""

SECOND = 1_000_000_000
SLOT = 625_000
"""Length of a slot (ns)."""

PACKETS_A_SEGMENT = 128
"""Most baseband packets that one segment is cut into; 1,504 bytes in DM1, the smallest type, are 89."""
RECEIVE_WINDOW_LIMIT = 64
"""Most segments that a receiver can hold out of order."""

DATA, ACK = 0, 1

clock_dtype = np.dtype(
    [
        ("now", np.int64),
        ("events", np.int64),
        ("statistics_since", np.int64),
        ("free_packet", np.int64),
        ("free_packets", np.int64),
        ("free_segment", np.int64),
        ("free_segments", np.int64),
        ("packet_reserve", np.int64),
        ("segment_reserve", np.int64),
    ]
)

timer_dtype = np.dtype([("due", np.int64), ("place", np.int64), ("kind", np.int64), ("owner", np.int64)])

stream_dtype = np.dtype([("s0", np.uint64), ("s1", np.uint64), ("s2", np.uint64), ("s3", np.uint64)])

packet_type_dtype = np.dtype(
    [
        ("duration", np.int64),
        ("slots", np.int64),
        ("per_good", np.float64),
        ("per_bad", np.float64),
    ]
)

segment_layout_dtype = np.dtype(
    [
        ("count", np.int64),
        ("types", np.int64, (PACKETS_A_SEGMENT,)),
        ("tokens", np.int64, (PACKETS_A_SEGMENT,)),
    ]
)
"""How a DATA or an ACK segment is cut: packet types in order, and what each costs in tokens."""

packet_dtype = np.dtype(
    [
        ("next", np.int64),
        ("segment", np.int64),
        ("type", np.int64),
        ("tokens", np.int64),
        ("corrupted", np.bool_),
        ("enqueued_at", np.int64),
    ]
)

segment_dtype = np.dtype(
    [
        ("next", np.int64),
        ("flow", np.int64),
        ("kind", np.int64),
        ("number", np.int64),
        ("timestamp", np.int64),
        ("release_at", np.int64),
        ("travelling", np.int64),
        ("damaged", np.bool_),
    ]
)
"""A TCP segment on its way. `number` is the sequence number of DATA or the acknowledgement number of an ACK,
in segments; `timestamp` is TSval of DATA or TSecr of an ACK; `travelling` counts packets not yet delivered or
lost."""

queue_dtype = np.dtype([("head", np.int64), ("tail", np.int64), ("length", np.int64), ("limit", np.int64)])

queue_statistics_dtype = np.dtype(
    [
        ("offered", np.int64),
        ("refused", np.int64),
        ("served", np.int64),
        ("inside_at_start", np.int64),
        ("changed_at", np.int64),
        ("area", np.int64),
        ("sojourn", np.int64),
    ]
)
"""`area`: integral of the length (packet ns) up to `changed_at`; `sojourn`: time inside of served packets."""

bucket_dtype = np.dtype(
    [
        ("enabled", np.bool_),
        ("rate", np.int64),
        ("depth", np.int64),
        ("tokens", np.int64),
        ("updated_at", np.int64),
        ("whole_segments", np.bool_),
    ]
)
"""Tokens are counted in nanobits: `rate` bit/s times ns is a whole number of them, so nothing is rounded."""

peripheral_dtype = np.dtype(
    [
        ("channel", np.int64),
        ("outbox_head", np.int64),
        ("outbox_tail", np.int64),
        ("jitter", np.int64),
        ("last_release", np.int64),
    ]
)

channel_dtype = np.dtype(
    [
        ("lossy", np.bool_),
        ("good", np.bool_),
        ("sampled_at", np.int64),
        ("stationary_good", np.float64),
        ("relaxation_rate", np.float64),
    ]
)

central_dtype = np.dtype(
    [
        ("peripherals", np.int64),
        ("limit", np.int64),
        ("station", np.int64),
        ("frame", np.int64),
        ("phase", np.int64),
        ("packet", np.int64),
        ("polled", np.bool_),
        ("visits", np.int64),
        ("data_slots", np.int64),
        ("waiting", np.int64),
    ]
)
"""`waiting` counts the packets in all uplink and downlink queues: at 0 only POLL and NULL can follow."""

connection_dtype = np.dtype(
    [
        ("source", np.int64),
        ("destination", np.int64),
        # application
        ("greedy", np.bool_),
        ("mean_interarrival", np.float64),
        ("written", np.int64),
        # sender (RFC 5681, RFC 6582)
        ("snd_una", np.int64),
        ("snd_nxt", np.int64),
        ("snd_max", np.int64),
        ("cwnd", np.float64),
        ("ssthresh", np.float64),
        ("rwnd", np.int64),
        ("duplicate_acks", np.int64),
        ("in_recovery", np.bool_),
        ("recover", np.int64),
        ("retransmit", np.bool_),
        # retransmission timer (RFC 6298)
        ("measured", np.bool_),
        ("srtt", np.float64),
        ("rttvar", np.float64),
        ("rto", np.int64),
        ("min_rto", np.int64),
        ("max_rto", np.int64),
        ("backoff", np.bool_),
        ("rto_deadline", np.int64),
        # receiver
        ("rcv_nxt", np.int64),
        ("ts_recent", np.int64),
        ("last_ack_sent", np.int64),
        ("out_of_order", np.uint8, (RECEIVE_WINDOW_LIMIT,)),
    ]
)

flow_statistics_dtype = np.dtype(
    [
        ("messages", np.int64),
        ("segments_sent", np.int64),
        ("segments_finished", np.int64),
        ("segments_damaged", np.int64),
        ("delivered_in_order", np.int64),
        ("timeouts", np.int64),
        ("fast_retransmits", np.int64),
        ("window_samples", np.int64),
        ("cwnd_sum", np.float64),
        ("window_sum", np.float64),
        ("rtt_samples", np.int64),
        ("rtt_sum", np.int64),
        ("packets_sent", np.int64),
        ("packets_delivered", np.int64),
        ("packets_corrupted", np.int64),
        ("offered_to_token_buffer", np.int64),
        ("refused_at_token_buffer", np.int64),
        ("offered_to_baseband", np.int64),
        ("refused_at_baseband", np.int64),
        ("inside_at_start", np.int64),
    ]
)
"""Packets are those of the flow's data and of its acknowledgements; segments are data segments."""


class State(NamedTuple):
    """One replication: arrays of records, one array for each kind of entity."""

    clock: np.recarray
    timers: np.recarray
    heap: np.ndarray
    streams: np.recarray
    packet_types: np.recarray
    layouts: np.recarray
    packets: Any
    segments: Any
    queues: np.recarray
    queue_statistics: np.recarray
    buckets: np.recarray
    peripherals: np.recarray
    channels: np.recarray
    central: np.recarray
    connections: np.recarray
    flow_statistics: np.recarray


# Places in the arrays. Queues: token buffer, uplink and downlink of each peripheral, kind after kind.
# Timers: the central's next half-frame, then two for each peripheral and two for each flow.
# Streams: application of each flow, then channel state, bit errors and jitter of each peripheral.
TOKEN_BUFFER, UPLINK, DOWNLINK = 0, 1, 2
QUEUE_KINDS = ("token_buffer", "uplink", "downlink")
TURN, TOKENS, OUTBOX, ARRIVAL, RETRANSMISSION = 0, 1, 2, 3, 4
