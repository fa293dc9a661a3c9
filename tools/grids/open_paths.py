"""Loads over outside links, drawn at random: DSL, WLAN, slow and shared wires, one after the other or alone.

Gateways are centrals, or peripherals; flows go up or down. Not drawn until the model was put together.
"""

from typing import Any

import numpy as np

import btqueue as bt
from btqueue.scenario import Scenario

DRAWN = 28
SEED = 60653
LINKS: dict[str, tuple[dict[str, Any], ...]] = {
    "DSL": ({"kind": "other", "half_duplex": False, "delay_s": 0.03, "rate_kbps": 1000.0},),
    "slow DSL": ({"kind": "other", "half_duplex": False, "delay_s": 0.01, "rate_kbps": 384.0},),
    "WLAN": ({"kind": "wlan"},),
    "shared wire": ({"half_duplex": True, "delay_s": 0.015, "rate_kbps": 600.0},),
    "WLAN and DSL": ({"kind": "wlan"}, {"delay_s": 0.02, "rate_kbps": 512.0}),
    "wire alone": ({"half_duplex": True, "delay_s": 0.02, "rate_kbps": 256.0},),
}
CARRIED = {"central": 430.0, "peripheral": 230.0}
"""What a piconet carries of segments of 1,460 bytes, about (kbit/s)."""


def points() -> list[tuple[str, Scenario]]:
    """Return the points."""
    random = np.random.default_rng(SEED)
    return [drawn(number, random) for number in range(1, DRAWN + 1)]


def drawn(number: int, random: np.random.Generator) -> tuple[str, Scenario]:
    """Return one at random."""
    kind = str(random.choice(list(LINKS)))
    stations = int(random.integers(1, 6))
    peripherals = [f"p{k}" for k in range(1, stations + 1)]
    where = "peripheral" if stations > 1 and random.random() < 0.25 else "central"
    gateway = "c" if where == "central" else "p1"
    path = ["host" if kind == "wire alone" else gateway, "relay", "server"]
    path = [path[0], *path[-len(LINKS[kind]) :]]
    links = [
        {"name": f"link {k}", "from": path[k], "to": path[k + 1], **link}
        for k, link in enumerate(LINKS[kind])
    ]
    ends = ["host"] if kind == "wire alone" else [name for name in peripherals if name != gateway]
    way = str(random.choice(["down", "down", "up"]))
    pairs = [("server", end) if way == "down" else (end, "server") for end in ends]
    slowest = min(link.get("rate_kbps", 4000.0) for link in LINKS[kind])
    load = random.uniform(0.1, 0.75) * min(CARRIED[where], 0.93 * slowest) / len(pairs)
    source = str(random.choice(["poisson", "poisson", "poisson", "ibp"]))
    bytes_, window = int(random.choice([500, 1000, 1460])), int(random.choice([8, 16, 32]))
    scenario = bt.Scenario.from_dict(
        {
            "network": {
                "topology": "custom",
                "piconet_list": [{"name": "home", "central": "c", "peripherals": peripherals}],
                "outside_links": links,
                "flows": [{"from": start, "to": end} for start, end in pairs],
            },
            "link": {"packets": ["DH5", "DH3"], "arq": "unlimited"},
            "radio": {"model": "constant", "per": float(random.choice([0.0, 0.0, 0.05]))},
            "flow_control": {"enabled": False, "baseband_packets": 400},
            "traffic": {"source": source, "load_kbps": round(load, 1), "message_bytes": bytes_},
            "transport": {
                "preset": "thesis",
                "windows": "segments",  # messages of 500 bytes share none: no model knows those that do
                "receive_window_segments": window,
                "delayed_ack": bool(random.random() < 0.15),
            },
            "run": {"duration_s": 400, "warmup_s": 20, "replications": 4},
        }
    )
    return f"{number}: {kind}, gateway {where}, {stations} stations, {way}, {source}", scenario
