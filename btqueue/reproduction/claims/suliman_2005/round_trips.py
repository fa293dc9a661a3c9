"""Section III.C: round-trip times of a single transfer, and its needless retransmissions."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from btqueue.reproduction.claims.engines import Answer, Engine
from btqueue.reproduction.claims.judgement import Finding, rounded
from btqueue.reproduction.claims.suliman_2005.systems import scenario, simulated, wlan_with_loss
from btqueue.scenario import Scenario
from btqueue.simulator.statistics.series import time_series
from btqueue.simulator.traces.trace_files import record


def rtt(result: Answer, metric: str) -> np.ndarray:
    """Return a metric of the round-trip time in ms."""
    return 1000 * result.mean_over_flows(metric)


def rtt_range(engine: Engine) -> Finding:
    """Round-trip times range from 37 to 680 ms."""
    low, high = (rtt(simulated(engine, "round-trips"), f"rtt_{end}_s") for end in ("min", "max"))
    met = abs(low.mean() / 37 - 1) <= 0.3 and abs(high.mean() / 680 - 1) <= 0.25
    return Finding(met, f"{rounded(low)} to {rounded(high)} ms")


def rtt_mean(engine: Engine) -> Finding:
    """The mean round trip is 277.7 ms."""
    mean = rtt(simulated(engine, "round-trips"), "rtt_s")
    lossy = rtt(engine(wlan_with_loss(0.005)), "rtt_s")
    return Finding(
        abs(mean.mean() / 277.7 - 1) <= 0.25,
        f"{rounded(mean)} ms; {rounded(lossy)} with 0.5 % loss on the WLAN",
    )


def rtt_deviation(engine: Engine) -> Finding:
    """Its standard deviation is 138.6 ms."""
    result, lossy = simulated(engine, "round-trips"), engine(wlan_with_loss(0.005))
    mean, deviation = rtt(result, "rtt_s"), rtt(result, "rtt_sd_s")
    met = abs(deviation.mean() / 138.6 - 1) <= 0.35 and abs((deviation / mean).mean() - 0.5) <= 0.15
    return Finding(
        met,
        f"{rounded(deviation)} ms, {(deviation / mean).mean():.2f} of the mean; "
        f"{rounded(rtt(lossy, 'rtt_sd_s'))} with 0.5 % loss on the WLAN",
    )


def rtt_samples(single: Scenario) -> tuple[np.ndarray, np.ndarray]:
    """Return when segments that were sent once left, and the time until they were acknowledged (s)."""
    import pyarrow.parquet

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.parquet"
        record(single, parquet=path)
        columns = ["time_s", "event", "node", "segment", "acknowledged_segments"]
        rows = pyarrow.parquet.read_table(path, columns=columns).to_pylist()
    sent: dict[int, list[float]] = {}
    samples, acknowledged = [], 0
    for row in rows:
        if row["node"] != "host":
            continue
        if row["event"] == "segment sent":
            sent.setdefault(row["segment"], []).append(row["time_s"])
        elif row["event"] == "segment received" and row["acknowledged_segments"] > acknowledged:
            acknowledged = row["acknowledged_segments"]
            if len(sent[acknowledged - 1]) == 1:
                (left,) = sent[acknowledged - 1]
                samples.append((left, row["time_s"] - left))
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
