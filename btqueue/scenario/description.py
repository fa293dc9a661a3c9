"""The network of a scenario as queueing theory sees it: stations on routes, flows with two laws each.

Made once for all solvers, from the scenario alone, with the parts that no solver covers. Segments wait or are
lost at *stations* (a host, a token bucket, a queue, a radio link, a polled piconet, a bridge, an outside
link). A *flow* goes over a route of stations and back, and has a law of its arrivals and a law of its
transport. Every property of a station or law is a *trait*, which names the key that set it: the key of a
single flow or link if it was written there, else the key of the table.

Only traits that can make a difference are here: no `relay` where nothing is passed on, no repetition on a
radio without errors, nothing of TCP without it. A solver's scope (`btqueue.scenario.scope`) is compared with
them, so a refusal names a key that matters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Literal, NamedTuple

from btqueue.scenario.bounds import shares_segments
from btqueue.scenario.radio import KEYS_OF_MODEL, Radio
from btqueue.scenario.scenario import Scenario
from btqueue.scenario.topology import FlowPlan, Hop, Topology, topology


class Trait(NamedTuple):
    """A property: its kind, named by the key of the table; its value; and the key that gives the value."""

    kind: str
    value: Any
    key: str


Traits = tuple[Trait, ...]


def is_trait(key: str) -> bool:
    """Whether a key gives traits, where it has an effect; the other keys name the members of the network."""
    table = key.partition(".")[0]
    return table not in ("network", "run") or key in (
        "network.relay",
        "network.outside_links",
        "run.jitter_s",
    )


StationKind = Literal["host", "token bucket", "queue", "radio link", "polled air", "bridge", "outside link"]


@dataclass(frozen=True)
class Station:
    """A place where segments wait, are served or are lost; its name is unique among stations of its kind."""

    kind: StationKind
    name: str
    traits: Traits


class Law(NamedTuple):
    """How messages of a flow arrive, or how its transport answers the network."""

    name: str
    traits: Traits


@dataclass(frozen=True)
class Flow:
    """Data from one node to another, and their acknowledgements: numbers of the stations passed, in order."""

    source: str
    target: str
    forth: tuple[int, ...]
    back: tuple[int, ...]
    arrivals: Law
    transport: Law


@dataclass(frozen=True)
class Description:
    """Stations and flows; `network` has the traits of no single one of them."""

    stations: tuple[Station, ...]
    flows: tuple[Flow, ...]
    network: Traits

    @cached_property
    def traits(self) -> dict[Trait, str]:
        """Return all traits, each once, with their owner: the network, a kind of station, a law."""
        found = dict.fromkeys(self.network, "network")
        for station in self.stations:
            found |= dict.fromkeys(station.traits, station.kind)
        for flow in self.flows:
            found |= dict.fromkeys(flow.arrivals.traits, "law of arrivals")
            found |= dict.fromkeys(flow.transport.traits, "law of transport")
        return found


def description(scenario: Scenario) -> Description:
    """Return the queueing network of *scenario*.

    Raises:
        ScenarioError: the ends of a flow are not connected.
    """
    frozen: Any = scenario  # and so hashable
    return _description(frozen)


@lru_cache(maxsize=256)  # more than a sweep answers together
def _description(scenario: Scenario) -> Description:
    plan = topology(scenario)
    stations: dict[tuple[StationKind, str], tuple[int, Station]] = {}

    def way(start: int, end: int) -> tuple[int, ...]:
        numbers = []
        for kind, name, traits in _on_the_way(scenario, plan, start, plan.route(start, end)):
            if (kind, name) not in stations:
                stations[kind, name] = len(stations), Station(kind, name, tuple(traits))
            numbers.append(stations[kind, name][0])
        return tuple(numbers)

    flows = []
    for number, flow in enumerate(plan.flows):
        forth, back = way(flow.source, flow.target), way(flow.target, flow.source)
        own, names = scenario.of_flow(flow.spec), _named(flow, number)
        laws = _renamed(_arrivals(own), names), _renamed(_transport(own, flow), names)
        flows.append(Flow(plan.nodes[flow.source], plan.nodes[flow.target], forth, back, *laws))
    every = tuple(station for _, station in stations.values())
    return Description(every, tuple(flows), _of_the_network(scenario, plan))


def given(scenario: Scenario, *keys: str) -> Iterator[Trait]:
    """Yield the traits that keys of tables give, whether they make a difference or not."""
    for key in keys:
        table, _, name = key.partition(".")
        yield Trait(key, getattr(getattr(scenario, table), name), key)


def _of_the_network(s: Scenario, plan: Topology) -> Traits:
    routes = [plan.route(flow.source, flow.target) for flow in plan.flows]
    found = list(given(s, "network.topology"))
    if any(len(route) > 1 for route in routes):
        # outside links, used or not, and adaptation have whole segments passed on: they are the cause then
        if s.network.outside_links:
            names = ", ".join(link.name for link in s.network.outside_links)
            found.append(Trait("network.outside_links", names, "network.outside_links"))
        elif s.link.adaptation == "fixed":
            found += given(s, "network.relay")
    return tuple(found)


# ------------------------------------------------------------------------------------------------- stations


def _on_the_way(
    s: Scenario, plan: Topology, start: int, route: tuple[Hop, ...]
) -> Iterator[tuple[StationKind, str, Iterator[Trait]]]:
    """Yield the stations that a segment passes on a route: kind, name, and an iterator over the traits."""
    yield "host", plan.nodes[start], _host(s)
    for place, hop in enumerate(route):
        source, target = plan.nodes[hop.source], plan.nodes[hop.target]
        if hop.kind == "outside":
            yield "outside link", f"{plan.outside[hop.index].link.name} to {target}", _outside(plan, hop)
            continue
        if place == 0 or route[place - 1].kind == "outside":
            yield "token bucket", source, _bucket(s)
        if hop.source in plan.bridge_nodes and place > 0 and route[place - 1].kind == "bluetooth":
            yield "bridge", source, _bridge(s)
        up = hop.target == plan.piconets[hop.index].central
        places = "flow_control.baseband_packets" if up else "flow_control.central_buffer_packets"
        room = given(s, places, "link.node_buffer_bytes", "flow_control.drop")
        yield "queue", f"{source} to {target}", room
        yield "radio link", f"{source} to {target}", _radio(s, plan, hop)
        yield "polled air", plan.piconets[hop.index].name, _air(s, plan, hop.index)
    yield "host", plan.nodes[route[-1].target], _host(s)


def _host(s: Scenario) -> Iterator[Trait]:
    layers = ("transport.tcp_delay_s", "transport.ip_delay_s", "link.l2cap_delay_s", "link.baseband_delay_s")
    yield from given(s, *layers, "run.jitter_s")


def _bucket(s: Scenario) -> Iterator[Trait]:
    yield from given(s, "flow_control.enabled")
    if s.flow_control.enabled:
        keys = ("token_rate_kbps", "bucket_bytes", "buffer_packets", "charge")
        yield from given(s, *(f"flow_control.{key}" for key in keys))


def _bridge(s: Scenario) -> Iterator[Trait]:
    keys = ["bridge_schedule", "bridge_patience_s", "bridge_limit", "bridge_buffer_packets", "switch_delay"]
    if s.polling.bridge_schedule == "walk-in":
        keys.append("residence")
        if s.polling.residence == "cycle":
            keys.append("residence_cycles")
    else:
        keys.append("rendezvous_s")
        if s.polling.bridge_schedule == "lcs":
            keys.append("longest_rendezvous_s")
    yield from given(s, *(f"polling.{key}" for key in keys))


def _air(s: Scenario, plan: Topology, index: int) -> Iterator[Trait]:
    yield from given(s, "polling.discipline", "polling.limit", "voice.packet")
    if s.polling.discipline in ("lwrr", "prc-lwrr"):
        yield from given(s, "polling.max_weight")
    if s.voice.packet != "none":
        yield from given(s, "voice.links")
    members = {plan.piconets[index].central, *plan.piconets[index].members}
    if members & plan.bridge_nodes:
        yield from _bridge(s)


def _radio(s: Scenario, plan: Topology, hop: Hop) -> Iterator[Trait]:
    """Yield the properties of one direction of a link: packets, errors, repetition."""
    link, radio = s.link, s.radio
    up = hop.target == plan.piconets[hop.index].central
    member = plan.nodes[hop.source if up else hop.target]
    for own in s.radio.links:
        if own.node == member and own.direction in ("both", "up" if up else "down"):
            radio = own.applied_to(s.radio)
    common = radio.model_copy(update={"links": s.radio.links}) == s.radio
    if not common:
        yield Trait("radio.links", s.radio.links, "radio.links")
    for name in ("model", *sorted(KEYS_OF_MODEL[radio.model])):
        yield Trait(f"radio.{name}", getattr(radio, name), f"radio.{name}" if common else "radio.links")
    yield from given(s, "radio.fading", "radio.interferers")
    if len(plan.piconets) > 1:
        yield from given(s, "radio.colocated")
    yield from given(s, "link.l2cap_header_bytes", "link.packets", "link.segmentation", "link.adaptation")
    if link.adaptation != "fixed":
        yield from given(s, "link.adaptation_estimate", "link.quality_memory_s", "link.adaptation_packets")
    if link.adaptation == "thresholds":
        yield from given(s, "link.adaptation_thresholds")
    # a packet whose acknowledgement waits for a packet to carry it keeps its place, on any radio
    repeated = link.arq != "none" and link.arq_feedback == "lossy"
    if has_errors(radio) or s.radio.interferers or (s.radio.colocated and len(plan.piconets) > 1):
        yield from given(s, "radio.bits", "link.flush_timeout_s")
        repeated = True
    if repeated:
        yield from given(s, "link.arq", *(("link.arq_feedback",) if link.arq != "none" else ()))


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
    key = f"network.outside_links[{hop.index + 1}]"
    forth = hop.source == outside.source
    names = (
        *("rate_kbps", "medium", "half_duplex", "delay_s", "jitter_s", "buffer_packets", "header_bytes"),
        *("up_s", "down_s", "loss_block_bytes"),
        "loss" if forth or outside.link.loss_back is None else "loss_back",
    )
    yield Trait("network.outside_links", outside.link.name, "network.outside_links")
    for name in names:
        yield Trait(f"network.outside_links.{name}", getattr(outside.link, name), f"{key}.{name}")


# ----------------------------------------------------------------------------------------------------- laws


def _named(flow: FlowPlan, number: int) -> Mapping[str, str]:
    """Return the keys that the flow of this number overrides, by the keys of the tables."""
    if flow.spec is None:
        return {}
    entry = number if flow.reverse is None else min(number, flow.reverse)  # reverse flows stand last
    return flow.spec.names(entry + 1)


def _renamed(law: Law, names: Mapping[str, str]) -> Law:
    """Return the law; its traits name the keys that the flow overrides in place of the table's."""
    return law._replace(traits=tuple(one._replace(key=names.get(one.kind, one.key)) for one in law.traits))


def _arrivals(s: Scenario) -> Law:
    """Return the law of the messages of a flow, from the tables as the flow sees them."""
    source = s.traffic.source
    keys = {
        "poisson": ("traffic.load_kbps", "traffic.message_bytes"),
        "ibp": ("traffic.load_kbps", "traffic.message_bytes", "traffic.scv"),
        "periodic": ("traffic.load_kbps", "traffic.message_bytes", "traffic.phase"),
        "greedy": ("traffic.message_bytes",) if _in_messages(s) else (),
        "file": ("traffic.arrival_file", "traffic.file_period_s"),
        "request-reply": (
            *("traffic.request_bytes", "traffic.reply_bytes", "traffic.goodbye_bytes", "traffic.pause_s"),
            "traffic.application_timeout_s",
        ),
    }[source]
    found = list(given(s, "traffic.source", *keys, "traffic.start_s"))
    if "traffic.load_kbps" in keys:
        found += given(s, "traffic.load_schedule")
    if source != "request-reply":
        found += given(s, "traffic.two_way")
    return Law(source, tuple(found))


def _in_messages(s: Scenario) -> bool:
    """Whether a greedy source writes messages one by one: where windows count segments."""
    return s.transport.protocol != "tcp" or s.transport.windows == "segments"


def _transport(s: Scenario, flow: FlowPlan) -> Law:
    """Return the law of a flow's transport."""
    protocol = s.transport.protocol
    found = list(given(s, "transport.protocol", "transport.header_bytes"))
    if protocol == "tcp":
        found += given(s, "transport.variant", "transport.receive_window_segments")
        return Law(s.transport.variant, (*found, *_tcp(s, flow)))
    if protocol == "centaurus":
        names = ("packet", "header", "control")
        found += given(s, *(f"transport.centaurus_{name}_bytes" for name in names))
        names = ("watchdog_s", "early_data", "start", "worker_s")
        found += given(s, *(f"transport.centaurus_{name}" for name in names))
    else:
        found += given(s, "transport.mss_bytes")
    return Law(protocol, tuple(found))


def _tcp(s: Scenario, flow: FlowPlan) -> Iterator[Trait]:
    """Yield the traits of TCP beside variant and window."""
    always = (
        *("mss_bytes", "initial_window_segments", "initial_ssthresh_segments"),
        *("initial_rto_s", "min_rto_s", "max_rto_s", "rto_backoff", "clock_granularity_s", "timer_tick_s"),
        *("hystart", "loss_probes", "frto", "rto_variation", "buffers"),
        "timestamps",
        *("limited_transmit", "rate_reduction", "window_limited_growth", "hold_ssthresh"),
        *("handshake", "delayed_ack", "ack_path", "send_buffer_segments"),
        *("ssthresh_rule", "byte_counting", "timeout_exit_holds", "ack_ends_backoff"),
    )
    yield from given(s, *(f"transport.{name}" for name in always))
    if shares_segments(s):
        yield from given(s, "transport.windows", "transport.nagle")
    variant = s.transport.variant
    if variant in ("newreno", "cubic", "vegas"):
        yield from given(s, "transport.sack")
    if variant == "sack" or s.transport.sack:
        yield from given(
            s, "transport.sack_blocks", "transport.retransmit_only_lost", "transport.forward_ack"
        )
    elif variant in ("reno", "newreno", "cubic", "vegas"):
        yield from given(s, "transport.inflate_by_one")
    if variant != "tahoe":
        yield from given(s, "transport.recovery_exit_grows")
    if variant in ("newreno", "sack", "cubic"):
        yield from given(s, "transport.loss_detection")
    if variant in ("newreno", "sack", "cubic", "vegas"):
        yield from given(s, "transport.impatient_timer")
    if variant == "vegas":
        names = ("alpha", "beta", "gamma", "vegas_adjustment", "vegas_on_srtt")
        yield from given(s, *(f"transport.{name}" for name in names))
    if s.transport.delayed_ack:
        yield from given(s, "transport.ack_every_segments", "transport.ack_clock", "transport.ack_delay_s")
        yield from given(s, "transport.quick_acks")
    if flow.reverse is not None:
        yield from given(s, "transport.piggyback")
    if s.traffic.source == "request-reply":
        yield from given(s, "transport.connection_per_session")
