"""What the solver's queueing model of a piconet covers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from btqueue.baseband import packet_types, segment
from btqueue.scenario.description import description
from btqueue.scenario.errors import shown
from btqueue.scenario.scope import Limit
from btqueue.scenario.unrepeated_scope import (
    LARGEST_WINDOW,
    UNREPEATED,
    active_flows,
    not_plain_segments,
    own_keys,
)

if TYPE_CHECKING:
    from btqueue.scenario.scenario import Scenario

WIDER = {
    "network.relay", "radio.per", "link.arq", "link.l2cap_header_bytes", "transport.header_bytes",
    "flow_control.central_buffer_packets", "transport.sack_blocks", "traffic.start_s", "traffic.two_way",
    "polling.discipline", "transport.variant", "transport.clock_granularity_s", "transport.limited_transmit",
    "transport.rate_reduction", "transport.window_limited_growth", "transport.hold_ssthresh",
    "transport.handshake", "transport.delayed_ack", "transport.timestamps", "transport.gamma",
    "transport.vegas_adjustment", "radio.interferers",
}  # fmt: skip
"""Keys of the models without repetition of which this one takes every value."""

PICONET: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        **{key: values for key, values in UNREPEATED.items() if key not in WIDER},
        "network.topology": ("piconet", "custom"),
        "radio.model": ("perfect", "constant", "gilbert-elliott", "alternating"),
        "link.flush_timeout_s": (None,),
        "voice.packet": ("none", "HV1", "HV2", "HV3"),
        "flow_control.drop": ("packet",),
        "traffic.source": ("poisson", "ibp", "periodic", "greedy"),
        "transport.protocol": ("tcp", "none"),
        "transport.rto_backoff": (True, False),
    }
)
"""An access point and its clients, a master and its sensors, peripherals that send to each other."""

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

IN_LAW = ("transport.variant", "transport.timestamps", "transport.rto_backoff")
"""Those of which TCP's law on a lossy radio knows all values, but for Vegas."""

BUSIEST_FIRST = ("exhaustive", "gated", "fep", "slq", "ldq")
"""Disciplines under which a flow that always has data keeps the central from all others, or nearly."""

LARGEST_ROUND = 8
"""Largest window (segments) of the rounds that say what TCP makes of a lossy radio."""
LEAST_STAY_S = 1e-6
"""Mean stay in a state of the radio below which it is none."""
SEGMENTS_IN_QUEUE = 2
"""Segments for which a queue must have places where radio errors hold connections back."""
LEAST_ROOM = 4
"""Segments, one lost and three behind it. With fewer, connections live by timeouts, and the model is off by a
factor of two."""


def not_a_piconet(s: Scenario) -> Iterator[Limit]:
    """Yield what the model does not cover, and no list of values can say."""
    network = s.network
    if network.topology not in PICONET["network.topology"]:
        return
    yield from (limit for limit in not_plain_segments(s) if limit.key != "traffic.message_bytes")
    if len(network.piconet_names) != 1:
        yield Limit("network.piconet_list", len(network.piconet_names), "one piconet")
        return
    yield from _unrepeated(s)
    yield from _relays(s)
    if s.voice.packet != "none" and any(packet.slots > 1 for packet in packet_types(s.link.packets)):
        yield Limit("link.packets", s.link.packets, "types of one slot beside voice links")
    yield from own_keys(s, ("traffic.message_bytes",))
    yield from _ends(s)
    yield from _polling(s)
    yield from _sources(s)
    yield from _room(s)


IN_ROUNDS: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        "voice.packet": ("none",),
        "network.relay": ("packet",),
        "polling.discipline": ("e-limited", "1-limited", "round-robin", "exhaustive"),
        "traffic.source": ("poisson", "greedy"),
        "transport.variant": ("newreno",),
        "transport.delayed_ack": (False,),
        "transport.timestamps": (True,),
        "transport.clock_granularity_s": (0,),
        "transport.limited_transmit": (False,),
        "transport.rate_reduction": (False,),
        "transport.window_limited_growth": (False,),
        "transport.hold_ssthresh": (False,),
        "transport.ack_path": ("queued",),
    }
)
"""What rounds of TCP know where they repair what the radio loses."""


def loses_segments(s: Scenario) -> bool:
    """Whether the radio loses segments that only TCP repairs, and rounds of its windows say what that does.

    Constant errors on one hop, with keys that rounds do not know, are a law of TCP on open queues.
    """
    if s.radio.model == "alternating":
        return False
    if s.transport.protocol != "tcp" or s.link.arq != "none" or not _is_lossy(s):
        return False
    return _is_two_state(s) or _relayed(s) or not any(_beyond_rounds(s))


def _is_two_state(s: Scenario) -> bool:
    return s.radio.model == "gilbert-elliott" and s.radio.per is None


def _beyond_rounds(s: Scenario) -> Iterator[Limit]:
    """Yield what rounds of TCP do not know."""
    if s.radio.interferers:
        yield Limit("radio.interferers", s.radio.interferers, "0")
    for key, known in IN_ROUNDS.items():
        table, name = key.split(".")
        if (value := getattr(getattr(s, table), name)) not in known:
            yield Limit(key, value, " or ".join(str(one) for one in known))
    if s.transport.receive_window_segments > LARGEST_ROUND:
        available = f"at most {LARGEST_ROUND}"
        yield Limit("transport.receive_window_segments", s.transport.receive_window_segments, available)
    if s.traffic.message_bytes > s.transport.mss_bytes:
        available = f"at most transport.mss_bytes = {s.transport.mss_bytes}, one segment for each message"
        yield Limit("traffic.message_bytes", s.traffic.message_bytes, available)
    for number, flow in enumerate(active_flows(s.network), start=1):
        key = f"network.flows[{number}]"
        if flow.law not in (None, "poisson", "greedy"):
            yield Limit(f"{key}.law", flow.law, '"poisson" or "greedy"')
        if flow.receive_window_segments is not None:
            yield Limit(f"{key}.receive_window_segments", flow.receive_window_segments, "leaving it out")
        if flow.variant is not None:
            yield Limit(f"{key}.variant", flow.variant, "leaving it out")


def _unrepeated(s: Scenario) -> Iterator[Limit]:
    """Yield what is not covered where segments are lost that only TCP repairs."""
    two_state = _is_two_state(s)
    if s.radio.model == "alternating" and s.link.arq == "none":
        available = '"perfect", "constant" or "gilbert-elliott" without ARQ'
        yield Limit("radio.model", s.radio.model, available)
    if two_state and s.link.arq == "none" and s.transport.protocol != "tcp":
        available = '"perfect" or "constant" without ARQ and TCP: losses in bursts are not in this model'
        yield Limit("radio.model", s.radio.model, available)
    if not loses_segments(s):
        return
    yield from _beyond_rounds(s)
    for key in ("good_s", "bad_s") if two_state else ():
        if getattr(s.radio, key) < LEAST_STAY_S:
            yield Limit(f"radio.{key}", getattr(s.radio, key), f"at least {LEAST_STAY_S:g}")


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
    for one in description(s).traits():
        if one.kind == "transport.receive_window_segments" and one.value > LARGEST_WINDOW:
            yield Limit(one.key, one.value, f"at most {LARGEST_WINDOW}")
        if one.kind == "traffic.start_s" and one.value > warmup:
            yield Limit(one.key, one.value, f"at most run.warmup_s = {warmup:g}")


def _room(s: Scenario) -> Iterator[Limit]:
    """Yield a queue that fills up before a fast retransmit is possible, if windows outgrow it."""
    tcp = s.transport.protocol == "tcp"
    headers = s.link.l2cap_header_bytes + s.transport.header_bytes
    if headers == 0:
        yield Limit("link.l2cap_header_bytes", 0, "at least one byte of headers")
        return
    types, longest = packet_types(s.link.packets), min(s.traffic.message_bytes, s.transport.mss_bytes)
    packets = len(
        segment((longest if tcp else s.traffic.message_bytes) + headers, types, s.link.segmentation)
    )
    central, shared = s.network.piconet_names[0].central, s.transport.receive_window_segments
    window = max(flow.receive_window_segments or shared for flow in active_flows(s.network))
    held_back = loses_segments(s)
    if tcp and s.flow_control.enabled and not held_back:
        needed = packets * min(LEAST_ROOM, window)
        if s.flow_control.buffer_packets < needed:
            available = f"at least {needed}: a fast retransmit takes {LEAST_ROOM} segments under way"
            yield Limit("flow_control.buffer_packets", s.flow_control.buffer_packets, available)
    room = window * (packets + len(segment(headers, types, s.link.segmentation)))
    overflows = s.flow_control.enabled and s.flow_control.buffer_packets < room
    for down, name in ((True, "central_buffer_packets"), (False, "baseband_packets")):
        places = getattr(s.flow_control, name)
        used = any((flow.target if down else flow.source) != central for flow in active_flows(s.network))
        if not used or places is None:
            continue
        least = SEGMENTS_IN_QUEUE if held_back else LEAST_ROOM
        needed = packets * (min(least, window) if tcp else 1)
        if places < needed:
            available = f"at least {needed}, the packets of {needed // packets} segments"
            yield Limit(f"flow_control.{name}", places, available)
        overflows |= places < window * packets
    if tcp:
        yield from _senders(s, overflows)


def _senders(s: Scenario, overflows: bool) -> Iterator[Limit]:
    """Yield what TCP's law does not know: it has losses on the radio, which are independent of windows."""
    lossy = _is_lossy(s) and s.link.arq != "unlimited"
    variants = set()
    for one in description(s).traits():
        usual = WHERE_LOST.get(one.kind, one.value)
        known = one.kind in IN_LAW and one.value != "vegas"
        if one.value != usual and (overflows or (lossy and not known)):
            where = "where a buffer can overflow" if overflows else "where segments can be lost"
            yield Limit(one.key, one.value, f"{shown(usual)} {where}")
        if one.kind == "transport.variant":
            variants.add(one.value)
        if lossy and one.kind == "transport.receive_window_segments" and one.key != one.kind:
            yield Limit(one.key, one.value, "leaving it out on a lossy radio, the same for all flows")
    if lossy and variants - {s.transport.variant}:
        yield Limit("transport.variant", s.transport.variant, "the same for all flows on a lossy radio")


def _is_lossy(s: Scenario) -> bool:
    channel = s.radio.per is None and s.radio.model != "perfect"
    return bool(s.radio.per) or channel or s.radio.interferers > 0


def _relays(s: Scenario) -> Iterator[Limit]:
    """Yield what is not covered where flows pass through the central."""
    if _is_lossy(s) and s.link.arq not in ("unlimited", "none") and _relayed(s):
        available = '"unlimited" or "none", or a perfect radio, where flows pass through the central'
        yield Limit("link.arq", s.link.arq, available)
    if _is_lossy(s) and s.link.arq == "none" and s.transport.protocol == "none" and _relayed(s):
        yield Limit("link.arq", s.link.arq, '"unlimited" without TCP, where flows pass through the central')


def _relayed(s: Scenario) -> bool:
    """Whether flows pass through the central."""
    central = s.network.piconet_names[0].central
    return any(central not in (flow.source, flow.target) for flow in active_flows(s.network))
