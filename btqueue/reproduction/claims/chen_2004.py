"""Chen, Kapoor, Sanadidi and Gerla (2004): the checks that their record cannot describe, and its equations.

"Regular" always uses DH5, "adaptive" chooses by the thresholds of table 3. Five replications of 580 s after
20 s of warm-up, all with one seed.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from btqueue.baseband import packet_type
from btqueue.baseband.packets import FEC_BLOCK_BITS
from btqueue.channel import ber_from_link_quality, coded_error_rate, packet_error_rate
from btqueue.reproduction.claims.engines import Engine
from btqueue.reproduction.claims.judgement import WORDS
from btqueue.reproduction.claims.record import Claim, Judged, compared
from btqueue.scenario import Scenario, load
from btqueue.scenario.loading import models_folder
from btqueue.simulator.statistics.series import time_series

PAPER = "chen-2004"
LINKS = ("regular", "adaptive")
HOPS = (1, 2, 4)


def model(name: str, **changes) -> Scenario:
    """Return a scenario with changes."""
    return load(f"{PAPER}/{name}").with_(run__replications=5, **changes)


def series(engine: Engine, scenario: Scenario) -> np.ndarray:
    """Goodput (kbit/s) in each ten seconds of 600 s: figures 6 and 8."""
    engine.only_simulated("goodput of each ten seconds")
    return time_series(scenario, 0, 10.0).goodput_kbps.values[:, 0]


def traced(link: str, hops: int) -> Scenario:
    """Return the scenario of figure 8: the error rate follows a trace."""
    trace = str(models_folder() / PAPER / "link-quality.txt")
    return model(f"trace-{link}", network__hops=hops, radio__trace_file=trace)


# Section V: regular and adaptive links over time.


def almost_tenfold(engine: Engine, _claim: Claim) -> Judged:
    """The largest gain of all samples of ten seconds, over all hops."""
    gains = []
    for hops in HOPS:
        adaptive, regular = (
            series(engine, model(f"alternating-{link}", network__hops=hops))
            for link in ("adaptive", "regular")
        )
        gains.append(float(np.max(adaptive / regular)))
    return compared(
        f"at most {', '.join(f'{gain:.1f}' for gain in gains)} over 1, 2, 4 hops",
        {"largest": max(gains) >= 1 / WORDS["almost ten"].limit},
    )


def synthetic_trace(engine: Engine, _claim: Claim) -> Judged:
    """Mean goodput over 600 s of a synthetic trace."""
    means = [[float(series(engine, traced(link, hops)).mean()) for link in LINKS[::-1]] for hops in HOPS]
    seen = ", ".join(f"{adaptive:.0f} against {regular:.0f}" for adaptive, regular in means)
    return compared(
        f"{seen} kbit/s over 1, 2, 4 hops",
        {f"{hops} hops": adaptive > regular for hops, (adaptive, regular) in zip(HOPS, means, strict=True)},
    )


def alternating(engine: Engine, _claim: Claim) -> Judged:
    """Adaptive above regular in at least 95 % of the samples of ten seconds, and far above on average."""
    parts, seen = {}, []
    for hops in HOPS:
        adaptive = series(engine, model("alternating-adaptive", network__hops=hops))
        regular = series(engine, model("alternating-regular", network__hops=hops))
        parts[f"{hops} hops, above"] = bool((adaptive > regular).mean() >= 0.95)
        parts[f"{hops} hops, far"] = bool(regular.mean() <= WORDS["far"].limit * adaptive.mean())
        seen.append(
            f"{hops}: {adaptive.mean():.0f} against {regular.mean():.0f}, {(adaptive > regular).mean():.0%}"
        )
    return compared(
        f"mean kbit/s and share of samples in which adaptive is above, hops {'; '.join(seen)}", parts
    )


# Section III: how long TCP stays idle after an outage.


OUTAGES_S = (0.5, 2.0, 5.0, 10.0, 20.0)


def idle_after_an_outage(engine: Engine, backoff: bool) -> list[float]:
    """Seconds from the begin of an outage, without link-level repetition, until data arrive again."""
    engine.only_simulated("course over time")
    step, before = 0.1, 300
    resumed = []
    with TemporaryDirectory() as folder:
        for outage in OUTAGES_S:
            path = Path(folder) / f"outage-{outage:g}-{backoff}.txt"
            lost = round(outage / step)
            path.write_text("\n".join(["0"] * before + ["0.5"] * lost + ["0"] * 900), "utf-8")
            scenario = model(
                "trace-regular",
                radio__trace_file=str(path),
                radio__trace_quantity="ber",
                link__arq="none",
                transport__rto_backoff=backoff,
                run__duration_s=100,
            )
            arrived = time_series(scenario, 0, step).goodput_kbps.values[before + 1 :, 0] > 0
            resumed.append(float(step * (1 + np.argmax(arrived))))
    return resumed


def seconds(times) -> str:
    """Return times as text."""
    return ", ".join(f"{time:.3g}" for time in times)


def idle_senders(engine: Engine, _claim: Claim) -> Judged:
    """Timeouts of a segment come 1, 3, 7, 15 and 31 s after the first loss; without back-off every second."""
    doubled, constant = idle_after_an_outage(engine, True), idle_after_an_outage(engine, False)
    idle = [end - outage for end, outage in zip(doubled, OUTAGES_S, strict=True)]
    parts = {
        "back-off leaves the sender idle": idle[-1] > 5 and idle[-1] == max(idle),
        "grows": idle[1:] == sorted(idle[1:]),
        "not without back-off": all(end - t <= 1.2 for end, t in zip(constant, OUTAGES_S, strict=True)),
    }
    return compared(
        f"outages of {seconds(OUTAGES_S)} s are over for TCP after {seconds(doubled)} s, "
        f"without back-off {seconds(constant)} s",
        parts,
    )


# Equations 1, 2 and 4, which the figures draw. The paper gives a coded packet of s payload bits s/15 blocks;
# a block of 15 bits carries ten of them, so s/10 is meant. "Printed" takes whole blocks and the sizes of
# table 1 (a DM5 of 227 bytes), which gives the thresholds of the paper to the last digit.

PRINTED_BYTES = {"DM5": 227}
"""Payloads that the paper's tables 1 and 2 print differently."""


def error_rate(ber: np.ndarray, packet: str, *, printed: bool) -> np.ndarray:
    """Return the packet error rate by equations 1 and 2, with either count of blocks."""
    kind = packet_type(packet)
    if not printed or not kind.coded:
        return packet_error_rate(kind, ber)
    bits = 8 * PRINTED_BYTES.get(packet, kind.payload_bytes)
    return coded_error_rate(bits // FEC_BLOCK_BITS, ber)


def throughput_kbps(ber: np.ndarray, packet: str, *, printed: bool) -> np.ndarray:
    """Return the throughput (kbit/s) by equation 4, with either count of blocks."""
    return packet_type(packet).asymmetric_kbps * (1 - error_rate(ber, packet, printed=printed))


def trace_bit_error_rate(time_s: np.ndarray) -> np.ndarray:
    """Return the bit error rates of the synthetic trace at times (s); it has a link quality every 0.1 s."""
    quality = np.loadtxt(models_folder() / "chen-2004" / "link-quality.txt")
    return ber_from_link_quality(quality[np.rint(time_s / 0.1).astype(int)])
