"""Streams of bytes that are cut into whole segments: what the models cover of windows that count bytes.

Where every message fills its segments, windows of bytes and of segments are the same. Other messages share
segments, or wait for an acknowledgement (Nagle's algorithm), which no model knows.
"""

from __future__ import annotations

from collections.abc import Iterator

from btqueue.scenario.bounds import shares_segments
from btqueue.scenario.scenario import Scenario
from btqueue.scenario.scope import Limit
from btqueue.scenario.topology import topology


def in_segments(scenario: Scenario) -> Scenario:
    """Return the scenario with messages of full segments for greedy sources whose windows count bytes.

    Such a source always has data: the size of its messages makes no difference, but the models read it.
    """
    flows = scenario.network.flows
    if isinstance(flows, str):
        full = scenario.transport.mss_bytes
        return scenario.changed({"traffic.message_bytes": full}) if _other_messages(scenario) else scenario
    seen = [scenario.of_flow(flow) for flow in flows]
    if not any(map(_other_messages, seen)):
        return scenario
    own = [flow.model_dump(by_alias=True, exclude_unset=True) for flow in flows]
    for flow, view in zip(own, seen, strict=True):
        if view.traffic.source == "greedy":
            flow["message_bytes"] = view.transport.mss_bytes
    alike = {(view.traffic.source, view.transport.mss_bytes) for view in seen}
    common = {"traffic.message_bytes": seen[0].transport.mss_bytes} if len(alike) == 1 else {}
    return scenario.changed({"network.flows": own} | common)


def _other_messages(scenario: Scenario) -> bool:
    """Whether windows count bytes and a greedy source is said to write messages of another size."""
    traffic, transport = scenario.traffic, scenario.transport
    in_bytes = transport.protocol == "tcp" and transport.windows == "bytes"
    return in_bytes and traffic.source == "greedy" and traffic.message_bytes != transport.mss_bytes


def not_whole_segments(scenario: Scenario) -> Iterator[Limit]:
    """Yield messages that share segments, or that Nagle's algorithm may hold back: no model covers them."""
    for flow in topology(scenario).flows:
        own = scenario.of_flow(flow.spec)
        if not shares_segments(own):
            continue
        if own.traffic.source != "request-reply":
            whole = f"a multiple of transport.mss_bytes = {own.transport.mss_bytes}"
            available = f'{whole}, or transport.windows = "segments"'
            yield Limit("traffic.message_bytes", own.traffic.message_bytes, available)
        elif not one_at_a_time(own):
            yield Limit("transport.windows", "bytes", '"segments"')


def one_at_a_time(scenario: Scenario) -> bool:
    """Whether the messages of sessions are sent as if windows counted segments.

    Only the last segment of a message may be short. With Nagle's algorithm all that is before it has to be
    acknowledged by then, with Minshall's change to it the end of the message before, and without it nothing:
    so it is, of messages of a segment, or of messages one at a time, where all is acknowledged at once and
    nothing is lost.
    """
    traffic, transport = scenario.traffic, scenario.transport
    alone = max(traffic.request_bytes, traffic.reply_bytes, traffic.goodbye_bytes) <= transport.mss_bytes
    loses = (scenario.radio.model != "perfect" and scenario.link.arq != "unlimited") or any(
        link.loss or link.loss_back for link in scenario.network.outside_links
    )
    held = traffic.goodbye_bytes > 0 or transport.delayed_ack or loses
    if transport.nagle is False:
        return alone or not loses
    return not held and (alone or transport.nagle == "minshall")
