"""What the solver's queueing model of a piconet covers: flows to and from its central."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from btqueue.baseband import packet_types, segment
from btqueue.scenario.flow_patterns import flows_of
from btqueue.scenario.scope import Limit
from btqueue.scenario.unrepeated_scope import UNREPEATED, not_plain_segments

if TYPE_CHECKING:
    from btqueue.scenario.network import Network
    from btqueue.scenario.scenario import Scenario

WIDER = {
    "network.relay", "radio.per", "link.arq", "link.l2cap_header_bytes", "transport.header_bytes",
    "flow_control.central_buffer_packets", "transport.sack_blocks",
}  # fmt: skip
"""Keys of the models without repetition of which this one takes every value."""

STAR_PICONET: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        **{key: values for key, values in UNREPEATED.items() if key not in WIDER},
        "network.topology": ("piconet", "custom"),
        "link.flush_timeout_s": (None,),
        "flow_control.drop": ("packet",),
        "polling.discipline": ("e-limited", "1-limited", "round-robin", "exhaustive"),
        "transport.protocol": ("tcp", "none"),
        "transport.variant": ("tahoe", "reno", "newreno", "sack"),
        "transport.rto_backoff": (True,),
    }
)
"""An access point and its clients, or a master and its sensors: uplink, downlink and both ways."""

LEAST_ROOM = 4
"""Segments, one lost and three behind it. With fewer, connections live by timeouts, and the model is off by a
factor of two."""

OF_A_FLOW = ("message_bytes", "variant", "receive_window_segments", "start_s")
"""What every flow must have in common."""


def not_a_star(s: Scenario) -> Iterator[Limit]:
    """Yield what the model does not cover, and no list of values can say."""
    network = s.network
    if network.topology not in STAR_PICONET["network.topology"]:
        return
    yield from not_plain_segments(s)
    if len(network.piconet_names) != 1:
        yield Limit("network.piconet_list", len(network.piconet_names), "one piconet")
        return
    if s.radio.model == "gilbert-elliott" and s.radio.per is None and s.link.arq == "none":
        available = '"perfect" or "constant" without ARQ: losses in bursts are not in this model'
        yield Limit("radio.model", s.radio.model, available)
    yield from _flows(network)
    yield from _room(s)


def _room(s: Scenario) -> Iterator[Limit]:
    """Yield a queue that fills up before a fast retransmit is possible, if windows outgrow it."""
    if s.transport.protocol != "tcp":
        return
    central = s.network.piconet_names[0].central
    size = s.traffic.message_bytes + s.transport.header_bytes + s.link.l2cap_header_bytes
    packets = len(segment(size, packet_types(s.link.packets), s.link.segmentation))
    needed = packets * min(LEAST_ROOM, s.transport.receive_window_segments)
    for down, name in ((True, "central_buffer_packets"), (False, "baseband_packets")):
        places = getattr(s.flow_control, name)
        used = any((flow.source == central) is down for flow in flows_of(s.network))
        if used and places is not None and places < needed:
            available = f"at least {needed}: a fast retransmit takes {LEAST_ROOM} segments under way"
            yield Limit(f"flow_control.{name}", places, available)


def _flows(network: Network) -> Iterator[Limit]:
    """Yield the first flow that does not have the central at one end, or that has keys of its own."""
    central = network.piconet_names[0].central
    for number, flow in enumerate(flows_of(network), start=1):
        if (flow.source == central) == (flow.target == central):
            available = "flows to or from the central"
            yield Limit("network.flows", f"{flow.source}>{flow.target}", available)
            return
        if flow.law not in (None, "poisson", "greedy"):
            yield Limit(f"network.flows[{number}].law", flow.law, '"poisson" or "greedy"')
        for name in OF_A_FLOW:
            if (value := getattr(flow, name)) is not None:
                yield Limit(
                    f"network.flows[{number}].{name}", value, "leaving it out, the same for all flows"
                )
