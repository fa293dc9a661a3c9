"""Records of nodes and what joins them: queues, token buckets, delay lines, ports, media, radio channels."""

import numpy as np

from btqueue.simulator.records.conventions import record_type

queue_dtype = record_type(
    [("head", np.int64), ("tail", np.int64), ("length", np.int64), ("limit", np.int64), ("kind", np.int64)]
)

TOKEN_BUFFER, UPLINK, DOWNLINK, OUTSIDE = 0, 1, 2, 3
QUEUE_KINDS = ("token_buffer", "uplink", "downlink", "outside")

queue_statistics_dtype = record_type(
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

bucket_dtype = record_type(
    [
        ("enabled", np.bool_),
        ("queue", np.int64),
        ("timer", np.int64),
        ("rate", np.float64),
        ("depth", np.float64),
        ("tokens", np.float64),
        ("updated_at", np.int64),
        ("whole_segments", np.bool_),
    ]
)
"""The token bucket of a port; `queue` is its buffer. Tokens are counted in nanobits: a whole rate (bit/s)
times ns is a whole number of them, and exact as long as the bucket holds less than a megabyte."""

node_dtype = record_type(
    [
        ("outbox", np.int64),
        ("inbox", np.int64),
        ("bridge", np.int64),
        ("buffer_limit", np.int64),
        ("buffer_used", np.int64),
    ]
)
"""`outbox`, `inbox`: delay lines of its layers, or NOTHING if they take no time; `buffer_*`: bytes below
IP."""

OUTBOX, INBOX, PROPAGATION = 0, 1, 2

line_dtype = record_type(
    [
        ("purpose", np.int64),
        ("timer", np.int64),
        ("stream", np.int64),
        ("head", np.int64),
        ("tail", np.int64),
        ("length", np.int64),
        ("last_release", np.int64),
        ("delay", np.int64),
        ("interval_1", np.int64),
        ("free_1", np.int64),
        ("interval_2", np.int64),
        ("free_2", np.int64),
        ("jitter", np.int64),
        ("exponential", np.bool_),
    ]
)
"""Segments that take time and keep their order: a delay, then two servers in a row that take one segment
every `interval_1` and `interval_2`, then a random delay (uniform up to `jitter`, or exponential with that
mean)."""

port_dtype = record_type(
    [
        ("kind", np.int64),
        ("node", np.int64),
        ("peer", np.int64),
        ("piconet", np.int64),
        ("link", np.int64),
        ("channel", np.int64),
        ("most_transmissions", np.int64),
        ("flush", np.int64),
        ("received", np.bool_),
        ("acknowledges", np.bool_),
        ("adaptive", np.bool_),
        ("baseband_delay", np.int64),
        # of an outside link
        ("medium", np.int64),
        ("line", np.int64),
        ("stream", np.int64),
        ("loss", np.float64),
        ("loss_block", np.int64),
    ]
)
"""The sending side of one direction of a link; its queue and its token bucket have the same number. `kind`:
UPLINK, DOWNLINK or OUTSIDE. `most_transmissions`: 0 without ARQ; UNLIMITED or the limit with it. `received`,
`acknowledges`: with lossy feedback, the far side has what the head packet last sent; the ARQN bit that it
sends next is ACK."""

medium_dtype = record_type(
    [
        ("timer", np.int64),
        ("stream", np.int64),
        ("rate", np.float64),
        ("header", np.int64),
        ("first_port", np.int64),
        ("ports", np.int64),
        ("next_port", np.int64),
        ("serving", np.int64),
        ("up_mean", np.float64),
        ("down_mean", np.float64),
        ("up_at", np.int64),
    ]
)
"""What transmits the packets of outside links: one at a time, port after port if several wait. `rate` in
bit/s; `serving`: the port whose head packet is on the wire; `next_port`: who is next in turn, counted from
`first_port`. With `down_mean` above 0 it is up and down in turn; `up_at`: when it was found up
last or, later than now, when it comes up."""

channel_dtype = record_type(
    [
        ("model", np.int64),
        ("lossy", np.bool_),
        ("first_level", np.int64),
        ("level", np.int64),
        ("sampled_at", np.int64),
        ("stationary_good", np.float64),
        ("relaxation_rate", np.float64),
        ("step", np.int64),
        ("trace_first", np.int64),
        ("trace_length", np.int64),
        ("state_stream", np.int64),
        ("error_stream", np.int64),
        ("quality", np.float64),
        ("quality_at", np.int64),
        ("quality_memory", np.float64),
    ]
)
"""Error process of one direction of a link. `level` (0, 1, ...) counts from `first_level`, a row of
`error_rates`; `step`: ns between two changes of an alternating or traced channel; `quality`: time-weighted
average of the link quality, forgotten with the time constant `quality_memory` (s)."""

CONSTANT, TWO_STATE, ALTERNATING, TRACE = 0, 1, 2, 3
