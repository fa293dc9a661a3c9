"""What the model `request_reply` covers: one connection over outside links and a Bluetooth hop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from btqueue.network.plain_segments import PLAIN_SENDER
from btqueue.network.whole_segments import not_one_at_a_time
from btqueue.scenario.bounds import window_of
from btqueue.scenario.scenario import Scenario
from btqueue.scenario.scope import Limit
from btqueue.scenario.topology import Hop, Topology, topology

REQUEST_REPLY: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        "traffic.source": ("request-reply",),
        "traffic.application_timeout_s": (None,),
        "transport.protocol": ("tcp", "centaurus"),
        **PLAIN_SENDER,
        "transport.ack_clock": ("timer",),
        "transport.piggyback": (False,),
        "transport.ack_path": ("queued",),
        "transport.tcp_delay_s": (0,),
        "transport.ip_delay_s": (0,),
        "transport.centaurus_start": ("peer",),
        "transport.send_buffer_segments": (None,),
        "link.l2cap_delay_s": (0,),
        "link.baseband_delay_s": (0,),
        "network.relay": ("segment",),
        "radio.model": ("perfect", "constant"),
        "radio.links": ((),),
        "radio.interferers": (0,),
        "radio.colocated": (False,),
        "link.arq": ("unlimited", "none"),
        "link.arq_feedback": ("reliable",),
        "link.flush_timeout_s": (None,),
        "link.adaptation": ("fixed",),
        "link.node_buffer_bytes": (None,),
        "flow_control.enabled": (False,),
        "flow_control.central_buffer_packets": (None,),
        "polling.discipline": ("round-robin", "1-limited", "e-limited", "exhaustive"),
        "voice.packet": ("none",),
    }
)
"""Request-reply sessions, with at most one Bluetooth hop."""

MOST_SEGMENTS = 1000
MOST_LOSSY_SEGMENTS = 64
MOST_PACKETS = 512
MOST_SEGMENTS_OF_AN_ACK = 2
"""With more, segments that are left over wait for those of the next session; the model has them wait for the
timer, and its goodput is up to 90 % too low."""


def not_request_reply(s: Scenario) -> Iterator[Limit]:
    """Yield what the model of sessions does not cover, and no list of values can say."""
    if s.traffic.source != "request-reply":
        return
    plan = topology(s)
    if len(plan.flows) > 2 and s.transport.protocol == "centaurus":
        yield Limit("transport.protocol", "centaurus", '"tcp", or one connection between two nodes')
        return
    if len(plan.flows) != 2 or plan.flows[0].source == plan.flows[0].target:
        yield Limit("network.flows", s.network.flows, "one connection between two nodes")
        return
    spec = plan.flows[0].spec
    if spec is not None and spec.law not in (None, "request-reply"):
        yield Limit("network.flows", spec.law, "the law of [traffic] for the connection")
    route = plan.route(plan.flows[0].source, plan.flows[0].target)
    on_air = [hop for hop in route if hop.kind == "bluetooth"]
    if len(on_air) > 1:
        yield Limit("network.flows", s.network.flows, "a way over at most one Bluetooth hop")
        return
    yield from not_one_at_a_time(s)
    if on_air:
        yield from _uncovered_piconet(s, plan, on_air[0])
    yield from _uncovered_links(s, plan, route)
    yield from _uncovered_transport(s, plan, route, spec.variant if spec is not None else None)


def _uncovered_piconet(s: Scenario, plan: Topology, hop: Hop) -> Iterator[Limit]:
    piconet = plan.piconets[hop.index]
    members = {piconet.central, *piconet.members}
    if any(bridge.node in members for bridge in plan.bridges):
        yield Limit("network.piconet_list", piconet.name, "a piconet without bridges on the way of a session")
    one_frame = s.polling.discipline in ("round-robin", "1-limited") or s.polling.limit == 1
    if len(piconet.members) > 1 and not one_frame:
        available = '"round-robin" if the piconet has other peripherals'
        yield Limit("polling.discipline", s.polling.discipline, available)


def _uncovered_links(s: Scenario, plan: Topology, route: tuple[Hop, ...]) -> Iterator[Limit]:
    for hop in route:
        if hop.kind == "outside":
            link = plan.outside[hop.index].link
            if link.down_s:
                yield Limit("network.outside_links.down_s", link.down_s, "0, no interruptions")
            if s.transport.protocol == "tcp" and 1.0 in (link.loss, link.loss_back):
                yield Limit("network.outside_links.loss", 1.0, "less than 1, so that sessions end")
            if link.jitter_s:
                yield Limit("network.outside_links.jitter_s", link.jitter_s, "0, a fixed delay")


def _uncovered_transport(
    s: Scenario, plan: Topology, route: tuple[Hop, ...], own_variant: str | None
) -> Iterator[Limit]:
    links = [plan.outside[hop.index].link for hop in route if hop.kind == "outside"]
    lossy = any(link.loss or link.loss_back for link in links) or (
        s.link.arq == "none" and s.radio.model != "perfect" and any(hop.kind == "bluetooth" for hop in route)
    )
    centaurus = s.transport.protocol == "centaurus"
    size = s.transport.centaurus_packet_bytes if centaurus else s.transport.mss_bytes
    count = {
        f"traffic.{name}": -(-getattr(s.traffic, name) // size)
        for name in ("request_bytes", "reply_bytes", "goodbye_bytes")
    }
    most = MOST_PACKETS if centaurus else MOST_LOSSY_SEGMENTS if lossy else MOST_SEGMENTS
    for key, segments in count.items():
        if segments > most:
            name = key.partition(".")[2]
            available = f"at most {most} segments of {size} bytes{' with losses' if lossy else ''}"
            yield Limit(key, getattr(s.traffic, name), available)
    # What may be in a buffer at once: a message and what goes with it, or what the window lets out, twice.
    largest = max(count.values()) + count["traffic.goodbye_bytes"]
    window = window_of(s, plan.flows[0])
    need = largest + 3 if centaurus else 2 * min(window, largest) + 1
    if not centaurus and s.transport.delayed_ack and s.transport.ack_every_segments > MOST_SEGMENTS_OF_AN_ACK:
        available = f"at most {MOST_SEGMENTS_OF_AN_ACK}"
        yield Limit("transport.ack_every_segments", s.transport.ack_every_segments, available)
    if any(hop.kind == "bluetooth" for hop in route):
        if centaurus and s.transport.centaurus_worker_s:
            available = "0, packets handed over at once, where the way takes a Bluetooth hop"
            yield Limit("transport.centaurus_worker_s", s.transport.centaurus_worker_s, available)
        smallest = s.flow_control.places[1]
        # the smallest packet that a segment may be cut into carries 17 bytes
        if smallest < need * -(-(size + 100) // 300):
            available = f"more than a window or message of {need} segments"
            yield Limit("flow_control.baseband_packets", smallest, available)
    tight = any(link.buffer_packets < need for link in links)
    if centaurus and tight:
        packet = size + 28 + s.transport.centaurus_header_bytes
        busy = sum(8 * (packet + link.header_bytes) / (1000 * link.rate_kbps) for link in links)
        if s.transport.centaurus_worker_s < busy:
            available = f"a buffer for {need} packets, or a worker slower than the links ({busy:.3g} s)"
            yield Limit("transport.centaurus_worker_s", s.transport.centaurus_worker_s, available)
    variant = own_variant or s.transport.variant
    if not centaurus and variant != "newreno" and (lossy or tight or variant == "vegas"):
        yield Limit("transport.variant", variant, '"newreno" where segments are lost')
