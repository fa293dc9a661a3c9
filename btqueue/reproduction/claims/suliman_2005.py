"""Suliman et al. (2005): the checks that their record cannot describe, most of them on single runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from btqueue.baseband import PACKET_TYPES
from btqueue.reproduction.claims.engines import Answer, Engine
from btqueue.reproduction.claims.judgement import Finding, bound, rounded
from btqueue.reproduction.claims.record import Claim
from btqueue.reproduction.figures.runs import again, duplicate, events
from btqueue.scenario import Scenario, load
from btqueue.simulator.statistics.measurement import jain_index
from btqueue.simulator.statistics.series import time_series

OVERSHOOT_FREE = 17
"""Slow-start threshold (segments) that the first recovery leaves: half of the gateway's buffer."""


def scenario(name: str, **changes: Any) -> Scenario:
    """Return a scenario with changes."""
    return load(f"suliman-2005/{name}").with_(**changes)


def wlan_with_loss(loss: float) -> Scenario:
    """Return the single transfer over a WLAN that loses packets."""
    return scenario("round-trips").changed({"network.outside_links[1].loss": loss})


def bandwidth_delay_product(_engine: Engine, _claim: Claim) -> Finding:
    """The useful window is bandwidth times round-trip time."""
    window = PACKET_TYPES["DH5"].asymmetric_kbps * 1000 / 8 * 0.2777
    return Finding(abs(window - 25104) < 10, f"{window:.0f} byte")


def equal_polls(engine: Engine, _claim: Claim) -> Finding:
    """Every peripheral gets the same number of turns."""
    polls = engine(scenario("one-of-seven"))["polls_per_s"].mean("replication").values
    return Finding(np.ptp(polls) <= 0.01 * polls.mean(), f"{polls.min():.2f} to {polls.max():.2f} /s")


# Section III.C: round-trip times of a single transfer, and its needless retransmissions.


def short_round_trips(engine: Engine, _claim: Claim) -> Finding:
    """Fewer than 1 % of the round trips take less than 100 ms."""
    engine.only_simulated("round trip of each segment")
    usual, lossy = (
        np.array([float(np.mean(round_trips(single, number)[1] < 0.1)) for number in range(5)])
        for single in (scenario("round-trips"), wlan_with_loss(0.005))
    )
    return Finding(
        bound(usual, upper=0.01).holds, f"{rounded(usual)}; {rounded(lossy)} with 0.5 % loss on the WLAN"
    )


def round_trips(single: Scenario, replication: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return when segments left, and how long until they were acknowledged (s), shape (samples,) each.

    Only segments that were sent once are measured (Karn's rule), and only while nothing was sent again: the
    acknowledgement that fills a hole says little about the segments behind it.
    """
    log = events(single, replication, only=("segment sent", "segment received")).of(node="host")
    sent, heard = log.of("segment sent"), log.of("segment received")
    heard = heard.where(~duplicate(heard))
    numbers, first, times = np.unique(sent.segment, return_index=True, return_counts=True)
    place = np.searchsorted(heard.acknowledged, numbers, side="right")
    known = (times == 1) & (place < len(heard.time_s))
    left, back = sent.time_s[first[known]], heard.time_s[place[known]]
    repeats = sent.time_s[again(sent)]
    clean = np.searchsorted(repeats, left) == np.searchsorted(repeats, back)
    return left[clean], (back - left)[clean]


def rtt_against_queue(engine: Engine, _claim: Claim) -> Finding:
    """The queue before the Bluetooth hop makes the round trip."""
    engine.only_simulated("round trip of each segment")
    left, times = round_trips(scenario("round-trips"))
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


def spurious_retransmissions(engine: Engine, _claim: Claim) -> Finding:
    """Long round trips cause segments to be sent again that were not lost."""
    single, seven = (engine(scenario(name)) for name in ("round-trips", "connections"))
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


# Section III.D: how the window moves.


def largest_windows(engine: Engine, **changes: Any) -> tuple[int, float]:
    """Return the most segments outstanding and the largest cwnd (segments) of a transfer."""
    engine.only_simulated("course of the window")
    series = time_series(scenario("round-trips", **changes), step_s=0.01)
    return int(series.outstanding_segments.max()), float(series.cwnd_segments.max())


def window_never_full(engine: Engine, _claim: Claim) -> Finding:
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


def sawtooth(engine: Engine, _claim: Claim) -> Finding:
    """The window grows slowly and falls at duplicate ACKs, to one MSS."""
    falls, least = window_drops(engine, "sack")
    _, tahoe = window_drops(engine, "tahoe")
    return Finding(falls >= 2, f"{falls} falls in 30 s, to {least:g} segments; Tahoe falls to {tahoe:g}")


def jain_of_a_tenth(_engine: Engine, _claim: Claim) -> Finding:
    """An index of 0.10 leaves out 90 % of the users."""
    index = float(jain_index(np.array([1.0] + [0.0] * 9)))
    return Finding(index == 0.1, f"{index:g}")
