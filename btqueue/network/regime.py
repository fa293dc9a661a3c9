"""The regime test: reasons why the answer of an analytic model does not stand.

Three things spoil such an answer (`docs/explanation/how-solve-works.md`): a doubt that the model has itself,
a resource that is nearly busy and yet not saturated, where round trips depend on how flows meet, and windows
that overflow a buffer again and again, where connections fall into a rhythm that no stationary law knows.
"""

from typing import Any

import numpy as np

from btqueue.scenario import Scenario

BUSY = 0.7
"""Share of the busiest resource's capacity up to which round trips are accurate; beyond all of it a window
or the capacity itself decides, and they are accurate again."""
FREQUENT = 0.02
"""Overflows a second of a flow up to which the rhythm in which they come does not matter."""


def doubts(scenario: Scenario, metrics: dict[str, Any], notes: dict[str, Any]) -> list[str]:
    """Return in words why an analytic answer (`btqueue.network.answers`) does not stand; empty if it does."""
    found = list(notes["warnings"])
    busy = notes.get("utilisation", 0.0)
    if BUSY < busy < 1.0:
        found.append(f"the busiest resource is {busy:.0%} busy: above {BUSY:.0%} round trips are less certain")
    if (overflows := _overflows_per_s(scenario, metrics)) > FREQUENT:
        found.append(
            f"{overflows:.2g} segments a second of a flow overflow a buffer: connections fall into a rhythm "
            "of losses that is not in the model"
        )
    return found


def _overflows_per_s(scenario: Scenario, metrics: dict[str, Any]) -> float:
    """Return the segments a second that the worst flow loses to buffers; 0 where something else loses any.

    TCP answers random losses by a law that is in the models; it is the rhythm of overflows that is not.
    """
    radio, links = scenario.radio, scenario.network.outside_links
    random = (radio.model != "perfect" and scenario.link.arq != "unlimited") or any(
        link.loss or link.loss_back for link in links
    )
    if random or scenario.transport.protocol != "tcp" or "throughput_kbps" not in metrics:
        return 0.0
    segments = metrics["throughput_kbps"] / (min(scenario.transport.mss_bytes, scenario.traffic.message_bytes) * 8e-3)
    return float(np.max(segments * metrics.get("segment_loss", 0.0)))
