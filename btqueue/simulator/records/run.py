"""Records of a run as a whole: its clock and pools, the options, timers, random streams, and the log."""

from btqueue.simulator.records.conventions import flags, integers, reals, record_type, words
from btqueue.simulator.records.packets import SACK_BLOCKS

# Kinds of timers. Timers due at the same nanosecond fire in the order of their numbers: first timers of
# centrals, then of hosts and links, then of flows.
TURN, TOKENS, LINE, MEDIUM, ARRIVAL, RETRANSMISSION, DELAYED_ACK, SESSION, EVENT = range(9)

timer_dtype = record_type(integers("due place root end kind owner"))
"""`place` in the heap of its island, whose `root` is the place of the earliest one and `end` one past the
last; NOTHING in an island of few timers, which stand in the order of their numbers."""

stream_dtype = record_type(words("s0 s1 s2 s3"))

clock_dtype = record_type(
    integers("now events pause_at statistics_since"),
    # work that the event just played leaves to the rest of the loop
    integers("arrived entering sending acknowledging island look first second others_due"),
    # trace
    flags("logging"),
    integers("log_length"),
)
"""`arrived`: segment that has just come whole to its last node; `entering`: segment that has to enter the
next port of its route; `sending`: flow whose sender may have a segment to send; `acknowledging`: flow whose
receiver may have an acknowledgement to send. One event leaves at most one of each. `look`: number of
`State.looks` that are over; `island`: the island being played; if it has few timers, `first` and `second` are
the two that fired last, and none of the others is due before `others_due`."""

PACKETS, SEGMENTS, MESSAGES = range(3)
pool_dtype = record_type(integers("free left reserve"))
"""The free entries of the packets, the segments or the messages: the first one, their number, and how many
the next piece of work could need."""

settings_dtype = record_type(flags("relay_segments lossy_feedback adapts_to_quality node_buffers"))
"""`relay_segments`: nodes on the way put segments together and cut them anew, else they pass packets on one
by one. `lossy_feedback`: a lost packet takes the acknowledgement bit that it carries with it.
`adapts_to_quality`: packet types are chosen by the link
quality, not by the true error rate; `node_buffers`: nodes have a limited buffer below IP."""

log_dtype = record_type(
    integers("time event node port flow kind number ack bytes application packet_type message incarnation"),
    integers("timestamp echo blocks"),
    integers("block_start block_end", SACK_BLOCKS),
    flags("backward acknowledges"),
    reals("cwnd ssthresh"),
)
