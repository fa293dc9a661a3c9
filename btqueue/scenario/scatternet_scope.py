"""What the solver's model of piconets with walk-in bridges covers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from btqueue.scenario.flow_patterns import flows_of
from btqueue.scenario.network import Network
from btqueue.scenario.scope import Limit
from btqueue.scenario.unrepeated_scope import UNREPEATED, not_plain_segments

if TYPE_CHECKING:
    from btqueue.scenario.scenario import Scenario

SCATTERNET: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        **UNREPEATED,
        "network.topology": ("scatternet", "custom"),
        "polling.bridge_schedule": ("walk-in",),
    }
)
"""Peripherals that send to each other through piconets and bridges, without ARQ (Venugopal 2006)."""

NOT_OF_A_FLOW = ("message_bytes", "variant", "receive_window_segments", "start_s")
"""What every flow must have in common."""


def not_a_scatternet(s: Scenario) -> Iterator[Limit]:
    """Yield what the model does not cover, and no list of values can say."""
    network = s.network
    if network.topology not in SCATTERNET["network.topology"]:
        return
    yield from not_plain_segments(s)
    yield from _ends(network)
    yield from _overrides(network)


def _ends(network: Network) -> Iterator[Limit]:
    """Yield the first flow between others than peripherals, or between such that have one already."""
    memberships = Counter(name for p in network.piconet_names for name in (p.central, *p.members))
    centrals = {p.central for p in network.piconet_names}
    sources: set[str] = set()
    targets: set[str] = set()
    for flow in _active(network):
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


def _overrides(network: Network) -> Iterator[Limit]:
    """Yield what single flows must not have of their own."""
    for number, flow in enumerate(_active(network), start=1):
        key = f"network.flows[{number}]"
        if flow.law not in (None, "poisson", "greedy"):
            yield Limit(f"{key}.law", flow.law, '"poisson" or "greedy"')
        for name in NOT_OF_A_FLOW:
            if (value := getattr(flow, name)) is not None:
                yield Limit(f"{key}.{name}", value, "leaving it out, the same for all flows")


def _active(network: Network) -> tuple:
    flows = flows_of(network)
    return flows if network.active_flows == "all" else flows[: network.active_flows]
