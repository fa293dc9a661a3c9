"""Johansson, Kihl and Körner (2000): the claims that can be checked, one function each.

Loads are shares of the saturated goodput at the same packet error probability (PEP), as in section 5.2: of
the goodput that the same engine gives. Ten replications of 400 s, all with one seed.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from btqueue.reproduction.claims.engines import Engine
from btqueue.reproduction.claims.judgement import (
    WORDS,
    bound,
    exceeds,
    falling,
    inner,
    lead,
    listed,
    rising,
    shown,
    within,
)
from btqueue.reproduction.claims.record import Comparison
from btqueue.scenario import Scenario, load

PAPER = "johansson-2000"
PEPS = (0.0, 0.1, 0.3, 0.5)
NOISY = (0.1, 0.3, 0.5)
"""Packet error probabilities of figures 3 to 6."""
LOADS = (0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9)
SLOT_S = 625e-6
VEGAS = ((1, 2), (1, 3), (2, 4), (3, 6))
"""Bounds alpha and beta "within reasonable values"; 1 and 3 are the paper's."""


def model(name: str, **changes) -> Scenario:
    """Return a scenario with changes."""
    return load(f"{PAPER}/{name}").with_(**changes)


def capacity(engine: Engine, name: str, pep: float) -> np.ndarray:
    """Saturated goodput (kbit/s, each way): figure 2."""
    return engine.sample(model(name, radio__per=pep), "goodput_kbps")


def measured(engine: Engine, name: str, metric: str, pep: float, load: float, **changes) -> np.ndarray:
    """A metric at a share `load` of the saturated symmetric goodput: figures 3 to 6."""
    kbps = load * float(capacity(engine, "symmetric", pep).mean())
    return engine.sample(model(name, radio__per=pep, traffic__load_kbps=kbps), metric, **changes)


def milliseconds(delays: Iterable[np.ndarray]) -> str:
    """Return the means of several delays (s) in ms."""
    return listed((1000 * delay for delay in delays), ".0f")


def longer(delays: np.ndarray, others: np.ndarray) -> bool:
    """Compare delays by their logarithms: close to saturation they differ by factors between replications."""
    return exceeds(np.log(delays), np.log(others))


def spread(samples) -> float:
    """Return the largest difference of the means over their mean."""
    means = [float(s.mean()) for s in samples]
    return float(np.ptp(means) / np.mean(means))


# Sections 5.2 and 6, figure 2: goodput against packet errors.


def goodput_asymmetric(engine: Engine) -> Comparison:
    """Saturated and without errors the asymmetric link stays slightly below 721 kbit/s."""
    seen = capacity(engine, "asymmetric", 0.0)
    return Comparison(f"{shown(seen, 4)} kbit/s", {"in range": within(seen, 600, 721)})


def goodput_symmetric(engine: Engine) -> Comparison:
    """Saturated and without errors the symmetric link stays slightly below 432.6 kbit/s each way."""
    seen = capacity(engine, "symmetric", 0.0)
    return Comparison(f"{shown(seen)} kbit/s", {"in range": within(seen, 360, 432.6)})


def goodput_against_pep(engine: Engine) -> Comparison:
    """To first order goodput is proportional to 1 - PEP: a packet takes 1 / (1 - PEP) turns."""
    parts, seen = {}, []
    for name in ("asymmetric", "symmetric"):
        samples = [capacity(engine, name, pep) for pep in PEPS]
        ratios = [float(s.mean() / samples[0].mean()) for s in samples]
        parts[f"{name} falls"] = falling(samples)
        parts[f"{name} as 1 - PEP, to 5 %"] = bool(np.allclose(ratios, 1 - np.array(PEPS), atol=0.05))
        seen.append(f"{name} {listed(samples, '.0f')}")
    return Comparison(f"PEP {PEPS}: {'; '.join(seen)}", parts)


def asymmetric_over_symmetric(engine: Engine) -> Comparison:
    """The asymmetric curve is the upper one."""
    parts = {
        f"PEP {pep}": exceeds(capacity(engine, "asymmetric", pep), capacity(engine, "symmetric", pep))
        for pep in PEPS
    }
    gains = [capacity(engine, "asymmetric", pep) / capacity(engine, "symmetric", pep) for pep in PEPS]
    return Comparison(f"ratio {listed(gains, '.2f')}", parts)


def half_of_all_packets_lost(engine: Engine) -> Comparison:
    """At a PEP of 0.5: goodput at least 40 % of its best, and delays below 1 s up to a load of 0.6."""
    ratio = capacity(engine, "symmetric", 0.5) / capacity(engine, "symmetric", 0.0)
    delays = [measured(engine, "smooth", "acknowledged_delay_s", 0.5, share) for share in (0.2, 0.4, 0.6)]
    parts = {"goodput": within(ratio, 0.4, 1.0), "delays": all(within(delay, 0.0, 1.0) for delay in delays)}
    return Comparison(
        f"{shown(ratio)} of the goodput without errors; {milliseconds(delays)} ms at loads 0.2, 0.4, 0.6",
        parts,
    )


def overload(engine: Engine) -> Comparison:
    """Offered: twice the capacity; the sender may hold 1,000 segments."""
    parts, ratios = {}, []
    for pep in PEPS:
        full = capacity(engine, "symmetric", pep)
        kbps = 2 * float(full.mean())
        twice = engine.sample(
            model("smooth", radio__per=pep, traffic__load_kbps=kbps, transport__send_buffer_segments=1000),
            "goodput_kbps",
        )
        ratios.append(twice / full)
        parts[f"PEP {pep}"] = within(twice / float(full.mean()), 0.95, 1.05)
    return Comparison(f"twice the capacity offered: {listed(ratios, '.3f')} of it", parts)


def load_is_normalised(engine: Engine) -> Comparison:
    """Load 1 is a different rate at each PEP; there the sources begin to saturate TCP."""
    parts, seen = {}, []
    for pep in NOISY:
        below = (
            measured(engine, "smooth", "goodput_kbps", pep, 0.8) / capacity(engine, "symmetric", pep).mean()
        )
        parts[f"PEP {pep}"] = within(below, 0.79, 0.81)
        seen.append(f"{capacity(engine, 'symmetric', pep).mean():.0f}")
    return Comparison(f"load 1 is {', '.join(seen)} kbit/s each way; load 0.8 is carried", parts)


# Section 6, figures 3 to 6: delay against load.


def delay_is_u_shaped(engine: Engine) -> Comparison:
    """The mean delay first falls with load, as acknowledgements find data to ride on, then rises."""
    parts, seen = {}, []
    for pep in NOISY:
        samples = [measured(engine, "smooth", "acknowledged_delay_s", pep, share) for share in LOADS]
        least = min(samples, key=lambda s: s.mean())
        parts[f"PEP {pep}"] = longer(samples[0], least) and longer(samples[-1], least)
        seen.append(milliseconds(samples))
    return Comparison(f"at loads {LOADS}, ms: {'; '.join(seen)} (PEP {NOISY})", parts)


def piggybacked_share(engine: Engine) -> Comparison:
    """At the lowest loads nearly all acknowledgements wait for the tick and travel alone."""
    loads = (0.005, *LOADS)
    parts, seen = {}, []
    for pep in NOISY:
        samples = [measured(engine, "smooth", "piggybacked_acks", pep, share) for share in loads]
        parts[f"PEP {pep} rises"] = rising(samples)
        parts[f"PEP {pep} nearly none at first"] = within(samples[0], 0.0, WORDS["few"].limit)
        seen.append(listed(samples, ".2f"))
    return Comparison(f"share on data at loads {loads}: {'; '.join(seen)} (PEP {NOISY})", parts)


def bursts_cost_delay(engine: Engine) -> Comparison:
    """Accepted is at least a factor of two at each load."""
    parts, seen = {}, []
    for pep in NOISY:
        factors = []
        for share in LOADS:
            smooth = measured(engine, "smooth", "acknowledged_delay_s", pep, share)
            bursty = measured(engine, "bursty", "acknowledged_delay_s", pep, share)
            parts[f"PEP {pep}, load {share}"] = longer(WORDS["far"].limit * bursty, smooth)
            factors.append(bursty.mean() / smooth.mean())
        seen.append(f"{min(factors):.1f} to {max(factors):.1f}")
    return Comparison(f"times {', '.join(seen)} (PEP {NOISY})", parts)


def variation(engine: Engine, name: str, lower: float, upper: float) -> Comparison:
    """Squared coefficient of variation of the delay, between two bounds at each load."""
    parts, seen = {}, []
    for pep in NOISY:
        samples = [measured(engine, name, "acknowledged_delay_scv", pep, share) for share in LOADS]
        parts[f"PEP {pep}"] = all(bound(one, lower, upper).holds for one in samples)
        seen.append(listed(samples, ".2g"))
    return Comparison(f"at loads {LOADS}: {'; '.join(seen)} (PEP {NOISY})", parts)


def delay_varies_little(engine: Engine) -> Comparison:
    """Smooth arrivals: "quite low" is read as at most 1."""
    return variation(engine, "smooth", 0.0, 1.0)


def bursty_delay_varies_by_one(engine: Engine) -> Comparison:
    """Bursty arrivals: of the order of 1."""
    factor = WORDS["order of"].limit
    return variation(engine, "bursty", 1 / factor, factor)


def with_fixed_wait(engine: Engine, pep: float, share: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return mean (s) and variance (s²) of the delay with the tick, and with the fixed wait."""
    found = []
    for name in ("smooth", "fixed-wait"):
        mean, scv = (measured(engine, name, f"acknowledged_delay_{end}", pep, share) for end in ("s", "scv"))
        found.append((mean, scv * mean**2))
    return found


def fixed_wait_variance(engine: Engine) -> Comparison:
    """Variance of the delay at loads up to 0.2."""
    parts, seen = {}, []
    for pep in NOISY:
        changes = []
        for share in LOADS[:3]:
            (_, tick), (_, fixed) = with_fixed_wait(engine, pep, share)
            parts[f"PEP {pep}, load {share}"] = lead(tick, fixed, "significantly")
            changes.append(f"{fixed.mean() / tick.mean() - 1:+.0%}")
        seen.append(", ".join(changes))
    return Comparison(f"at loads {LOADS[:3]}: {'; '.join(seen)} (PEP {NOISY})", parts)


def fixed_wait_mean(engine: Engine) -> Comparison:
    """Mean delay at loads up to 0.8, beyond which the delay is not stable."""
    parts, seen = {}, []
    for pep in NOISY:
        changes = []
        for share in LOADS[:-1]:
            (tick, _), (fixed, _) = with_fixed_wait(engine, pep, share)
            changes.append(float(fixed.mean() / tick.mean() - 1))
        parts[f"PEP {pep}"] = max(map(abs, changes)) <= WORDS["hardly"].limit
        seen.append(", ".join(f"{change:+.0%}" for change in changes))
    return Comparison(f"at loads {LOADS[:-1]}: {'; '.join(seen)} (PEP {NOISY})", parts)


def fixed_wait_hump(engine: Engine) -> Comparison:
    """Variation of the delay against load: a maximum, and a minimum after it."""
    loads = [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.6, 0.8, 0.9]
    parts, seen = {}, []
    for pep in NOISY:
        samples = np.array(
            [measured(engine, "fixed-wait", "acknowledged_delay_scv", pep, share) for share in loads]
        )
        parts[f"PEP {pep}, maximum"] = inner(samples, loads, 0.15, 0.4, least=False).holds
        parts[f"PEP {pep}, minimum"] = inner(samples[3:], loads[3:], 0.25, 0.8, least=True).holds
        seen.append(listed(samples, ".2f"))
    return Comparison(f"at loads {tuple(loads)}: {'; '.join(seen)} (PEP {NOISY})", parts)


def half_the_buffer(engine: Engine) -> Comparison:
    """Loads of 0.3 and 0.8, smooth and bursty; saturation both ways and one way."""
    parts, worst = {}, 0.0
    for pep in (0.1, 0.5):
        for name in ("asymmetric", "symmetric"):
            half = engine.sample(model(name, radio__per=pep, link__node_buffer_bytes=7500), "goodput_kbps")
            worst = max(worst, abs(float(half.mean() / capacity(engine, name, pep).mean()) - 1))
        for name in ("smooth", "bursty"):
            for share in (0.3, 0.8):
                for metric in ("goodput_kbps", "acknowledged_delay_s"):
                    half = measured(engine, name, metric, pep, share, link__node_buffer_bytes=7500)
                    full = measured(engine, name, metric, pep, share)
                    worst = max(worst, abs(float(half.mean() / full.mean()) - 1))
    parts["the same"] = worst < WORDS["same"].limit
    return Comparison(f"largest change {worst:.1%}", parts)


# Sections 1, 2.1, 6 and 7: the bounds of Vegas, Reno, and the benefit of repetition on the link.


def vegas_bounds(engine: Engine) -> Comparison:
    """Relative spread over VEGAS of the saturated goodput and, below saturation, of goodput and delay."""
    parts, seen = {}, []
    for name in ("asymmetric", "symmetric"):
        goodputs = [
            engine.sample(model(name, radio__per=0.1, transport__alpha=a, transport__beta=b), "goodput_kbps")
            for a, b in VEGAS
        ]
        parts[f"saturated goodput, {name}"] = spread(goodputs) < WORDS["same"].limit
        seen.append(f"{name} {listed(goodputs, '.0f')} kbit/s")
    for share in (0.3, 0.6, 0.8):
        bounds = [{"transport__alpha": a, "transport__beta": b} for a, b in VEGAS]
        goodputs = [measured(engine, "smooth", "goodput_kbps", 0.1, share, **pair) for pair in bounds]
        delays = [measured(engine, "smooth", "acknowledged_delay_s", 0.1, share, **pair) for pair in bounds]
        parts[f"goodput at load {share}"] = spread(goodputs) < WORDS["same"].limit
        parts[f"delay at load {share}"] = spread(delays) < WORDS["same"].limit
        seen.append(f"load {share} {milliseconds(delays)} ms")
    return Comparison(
        f"with (alpha, beta) = {', '.join(map(str, VEGAS))}: {'; '.join(seen)} (PEP 0.1)", parts
    )


def vegas_bounds_with_more_peripherals(engine: Engine) -> Comparison:
    """Saturated both ways with every peripheral, one exchange a visit, PEP 0.1."""
    spreads = []
    for count in (1, 3, 5, 7):
        goodputs = np.array(
            [
                engine.sample(
                    model("symmetric", network__peripherals=count, polling__discipline="1-limited"),
                    "goodput_kbps",
                    radio__per=0.1,
                    transport__alpha=a,
                    transport__beta=b,
                )
                for a, b in VEGAS
            ]
        )
        spreads.append(np.ptp(goodputs, axis=0) / goodputs.mean(axis=0))
    steps = dict(zip(("from 1 to 3", "from 3 to 5", "from 5 to 7"), range(3), strict=True))
    return Comparison(
        f"spread of the goodput with 1, 3, 5, 7 peripherals: {listed((100 * s for s in spreads), '.1f')} %",
        {step: exceeds(spreads[i + 1], spreads[i]) for step, i in steps.items()},
    )


def repetition_costs_one_turn(engine: Engine) -> Comparison:
    """A small datagram every 50 ms: each repetition of a packet adds the packet and its one-slot answer."""
    parts, seen = {}, []
    for name, size, packets, slots in (("DH1", 54, 2, 2), ("DH5", 339, 1, 6)):
        payload = size - 32  # L2CAP 4, UDP and IP 28
        datagrams = Scenario.from_dict(
            {
                "network": {"peripherals": 1, "flows": "downlink"},
                "radio": {"model": "constant", "per": 0.3},
                "link": {"packets": [name], "arq": "unlimited"},
                "flow_control": {"enabled": False},
                "traffic": {
                    "source": "periodic",
                    "phase": "aligned",  # with slots: only repetitions make the delays differ
                    "load_kbps": payload * 8 / 50,
                    "message_bytes": payload,
                },
                "transport": {"protocol": "none", "mss_bytes": payload},
                "run": {"duration_s": 400, "warmup_s": 0, "replications": 10},
            }
        )
        noisy, quiet = engine(datagrams), engine(datagrams.with_(radio__per=0.0))
        extra = (noisy["delay_s"].mean("flow") - quiet["delay_s"].mean("flow")).values / SLOT_S
        cost = extra / packets / (noisy["transmissions_per_packet"].values - 1)
        parts[name] = bool(np.allclose(cost, slots, rtol=1e-3))
        seen.append(f"{name} {cost.mean():.3f} slots")
    return Comparison(f"each repetition, its answer included: {', '.join(seen)}", parts)


def vegas_over_reno(engine: Engine) -> Comparison:
    """On this link, whose 15 KB overflow before the window of 12 segments is reached."""
    parts, seen = {}, []
    for name in ("asymmetric", "symmetric"):
        reno = engine.sample(model(name, transport__variant="reno"), "goodput_kbps")
        parts[name] = exceeds(capacity(engine, name, 0.0), reno)
        seen.append(f"{name} {shown(capacity(engine, name, 0.0), 4)} against {shown(reno, 4)}")
    return Comparison(f"{'; '.join(seen)} kbit/s, PEP 0", parts)


def repetition_is_needed(engine: Engine) -> Comparison:
    """TCP does badly on a lossy radio unless the link repeats lost packets."""
    parts, seen = {}, []
    for pep in NOISY:
        without = engine.sample(model("asymmetric", radio__per=pep, link__arq="none"), "goodput_kbps")
        parts[f"PEP {pep}"] = exceeds(capacity(engine, "asymmetric", pep), 10 * without)
        seen.append(f"{capacity(engine, 'asymmetric', pep).mean():.0f} against {without.mean():.2f}")
    return Comparison(f"with against without, kbit/s: {', '.join(seen)} (PEP {NOISY})", parts)


CHECKS = {
    "goodput-asymmetric": goodput_asymmetric,
    "goodput-symmetric": goodput_symmetric,
    "goodput-against-pep": goodput_against_pep,
    "asymmetric-over-symmetric": asymmetric_over_symmetric,
    "usable-at-pep-50": half_of_all_packets_lost,
    "overload": overload,
    "delay-u-shaped": delay_is_u_shaped,
    "piggybacked-share": piggybacked_share,
    "bursts-cost-delay": bursts_cost_delay,
    "delay-varies-little": delay_varies_little,
    "bursty-delay-varies-by-one": bursty_delay_varies_by_one,
    "fixed-wait-variance": fixed_wait_variance,
    "fixed-wait-mean": fixed_wait_mean,
    "fixed-wait-hump": fixed_wait_hump,
    "half-the-buffer": half_the_buffer,
    "vegas-bounds": vegas_bounds,
    "vegas-bounds-with-more-peripherals": vegas_bounds_with_more_peripherals,
    "load-normalisation": load_is_normalised,
    "repetition-costs-one-turn": repetition_costs_one_turn,
    "vegas-over-reno": vegas_over_reno,
    "repetition-is-needed": repetition_is_needed,
}
