"""What the model of chains covers: a greedy connection from end to end over hops with endless repetition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from btqueue.network.plain_segments import PLAIN_SENDER, fast_layers, one_segment_a_message, window_up_to
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
        "transport.variant": ("tahoe", "reno", "newreno", "sack"),
        **PLAIN_SENDER,
        "transport.delayed_ack": (False,),
        "transport.timestamps": (True,),
        "transport.ack_path": ("queued",),
        "transport.send_buffer_segments": (None,),
        "run.jitter_s": (0,),
    }
)
"""A chain of hops with gateway peripherals (Chen 2004)."""


def not_a_chain(s: Scenario) -> Iterator[Limit]:
    """Yield what the model of chains does not cover, and no list of values can say."""
    if s.network.topology != "chain":
        return
    yield from one_segment_a_message(s)
    window, hops = s.transport.receive_window_segments, s.network.hops
    yield from window_up_to(s, LARGEST_WINDOW_OF_A_CHAIN)
    disciplines = ("exhaustive", "e-limited", "1-limited") if hops == 1 else ("exhaustive", "e-limited")
    if s.polling.discipline not in disciplines:
        yield Limit("polling.discipline", s.polling.discipline, " or ".join(disciplines))
    yield from fast_layers(s, _segment_bytes(s))
    yield from _packets_in_the_way(s, window)
    yield from _overflow(s, window)
    if hops > 1 and s.network.bridge != "SS":
        yield Limit("network.bridge", s.network.bridge, '"SS", gateways that are peripherals')
    frames = exchange_frames(s)
    if hops > 2 and frames > LARGEST_EXCHANGE:
        key = "limit" if s.polling.bridge_limit is None else "bridge_limit"
        yield Limit(f"polling.{key}", frames, f"exchanges of at most {LARGEST_EXCHANGE} frames")


def exchange_frames(s: Scenario) -> int:
    """Return the most frames of an exchange with a bridge."""
    return s.polling.bridge_limit or s.polling.limit


def _packets_in_the_way(s: Scenario, window: int) -> Iterator[Limit]:
    """Yield limits in packets: only the bytes of a node may limit what it holds."""
    most = _packets_of(s, window)
    if s.flow_control.places[1] < most:
        available = f"at least {most}, a window's packets: bytes are the only limit of a node"
        yield Limit("flow_control.baseband_packets", s.flow_control.baseband_packets, available)
    buffer = s.polling.bridge_buffer_packets
    if s.network.hops > 2 and not _passed_whole(s) and (buffer is None or buffer < most):
        yield Limit("polling.bridge_buffer_packets", buffer, f"at least {most}, a window's packets")


def _passed_whole(s: Scenario) -> bool:
    """Whether an exchange is whole segments, of which nothing is left at the bridge when it comes back."""
    frames, packets = exchange_frames(s), _packets_of(s, 1)
    radio = s.radio
    certain = radio.model == "perfect" or (radio.model == "constant" and not (radio.per or radio.ber))
    room = s.polling.bridge_buffer_packets or s.polling.limit
    fixed = s.link.adaptation == "fixed"
    return certain and fixed and frames % packets == 0 and room >= frames


def _overflow(s: Scenario, window: int) -> Iterator[Limit]:
    """Yield what is not known of a window that overflows a node."""
    node, size = s.link.node_buffer_bytes, _segment_bytes(s)
    if node is None or window <= node // size:
        return
    if node < 4 * size:
        yield Limit("link.node_buffer_bytes", node, f"at least {4 * size}, four segments")
    if s.transport.variant != "newreno":
        yield Limit("transport.variant", s.transport.variant, '"newreno" where a window overflows a node')
    if s.network.hops == 2 and s.polling.discipline != "exhaustive":
        available = '"exhaustive" over two hops where a window overflows a node'
        yield Limit("polling.discipline", s.polling.discipline, available)


def _segment_bytes(s: Scenario) -> int:
    payload = min(s.transport.mss_bytes, s.traffic.message_bytes)
    return payload + s.transport.header_bytes + s.link.l2cap_header_bytes


def _packets_of(s: Scenario, window: int) -> int:
    """Return the most packets in a window: an adapted segment counts as one until it is sent."""
    if s.link.adaptation != "fixed":
        return window
    from btqueue.baseband import packet_types, segment

    return window * len(segment(_segment_bytes(s), packet_types(s.link.packets), s.link.segmentation))
