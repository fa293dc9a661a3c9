"""Records of what travels: packets and their types, segments and how they are cut, messages."""

import numpy as np

from btqueue.simulator.records.conventions import record_type

PACKETS_A_SEGMENT = 128
"""Most baseband packets that one segment is cut into; 1,504 bytes in DM1, the smallest type, are 89."""
SACK_BLOCKS = 4
"""Most blocks that an acknowledgement can report (RFC 2018, section 3)."""

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
        ("pushed", np.bool_),
        ("window", np.int64),
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
"""A message that an application has written: `last` is the number of its last segment, or byte."""
