"""Sections III.A and III.B: throughput against window, packet size and idle peripherals."""

from __future__ import annotations

import itertools

import numpy as np

from btqueue.baseband import PACKET_TYPES
from btqueue.reproduction.claims.engines import Engine
from btqueue.reproduction.claims.judgement import Finding, exceeds, rising, rounded
from btqueue.reproduction.claims.suliman_2005.systems import (
    PACKETS,
    TCP_IP_BYTES,
    WINDOWS_KB,
    simulated,
    with_peripherals,
)


def at_window(engine: Engine, window_kb: int, packet: int) -> np.ndarray:
    """Return the goodput with a window (KB) and a packet size (bytes)."""
    mss = packet - TCP_IP_BYTES
    window = window_kb * 1024 // mss
    result = simulated(
        engine,
        "one-of-seven",
        transport__mss_bytes=mss,
        traffic__message_bytes=mss,
        transport__receive_window_segments=window,
        transport__initial_window_segments=min(2, window),
    )
    return result.mean_over_flows("goodput_kbps")


def throughput_against_window(engine: Engine) -> Finding:
    """Throughput grows with the window and is poor for a small one."""
    rows = {packet: [at_window(engine, window, packet) for window in WINDOWS_KB] for packet in PACKETS}
    met = all(not exceeds(a, b) for row in rows.values() for a, b in itertools.pairwise(row))
    return Finding(
        met and exceeds(rows[1500][-1], rows[1500][0]), f"1500 byte: {rounded(*rows[1500])} kbit/s"
    )


def throughput_against_packet(engine: Engine) -> Finding:
    """Larger packets give more throughput."""
    rows = [[at_window(engine, window, packet) for packet in PACKETS] for window in WINDOWS_KB[1:]]
    return Finding(all(map(rising, rows)), f"64 KB: {rounded(*rows[-1])} kbit/s")


def best_window_and_packet(engine: Engine) -> Finding:
    """64 KB and 1,500 bytes are best."""
    means = {(w, p): at_window(engine, w, p).mean() for w in WINDOWS_KB for p in PACKETS}
    best = max(means, key=lambda place: means[place])
    share = means[64, 1500] / means[best]
    return Finding(
        share == 1.0, f"{best[0]} KB and {best[1]} byte; 64 KB and 1500 byte reach {100 * share:.0f} % of it"
    )


def bandwidth_delay_product(_engine: Engine) -> Finding:
    """The useful window is bandwidth times round-trip time."""
    window = PACKET_TYPES["DH5"].asymmetric_kbps * 1000 / 8 * 0.2777
    return Finding(abs(window - 25104) < 10, f"{window:.0f} byte")


def idle_sweep(engine: Engine) -> list[np.ndarray]:
    """Return the goodput (kbit/s) with 1 to 7 peripherals, of which a single one receives."""
    return [engine(with_peripherals(n)).mean_over_flows("goodput_kbps") for n in range(1, 8)]


def throughput_against_peripherals(engine: Engine) -> Finding:
    """Idle peripherals cost the receiving one its throughput."""
    rates = idle_sweep(engine)
    ceilings = [339 * 8 / ((6 + 2 * (n - 1)) * 0.625) for n in range(1, 8)]
    below = all(rate.mean() < ceiling for rate, ceiling in zip(rates, ceilings, strict=True))
    return Finding(rising(rates[::-1]) and below, f"{rounded(*rates)} kbit/s")


def equal_polls(engine: Engine) -> Finding:
    """Every peripheral gets the same number of turns."""
    polls = simulated(engine, "one-of-seven")["polls_per_s"].mean("replication").values
    return Finding(np.ptp(polls) <= 0.01 * polls.mean(), f"{polls.min():.2f} to {polls.max():.2f} /s")


def adaptive_polling(engine: Engine) -> Finding:
    """Polling by activity would remove the penalty."""
    plain = simulated(engine, "one-of-seven").mean_over_flows("goodput_kbps")
    adaptive = simulated(engine, "one-of-seven-adaptive").mean_over_flows("goodput_kbps")
    return Finding(exceeds(adaptive, plain), f"{rounded(adaptive)} against {rounded(plain)} kbit/s")
