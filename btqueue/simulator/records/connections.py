"""Records of the flows: the two ends of a connection, its application, and what is counted of it."""

import numpy as np

from btqueue.simulator.records.conventions import record_type

TCP, CENTAURUS, NO_TRANSPORT = 0, 1, 2
TAHOE, RENO, NEWRENO, SACK, VEGAS, CUBIC = range(6)
POISSON, IBP, GREEDY, PERIODIC, FROM_FILE, REQUESTER, RESPONDER = range(7)
PER_ACK, PER_RTT = 0, 1
"""When Vegas adjusts its window: a little at every ACK, or by a segment once in a round trip."""

NO_NAGLE, NAGLE_OF_RFC_1122, MINSHALL = range(3)
"""Unacknowledged data that hold back a segment that is not full: none, all, or what is in others like it."""

HALF_FLIGHT, HALF_WINDOW, HALF_PIPE, ONE_LESS = range(4)
"""What ssthresh becomes at a loss: half of the data in flight (RFC 5681), half of cwnd (Linux), half of what
is estimated to be in the network (ns-3's NewReno), or cwnd less one segment (ns-3's Vegas). CUBIC keeps more
than half."""

# Bits of a segment's entry in the sender's scoreboard (RFC 6675); of RACK: it counts as lost, and it was sent
# again since.
SACKED, RETRANSMITTED, LOST, RESENT = 1, 2, 4, 8
ENDS, PUSHED = 16, 32
"""With tuned buffers: a piece of the send buffer ends with this segment; it bears PSH."""

OPEN, DISORDER, REDUCING, RECOVERY, LOSS = range(5)
"""States of Linux's sender: nothing is missing, something is, the window shrinks without a recovery, a
recovery, what a timeout found outstanding is sent again."""

connection_dtype = record_type(
    [
        ("source", np.int64),
        ("destination", np.int64),
        ("reverse", np.int64),
        ("route", np.int64),
        ("back_route", np.int64),
        ("pattern", np.int64),
        ("pattern_length", np.int64),
        ("control_layout", np.int64),
        ("stream", np.int64),
        ("arrival_timer", np.int64),
        ("retransmission_timer", np.int64),
        ("ack_timer", np.int64),
        ("protocol", np.int64),
        # application
        ("application", np.int64),
        ("start_at", np.int64),
        ("aligned_phase", np.bool_),
        ("mean_gap", np.float64),
        ("leave_active", np.float64),
        ("leave_idle", np.float64),
        ("schedule", np.int64),
        ("schedule_length", np.int64),
        ("schedule_next", np.int64),
        ("file_period", np.int64),
        ("message_size", np.int64),
        ("send_buffer", np.int64),
        ("written", np.int64),
        ("message_head", np.int64),
        ("message_tail", np.int64),
        ("message_undelivered", np.int64),
        ("listed", np.int64),
        ("unlisted", np.int64),
        ("session", np.int64),
        ("incarnation", np.int64),
        # sender (RFC 5681, RFC 6582)
        ("unit", np.int64),
        ("nagle", np.int64),
        ("last_short", np.int64),
        ("variant", np.int64),
        ("open", np.bool_),
        ("handshake", np.bool_),
        ("opening", np.int64),
        ("connecting_since", np.int64),
        ("syn_timeout", np.int64),
        ("snd_una", np.int64),
        ("snd_nxt", np.int64),
        ("snd_max", np.int64),
        ("cwnd", np.float64),
        ("ssthresh", np.float64),
        ("rwnd", np.int64),
        ("initial_window", np.float64),
        ("initial_ssthresh", np.float64),
        ("duplicate_acks", np.int64),
        ("in_recovery", np.bool_),
        ("recover", np.int64),
        ("retransmit", np.bool_),
        ("limited_transmit", np.bool_),
        ("window_limited_growth", np.bool_),
        ("hold_ssthresh", np.bool_),
        ("reduction", np.int64),
        ("byte_counting", np.bool_),
        ("window_count", np.float64),
        ("exit_grows", np.bool_),
        ("timeout_exit_holds", np.bool_),
        ("inflate_by_one", np.bool_),
        # selective acknowledgements (RFC 2018, RFC 6675) and proportional rate reduction (RFC 6937)
        ("sack", np.bool_),
        ("sack_blocks", np.int64),
        ("only_lost", np.bool_),
        ("forward_ack", np.bool_),
        ("high_sacked", np.int64),
        ("high_rxt", np.int64),
        ("rescue_rxt", np.int64),
        ("pipe", np.float64),
        ("rate_reduction", np.bool_),
        ("recover_fs", np.float64),
        ("prr_delivered", np.float64),
        ("prr_out", np.float64),
        # RACK (RFC 8985)
        ("rack", np.bool_),
        ("rack_sent", np.int64),
        ("rack_number", np.int64),
        ("rack_rtt", np.int64),
        ("rack_advanced", np.bool_),
        ("reordered", np.bool_),
        ("high_lost", np.int64),
        ("awaits_order", np.bool_),
        ("state", np.int64),
        ("original_arrived", np.bool_),
        ("prior_ssthresh", np.float64),
        ("frto", np.bool_),
        ("frto_runs", np.bool_),
        ("new_first", np.bool_),
        ("loss_probes", np.bool_),
        ("awaits_probe", np.bool_),
        ("forced", np.bool_),
        ("probe_again", np.bool_),
        ("probe_end", np.int64),
        ("expiries", np.int64),
        ("was_limited", np.bool_),
        ("most_out", np.float64),
        ("use_end", np.int64),
        # CUBIC (RFC 9438)
        ("cubic_max", np.float64),
        ("cubic_prior", np.float64),
        ("cubic_estimate", np.float64),
        ("cubic_k", np.float64),
        ("cubic_epoch", np.int64),
        ("hystart", np.bool_),
        ("cubic_acked", np.float64),
        ("cubic_wait", np.float64),
        ("cubic_seen", np.float64),
        ("cubic_seen_at", np.int64),
        ("slow_start_left", np.bool_),
        ("train_until", np.int64),
        # Vegas
        ("alpha", np.float64),
        ("beta", np.float64),
        ("gamma", np.float64),
        ("adjustment", np.int64),
        ("base_rtt", np.int64),
        ("round_rtt", np.int64),
        ("round_samples", np.int64),
        ("round_end", np.int64),
        ("round_started_at", np.int64),
        ("round_first", np.int64),
        ("double_this_round", np.bool_),
        ("vegas_excess", np.float64),
        ("vegas_on_srtt", np.bool_),
        # retransmission timer (RFC 6298)
        ("timestamps", np.bool_),
        ("measured", np.bool_),
        ("srtt", np.float64),
        ("rttvar", np.float64),
        ("rto", np.int64),
        ("initial_rto", np.int64),
        ("min_rto", np.int64),
        ("max_rto", np.int64),
        ("granularity", np.int64),
        ("backoff", np.bool_),
        ("ack_ends_backoff", np.bool_),
        ("impatient", np.bool_),
        ("partial_acks", np.int64),
        ("rto_deadline", np.int64),
        ("least_rtt", np.int64),
        ("tick", np.int64),
        ("largest_variation", np.bool_),
        ("variation", np.float64),
        ("variation_most", np.float64),
        ("variation_end", np.int64),
        # buffers as Linux tunes them
        ("tuned_buffers", np.bool_),
        ("mss", np.int64),
        ("packet_cost", np.int64),
        ("accepted", np.int64),
        ("tail_start", np.int64),
        ("pieces", np.int64),
        ("piece_length", np.int64),
        ("writing", np.bool_),
        ("pushed", np.int64),
        ("send_space", np.int64),
        ("heard", np.int64),
        ("receive_space", np.int64),
        ("receive_threshold", np.int64),
        ("receive_edge", np.int64),
        ("send_edge", np.int64),
        ("most_window", np.int64),
        ("last_window", np.int64),
        ("charged", np.int64),
        ("cut", np.int64),
        ("receive_last", np.int64),
        ("drained", np.int64),
        ("drained_from", np.int64),
        ("drained_since", np.int64),
        ("drain_rtt", np.float64),
        ("drain_echo", np.int64),
        # receiver
        ("rcv_nxt", np.int64),
        ("ts_recent", np.int64),
        ("last_ack_sent", np.int64),
        ("held", np.int64),
        ("recent_blocks", np.int64, (4,)),
        ("delayed_ack", np.bool_),
        ("ack_every", np.int64),
        ("ack_delay", np.int64),
        ("ack_tick", np.bool_),
        ("tick_phase", np.int64),
        ("quick_acks", np.int64),
        ("quick_left", np.int64),
        ("piggyback", np.bool_),
        ("unacknowledged", np.float64),
        ("ack_now", np.bool_),
        ("ack_direct", np.bool_),
    ]
)
"""One direction of data. A two-way connection is two flows, each the `reverse` of the other. Segments are
counted from 0; windows are in full segments. `unit`: bytes of a full segment, or 1 where the stream is
counted in segments; `written`, `message_size` and `send_buffer` count the same. `held`: segments kept out of
order. `session`: index of the CentaurusComm or request-reply session, or NOTHING; `open`: whether this
direction may send data; until then a `handshake` opens it (`connection_setup`): `opening` is the kind of the
segment that waits to be sent, or NOTHING, `connecting_since` when it began, `syn_timeout` how long the answer
is waited for. `incarnation`: how often the connection has been opened anew;
segments of another incarnation are ignored. `listed`: messages that have
a record, `unlisted`: younger ones that have none (`backlog_dtype`). `aligned_phase`: a periodic source
without a phase of its own. `cubic_max`: W_max, `cubic_estimate`: W_est of RFC 9438; `cubic_epoch`: when the
epoch began (ns), or NOTHING."""

backlog_dtype = record_type(
    [
        ("due", np.int64),
        ("mean_gap", np.float64),
        ("leave_active", np.float64),
        ("leave_idle", np.float64),
        ("schedule_next", np.int64),
        ("s0", np.uint64),
        ("s1", np.uint64),
        ("s2", np.uint64),
        ("s3", np.uint64),
    ]
)
"""A flow's source as it was when it wrote the oldest message without a record, at `due`, and its stream."""

# Phases of a request-reply-goodbye session, as its client sees it.
PAUSING, REQUEST, REPLY, GOODBYE = range(4)

# What a session's timer may be waiting for: places in `deadlines`; each end has its own watchdog and worker.
NEXT_SESSION, APPLICATION_TIMEOUT, NEXT_POLL, WATCHDOG, WORKER = 0, 1, 2, 3, 5
DEADLINES = 7
"""Number of these places."""

# Messages between the two ends of CentaurusComm (`message` of a CONTROL segment).
POLL, OBJ, PROCEED, REJ, NOPE, DONE, OBJECT_ACK = range(7)

session_dtype = record_type(
    [
        ("requester", np.int64),
        ("responder", np.int64),
        ("timer", np.int64),
        ("deadlines", np.int64, (DEADLINES,)),
        # request, reply, good-bye
        ("request_segments", np.int64),
        ("reply_segments", np.int64),
        ("goodbye_segments", np.int64),
        ("pause", np.int64),
        ("application_timeout", np.int64),
        ("phase", np.int64),
        ("exchange", np.int64),
        ("started_at", np.int64),
        ("expected", np.int64),
        # connection set-up (TCP)
        ("per_session_connection", np.bool_),
        # CentaurusComm: options
        ("polled", np.bool_),
        ("poll_interval", np.int64),
        ("watchdog", np.int64),
        ("early_data", np.bool_),
        ("worker_period", np.int64),
        # CentaurusComm: what each end knows; 0 the client, 1 the server
        ("state", np.int64, (2,)),
        ("number", np.int64, (2,)),
        ("in_session", np.int64, (2,)),
        ("busy", np.int64, (2,)),
        # as the source of a message
        ("outgoing", np.int64, (2,)),
        ("written_at", np.int64, (2,)),
        ("offered", np.int64, (2,)),
        ("bitmap_of", np.int64, (2,)),
        ("next_packet", np.int64, (2,)),
        ("done_sent", np.int64, (2,)),
        # as the destination of a message
        ("incoming", np.int64, (2,)),
        ("collecting", np.int64, (2,)),
        ("received", np.int64, (2,)),
        ("done_received", np.int64, (2,)),
        ("accepted", np.int64, (2,)),
    ]
)
"""A request-reply-goodbye exchange between two ends, repeated with `pause` (ns) between, over TCP or
CentaurusComm. Messages are counted in segments, or over TCP in bytes where the stream of their flow is;
`goodbye_segments` is 0 without a good-bye.
`application_timeout`: ns in which the reply must have come, or 0. `exchange` counts the exchanges begun;
`expected`: length of the stream at which the message under way is whole (TCP). With `per_session_connection`
every exchange has a connection of its own.

An end of CentaurusComm takes part in the session `number` while `in_session`, and is `busy` while that
session cannot be left: the watchdog then runs. `outgoing`: its object (message) not yet acknowledged, or
NOTHING; `offered`: whether it has had its turn in this session; `bitmap_of`: the object that the sender's
bitmap describes. `incoming`: the object announced last; `collecting`: the object that the receiver's
bitmap describes, of which it has `received` packets; `accepted`: the newest object that it has whole.
`done_sent`, `done_received`: DONE messages of this session."""

flow_statistics_dtype = record_type(
    [
        # application
        ("messages", np.int64),
        ("messages_refused", np.int64),
        ("messages_delivered", np.int64),
        ("delay_sum", np.float64),
        ("delay_squares", np.float64),
        ("messages_acknowledged", np.int64),
        ("acknowledged_delay_sum", np.float64),
        ("acknowledged_delay_squares", np.float64),
        ("bytes_delivered", np.int64),
        ("sessions", np.int64),
        ("session_time_sum", np.float64),
        ("session_time_squares", np.float64),
        ("sessions_lost", np.int64),
        ("connects", np.int64),
        ("connect_time_sum", np.float64),
        # transport
        ("segments_sent", np.int64),
        ("bytes_sent", np.int64),
        ("segments_retransmitted", np.int64),
        ("segments_finished", np.int64),
        ("segments_damaged", np.int64),
        ("duplicates_received", np.int64),
        ("delivered_in_order", np.int64),
        ("timeouts", np.int64),
        ("fast_retransmits", np.int64),
        ("loss_probes", np.int64),
        ("duplicate_acks_received", np.int64),
        ("acks_sent", np.int64),
        ("acks_piggybacked", np.int64),
        ("window_samples", np.int64),
        ("cwnd_sum", np.float64),
        ("window_sum", np.float64),
        ("rtt_samples", np.int64),
        ("rtt_sum", np.float64),
        ("rtt_squares", np.float64),
        ("rtt_least", np.int64),
        ("rtt_most", np.int64),
        # packets, of data and of acknowledgements
        ("packets_sent", np.int64),
        ("packets_delivered", np.int64),
        ("packets_corrupted", np.int64),
        ("transmissions", np.int64),
        ("offered_to_token_buffer", np.int64),
        ("refused_at_token_buffer", np.int64),
        ("offered_to_baseband", np.int64),
        ("refused_at_baseband", np.int64),
        ("refused_at_node", np.int64),
        ("refused_on_the_way", np.int64),
        ("given_up", np.int64),
        ("lost_outside", np.int64),
        ("inside_at_start", np.int64),
        ("finished_before", np.int64),
    ]
)
"""Packets are those of the flow's data and of its acknowledgements, counted anew on each hop where segments
are relayed whole. `refused_at_node`: no room below IP; `refused_on_the_way`: full queue of a relay or of an
outside link; `given_up`: by ARQ; `lost_outside`: lost by an outside link. `finished_before`: segments that
had finished when the statistics began."""
