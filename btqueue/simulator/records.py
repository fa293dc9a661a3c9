"""The simulator's state: one NumPy record type for each kind of entity, gathered in a `State`.

Behaviour lives in plain functions over these records. Times are whole nanoseconds; counts of bytes, slots and
segments are whole numbers; `NOTHING` stands for "no index". Fields are named as in the RFC or the paper. An
entity that owns a timer or a random stream holds its number (`timer`, `stream`). Flows have records of their
own: `btqueue.simulator.flow_records`.
"""

from typing import Any, NamedTuple

import numpy as np

from btqueue.simulator.flow_records import (
    connection_dtype,
    flow_statistics_dtype,
    record_type,
    session_dtype,
)

NOTHING = -1
NEVER = np.int64(2**62)
"""A time that no run reaches (ns); the due time of a timer that is not running."""
UNLIMITED = 2**62

SECOND = 1_000_000_000
SLOT = 625_000
"""Length of a slot (ns)."""

PACKETS_A_SEGMENT = 128
"""Most baseband packets that one segment is cut into; 1,504 bytes in DM1, the smallest type, are 89."""
PICONETS_A_BRIDGE = 8
"""Most piconets that one device belongs to."""
SACK_BLOCKS = 4
"""Most blocks that an acknowledgement can report (RFC 2018, section 3)."""
AIR_HISTORY = 8
"""Transmissions that a piconet remembers, to find out what overlapped a packet."""

# Kinds of timers. Timers due at the same nanosecond fire in the order of their numbers; those of the
# centrals come first, then those of hosts and links, then those of flows.
TURN, TOKENS, LINE, MEDIUM, BRIDGE, ARRIVAL, RETRANSMISSION, DELAYED_ACK, SESSION = range(9)

timer_dtype = record_type(
    [
        ("due", np.int64),
        ("place", np.int64),
        ("root", np.int64),
        ("end", np.int64),
        ("kind", np.int64),
        ("owner", np.int64),
    ]
)
"""`place` in the heap of its island, whose `root` is the place of the earliest one and `end` one past the
last."""

stream_dtype = record_type([("s0", np.uint64), ("s1", np.uint64), ("s2", np.uint64), ("s3", np.uint64)])

clock_dtype = record_type(
    [
        ("now", np.int64),
        ("events", np.int64),
        ("statistics_since", np.int64),
        # pools
        ("free_packet", np.int64),
        ("free_packets", np.int64),
        ("packet_reserve", np.int64),
        ("free_segment", np.int64),
        ("free_segments", np.int64),
        ("segment_reserve", np.int64),
        ("free_message", np.int64),
        ("free_messages", np.int64),
        ("message_reserve", np.int64),
        # work that the event just played leaves to the rest of the loop
        ("arrived", np.int64),
        ("entering", np.int64),
        ("sending", np.int64),
        ("acknowledging", np.int64),
        ("island", np.int64),
        # trace
        ("logging", np.bool_),
        ("log_length", np.int64),
    ]
)
"""`arrived`: segment that has just come whole to its last node; `entering`: segment that has to enter the
next port of its route; `sending`: flow whose sender may have something to send; `acknowledging`: flow whose
receiver may have an acknowledgement to send. One event leaves at most one of each. `island`: the one that is
being played."""

settings_dtype = record_type(
    [
        ("relay_segments", np.bool_),
        ("lossy_feedback", np.bool_),
        ("colocated", np.bool_),
        ("adapts_to_quality", np.bool_),
        ("node_buffers", np.bool_),
    ]
)
"""`relay_segments`: nodes on the way put segments together and cut them anew, else they pass packets on one
by one. `lossy_feedback`: a lost packet takes the acknowledgement bit that it carries with it.
`colocated`: simulated piconets disturb each other; `adapts_to_quality`: packet types are chosen by the link
quality, not by the true error rate; `node_buffers`: nodes have a limited buffer below IP."""

# ---------------------------------------------------------------------------------------------- what travels

packet_type_dtype = record_type(
    [
        ("duration", np.int64),
        ("on_air", np.int64),
        ("slots", np.int64),
        ("payload", np.int64),
        ("family", np.int64),
    ]
)
"""`duration`: of its slots, `on_air`: of its symbols (ns). `payload`: user bytes; `family`: types of one
family differ in length only (DH, DM, 2-DH, ...)."""

layout_dtype = record_type(
    [
        ("ip_bytes", np.int64),
        ("pdu", np.int64),
        ("application", np.int64),
        ("count", np.int64),
        ("types", np.int64, (PACKETS_A_SEGMENT,)),
        ("bytes", np.int64, (PACKETS_A_SEGMENT,)),
        ("tokens", np.int64, (PACKETS_A_SEGMENT,)),
        ("all_tokens", np.int64),
    ]
)
"""How a segment of `ip_bytes` with `application` bytes of user data is cut: packet types in order,
the bytes that each carries, together `pdu` (the L2CAP header included), and their prices in tokens
(nanobits)."""

packet_dtype = record_type(
    [
        ("next", np.int64),
        ("segment", np.int64),
        ("type", np.int64),
        ("bytes", np.int64),
        ("tokens", np.int64),
        ("hop", np.int64),
        ("enqueued_at", np.int64),
        ("ready_at", np.int64),
        ("transmissions", np.int64),
        ("sent_bytes", np.int64),
        ("corrupted", np.bool_),
        ("ghost", np.bool_),
    ]
)
"""`hop`: place in `routes` of the port that the packet is in; `ready_at`: end of its processing in the
baseband; `sent_bytes`: how much of a packet that is cut at transmission has crossed the link; `ghost`: the
far side has the packet, but no acknowledgement has come, so it may be repeated; it counts as none of the
flow's packets."""

DATA, ACK, SYN, SYN_ACK, DATAGRAM, CONTROL = range(6)

segment_dtype = record_type(
    [
        ("next", np.int64),
        ("flow", np.int64),
        ("kind", np.int64),
        ("backward", np.bool_),
        ("layout", np.int64),
        ("hop", np.int64),
        ("number", np.int64),
        ("acknowledges", np.bool_),
        ("ack", np.int64),
        ("timestamp", np.int64),
        ("echo", np.int64),
        ("blocks", np.int64),
        ("block_start", np.int64, (SACK_BLOCKS,)),
        ("block_end", np.int64, (SACK_BLOCKS,)),
        ("message", np.int64),
        ("incarnation", np.int64),
        ("session", np.int64),
        ("release_at", np.int64),
        ("travelling", np.int64),
        ("damaged", np.bool_),
    ]
)
"""A segment on its way. `flow` is the flow it belongs to; it travels from the flow's source to its
destination, or `backward`. `number`: sequence number of DATA, in segments. `acknowledges`: `ack` is valid:
the next segment that its sender expects, of this flow for a (backward) ACK, of the reverse flow when DATA
carries it. `timestamp` and `echo`: TSval and TSecr (RFC 7323). Blocks are half-open ranges of segments held
out of order (RFC 2018). `incarnation`: of the connection that it belongs to.
`session`: number of the CentaurusComm session; `message`: kind of a CONTROL message, about the object
`number`; the bitmap of a PROCEED is that of the first `ack` packets received, and `echo` counts the DONE
messages before it. `hop`: place in `routes`; `travelling`: packets of this hop
(or path) not yet delivered or lost."""

message_dtype = record_type([("next", np.int64), ("created_at", np.int64), ("last", np.int64)])
"""A message that an application has written: `last` is the number of its last segment."""

# ---------------------------------------------------------------------------------------- nodes, links, ports

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
        ("rate", np.int64),
        ("depth", np.int64),
        ("tokens", np.int64),
        ("updated_at", np.int64),
        ("whole_segments", np.bool_),
    ]
)
"""The token bucket of a port; `queue` is its buffer. Tokens are counted in nanobits: `rate` bit/s times ns is
a whole number of them, so nothing is rounded."""

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
        ("queue", np.int64),
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
"""The sending side of one direction of a link. `kind`: UPLINK, DOWNLINK or OUTSIDE. `most_transmissions`: 0
without ARQ; UNLIMITED or the limit with it. `received`, `acknowledges`: with lossy feedback, the far side has
what the head packet last sent; the ARQN bit that it sends next is ACK."""

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
        ("up", np.bool_),
        ("changes_at", np.int64),
    ]
)
"""What transmits the packets of outside links: one at a time, port after port if several wait. `rate` in
bit/s; `serving`: the port whose head packet is on the wire; `next_port`: who is next in turn, counted from
`first_port`. With `down_mean` above 0 it is up and down in turn."""

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

# ---------------------------------------------------------------------------------- piconets and bridges

DOWNLINK_HALF, UPLINK_HALF, PAUSE, BEFORE_VISIT, NO_STATION = range(5)
"""What a central's timer ends: a half-frame, the wait for a free slot, or for its own return to its piconet,
or for a time at which some station is there to be polled."""
E_LIMITED, EXHAUSTIVE, GATED, FEP, LWRR, PRC_LWRR, SLQ, LDQ = range(8)

piconet_dtype = record_type(
    [
        ("timer", np.int64),
        ("stream", np.int64),
        ("node", np.int64),
        ("first_link", np.int64),
        ("links", np.int64),
        ("plain", np.bool_),
        ("discipline", np.int64),
        ("limit", np.int64),
        ("max_weight", np.int64),
        # the visit in progress: `station` counts from `first_link`
        ("station", np.int64),
        ("frame", np.int64),
        ("visit_limit", np.int64),
        ("gate_down", np.int64),
        ("gate_up", np.int64),
        ("carried_data", np.bool_),
        ("visiting", np.bool_),
        ("phase", np.int64),
        ("packet", np.int64),
        ("on_air_type", np.int64),
        ("on_air_bytes", np.int64),
        ("hit", np.bool_),
        ("polled", np.bool_),
        # what is in the queues of its links; at 0 only POLL and NULL can follow
        ("waiting", np.int64),
        # sleep: a piconet with nothing to send is not played, and woken by the next packet
        ("can_sleep", np.bool_),
        ("asleep", np.bool_),
        ("idle_since", np.int64),
        # cycles of the disciplines that change the order or skip members
        ("cycle", np.int64),
        ("cycle_position", np.int64),
        ("order", np.int64, (8,)),
        ("cycle_carried_data", np.bool_),
        # its central or one of its links keeps to the windows of a bridge
        ("rendezvous", np.bool_),
        # voice: slots reserved at the start of every period
        ("voice_period", np.int64),
        ("voice_reserved", np.int64),
        # a central that is a bridge itself
        ("bridge", np.int64),
        ("away", np.bool_),
        # a bridge among its members
        ("bridge_answered", np.bool_),
        # what was on the air lately, for collisions with other piconets
        ("air_next", np.int64),
        ("air_start", np.int64, (AIR_HISTORY,)),
        ("air_end", np.int64, (AIR_HISTORY,)),
        # statistics
        ("visits", np.int64),
    ]
)
"""`plain`: none of the rarer options is in use, so a half-frame takes the short way: no ARQ, adaptation,
voice, windows, gated service, baseband delay, limited node buffers, collisions or log."""

link_dtype = record_type(
    [
        ("piconet", np.int64),
        ("node", np.int64),
        ("up", np.int64),
        ("down", np.int64),
        ("bridge", np.int64),
        ("limit", np.int64),
        ("active", np.bool_),
        ("weight", np.int64),
        ("skip_until_cycle", np.int64),
        ("skip_until", np.int64),
        # statistics
        ("visits", np.int64),
        ("data_slots", np.int64),
    ]
)
"""A peripheral's membership of a piconet; `up` and `down` are its ports, `bridge` the bridge that it is."""

VISIT, WHOLE_CYCLES, COMPLETE = 0, 1, 2
WALK_IN, SNIFF, PSEUDO_RANDOM = 0, 1, 2

bridge_dtype = record_type(
    [
        ("node", np.int64),
        ("timer", np.int64),
        ("stream", np.int64),
        ("schedule", np.int64),
        ("residence", np.int64),
        ("residence_cycles", np.int64),
        ("count", np.int64),
        ("piconets", np.int64, (PICONETS_A_BRIDGE,)),
        ("links", np.int64, (PICONETS_A_BRIDGE,)),
        ("current", np.int64),
        ("present_from", np.int64),
        ("visits_here", np.int64),
        ("window", np.int64),
        ("offset", np.int64),
        ("seed", np.int64),
        ("switch_delay", np.bool_),
        ("patience", np.int64),
        ("switches", np.int64),
    ]
)
"""A device in several piconets. `links[k]` is its membership of `piconets[k]`, NOTHING where it is the
central; `current`: where it is (or goes to), there from `present_from` on. `window`: ns of a rendezvous;
`patience`: ns that it waits to be polled, at least, before it goes on unserved; 0 stands for ever."""

# ------------------------------------------------------------------------------------------------------ trace

log_dtype = record_type(
    [
        ("time", np.int64),
        ("event", np.int64),
        ("node", np.int64),
        ("port", np.int64),
        ("flow", np.int64),
        ("kind", np.int64),
        ("backward", np.bool_),
        ("number", np.int64),
        ("acknowledges", np.bool_),
        ("ack", np.int64),
        ("bytes", np.int64),
        ("application", np.int64),
        ("packet_type", np.int64),
        ("message", np.int64),
        ("incarnation", np.int64),
        ("timestamp", np.int64),
        ("echo", np.int64),
        ("blocks", np.int64),
        ("block_start", np.int64, (SACK_BLOCKS,)),
        ("block_end", np.int64, (SACK_BLOCKS,)),
        ("cwnd", np.float64),
        ("ssthresh", np.float64),
    ]
)


class State(NamedTuple):
    """One replication: arrays of records, one array for each kind of entity.

    `routes`: ports of all paths, each path ended by NOTHING. `patterns`: layouts of a flow's segments,
    repeated cyclically. `islands`: where in `heap` the timers of each part of the network begin that nothing
    connects to the rest. `error_rates` [level, type]: packet error rates, the last column for POLL and NULL.
    `type_for_level`, `type_for_quality`: the packet type that adaptation chooses. `out_of_order`,
    `scoreboard`, `sent_at` [flow, segment number modulo their length]: what receiver and sender remember of
    segments. Histograms are [flow, bin].
    """

    clock: np.recarray
    settings: np.recarray
    timers: np.recarray
    heap: np.ndarray
    islands: np.ndarray
    streams: np.recarray
    packet_types: np.recarray
    layouts: np.recarray
    routes: np.ndarray
    packets: Any
    segments: Any
    messages: Any
    queues: np.recarray
    queue_statistics: np.recarray
    buckets: np.recarray
    nodes: np.recarray
    lines: np.recarray
    ports: np.recarray
    media: np.recarray
    channels: np.recarray
    error_rates: np.ndarray
    trace_levels: np.ndarray
    level_quality: np.ndarray
    type_for_level: np.ndarray
    type_for_quality: np.ndarray
    piconets: np.recarray
    links: np.recarray
    bridges: np.recarray
    connections: np.recarray
    patterns: np.ndarray
    schedules: np.ndarray
    out_of_order: np.ndarray
    scoreboard: np.ndarray
    sent_at: np.ndarray
    sessions: np.recarray
    flow_statistics: np.recarray
    rtt_histogram: np.ndarray
    delay_histogram: np.ndarray
    log: np.recarray


FIELDS: dict[str, tuple[np.dtype, int]] = {
    "clock": (clock_dtype, 1),
    "settings": (settings_dtype, 1),
    "timers": (timer_dtype, 1),
    "heap": (np.dtype(np.int64), 1),
    "islands": (np.dtype(np.int64), 1),
    "streams": (stream_dtype, 1),
    "packet_types": (packet_type_dtype, 1),
    "layouts": (layout_dtype, 1),
    "routes": (np.dtype(np.int64), 1),
    "packets": (packet_dtype, 1),
    "segments": (segment_dtype, 1),
    "messages": (message_dtype, 1),
    "queues": (queue_dtype, 1),
    "queue_statistics": (queue_statistics_dtype, 1),
    "buckets": (bucket_dtype, 1),
    "nodes": (node_dtype, 1),
    "lines": (line_dtype, 1),
    "ports": (port_dtype, 1),
    "media": (medium_dtype, 1),
    "channels": (channel_dtype, 1),
    "error_rates": (np.dtype(np.float64), 2),
    "trace_levels": (np.dtype(np.int64), 1),
    "level_quality": (np.dtype(np.float64), 1),
    "type_for_level": (np.dtype(np.int64), 1),
    "type_for_quality": (np.dtype(np.int64), 1),
    "piconets": (piconet_dtype, 1),
    "links": (link_dtype, 1),
    "bridges": (bridge_dtype, 1),
    "connections": (connection_dtype, 1),
    "patterns": (np.dtype(np.int64), 1),
    "schedules": (np.dtype(np.int64), 1),
    "out_of_order": (np.dtype(np.uint8), 2),
    "scoreboard": (np.dtype(np.uint8), 2),
    "sent_at": (np.dtype(np.int64), 2),
    "sessions": (session_dtype, 1),
    "flow_statistics": (flow_statistics_dtype, 1),
    "rtt_histogram": (np.dtype(np.int64), 2),
    "delay_histogram": (np.dtype(np.int64), 2),
    "log": (log_dtype, 1),
}
"""Type of the entries and number of dimensions of each array of a `State`."""
