"""Records of a run as a whole: its clock and pools, the options, timers, random streams, and the log."""

import numpy as np

from btqueue.simulator.records.conventions import record_type
from btqueue.simulator.records.packets import SACK_BLOCKS

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
last; NOTHING in an island of few timers, which stand in the order of their numbers."""

stream_dtype = record_type([("s0", np.uint64), ("s1", np.uint64), ("s2", np.uint64), ("s3", np.uint64)])

clock_dtype = record_type(
    [
        ("now", np.int64),
        ("events", np.int64),
        ("pause_at", np.int64),
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
        ("look", np.int64),
        ("first", np.int64),
        ("second", np.int64),
        ("others_due", np.int64),
        # trace
        ("logging", np.bool_),
        ("log_length", np.int64),
    ]
)
"""`arrived`: segment that has just come whole to its last node; `entering`: segment that has to enter the
next port of its route; `sending`: flow whose sender may have something to send; `acknowledging`: flow whose
receiver may have an acknowledgement to send. One event leaves at most one of each. `look`: how many of
`State.looks` are over; `island`: the one that is being played; if it has few timers, `first` and `second` are
the two that fired last, and none of the others is due before `others_due`."""

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
