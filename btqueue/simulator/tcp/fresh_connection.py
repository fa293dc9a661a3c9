"""The initial state of a TCP connection, and its restart as a new one."""

from btqueue.simulator.applications.application import forget_oldest
from btqueue.simulator.machinery.numba_cache import outlined
from btqueue.simulator.machinery.timers import cancel
from btqueue.simulator.records.connections import OPEN
from btqueue.simulator.records.conventions import NEVER, NOTHING
from btqueue.simulator.tcp import buffers
from btqueue.simulator.tcp.stream import user_bytes


@outlined
def restart_connection(sim, flow):
    """Discard the data that this direction has written, sent and received; begin again as a new connection.

    Segments of the old connection that are still in the network bear its `incarnation` and are ignored.
    """
    conn = sim.connections[flow]
    sim.flow_statistics[flow].bytes_wasted += user_bytes(sim, flow, conn.rcv_nxt, conn.snd_max)
    while conn.message_head != NOTHING:
        forget_oldest(sim, conn)
    conn.incarnation += 1
    set_initial_values(conn)
    for place in range(len(sim.scoreboard[flow])):
        sim.out_of_order[flow][place] = 0
        sim.scoreboard[flow][place] = 0
        sim.sent_at[flow][place] = 0
    sim.starts[flow][0] = 0
    for timer in (conn.retransmission_timer, conn.ack_timer):
        if timer != NOTHING:
            cancel(sim, timer)


@outlined
def set_initial_values(conn):
    """Set the variables of a connection to their values at the start; its options stay as they are."""
    # application
    conn.written = conn.listed = conn.unlisted = 0
    conn.message_head = conn.message_tail = conn.message_undelivered = NOTHING
    # handshake (RFC 9293, section 3.5)
    conn.open = not conn.handshake
    conn.opening = conn.connecting_since = NOTHING
    conn.syn_timeout = conn.initial_rto
    # sender (RFC 5681, section 3.1)
    conn.snd_una = conn.snd_nxt = conn.snd_max = conn.duplicate_acks = conn.partial_acks = 0
    conn.last_short = conn.recover = NOTHING
    conn.cwnd = conn.initial_window
    conn.ssthresh = conn.initial_ssthresh
    conn.window_count = 0.0
    conn.in_recovery = conn.retransmit = False
    # selective acknowledgements (RFC 6675) and proportional rate reduction (RFC 6937)
    conn.high_sacked = conn.high_rxt = conn.rescue_rxt = NOTHING
    conn.pipe = conn.recover_fs = conn.prr_delivered = conn.prr_out = 0.0
    # RACK (RFC 8985)
    conn.rack_sent = conn.rack_number = conn.high_lost = conn.probe_end = NOTHING
    conn.rack_rtt = conn.expiries = conn.use_end = 0
    conn.rack_advanced = conn.reordered = conn.awaits_order = conn.original_arrived = False
    conn.probe_again = conn.frto_runs = conn.new_first = conn.awaits_probe = conn.forced = False
    conn.was_limited = False
    conn.state = OPEN
    conn.prior_ssthresh = conn.most_out = 0.0
    # CUBIC (RFC 9438)
    conn.cubic_max = conn.cubic_prior = conn.cubic_estimate = conn.cubic_k = conn.cubic_acked = 0.0
    conn.cubic_wait = conn.cubic_seen = 0.0
    conn.cubic_epoch = NOTHING
    conn.slow_start_left = False
    conn.cubic_seen_at = conn.train_until = 0
    # Vegas
    conn.base_rtt = conn.round_rtt = conn.round_samples = conn.round_end = conn.round_started_at = 0
    conn.round_first = 0
    conn.double_this_round = False
    conn.vegas_excess = 0.0
    # retransmission timer (RFC 6298, section 2.1)
    conn.measured = False
    conn.variation = conn.variation_most = conn.srtt = conn.rttvar = 0.0
    conn.variation_end = 0
    conn.rto = conn.initial_rto
    conn.rto_deadline = conn.least_rtt = NEVER
    buffers.start(conn)
    # receiver
    conn.rcv_nxt = conn.ts_recent = conn.last_ack_sent = conn.held = 0
    for place in range(len(conn.recent_blocks)):
        conn.recent_blocks[place] = NOTHING
    conn.unacknowledged = 0.0
    conn.quick_left = conn.quick_acks
    conn.ack_wait = conn.ack_delay
    conn.in_order_at = conn.receiver_rtt = conn.answered_at = NOTHING
    conn.ack_now = False
