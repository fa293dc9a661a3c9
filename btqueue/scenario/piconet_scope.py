"""What the solver's queueing model of a piconet covers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from btqueue.baseband import packet_types, segment
from btqueue.scenario.errors import shown
from btqueue.scenario.scope import Limit
from btqueue.scenario.unrepeated_scope import UNREPEATED, active_flows, not_plain_segments, own_keys

if TYPE_CHECKING:
    from btqueue.scenario.scenario import Scenario

WIDER = {
    "network.relay", "radio.per", "link.arq", "link.l2cap_header_bytes", "transport.header_bytes",
    "flow_control.central_buffer_packets", "transport.sack_blocks",
}  # fmt: skip
"""Keys of the models without repetition of which this one takes every value."""

PICONET: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        **{key: values for key, values in UNREPEATED.items() if key not in WIDER},
        "network.topology": ("piconet", "custom"),
        "link.flush_timeout_s": (None,),
        "voice.packet": ("none", "HV1", "HV2", "HV3"),
        "flow_control.drop": ("packet",),
        "polling.discipline": ("e-limited", "1-limited", "round-robin", "exhaustive"),
        "transport.protocol": ("tcp", "none"),
        "transport.variant": ("tahoe", "reno", "newreno", "sack"),
        "transport.rto_backoff": (True, False),
        "transport.timestamps": (True, False),
    }
)
"""An access point and its clients, a master and its sensors, peripherals that send to each other."""

LEAST_KBPS = 1e-6
"""Rate that counts as one."""
MOST_PLACES = 1000
"""Packets that bucket and token buffer hold together: their chain has as many states, and takes seconds."""
LARGEST_WINDOW = 10
"""Segments, for the TCP senders other than NewReno where segments are lost on the radio."""
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
    yield from not_plain_segments(s)
    if len(network.piconet_names) != 1:
        yield Limit("network.piconet_list", len(network.piconet_names), "one piconet")
        return
    yield from _unrepeated(s)
    yield from _relays(s)
    if s.voice.packet != "none" and any(packet.slots > 1 for packet in packet_types(s.link.packets)):
        yield Limit("link.packets", s.link.packets, "types of one slot beside voice links")
    own = [flow.law or s.traffic.source for flow in active_flows(network)]
    if s.polling.discipline == "exhaustive" and len(network.piconet_names[0].members) > 1 and "greedy" in own:
        available = "another one: a flow that always has data keeps the central from all others"
        yield Limit("polling.discipline", "exhaustive", available)
    yield from own_keys(s)
    yield from _ends(s)
    yield from _room(s)


def loses_segments(s: Scenario) -> bool:
    """Whether the radio loses segments that only TCP repairs, and rounds of its windows say what that does.

    Constant errors on one hop with larger windows, or other senders, are a law of TCP on open queues.
    """
    if s.transport.protocol != "tcp" or s.link.arq != "none" or not _is_lossy(s):
        return False
    two_state = s.radio.model == "gilbert-elliott" and s.radio.per is None
    small = s.transport.receive_window_segments <= LARGEST_ROUND
    return two_state or _relayed(s) or (small and s.transport.variant == "newreno")


def _unrepeated(s: Scenario) -> Iterator[Limit]:
    """Yield what is not covered where segments are lost that only TCP repairs."""
    two_state = s.radio.model == "gilbert-elliott" and s.radio.per is None
    if two_state and s.link.arq == "none" and s.transport.protocol != "tcp":
        available = '"perfect" or "constant" without ARQ and TCP: losses in bursts are not in this model'
        yield Limit("radio.model", s.radio.model, available)
    if not loses_segments(s):
        return
    if s.voice.packet != "none":
        yield Limit("voice.packet", s.voice.packet, '"none" beside losses that only TCP repairs')
    if s.transport.receive_window_segments > LARGEST_ROUND:
        available = f"at most {LARGEST_ROUND}"
        yield Limit("transport.receive_window_segments", s.transport.receive_window_segments, available)
    if s.transport.variant != "newreno":
        yield Limit("transport.variant", s.transport.variant, '"newreno" where rounds of TCP repair losses')
    if s.network.relay != "packet" and _relayed(s):
        yield Limit("network.relay", s.network.relay, '"packet" where losses are repaired by TCP only')
    for key in ("good_s", "bad_s") if two_state else ():
        if getattr(s.radio, key) < LEAST_STAY_S:
            yield Limit(f"radio.{key}", getattr(s.radio, key), f"at least {LEAST_STAY_S:g}")


def _ends(s: Scenario) -> Iterator[Limit]:
    """Yield rates and buffers beyond what the chains of the model hold."""
    control, poisson = (
        s.flow_control,
        "poisson" in {f.law or s.traffic.source for f in active_flows(s.network)},
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


def _room(s: Scenario) -> Iterator[Limit]:
    """Yield a queue that fills up before a fast retransmit is possible, if windows outgrow it."""
    tcp = s.transport.protocol == "tcp"
    headers = s.link.l2cap_header_bytes + s.transport.header_bytes
    if headers == 0:
        yield Limit("link.l2cap_header_bytes", 0, "at least one byte of headers")
        return
    packets = len(
        segment(s.traffic.message_bytes + headers, packet_types(s.link.packets), s.link.segmentation)
    )
    central, window = s.network.piconet_names[0].central, s.transport.receive_window_segments
    held_back = loses_segments(s)
    if tcp and s.flow_control.enabled and not held_back:
        needed = packets * min(LEAST_ROOM, window)
        if s.flow_control.buffer_packets < needed:
            available = f"at least {needed}: a fast retransmit takes {LEAST_ROOM} segments under way"
            yield Limit("flow_control.buffer_packets", s.flow_control.buffer_packets, available)
    overflows = s.flow_control.enabled
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
    transport = s.transport
    if overflows:
        for key, usual in (("variant", "newreno"), ("timestamps", True), ("rto_backoff", True)):
            if (value := getattr(transport, key)) != usual:
                yield Limit(f"transport.{key}", value, f"{shown(usual)} where a buffer can overflow")
    window = transport.receive_window_segments
    if (
        transport.variant != "newreno"
        and window > LARGEST_WINDOW
        and _is_lossy(s)
        and s.link.arq != "unlimited"
    ):
        available = f'at most {LARGEST_WINDOW} on a lossy radio, or transport.variant = "newreno"'
        yield Limit("transport.receive_window_segments", window, available)


def _is_lossy(s: Scenario) -> bool:
    return bool(s.radio.per) or (s.radio.per is None and s.radio.model != "perfect")


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
