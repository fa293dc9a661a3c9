"""Checks that need more than one key, each a small rule that yields problems."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from btqueue.baseband.packets import PACKET_TYPES, SLOT_S
from btqueue.baseband.voice import ESCO_PACKETS, most_links, most_window
from btqueue.scenario import low_energy, network_checks
from btqueue.scenario.errors import Problem, ScenarioError, bad_value, bracketed, conflict
from btqueue.scenario.polling import fits_beside, free_slots
from btqueue.scenario.problems import closest
from btqueue.scenario.radio import KEYS_OF_MODEL, Radio

if TYPE_CHECKING:
    from btqueue.scenario.network import Flow
    from btqueue.scenario.scenario import Scenario


def problems_between_keys(scenario: Scenario) -> list[Problem]:
    """Return every contradiction between the keys of *scenario*; an empty list when there is none."""
    rules = (
        network_checks.network,
        network_checks.flows,
        low_energy.problems,
        _radio,
        _link,
        _flow_control,
        _patience,
        _voice,
        _flows,
        _precision,
    )
    return [_with_origin(scenario, problem) for rule in rules for problem in rule(scenario)]


def _with_origin(scenario: Scenario, problem: Problem) -> Problem:
    """Return the problem, which says so if a preset gives the value and nobody wrote it."""
    origin = scenario.origin(problem.key) if problem.value is not None else ""
    if not origin.startswith("of preset"):
        return problem
    return replace(problem, message=f"{problem.message} ({bracketed(problem.key)} is {origin})")


def _radio(s: Scenario) -> Iterator[Problem]:
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
            yield conflict(f"{key}.node", link.node, "an earlier entry has set this link already")
        seen.update((link.node, direction) for direction in directions)
        radio = link.applied_to(r)
        given = frozenset(link.overrides)
        if unused := sorted(given - {"model"} - KEYS_OF_MODEL[radio.model]):
            why = f"the {radio.model} radio of this link does not read it; give the entry another model, too"
            yield conflict(f"{key}.{unused[0]}", getattr(link, unused[0]), why)
        else:
            yield from _one_radio(radio, key, given)


def _one_radio(r: Radio, table: str, given: frozenset[str]) -> Iterator[Problem]:
    """Check one radio, and name the keys that were *given* in its table."""

    def key(*names: str) -> str:
        return f"{table}.{next((name for name in names if name in given), names[0])}"

    if r.ber_good > r.ber_bad:
        why = f"the good state must not be worse than the bad one (ber_bad = {r.ber_bad:g})"
        yield conflict(key("ber_good", "ber_bad", "model"), r.ber_good, why, allowed=f"at most {r.ber_bad:g}")
    if r.model == "gilbert-elliott":
        for name in ("good_s", "bad_s"):
            if getattr(r, name) == 0:
                why = (
                    "the gilbert-elliott radio needs a mean stay above 0 in both states; "
                    'for a radio that never changes use model = "constant" with ber'
                )
                yield conflict(f"{table}.{name}", 0, why, allowed="a number above 0")
    if r.model == "trace" and r.trace_file is None:
        yield conflict(f"{table}.model", r.model, "needs trace_file")
    if r.per is not None and r.model != "constant" and "per" in given:
        why = f'a fixed packet error rate goes with model = "constant", not "{r.model}"'
        yield conflict(f"{table}.per", r.per, why)
    if r.per is not None and r.ber > 0:
        yield conflict(f"{table}.per", r.per, f"give either per or ber (ber = {r.ber:g}), not both")


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
    if link.flush_timeout_s is not None and link.arq == "none" and link.bearer != "le":
        why = 'a flush timeout needs link-level repetition; set link.arq to "unlimited" or a number'
        yield conflict("link.flush_timeout_s", link.flush_timeout_s, why)
    if link.arq_feedback == "lossy" and link.arq == "none":
        why = 'there is no feedback to lose without repetition; set link.arq to "unlimited" or a number'
        yield conflict("link.arq_feedback", link.arq_feedback, why)


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


def _patience(s: Scenario) -> Iterator[Problem]:
    """Refuse waits that are too short for any answer: the device would give up without end."""
    for key, value in (
        ("transport.centaurus_watchdog_s", s.transport.centaurus_watchdog_s),
        ("traffic.application_timeout_s", s.traffic.application_timeout_s or 0.0),
    ):
        if 0 < value < SLOT_S:
            why = f"less than a slot, {SLOT_S:g} s, is no time to wait for an answer"
            yield conflict(key, value, why, allowed=f"at least {SLOT_S:g}")


def _voice(s: Scenario) -> Iterator[Problem]:
    v = s.voice
    most = most_links(v.packet)
    if v.packet == "none" and v.links > 0:
        yield conflict("voice.links", v.links, "choose the packet type of the voice links (voice.packet)")
    elif v.links > most:
        yield conflict("voice.links", v.links, f"a piconet has room for at most {most} {v.packet} links")
    elif v.packet != "none" and v.links == 0:
        yield conflict(
            "voice.links", v.links, f'{v.packet} needs at least one link; use packet = "none" for no voice'
        )
    elif v.packet != "none":
        yield from _repeated_voice(s)
        yield from _room_beside_voice(s)


def _repeated_voice(s: Scenario) -> Iterator[Problem]:
    """Refuse retransmission windows that are odd, or too long, or of links that repeat nothing."""
    v, key = s.voice, "voice.retransmission_slots"
    most = most_window(v.packet, v.links)
    if v.retransmission_slots > most:
        why = f"{v.packet} packets are never repeated"
        if v.packet in ESCO_PACKETS:
            why = f"must not exceed {most}: windows end before the next reserved slots"
        yield conflict(key, v.retransmission_slots, why, allowed=f"at most {most}" if most else "0")
    elif v.retransmission_slots % 2:
        why = "exchanges begin at even slots"
        yield conflict(key, v.retransmission_slots, why, allowed="an even number")


def _room_beside_voice(s: Scenario) -> Iterator[Problem]:
    """Refuse packet types that never fit between the slots of the voice links."""
    v, link = s.voice, s.link
    links = f"1 {v.packet} link leaves" if v.links == 1 else f"{v.links} {v.packet} links leave"
    room = free_slots(v)
    if room == 0:
        yield conflict("voice.links", v.links, f"{links} no slot for data")
        return
    fits = ", ".join(name for name in PACKET_TYPES if fits_beside(v, name))
    for key in ("packets", *(["adaptation_packets"] if link.adaptation != "fixed" else [])):
        for name in getattr(link, key):
            if not fits_beside(v, name):
                needs = f"with an answer it takes {PACKET_TYPES[name].slots + 1} slots in a row"
                why = f"{needs}, and {links} {room}; these fit: {fits}"
                yield conflict(f"link.{key}", name, why, allowed=fits)


def _of_flows(s: Scenario) -> Iterator[tuple[Scenario, Callable[[str], str]]]:
    """Yield the scenario as each kind of flow sees it, and a function from a key to its name there."""
    flows: tuple[Flow, ...] = () if isinstance(s.network.flows, str) else s.network.flows
    if not flows or not all(flow.own for flow in flows):
        yield s, str
    for number, flow in enumerate(flows, start=1):
        if names := flow.names(number):
            yield s.of_flow(flow), lambda key, names=names: names.get(key, key)


def _flows(s: Scenario) -> Iterator[Problem]:
    """Check traffic and transport of each flow; a problem that several flows share is reported once."""
    seen = list(_of_flows(s))
    used = frozenset({word for one, _ in seen for word in (one.traffic.source, one.transport.protocol)})
    first: dict[str, Problem] = {}
    for one, named in seen:
        for problem in (*_traffic(one, named, used), *_transport(one, named, used)):
            first.setdefault(problem.message, problem)
    yield from first.values()


def _traffic(s: Scenario, named: Callable[[str], str], used: frozenset[str]) -> Iterator[Problem]:
    """Check the traffic of a flow; a key of the table may be for other flows, of a law that is `used`."""
    t, protocol = s.traffic, s.transport.protocol
    times = [step.at_s for step in t.load_schedule]
    if any(a >= b for a, b in pairwise(times)):
        yield conflict(named("traffic.load_schedule"), times, "the times must increase")
    if t.source == "file" and t.arrival_file is None:
        key = named("traffic.source")
        why = "needs arrival_file" if key == "traffic.source" else "needs traffic.arrival_file"
        yield conflict(key, t.source, why)
    answers = ("request-reply",) if s.link.bearer == "le" else ("greedy", "request-reply")
    if protocol == "none" and t.source in answers:
        why = f'"{t.source}" needs a transport protocol that answers; set transport.protocol = "tcp"'
        yield conflict(named("traffic.source"), t.source, why)
    if protocol == "centaurus" and t.source != "request-reply":
        why = "CentaurusComm carries the messages of sessions"
        allowed = 'with traffic.source = "request-reply"'
        yield conflict(named("transport.protocol"), protocol, why, allowed=allowed)
    if s.transport.handshake and protocol != "tcp" and _meant("transport.handshake", named, "tcp" in used):
        why = "the handshake opens connections of TCP"
        yield conflict(named("transport.handshake"), True, why, allowed='with transport.protocol = "tcp"')
    if t.source == "ibp":
        yield from _ibp(s, named)
    for key, value in (
        ("traffic.application_timeout_s", t.application_timeout_s),
        ("transport.connection_per_session", s.transport.connection_per_session or None),
    ):
        if value is not None and t.source != "request-reply" and _meant(key, named, "request-reply" in used):
            why = 'goes with sessions: traffic.source = "request-reply", or the law of a flow'
            yield conflict(named(key), value, why)


def _meant(key: str, named: Callable[[str], str], others: bool) -> bool:
    """Whether an unused key was meant for a flow: the flow sets it, or no other flow uses it."""
    return named(key) != key or not others


def _ibp(s: Scenario, named: Callable[[str], str]) -> Iterator[Problem]:
    """Refuse interrupted Bernoulli sources that no probabilities of its states can give.

    With r messages a slot, both states are left with probabilities if scv is at least (1 - r) |1 - 2 r|.
    """
    t = s.traffic
    loads = [t.load_kbps, *(step.load_kbps for step in t.load_schedule)]
    rates = [load * 1000 * SLOT_S / (8 * t.message_bytes) for load in loads]
    if max(rates) >= 1.0:
        why = f"an ibp source writes less than a message a slot, not {max(rates):.3g}"
        allowed = "less than a message a slot: a smaller load_kbps or a greater message_bytes"
        yield conflict(named("traffic.load_kbps"), t.load_kbps, why, allowed=allowed)
        return
    least = max((1.0 - rate) * abs(1.0 - 2.0 * rate) for rate in rates)
    if t.scv < least * (1.0 - 1e-12):
        allowed = f"at least {least:.6g}"
        why = f"an ibp source at this load has gaps that vary more; {allowed}"
        yield conflict(named("traffic.scv"), t.scv, why, allowed=allowed)


def _transport(s: Scenario, named: Callable[[str], str], used: frozenset[str]) -> Iterator[Problem]:
    t = s.transport
    if t.protocol == "tcp" and t.header_bytes == 0 and s.link.l2cap_header_bytes == 0:
        why = "with link.l2cap_header_bytes = 0 an acknowledgement would have no bytes to send"
        allowed = "at least 1, or link.l2cap_header_bytes of at least 1"
        yield conflict(named("transport.header_bytes"), 0, why, allowed=allowed)
    for name, most, value in (
        ("min_rto_s", "max_rto_s", t.min_rto_s),
        ("initial_rto_s", "max_rto_s", t.initial_rto_s),
        ("alpha", "beta", t.alpha),
        ("initial_window_segments", "receive_window_segments", t.initial_window_segments),
    ):
        if value > (limit := getattr(t, most)):
            key = named(f"transport.{name}")
            own_limit = key == f"transport.{name}" and named(f"transport.{most}") != f"transport.{most}"
            if own_limit or (most in t.model_fields_set and name not in t.model_fields_set):
                why = f"must not be smaller than transport.{name} = {value:g}"
                yield conflict(named(f"transport.{most}"), limit, why)
            else:
                yield conflict(key, value, f"must not exceed {most} = {limit:g}")
    per_ack = t.variant == "vegas" and t.vegas_adjustment == "per-ack"
    if t.protocol == "tcp" and t.sack and (t.variant in ("tahoe", "reno") or per_ack):
        why = f"{t.variant} as it is here does not know selective acknowledgements"
        allowed = 'with "newreno", "sack", "cubic" and per-rtt "vegas"'
        yield conflict(named("transport.sack"), True, why, allowed=allowed)
    if t.protocol == "tcp" and t.sack and t.variant == "vegas" and t.loss_detection == "rack":
        why = "Vegas as it is here does not find losses by time"
        yield conflict(named("transport.loss_detection"), "rack", why, allowed='"duplicates"')
    by_time = t.loss_detection == "rack" and t.variant in ("newreno", "sack", "cubic")
    of_tcp = t.protocol == "tcp" or _meant("transport.buffers", named, "tcp" in used)
    if t.buffers == "tuned" and of_tcp and not (t.protocol == "tcp" and t.windows == "bytes" and by_time):
        why = (
            'buffers as Linux tunes them need TCP with transport.loss_detection = "rack", '
            'transport.windows = "bytes", and transport.variant = "newreno", "sack" or "cubic"; else set '
            'transport.buffers = "fixed"'
        )
        needed = ("buffers", "loss_detection", "windows", "variant", "protocol")
        places = [named(f"transport.{name}") for name in needed]
        own = next((name for name, key in zip(needed, places, strict=True) if "flows" in key), "buffers")
        yield conflict(named(f"transport.{own}"), getattr(t, own), why, allowed='buffers = "fixed"')
    if t.connection_per_session and not t.handshake:
        why = "a new connection is opened by a handshake; set transport.handshake = true"
        yield conflict(named("transport.connection_per_session"), True, why)


def _precision(s: Scenario) -> Iterator[Problem]:
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
        yield conflict(key, text, "names no metric, so that there is nothing to simulate it for")
