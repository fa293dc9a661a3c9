"""What each model of the solver covers; `btqueue.network` has a module of each name here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from btqueue.scenario.bulk_transfer_scope import BULK_TRANSFER, not_bulk_transfer
from btqueue.scenario.chain_scope import CHAIN, not_a_chain
from btqueue.scenario.flow_patterns import flows_of, ring
from btqueue.scenario.multihop_scope import MULTIHOP, not_multihop
from btqueue.scenario.piconet_scope import PICONET, not_a_piconet
from btqueue.scenario.request_reply_scope import REQUEST_REPLY, not_request_reply
from btqueue.scenario.scatternet_scope import SCATTERNET, not_a_scatternet
from btqueue.scenario.scenario import Scenario
from btqueue.scenario.scope import Limit, Scope, always
from btqueue.scenario.two_way_link_scope import TWO_WAY_LINK, not_two_way_link
from btqueue.scenario.unrepeated_scope import COMMON, UNREPEATED, not_plain_segments, own_keys

RING_PICONET: Mapping[str, tuple[object, ...]] = MappingProxyType(
    {
        **UNREPEATED,
        "network.topology": ("piconet",),
        "voice.packet": ("none", "HV1", "HV2", "HV3"),
    }
)
"""Piconet whose peripherals send to each other in a ring, without ARQ (Venugopal 2006)."""


def _not_a_ring(s: Scenario) -> Iterator[Limit]:
    """Yield what the model of the ring does not cover, and no list of values can say."""
    network = s.network
    if network.topology != "piconet":
        return
    flows, around = flows_of(network), ring(network)
    if sorted((flow.source, flow.target) for flow in flows) != sorted(around):
        yield Limit("network.flows", network.flows, '"ring"')
    elif network.active_flows not in ("all", len(around)):
        yield Limit("network.active_flows", network.active_flows, '"all"')
    yield from not_plain_segments(s)
    yield from own_keys(s, (*COMMON, "traffic.source", "traffic.load_kbps"))


def _in_one_piconet(s: Scenario) -> bool:
    """Whether a chain is so short that its window is followed; the bridges of longer ones are solved."""
    return s.network.hops <= 2


MODELS: Mapping[str, Scope] = MappingProxyType(
    {
        "ring_piconet": Scope("the model", RING_PICONET, _not_a_ring, always),
        "scatternet": Scope("the model of scatternets", SCATTERNET, not_a_scatternet, always),
        "chain": Scope("the model of chains", CHAIN, not_a_chain, _in_one_piconet),
        "request_reply": Scope("the model of sessions", REQUEST_REPLY, not_request_reply, always),
        "two_way_link": Scope("the model of one link", TWO_WAY_LINK, not_two_way_link),
        "piconet": Scope("the model of a piconet of queues", PICONET, not_a_piconet),
        "multihop": Scope("the queueing model of several piconets", MULTIHOP, not_multihop),
        "bulk_transfer": Scope("the model of bulk transfers", BULK_TRANSFER, not_bulk_transfer, always),
    }
)
"""The models by name; of those of one solver, the first that covers a scenario is asked.

Sessions and transfers over lossy links are followed in part: a chain weighs stages that are played through,
and a path is measured by a transfer without losses.
"""

SAMPLED = frozenset({"ring_piconet", "scatternet"})
"""Models that follow connections by sampling: their answers are smooth only to their standard error."""
