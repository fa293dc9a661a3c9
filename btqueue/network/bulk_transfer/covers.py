"""What the model of bulk transfers covers: greedy TCP over outside links and at most one piconet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from btqueue.scenario.flow_patterns import flows_of
from btqueue.scenario.network import OutsideLink
from btqueue.scenario.scenario import Scenario
from btqueue.scenario.scope import Limit
from btqueue.scenario.topology import topology

VARIANTS = ("tahoe", "reno", "newreno", "sack")
LARGEST_WINDOW = 128
MOST_SEGMENTS = 10_000
"""Of a message, each of which is laid out."""
BULK_TRANSFER: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        "network.topology": ("custom", "piconet"),
        "radio.interferers": (0,),
        "radio.colocated": (False,),
        "network.relay": ("segment",),
        "radio.model": ("perfect", "constant"),
        "link.arq": ("unlimited",),
        "link.arq_feedback": ("reliable",),
        "link.flush_timeout_s": (None,),
        "link.adaptation": ("fixed",),
        "link.l2cap_delay_s": (0,),
        "link.baseband_delay_s": (0,),
        "polling.discipline": ("round-robin", "1-limited", "e-limited", "exhaustive", "fep"),
        "flow_control.enabled": (False,),
        "voice.packet": ("none",),
        "traffic.source": ("greedy", "request-reply"),
        "traffic.two_way": (False,),
        "traffic.application_timeout_s": (None,),
        "transport.protocol": ("tcp",),
        "transport.variant": VARIANTS,
        "transport.clock_granularity_s": (0,),
        "transport.limited_transmit": (False,),
        "transport.rate_reduction": (False,),
        "transport.window_limited_growth": (False,),
        "transport.hold_ssthresh": (False,),
        "transport.handshake": (False,),
        "transport.connection_per_session": (False,),
        "transport.ack_clock": ("timer",),
        "transport.piggyback": (False,),
        "transport.ack_path": ("queued",),
        "transport.tcp_delay_s": (0,),
        "transport.ip_delay_s": (0,),
        "transport.send_buffer_segments": (None,),
    }
)
"""A path with one bottleneck (Suliman 2005, Avancha 2002)."""


def not_bulk_transfer(s: Scenario) -> Iterator[Limit]:
    """Yield what the model of bulk transfers does not cover, and no list of values can say."""
    flows = flows_of(s.network)
    if {flow.law or s.traffic.source for flow in flows} == {"request-reply"}:
        yield Limit("traffic.source", "request-reply", '"greedy" for at least one flow')
    yield from _long_messages(s)
    for window in {flow.receive_window_segments or s.transport.receive_window_segments for flow in flows}:
        if window > LARGEST_WINDOW:
            yield Limit("transport.receive_window_segments", window, f"at most {LARGEST_WINDOW}")
    for link in s.network.outside_links:
        yield from _uneven(link)
    yield from _ways(s)


def _long_messages(s: Scenario) -> Iterator[Limit]:
    """Yield messages of very many segments, of the flows or of their sessions."""
    flows = flows_of(s.network)
    laws = {flow.law or s.traffic.source for flow in flows}
    sizes = {
        "message_bytes": max(flow.message_bytes or s.traffic.message_bytes for flow in flows),
        **{f"{name}_bytes": getattr(s.traffic, f"{name}_bytes") for name in ("request", "reply", "goodbye")},
    }
    for key, size in sizes.items():
        used = "request-reply" in laws if key != "message_bytes" else laws != {"request-reply"}
        if used and size > MOST_SEGMENTS * s.transport.mss_bytes:
            available = f"at most {MOST_SEGMENTS:,} segments of transport.mss_bytes"
            yield Limit(f"traffic.{key}", size, available)


def _uneven(link: OutsideLink) -> Iterator[Limit]:
    """Yield what makes an outside link other than a transmitter with a constant delay."""
    if link.jitter_s:
        yield Limit("network.outside_links", link.name, "jitter_s = 0")
    if link.down_s:
        yield Limit("network.outside_links", link.name, "a link without interruptions, down_s = 0")


def _ways(s: Scenario) -> Iterator[Limit]:
    """Yield what is wrong with the ways of the flows."""
    plan = topology(s)
    ways = [plan.route(a, b) for f in plan.flows for a, b in ((f.source, f.target), (f.target, f.source))]
    used = {hop.index for way in ways for hop in way if hop.kind == "bluetooth"}
    if len(used) > 1:
        yield Limit("network.flows", len(used), "flows through at most one piconet")
    nodes = {node for p in used for node in (plan.piconets[p].central, *plan.piconets[p].members)}
    if any(bridge.node in nodes for bridge in plan.bridges):
        yield Limit("network.piconet_list", s.network.piconet_list, "a piconet without bridges")
    for index in {hop.index for way in ways for hop in way if hop.kind == "outside"}:
        link = plan.outside[index].link
        for key in ("loss", "loss_back"):
            if lost := getattr(link, key):
                yield Limit(f"network.outside_links.{key}", lost, "a link that loses nothing at random")
