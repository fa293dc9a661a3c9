"""Sections 1, 2.1, 6 and 7: the bounds of Vegas, Reno, and the benefit of repetition on the link."""

from __future__ import annotations

import numpy as np

from btqueue.reproduction.claims.engines import Engine
from btqueue.reproduction.claims.johansson_2000.systems import (
    NOISY,
    SLOT_S,
    VEGAS,
    capacity,
    measured,
    milliseconds,
    model,
    spread,
)
from btqueue.reproduction.claims.judgement import exceeds, listed, shown
from btqueue.reproduction.claims.record import Comparison
from btqueue.scenario import Scenario


def vegas_bounds(engine: Engine) -> Comparison:
    """Relative spread over VEGAS of the saturated goodput and, below saturation, of goodput and delay."""
    parts, seen = {}, []
    for name in ("asymmetric", "symmetric"):
        goodputs = [
            engine.sample(model(name, radio__per=0.1, transport__alpha=a, transport__beta=b), "goodput_kbps")
            for a, b in VEGAS
        ]
        parts[f"saturated goodput, {name}"] = spread(goodputs) < 0.05
        seen.append(f"{name} {listed(goodputs, '.0f')} kbit/s")
    for load in (0.3, 0.6, 0.8):
        bounds = [{"transport__alpha": a, "transport__beta": b} for a, b in VEGAS]
        goodputs = [measured(engine, "smooth", "goodput_kbps", 0.1, load, **pair) for pair in bounds]
        delays = [measured(engine, "smooth", "acknowledged_delay_s", 0.1, load, **pair) for pair in bounds]
        parts[f"goodput at load {load}"] = spread(goodputs) < 0.05
        parts[f"delay at load {load}"] = spread(delays) < 0.05
        seen.append(f"load {load} {milliseconds(delays)} ms")
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
