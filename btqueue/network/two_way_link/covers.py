"""What the model `two_way_link` covers: TCP without loss between a central and its only peripheral."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from btqueue.baseband import PACKET_TYPES, SLOT_S, segment
from btqueue.network.plain_segments import one_segment_a_message, window_up_to
from btqueue.scenario.scenario import Scenario
from btqueue.scenario.scope import Limit

MOST_PACKETS = 12
"""Packets of a segment, up to which its states are listed."""
LARGEST_WINDOW = 64
"""Segments, up to which the states of a window are listed."""
LARGEST_ERROR_RATE = 0.8
"""Packets lost: the largest share at which the model was measured."""

TWO_WAY_LINK: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        "network.topology": ("piconet",),
        "network.peripherals": (1,),
        "network.flows": ("downlink", "uplink"),
        "radio.model": ("perfect", "constant"),
        "radio.links": ((),),
        "radio.interferers": (0,),
        "radio.colocated": (False,),
        "link.arq": ("unlimited",),
        "link.arq_feedback": ("reliable",),
        "link.flush_timeout_s": (None,),
        "link.adaptation": ("fixed",),
        "flow_control.enabled": (False,),
        "flow_control.central_buffer_packets": (None,),
        "polling.discipline": ("exhaustive", "e-limited", "1-limited", "round-robin"),
        "voice.packet": ("none",),
        "traffic.source": ("greedy", "poisson", "ibp"),
        "transport.protocol": ("tcp",),
        "transport.vegas_adjustment": ("per-ack",),
        "transport.window_limited_growth": (False,),
        "transport.ack_path": ("queued",),
        "transport.send_buffer_segments": (None,),
        "run.jitter_s": (0,),
    }
)
"""One link with ARQ (Johansson 2000)."""


def not_two_way_link(s: Scenario) -> Iterator[Limit]:
    """Yield what the model of one link does not cover, and no list of values can say."""
    network, traffic, transport = s.network, s.traffic, s.transport
    if network.active_flows not in ("all", 1):
        yield Limit("network.active_flows", network.active_flows, '"all"')
    if network.outside_links:
        yield Limit("network.outside_links", len(network.outside_links), "no outside links")
    yield from one_segment_a_message(s)
    if transport.delayed_ack and transport.ack_every_segments > 2:
        yield Limit("transport.ack_every_segments", transport.ack_every_segments, "1 or 2")
    held = any(delay_s for _, delay_s in _layers(s))
    if transport.receive_window_segments == 1 and not transport.delayed_ack and (traffic.two_way or not held):
        available = "at least 2: a segment that is alone shares no frame, and answers are 5 to 10 % low"
        yield Limit("transport.receive_window_segments", 1, available)
    if traffic.source != "greedy" and not (traffic.two_way or held or s.link.node_buffer_bytes):
        # round trips came out 3 % low at light loads, and 8 % at medium ones; 1 and 2 % there
        available = '"greedy", data both ways, layers that take time or a buffer of nodes'
        yield Limit("traffic.source", traffic.source, available)
    if transport.delayed_ack and transport.min_rto_s < 2.0 * transport.ack_delay_s:
        available = "at least twice transport.ack_delay_s, so that no segment times out in its receiver"
        yield Limit("transport.min_rto_s", transport.min_rto_s, available)
    if transport.delayed_ack and transport.receive_window_segments < transport.ack_every_segments:
        available = (
            f"at least transport.ack_every_segments = {transport.ack_every_segments}: with less in flight "
            "every acknowledgement waits for its timer"
        )
        yield Limit("transport.receive_window_segments", transport.receive_window_segments, available)
    yield from window_up_to(s, LARGEST_WINDOW)
    per = s.radio.per if s.radio.model == "constant" else None
    if per is not None and per > LARGEST_ERROR_RATE:
        yield Limit("radio.per", per, f"at most {LARGEST_ERROR_RATE}")
    yield from _no_overflow(s)


def _layers(s: Scenario) -> tuple[tuple[str, float], ...]:
    """Return the delays in the layers of a host (s), by key."""
    return (
        ("link.l2cap_delay_s", s.link.l2cap_delay_s),
        ("link.baseband_delay_s", s.link.baseband_delay_s),
        ("transport.tcp_delay_s", s.transport.tcp_delay_s),
        ("transport.ip_delay_s", s.transport.ip_delay_s),
    )


def fast_layers(s: Scenario, frame: int) -> Iterator[Limit]:
    """Yield a layer of the hosts that is slower than the air: segments pass it one after the other."""
    types = [PACKET_TYPES[name] for name in s.link.packets]
    air_s = sum(piece.packet.slots + 1 for piece in segment(frame, types, s.link.segmentation)) * SLOT_S
    for key, delay_s in _layers(s):
        if delay_s > air_s:
            available = f"at most {air_s:g}, the time of a segment on the air: layers are no bottleneck here"
            yield Limit(key, delay_s, available)


def _no_overflow(s: Scenario) -> Iterator[Limit]:
    """Yield buffers that could lose a segment. Vegas keeps few segments on the way, others a window."""
    transport, link = s.transport, s.link
    frame = s.traffic.message_bytes + transport.header_bytes + link.l2cap_header_bytes
    packets = len(segment(frame, [PACKET_TYPES[name] for name in link.packets], link.segmentation))
    if packets > MOST_PACKETS:
        yield Limit("link.packets", link.packets, f"at most {MOST_PACKETS} packets for a segment")
    yield from fast_layers(s, frame)
    least = 2 if transport.variant == "vegas" else transport.receive_window_segments
    if link.node_buffer_bytes is not None and link.node_buffer_bytes < (least + 1) * frame:
        available = (
            f"at least {(least + 1) * frame}, a window and its acknowledgements: the model loses nothing"
        )
        yield Limit("link.node_buffer_bytes", link.node_buffer_bytes, available)
    upward = s.traffic.two_way or s.network.flows == "uplink"
    if upward and s.flow_control.places[1] < least * packets:
        available = f"at least {least * packets}, a window of packets: the model loses nothing"
        yield Limit("flow_control.baseband_packets", s.flow_control.baseband_packets, available)
