"""The testbed of Suliman et al. (2005), and how to ask an engine about it."""

from __future__ import annotations

from typing import Any

from btqueue.reproduction.claims.engines import Answer, Engine
from btqueue.scenario import Scenario, load

PAPER = "suliman-2005"
WINDOWS_KB = (2, 4, 8, 16, 32, 64)
PACKETS = (256, 512, 1024, 1500)
TCP_IP_BYTES = 40
OVERSHOOT_FREE = 17
"""Slow-start threshold (segments) that the first recovery leaves: half of the gateway's buffer."""


def scenario(name: str, **changes: Any) -> Scenario:
    """Return a scenario with changes."""
    return load(f"{PAPER}/{name}").with_(**changes)


def simulated(engine: Engine, name: str, **changes: Any) -> Answer:
    """Answer a scenario by its name."""
    return engine(scenario(name, **changes))


def with_peripherals(count: int) -> Scenario:
    """Return the piconet with one receiving and `count` - 1 idle peripherals."""
    piconet = {
        "name": "bluetooth",
        "central": "gateway",
        "peripherals": [f"s{i}" for i in range(1, count + 1)],
    }
    return scenario("one-of-seven", network__piconet_list=[piconet])


def wlan_with_loss(loss: float) -> Scenario:
    """Return the single transfer over a WLAN that loses packets."""
    link = scenario("round-trips").network.outside_links[0]
    lossy = {"name": "wlan", "from": "host", "to": "gateway", "kind": "wlan"}
    return scenario("round-trips", network__outside_links=[lossy | {"delay_s": link.delay_s, "loss": loss}])
