"""What the solver's model of piconets with walk-in bridges covers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from btqueue.network.plain_segments import UNREPEATED, active_flows, not_plain_segments, own_keys
from btqueue.scenario.network import Network
from btqueue.scenario.scope import Limit

if TYPE_CHECKING:
    from btqueue.scenario.scenario import Scenario

SCATTERNET: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        **UNREPEATED,
        "network.topology": ("scatternet", "custom"),
        "polling.bridge_schedule": ("walk-in",),
        "polling.residence": ("visit", "cycle"),
    }
)
"""Peripherals that send to each other through piconets and bridges, without ARQ (Venugopal 2006)."""


def not_a_scatternet(s: Scenario) -> Iterator[Limit]:
    """Yield what the model does not cover, and no list of values can say."""
    network = s.network
    if network.topology not in SCATTERNET["network.topology"]:
        return
    yield from not_plain_segments(s)
    yield from _ends(network)
    yield from own_keys(s)


def _ends(network: Network) -> Iterator[Limit]:
    """Yield the first flow between others than peripherals, or between such that have one already."""
    memberships = Counter(name for p in network.piconet_names for name in (p.central, *p.members))
    centrals = {p.central for p in network.piconet_names}
    sources: set[str] = set()
    targets: set[str] = set()
    for flow in active_flows(network):
        for end, others in ((flow.source, sources), (flow.target, targets)):
            if end in centrals or memberships[end] > 1:
                available = "flows from peripherals to peripherals, neither centrals nor bridges"
                yield Limit("network.flows", f"{flow.source}>{flow.target}", available)
                return
            if end in others:
                available = "at most one flow from each peripheral and one to it"
                yield Limit("network.flows", f"{flow.source}>{flow.target}", available)
                return
            others.add(end)
