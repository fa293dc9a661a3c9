"""What the queueing model of several piconets covers: flows of segments that walk-in bridges carry on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from btqueue.network.plain_segments import (
    COMMON,
    PLAIN,
    PLAIN_SENDER,
    not_plain_segments,
    own_keys,
)
from btqueue.scenario.bounds import packets_of, window_of
from btqueue.scenario.flow_patterns import active_flows
from btqueue.scenario.network import Network, PiconetNames
from btqueue.scenario.scope import Limit
from btqueue.scenario.topology import topology

if TYPE_CHECKING:
    from btqueue.scenario.scenario import Scenario

MULTIHOP: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        **PLAIN,
        "network.relay": ("packet", "segment"),
        "network.topology": ("scatternet", "chain", "custom"),
        "radio.model": ("perfect", "constant"),
        "radio.interferers": (0,),
        "link.arq": ("none", "unlimited"),
        "link.flush_timeout_s": (None,),
        "link.l2cap_delay_s": (0,),
        "link.baseband_delay_s": (0,),
        "flow_control.central_buffer_packets": (None,),
        "polling.discipline": ("e-limited", "1-limited"),
        "polling.bridge_schedule": ("walk-in",),
        "polling.residence": ("visit",),
        "polling.switch_delay": (False,),
        "voice.packet": ("none",),
        "traffic.source": ("poisson", "greedy"),
        "traffic.two_way": (False,),
        "traffic.start_s": (0,),
        "transport.protocol": ("tcp",),
        "transport.variant": ("newreno", "reno", "tahoe", "sack"),
        **PLAIN_SENDER,
        "transport.sack_blocks": (3,),
        "transport.delayed_ack": (False,),
        "transport.timestamps": (True,),
        "transport.gamma": (1,),
        "transport.vegas_adjustment": ("per-ack",),
        "transport.tcp_delay_s": (0,),
        "transport.ip_delay_s": (0,),
        "run.jitter_s": (0,),
    }
)
"""Any number of piconets, joined by walk-in bridges, with loads that they carry."""

MOST_FLOWS = 64
"""Flows of a network, for cost: each is a class of its own."""
MOST_LINKS = 32
"""Links of a network, for cost: a first answer for a line of 16 piconets takes half a minute, of 30 two."""


def not_multihop(s: Scenario) -> Iterator[Limit]:
    """Yield what the model does not cover, and no list of values can say."""
    network, piconets = s.network, s.network.piconet_names
    if network.topology not in MULTIHOP["network.topology"]:
        return
    if len(piconets) < 2:
        yield Limit("network.topology", network.topology, "two piconets at least")  # another kind of network
        return
    yield from not_plain_segments(s)
    yield from own_keys(s, (*COMMON, "traffic.source"))
    if s.traffic.source == "greedy":
        yield from not_always_full(s)
    lossy = s.radio.model != "perfect" or s.radio.per
    if s.link.arq == "none" and lossy:
        yield Limit("link.arq", "none", '"unlimited" on a radio with errors')
    if s.link.l2cap_header_bytes + s.transport.header_bytes == 0:
        yield Limit("link.l2cap_header_bytes", 0, "at least one byte of headers")
    flows = active_flows(network)
    if len(flows) > MOST_FLOWS:
        yield Limit("network.flows", len(flows), f"at most {MOST_FLOWS} flows")
    if sum(len(piconet.members) for piconet in piconets) > MOST_LINKS:
        available = f"at most {MOST_LINKS} members of all piconets together"
        yield Limit("network.piconets", len(piconets), available)
    if network.relay == "segment" and s.flow_control.enabled:
        yield Limit("network.relay", "segment", '"packet" where there are token buckets')
    yield from _bridges(network, piconets)


def not_always_full(s: Scenario) -> Iterator[Limit]:
    """Yield what keeps windows of senders that always have data from being under way as a whole."""
    if s.flow_control.enabled:
        yield Limit("flow_control.enabled", True, "false with greedy sources: without token buckets")
    held = dict[int, float]()
    for flow in topology(s).flows:
        for device in (flow.source, flow.target):
            held[device] = held.get(device, 0.0) + window_of(s, flow) * packets_of(s, flow)
    most = max(held.values(), default=0.0)
    if s.flow_control.places[1] < most:
        available = (
            f"at least {most:g} with greedy sources, the windows of a device with all acknowledgements"
        )
        yield Limit("flow_control.baseband_packets", s.flow_control.baseband_packets, available)


def _bridges(network: Network, piconets: tuple[PiconetNames, ...]) -> Iterator[Limit]:
    """Yield bridges of a kind that is not covered, and flows that begin or end at one."""
    memberships = Counter(name for p in piconets for name in (p.central, *p.members))
    if not any(count > 1 for count in memberships.values()):
        yield Limit("network.topology", network.topology, "piconets that a bridge joins")
        return
    for name, count in memberships.items():
        if count > 2:
            yield Limit("network.piconet_list", name, f"bridges between two piconets, not {count}")
            return
    for flow in active_flows(network):
        if max(memberships[flow.source], memberships[flow.target]) > 1 or flow.source == flow.target:
            available = "flows between two devices that are no bridges"
            yield Limit("network.flows", f"{flow.source}>{flow.target}", available)
            return
    # where a central goes while it is away
    centrals = {p.central for p in piconets}
    goes = {name: other.central for other in piconets for name in other.members if name in centrals}
    for start in goes:
        seen, now = {start}, goes[start]
        while now in goes and now not in seen:
            seen.add(now)
            now = goes[now]
        if now in seen:
            yield Limit("network.piconet_list", start, "bridges that do not wait for each other in a circle")
            return
