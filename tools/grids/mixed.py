"""Stars with the traffic of practice: a download beside sensors, data both ways, unequal messages and loads.

The points are drawn at random, from one seed, before any of them was answered.
"""

import random

from btqueue.scenario import Scenario

KBPS = {"DH1": 170, "DM3": 330, "DH3": 480, "DM5": 420, "DH5": 600, "2-DH5": 1100, "3-DH5": 1500}
"""About the goodput of a lone link one way, by its longest packet."""
SEED, POINTS = 2026, 60


def points() -> list[tuple[str, Scenario]]:
    """Return the points: number, kind, members and the longest packet."""
    draw = random.Random(SEED)
    found = []
    for number in range(POINTS):
        kind = draw.choice(["download and sensors", "both ways", "unequal"])
        packet, members = draw.choice(list(KBPS)), draw.choice([1, 2, 3, 5, 7])
        load = KBPS[packet] * draw.uniform(0.1, 0.7) / members
        flows = []
        if kind == "download and sensors":
            flows.append({"from": "c1", "to": "p1.1", "law": "greedy"})
            if draw.random() < 0.5:
                flows.append(_to("c1", "p1.1", 0.3 * load, draw.choice([100, 500, 1460])))
            size = draw.choice([100, 500, 1460])
            flows += [_to("c1", f"p1.{member}", 0.5 * load, size) for member in range(2, members + 1)]
        elif kind == "both ways":
            share, size = draw.choice([0.1, 0.3, 1.0]), draw.choice([500, 1460, 1460])
            for member in range(1, members + 1):
                flows.append(_to(f"p1.{member}", "c1", 0.6 * load, size))
                flows.append(_to("c1", f"p1.{member}", 0.6 * load * share, size))
        else:
            for member in range(1, members + 1):
                size = draw.choice([300, 1000, 1460])
                flows.append(_to(f"p1.{member}", "c1", load * draw.uniform(0.2, 1.6), size))
        scenario = Scenario.from_dict(
            {
                "network": {"peripherals": members, "flows": flows},
                "link": {"packets": list(dict.fromkeys([packet, f"{packet[:-1]}1"]))},
                "polling": {
                    "discipline": draw.choice(["e-limited", "e-limited", "exhaustive", "1-limited"]),
                    "limit": draw.choice([1, 2, 4, 8]),
                },
                "traffic": {"source": "poisson"},
                "transport": {
                    "delayed_ack": draw.random() < 0.4,
                    "receive_window_segments": draw.choice([4, 8, 16, 44]),
                },
                "run": {"warmup_s": 60, "duration_s": 600},
            }
        )
        found.append((f"{number}: {kind}, {members} members, {packet}", scenario))
    return found


def _to(target: str, source: str, load_kbps: float, size: int) -> dict:
    """Return a flow of messages at random."""
    return {"from": source, "to": target, "load_kbps": round(load_kbps, 1), "message_bytes": size}
