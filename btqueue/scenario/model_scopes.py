"""What each model of the solver covers; `btqueue.network` has a module of each name here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from btqueue.scenario.bulk_transfer_scope import BULK_TRANSFER, not_bulk_transfer
from btqueue.scenario.chain_scope import CHAIN, not_a_chain
from btqueue.scenario.request_reply_scope import REQUEST_REPLY, not_request_reply
from btqueue.scenario.scatternet_scope import SCATTERNET, not_a_scatternet
from btqueue.scenario.scenario import Scenario
from btqueue.scenario.scope import Limit, Scope
from btqueue.scenario.two_way_link_scope import TWO_WAY_LINK, not_two_way_link

LARGEST_WINDOW_OF_A_RING = 64

RING_PICONET: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        "network.topology": ("piconet",),
        "network.flows": ("ring",),
        "network.relay": ("packet",),
        "radio.model": ("perfect", "constant", "gilbert-elliott"),
        "radio.per": (None,),
        "radio.links": ((),),
        "radio.interferers": (0,),
        "radio.colocated": (False,),
        "link.arq": ("none",),
        "link.arq_feedback": ("reliable",),
        "link.adaptation": ("fixed",),
        "link.quality_memory_s": (0,),
        "link.node_buffer_bytes": (None,),
        "link.l2cap_header_bytes": (4,),
        "link.l2cap_delay_s": (0,),
        "link.baseband_delay_s": (0,),
        "flow_control.central_buffer_packets": (None,),
        "polling.discipline": ("e-limited", "1-limited", "exhaustive"),
        "polling.bridge_patience_s": (0,),
        "voice.packet": ("none",),
        "traffic.source": ("poisson", "greedy"),
        "traffic.two_way": (False,),
        "traffic.start_s": (0,),
        "traffic.application_timeout_s": (None,),
        "transport.protocol": ("tcp",),
        "transport.variant": ("newreno",),
        "transport.header_bytes": (40,),
        "transport.clock_granularity_s": (0,),
        "transport.limited_transmit": (False,),
        "transport.rate_reduction": (False,),
        "transport.window_limited_growth": (False,),
        "transport.hold_ssthresh": (False,),
        "transport.sack_blocks": (3,),
        "transport.handshake": (False,),
        "transport.connection_per_session": (False,),
        "transport.delayed_ack": (False,),
        "transport.piggyback": (False,),
        "transport.timestamps": (True,),
        "transport.ack_path": ("queued",),
        "transport.gamma": (1,),
        "transport.vegas_adjustment": ("per-ack",),
        "transport.tcp_delay_s": (0,),
        "transport.ip_delay_s": (0,),
        "transport.centaurus_start": ("peer",),
        "transport.centaurus_worker_s": (0,),
        "transport.send_buffer_segments": (None,),
    }
)
"""Piconet whose peripherals send to each other in a ring, without ARQ (Venugopal 2006)."""


def _not_a_ring(s: Scenario) -> Iterator[Limit]:
    """Yield what the model of the ring does not cover, and no list of values can say."""
    network, traffic, transport = s.network, s.traffic, s.transport
    if network.active_flows not in ("all", network.peripherals) and network.topology == "piconet":
        yield Limit("network.active_flows", network.active_flows, '"all"')
    if network.outside_links:
        names = ", ".join(link.name for link in network.outside_links)
        yield Limit("network.outside_links", names, "no outside links")
    if traffic.message_bytes > transport.mss_bytes:
        available = f"at most transport.mss_bytes = {transport.mss_bytes}, one segment for each message"
        yield Limit("traffic.message_bytes", traffic.message_bytes, available)
    for key in ("receive_window_segments", "initial_window_segments"):
        if getattr(transport, key) > LARGEST_WINDOW_OF_A_RING:
            available = f"at most {LARGEST_WINDOW_OF_A_RING}"
            yield Limit(f"transport.{key}", getattr(transport, key), available)


MODELS: Mapping[str, Scope] = MappingProxyType(
    {
        "ring_piconet": Scope("the model", RING_PICONET, _not_a_ring),
        "bulk_transfer": Scope("the model of bulk transfers", BULK_TRANSFER, not_bulk_transfer),
        "scatternet": Scope("the model of scatternets", SCATTERNET, not_a_scatternet),
        "chain": Scope("the model of chains", CHAIN, not_a_chain),
        "request_reply": Scope("the model of sessions", REQUEST_REPLY, not_request_reply),
        "two_way_link": Scope("the model of one link", TWO_WAY_LINK, not_two_way_link),
    }
)
"""The models by name, in the order in which they are tried."""
