"""Networks of two to ten piconets that walk-in bridges join: lines, stars, flows inside piconets, ARQ.

Loads that the network carries well, at which the model stands, and a few beyond, at which it warns. Without
losses: bridges hold what they take.
"""

import btqueue as bt
from btqueue.scenario import Scenario

SHARES = {1: (5, 15, 40), 2: (5, 15, 30), 4: (3, 8)}
"""Loads (kbit/s) by peripherals of a piconet."""


def points() -> list[tuple[str, Scenario]]:
    """Return the points."""
    found = [
        line(count, bridge, peripherals, load)
        for count, peripherals in ((2, 1), (2, 2), (3, 2), (5, 1))
        for bridge in ("SS", "MS")
        for load in SHARES[peripherals]
    ]
    found += [line(2, "SS", 4, load) for load in SHARES[4]]
    found += [line(3, "SS", 2, load, flows="uplink") for load in (20, 50)]
    return [*found, *(star(rooms, load) for rooms in (2, 3) for load in (5, 20, 40))]


def line(
    count: int, bridge: str, peripherals: int, load: float, *, flows: str = "pairs"
) -> tuple[str, Scenario]:
    """Return a line of so many piconets."""
    network = {
        "topology": "scatternet", "piconets": count, "bridge": bridge, "peripherals": peripherals,
        "flows": flows,
    }  # fmt: skip
    return f"{count} piconets in line, {bridge} bridges, n={peripherals}, {flows}, load {load}", _asked(
        network, load
    )


def star(rooms: int, load: float) -> tuple[str, Scenario]:
    """Return rooms around a hub; a device of each sends to the hub."""
    numbers = range(1, rooms + 1)
    piconets = [{"name": "hub", "central": "hub", "peripherals": [f"b{k}" for k in numbers]}]
    piconets += [{"name": f"r{k}", "central": f"c{k}", "peripherals": [f"d{k}", f"b{k}"]} for k in numbers]
    flows = [{"from": f"d{k}", "to": "hub"} for k in numbers]
    network = {"topology": "custom", "piconet_list": piconets, "flows": flows}
    return f"{rooms} rooms around a hub, load {load}", _asked(network, load)


def _asked(network: dict[str, object], load: float) -> Scenario:
    return bt.Scenario.model_validate(
        {
            "network": network,
            "flow_control": {"enabled": False, "baseband_packets": 400},
            "traffic": {"load_kbps": load},
            "transport": {"preset": "thesis"},
            "run": {"replications": 6},
        }
    )
