"""Records of nodes and links: queues, token buckets, delay lines, ports, media, radio channels."""

from btqueue.simulator.records.conventions import flags, integers, reals, record_type

queue_dtype = record_type(integers("head tail length limit kind"))

TOKEN_BUFFER, UPLINK, DOWNLINK, OUTSIDE = 0, 1, 2, 3
QUEUE_KINDS = ("token_buffer", "uplink", "downlink", "outside")

queue_statistics_dtype = record_type(
    integers("offered refused served inside_at_start changed_at area sojourn busy")
)
"""`area`: integral of the length (packet ns) up to `changed_at`; `sojourn`: time inside of served packets;
`busy`: time up to `changed_at` in which it was not empty (ns)."""

bucket_dtype = record_type(
    flags("enabled"),
    integers("queue timer"),
    reals("rate depth tokens"),
    integers("updated_at"),
    flags("whole_segments"),
)
"""The token bucket of a port; `queue` is its buffer. Tokens are counted in nanobits: a whole rate (bit/s)
times ns is a whole number of them, and exact as long as the bucket holds less than a megabyte."""

node_dtype = record_type(integers("outbox inbox bridge buffer_limit buffer_used"))
"""`outbox`, `inbox`: delay lines of its layers, or NOTHING if they take no time; `buffer_*`: bytes below
IP."""

OUTBOX, INBOX, PROPAGATION = 0, 1, 2

line_dtype = record_type(
    integers("purpose timer stream head tail length last_release delay interval_1 free_1 interval_2"),
    integers("free_2 jitter"),
    flags("exponential"),
)
"""Segments that take time and keep their order: a delay, then two servers in a row that take one segment
every `interval_1` and `interval_2`, then a random delay (uniform up to `jitter`, or exponential with that
mean)."""

port_dtype = record_type(
    integers("kind node peer piconet link channel most_transmissions flush baseband_delay"),
    flags("received acknowledges adaptive"),
    # of an outside link
    integers("medium line stream loss_block"),
    reals("loss"),
)
"""The sending side of one direction of a link; its queue and its token bucket have the same number. `kind`:
UPLINK, DOWNLINK or OUTSIDE. `most_transmissions`: 0 without ARQ; UNLIMITED or the limit with it. `received`,
`acknowledges`: with lossy feedback, whether the far side has received the head packet (or its last part), and
whether its next ARQN bit is ACK."""

medium_dtype = record_type(
    integers("timer stream header first_port ports next_port serving up_at"),
    reals("rate up_mean down_mean"),
)
"""The transmitter of outside links: it sends one packet at a time, port after port if several wait. `rate` in
bit/s; `serving`: the port whose head packet is on the wire; `next_port`: the port next in turn, counted from
`first_port`. With `down_mean` above 0 it is up and down in turn; `up_at`: when it was found up last or, later
than now, when it comes up."""

channel_dtype = record_type(
    integers("model"),
    flags("lossy"),
    integers("first_level level sampled_at"),
    reals("stationary_good relaxation_rate"),
    integers("step trace_first trace_length state_stream error_stream"),
)
"""Error process of one direction of a link. `level` (0, 1, ...) counts from `first_level`, a row of
`error_rates`; `step`: ns between two changes of an alternating or traced channel."""

CONSTANT, TWO_STATE, ALTERNATING, TRACE = 0, 1, 2, 3
