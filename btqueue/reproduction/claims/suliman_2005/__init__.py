"""Suliman et al. (2005): the claims that can be checked, one function each."""

from btqueue.reproduction.claims.suliman_2005 import round_trips, sharing, throughput, windows

CHECKS = {
    "III.A-throughput-vs-window": throughput.throughput_against_window,
    "III.A-throughput-vs-packet": throughput.throughput_against_packet,
    "III.A-best": throughput.best_window_and_packet,
    "III.A-bdp": throughput.bandwidth_delay_product,
    "III.B-throughput-vs-slaves": throughput.throughput_against_peripherals,
    "III.B-slots-independent-of-activity": throughput.equal_polls,
    "III.B-adaptive-better": throughput.adaptive_polling,
    "III.C-rtt-range": round_trips.rtt_range,
    "III.C-rtt-mean": round_trips.rtt_mean,
    "III.C-rtt-sd": round_trips.rtt_deviation,
    "III.C-rtt-grows-with-queue": round_trips.rtt_against_queue,
    "III.C-spurious-rto": round_trips.spurious_retransmissions,
    "III.D-fast-retransmit": windows.fast_retransmit,
    "III.D-window-never-full": windows.window_never_full,
    "III.D-cwnd-sawtooth": windows.sawtooth,
    "III.E-per-slave-vs-connections": sharing.share_against_connections,
    "III.E-fairness-2": sharing.fairness_of_two,
    "III.E-fairness-many": sharing.fairness_of_many,
    "III.E-fairness-vs-connections": sharing.fairness_against_connections,
    "III.E-jain-reading": sharing.jain_of_a_tenth,
}
