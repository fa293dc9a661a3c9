"""Records of the flows: the two ends of a connection, its application, and its counters."""

from btqueue.simulator.records.conventions import flags, integers, reals, record_type, words

# Values of keys of a scenario, and the numbers that stand for them in the same order.
PROTOCOLS = ("tcp", "centaurus", "none")
TCP, CENTAURUS, NO_TRANSPORT = range(3)
VARIANTS = ("tahoe", "reno", "newreno", "sack", "vegas", "cubic")
TAHOE, RENO, NEWRENO, SACK, VEGAS, CUBIC = range(6)
SOURCES = ("poisson", "ibp", "greedy", "periodic", "file", "request-reply")
POISSON, IBP, GREEDY, PERIODIC, FROM_FILE, REQUESTER, RESPONDER = range(7)
VEGAS_ADJUSTMENTS = ("per-ack", "per-rtt")
PER_ACK, PER_RTT = range(2)
"""When Vegas adjusts its window: a little at every ACK, or by a segment once in a round trip."""

NAGLE = (False, True, "minshall")
NO_NAGLE, NAGLE_OF_RFC_1122, MINSHALL = range(3)
"""Unacknowledged data that hold back a segment that is not full: none, all, or data of other short
segments."""

SSTHRESH_RULES = ("flight", "window", "pipe", "one-less")
HALF_FLIGHT, HALF_WINDOW, HALF_PIPE, ONE_LESS = range(4)
"""The new ssthresh at a loss: half of the data in flight (RFC 5681), half of cwnd (Linux), half of the
estimated data in the network (ns-3's NewReno), or cwnd less one segment (ns-3's Vegas). CUBIC keeps more than
half."""

# Bits of a segment's entry in the sender's scoreboard (RFC 6675); of RACK: it counts as lost, and it was sent
# again since.
SACKED, RETRANSMITTED, LOST, RESENT = 1, 2, 4, 8
ENDS, PUSHED = 16, 32
"""With tuned buffers: a piece of the send buffer ends with this segment; it bears PSH."""

ACK_CLOCKS = ("timer", "tick", "adaptive")
ON_TIMER, TICKS, ADAPTIVE = range(3)
"""When a delayed acknowledgement leaves: a fixed time after its segment, at a tick, or as Linux adapts it."""
OPEN, DISORDER, REDUCING, RECOVERY, LOSS = range(5)
"""States of Linux's sender: no segment is missing, one is, the window shrinks without a recovery, a recovery,
segments outstanding at a timeout are sent again."""

WORDS = {
    "protocol": PROTOCOLS, "variant": VARIANTS, "nagle": NAGLE, "ssthresh_rule": SSTHRESH_RULES,
    "vegas_adjustment": VEGAS_ADJUSTMENTS, "ack_clock": ACK_CLOCKS,
}  # fmt: skip
"""By key of `[transport]` its values in the order of their numbers."""

connection_dtype = record_type(
    integers("source destination reverse route back_route pattern pattern_length control_layout stream"),
    integers("arrival_timer retransmission_timer ack_timer protocol"),
    # application
    integers("application start_at schedule schedule_length schedule_next file_period message_size"),
    integers("send_buffer written message_head message_tail message_undelivered listed unlisted session"),
    integers("incarnation"),
    flags("aligned_phase"),
    reals("mean_gap leave_active leave_idle"),
    # sender (RFC 5681, RFC 6582)
    integers("unit nagle last_short variant opening connecting_since syn_timeout snd_una snd_nxt snd_max"),
    integers("rwnd duplicate_acks recover ssthresh_rule"),
    flags("open handshake in_recovery retransmit limited_transmit window_limited_growth hold_ssthresh"),
    flags("byte_counting recovery_exit_grows timeout_exit_holds inflate_by_one"),
    reals("cwnd ssthresh initial_window_segments initial_ssthresh_segments window_count"),
    # selective acknowledgements (RFC 2018, RFC 6675) and proportional rate reduction (RFC 6937)
    integers("sack_blocks high_sacked high_rxt rescue_rxt"),
    flags("sack retransmit_only_lost rate_reduction"),
    reals("pipe recover_fs prr_delivered prr_out"),
    # RACK (RFC 8985)
    integers("rack_sent rack_number rack_rtt high_lost state probe_end expiries use_end"),
    flags("rack rack_advanced reordered awaits_order original_arrived frto frto_runs new_first"),
    flags("loss_probes awaits_probe forced probe_again was_limited"),
    reals("prior_ssthresh most_out"),
    # CUBIC (RFC 9438)
    integers("cubic_epoch cubic_seen_at train_until"),
    flags("hystart slow_start_left"),
    reals("cubic_max cubic_prior cubic_estimate cubic_k cubic_acked cubic_wait cubic_seen"),
    # Vegas
    integers("vegas_adjustment base_rtt round_rtt round_samples round_end round_started_at round_first"),
    flags("double_this_round vegas_on_srtt"),
    reals("alpha beta vegas_excess"),
    # retransmission timer (RFC 6298)
    integers("rto initial_rto min_rto max_rto clock_granularity partial_acks rto_deadline least_rtt"),
    integers("timer_tick variation_end"),
    flags("timestamps measured rto_backoff ack_ends_backoff impatient_timer largest_variation"),
    reals("srtt rttvar variation variation_most"),
    # buffers as Linux tunes them
    integers("mss packet_cost accepted tail_start pieces piece_length pushed send_space heard"),
    integers("receive_space receive_threshold receive_edge send_edge most_window last_window charged cut"),
    integers("receive_last drained drained_from drained_since drain_echo spared"),
    flags("tuned_buffers writing"),
    reals("drain_rtt"),
    # receiver
    integers("rcv_nxt ts_recent last_ack_sent held ack_every_segments ack_delay ack_clock tick_phase"),
    integers("quick_acks quick_left ack_wait in_order_at answered_at receiver_rtt"),
    integers("recent_blocks", 4),
    flags("delayed_ack piggyback ack_now ack_direct"),
    reals("unacknowledged"),
)
"""One direction of data. A two-way connection is two flows, each the `reverse` of the other. Segments are
counted from 0; windows are in full segments. `unit`: bytes of a full segment, or 1 where the stream is
counted in segments; `written`, `message_size` and `send_buffer` count the same. `held`: segments kept out of
order. `session`: index of the CentaurusComm or request-reply session, or NOTHING; `open`: whether this
direction may send data; until then a `handshake` opens it (`connection_setup`): `opening` is the kind of the
segment that waits to be sent, or NOTHING, `connecting_since` the time at which it began, `syn_timeout` the
longest wait for the answer. `incarnation`: how often the connection has been opened anew; segments of another
incarnation are ignored. `listed`: messages that have a record, `unlisted`: younger ones that have none
(`backlog_dtype`). `aligned_phase`: a periodic source without an individual phase. `cubic_max`: W_max,
`cubic_estimate`: W_est of RFC 9438; `cubic_epoch`: when the epoch began (ns), or NOTHING."""

backlog_dtype = record_type(
    integers("due"),
    reals("mean_gap leave_active leave_idle"),
    integers("schedule_next"),
    words("s0 s1 s2 s3"),
)
"""A flow's source as it was when it wrote the oldest message without a record, at `due`, and its stream."""

# Phases of a request-reply-goodbye session, as its client sees it.
PAUSING, REQUEST, REPLY, GOODBYE = range(4)

# Events that a session's timer may wait for: places in `deadlines`; each end has a watchdog and a worker.
NEXT_SESSION, APPLICATION_TIMEOUT, WATCHDOG, WORKER = 0, 1, 2, 4
DEADLINES = 6
"""Number of these places."""

# Messages between the two ends of CentaurusComm (`message` of a CONTROL segment).
OBJ, PROCEED, REJ, NOPE, DONE, OBJECT_ACK = range(6)

NUMBERS_OF_OBJECTS = ("outgoing", "bitmap_of", "collecting", "accepted", "delivered")
"""Fields that begin with NOTHING."""
session_dtype = record_type(
    integers("requester responder timer"),
    integers("deadlines", DEADLINES),
    # request, reply, good-bye
    integers("request_segments reply_segments goodbye_segments pause application_timeout phase exchange"),
    integers("started_at expected"),
    # connection set-up (TCP)
    flags("per_session_connection"),
    # CentaurusComm: options
    integers("watchdog"),
    flags("early_data"),
    integers("worker_period"),
    # CentaurusComm: the state of each end; 0 the client, 1 the server
    integers("state number in_session busy", 2),
    # as the source of a message
    integers("outgoing written_at offered bitmap_of next_packet done_sent", 2),
    # as the destination of a message
    integers("incoming collecting received done_received accepted delivered", 2),
)
"""A request-reply-goodbye exchange between two ends, repeated with `pause` (ns) between, over TCP or
CentaurusComm. Messages are counted in segments, or over TCP in bytes where the stream of their flow is;
`goodbye_segments` is 0 without a good-bye.
`application_timeout`: ns in which the reply must have come, or 0. `exchange` counts the exchanges begun;
`expected`: length of the stream at which the message under way is whole (TCP). With `per_session_connection`
every exchange opens a new connection.

An end of CentaurusComm takes part in the session `number` while `in_session`, and is `busy` while that
session cannot be left: the watchdog then runs. `outgoing`: its object (message) not yet acknowledged, or
NOTHING; `offered`: whether it has had its turn in this session; `bitmap_of`: the object that the sender's
bitmap describes. `incoming`: the object announced last; `collecting`: the object that the receiver's
bitmap describes, of which it has `received` packets; `accepted`: the newest object that it has whole, or that
came too late; `delivered`: the last object that it has handed to its application. `done_sent`,
`done_received`: DONE messages of this session."""

flow_statistics_dtype = record_type(
    # application
    integers("messages messages_refused messages_delivered messages_acknowledged bytes_delivered sessions"),
    integers("sessions_lost connects"),
    reals("delay_sum delay_squares acknowledged_delay_sum acknowledged_delay_squares session_time_sum"),
    reals("session_time_squares connect_time_sum"),
    # transport
    integers("segments_sent bytes_sent bytes_wasted segments_retransmitted segments_finished"),
    integers("segments_damaged duplicates_received delivered_in_order timeouts fast_retransmits"),
    integers("loss_probes duplicate_acks_received acks_sent acks_piggybacked window_samples rtt_samples"),
    integers("rtt_least rtt_most"),
    reals("cwnd_sum window_sum rtt_sum rtt_squares"),
    # packets, of data and of acknowledgements
    integers("packets_sent packets_delivered packets_corrupted transmissions parts_passed"),
    integers("offered_to_token_buffer refused_at_token_buffer offered_to_baseband refused_at_baseband"),
    integers("refused_at_node"),
    integers("refused_on_the_way given_up sent_outside lost_outside inside_at_start finished_before"),
)
"""`bytes_wasted`: application bytes sent but not delivered: in segments sent again, in datagrams lost, in
data that were given up with their connection or message.

Packets are of the flow's data and of its acknowledgements, counted anew on each hop where segments are
relayed whole. `parts_passed`: parts of segments, but for the last ones, that have crossed an adaptive port.
`refused_at_node`: no room below IP; `refused_on_the_way`: full queue of a relay or of an
outside link; `given_up`: by ARQ; `lost_outside`: lost by an outside link, of the `sent_outside` packets that
it has transmitted. `finished_before`: segments that had finished when the statistics began."""
