"""Piconets joined by walk-in bridges, without ARQ: connections followed from visit to visit."""

import sys
from collections.abc import Sequence
from functools import partial

import numpy as np

from btqueue.network.opening import new_sender
from btqueue.network.scatternet.network import Scatternet, scatternet_of
from btqueue.network.scatternet.orbit import Followed, follow
from btqueue.scenario import Scenario
from btqueue.scenario.topology import FlowPlan

ENOUGH = 20.0
"""Load, in multiples of what the slots carry, beyond which more messages make no difference."""


def answer(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes, as `btqueue.network.answers` describes them.

    Raises:
        NoConvergence: bridges wait for each other for ever.
    """
    net, kilobits = scatternet_of(scenario), scenario.traffic.message_bytes * 8 / 1000
    found = followed(scenario, net, [messages_per_s(scenario, way.plan) for way in net.connections])
    metrics = found.metrics()
    metrics["goodput_kbps"] = metrics.pop("goodput") * kilobits
    metrics["throughput_kbps"] = metrics.pop("sends") * kilobits
    notes = {
        "method": "followed: orbit of all connections and their messages",
        "converged": True,
        "residual": max(found.precision, found.ends),
        "iterations": found.batches,
        "warnings": found.warnings(),
    }
    return metrics, notes


def messages_per_s(scenario: Scenario, flow: FlowPlan) -> float:
    """Return the messages a second that are offered to a flow; infinite if it always has data."""
    traffic, own = scenario.traffic, flow.spec
    if ((own and own.law) or traffic.source) == "greedy":
        return np.inf
    return ((own and own.load_kbps) or traffic.load_kbps) / (traffic.message_bytes * 8 / 1000)


def followed(scenario: Scenario, net: Scatternet, offered: Sequence[float]) -> Followed:
    """Follow connections that are offered so many messages a second each."""
    most = ENOUGH * net.air_capacity
    least = sys.float_info.min
    intervals = [1.0 / max(min(rate, most), least) if np.isfinite(rate) else 0.0 for rate in offered]
    return follow(net, partial(new_sender, scenario), scenario.transport.receive_window_segments, intervals)
