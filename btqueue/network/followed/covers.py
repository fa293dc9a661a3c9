"""What can be followed: everything but the kinds of stations and ends that are named here."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from btqueue.network.plain_segments import timers_of_a_slot
from btqueue.scenario.bounds import shares_segments
from btqueue.scenario.flow_patterns import active_flows, flows_of
from btqueue.scenario.polling import free_slots
from btqueue.scenario.scenario import Scenario
from btqueue.scenario.scope import Limit
from btqueue.scenario.topology import topology

FOLLOWED: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        "radio.model": ("perfect", "constant", "gilbert-elliott", "alternating"),
        "radio.colocated": (False,),
        "link.arq_feedback": ("reliable",),
        "link.adaptation": ("fixed",),
        "polling.discipline": (
            *("e-limited", "1-limited", "round-robin", "exhaustive", "gated", "fep", "lwrr", "slq", "ldq"),
        ),
        "polling.bridge_schedule": ("walk-in", "sniff", "pcss"),
        "polling.bridge_patience_s": (0,),
        "traffic.source": ("poisson", "ibp", "periodic", "greedy", "request-reply"),
        "traffic.application_timeout_s": (None,),
        "transport.protocol": ("tcp",),
        "transport.rate_reduction": (False,),
        "transport.connection_per_session": (False,),
        "transport.piggyback": (False,),
        "transport.ack_path": ("queued",),
        "transport.send_buffer_segments": (None,),
    }
)
"""For each key of which not all values can be followed: those that can."""

LARGEST_WINDOW = 1000
"""Segments: what is in flight is looked through at each selective acknowledgement."""
MOST_SEGMENTS = 10_000
"""Of a message, each of which is laid out."""
MOST_LENGTHS = 4096
"""Of segments that messages share, each of which is laid out."""
MOST_IN_FLIGHT = 4000
"""Segments of a flow that each end with a message: records of all are kept."""
MOST_FLOWS = 500
"""Flows, each of which has to settle."""
MOST_PICONETS_OF_A_DEVICE = 16
"""Places for the piconets of a device in the records of the follower."""


def not_followed(s: Scenario) -> Iterator[Limit]:
    """Yield what cannot be followed, and no list of values can say."""
    flows, transport = active_flows(s.network), s.transport
    windows = {flow.receive_window_segments or transport.receive_window_segments for flow in flows}
    if (window := max(windows)) > LARGEST_WINDOW:
        yield Limit("transport.receive_window_segments", window, f"at most {LARGEST_WINDOW}")
    yield from timers_of_a_slot(s)
    if len(flows) > MOST_FLOWS:
        yield Limit("network.flows", len(flows), f"at most {MOST_FLOWS} flows")
    if s.voice.links and free_slots(s.voice) < 2:
        yield Limit("voice.links", s.voice.links, "fewer links, which leave slots for data")
    for bridge in topology(s).bridges:
        if len(bridge.piconets) > MOST_PICONETS_OF_A_DEVICE:
            available = f"a device in at most {MOST_PICONETS_OF_A_DEVICE} piconets"
            yield Limit("network.piconet_list", len(bridge.piconets), available)
    yield from _messages(s)
    for own in map(s.of_flow, flows):
        yield from _shared_segments(own)


def _messages(s: Scenario) -> Iterator[Limit]:
    """Yield messages of very many segments."""
    own = [s.of_flow(flow).traffic for flow in flows_of(s.network)]
    sessions = [traffic for traffic in own if traffic.source == "request-reply"]
    others = [traffic for traffic in own if traffic.source != "request-reply"]
    sizes = {
        "message_bytes": [traffic.message_bytes for traffic in others],
        **{
            f"{name}_bytes": [getattr(traffic, f"{name}_bytes") for traffic in sessions]
            for name in ("request", "reply", "goodbye")
        },
    }
    for key, found in sizes.items():
        if (size := max(found, default=0)) > MOST_SEGMENTS * s.transport.mss_bytes:
            yield Limit(f"traffic.{key}", size, f"at most {MOST_SEGMENTS:,} segments of transport.mss_bytes")


def _shared_segments(s: Scenario) -> Iterator[Limit]:
    """Yield segments of very many lengths, or very many in flight, where messages share segments."""
    if not shares_segments(s):
        return
    t, traffic = s.transport, s.traffic
    ways: dict[str, list[int]] = {"message_bytes": [traffic.message_bytes]}
    if traffic.source == "request-reply":
        asked = [size for size in (traffic.request_bytes, traffic.goodbye_bytes) if size]
        ways = {"request_bytes": asked, "reply_bytes": [traffic.reply_bytes]}
    for key, sizes in ways.items():
        if t.mss_bytes // math.gcd(t.mss_bytes, *sizes) > MOST_LENGTHS:
            available = f"messages whose segments have at most {MOST_LENGTHS} lengths"
            yield Limit(f"traffic.{key}", sizes[0], available)
        if not t.nagle and t.receive_window_segments * t.mss_bytes > MOST_IN_FLIGHT * min(sizes):
            yield Limit("transport.nagle", False, f"true, or at most {MOST_IN_FLIGHT} messages in a window")
