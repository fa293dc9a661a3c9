"""What the queueing models of one piconet and of several have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from btqueue.scenario.description import description, given
from btqueue.scenario.errors import shown
from btqueue.scenario.flow_patterns import flows_of
from btqueue.scenario.scope import Limit

if TYPE_CHECKING:
    from btqueue.scenario.network import Flow, Network
    from btqueue.scenario.scenario import Scenario

LARGEST_WINDOW = 64
LEAST_TIMEOUT_S = 625e-6
"""A slot. Timers that expire in less, again and again, are followed without end."""

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


def not_plain_segments(s: Scenario) -> Iterator[Limit]:
    """Yield what neither covers, and no list of values can say."""
    network, traffic, transport = s.network, s.traffic, s.transport
    if network.outside_links:
        names = ", ".join(link.name for link in network.outside_links)
        yield Limit("network.outside_links", names, "no outside links")
    if traffic.message_bytes > transport.mss_bytes:
        available = f"at most transport.mss_bytes = {transport.mss_bytes}, one segment for each message"
        yield Limit("traffic.message_bytes", traffic.message_bytes, available)
    for key in ("receive_window_segments", "initial_window_segments"):
        if getattr(transport, key) > LARGEST_WINDOW:
            yield Limit(f"transport.{key}", getattr(transport, key), f"at most {LARGEST_WINDOW}")
    for key in ("initial_rto_s", "max_rto_s"):
        if getattr(transport, key) < LEAST_TIMEOUT_S:
            yield Limit(
                f"transport.{key}", getattr(transport, key), f"at least a slot, {LEAST_TIMEOUT_S:g} s"
            )


COMMON = (
    *("traffic.message_bytes", "traffic.start_s"),
    *("transport.variant", "transport.receive_window_segments"),
)
"""What every flow must have in common."""


def active_flows(network: Network) -> tuple[Flow, ...]:
    """Return the flows that are not switched off."""
    flows = flows_of(network)
    return flows if network.active_flows == "all" else flows[: network.active_flows]


def own_keys(s: Scenario, kinds: Iterable[str] = COMMON) -> Iterator[Limit]:
    """Yield what single flows have of their own, other than all."""
    for one in description(s).traits:
        if one.kind in kinds and one.key != one.kind:
            (common,) = given(s, one.kind)
            if one.value != common.value:
                yield Limit(one.key, one.value, f"{shown(common.value)}, the same for all flows")
