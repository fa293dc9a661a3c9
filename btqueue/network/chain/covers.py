"""What the model of chains covers: greedy NewReno from end to end over hops that repeat without limit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from btqueue.scenario.scenario import Scenario
from btqueue.scenario.scope import Limit

LARGEST_WINDOW_OF_A_CHAIN = 64
LARGEST_EXCHANGE = 20
"""Most frames of an exchange: longer ones leave the queues of bridges empty, which the model does not see."""

CHAIN: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        "network.topology": ("chain",),
        "network.flows": ("end-to-end",),
        "network.active_flows": ("all", 1),
        "network.outside_links": ((),),
        "radio.model": ("perfect", "constant", "alternating", "trace"),
        "radio.links": ((),),
        "radio.interferers": (0,),
        "radio.colocated": (False,),
        "link.arq": ("unlimited",),
        "link.arq_feedback": ("reliable",),
        "link.flush_timeout_s": (None,),
        "link.quality_memory_s": (0,),
        "link.l2cap_delay_s": (0,),
        "link.baseband_delay_s": (0,),
        "flow_control.enabled": (False,),
        "flow_control.central_buffer_packets": (None,),
        "polling.bridge_schedule": ("walk-in",),
        "polling.residence": ("visit",),
        "polling.bridge_patience_s": (0,),
        "polling.switch_delay": (False,),
        "voice.packet": ("none",),
        "traffic.source": ("greedy",),
        "traffic.two_way": (False,),
        "traffic.start_s": (0,),
        "transport.protocol": ("tcp",),
        "transport.variant": ("newreno",),
        "transport.clock_granularity_s": (0,),
        "transport.limited_transmit": (False,),
        "transport.rate_reduction": (False,),
        "transport.window_limited_growth": (False,),
        "transport.hold_ssthresh": (False,),
        "transport.handshake": (False,),
        "transport.delayed_ack": (False,),
        "transport.timestamps": (True,),
        "transport.ack_path": ("queued",),
        "transport.tcp_delay_s": (0,),
        "transport.ip_delay_s": (0,),
        "transport.send_buffer_segments": (None,),
        "run.jitter_s": (0,),
    }
)
"""A chain of hops with gateway peripherals (Chen 2004)."""


def not_a_chain(s: Scenario) -> Iterator[Limit]:
    """Yield what the model of chains does not cover, and no list of values can say."""
    if s.traffic.message_bytes > s.transport.mss_bytes:
        available = f"at most transport.mss_bytes = {s.transport.mss_bytes}, one segment for each message"
        yield Limit("traffic.message_bytes", s.traffic.message_bytes, available)
    window = s.transport.receive_window_segments
    if window > LARGEST_WINDOW_OF_A_CHAIN:
        available = f"at most {LARGEST_WINDOW_OF_A_CHAIN}"
        yield Limit("transport.receive_window_segments", window, available)
    one_hop = s.network.topology == "chain" and s.network.hops == 1
    disciplines = ("exhaustive", "e-limited", "1-limited") if one_hop else ("exhaustive",)
    if s.polling.discipline not in disciplines:
        yield Limit("polling.discipline", s.polling.discipline, " or ".join(disciplines))
    yield from _packets_in_the_way(s, window)
    if s.network.hops > 1:
        yield from _gateways(s, window)


def _packets_in_the_way(s: Scenario, window: int) -> Iterator[Limit]:
    """Yield limits in packets: only the bytes of a node may limit what it holds."""
    most = _packets_of(s, window)
    if s.flow_control.baseband_packets < most:
        available = f"at least {most}, a window's packets: bytes are the only limit of a node"
        yield Limit("flow_control.baseband_packets", s.flow_control.baseband_packets, available)
    buffer = s.polling.bridge_buffer_packets
    if s.network.hops > 2 and (buffer is None or buffer < most):
        yield Limit("polling.bridge_buffer_packets", buffer, f"at least {most}, a window's packets")
    node = s.link.node_buffer_bytes
    if node is not None and node < 4 * _segment_bytes(s):
        yield Limit("link.node_buffer_bytes", node, f"at least {4 * _segment_bytes(s)}, four segments")


def _gateways(s: Scenario, window: int) -> Iterator[Limit]:
    """Yield what the gateways between piconets may not be."""
    if s.network.bridge != "SS":
        yield Limit("network.bridge", s.network.bridge, '"SS", gateways that are peripherals')
    if s.network.hops < 3:
        return
    frames = s.polling.bridge_limit or s.polling.limit
    key = "limit" if s.polling.bridge_limit is None else "bridge_limit"
    if frames > LARGEST_EXCHANGE:
        yield Limit(f"polling.{key}", frames, f"exchanges of at most {LARGEST_EXCHANGE} frames")
    if s.link.adaptation == "fixed":
        yield Limit("link.adaptation", "fixed", '"thresholds" or "best" where there are gateways')


def _segment_bytes(s: Scenario) -> int:
    payload = min(s.transport.mss_bytes, s.traffic.message_bytes)
    return payload + s.transport.header_bytes + s.link.l2cap_header_bytes


def _packets_of(s: Scenario, window: int) -> int:
    """Return the most packets in a window: an adapted segment counts as one until it is sent."""
    if s.link.adaptation != "fixed":
        return window
    from btqueue.baseband import packet_types, segment

    return window * len(segment(_segment_bytes(s), packet_types(s.link.packets), s.link.segmentation))
