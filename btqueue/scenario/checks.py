"""Checks that need more than one key. Each rule yields a key, and why its value cannot be.

A rule yields a whole problem where the value to be shown is not the value of the key.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from math import isclose
from string import digits
from typing import TYPE_CHECKING

from btqueue.baseband import low_energy as air
from btqueue.baseband.packets import PACKET_TYPES, SLOT_S
from btqueue.baseband.voice import most_links, most_window
from btqueue.scenario.errors import Problem, ScenarioError, bad_value, bracketed, conflict
from btqueue.scenario.low_energy import SHORT_STEP_S, SHORTEST_USUAL_S, USUAL_STEP_S, without_effect
from btqueue.scenario.network import MOST_OF_LE, MOST_PERIPHERALS, Flow, OutsideLink
from btqueue.scenario.polling import fits_beside
from btqueue.scenario.problems import closest
from btqueue.scenario.radio import KEYS_OF_MODEL, Radio

if TYPE_CHECKING:
    from btqueue.scenario.scenario import Scenario

Found = Iterator[tuple[str, str] | Problem]

PATTERNS_OF_TOPOLOGY = {
    "piconet": ("ring", "pairs", "downlink", "uplink"),
    "scatternet": ("ring", "pairs", "downlink", "uplink"),
    "chain": ("end-to-end",),
}
"""The patterns of flows that make sense in a topology."""

SAME_ON_A_MEDIUM = ("rate_kbps", "header_bytes", "up_s", "down_s")
"""Keys that all links on one medium must agree on."""


def problems_between_keys(scenario: Scenario) -> list[Problem]:
    """Return every contradiction between the keys of *scenario*; an empty list when there is none."""
    rules = (
        _shape, _custom, _outside, _relay, _members, _bearer, _le_connections, _radio, _link, _flow_control,
        _voice, _flows, _precision,
    )  # fmt: skip
    return [_problem(scenario, found) for rule in rules for found in rule(scenario)]


def _problem(s: Scenario, found: tuple[str, str] | Problem) -> Problem:
    """Return the problem, which says so if a preset gives the value and nobody wrote it."""
    if isinstance(found, tuple):
        key, why = found
        found = conflict(key, s.value_of(key), why)
    origin = s.origin(found.key) if found.value is not None else ""
    if not origin.startswith("of "):
        return found
    return replace(found, message=f"{found.message} ({bracketed(found.key)} is {origin})")


def _shape(s: Scenario) -> Found:
    n = s.network
    if n.topology == "piconet" and n.piconets != 1:
        yield "network.piconets", 'a piconet is one piconet; use topology = "scatternet" for several'
    if n.topology == "scatternet" and n.piconets < 2:
        yield "network.piconets", "a scatternet has at least 2 piconets"
    most = MOST_OF_LE if s.link.bearer == "le" else MOST_PERIPHERALS
    why = f"a piconet has at most {most} active peripherals, its bridges among them"
    large = [p.name for p in n.piconet_names if len(p.members) > most]
    if n.topology == "custom":
        yield from (conflict("network.piconet_list", name, why) for name in large)
    elif large:
        yield "network.peripherals", why
    if n.topology == "custom" and not n.piconet_list:
        yield "network.topology", "a custom network needs a piconet_list"
    if n.topology != "custom" and n.piconet_list:
        yield "network.topology", 'a piconet_list goes with topology = "custom"'


def _custom(s: Scenario) -> Found:
    key, piconets = "network.piconet_list", s.network.piconet_list
    for name in _repeated(p.name for p in piconets):
        yield conflict(key, name, "two piconets have this name")
    for name in _repeated(p.central for p in piconets):
        yield conflict(key, name, "a device can be the central of one piconet only; a peripheral of others")
    joined: set[frozenset[str]] = set()
    for p in piconets:
        if len({p.central, *p.peripherals}) <= len(p.peripherals):
            yield conflict(key, p.name, "a device is listed twice in this piconet")
            continue
        for name in p.peripherals:
            if frozenset((p.central, name)) in joined:
                why = f'"{p.central}" and "{name}" are joined in another piconet already, the other way round'
                yield conflict(key, p.name, why)
            joined.add(frozenset((p.central, name)))


def _outside(s: Scenario) -> Found:
    key, links = "network.outside_links", s.network.outside_links
    for name in _repeated(x.name for x in links):
        yield conflict(key, name, "two links have this name")
    joined = {frozenset((p.central, name)) for p in s.network.piconet_names for name in p.members}
    first_on_medium: dict[str, OutsideLink] = {}
    for x in links:
        ends = frozenset((x.source, x.target))
        if x.source == x.target:
            yield conflict(key, x.name, "the link ends where it starts")
        elif ends in joined:
            why = f'"{x.source}" and "{x.target}" are joined already; one of the two ways would never be used'
            yield conflict(key, x.name, why)
        joined.add(ends)
        if (x.up_s > 0) != (x.down_s > 0):
            yield conflict(key, x.name, "interruptions need both up_s and down_s above 0")
        if x.medium is None:
            continue
        if not x.half_duplex:
            why = f'the medium "{x.medium}" is shared by both directions, so half_duplex cannot be false'
            yield conflict(key, x.name, why)
        first = first_on_medium.setdefault(x.medium, x)
        for name in SAME_ON_A_MEDIUM:
            here, there = getattr(x, name), getattr(first, name)
            if here != there:
                why = f'{name} = {here:g}: must be {there:g} as in "{first.name}" on the same medium'
                yield conflict(key, x.name, why)


def _relay(s: Scenario) -> Found:
    if s.network.relay == "packet" and s.network.outside_links:
        yield "network.relay", 'outside links carry whole segments; use relay = "segment"'
    if s.network.relay == "packet" and s.link.adaptation != "fixed":
        adapted = f'link.adaptation = "{s.link.adaptation}"'
        yield "network.relay", f'{adapted} cuts segments anew on each link; use relay = "segment"'


def _repeated(names: Iterable[str]) -> list[str]:
    return sorted(name for name, count in Counter(names).items() if count > 1)


def _members(s: Scenario) -> Found:
    """Check the flows' senders and receivers, and their names."""
    n = s.network
    if n.topology == "custom" and not n.piconet_list:  # reported already; no name can be known
        return
    if not isinstance(n.flows, str):
        yield from _listed_flows(s, n.flows)
    elif n.topology == "custom":
        yield "network.flows", "a custom network needs its flows as a list of { from, to }"
    elif n.flows not in PATTERNS_OF_TOPOLOGY[n.topology]:
        fit = (shape for shape, patterns in PATTERNS_OF_TOPOLOGY.items() if n.flows in patterns)
        where = " or ".join(f'"{shape}"' for shape in fit)
        yield "network.flows", f'goes with topology = {where}, not "{n.topology}"'
    elif n.flows == "pairs" and n.topology == "piconet" and n.peripherals < 2:
        yield "network.flows", "a pair needs at least 2 peripherals"
    elif n.topology == "chain" and isinstance(n.active_flows, int) and n.active_flows > 1:
        yield "network.active_flows", "a chain has one flow, end to end"


def _listed_flows(s: Scenario, flows: tuple[Flow, ...]) -> Found:
    names = s.network.node_names
    known = frozenset(names)
    for i, flow in enumerate(flows, start=1):
        for side, name in (("from", flow.source), ("to", flow.target)):
            if name not in known:
                some = ", ".join(names[:12]) + (f", ..., {names[-1]}" if len(names) > 12 else "")
                key, kind = f"network.flows[{i}].{side}", name.rstrip(digits)
                alike = [one for one in names if one != kind and one.rstrip(digits) == kind]
                guess = alike[-1] if alike and name != kind else closest(name, names)
                own = "" if s.network.piconet_list else '; topology = "custom" has nodes of other names'
                yield bad_value(key, name, f"a node of the network ({some}){own}", guess=guess)
        if flow.source == flow.target:
            yield f"network.flows[{i}].to", "a flow cannot end where it starts"
    called = Counter(flow.label for flow in flows)  # expressions must tell names of flows and groups apart
    for i, flow in enumerate(flows, start=1):
        for side in ("name", "group"):
            if (name := getattr(flow, side)) and (name.isdigit() or re.search(r"[\[\](),\"']|^\s|\s$", name)):
                allowed = "a text without brackets, commas and quotes that is no whole number"
                yield bad_value(f"network.flows[{i}].{side}", name, allowed)
        if flow.name and called[flow.name] > 1:
            yield f"network.flows[{i}].name", "another flow has this name"
        if flow.group and flow.group in called:
            yield f"network.flows[{i}].group", "a flow has this name"
    if isinstance(s.network.active_flows, int) and s.network.active_flows > len(flows):
        yield "network.active_flows", f"there are only {len(flows)} flows"


def _bearer(s: Scenario) -> Found:
    """Refuse keys that do not go with the bearer, or with the way in which it carries data."""
    for key in without_effect(s):
        table, _, name = key.partition(".")
        if name not in getattr(s, table).model_fields_set:
            continue
        if s.link.bearer != "le":
            yield key, 'says something about Bluetooth Low Energy alone; set link.bearer = "le"'
        elif table == "le":
            yield key, f'does not go with le.transfer = "{s.le.transfer}"'
        else:
            yield key, 'has no meaning with link.bearer = "le"'


def _le_connections(s: Scenario) -> Found:
    """Refuse connections of Bluetooth Low Energy that cannot be."""
    le = s.le
    if s.link.bearer != "le":
        return
    step = USUAL_STEP_S if le.interval_s >= SHORTEST_USUAL_S - 1e-12 else SHORT_STEP_S
    if not isclose(le.interval_s / step, round(le.interval_s / step), abs_tol=1e-6):
        yield "le.interval_s", "must be a multiple of 1.25 ms from 7.5 ms on, and of 125 us below"
    if le.interval_spread_s >= le.interval_s:
        yield "le.interval_spread_s", f"must be smaller than interval_s = {le.interval_s:g}"
    if le.transfer == "coc" and le.credits_returned_every > le.credits:
        yield "le.credits_returned_every", f"must not exceed credits = {le.credits}"
    if le.reserved_s > le.interval_s:
        yield "le.event_length_s", f"must not exceed interval_s = {le.interval_s:g}"
    silent = 2.0 * (1 + le.latency) * le.subrate * (le.interval_s + le.interval_spread_s)
    if le.supervision_timeout_s <= silent:
        why = f"must be above 2 (1 + latency) subrate times the interval, {silent:g} s"
        yield "le.supervision_timeout_s", why
    counts = [one.channels for one in le.channel_classes]
    if counts and sum(counts) != air.CHANNELS:
        why = f"there are {air.CHANNELS} data channels, and these are {sum(counts)}"
        yield conflict("le.channel_classes", counts, why)
    if (le.iso_interval_s > 0) != (le.iso_length_s > 0):
        zero = "le.iso_interval_s" if le.iso_length_s > 0 else "le.iso_length_s"
        yield conflict(zero, 0, "isochronous time needs both iso_interval_s and iso_length_s above 0")
        return
    space_us, full = 1e6 * le.frame_space_s, le.payload_bytes
    least_s = 1e-6 * air.exchange_us(le.phy, full, 0, frame_space_us=space_us, encrypted=le.encrypted)
    if le.iso_length_s > 0 and le.iso_interval_s - le.iso_length_s < least_s:
        why = f"isochronous time leaves no room for an exchange of {least_s:g} s in {le.iso_interval_s:g} s"
        yield "le.iso_length_s", why


def _radio(s: Scenario) -> Found:
    r = s.radio
    problems = list(_one_radio(r, "radio", frozenset(type(r).model_fields)))
    yield from problems
    if problems or not r.links:
        return
    members = {name for p in s.network.piconet_names for name in p.members}
    seen: set[tuple[str, str]] = set()
    for i, link in enumerate(r.links, start=1):
        key = f"radio.links[{i}]"
        if link.node not in members:
            some = ", ".join(sorted(members)[:12]) + (", ..." if len(members) > 12 else "")
            guess = closest(link.node, members)
            yield bad_value(f"{key}.node", link.node, f"a peripheral of a piconet ({some})", guess=guess)
        directions = ("up", "down") if link.direction == "both" else (link.direction,)
        if any((link.node, direction) in seen for direction in directions):
            yield f"{key}.node", "an earlier entry has set this link already"
        seen.update((link.node, direction) for direction in directions)
        radio = link.applied_to(r)
        given = frozenset(link.overrides)
        if unused := sorted(given - {"model"} - KEYS_OF_MODEL[radio.model]):
            reads = next(name for name, keys in KEYS_OF_MODEL.items() if unused[0] in keys)
            why = f'the {radio.model} radio of this link does not read it; write model = "{reads}" beside it'
            yield f"{key}.{unused[0]}", why
        else:
            yield from _one_radio(radio, key, given)


def _one_radio(r: Radio, table: str, given: frozenset[str]) -> Found:
    """Check one radio, and name the keys that were *given* in its table."""
    if r.ber_good > r.ber_bad:
        name = next((name for name in ("ber_good", "ber_bad", "model") if name in given), "ber_good")
        why = f"the good state must not be worse than the bad one (ber_bad = {r.ber_bad:g})"
        yield conflict(f"{table}.{name}", r.ber_good, why)
    for name in ("good_s", "bad_s") if r.model == "gilbert-elliott" else ():
        if getattr(r, name) == 0:
            why = (
                "the gilbert-elliott radio needs a mean stay above 0 in both states; "
                'for a radio that never changes use model = "constant" with ber'
            )
            yield conflict(f"{table}.{name}", 0, why)
    if r.model == "trace" and r.trace_file is None:
        yield conflict(f"{table}.model", r.model, "needs trace_file")
    if r.per is not None and r.model != "constant" and "per" in given:
        yield f"{table}.per", f'a fixed packet error rate goes with model = "constant", not "{r.model}"'
    if r.per is not None and r.ber > 0:
        yield conflict(f"{table}.per", r.per, f"give either per or ber (ber = {r.ber:g}), not both")


def _link(s: Scenario) -> Found:
    link = s.link
    for key, given in (("packets", link.packets), ("adaptation_packets", link.adaptation_packets)):
        for name in given:
            if name not in PACKET_TYPES:
                allowed = "one of " + ", ".join(PACKET_TYPES)
                yield bad_value(f"link.{key}", name, allowed, guess=closest(name, PACKET_TYPES))
        if len(set(given)) != len(given):
            yield f"link.{key}", "a packet type is listed twice"
    if not _increase(link.adaptation_thresholds):
        yield "link.adaptation_thresholds", "must increase"
    types = len(link.adaptation_packets)
    if link.adaptation == "thresholds" and len(link.adaptation_thresholds) != types - 1:
        yield "link.adaptation_thresholds", f"{types} adaptation_packets need {types - 1} thresholds"
    repeat = 'set link.arq to "unlimited" or a number'
    if link.flush_timeout_s is not None and link.arq == "none" and link.bearer != "le":
        yield "link.flush_timeout_s", f"a flush timeout needs link-level repetition; {repeat}"
    if link.arq_feedback == "lossy" and link.arq == "none":
        yield "link.arq_feedback", f"there is no feedback to lose without repetition; {repeat}"


def _increase(values: Iterable[float]) -> bool:
    return all(earlier < later for earlier, later in pairwise(values))


def _flow_control(s: Scenario) -> Found:
    known = [PACKET_TYPES[name] for name in s.link.packets if name in PACKET_TYPES]
    largest = max(known, key=lambda packet: packet.payload_bytes, default=None)
    if s.flow_control.enabled and largest and s.flow_control.bucket_bytes < largest.payload_bytes:
        why = (
            f"the bucket must hold the tokens of the largest packet, {largest.payload_bytes} bytes for a "
            f"{largest.name}; otherwise it would wait for ever"
        )
        yield "flow_control.bucket_bytes", why


def _voice(s: Scenario) -> Found:
    v = s.voice
    most = most_links(v.packet)
    if v.packet == "none" and v.links > 0:
        yield "voice.links", "choose the packet type of the voice links (voice.packet)"
    elif v.links > most:
        yield "voice.links", f"a piconet has room for at most {most} {v.packet} links"
    elif v.packet != "none" and v.links == 0:
        yield "voice.links", f'{v.packet} needs at least one link; use packet = "none" for no voice'
    elif v.packet != "none":
        most = most_window(v.packet, v.links)
        if v.retransmission_slots > most or v.retransmission_slots % 2:
            why = "HV packets are never repeated, and windows end before the next reserved slots"
            yield "voice.retransmission_slots", f"must be even, and must not exceed {most}: {why}"
        yield from _room_beside_voice(s)


def _room_beside_voice(s: Scenario) -> Found:
    """Refuse packet types that never fit between the slots of the voice links."""
    v, link = s.voice, s.link
    links = f"1 {v.packet} link leaves" if v.links == 1 else f"{v.links} {v.packet} links leave"
    room = v.reservation.gap if v.reservation else 0
    if room == 0:
        yield "voice.links", f"{links} no slot for data"
        return
    fits = ", ".join(name for name in PACKET_TYPES if fits_beside(v, name))
    for key in ("packets", *(["adaptation_packets"] if link.adaptation != "fixed" else [])):
        for name in getattr(link, key):
            if not fits_beside(v, name):
                needs = f"with an answer it takes {PACKET_TYPES[name].slots + 1} slots in a row"
                yield conflict(f"link.{key}", name, f"{needs}, and {links} {room}; these fit: {fits}")


def _of_flows(s: Scenario) -> Iterator[tuple[Scenario, dict[str, str]]]:
    """Yield the scenario as each kind of flow sees it, and the names of keys there."""
    flows: tuple[Flow, ...] = () if isinstance(s.network.flows, str) else s.network.flows
    if not flows or not all(flow.own for flow in flows):
        yield s, {}
    for number, flow in enumerate(flows, start=1):
        if names := flow.names(number):
            yield s.of_flow(flow), names


def _flows(s: Scenario) -> Found:
    """Check traffic and transport of each flow; a problem that several flows share is reported once."""
    seen = list(_of_flows(s))
    used = frozenset({word for one, _ in seen for word in (one.traffic.source, one.transport.protocol)})
    first: dict[str, Problem] = {}
    for one, names in seen:
        for found in (*_traffic(one, names, used), *_transport(one, names, used)):
            if isinstance(found, tuple):
                key, why = found
                found = conflict(names.get(key, key), one.value_of(key), why)
            first.setdefault(found.message, found)
    yield from first.values()


def _traffic(s: Scenario, names: dict[str, str], used: frozenset[str]) -> Found:
    """Check the traffic of a flow; a key of the table may be for other flows, of a law that is `used`."""
    t, protocol = s.traffic, s.transport.protocol
    times = [step.at_s for step in t.load_schedule]
    if not _increase(times):
        key = "traffic.load_schedule"
        yield conflict(names.get(key, key), times, "the times must increase")
    if t.source == "file" and t.arrival_file is None:
        yield "traffic.source", f"needs {'traffic.' if 'traffic.source' in names else ''}arrival_file"
    answers = ("request-reply",) if s.link.bearer == "le" else ("greedy", "request-reply")
    if protocol == "none" and t.source in answers:
        why = f'"{t.source}" needs a transport protocol that answers; set transport.protocol = "tcp"'
        yield "traffic.source", why
    if protocol == "centaurus" and t.source != "request-reply":
        why = 'CentaurusComm carries the messages of sessions; set traffic.source = "request-reply"'
        yield "transport.protocol", why
    if s.transport.handshake and protocol != "tcp" and _meant("transport.handshake", names, "tcp" in used):
        yield "transport.handshake", 'the handshake opens connections of TCP; set transport.protocol = "tcp"'
    if t.source == "ibp":
        yield from _ibp(s)
    for key in ("traffic.application_timeout_s", "transport.connection_per_session"):
        sessions = "request-reply" in used
        if s.value_of(key) and t.source != "request-reply" and _meant(key, names, sessions):
            yield key, 'goes with sessions: traffic.source = "request-reply", or the law of a flow'


def _meant(key: str, names: dict[str, str], others: bool) -> bool:
    """Whether an unused key was meant for a flow: the flow sets it, or no other flow uses it."""
    return key in names or not others


def _ibp(s: Scenario) -> Found:
    """Refuse interrupted Bernoulli sources that no probabilities of its states can give.

    With r messages a slot, both states are left with probabilities if scv is at least (1 - r) |1 - 2 r|.
    """
    t = s.traffic
    loads = [t.load_kbps, *(step.load_kbps for step in t.load_schedule)]
    rates = [load * 1000 * SLOT_S / (8 * t.message_bytes) for load in loads]
    least = max((1.0 - rate) * abs(1.0 - 2.0 * rate) for rate in rates)
    if max(rates) >= 1.0:
        why = f"an ibp source writes less than a message a slot, not {max(rates):.3g}"
        yield "traffic.load_kbps", f"{why}; choose a smaller load_kbps or a greater message_bytes"
    elif t.scv < least * (1.0 - 1e-12):
        yield "traffic.scv", f"an ibp source at this load has gaps that vary more; at least {least:.6g}"


def _transport(s: Scenario, names: dict[str, str], used: frozenset[str]) -> Found:
    t = s.transport
    if s.link.bearer == "le" and s.le.ip == "none" and t.protocol != "none":
        key = names.get("transport.protocol", "transport.protocol")
        why = f'without IP (le.ip = "none") there are messages alone; set {key} = "none"'
        yield "le.ip" if key == "transport.protocol" else "transport.protocol", why
    if t.protocol == "tcp" and t.header_bytes == 0 and s.link.l2cap_header_bytes == 0:
        why = "with link.l2cap_header_bytes = 0 an acknowledgement would have no bytes; set one of them to 1"
        yield "transport.header_bytes", why
    for name, most in (
        ("min_rto_s", "max_rto_s"),
        ("initial_rto_s", "max_rto_s"),
        ("alpha", "beta"),
        ("initial_window_segments", "receive_window_segments"),
    ):
        value, limit = getattr(t, name), getattr(t, most)
        if value <= limit:
            continue
        key, key_of_limit = f"transport.{name}", f"transport.{most}"
        own_limit = key not in names and key_of_limit in names
        if own_limit or (most in t.model_fields_set and name not in t.model_fields_set):
            yield key_of_limit, f"must not be smaller than {key} = {value:g}"
        else:
            yield key, f"must not exceed {most} = {limit:g}"
    per_ack = t.variant == "vegas" and t.vegas_adjustment == "per-ack"
    if t.protocol == "tcp" and t.sack and (t.variant in ("tahoe", "reno") or per_ack):
        known = '"newreno", "sack", "cubic" and per-rtt "vegas" do'
        yield "transport.sack", f"{t.variant} as it is here does not know selective acknowledgements; {known}"
    if t.protocol == "tcp" and t.sack and t.variant == "vegas" and t.loss_detection == "rack":
        yield "transport.loss_detection", 'Vegas as it is here does not find losses by time; use "duplicates"'
    by_time = t.loss_detection == "rack" and t.variant in ("newreno", "sack", "cubic")
    of_tcp = t.protocol == "tcp" or _meant("transport.buffers", names, "tcp" in used)
    if t.buffers == "tuned" and of_tcp and not (t.protocol == "tcp" and t.windows == "bytes" and by_time):
        why = (
            'buffers as Linux tunes them need TCP with transport.loss_detection = "rack", '
            'transport.windows = "bytes", and transport.variant = "newreno", "sack" or "cubic"; else set '
            'transport.buffers = "fixed"'
        )
        needed = [
            f"transport.{key}" for key in ("buffers", "loss_detection", "windows", "variant", "protocol")
        ]
        yield next((key for key in needed if key in names), needed[0]), why
    if t.connection_per_session and not t.handshake:
        why = "a new connection is opened by a handshake; set transport.handshake = true"
        yield "transport.connection_per_session", why


def _precision(s: Scenario) -> Found:
    """Refuse a quantity that cannot be read, or that is known before anything is simulated."""
    if "precision_of" not in s.run.model_fields_set:
        return
    from btqueue.scenario.expressions import number_of_key, parse_quantity  # which knows all tables

    key, text = "run.precision_of", s.run.precision_of
    try:
        linear = parse_quantity(text, key, s)
        for name in linear.keys:
            number_of_key(s, name, key)
    except ScenarioError as error:
        yield from (replace(problem, key=key, value=text) for problem in error.problems)
        return
    if not linear.metrics:
        yield key, "names no metric, so that there is nothing to simulate it for"
