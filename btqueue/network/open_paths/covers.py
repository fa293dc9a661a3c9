"""What the model of loads over outside links covers: a piconet's model behind wires that lose nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from btqueue.network.open_paths.reduced import in_one_stretch, on_air, reduced, routes_of
from btqueue.network.piconet.covers import PICONET, given_up, not_a_piconet
from btqueue.scenario.bounds import segments_of
from btqueue.scenario.scenario import Scenario
from btqueue.scenario.scope import Limit, Scope, problems_of
from btqueue.scenario.topology import topology

OPEN_PATHS: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        "network.topology": ("custom", "piconet"),
        "radio.colocated": (False,),
        "link.l2cap_delay_s": (0,),
        "link.baseband_delay_s": (0,),
        "link.flush_timeout_s": (None,),
        "link.node_buffer_bytes": (None,),
        "flow_control.enabled": (False,),
        "traffic.source": ("poisson", "ibp", "periodic"),
        "traffic.start_s": (0,),
        "traffic.application_timeout_s": (None,),
        "transport.protocol": ("tcp", "none"),
        "transport.variant": ("tahoe", "reno", "newreno", "sack"),
        "transport.connection_per_session": (False,),
        "transport.piggyback": (False,),
        "transport.ack_path": ("queued",),
        "transport.tcp_delay_s": (0,),
        "transport.ip_delay_s": (0,),
        "transport.send_buffer_segments": (None,),
    }
)


def not_open_paths(s: Scenario) -> Iterator[Limit]:
    """Yield what the model does not cover, and no list of values can say."""
    plan = topology(s)
    routes = routes_of(plan)
    hops = {hop for route in routes for hop in route}
    wires = dict.fromkeys(hop.index for hop in hops if hop.kind == "outside")
    if not wires:
        yield Limit("network.topology", s.network.topology, "flows over outside links")
        return
    for link in (plan.outside[index].link for index in wires):
        if link.down_s:
            yield Limit("network.outside_links", link.name, "a link without interruptions, down_s = 0")
        if link.loss or link.loss_back:
            culprit = "loss" if link.loss else "loss_back"
            available = "0, or greedy sources"
            yield Limit(f"network.outside_links.{culprit}", link.loss or link.loss_back, available)
    used = {hop.index for hop in hops if hop.kind == "bluetooth"}
    if len(used) > 1 or not all(in_one_stretch(route) for route in routes):
        yield Limit("network.flows", len(used), "flows that cross at most one piconet, and once")
        return
    nodes = {node for p in used for node in (plan.piconets[p].central, *plan.piconets[p].members)}
    if any(bridge.node in nodes for bridge in plan.bridges):
        yield Limit("network.piconet_list", s.network.piconet_list, "a piconet without bridges")
        return
    if any(on_air(route) and on_air(route)[0].source == on_air(route)[-1].target for route in routes):
        yield Limit("network.flows", len(routes), "flows between two devices")
        return
    for flow in plan.flows:
        if s.of_flow(flow.spec).traffic.source != "request-reply" and not segments_of(s, flow).alike:
            available = f"at most transport.mss_bytes = {s.transport.mss_bytes}, or a multiple of it"
            yield Limit("traffic.message_bytes", s.of_flow(flow.spec).traffic.message_bytes, available)
            return
    if used and given_up(s):
        yield Limit("link.arq", s.link.arq, '"unlimited" on a radio with errors')
        return
    if (alone := reduced(s)) is not None:
        of_the_piconet = Scope("the piconet", PICONET, not_a_piconet)
        for problem in problems_of(of_the_piconet, alone.scenario):
            yield Limit(problem.key, problem.value, problem.allowed)
