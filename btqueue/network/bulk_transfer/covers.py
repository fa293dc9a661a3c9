"""What the model of bulk transfers covers: greedy TCP over outside links and at most one piconet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from btqueue.scenario.flow_patterns import flows_of
from btqueue.scenario.network import OutsideLink
from btqueue.scenario.scenario import Scenario
from btqueue.scenario.scope import Limit
from btqueue.scenario.topology import Hop, Topology, topology

VARIANTS = ("tahoe", "reno", "newreno", "sack")
LARGEST_WINDOW = 128
LEAST_WINDOW_WITH_LOSS = 2
"""A window of one whose losses only timers repair is answered with 17 to 98 % too much goodput."""
LARGEST_LOSS_WITHOUT_TIME_STAMPS = 0.08
"""Segments lost from which on backed-off timers, which Karn's rule keeps until a segment gets through at its
first try, hold the connection up: goodput is 12 % too high at 0.1, 35 % at 0.15 and 200 % at 0.3."""
LARGEST_LOSS = 0.3
"""Segments lost, with time stamps: goodput is 5 % too high there, 37 % at 0.5 and twice too high at 0.7,
where timers expire in rows."""
LARGEST_LOSS_OF_ACKS = 0.2
"""Beyond it acknowledgements that are lost in a recovery count: goodput is 16 % too high at 0.3."""
MOST_SEGMENTS = 10_000
"""Of a message, each of which is laid out."""
LEAST_LOSSY_PLACES = 4
"""Places in front of a link: bursts overflow a single one, with a ninth of the goodput."""
MOST_SEGMENTS_OF_A_LOSSY_ACK = 4
"""Segments of an acknowledgement where an outside link loses packets; goodput is half too low with 16."""

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
    crossed = {hop.index for way in ways for hop in way if hop.kind == "outside"}
    lossy = any(plan.outside[i].link.loss or plan.outside[i].link.loss_back for i in crossed)
    if lossy:
        yield from _losses(s, plan)


def _losses(s: Scenario, plan: Topology) -> Iterator[Limit]:
    """Yield what the model does not cover where an outside link loses packets."""
    transport, where = s.transport, "where an outside link loses packets"
    if len(plan.flows) > 1:
        yield Limit("network.flows", s.network.flows, f"a single flow {where}")
    if s.traffic.message_bytes % transport.mss_bytes:
        available = f"whole segments of transport.mss_bytes {where}"
        yield Limit("traffic.message_bytes", s.traffic.message_bytes, available)
    yield from _window_with_loss(s)
    if transport.delayed_ack and transport.ack_every_segments > MOST_SEGMENTS_OF_A_LOSSY_ACK:
        available = f"at most {MOST_SEGMENTS_OF_A_LOSSY_ACK} {where}"
        yield Limit("transport.ack_every_segments", transport.ack_every_segments, available)
    forth, back = _lost(s, plan, transport.mss_bytes), _lost(s, plan, 0)
    if not transport.timestamps and forth > LARGEST_LOSS_WITHOUT_TIME_STAMPS:
        available = (
            f"true where more than {LARGEST_LOSS_WITHOUT_TIME_STAMPS:g} of the segments are lost, here "
            f"{forth:.2g}: Karn's rule keeps a backed-off timer, which is not modelled"
        )
        yield Limit("transport.timestamps", False, available)
    if round(forth, 9) > LARGEST_LOSS:
        available = f"at most {LARGEST_LOSS:g} of the segments lost, here {forth:.2g}"
        yield Limit("network.outside_links.loss", forth, available)
    if back > LARGEST_LOSS_OF_ACKS:
        available = f"at most {LARGEST_LOSS_OF_ACKS:g} of the acknowledgements lost, here {back:.2g}"
        yield Limit("network.outside_links.loss_back", back, available)
    for link in {hop.index: plan.outside[hop.index].link for hop in _outside(plan)}.values():
        if link.buffer_packets < LEAST_LOSSY_PLACES:
            available = f"at least {LEAST_LOSSY_PLACES} {where}: a recovery releases segments in bursts"
            yield Limit("network.outside_links.buffer_packets", link.buffer_packets, available)


def _outside(plan: Topology, *, back: bool = False) -> list[Hop]:
    """Return the hops over outside links of the first flow, or of its acknowledgements."""
    ends = (plan.flows[0].source, plan.flows[0].target)
    return [hop for hop in plan.route(*(reversed(ends) if back else ends)) if hop.kind == "outside"]


def _lost(s: Scenario, plan: Topology, user_bytes: int) -> float:
    """Return the share of the first flow's segments that outside links lose; for 0 bytes of its ACKs."""
    through, size = 1.0, user_bytes + s.transport.header_bytes
    for hop in _outside(plan, back=user_bytes == 0):
        outside = plan.outside[hop.index]
        link, forth = outside.link, hop.source == outside.source
        loss = link.loss if forth or link.loss_back is None else link.loss_back
        blocks = (
            1 if link.loss_block_bytes is None else -(-(size + link.header_bytes) // link.loss_block_bytes)
        )
        through *= (1.0 - loss) ** blocks
    return 1.0 - through


def _window_with_loss(s: Scenario) -> Iterator[Limit]:
    """Yield a window that is too small for the chain of windows, or too small to force an acknowledgement."""
    t, (flow, *_) = s.transport, flows_of(s.network)
    least = max(LEAST_WINDOW_WITH_LOSS, t.ack_every_segments if t.delayed_ack else 1)
    if (window := flow.receive_window_segments or t.receive_window_segments) < least:
        available = f"at least {least} where an outside link loses packets"
        if t.delayed_ack:
            available += ", so that no acknowledgement has to wait for its timer"
        yield Limit("transport.receive_window_segments", window, available)
