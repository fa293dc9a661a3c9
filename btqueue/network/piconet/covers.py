"""What the solver's queueing model of a piconet covers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from btqueue.baseband import packet_types, segment
from btqueue.network.plain_segments import (
    PLAIN,
    not_plain_segments,
    own_keys,
)
from btqueue.network.two_way_link.covers import fast_layers
from btqueue.scenario.description import description, has_errors
from btqueue.scenario.errors import shown
from btqueue.scenario.flow_patterns import active_flows, ring
from btqueue.scenario.scope import Limit

if TYPE_CHECKING:
    from btqueue.scenario.scenario import Scenario

PICONET: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        **PLAIN,
        "network.topology": ("piconet", "custom", "chain"),
        "radio.model": ("perfect", "constant", "gilbert-elliott", "alternating"),
        "voice.packet": ("none", "HV1", "HV2", "HV3"),
        "traffic.source": ("poisson", "ibp", "periodic", "greedy"),
        "transport.protocol": ("tcp", "none"),
        "transport.rto_backoff": (True, False),
    }
)
"""An access point and its clients, a master and its sensors, peripherals that send to each other."""

OF_CONNECTIONS = (
    "traffic.message_bytes",
    "transport.receive_window_segments",
    "transport.initial_window_segments",
)
"""Limits of models that follow connections, which are none of this one, or others."""
LARGEST_WINDOW = 1000
"""Segments; windows are customers of closed networks, which are counted to about as many."""
LEAST_KBPS = 1e-6
"""Rate that counts as one."""
MOST_PLACES = 1000
"""Packets that bucket and token buffer hold together: their chain has as many states, and takes seconds."""

WHERE_LOST: Mapping[str, object] = MappingProxyType(
    {
        "transport.variant": "newreno",
        "transport.delayed_ack": False,
        "transport.timestamps": True,
        "transport.rto_backoff": True,
        "transport.clock_granularity_s": 0,
        "transport.limited_transmit": False,
        "transport.rate_reduction": False,
        "transport.window_limited_growth": False,
        "transport.hold_ssthresh": False,
    }
)
"""Keys that matter where segments can be lost, and what they may be where a buffer can overflow."""

IN_LAW = ("transport.variant", "transport.timestamps", "transport.rto_backoff", "transport.delayed_ack")
"""Those of which TCP's law on a lossy radio knows all values, but for Vegas."""
IN_PAIRS = 2
"""Segments of a delayed acknowledgement in that law."""

BUSIEST_FIRST = ("exhaustive", "gated", "fep", "slq", "ldq")
"""Disciplines under which a flow that always has data keeps the central from all others, or nearly."""

LARGEST_IN_PAIRS = 8
"""Segments of the largest window in that law with delayed acknowledgements."""
LEAST_ROOM = 4
"""Segments, one lost and three behind it. With fewer, connections live by timeouts, and the model is off by a
factor of two."""


def not_a_piconet(s: Scenario) -> Iterator[Limit]:
    """Yield what the model does not cover, and no list of values can say."""
    network = s.network
    if network.topology not in PICONET["network.topology"]:
        return
    yield from (limit for limit in not_plain_segments(s) if limit.key not in OF_CONNECTIONS)
    if len(network.piconet_names) != 1:
        if network.topology == "chain":
            yield Limit("network.topology", "chain", '"piconet" or "custom", or a chain of at most two hops')
        yield Limit("network.piconet_list", len(network.piconet_names), "one piconet")
        return
    yield from _only_rings(s)
    yield from _relays(s)
    yield from _voice(s)
    yield from _flushes(s)
    yield from own_keys(s, ("traffic.message_bytes",))
    yield from _ends(s)
    yield from _polling(s)
    yield from _sources(s)
    yield from _layers(s)
    yield from _room(s)


def is_plain_ring(s: Scenario) -> bool:
    """Whether one tagged connection may stand for all of a ring (`btqueue.network.stations.tagged`).

    All stations are alike, and each sends to the next one by TCP NewReno. The radio loses nothing, or the
    link repeats nothing.
    """
    network, control, flows = s.network, s.flow_control, active_flows(s.network)
    if s.transport.protocol != "tcp" or len(network.piconet_names[0].members) < 2:
        return False
    delays = (s.transport.tcp_delay_s, s.transport.ip_delay_s, s.link.l2cap_delay_s, s.link.baseband_delay_s)
    own = {(flow.law, flow.load_kbps, flow.variant, flow.receive_window_segments) for flow in flows}
    as_usual = {**WHERE_LOST, "transport.rto_backoff": s.transport.rto_backoff}
    return (
        sorted((flow.source, flow.target) for flow in flows) == sorted(ring(network))
        and len(own) == 1
        and (not is_lossy(s) or s.link.arq == "none")
        and s.voice.packet == "none"
        and network.relay == "packet"
        and s.polling.discipline in ("e-limited", "1-limited", "round-robin", "exhaustive")
        and (flows[0].law or s.traffic.source) in ("poisson", "greedy")
        and _packets(s)[1] == 1
        and (control.enabled or control.drop == "packet")
        and control.central_buffer_packets is None
        and not any(delays)
        and all(one.value == as_usual.get(one.kind, one.value) for one in description(s).traits)
    )


def _only_rings(s: Scenario) -> Iterator[Limit]:
    """Yield what is covered in a plain ring only."""
    if is_plain_ring(s):
        return
    if s.flow_control.drop == "segment":
        yield Limit("flow_control.drop", "segment", '"packet" but in a ring of flows that are alike')
    if s.radio.model == "alternating" and s.link.arq == "none" and s.transport.protocol == "tcp":
        available = '"perfect", "constant" or "gilbert-elliott" with TCP and without ARQ'
        yield Limit("radio.model", s.radio.model, available)


def _ends(s: Scenario) -> Iterator[Limit]:
    """Yield rates and buffers beyond what the chains of the model hold."""
    control, poisson = (
        s.flow_control,
        bool({"poisson", "ibp", "periodic"} & {f.law or s.traffic.source for f in active_flows(s.network)}),
    )
    rates = {"traffic.load_kbps": (poisson, s.traffic.load_kbps)}
    rates["flow_control.token_rate_kbps"] = (control.enabled, control.token_rate_kbps)
    for key, (used, rate) in rates.items():
        if used and rate < LEAST_KBPS:
            yield Limit(key, rate, f"at least {LEAST_KBPS:g}")
    saved = control.bucket_bytes / min(packet.payload_bytes for packet in packet_types(s.link.packets))
    if control.enabled and saved + control.buffer_packets > MOST_PLACES:
        key = "bucket_bytes" if saved > control.buffer_packets else "buffer_packets"
        available = f"a bucket and a buffer of at most {MOST_PLACES} packets together"
        yield Limit(f"flow_control.{key}", getattr(control, key), available)


def _polling(s: Scenario) -> Iterator[Limit]:
    """Yield disciplines that are not covered with these flows."""
    network, discipline = s.network, s.polling.discipline
    flows, several = active_flows(network), len(network.piconet_names[0].members) > 1
    own = [flow.law or s.traffic.source for flow in flows]
    if discipline in BUSIEST_FIRST and several and "greedy" in own:
        available = "another one: a flow that always has data keeps the central from all others"
        yield Limit("polling.discipline", discipline, available)
    central = network.piconet_names[0].central
    if discipline == "fep" and any(central not in (flow.source, flow.target) for flow in flows):
        yield Limit("polling.discipline", discipline, "another one where flows pass through the central")


def _sources(s: Scenario) -> Iterator[Limit]:
    """Yield what sources and acknowledgements may not be."""
    traffic, transport, flows = s.traffic, s.transport, active_flows(s.network)
    size, segment_bytes = traffic.message_bytes, transport.mss_bytes
    if size > segment_bytes and (transport.protocol == "none" or size % segment_bytes):
        available = f"at most transport.mss_bytes = {segment_bytes}, or with TCP a multiple of it"
        yield Limit("traffic.message_bytes", size, available)
    warmup = 0.0 if s.run.warmup_s == "auto" else s.run.warmup_s
    own = [flow.law or traffic.source for flow in flows]
    if own.count("periodic") > 1 and traffic.phase == "aligned":
        yield Limit("traffic.phase", "aligned", '"random" with several periodic flows')
    least = 2.0 * transport.ack_delay_s
    if transport.delayed_ack and transport.protocol == "tcp" and transport.min_rto_s < least:
        available = (
            f"at least {least:g}, twice transport.ack_delay_s, so that no segment times out in its receiver"
        )
        yield Limit("transport.min_rto_s", transport.min_rto_s, available)
    for one in description(s).traits:
        if one.kind == "transport.receive_window_segments" and one.value > LARGEST_WINDOW:
            yield Limit(one.key, one.value, f"at most {LARGEST_WINDOW}")
        if one.kind == "traffic.start_s" and one.value > warmup:
            yield Limit(one.key, one.value, f"at most run.warmup_s = {warmup:g}")


def _flushes(s: Scenario) -> Iterator[Limit]:
    """Yield a flush timeout on a radio whose bad times are longer than what it knows of queues."""
    changing = s.radio.per is None and s.radio.model in ("gilbert-elliott", "alternating")
    if s.link.flush_timeout_s is not None and changing:
        yield Limit(
            "link.flush_timeout_s",
            s.link.flush_timeout_s,
            "a scenario without this key on a radio that changes",
        )


def _voice(s: Scenario) -> Iterator[Limit]:
    """Yield packets of several slots beside voice links, where two of them would share a frame."""
    if not fills_gaps(s):
        return
    central = s.network.piconet_names[0].central
    ways = {flow.source == central for flow in active_flows(s.network)}
    if _relayed(s) or len(ways) > 1 or s.traffic.two_way:
        available = "types of one slot beside voice links, or data of all flows up, or of all down"
        yield Limit("link.packets", s.link.packets, available)


def fills_gaps(s: Scenario) -> bool:
    """Whether a packet and its answer take all that voice links leave free in a row."""
    return s.voice.packet != "none" and any(packet.slots > 1 for packet in packet_types(s.link.packets))


def _layers(s: Scenario) -> Iterator[Limit]:
    """Yield delays in hosts that are queues of their own, or that the central has as well."""
    yield from fast_layers(s, s.traffic.message_bytes + s.transport.header_bytes + s.link.l2cap_header_bytes)
    if s.link.baseband_delay_s and _relayed(s):
        yield Limit(
            "link.baseband_delay_s", s.link.baseband_delay_s, "0 where flows pass through the central"
        )


def _packets(s: Scenario) -> tuple[int, int]:
    """Return the packets of the longest segment, and of its acknowledgement."""
    headers, types = s.link.l2cap_header_bytes + s.transport.header_bytes, packet_types(s.link.packets)
    longest = s.traffic.message_bytes
    if s.transport.protocol == "tcp":
        longest = min(longest, s.transport.mss_bytes)
    data, ack = (len(segment(size, types, s.link.segmentation)) for size in (longest + headers, headers))
    return data, ack


def _window(s: Scenario) -> int:
    """Return the largest window of a flow (segments)."""
    shared = s.transport.receive_window_segments
    return max(flow.receive_window_segments or shared for flow in active_flows(s.network))


def _queues(s: Scenario) -> Iterator[tuple[str, int]]:
    """Yield the keys of the queues of limited size that data pass, and their places (packets)."""
    central = s.network.piconet_names[0].central
    for down, name in ((True, "central_buffer_packets"), (False, "baseband_packets")):
        places = getattr(s.flow_control, name)
        used = any((flow.target if down else flow.source) != central for flow in active_flows(s.network))
        if used and places is not None:
            yield f"flow_control.{name}", places


def _room(s: Scenario) -> Iterator[Limit]:
    """Yield a queue that does not hold a segment, or the few that radio errors leave."""
    if s.link.l2cap_header_bytes + s.transport.header_bytes == 0:
        yield Limit("link.l2cap_header_bytes", 0, "at least one byte of headers")
        return
    packets, _ = _packets(s)
    buffers = [("flow_control.buffer_packets", s.flow_control.buffer_packets)]
    sampled = is_lossy(s) and is_plain_ring(s)  # where a buffer may be as small as it likes
    for key, places in [*(buffers if s.flow_control.enabled and not sampled else ()), *_queues(s)]:
        if places < packets:
            yield Limit(key, places, f"at least {packets}: a segment has {packets}")
    if s.transport.protocol == "tcp":
        yield from _senders(s)


def unknown_if_lost(s: Scenario) -> Iterator[Limit]:
    """Yield keys of which the model does not know what they do to connections that overflow a buffer.

    Whether they do is in the answer only.
    """
    packets, ack = _packets(s)
    window, enabled, waiting = _window(s), s.flow_control.enabled, s.flow_control.buffer_packets
    if s.transport.protocol != "tcp":
        return
    bucket = [("flow_control.buffer_packets", waiting)] if enabled else []
    needed = packets * min(LEAST_ROOM, window)
    for key, places in [*bucket, *_queues(s)]:
        if places < needed:
            yield Limit(key, places, f"at least {needed}: a fast retransmit takes {LEAST_ROOM} segments")
    if (enabled and waiting < window * (packets + ack)) or any(n < window * packets for _, n in _queues(s)):
        for one in description(s).traits:
            if one.value != WHERE_LOST.get(one.kind, one.value):
                yield Limit(one.key, one.value, shown(WHERE_LOST[one.kind]))


def _senders(s: Scenario) -> Iterator[Limit]:
    """Yield what TCP's law does not know: it has losses on the radio, which are independent of windows."""
    if not given_up(s):
        return
    transport = s.transport
    if transport.delayed_ack:
        known = f"delayed acknowledgements of {IN_PAIRS} segments by a timer, where segments can be lost"
        if transport.ack_every_segments != IN_PAIRS:
            yield Limit("transport.ack_every_segments", transport.ack_every_segments, known)
        if transport.ack_clock != "timer":
            yield Limit("transport.ack_clock", transport.ack_clock, known)
        if transport.receive_window_segments > LARGEST_IN_PAIRS:
            available = f"at most {LARGEST_IN_PAIRS} with delayed acknowledgements where segments can be lost"
            yield Limit("transport.receive_window_segments", transport.receive_window_segments, available)
    variants = set()
    for one in description(s).traits:
        if one.kind == "transport.variant":
            variants.add(one.value)
        if one.kind == "transport.receive_window_segments" and one.key != one.kind:
            yield Limit(
                one.key, one.value, "a scenario without this key on a lossy radio, the same for all flows"
            )
    if variants - {transport.variant}:
        yield Limit("transport.variant", transport.variant, "the same for all flows on a lossy radio")


def given_up(s: Scenario) -> bool:
    """Whether the radio can lose segments."""
    return is_lossy(s) and s.link.arq != "unlimited"


def given_up_late(s: Scenario) -> bool:
    """Whether a flush timeout can give segments up: packets are lost, and repeated."""
    return s.link.flush_timeout_s is not None and is_lossy(s)


def not_in_law(s: Scenario) -> Iterator[Limit]:
    """Yield keys that TCP's law leaves out where the radio loses segments."""
    for one in description(s).traits if given_up(s) and s.transport.protocol == "tcp" else ():
        usual = WHERE_LOST.get(one.kind, one.value)
        if one.value != usual and (one.kind not in IN_LAW or one.value == "vegas"):
            yield Limit(one.key, one.value, shown(usual))


def is_lossy(s: Scenario) -> bool:
    """Return whether the radio damages packets."""
    return has_errors(s.radio) or s.radio.interferers > 0


def _relays(s: Scenario) -> Iterator[Limit]:
    """Yield what is not covered where flows pass through the central."""
    if is_lossy(s) and s.link.arq not in ("unlimited", "none") and _relayed(s):
        available = '"unlimited" or "none", or a perfect radio, where flows pass through the central'
        yield Limit("link.arq", s.link.arq, available)
    if is_lossy(s) and s.link.arq == "none" and s.transport.protocol == "none" and _relayed(s):
        yield Limit("link.arq", s.link.arq, '"unlimited" without TCP, where flows pass through the central')


def _relayed(s: Scenario) -> bool:
    """Whether flows pass through the central."""
    central = s.network.piconet_names[0].central
    return any(central not in (flow.source, flow.target) for flow in active_flows(s.network))
