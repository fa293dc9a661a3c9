"""The initial state of a TCP connection, and its restart as a new one."""

from collections.abc import Mapping
from typing import Any

from btqueue.simulator.applications.application import forget_oldest
from btqueue.simulator.machinery.numba_cache import outlined
from btqueue.simulator.machinery.timers import cancel
from btqueue.simulator.records.conventions import NEVER, NOTHING
from btqueue.simulator.records.packets import SACK_BLOCKS
from btqueue.simulator.tcp import buffers
from btqueue.simulator.tcp.stream import user_bytes

NOT_YET = (
    *("message_head", "message_tail", "message_undelivered", "opening", "connecting_since", "last_short"),
    *("recover", "high_sacked", "high_rxt", "rescue_rxt", "rack_sent", "rack_number", "high_lost"),
    *("probe_end", "cubic_epoch", "in_order_at", "receiver_rtt", "answered_at"),
)
"""Fields of a connection that tell of a message, a segment or a time that there has not been yet."""


@outlined
def restart_connection(sim, flow):
    """Discard the data that this direction has written, sent and received; begin again as a new connection.

    Segments of the old connection that are still in the network bear its `incarnation` and are ignored. The
    receiver's clock goes on.
    """
    conn = sim.connections[flow]
    sim.flow_statistics[flow].bytes_wasted += user_bytes(sim, flow, conn.rcv_nxt, conn.snd_max)
    while conn.message_head != NOTHING:
        forget_oldest(sim, conn)
    incarnation, tick_phase = conn.incarnation, conn.tick_phase
    sim.connections[flow] = sim.fresh[flow]
    conn.incarnation = incarnation + 1
    conn.tick_phase = tick_phase
    for place in range(len(sim.scoreboard[flow])):
        sim.out_of_order[flow][place] = 0
        sim.scoreboard[flow][place] = 0
        sim.sent_at[flow][place] = 0
    sim.starts[flow][0] = 0
    for timer in (conn.retransmission_timer, conn.ack_timer):
        if timer != NOTHING:
            cancel(sim, timer)


def initial_values(options: Mapping[str, Any]) -> dict[str, object]:
    """Return the variables of a connection at its start that are not 0 or False, from its options."""
    return {
        **dict.fromkeys(NOT_YET, NOTHING),
        **buffers.initial_values(options["mss"], options["packet_cost"]),
        # handshake (RFC 9293, section 3.5)
        "open": not options["handshake"],
        "syn_timeout": options["initial_rto"],
        # sender (RFC 5681, section 3.1)
        "cwnd": options["initial_window_segments"],
        "ssthresh": options["initial_ssthresh_segments"],
        # retransmission timer (RFC 6298, section 2.1)
        "rto": options["initial_rto"],
        "rto_deadline": NEVER,
        "least_rtt": NEVER,
        # receiver
        "recent_blocks": [NOTHING] * SACK_BLOCKS,
        "quick_left": options["quick_acks"],
        "ack_wait": options["ack_delay"],
    }
