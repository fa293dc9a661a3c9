"""Bulk transfers: Suliman 2005 with its sweeps; the busy WLAN of Avancha 2002.

The model answers for the long run, so the transfers run longer than the 30 s of the paper and without their
first slow start.
"""

import btqueue as bt
from btqueue.scenario import Scenario
from grids.paths import noisy, suliman, window_and_packet


def points() -> list[tuple[str, Scenario]]:
    """Return the scenarios of the two papers, and a grid around each."""
    found = [(name, suliman(name)) for name in ("round-trips", "one-of-seven", "one-of-seven-adaptive")]
    found += [
        (f"connections, {n} active", suliman("connections", network__active_flows=n)) for n in range(1, 8)
    ]
    found += [window_and_packet(window, 1460) for window in (1, 2, 4, 8, 22, 32)]
    found += [window_and_packet(window, mss) for window, mss in ((16, 984), (64, 984), (32, 472), (64, 472))]
    found += [
        (f"round-trips, {variant}", suliman("round-trips", transport__variant=variant))
        for variant in ("newreno", "reno", "tahoe")
    ]
    found += [
        (f"round-trips, packet error rate {per}", suliman("round-trips", **noisy(per))) for per in (0.1, 0.3)
    ]
    found.append(
        (
            "connections, 4 active, packet error rate 0.1",
            suliman("connections", network__active_flows=4, **noisy(0.1)),
        )
    )
    found.append(
        ("round-trips, each segment acknowledged", suliman("round-trips", transport__delayed_ack=False))
    )
    found.append(("three uploads", uploads(3)))
    return found + [busy_wlan(reply) for reply in (64, 1024, 4096, 8192)]


def uploads(count: int) -> Scenario:
    """Return the connections turned round: peripherals send to the host."""
    return suliman(
        "connections", network__flows=[{"from": f"s{i}", "to": "host"} for i in range(1, count + 1)]
    )


def busy_wlan(reply: int) -> tuple[str, Scenario]:
    """Return sessions beside two greedy transfers."""
    scenario = bt.load("avancha-2002/wlan-chargen").with_(
        traffic__reply_bytes=reply, run__duration_s=200, run__replications=10
    )
    return f"wlan-chargen, reply of {reply} bytes", scenario
