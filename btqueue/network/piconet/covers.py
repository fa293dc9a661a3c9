"""What the solver's queueing model of a piconet covers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from btqueue.baseband import packet_types, segment
from btqueue.network.plain_segments import (
    PLAIN,
    PLAIN_SENDER,
    not_plain_segments,
    one_segment_a_message,
    own_keys,
    window_up_to,
)
from btqueue.network.two_way_link.covers import fast_layers
from btqueue.scenario.description import description
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
        "flow_control.drop": ("packet",),
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

LARGEST_ROUND = 8
"""Largest window (segments) of the rounds that say what TCP makes of a lossy radio. Larger ones are answered
where losses keep windows well below, and by the law of TCP on one hop with constant errors."""
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
    yield from (limit for limit in not_plain_segments(s) if limit.key not in OF_CONNECTIONS)
    if len(network.piconet_names) != 1:
        if network.topology == "chain":
            yield Limit("network.topology", "chain", '"piconet" or "custom", or a chain of at most two hops')
        yield Limit("network.piconet_list", len(network.piconet_names), "one piconet")
        return
    yield from _unrepeated(s)
    yield from _relays(s)
    yield from _voice(s)
    yield from _flushes(s)
    yield from own_keys(s, ("traffic.message_bytes",))
    yield from _ends(s)
    yield from _polling(s)
    yield from _sources(s)
    yield from _layers(s)
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
        **PLAIN_SENDER,
        "transport.ack_path": ("queued",),
        "transport.tcp_delay_s": (0,),
        "transport.ip_delay_s": (0,),
        "link.l2cap_delay_s": (0,),
        "link.baseband_delay_s": (0,),
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
    yield from window_up_to(s, LARGEST_ROUND)
    yield from one_segment_a_message(s)
    for number, flow in enumerate(active_flows(s.network), start=1):
        key = f"network.flows[{number}]"
        if flow.law not in (None, "poisson", "greedy"):
            yield Limit(f"{key}.law", flow.law, '"poisson" or "greedy"')
        if flow.receive_window_segments is not None:
            yield Limit(
                f"{key}.receive_window_segments", flow.receive_window_segments, "a scenario without this key"
            )
        if flow.variant is not None:
            yield Limit(f"{key}.variant", flow.variant, "a scenario without this key")


def _unrepeated(s: Scenario) -> Iterator[Limit]:
    """Yield what is not covered where segments are lost that only TCP repairs."""
    two_state = _is_two_state(s)
    if s.radio.model == "alternating" and s.link.arq == "none" and s.transport.protocol == "tcp":
        available = '"perfect", "constant" or "gilbert-elliott" with TCP and without ARQ'
        yield Limit("radio.model", s.radio.model, available)
    if not loses_segments(s):
        return
    # larger windows are answered where losses keep them small, which the answer says
    yield from (one for one in _beyond_rounds(s) if one.key != "transport.receive_window_segments")
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
    least = min(SEGMENTS_IN_QUEUE, _window(s)) if loses_segments(s) else 1
    buffers = [("flow_control.buffer_packets", s.flow_control.buffer_packets)]
    for key, places in [*(buffers if s.flow_control.enabled and least == 1 else ()), *_queues(s)]:
        if places < packets * least:
            each = f"a segment has {packets}" if least == 1 else f"{least} segments have {packets} each"
            yield Limit(key, places, f"at least {packets * least}: {each}")
    if s.transport.protocol == "tcp":
        yield from _senders(s)


def unknown_if_lost(s: Scenario) -> Iterator[Limit]:
    """Yield keys of which the model does not know what they do to connections that overflow a buffer.

    Whether they do is in the answer only.
    """
    packets, ack = _packets(s)
    window, enabled, waiting = _window(s), s.flow_control.enabled, s.flow_control.buffer_packets
    if s.transport.protocol != "tcp" or loses_segments(s):
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
        if transport.receive_window_segments > LARGEST_ROUND:
            available = f"at most {LARGEST_ROUND} with delayed acknowledgements where segments can be lost"
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
    return _is_lossy(s) and s.link.arq != "unlimited"


def given_up_late(s: Scenario) -> bool:
    """Whether a flush timeout can give segments up: packets are lost, and repeated."""
    return s.link.flush_timeout_s is not None and _is_lossy(s)


BURSTS = 3
"""Segments that a token buffer has to hold, of connections that overflow it in cycles: with less room they
live by timeouts, in step with each other."""
AT_ONCE = 2.0
"""Segments that a full token bucket pays for, at most: longer bursts wait for the air, not for tokens."""
LONGEST_CYCLE = 64
"""Window (segments) up to which a cycle is followed."""


def overflows_in_cycles(s: Scenario) -> bool:
    """Whether connections that overflow token buffers are known as cycles of one in the field of the others.

    A ring of TCP NewReno on a perfect radio, with windows that the buffers do not hold; whether flows are
    alike, saturated, and tokens scarcer than slots, the model asks.
    """
    network, control = s.network, s.flow_control
    packets, ack = _packets(s)
    window = _window(s)
    return (
        s.transport.protocol == "tcp"
        and s.transport.variant == "newreno"
        and sorted((flow.source, flow.target) for flow in active_flows(network)) == sorted(ring(network))
        and s.radio.model == "perfect"
        and s.radio.interferers == 0
        and s.voice.packet == "none"
        and network.relay == "packet"
        and s.polling.discipline in ("e-limited", "1-limited")
        and s.traffic.source in ("poisson", "greedy")
        and s.traffic.message_bytes <= s.transport.mss_bytes
        and s.transport.ack_path == "queued"
        and ack == 1
        and control.enabled
        and control.drop == "packet"
        and control.central_buffer_packets is None
        and control.places[1] >= SEGMENTS_IN_QUEUE * packets
        and BURSTS * packets <= control.buffer_packets < window * (packets + ack)
        and window <= LONGEST_CYCLE
        and all(one.value == WHERE_LOST.get(one.kind, one.value) for one in description(s).traits)
    )


def not_in_law(s: Scenario) -> Iterator[Limit]:
    """Yield keys that TCP's law leaves out where the radio loses segments."""
    for one in description(s).traits if given_up(s) and s.transport.protocol == "tcp" else ():
        usual = WHERE_LOST.get(one.kind, one.value)
        if one.value != usual and (one.kind not in IN_LAW or one.value == "vegas"):
            yield Limit(one.key, one.value, shown(usual))


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
