"""The regime test: reasons why the answer of an analytic model does not stand.

Three things spoil such an answer: a doubt that the model has itself; a resource that is nearly busy and yet
not saturated, where round trips depend on how flows meet; and windows that overflow a buffer again and again,
where connections fall into a rhythm that no stationary law knows. A window is a resource as a server is: the
share of it that is under way is its utilisation.
"""

from typing import Any

import numpy as np

from btqueue.scenario import Scenario
from btqueue.scenario.bounds import window_of
from btqueue.scenario.topology import topology

BUSY, SATURATED = 0.7, 0.999
"""Shares of a resource between which round trips are uncertain; above, it alone decides on them."""
BUSY_VEGAS = 0.45
"""The same with TCP Vegas, which holds back what would wait: at uses of 0.42 and 0.48 round trips of
sixteen piconets were up to 3 % long, at 0.56 and 0.64 up to 10 %."""
BUSY_STAR = 0.85
"""The same where visits are short against segments: on 11 of 11 random stars between 0.7 and 0.9 round
trips were within 5 % and the half-width of the truth; with a limit of 12, on 3 of 6."""
BUSY_ONE = 0.4
"""The same of a window of one segment, which comes and goes with polls: up to there round trips of four stars
were within 5 %, at 0.5 to 0.6 up to 17 % long."""
FREQUENT = 0.02
"""Overflows a second of a flow up to which the rhythm in which they come does not matter."""

SHORT_VISIT = 5
"""Frames."""

AT_ANY_LOAD = frozenset({"chain", "paths", "request_reply", "two_way_link"})
"""Models that hold at any load, overflows included: their warnings are the whole test."""


def doubts(model: str, scenario: Scenario, metrics: dict[str, Any], notes: dict[str, Any]) -> list[str]:
    """Return in words why an analytic answer (`btqueue.network.answers`) does not stand; empty if it does."""
    found = list(notes["warnings"])
    if model in AT_ANY_LOAD:
        return found
    segments_per_s = _segments_per_s(scenario, metrics)
    busy = BUSY_STAR if model == "piconet" and _short_visits(scenario) else BUSY
    if any(scenario.of_flow(flow.spec).transport.variant == "vegas" for flow in topology(scenario).flows):
        busy = BUSY_VEGAS
    windows = np.array([window_of(scenario, flow) for flow in topology(scenario).flows])
    used = segments_per_s * metrics.get("rtt_s", 0.0) / windows  # by Little's law
    for words, use, most in (
        ("the busiest resource is in use", notes.get("utilisation", 0.0), busy),
        ("windows are under way", float(np.max(used)), busy),
        ("windows of one are under way", float(np.max(used * (windows == 1))), BUSY_ONE),
    ):
        if most < use < SATURATED:
            found.append(f"{words} to {use:.0%}: between {most:.0%} and all of it round trips are uncertain")
    if (overflows := _overflows_per_s(scenario, metrics, segments_per_s)) > FREQUENT:
        found.append(
            f"{overflows:.2g} segments a second of a flow overflow a buffer: connections fall into a rhythm "
            "of losses that is not in the model"
        )
    return found


def _short_visits(scenario: Scenario) -> bool:
    """Whether flows begin or end at the central, and each visit serves at most about a segment in turn."""
    plan = topology(scenario)
    if scenario.traffic.source not in ("poisson", "greedy"):
        return False
    if any(len(plan.route(flow.source, flow.target)) > 1 for flow in plan.flows):
        return False
    return len(plan.piconets[0].members) == 1 or (
        scenario.polling.discipline == "1-limited"
        or (scenario.polling.discipline == "e-limited" and scenario.polling.limit <= SHORT_VISIT)
    )


def _segments_per_s(scenario: Scenario, metrics: dict[str, Any]) -> np.ndarray:
    """Return the segments a second that are delivered of each flow, shape (flows,) or (), by TCP; else 0."""
    if scenario.transport.protocol != "tcp":
        return np.array(0.0)
    size_bytes = min(scenario.transport.mss_bytes, scenario.traffic.message_bytes)
    return np.asarray(metrics.get("goodput_kbps", 0.0)) / (size_bytes * 8e-3)


def _overflows_per_s(scenario: Scenario, metrics: dict[str, Any], segments_per_s: np.ndarray) -> float:
    """Return the segments a second that the worst flow loses to buffers; 0 where something else loses any.

    TCP answers random losses by a law that is in the models; it is the rhythm of overflows that is not.
    """
    radio, links = scenario.radio, scenario.network.outside_links
    random = radio.model != "perfect" and scenario.link.arq != "unlimited"
    if random or any(link.loss or link.loss_back for link in links):
        return 0.0
    lost = np.asarray(metrics.get("segment_loss", 0.0))
    return float(np.max(segments_per_s * lost / np.maximum(1.0 - lost, 1e-9)))
