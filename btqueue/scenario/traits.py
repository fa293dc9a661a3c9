"""The keys that make a difference to a scenario, and a scenario with each of them in one place.

Each key of a table says itself when it has an effect (`btqueue.scenario.fields.key`): beside values of other
keys, or where a fact holds. So there are no traits of TCP without it, and no repetition on a radio without
errors.

Facts of a radio link: "errors", "packets are repeated", "repetition" (`link.arq` is not "none"), "bridges";
of a flow: "both ways" (of its connection), "messages share segments", and "single messages" (a greedy source
writes them one by one).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

from btqueue.scenario.fields import conditions, declared, effective
from btqueue.scenario.network import ENDS, Flow
from btqueue.scenario.problems import fields_of
from btqueue.scenario.radio import KEYS_OF_MODEL, Radio
from btqueue.scenario.scenario import Scenario
from btqueue.scenario.topology import Hop, Topology, active_flows, topology

OF_LINKS = ("polling", "voice", "radio", "link", "flow_control", "le", "energy")
OF_FLOWS = ("traffic", "transport")
OF_HOSTS = ("link.l2cap_delay_s", "link.baseband_delay_s", "run.jitter_s")
OTHERS = ("network.relay", "network.outside_links", "run.jitter_s")
"""Traits that are keys of other tables."""


class Trait(NamedTuple):
    """A property: its kind, named by the key of the table; its value; and the key that gives the value.

    That is the key of a single flow or link if it was written there, else the key of the table.
    """

    kind: str
    value: Any
    key: str


def is_trait(key: str) -> bool:
    """Whether a key gives traits, where it has an effect; the other keys name the members of the network."""
    return key.partition(".")[0] in (*OF_LINKS, *OF_FLOWS) or key in OTHERS


def read(scenario: Scenario, tables: tuple[str, ...], facts: Mapping[str, bool]) -> tuple[str, ...]:
    """Return the keys of tables that have an effect where these facts hold."""
    names, values = _asked()
    return _read(tables, frozenset([*zip(names, values(scenario), strict=True), *facts.items()]))


@cache
def _asked() -> tuple[list[str], attrgetter[tuple[Any, ...]]]:
    """Return the keys whose values decide whether other keys have an effect, and how they are read."""
    every = conditions(Scenario).values()
    names = sorted({name for cases in every for case in cases for name in case if "." in name})
    return names, attrgetter(*names)


@lru_cache(maxsize=1024)
def _read(tables: tuple[str, ...], given: frozenset[tuple[str, object]]) -> tuple[str, ...]:
    kinds: dict[str, Any] = {name: Scenario.model_fields[name].annotation for name in tables}
    choices = {f"{name}.{key}" for name, kind in kinds.items() for key in kind.CHOICES}
    every = effective(Scenario, given, tuple(f"{name}." for name in tables))
    return tuple(key for key in every if key not in choices)


def neutral_values(*keys: str) -> dict[str, tuple[Any, ...]]:
    """Return, by dotted name, the values at which keys change nothing: the default, if none is declared."""
    fields = fields_of(Scenario)
    return {key: declared(fields[key], "neutral") or (fields[key].default,) for key in keys}


def value(scenario: Scenario, key: str) -> Any:
    """Return the value of a key of a table, by its dotted name."""
    return attrgetter(key)(scenario)


def traits(scenario: Scenario) -> tuple[Trait, ...]:
    """Return all traits of *scenario*, each once.

    Raises:
        ScenarioError: the ends of a flow are not connected.
    """
    frozen: Any = scenario  # and so hashable
    return _traits(frozen)


@lru_cache(maxsize=256)  # more than a sweep answers together
def _traits(scenario: Scenario) -> tuple[Trait, ...]:
    plan = topology(scenario)
    pairs = [pair for flow in plan.flows for pair in ((flow.source, flow.target), (flow.target, flow.source))]
    routes = [plan.route(*pair) for pair in pairs]
    hops = dict.fromkeys(hop for route in routes for hop in route)
    found = dict.fromkeys(_of_the_network(scenario, any(len(route) > 1 for route in routes)))
    found |= dict.fromkeys(Trait(key, value(scenario, key), key) for key in OF_HOSTS)
    found |= dict.fromkeys(_of_links(scenario, plan, [hop for hop in hops if hop.kind == "bluetooth"]))
    for hop in hops:
        found |= dict.fromkeys(_outside(plan, hop) if hop.kind == "outside" else ())
    done = set()
    for number, flow in enumerate(plan.flows):
        both_ways, own = flow.reverse is not None, flow.spec is not None and flow.spec.own
        if own or both_ways not in done:
            done |= set() if own else {both_ways}
            entry = number if flow.reverse is None else min(number, flow.reverse)  # reverse flows stand last
            names = flow.spec.names(entry + 1) if flow.spec is not None else {}
            view = scenario.of_flow(flow.spec)
            keys = of_flow(view, both_ways)
            found |= dict.fromkeys(Trait(key, value(view, key), names.get(key, key)) for key in keys)
    return tuple(found)


def _of_the_network(s: Scenario, passed_on: bool) -> Iterator[Trait]:
    yield Trait("network.topology", s.network.topology, "network.topology")
    # outside links, used or not, and adaptation have whole segments passed on: they are the cause then
    if passed_on and s.network.outside_links:
        names = ", ".join(link.name for link in s.network.outside_links)
        yield Trait("network.outside_links", names, "network.outside_links")
    elif passed_on and s.link.adaptation == "fixed":
        yield Trait("network.relay", s.network.relay, "network.relay")


def _of_links(s: Scenario, plan: Topology, hops: list[Hop]) -> Iterator[Trait]:
    """Yield the traits of radio links, queues and polling on these hops."""
    piconets = {hop.index for hop in hops}
    members = {node for one in piconets for node in (plan.piconets[one].central, *plan.piconets[one].members)}
    bad_channels = any(one.ber > 0 for one in s.le.channel_classes)
    classic = s.link.bearer == "br-edr"  # the other repeats packets always, and has links, not bridges
    facts = {"bridges": classic and bool(members & plan.bridge_nodes)}
    facts["repetition"] = classic and s.link.arq != "none"
    common = _without_list(s.radio)
    for radio in dict.fromkeys(radio_of(s, plan, hop) for hop in hops):
        errors = has_errors(radio) or bad_channels or s.radio.interferers > 0
        facts["errors"] = errors
        # a packet whose acknowledgement waits for a packet to carry it keeps its place, on any radio
        waits = facts["repetition"] and s.link.arq_feedback == "lossy"
        facts["packets are repeated"] = (classic and errors) or waits
        own = radio != common
        if own:
            yield Trait("radio.links", s.radio.links, "radio.links")
        for key in read(s.model_copy(update={"radio": radio}) if own else s, OF_LINKS, facts):
            name = key.partition(".")[2]
            of_link = own and key.startswith("radio.") and name in {"model", *KEYS_OF_MODEL[radio.model]}
            if key != "radio.links":
                found = getattr(radio, name) if of_link else value(s, key)
                yield Trait(key, found, "radio.links" if of_link else key)


def radio_of(s: Scenario, plan: Topology, hop: Hop) -> Radio:
    """Return the radio of one direction of a link, without the list of the others."""
    up = hop.target == plan.piconets[hop.index].central
    member = plan.nodes[hop.source if up else hop.target]
    for own in s.radio.links:
        if own.node == member and own.direction in ("both", "up" if up else "down"):
            return own.applied_to(s.radio)
    return _without_list(s.radio)


def _without_list(radio: Radio) -> Radio:
    return radio.model_copy(update={"links": ()}) if radio.links else radio


def has_errors(radio: Radio) -> bool:
    """Whether a radio can damage a packet, interference by other piconets not counted."""
    if radio.model == "perfect":
        return False
    if radio.per is not None:
        return radio.per > 0
    rates = [getattr(radio, name) for name in KEYS_OF_MODEL[radio.model] if name.startswith("ber")]
    return radio.model == "trace" or any(rates)


def _outside(plan: Topology, hop: Hop) -> Iterator[Trait]:
    outside = plan.outside[hop.index]
    back = hop.source != outside.source and outside.link.loss_back is not None
    yield Trait("network.outside_links", outside.link.name, "network.outside_links")
    for name in type(outside.link).model_fields:
        if name not in ("name", "source", "target", "kind", "loss" if back else "loss_back"):
            key = f"network.outside_links[{hop.index + 1}].{name}"
            yield Trait(f"network.outside_links.{name}", getattr(outside.link, name), key)


def of_flow(s: Scenario, both_ways: bool) -> tuple[str, ...]:
    """Return the keys of traffic and transport that have an effect on a flow, of a scenario as it sees it."""
    counted = s.transport.protocol != "tcp" or s.transport.windows == "segments"
    facts = {
        "both ways": both_ways,
        "messages share segments": shares_segments(s),
        "single messages": counted,
    }
    return read(s, OF_FLOWS, facts)


def shares_segments(scenario: Scenario) -> bool:
    """Whether windows count bytes and messages do not fill their segments, so that messages share segments.

    Never for a greedy source, which always has data, nor for a file, whose messages are not known.

    Args:
        scenario: as a flow sees it (`Scenario.of_flow`).
    """
    transport, traffic = scenario.transport, scenario.traffic
    if transport.protocol != "tcp" or transport.windows == "segments" or traffic.source in ("greedy", "file"):
        return False
    sizes = (traffic.message_bytes,)
    if traffic.source == "request-reply":
        sizes = (traffic.request_bytes, traffic.reply_bytes, traffic.goodbye_bytes)
    return any(size % transport.mss_bytes for size in sizes)


def in_tables(scenario: Scenario) -> Scenario:
    """Return the same network as theory reads it, in whichever of its tables and flows a key was written.

    Each key of `[traffic]` and `[transport]` gets the value of most active flows to which the key makes a
    difference; with a tie, the last of these values. Flows keep the keys that differ from the tables.
    """
    flows = scenario.network.flows
    if isinstance(flows, str) or not any(flow.own for flow in flows):
        return scenario
    frozen: Any = scenario  # and so hashable
    return _in_tables(frozen)


@lru_cache(maxsize=256)
def _in_tables(scenario: Scenario) -> Scenario:
    flows, plan = active_flows(scenario.network), topology(scenario)
    views = [scenario.of_flow(flow) for flow in flows]
    ways = zip(views, plan.flows, strict=False)  # reverse flows stand last
    matters = [set(of_flow(view, flow.reverse is not None)) for view, flow in ways]
    own: list[dict[str, Any]] = [{} for _ in flows]
    tables: dict[str, Any] = {}
    for name in OF_FLOWS:
        common, common_values = getattr(scenario, name), {}
        for key in type(common).model_fields:
            values = [getattr(getattr(view, name), key) for view in views]
            most = values[0]
            if any(one != most for one in values):
                counted = [one for one, keys in zip(values, matters, strict=True) if f"{name}.{key}" in keys]
                (most, _), *_ = Counter(reversed(counted or values)).most_common(1)
                most = None if None in values else most  # no flow can take a value back
            common_values[key] = most
            for flow, one in zip(own, values, strict=True):
                flow |= {} if one == most else {Flow.RENAMED.get(key, key): one}
        tables[name] = common.model_copy(update=common_values)
    ends = ({name: getattr(flow, name) for name in ENDS} for flow in flows)
    listed = tuple(Flow(**names, **kept) for names, kept in zip(ends, own, strict=True))
    network = scenario.network.model_copy(update={"flows": listed, "active_flows": "all"})
    return scenario.model_copy(update={**tables, "network": network})
