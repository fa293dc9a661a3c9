"""A ring piconet without ARQ: its metrics, from connections that are followed (`ring_piconet.orbit`)."""

import sys
from functools import partial

from btqueue.network.answers import uncertain_ends
from btqueue.network.opening import new_sender
from btqueue.network.orbit_averages import Orbit
from btqueue.network.ring_piconet.network import network_of
from btqueue.network.ring_piconet.orbit import follow
from btqueue.scenario import Scenario

ENOUGH = 20.0
"""Load, in multiples of what the slots carry, beyond which more messages make no difference."""
UNSURE = 0.03
"""Relative standard error of goodput above which an answer carries a warning."""
ERRORS = (
    "perfect radio: goodput 0.3 % and round trips 0.7 % in the median, 1 and 4 % in 95 of 100 cases; bit "
    "errors: goodput 2.5 and 5 %, round trips 1 and 2 %; several limit cycles: 15 %"
)
"""Measured against the simulator, on the grid of validation/crosscheck."""


def answer(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes, as `btqueue.network.answers` describes them."""
    found = followed(scenario)
    kilobits = scenario.traffic.message_bytes * 8 / 1000
    metrics = found.metrics()
    metrics["goodput_kbps"] = metrics.pop("goodput") * kilobits
    metrics["throughput_kbps"] = metrics.pop("sends") * kilobits
    notes = {
        "method": "followed: orbit of all connections, their messages and radio errors",
        "converged": True,
        "residual": max(found.precision.goodput, uncertain_ends(found.counted)),
        "iterations": len(found.goodputs),
        "warnings": warnings(found, lossy=scenario.radio.model != "perfect"),
        "errors": ERRORS,
    }
    return metrics, notes


def followed(scenario: Scenario) -> Orbit:
    """Follow the connections of a scenario."""
    traffic, net = scenario.traffic, network_of(scenario)
    interval = 0.0
    if traffic.source != "greedy":
        offered = traffic.load_kbps * 1000 / (traffic.message_bytes * 8)
        interval = 1.0 / max(min(offered, ENOUGH * net.ring.air_capacity), sys.float_info.min)
    return follow(net, partial(new_sender, scenario), scenario.transport.receive_window_segments, interval)


def warnings(found: Orbit, *, lossy: bool) -> list[str]:
    """Return what an answer has to be distrusted for."""
    if not lossy:
        return found.warnings()
    if found.precision.goodput <= UNSURE:
        return []
    return [
        f"radio errors are so irregular that goodput has a standard error of {found.precision.goodput:.1%}: "
        "simulate for more certain answers"
    ]
