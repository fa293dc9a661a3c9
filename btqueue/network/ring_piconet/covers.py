"""What the model of a ring whose connections are followed covers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from btqueue.network.plain_segments import COMMON, UNREPEATED, not_plain_segments, own_keys
from btqueue.scenario.flow_patterns import flows_of, ring
from btqueue.scenario.scenario import Scenario
from btqueue.scenario.scope import Limit

RING_PICONET: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        **UNREPEATED,
        "network.topology": ("piconet",),
        "voice.packet": ("none", "HV1", "HV2", "HV3"),
    }
)
"""Piconet whose peripherals send to each other in a ring, without ARQ (Venugopal 2006)."""


def not_a_ring(s: Scenario) -> Iterator[Limit]:
    """Yield what the model of the ring does not cover, and no list of values can say."""
    network = s.network
    if network.topology != "piconet":
        return
    flows, around = flows_of(network), ring(network)
    if sorted((flow.source, flow.target) for flow in flows) != sorted(around):
        yield Limit("network.flows", network.flows, '"ring"')
    elif network.active_flows not in ("all", len(around)):
        yield Limit("network.active_flows", network.active_flows, '"all"')
    yield from not_plain_segments(s)
    yield from own_keys(s, (*COMMON, "traffic.source", "traffic.load_kbps"))
