"""What several models do not cover alike, and what those of one piconet and of several have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from btqueue.baseband import PACKET_TYPES, SLOT_S, segment
from btqueue.scenario.description import description, given
from btqueue.scenario.errors import shown
from btqueue.scenario.scope import Limit

if TYPE_CHECKING:
    from btqueue.scenario.scenario import Scenario

LARGEST_WINDOW, LEAST_TIMEOUT_S = 64, 625e-6
"""Segments of a window at most, and a slot."""

PLAIN_SENDER: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        "transport.clock_granularity_s": (0,),
        "transport.limited_transmit": (False,),
        "transport.rate_reduction": (False,),
        "transport.window_limited_growth": (False,),
        "transport.hold_ssthresh": (False,),
    }
)
"""TCP as RFC 5681 has it, with timers of any length."""

PLAIN: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        "radio.links": ((),),
        "radio.colocated": (False,),
        "link.arq_feedback": ("reliable",),
        "link.adaptation": ("fixed",),
        "link.quality_memory_s": (0,),
        "link.node_buffer_bytes": (None,),
        "polling.bridge_patience_s": (0,),
        "traffic.application_timeout_s": (None,),
        "transport.connection_per_session": (False,),
        "transport.piggyback": (False,),
        "transport.ack_path": ("queued",),
        "transport.centaurus_start": ("peer",),
        "transport.centaurus_worker_s": (0,),
        "transport.send_buffer_segments": (None,),
    }
)
"""For each key of which not all values are covered by either, and the same by both: those that are."""


def one_segment_a_message(s: Scenario) -> Iterator[Limit]:
    """Yield messages of several segments."""
    if s.traffic.message_bytes > s.transport.mss_bytes:
        available = f"at most transport.mss_bytes = {s.transport.mss_bytes}, one segment for each message"
        yield Limit("traffic.message_bytes", s.traffic.message_bytes, available)


def window_up_to(s: Scenario, most: int, key: str = "receive_window_segments") -> Iterator[Limit]:
    """Yield a window of more segments."""
    if (window := getattr(s.transport, key)) > most:
        yield Limit(f"transport.{key}", window, f"at most {most}")


def timers_of_a_slot(s: Scenario) -> Iterator[Limit]:
    """Yield timers that expire in less than a slot, again and again, and are followed without end."""
    for key in ("initial_rto_s", "max_rto_s"):
        if (value := getattr(s.transport, key)) < LEAST_TIMEOUT_S:
            yield Limit(f"transport.{key}", value, f"at least a slot, {LEAST_TIMEOUT_S:g} s")


def not_plain_segments(s: Scenario) -> Iterator[Limit]:
    """Yield what neither covers, and no list of values can say."""
    if s.network.outside_links:
        names = ", ".join(link.name for link in s.network.outside_links)
        yield Limit("network.outside_links", names, "no outside links")
    yield from one_segment_a_message(s)
    yield from window_up_to(s, LARGEST_WINDOW)
    yield from window_up_to(s, LARGEST_WINDOW, "initial_window_segments")
    yield from timers_of_a_slot(s)


COMMON = (
    *("traffic.message_bytes", "traffic.start_s"),
    *("transport.variant", "transport.receive_window_segments"),
)
"""What every flow must have in common."""


def own_keys(s: Scenario, kinds: Iterable[str] = COMMON) -> Iterator[Limit]:
    """Yield what single flows have of their own, other than all."""
    for one in description(s).traits:
        if one.kind in kinds and one.key != one.kind:
            (common,) = given(s, one.kind)
            if one.value != common.value:
                yield Limit(one.key, one.value, f"{shown(common.value)}, the same for all flows")


def fast_layers(s: Scenario, frame: int) -> Iterator[Limit]:
    """Yield a layer of the hosts that is slower than the air: segments pass it one after the other."""
    types = [PACKET_TYPES[name] for name in s.link.packets]
    air_s = sum(piece.packet.slots + 1 for piece in segment(frame, types, s.link.segmentation)) * SLOT_S
    for key, delay_s in (
        ("link.l2cap_delay_s", s.link.l2cap_delay_s),
        ("link.baseband_delay_s", s.link.baseband_delay_s),
        ("transport.tcp_delay_s", s.transport.tcp_delay_s),
        ("transport.ip_delay_s", s.transport.ip_delay_s),
    ):
        if delay_s > air_s:
            available = f"at most {air_s:g}, the time of a segment on the air: layers are no bottleneck here"
            yield Limit(key, delay_s, available)
