"""Chen, Kapoor, Sanadidi and Gerla (2004): the claims that can be checked, one function each.

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
from btqueue.reproduction.claims.judgement import (
    WORDS,
    exceeds,
    interval,
    lead,
    listed,
    rising,
    same,
    shown,
    within,
)
from btqueue.reproduction.claims.record import Comparison
from btqueue.scenario import Scenario, load
from btqueue.scenario.library import models_folder
from btqueue.simulator.statistics.series import time_series

PAPER = "chen-2004"
LINKS = ("regular", "adaptive")
HOPS = (1, 2, 4)
BERS = (0.0, 1e-4, 1.5e-4, 2e-4, 3e-4, 5e-4, 7e-4, 1e-3)
FIRST_THRESHOLD = 1.529e-4
"""First of the thresholds of table 3: above it adaptive links leave DH5."""


def model(name: str, **changes) -> Scenario:
    """Return a scenario with changes."""
    return load(f"{PAPER}/{name}").with_(run__replications=5, **changes)


def goodput(engine: Engine, link: str, hops: int, ber: float, **changes) -> np.ndarray:
    """Goodput (kbit/s) at a constant bit error rate: figure 5."""
    return engine.sample(model(f"{link}-{hops}", radio__ber=ber, **changes), "goodput_kbps")


def series(engine: Engine, scenario: Scenario) -> np.ndarray:
    """Goodput (kbit/s) in each ten seconds of 600 s: figures 6 and 8."""
    engine.only_simulated("goodput of each ten seconds")
    return time_series(scenario, 0, 10.0).goodput_kbps.values[:, 0]


def traced(link: str, hops: int) -> Scenario:
    """Return the scenario of figure 8: the error rate follows a trace."""
    trace = str(models_folder() / PAPER / "link-quality.txt")
    return model(f"trace-{link}", network__hops=hops, radio__trace_file=trace)


# Section IV: a single link against equations 3 and 4.


EQUATION_4 = {
    "DH5": (723.2, 551.41, 186.3, 47.96),
    "DM5": (477.87, 477.81, 476.38, 471.96),
    "DH3": (585.6, 505.84, 281.59, 135.36),
    "DM3": (387.2, 387.17, 386.55, 384.61),
}
"""Throughput (kbit/s) by equation 4 with 224 bytes in a DM5, at the bit error rates of EQUATION_4_BERS."""
EQUATION_4_BERS = (0.0, 1e-4, 5e-4, 1e-3)


def one_link(packet: str, ber: float) -> Scenario:
    """Return a saturated link of full packets of one type; acknowledgements come back without the radio."""
    payload = {"DH5": 339, "DM5": 224, "DH3": 183, "DM3": 121}[packet]
    return model(
        "regular-1",
        radio__ber=ber,
        link__adaptation="fixed",
        link__packets=(packet,),
        link__node_buffer_bytes=100_000,
        traffic__message_bytes=payload - 44,
        transport__mss_bytes=payload - 44,
        transport__ack_path="direct",
    )


def attempts(engine: Engine) -> Comparison:
    """The three levels of equation 3 with DH5 packets; the relative tolerance is 1 %."""
    parts, seen = {}, []
    for ber in EQUATION_4_BERS[1:]:
        expected = 1 / (1 - ber) ** 2712
        found = engine.sample(one_link("DH5", ber), "transmissions_per_packet")
        parts[f"bit error rate {ber:g}"] = within(found, 0.99 * expected, 1.01 * expected)
        seen.append(f"{shown(found)} for {expected:.3f}")
    return Comparison(", ".join(seen), parts)


def link_throughput(engine: Engine) -> Comparison:
    """Equation 4 within 0.5 %, user bytes of the packets."""
    parts, errors = {}, {}
    for packet, values in EQUATION_4.items():
        for ber, expected in zip(EQUATION_4_BERS, values, strict=True):
            scenario = one_link(packet, ber)
            headers = (scenario.transport.mss_bytes + 44) / scenario.transport.mss_bytes
            found = headers * engine.sample(scenario, "goodput_kbps")
            errors[packet, ber] = abs(float(found.mean()) / expected - 1)
            parts[f"{packet} at {ber:g}"] = errors[packet, ber] < 0.005 + interval(found)[1] / expected
    worst = max(errors, key=lambda place: errors[place])
    return Comparison(f"largest error {errors[worst]:.1%} ({worst[0]} at {worst[1]:g})", parts)


# Section V: goodput over 1, 2 and 4 hops, regular and adaptive.


def two_hops_halve(engine: Engine) -> Comparison:
    """Two hops through one central carry half of one hop, as they share its slots."""
    goodputs = [goodput(engine, "regular", hops, 0.0) for hops in HOPS]
    rates = ", ".join(shown(one, 4) for one in goodputs)
    ratio = goodputs[1] / goodputs[0]
    return Comparison(
        f"{rates} kbit/s over 1, 2, 4 hops: half is {ratio.mean():.3f}",
        {"two hops": within(ratio, 0.5 * (1 - WORDS["slots"].limit), 0.5 * (1 + WORDS["slots"].limit))},
    )


def four_hops_as_two(engine: Engine) -> Comparison:
    """Four hops carry as much as two."""
    ratio = goodput(engine, "regular", 4, 0.0) / goodput(engine, "regular", 2, 0.0)
    return Comparison(
        f"{ratio.mean():.3f} of it",
        {"four hops": within(ratio, 1 - WORDS["same"].limit, 1 + WORDS["same"].limit)},
    )


def adaptation_wins(engine: Engine) -> Comparison:
    """Better at each bit error rate above the first threshold, clearly so on average; the same below it."""
    parts, seen = {}, []
    for hops in HOPS:
        pairs = [
            (goodput(engine, "adaptive", hops, ber), goodput(engine, "regular", hops, ber), ber)
            for ber in BERS
        ]
        parts[f"{hops} hops, above"] = all(exceeds(a, r) for a, r, ber in pairs if ber > FIRST_THRESHOLD)
        above = np.array([(a, r) for a, r, ber in pairs if ber > FIRST_THRESHOLD]).mean(axis=0)
        parts[f"{hops} hops, clearly"] = lead(above[0], above[1], "significantly")
        parts[f"{hops} hops, below"] = all(same(a, r) for a, r, ber in pairs if ber < FIRST_THRESHOLD)
        at = [pair for pair in pairs if pair[2] in (2e-4, 5e-4, 1e-3)]
        seen.append(f"{hops}: {', '.join(f'{a.mean():.0f} against {r.mean():.0f}' for a, r, _ in at)}")
    return Comparison(
        f"kbit/s at 2e-4, 5e-4, 1e-3, hops {'; '.join(seen)}; the same below the first threshold", parts
    )


def gain_grows(engine: Engine) -> Comparison:
    """Its advantage grows with the bit error rate."""
    parts, seen = {}, []
    for hops in HOPS:
        gains = [
            goodput(engine, "adaptive", hops, ber) / goodput(engine, "regular", hops, ber)
            for ber in BERS
            if ber > FIRST_THRESHOLD
        ]
        parts[f"{hops} hops"] = rising(gains)
        seen.append(f"{hops}: {listed(gains, '.1f')}")
    return Comparison(f"adaptive over regular from 2e-4 to 1e-3, hops {'; '.join(seen)}", parts)


def regular_starves(engine: Engine) -> Comparison:
    """At a bit error rate of about 0.001 the regular link carries next to nothing."""
    parts, shares = {}, []
    for hops in HOPS:
        share = goodput(engine, "regular", hops, 1e-3) / goodput(engine, "regular", hops, 0.0)
        parts[f"{hops} hops"] = within(share, 0.0, WORDS["few"].limit)
        shares.append(share)
    return Comparison(f"{listed(shares, '.3f')} of the best over 1, 2, 4 hops", parts)


def drops_slightly(engine: Engine) -> Comparison:
    """Adaptive at a bit error rate of 0.001, against its best."""
    parts, shares = {}, []
    for hops in HOPS:
        best, noisy = (goodput(engine, "adaptive", hops, ber) for ber in (0.0, 1e-3))
        parts[f"{hops} hops"] = exceeds(noisy, WORDS["slightly"].limit * best)
        shares.append(noisy / best)
    return Comparison(f"{listed(shares, '.3f')} of the best over 1, 2, 4 hops", parts)


def almost_tenfold(engine: Engine) -> Comparison:
    """The largest gain of all samples of ten seconds, over all hops."""
    gains = []
    for hops in HOPS:
        adaptive, regular = (
            series(engine, model(f"alternating-{link}", network__hops=hops))
            for link in ("adaptive", "regular")
        )
        gains.append(float(np.max(adaptive / regular)))
    return Comparison(
        f"at most {', '.join(f'{gain:.1f}' for gain in gains)} over 1, 2, 4 hops",
        {"largest": max(gains) >= 1 / WORDS["almost ten"].limit},
    )


def synthetic_trace(engine: Engine) -> Comparison:
    """Mean goodput over 600 s of a synthetic trace."""
    means = [[float(series(engine, traced(link, hops)).mean()) for link in LINKS[::-1]] for hops in HOPS]
    seen = ", ".join(f"{adaptive:.0f} against {regular:.0f}" for adaptive, regular in means)
    return Comparison(
        f"{seen} kbit/s over 1, 2, 4 hops",
        {f"{hops} hops": adaptive > regular for hops, (adaptive, regular) in zip(HOPS, means, strict=True)},
    )


def alternating(engine: Engine) -> Comparison:
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
    return Comparison(
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


def idle_senders(engine: Engine) -> Comparison:
    """Timeouts of a segment come 1, 3, 7, 15 and 31 s after the first loss; without back-off every second."""
    doubled, constant = idle_after_an_outage(engine, True), idle_after_an_outage(engine, False)
    idle = [end - outage for end, outage in zip(doubled, OUTAGES_S, strict=True)]
    parts = {
        "back-off leaves the sender idle": idle[-1] > 5 and idle[-1] == max(idle),
        "grows": idle[1:] == sorted(idle[1:]),
        "not without back-off": all(end - t <= 1.2 for end, t in zip(constant, OUTAGES_S, strict=True)),
    }
    return Comparison(
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


CHECKS = {
    "attempts": attempts,
    "link-throughput": link_throughput,
    "two-hops-halve": two_hops_halve,
    "four-hops-as-two": four_hops_as_two,
    "adaptation-wins": adaptation_wins,
    "gain-grows": gain_grows,
    "regular-starves": regular_starves,
    "alternating": alternating,
    "adaptation-drops-slightly": drops_slightly,
    "almost-tenfold": almost_tenfold,
    "trace": synthetic_trace,
    "idle-senders": idle_senders,
}
