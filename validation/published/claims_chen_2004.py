"""The claims of Chen, Kapoor, Sanadidi and Gerla (2004) that a simulation can check, one function each.

    python validation/published/claims_chen_2004.py

writes docs/explanation/claims-chen-2004.md (half a minute). "Regular" always uses DH5, "adaptive" chooses by
the thresholds of table 3. Five replications of 580 s after 20 s of warm-up, all with one seed.
"""

from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from claim_pages import comparisons, table, write
from claims import Comparison, run, sample
from judgement import exceeds, interval, listed, rising, shown, within

import btqueue as bt
from btqueue.scenario import Scenario
from btqueue.scenario.library import models_folder
from btqueue.simulator.statistics.series import time_series

PAPER = "chen-2004"
LINKS = ("regular", "adaptive")
HOPS = (1, 2, 4)
BERS = (0.0, 1e-4, 1.5e-4, 2e-4, 3e-4, 5e-4, 7e-4, 1e-3)
FIRST_THRESHOLD = 1.529e-4
EQUATION_4 = {
    "DH5": (723.2, 551.41, 186.3, 47.96),
    "DM5": (477.87, 477.81, 476.38, 471.96),
    "DH3": (585.6, 505.84, 281.59, 135.36),
    "DM3": (387.2, 387.17, 386.55, 384.61),
}
"""Throughput (kbit/s) by equation 4 with 224 bytes in a DM5, at the bit error rates of EQUATION_4_BERS."""
EQUATION_4_BERS = (0.0, 1e-4, 5e-4, 1e-3)


def model(name: str, **changes) -> Scenario:
    return bt.load(f"{PAPER}/{name}").with_(run__replications=5, **changes)


@cache
def goodput(link: str, hops: int, ber: float, **changes) -> np.ndarray:
    """Goodput (kbit/s) at a constant bit error rate: figure 5."""
    return sample(model(f"{link}-{hops}", radio__ber=ber, **changes), "goodput_kbps")


def series(scenario: Scenario) -> np.ndarray:
    """Goodput (kbit/s) in each ten seconds of 600 s: figures 6 and 8."""
    return time_series(scenario, 0, 10.0).goodput_kbps.values[:, 0]


def traced(link: str, hops: int) -> Scenario:
    trace = str(models_folder() / PAPER / "link-quality.txt")
    return model(f"trace-{link}", network__hops=hops, radio__trace_file=trace)


# ---------------------------------------------------------------- section IV


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


def attempts() -> Comparison:
    """The three levels of equation 3 with DH5 packets; the relative tolerance is 1 %."""
    parts, seen = {}, []
    for ber in EQUATION_4_BERS[1:]:
        expected = 1 / (1 - ber) ** 2712
        found = sample(one_link("DH5", ber), "transmissions_per_packet")
        parts[f"bit error rate {ber:g}"] = within(found, 0.99 * expected, 1.01 * expected)
        seen.append(f"{shown(found)} for {expected:.3f}")
    return Comparison("1 / (1 - p) transmissions of a packet", ", ".join(seen), parts)


def link_throughput() -> Comparison:
    """Equation 4 within 0.5 %, user bytes of the packets."""
    parts, errors = {}, {}
    for packet, values in EQUATION_4.items():
        for ber, expected in zip(EQUATION_4_BERS, values, strict=True):
            scenario = one_link(packet, ber)
            headers = (scenario.transport.mss_bytes + 44) / scenario.transport.mss_bytes
            found = headers * sample(scenario, "goodput_kbps")
            errors[packet, ber] = abs(float(found.mean()) / expected - 1)
            parts[f"{packet} at {ber:g}"] = errors[packet, ber] < 0.005 + interval(found)[1] / expected
    worst = max(errors, key=lambda place: errors[place])
    return Comparison(
        "payload times success over n + 1 slots (equation 4, four types, four error rates)",
        f"largest error {errors[worst]:.1%} ({worst[0]} at {worst[1]:g})",
        parts,
    )


# ---------------------------------------------------------------- section V


def two_hops_halve() -> Comparison:
    goodputs = [goodput("regular", hops, 0.0) for hops in HOPS]
    rates = ", ".join(shown(one, 4) for one in goodputs)
    ratio = goodputs[1] / goodputs[0]
    return Comparison(
        "two hops carry half of one hop (accepted: 10 %)",
        f"{rates} kbit/s over 1, 2, 4 hops: half is {ratio.mean():.3f}",
        {"two hops": within(ratio, 0.45, 0.55)},
    )


def four_hops_as_two() -> Comparison:
    ratio = goodput("regular", 4, 0.0) / goodput("regular", 2, 0.0)
    return Comparison(
        "four hops carry as much as two (accepted: 5 %)",
        f"{ratio.mean():.3f} of it",
        {"four hops": within(ratio, 0.95, 1.05)},
    )


def adaptation_wins() -> Comparison:
    """Better at each bit error rate above the first threshold, the same below it."""
    parts, seen = {}, []
    for hops in HOPS:
        pairs = [(goodput("adaptive", hops, ber), goodput("regular", hops, ber), ber) for ber in BERS]
        parts[f"{hops} hops, above"] = all(exceeds(a, r) for a, r, ber in pairs if ber > FIRST_THRESHOLD)
        parts[f"{hops} hops, below"] = all(
            np.array_equal(a, r) for a, r, ber in pairs if ber < FIRST_THRESHOLD
        )
        at = [pair for pair in pairs if pair[2] in (2e-4, 5e-4, 1e-3)]
        seen.append(f"{hops}: {', '.join(f'{a.mean():.0f} against {r.mean():.0f}' for a, r, _ in at)}")
    return Comparison(
        "adaptive above regular over 1, 2 and 4 hops",
        f"kbit/s at 2e-4, 5e-4, 1e-3, hops {'; '.join(seen)}; the same below the first threshold",
        parts,
    )


def gain_grows() -> Comparison:
    parts, seen = {}, []
    for hops in HOPS:
        gains = [
            goodput("adaptive", hops, ber) / goodput("regular", hops, ber)
            for ber in BERS
            if ber > FIRST_THRESHOLD
        ]
        parts[f"{hops} hops"] = rising(gains)
        seen.append(f"{hops}: {listed(gains, '.1f')}")
    return Comparison(
        "the gain of adaptation grows with the bit error rate",
        f"adaptive over regular from 2e-4 to 1e-3, hops {'; '.join(seen)}",
        parts,
    )


def regular_starves() -> Comparison:
    parts, shares = {}, []
    for hops in HOPS:
        share = goodput("regular", hops, 1e-3) / goodput("regular", hops, 0.0)
        parts[f"{hops} hops"] = within(share, 0.0, 0.1)
        shares.append(share)
    return Comparison(
        "next to nothing at a bit error rate of 0.001 without adaptation (accepted: 10 % of the best)",
        f"{listed(shares, '.3f')} of the best over 1, 2, 4 hops",
        parts,
    )


def alternating() -> Comparison:
    """Adaptive above regular in at least 95 % of the samples of ten seconds."""
    parts, seen = {}, []
    for hops in HOPS:
        adaptive = series(model("alternating-adaptive", network__hops=hops))
        regular = series(model("alternating-regular", network__hops=hops))
        parts[f"{hops} hops"] = bool((adaptive > regular).mean() >= 0.95)
        seen.append(
            f"{hops}: {adaptive.mean():.0f} against {regular.mean():.0f}, {(adaptive > regular).mean():.0%}"
        )
    return Comparison(
        "far better in every case when the error rate alternates each second",
        f"mean kbit/s and share of samples in which adaptive is above, hops {'; '.join(seen)}",
        parts,
    )


def trace() -> list[list[str]]:
    """Return mean goodputs (kbit/s) under a made-up trace: the measured one was not published."""
    return [[link, *(f"{series(traced(link, hops)).mean():.0f}" for hops in HOPS)] for link in LINKS]


# ---------------------------------------------------------------- section III


OUTAGES_S = (0.5, 2.0, 5.0, 10.0, 20.0)


def idle_after_an_outage(backoff: bool) -> list[float]:
    """Seconds from the begin of an outage, without link-level repetition, until data arrive again."""
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
    return ", ".join(f"{time:.3g}" for time in times)


def idle_senders() -> Comparison:
    """Timeouts of a segment come 1, 3, 7, 15 and 31 s after the first loss; without back-off every second."""
    doubled, constant = idle_after_an_outage(True), idle_after_an_outage(False)
    idle = [end - outage for end, outage in zip(doubled, OUTAGES_S, strict=True)]
    parts = {
        "back-off leaves the sender idle": idle[-1] > 5 and idle[-1] == max(idle),
        "grows": idle[1:] == sorted(idle[1:]),
        "not without back-off": all(end - t <= 1.2 for end, t in zip(constant, OUTAGES_S, strict=True)),
    }
    return Comparison(
        "bursts of losses back the timer off and leave the sender idle",
        f"outages of {seconds(OUTAGES_S)} s are over for TCP after {seconds(doubled)} s, "
        f"without back-off {seconds(constant)} s",
        parts,
    )


CHECKS = {
    "attempts": attempts,
    "link-throughput": link_throughput,
    "two-hops-halve": two_hops_halve,
    "four-hops-as-two": four_hops_as_two,
    "adaptation-wins": adaptation_wins,
    "gain-grows": gain_grows,
    "regular-starves": regular_starves,
    "alternating": alternating,
    "idle-senders": idle_senders,
}


READINGS: dict[str, dict] = {
    "as in the scenarios": {},
    "500 bytes with headers": {"traffic__message_bytes": 460, "transport__mss_bytes": 460},
    "receive window 8 segments": {"transport__receive_window_segments": 8},
    "receive window 64 segments": {"transport__receive_window_segments": 64},
    "least timeout 0.2 s in place of 1 s": {"transport__min_rto_s": 0.2},
    "Tahoe": {"transport__variant": "tahoe"},
    "Reno": {"transport__variant": "reno"},
    "estimate from the link quality": {"link__adaptation_estimate": "link-quality"},
    "acknowledgement bit lost with its packet": {"link__arq_feedback": "lossy"},
    "errors also in access code, headers, CRC": {"radio__bits": "on-air"},
    "one exchange a visit": {"polling__discipline": "1-limited"},
    "central/peripheral as bridge": {"network__bridge": "MS"},
}
"""Other readings of open points, as changes of the scenarios."""


def reading(changes: dict) -> list[str]:
    """Return regular / adaptive goodput (kbit/s) over each number of hops, at a bit error rate of 5e-4."""
    pairs = ([goodput(link, hops, 5e-4, **changes) for link in LINKS] for hops in HOPS)
    return [" / ".join(f"{one.mean():.0f}" for one in pair) for pair in pairs]


def readings() -> list[list[str]]:
    """Return what other readings would change."""
    cells = run({name: partial(reading, changes) for name, changes in READINGS.items()})
    return [[name, *row] for name, row in cells.items()]


def page() -> list[str]:
    return [
        "# Claims of Chen, Kapoor, Sanadidi and Gerla (2004)",
        "",
        "Written by `python validation/published/claims_chen_2004.py`. Intervals are 95 %, over five",
        "replications of 580 s; an order or a trend counts if a paired test finds it at a level of 0.001.",
        "The closed forms of section IV are checked in `validation/published/test_chen_2004.py`. The",
        "paper prints its throughputs only as pictures: what can be compared is what the text says about",
        "them.",
        "",
        *comparisons(run(CHECKS)),
        "",
        "## What did not hold",
        "",
        "* `link-throughput`. Equation 4 takes s/15 blocks in a coded packet of s payload bits. Ten of",
        "  the fifteen bits of a block are payload, so it has s/10: a DM5 at 0.001 loses half as much",
        "  again.",
        "* `four-hops-as-two`. A bridge in two piconets is absent from each of them for a time, and the",
        "  way it is scheduled is not described. Here a central visits it in turn and it leaves after",
        "  each visit.",
        "",
        "## A trace of link quality",
        "",
        "Mean goodput over 600 s, kbit/s, with the synthetic trace of `models/chen-2004/link-quality.txt`:",
        "",
        *table(("link", "1 hop", "2 hops", "4 hops"), trace()),
        "",
        "## Readings",
        "",
        "Goodput at a bit error rate of 5e-4, kbit/s, regular / adaptive:",
        "",
        *table(("reading", "1 hop", "2 hops", "4 hops"), readings()),
    ]


if __name__ == "__main__":
    write(PAPER, page())
