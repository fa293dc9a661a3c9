"""Checks that need more than one key, each a small rule that yields problems."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from btqueue.baseband.packets import PACKET_TYPES
from btqueue.scenario.errors import Problem, bad_value, conflict
from btqueue.scenario.polling import VOICE_LINKS
from btqueue.scenario.problems import closest

if TYPE_CHECKING:
    from btqueue.scenario.scenario import Scenario


def problems_between_keys(scenario: Scenario) -> list[Problem]:
    """Return every contradiction between the keys of *scenario*; an empty list when there is none."""
    rules = (_network, _flows, _radio, _link, _flow_control, _voice, _traffic, _transport)
    return [problem for rule in rules for problem in rule(scenario)]


def _network(s: Scenario) -> Iterator[Problem]:
    n = s.network
    if n.topology == "piconet" and n.piconets != 1:
        why = 'a piconet is one piconet; use topology = "scatternet" for several'
        yield conflict("network.piconets", n.piconets, why)
    if n.topology == "scatternet":
        if n.piconets < 2:
            yield conflict("network.piconets", n.piconets, "a scatternet has at least 2 piconets")
        bridges = 1 if n.piconets == 2 else 2
        if n.peripherals + bridges > 7:
            why = f"a piconet has at most 7 active peripherals, and {bridges} of them are bridges here"
            yield conflict("network.peripherals", n.peripherals, why)
    if n.topology == "custom" and not n.piconet_list:
        yield conflict("network.topology", n.topology, "a custom network needs a piconet_list")
    if n.topology != "custom" and n.piconet_list:
        yield conflict("network.topology", n.topology, 'a piconet_list goes with topology = "custom"')
    for kind, names in (
        ("piconet", [p.name for p in n.piconet_list]),
        ("link", [x.name for x in n.outside_links]),
    ):
        for name in sorted({name for name in names if names.count(name) > 1}):
            key = "network.piconet_list" if kind == "piconet" else "network.outside_links"
            yield conflict(key, name, f"two {kind}s have this name")
    for p in n.piconet_list:
        members = [p.central, *p.peripherals]
        if len(set(members)) != len(members):
            yield conflict("network.piconet_list", p.name, "a device is listed twice in this piconet")
    for x in n.outside_links:
        if x.source == x.target:
            yield conflict("network.outside_links", x.name, "the link ends where it starts")
        if (x.up_s > 0) != (x.down_s > 0):
            yield conflict("network.outside_links", x.name, "interruptions need both up_s and down_s above 0")


def _flows(s: Scenario) -> Iterator[Problem]:
    n = s.network
    if isinstance(n.flows, str):
        wants = {"pairs": "scatternet", "end-to-end": "chain"}.get(n.flows)
        if n.topology == "custom":
            yield conflict(
                "network.flows", n.flows, "a custom network needs its flows as a list of { from, to }"
            )
        elif wants is not None and n.topology != wants:
            yield conflict("network.flows", n.flows, f'goes with topology = "{wants}", not "{n.topology}"')
        return
    names = n.node_names
    if n.topology == "custom" and not n.piconet_list:  # reported already; no name can be known
        return
    for i, flow in enumerate(n.flows, start=1):
        for side, name in (("from", flow.source), ("to", flow.target)):
            if name not in names:
                some = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
                key = f"network.flows[{i}].{side}"
                yield bad_value(key, name, f"a node of the network ({some})", guess=closest(name, names))
        if flow.source == flow.target:
            yield conflict(f"network.flows[{i}].to", flow.target, "a flow cannot end where it starts")
    if isinstance(n.active_flows, int) and n.active_flows > len(n.flows):
        yield conflict("network.active_flows", n.active_flows, f"there are only {len(n.flows)} flows")


def _radio(s: Scenario) -> Iterator[Problem]:
    r = s.radio
    if r.ber_good > r.ber_bad:
        why = f"the good state must not be worse than the bad one (ber_bad = {r.ber_bad:g})"
        yield conflict("radio.ber_good", r.ber_good, why, allowed=f"at most {r.ber_bad:g}")
    if r.model == "gilbert-elliott":
        for key in ("good_s", "bad_s"):
            if getattr(r, key) == 0:
                why = (
                    "the gilbert-elliott radio needs a mean stay above 0 in both states; "
                    'for a radio that never changes use model = "constant" with ber'
                )
                yield conflict(f"radio.{key}", 0, why, allowed="a number above 0")
    if r.model == "trace" and r.trace_file is None:
        yield conflict("radio.model", r.model, "needs trace_file")
    if r.per is not None and r.model != "constant":
        yield conflict(
            "radio.per", r.per, f'a fixed packet error rate goes with model = "constant", not "{r.model}"'
        )
    if r.per is not None and r.ber > 0:
        yield conflict("radio.per", r.per, f"give either per or ber (ber = {r.ber:g}), not both")


def _link(s: Scenario) -> Iterator[Problem]:
    link = s.link
    for key in ("packets", "adaptation_packets"):
        given = getattr(link, key)
        for name in given:
            if name not in PACKET_TYPES:
                allowed = "one of " + ", ".join(PACKET_TYPES)
                yield bad_value(f"link.{key}", name, allowed, guess=closest(name, PACKET_TYPES))
        if len(set(given)) != len(given):
            yield conflict(f"link.{key}", list(given), "a packet type is listed twice")
    t = link.adaptation_thresholds
    if any(a >= b for a, b in pairwise(t)):
        yield conflict("link.adaptation_thresholds", list(t), "must increase")
    if link.adaptation == "thresholds" and len(t) != len(link.adaptation_packets) - 1:
        types = len(link.adaptation_packets)
        why = f"{types} adaptation_packets need {types - 1} thresholds"
        yield conflict("link.adaptation_thresholds", list(t), why)
    if link.flush_timeout_s is not None and link.arq == "none":
        why = 'a flush timeout needs link-level repetition; set link.arq to "unlimited" or a number'
        yield conflict("link.flush_timeout_s", link.flush_timeout_s, why)


def _flow_control(s: Scenario) -> Iterator[Problem]:
    f = s.flow_control
    known = [PACKET_TYPES[name] for name in s.link.packets if name in PACKET_TYPES]
    if f.enabled and known:
        largest = max(known, key=lambda packet: packet.payload_bytes)
        if f.bucket_bytes < largest.payload_bytes:
            why = (
                f"the bucket must hold the tokens of the largest packet, {largest.payload_bytes} bytes for a "
                f"{largest.name}; otherwise it would wait for ever"
            )
            yield conflict("flow_control.bucket_bytes", f.bucket_bytes, why)


def _voice(s: Scenario) -> Iterator[Problem]:
    most, v = VOICE_LINKS[s.voice.packet], s.voice
    if v.packet == "none" and v.links > 0:
        yield conflict("voice.links", v.links, "choose the packet type of the voice links (voice.packet)")
    elif v.links > most:
        yield conflict("voice.links", v.links, f"a piconet has room for at most {most} {v.packet} links")
    elif v.packet != "none" and v.links == 0:
        yield conflict(
            "voice.links", v.links, f'{v.packet} needs at least one link; use packet = "none" for no voice'
        )


def _traffic(s: Scenario) -> Iterator[Problem]:
    t = s.traffic
    times = [step.at_s for step in t.load_schedule]
    if any(a >= b for a, b in pairwise(times)):
        yield conflict("traffic.load_schedule", times, "the times must increase")
    if t.source == "file" and t.arrival_file is None:
        yield conflict("traffic.source", t.source, "needs arrival_file")


def _transport(s: Scenario) -> Iterator[Problem]:
    t = s.transport
    if t.min_rto_s > t.max_rto_s:
        yield conflict("transport.min_rto_s", t.min_rto_s, f"must not exceed max_rto_s = {t.max_rto_s:g}")
    if t.initial_rto_s > t.max_rto_s:
        yield conflict(
            "transport.initial_rto_s", t.initial_rto_s, f"must not exceed max_rto_s = {t.max_rto_s:g}"
        )
    if t.alpha > t.beta:
        yield conflict("transport.alpha", t.alpha, f"must not exceed beta = {t.beta:g}")
    if t.initial_window_segments > t.receive_window_segments:
        why = f"must not exceed receive_window_segments = {t.receive_window_segments}"
        yield conflict("transport.initial_window_segments", t.initial_window_segments, why)
