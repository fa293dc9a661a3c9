"""Suliman et al. (2005): the claims that can be checked, one function each."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from btqueue.baseband import PACKET_TYPES
from btqueue.reproduction.claims.engines import Answer, Engine
from btqueue.reproduction.claims.judgement import (
    WORDS,
    Finding,
    about,
    bound,
    exceeds,
    lead,
    rising,
    rounded,
    trend,
)
from btqueue.reproduction.claims.record import Comparison
from btqueue.reproduction.figures.runs import events
from btqueue.scenario import Scenario, load
from btqueue.simulator.statistics.measurement import jain_index
from btqueue.simulator.statistics.series import time_series

PAPER = "suliman-2005"
WINDOWS_KB = (2, 4, 8, 16, 32, 64)
PACKETS = (256, 512, 1024, 1500)
TCP_IP_BYTES = 40
OVERSHOOT_FREE = 17
"""Slow-start threshold (segments) that the first recovery leaves: half of the gateway's buffer."""


def scenario(name: str, **changes: Any) -> Scenario:
    """Return a scenario with changes."""
    return load(f"{PAPER}/{name}").with_(**changes)


def simulated(engine: Engine, name: str, **changes: Any) -> Answer:
    """Answer a scenario by its name."""
    return engine(scenario(name, **changes))


def with_peripherals(count: int) -> Scenario:
    """Return the piconet with one receiving and `count` - 1 idle peripherals."""
    piconet = {
        "name": "bluetooth",
        "central": "gateway",
        "peripherals": [f"s{i}" for i in range(1, count + 1)],
    }
    return scenario("one-of-seven", network__piconet_list=[piconet])


def wlan_with_loss(loss: float) -> Scenario:
    """Return the single transfer over a WLAN that loses packets."""
    link = scenario("round-trips").network.outside_links[0]
    lossy = {"name": "wlan", "from": "host", "to": "gateway", "kind": "wlan"}
    return scenario("round-trips", network__outside_links=[lossy | {"delay_s": link.delay_s, "loss": loss}])


# Sections III.A and III.B: throughput against window, packet size and idle peripherals.


def at_window(engine: Engine, window_kb: int, packet: int, metric: str = "goodput_kbps") -> np.ndarray:
    """Return the goodput, or another metric, with a window (KB) and a packet size (bytes)."""
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
    return result.mean_over_flows(metric)


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
    others = max(mean for place, mean in means.items() if place != (64, 1500))
    return Finding(
        others < (1 - WORDS["best"].limit) * means[64, 1500],
        f"{best[0]} KB and {best[1]} byte; 64 KB and 1500 byte reach {100 * share:.0f} % of it",
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


# Section III.C: round-trip times of a single transfer, and its needless retransmissions.


def rtt(result: Answer, metric: str) -> np.ndarray:
    """Return a metric of the round-trip time in ms."""
    return 1000 * result.mean_over_flows(metric)


def rtt_range(engine: Engine) -> Comparison:
    """Round-trip times range from 37 to 680 ms."""
    low, high = (rtt(simulated(engine, "round-trips"), f"rtt_{end}_s") for end in ("min", "max"))
    parts = {"least": about(low, 37.0).holds, "most": about(high, 680.0).holds}
    return Comparison(f"{rounded(low)} to {rounded(high)} ms", parts)


def rtt_mean(engine: Engine) -> Finding:
    """The mean round trip is 277.7 ms."""
    mean = rtt(simulated(engine, "round-trips"), "rtt_s")
    lossy = rtt(engine(wlan_with_loss(0.005)), "rtt_s")
    return Finding(
        about(mean, 277.7).holds,
        f"{rounded(mean)} ms; {rounded(lossy)} with 0.5 % loss on the WLAN",
    )


def rtt_deviation(engine: Engine) -> Finding:
    """Its standard deviation is 138.6 ms."""
    result, lossy = simulated(engine, "round-trips"), engine(wlan_with_loss(0.005))
    mean, deviation = rtt(result, "rtt_s"), rtt(result, "rtt_sd_s")
    met = about(deviation, 138.6).holds and about(deviation / mean, 0.5).holds
    return Finding(
        met,
        f"{rounded(deviation)} ms, {(deviation / mean).mean():.2f} of the mean; "
        f"{rounded(rtt(lossy, 'rtt_sd_s'))} with 0.5 % loss on the WLAN",
    )


def rtt_median(engine: Engine) -> Comparison:
    """Half of the round trips take less than 210 ms, clearly less than their mean."""
    (median, mean), (lossy, lossy_mean) = (
        [rtt(result, f"rtt_{name}s") for name in ("p50_", "")]
        for result in (simulated(engine, "round-trips"), engine(wlan_with_loss(0.005)))
    )
    return Comparison(
        f"{rounded(median)} ms, mean {rounded(mean)}; "
        f"{rounded(lossy)}, mean {rounded(lossy_mean)}, with 0.5 % loss on the WLAN",
        {"210 ms": about(median, 210.0).holds, "clearly below the mean": lead(mean, median, "significantly")},
    )


def short_round_trips(engine: Engine) -> Finding:
    """Fewer than 1 % of the round trips take less than 100 ms."""
    engine.only_simulated("round trip of each segment")
    usual, lossy = (
        np.array([float(np.mean(rtt_samples(single, number)[1] < 0.1)) for number in range(5)])
        for single in (scenario("round-trips"), wlan_with_loss(0.005))
    )
    return Finding(
        bound(usual, upper=0.01).holds, f"{rounded(usual)}; {rounded(lossy)} with 0.5 % loss on the WLAN"
    )


def spread_against_window(engine: Engine) -> Finding:
    """Round-trip times vary the more, the larger the window."""
    spreads = np.array([1000 * at_window(engine, window, 1500, "rtt_sd_s") for window in WINDOWS_KB])
    return Finding(trend(spreads, np.log2(WINDOWS_KB), rising=True).holds, f"{rounded(*spreads)} ms")


def rtt_samples(single: Scenario, replication: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return when segments that were sent once left, and the time until they were acknowledged (s)."""
    log = events(single, replication, only=("segment sent", "segment received")).of(node="host")
    sent: dict[int, list[float]] = {}
    samples, acknowledged = [], 0
    for time_s, event, segment, asked in zip(
        log.time_s, log.event, log.segment, log.acknowledged, strict=True
    ):
        if event == "segment sent":
            sent.setdefault(segment, []).append(time_s)
        elif asked > acknowledged:
            acknowledged = asked
            if len(sent[acknowledged - 1]) == 1:
                (left,) = sent[acknowledged - 1]
                samples.append((left, time_s - left))
    left, times = np.array(samples).T
    return left, times


def rtt_against_queue(engine: Engine) -> Finding:
    """The queue before the Bluetooth hop makes the round trip."""
    engine.only_simulated("round trip of each segment")
    left, times = rtt_samples(scenario("round-trips"))
    series = time_series(scenario("round-trips"), step_s=0.01)
    queue = series.queue_packets.sel(queue="gateway>s1 downlink")
    at_arrival = queue.sel(time=left + 0.005, method="nearest")
    correlation = float(np.corrcoef(times, at_arrival.values)[0, 1])
    return Finding(correlation > 0.8, f"correlation {correlation:.3f} over {len(times)} samples")


def unnecessary(result: Answer, scenario_: Scenario) -> float:
    """Return retransmissions per second beyond the segments lost."""
    bits = scenario_.transport.mss_bytes * 8 / 1000
    lost = result["segment_loss"] * result["throughput_kbps"] / bits
    return float((result["retransmissions_per_s"] - lost).sum("flow").mean())


def spurious_retransmissions(engine: Engine) -> Finding:
    """Long round trips cause segments to be sent again that were not lost."""
    single, seven = simulated(engine, "round-trips"), simulated(engine, "connections")
    rates = [unnecessary(r, scenario("round-trips")) for r in (single, seven)]
    timeouts = float(single["timeouts_per_s"].sum())
    sent_again = [
        float(single["retransmissions_per_s"].mean()),
        float(seven["retransmissions_per_s"].sum("flow").mean()),
    ]
    return Finding(
        rates[0] > 0.1 and timeouts > 0,
        f"{max(0.0, rates[0]):.2f} /s of {sent_again[0]:.2f} /s, no timeout; "
        f"seven connections {rates[1]:.2f} of {sent_again[1]:.2f} /s",
    )


# Section III.D: how losses are repaired and the window moves.


def fast_retransmit(engine: Engine) -> Finding:
    """Losses are repaired by fast retransmit before the timer expires."""
    result = simulated(engine, "round-trips")
    fast, timeouts = (
        result.mean_over_flows("fast_retransmits_per_s"),
        result.mean_over_flows("timeouts_per_s"),
    )
    return Finding(
        bool(fast.min() > 0 and timeouts.max() == 0), f"{rounded(fast)} /s, timeouts {timeouts.max():g} /s"
    )


def largest_windows(engine: Engine, **changes: Any) -> tuple[int, float]:
    """Return the most segments outstanding and the largest cwnd (segments) of a transfer."""
    engine.only_simulated("course of the window")
    series = time_series(scenario("round-trips", **changes), step_s=0.01)
    return int(series.outstanding_segments.max()), float(series.cwnd_segments.max())


def window_never_full(engine: Engine) -> Finding:
    """The outstanding data never reach 64 KB."""
    outstanding, cwnd = largest_windows(engine)
    _, cwnd_later = largest_windows(engine, transport__initial_ssthresh_segments=OVERSHOOT_FREE)
    return Finding(
        outstanding < math.floor(65536 / 1460),
        f"{outstanding} of 44 segments outstanding while the loss is repaired; cwnd at most {cwnd:.0f}, and "
        f"{cwnd_later:.0f} without the overshoot of the first slow start",
    )


def window_drops(engine: Engine, variant: str) -> tuple[int, float]:
    """Return how often cwnd falls, and the least value it falls to after the first second."""
    engine.only_simulated("course of the window")
    series = time_series(scenario("round-trips", transport__variant=variant), step_s=0.01)
    window = series.cwnd_segments.values.ravel()[100:]
    return int(np.sum(np.diff(window) < -2)), float(window.min())


def sawtooth(engine: Engine) -> Finding:
    """The window grows slowly and falls at duplicate ACKs, to one MSS."""
    falls, least = window_drops(engine, "sack")
    _, tahoe = window_drops(engine, "tahoe")
    return Finding(falls >= 2, f"{falls} falls in 30 s, to {least:g} segments; Tahoe falls to {tahoe:g}")


# Section III.E: how connections share the piconet.


def connections(engine: Engine, count: int, **changes: Any) -> Answer:
    """Answer for a number of simultaneous connections."""
    return simulated(engine, "connections", network__active_flows=count, **changes)


def share_against_connections(engine: Engine) -> Finding:
    """Each peripheral receives less as connections are added."""
    shares = [connections(engine, k).mean_over_flows("goodput_kbps") for k in range(1, 8)]
    return Finding(rising(shares[::-1]), f"{rounded(*shares)} kbit/s")


def all_together(engine: Engine) -> Finding:
    """All connections together carry more as connections are added."""
    counts = np.arange(1, 8)
    sums = np.array([connections(engine, k)["goodput_kbps"].sum("flow").values for k in counts.tolist()])
    return Finding(trend(sums, counts, rising=True).holds, f"{rounded(*sums)} kbit/s")


def fairness(engine: Engine, count: int, **changes: Any) -> np.ndarray:
    """Return Jain's index of the goodputs of a number of connections."""
    return connections(engine, count, run__replications=20, **changes).mean_over_flows("fairness")


def fairness_against_packet(engine: Engine) -> Finding:
    """The packet size hardly influences the fairness of seven connections: by at most 0.03."""
    sizes = [
        {"transport__mss_bytes": mss, "transport__receive_window_segments": 64 * 1024 // mss}
        for mss in (packet - TCP_IP_BYTES for packet in PACKETS)
    ]
    indices = [fairness(engine, 7, **size) for size in sizes]
    spread = float(np.ptp([one.mean() for one in indices]))
    return Finding(spread <= 0.03, f"{rounded(*indices, digits=4)} with packets of {PACKETS} byte")


def fairness_of_two(engine: Engine) -> Finding:
    """Two connections share equally."""
    return Finding(abs(fairness(engine, 2).mean() - 0.997) <= 0.015, rounded(fairness(engine, 2), digits=4))


def fairness_of_many(engine: Engine) -> Finding:
    """Many connections share less equally."""
    return Finding(abs(fairness(engine, 7).mean() - 0.875) <= 0.08, rounded(fairness(engine, 7), digits=4))


def fairness_against_connections(engine: Engine) -> Finding:
    """Sharing becomes less fair with more connections."""
    return Finding(
        exceeds(fairness(engine, 2), fairness(engine, 7)),
        rounded(*(fairness(engine, k) for k in (2, 4, 7)), digits=4),
    )


def jain_of_a_tenth(_engine: Engine) -> Finding:
    """An index of 0.10 leaves out 90 % of the users."""
    index = float(jain_index(np.array([1.0] + [0.0] * 9)))
    return Finding(index == 0.1, f"{index:g}")


CHECKS = {
    "III.A-throughput-vs-window": throughput_against_window,
    "III.A-throughput-vs-packet": throughput_against_packet,
    "III.A-best": best_window_and_packet,
    "III.A-bdp": bandwidth_delay_product,
    "III.B-throughput-vs-slaves": throughput_against_peripherals,
    "III.B-slots-independent-of-activity": equal_polls,
    "III.B-adaptive-better": adaptive_polling,
    "III.C-rtt-range": rtt_range,
    "III.C-rtt-mean": rtt_mean,
    "III.C-rtt-below-100": short_round_trips,
    "III.C-rtt-median": rtt_median,
    "0-rtt-spread-vs-window": spread_against_window,
    "III.E-aggregate-vs-connections": all_together,
    "III.E-fairness-vs-packet": fairness_against_packet,
    "III.C-rtt-sd": rtt_deviation,
    "III.C-rtt-grows-with-queue": rtt_against_queue,
    "III.C-spurious-rto": spurious_retransmissions,
    "III.D-fast-retransmit": fast_retransmit,
    "III.D-window-never-full": window_never_full,
    "III.D-cwnd-sawtooth": sawtooth,
    "III.E-per-slave-vs-connections": share_against_connections,
    "III.E-fairness-2": fairness_of_two,
    "III.E-fairness-many": fairness_of_many,
    "III.E-fairness-vs-connections": fairness_against_connections,
    "III.E-jain-reading": jain_of_a_tenth,
}
