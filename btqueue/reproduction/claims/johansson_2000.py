"""Johansson, Kihl and Körner (2000): the checks that their record cannot describe."""

from __future__ import annotations

import numpy as np

from btqueue.reproduction.claims.engines import Engine
from btqueue.reproduction.claims.judgement import exceeds, listed
from btqueue.reproduction.claims.record import Claim, Judged, compared
from btqueue.scenario import Scenario, load

SLOT_S = 625e-6
VEGAS = ((1, 2), (1, 3), (2, 4), (3, 6))
"""Bounds alpha and beta "within reasonable values"; 1 and 3 are the paper's."""


def vegas_bounds_with_more_peripherals(engine: Engine, _claim: Claim) -> Judged:
    """Saturated both ways with every peripheral, one exchange a visit, PEP 0.1."""
    spreads, symmetric = [], load("johansson-2000/symmetric")
    for count in (1, 3, 5, 7):
        goodputs = np.array(
            [
                engine.sample(
                    symmetric.with_(network__peripherals=count, polling__discipline="1-limited"),
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
    return compared(
        f"spread of the goodput with 1, 3, 5, 7 peripherals: {listed((100 * s for s in spreads), '.1f')} %",
        {step: exceeds(spreads[i + 1], spreads[i]) for step, i in steps.items()},
    )


def repetition_costs_one_turn(engine: Engine, _claim: Claim) -> Judged:
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
    return compared(f"each repetition, its answer included: {', '.join(seen)}", parts)


PROCEDURES = {
    "vegas_bounds_with_more_peripherals": vegas_bounds_with_more_peripherals,
    "repetition_costs_one_turn": repetition_costs_one_turn,
}
