"""A row of the ns-3 results as a scenario: the same set-up, by public keys only."""

import numpy as np
from thesis import over_wires

import btqueue as bt

DURATION_S = 1000
USER_BYTES = 1460
UNLIMITED_WINDOW = 4_194_304 // USER_BYTES

NS3 = {
    **{"windows": "segments", "handshake": True, "initial_window_segments": 2},
    **{"initial_ssthresh_segments": 1_000_000, "initial_rto_s": 1.0, "max_rto_s": 60.0},
    **{"clock_granularity_s": 0.001, "timestamps": False, "sack_blocks": 4, "retransmit_only_lost": True},
    **{"ack_ends_backoff": True, "impatient_timer": True, "recovery_exit_grows": True},
    **{"timeout_exit_holds": True, "inflate_by_one": True},
}
OF_VARIANT = {
    "NewReno": {"variant": "newreno", "ssthresh_rule": "pipe"},
    "LinuxReno": {
        "variant": "newreno",
        "ssthresh_rule": "window",
        "byte_counting": True,
        "window_limited_growth": True,
    },
    "Vegas": {
        **{"variant": "vegas", "vegas_adjustment": "per-rtt", "alpha": 2.0, "beta": 4.0, "gamma": 1.0},
        **{"vegas_on_srtt": True, "ssthresh_rule": "one-less"},
    },
}


def scenario_of(row: dict, replications: int) -> bt.Scenario:
    """Return the scenario of a row."""
    wire = {"name": "wire", "from": "a", "to": "b", "rate_kbps": row["rate"] / 1000, "header_bytes": 2}
    wire |= {"delay_s": row["delay_ms"] / 1000, "buffer_packets": row["queue"]}
    wire |= {"loss": float(row["per"]), "loss_back": 0.0}
    keys = {"sack": "sack", "rate_reduction": "prr", "limited_transmit": "lt"}
    options = {key: bool(row[column]) for key, column in keys.items()}
    window = {"receive_window_segments": row["rwnd"] or UNLIMITED_WINDOW}
    return bt.Scenario.from_dict(
        {
            "network": over_wires(wire),
            "traffic": {"source": "greedy"},
            "transport": {"preset": "thesis"} | NS3 | OF_VARIANT[row["variant"]] | options | window,
            "run": {"duration_s": DURATION_S, "warmup_s": 0, "replications": replications},
        }
    )


def runs_of(row: dict, replications: int) -> list[dict[str, float]]:
    """Return goodput (bit/s) and retransmissions of each run of a row."""
    found = bt.simulate(scenario_of(row, replications))
    goodput = np.ravel(found.goodput_kbps.values) * 1000
    again = np.ravel(found.retransmissions_per_s.values) * DURATION_S
    return [
        {"goodput_bps": float(bits), "retransmissions": float(number)}
        for bits, number in zip(goodput, again, strict=True)
    ]
