"""What the model of paths covers: greedy TCP over outside links and at most one piconet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from btqueue.network.paths.routes import loss_of, member_of, reverse, wires_lose
from btqueue.network.plain_segments import PLAIN_SENDER
from btqueue.scenario.bounds import law_of, segments_of, window_of
from btqueue.scenario.scenario import Scenario
from btqueue.scenario.scope import Limit
from btqueue.scenario.topology import Hop, Topology, topology

VARIANTS = ("tahoe", "reno", "newreno", "sack")
LARGEST_WINDOW = 1000
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
LEAST_LOSSY_PLACES = 4
"""Places in front of a link: bursts overflow a single one, with a ninth of the goodput."""
MOST_SEGMENTS_OF_A_LOSSY_ACK = 4
"""Segments of an acknowledgement where packets are lost; goodput is half too low with 16."""

PATHS: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        "network.topology": ("custom", "piconet"),
        "radio.interferers": (0,),
        "radio.colocated": (False,),
        "network.relay": ("segment",),
        "radio.model": ("perfect", "constant"),
        "link.arq": ("unlimited", "none"),
        "link.arq_feedback": ("reliable",),
        "link.flush_timeout_s": (None,),
        "link.adaptation": ("fixed",),
        "link.l2cap_delay_s": (0,),
        "link.baseband_delay_s": (0,),
        "polling.discipline": ("round-robin", "1-limited", "e-limited", "exhaustive", "fep"),
        "flow_control.enabled": (False,),
        "voice.packet": ("none",),
        "traffic.source": ("greedy",),
        "traffic.two_way": (False,),
        "transport.protocol": ("tcp",),
        "transport.variant": VARIANTS,
        **PLAIN_SENDER,
        "transport.ack_clock": ("timer",),
        "transport.ack_path": ("queued",),
        "transport.tcp_delay_s": (0,),
        "transport.ip_delay_s": (0,),
        "transport.send_buffer_segments": (None,),
    }
)


def not_paths(s: Scenario) -> Iterator[Limit]:
    """Yield what the model of paths does not cover, and no list of values can say."""
    plan = topology(s)
    routes = [plan.route(flow.source, flow.target) for flow in plan.flows]
    hops = [hop for route in routes for hop in route]
    if not any(hop.kind == "outside" for hop in hops):
        yield Limit("network.topology", s.network.topology, "flows over outside links")
    for flow in plan.flows:
        if law_of(s, flow) == "greedy" and window_of(s, flow) > LARGEST_WINDOW:
            yield Limit("transport.receive_window_segments", window_of(s, flow), f"at most {LARGEST_WINDOW}")
    for index in dict.fromkeys(hop.index for hop in hops if hop.kind == "outside"):
        if plan.outside[index].link.down_s:
            available = "a link without interruptions, down_s = 0"
            yield Limit("network.outside_links", plan.outside[index].link.name, available)
    used = {hop.index for hop in hops if hop.kind == "bluetooth"}
    if len(used) > 1:
        yield Limit("network.flows", len(used), "flows through at most one piconet")
    nodes = {node for p in used for node in (plan.piconets[p].central, *plan.piconets[p].members)}
    if any(bridge.node in nodes for bridge in plan.bridges):
        yield Limit("network.piconet_list", s.network.piconet_list, "a piconet without bridges")
    yield from _ways_of_one_kind(s, plan, routes)
    yield from _losses(s, plan, routes)


def _ways_of_one_kind(s: Scenario, plan: Topology, routes: list[tuple[Hop, ...]]) -> Iterator[Limit]:
    """Yield radio links with data in both directions, and members that take turns exhaustively."""
    ways = {hop for route in routes for hop in route if hop.kind == "bluetooth"}
    if any(hop._replace(source=hop.target, target=hop.source) in ways for hop in ways):
        yield Limit("network.flows", s.network.flows, "data in one direction of each radio link")
    members = {member_of(plan, hop) for hop in ways}
    if s.polling.discipline == "exhaustive" and len(members) > 1:
        available = "another discipline where several members carry flows"
        yield Limit("polling.discipline", "exhaustive", available)


def _losses(s: Scenario, plan: Topology, routes: list[tuple[Hop, ...]]) -> Iterator[Limit]:
    """Yield what the model does not cover where packets are lost at random."""
    if s.radio.model not in ("perfect", "constant"):
        return
    transport = s.transport
    every = transport.ack_every_segments if transport.delayed_ack else 1
    for flow, route in zip(plan.flows, routes, strict=True):
        size = max(size for size, _ in segments_of(s, flow).sizes)
        forth, back = loss_of(s, plan, route, size), loss_of(s, plan, reverse(route), 0)
        if not forth and not back:
            continue
        where = "where packets are lost at random"
        for hop in route:
            if hop.kind == "outside" and plan.outside[hop.index].link.buffer_packets < LEAST_LOSSY_PLACES:
                places = plan.outside[hop.index].link.buffer_packets
                available = f"at least {LEAST_LOSSY_PLACES} {where}: a recovery releases segments in bursts"
                yield Limit("network.outside_links.buffer_packets", places, available)
        if (window := window_of(s, flow)) < (least := max(LEAST_WINDOW_WITH_LOSS, every)):
            yield Limit("transport.receive_window_segments", window, f"at least {least} {where}")
        if every > MOST_SEGMENTS_OF_A_LOSSY_ACK:
            available = f"at most {MOST_SEGMENTS_OF_A_LOSSY_ACK} {where}"
            yield Limit("transport.ack_every_segments", every, available)
        culprit = "network.outside_links.loss" if wires_lose(plan, route) else "radio.model"
        if not transport.timestamps and forth > LARGEST_LOSS_WITHOUT_TIME_STAMPS:
            available = (
                f"true where more than {LARGEST_LOSS_WITHOUT_TIME_STAMPS:g} of the segments are lost, here "
                f"{forth:.2g}: Karn's rule keeps a backed-off timer, which is not modelled"
            )
            yield Limit("transport.timestamps", False, available)
        if round(forth, 9) > LARGEST_LOSS:
            yield Limit(culprit, forth, f"at most {LARGEST_LOSS:g} of the segments lost, here {forth:.2g}")
        if back > LARGEST_LOSS_OF_ACKS:
            culprit = culprit.replace(".loss", ".loss_back")
            available = f"at most {LARGEST_LOSS_OF_ACKS:g} of the acknowledgements lost, here {back:.2g}"
            yield Limit(culprit, back, available)
