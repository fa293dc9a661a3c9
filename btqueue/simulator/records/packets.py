"""Records of the traffic: packets and their types, segments and how they are cut, messages."""

from btqueue.simulator.records.conventions import flags, integers, record_type

PACKETS_A_SEGMENT = 128
"""Most baseband packets that one segment is cut into; 1,504 bytes in DM1, the smallest type, are 89."""
SACK_BLOCKS = 4
"""Most blocks that an acknowledgement can report (RFC 2018, section 3)."""

packet_type_dtype = record_type(integers("duration on_air slots payload family"))
"""`duration`: of its slots, `on_air`: of its symbols (ns). `payload`: user bytes; `family`: types of one
family differ in length only (DH, DM, 2-DH, ...)."""

layout_dtype = record_type(
    integers("ip_bytes pdu application count"),
    integers("types bytes tokens", PACKETS_A_SEGMENT),
    integers("all_tokens"),
)
"""How a segment of `ip_bytes` with `application` bytes of user data is cut: packet types in order,
the bytes that each carries, together `pdu` (the L2CAP header included), and their prices in tokens
(nanobits)."""

packet_dtype = record_type(
    integers("next segment type bytes tokens hop enqueued_at ready_at transmissions sent_bytes"),
    flags("corrupted ghost"),
)
"""`hop`: place in `routes` of the port that the packet is in; `ready_at`: end of its processing in the
baseband; `sent_bytes`: how much of a packet that is cut at transmission has crossed the link; `ghost`: the
far side has the packet, but no acknowledgement has come, so it may be repeated; it counts as none of the
flow's packets."""

DATA, ACK, SYN, SYN_ACK, DATAGRAM, CONTROL = range(6)

segment_dtype = record_type(
    integers("next flow kind layout hop number ack timestamp echo window blocks message incarnation"),
    integers("session release_at travelling"),
    integers("block_start block_end", SACK_BLOCKS),
    flags("backward acknowledges pushed damaged"),
)
"""A segment on its way. `flow` is the flow it belongs to; it travels from the flow's source to its
destination, or `backward`. `number`: sequence number of DATA, in segments. `acknowledges`: `ack` is valid:
the next segment that its sender expects, of this flow for a (backward) ACK, of the reverse flow when DATA
carries it. `timestamp` and `echo`: TSval and TSecr (RFC 7323). Blocks are half-open ranges of segments held
out of order (RFC 2018). `incarnation`: of the connection that it belongs to.
`session`: number of the CentaurusComm session; `message`: kind of a CONTROL message, about the object
`number`; the bitmap of a PROCEED has the first `ack` packets received, and `echo` counts the DONE messages
before it. `hop`: place in `routes`; `travelling`: packets of this hop (or path) not yet delivered or lost."""

message_dtype = record_type(integers("next created_at last"))
"""A message that an application has written: `last` is the number of its last segment, or byte."""
