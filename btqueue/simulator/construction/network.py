"""From a scenario's topology to records: nodes, links with their ports and queues, piconets, bridges, media.

Ports are numbered: uplinks and downlinks of all memberships, then the two directions of each outside link.
"""

import itertools
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from btqueue.baseband.voice import exchange_slots
from btqueue.scenario import Scenario
from btqueue.scenario.radio import Radio
from btqueue.scenario.topology import Topology
from btqueue.simulator.bluetooth import voice
from btqueue.simulator.bluetooth.meetings import SHORTEST_MEETING
from btqueue.simulator.construction import low_energy
from btqueue.simulator.construction.flows import Layouts
from btqueue.simulator.construction.numbering import NO_FIELDS, Rows, Streams, Timers
from btqueue.simulator.construction.radio_tables import RadioTables, radio_tables
from btqueue.simulator.records import le_links, nodes, piconets
from btqueue.simulator.records.conventions import (
    NANOBITS_A_BYTE,
    NEVER,
    NOTHING,
    SECOND,
    SLOT,
    UNLIMITED,
    nanoseconds,
)
from btqueue.simulator.records.run import LINE, MEDIUM, TOKENS, TURN

IDLE_INTERVALS = 8
"""Most time between two meetings of an idle link, in least times: three doublings."""
DISCIPLINES = {
    "e-limited": piconets.E_LIMITED,
    "1-limited": piconets.E_LIMITED,
    "round-robin": piconets.E_LIMITED,
    "exhaustive": piconets.EXHAUSTIVE,
    "gated": piconets.GATED,
    "fep": piconets.FEP,
    "lwrr": piconets.LWRR,
    "prc-lwrr": piconets.PRC_LWRR,
    "slq": piconets.SLQ,
    "ldq": piconets.LDQ,
}
SINGLE_FRAME = ("1-limited", "round-robin")
SCHEDULES = {
    "walk-in": piconets.WALK_IN,
    "sniff": piconets.SNIFF,
    "pcss": piconets.PSEUDO_RANDOM,
    "lcs": piconets.COORDINATED,
}
RESIDENCES = {"visit": piconets.VISIT, "cycle": piconets.WHOLE_CYCLES, "complete": piconets.COMPLETE}
EMPTY_QUEUE: dict[str, object] = {"head": NOTHING, "tail": NOTHING}
NO_BUCKET: dict[str, object] = {"queue": NOTHING, "timer": NOTHING}


class Parts(NamedTuple):
    """The records of the network, where its ports are, and the fields that equal parts have in common."""

    nodes: Rows
    lines: Rows
    ports: Rows
    queues: Rows
    buckets: Rows
    media: Rows
    channels: np.ndarray
    piconets: Rows
    links: Rows
    bridges: Rows
    tables: RadioTables
    port_of: dict[tuple[int, int], int]
    le_links: Rows
    le_neighbours: list[int]
    radio_port: dict[str, object]
    bucket: dict[str, object]
    outbox: dict[str, object]
    inbox: dict[str, object]


def build_network(
    scenario: Scenario,
    plan: Topology,
    routes: list[list[int]],
    timers: Timers,
    streams: Streams,
    layouts: Layouts,
) -> Parts:
    """Return the empty network.

    Args:
        scenario: the scenario to build.
        plan: its topology.
        routes: the nodes of every path that a segment may take; hosts and token buckets are set up for them.
        timers: numbered in the order in which they fire at the same time: centrals, hosts, outside links.
        streams: random streams, channels first.
        layouts: how the segments of all flows are cut.
    """
    lengths = list(layouts.lengths) if isinstance(layouts, low_energy.Layouts) else None
    radios, radio_of = radios_of(scenario, plan)
    parts = Parts(
        nodes=Rows(nodes.node_dtype),
        lines=Rows(nodes.line_dtype),
        ports=Rows(nodes.port_dtype),
        queues=Rows(nodes.queue_dtype),
        buckets=Rows(nodes.bucket_dtype),
        media=Rows(nodes.medium_dtype),
        channels=np.zeros(0, nodes.channel_dtype).view(np.recarray),
        piconets=Rows(piconets.piconet_dtype),
        links=Rows(piconets.link_dtype),
        bridges=Rows(piconets.bridge_dtype),
        tables=radio_tables(radios, scenario.link, scenario.voice.packet)
        if lengths is None
        else low_energy.tables(scenario, lengths, radios),
        port_of={},
        le_links=Rows(le_links.le_link_dtype),
        le_neighbours=[],
        radio_port=radio_port_options(scenario),
        bucket=bucket_options(scenario),
        **layer_options(scenario),
    )
    limit = scenario.link.node_buffer_bytes
    empty: dict[str, object] = {"outbox": NOTHING, "inbox": NOTHING, "bridge": NOTHING}
    empty |= {"buffer_limit": UNLIMITED if limit is None else limit}
    for _ in plan.nodes:
        parts.nodes.add(empty)
    if lengths is not None:
        low_energy.add_links(parts, scenario, plan, timers, streams, partial(add_radio_port, parts))
    else:
        add_bridges(parts, scenario, plan)
        for index in range(len(plan.piconets)):
            add_piconet(parts, scenario, plan, index, timers)
    add_outside_ports(parts, plan)
    channels = add_channels(parts, scenario, radio_of, streams)
    add_hosts(parts, scenario, plan, routes, timers, streams)
    for index in range(len(plan.outside)):
        add_outside_lines(parts, plan, index, timers, streams)
    for index in range(len(parts.media)):
        medium = parts.media[index]
        node = parts.ports[medium["first_port"]]["node"]
        medium |= {"timer": timers.add(MEDIUM, index, node), "stream": streams.add()}
    for index in range(len(parts.bridges)):
        parts.bridges[index]["stream"] = streams.add()
    for index in range(len(plan.piconets)):
        parts.piconets[index]["stream"] = streams.add()
    return parts._replace(channels=channels)


# ------------------------------------------------------------------------------------ piconets and bridges


def add_bridges(parts: Parts, scenario: Scenario, plan: Topology) -> None:
    """Add the devices that are in several piconets."""
    polling = scenario.polling
    for index, bridge in enumerate(plan.bridges):
        count = len(bridge.piconets)
        padding = [NOTHING] * (piconets.PICONETS_A_BRIDGE - count)
        own = [k for k, p in enumerate(bridge.piconets) if plan.piconets[p].central == bridge.node]
        agreed = polling.bridge_schedule == "lcs"
        shortest, windows = (SHORTEST_MEETING, 1) if agreed else (4 * SLOT, count)
        window = max(shortest, round(polling.rendezvous_s / windows * SECOND / SLOT) * SLOT)
        parts.bridges.add(
            node=bridge.node,
            schedule=SCHEDULES[polling.bridge_schedule],
            residence=RESIDENCES[polling.residence],
            residence_cycles=polling.residence_cycles,
            count=count,
            piconets=list(bridge.piconets) + padding,
            links=[NOTHING] * piconets.PICONETS_A_BRIDGE,
            own=bridge.piconets[own[0]] if own else NOTHING,
            current=own[0] if own else 0,
            # Without a switch delay the clocks agree on slot pairs, so that windows begin with one.
            window=window,
            longest_interval=max(window, nanoseconds(IDLE_INTERVALS * polling.rendezvous_s)),
            switch_delay=polling.switch_delay,
        )
        parts.nodes[bridge.node]["bridge"] = index


def add_piconet(parts: Parts, scenario: Scenario, plan: Topology, index: int, timers: Timers) -> None:
    """Add a piconet, its memberships, and their ports and queues."""
    polling, piconet = scenario.polling, plan.piconets[index]
    single = polling.discipline in SINGLE_FRAME
    limit = 1 if single else polling.limit
    bridges = [member for member in piconet.members if "bridge" in parts.nodes[member]]
    away = parts.nodes[piconet.central].get("bridge", NOTHING)
    ordinary = max(1, len(piconet.members) - len(bridges))
    bridge_limit = polling.bridge_limit or (1 if single else ordinary * polling.limit)
    bridge_buffer = polling.bridge_buffer_packets or ordinary * polling.limit
    links = scenario.voice.reservation
    period, reserved = voice.reservation(links)
    rates = parts.tables.error_rates[:, -2]  # of voice packets, where extended voice links have a column
    repeated = links is not None and links.window > 0 and bool(np.any(rates))
    cyclic = DISCIPLINES[polling.discipline] <= piconets.GATED
    windows = polling.bridge_schedule != "walk-in"
    meets = polling.bridge_schedule == "lcs" and (len(bridges) > 0 or away != NOTHING)
    meetings = len(bridges) + (0 if away == NOTHING else parts.bridges[away]["count"] - 1)
    parts.piconets.add(
        timer=timers.add(TURN, index, piconet.central),
        node=piconet.central,
        first_link=len(parts.links),
        links=len(piconet.members),
        plain=is_plain(scenario) and not (windows and (bridges or away != NOTHING)),
        discipline=DISCIPLINES[polling.discipline],
        limit=limit,
        meets=meets,
        # Saturated, it shares its time as in a cycle: `limit` frames a peripheral, `bridge_limit` a bridge.
        rest=(len(piconet.members) - len(bridges)) * limit / (meetings * bridge_limit) if meets else 0.0,
        max_weight=polling.max_weight,
        packet=NOTHING,
        on_air_type=NOTHING,
        bridge=away,
        can_sleep=cyclic and not bridges and away == NOTHING and not repeated,
        voice_period=period,
        voice_reserved=reserved,
        voice_links=links.links if links and repeated else 0,
        voice_type=parts.tables.error_rates.shape[1] - 2,
        voice_slots=exchange_slots(scenario.voice.packet) // 2,
        voice_window=links.window if links else 0,
    )
    for member in piconet.members:
        bridge = parts.nodes[member].get("bridge", NOTHING)
        link = parts.links.add(
            piconet=index,
            node=member,
            bridge=bridge,
            limit=limit if bridge == NOTHING else UNLIMITED if meets else bridge_limit,
        )
        if bridge != NOTHING:
            memberships = parts.bridges[bridge]
            memberships["links"][memberships["piconets"].index(index)] = link
        limits = scenario.flow_control
        down_limit = limits.central_buffer_packets or UNLIMITED
        up_limit = (limits.baseband_packets or UNLIMITED) if bridge == NOTHING else bridge_buffer
        parts.links[link].update(
            up=add_radio_port(parts, link, member, piconet.central, nodes.UPLINK, up_limit),
            down=add_radio_port(parts, link, piconet.central, member, nodes.DOWNLINK, down_limit),
        )


def is_plain(scenario: Scenario) -> bool:
    """Whether half-frames need none of the rarer options of links and polling."""
    link = scenario.link
    return (
        link.arq == "none"
        and link.adaptation == "fixed"
        and link.baseband_delay_s == 0
        and link.node_buffer_bytes is None
        and scenario.voice.packet == "none"
        and scenario.polling.discipline != "gated"
    )


def radio_port_options(scenario: Scenario) -> dict[str, object]:
    """Return the fields that all sending sides of Bluetooth links have in common."""
    arq, flush = scenario.link.arq, scenario.link.flush_timeout_s
    return {
        "most_transmissions": {"none": 0, "unlimited": UNLIMITED}.get(arq, arq)
        if isinstance(arq, str)
        else arq,
        "flush": NEVER if flush is None else nanoseconds(flush),
        "adaptive": scenario.link.adaptation != "fixed",
        "baseband_delay": nanoseconds(scenario.link.baseband_delay_s),
        "medium": NOTHING,
        "line": NOTHING,
    }


def add_radio_port(parts: Parts, link: int, node: int, peer: int, kind: int, limit: int) -> int:
    """Add the sending side of one direction of a Bluetooth link, with its queue, and return its number."""
    piconet = parts.links[link]["piconet"]
    port = add_port(parts, kind, limit, parts.radio_port, node=node, peer=peer, piconet=piconet, link=link)
    parts.port_of[node, peer] = port
    return port


def add_port(
    parts: Parts, kind: int, limit: int, alike: dict[str, object] = NO_FIELDS, **fields: object
) -> int:
    """Add a port, its queue of at most `limit` packets, and its token bucket, off until a host sends.

    All three have the same number, so no port may be added after the buffer of a bucket. *alike* are fields
    that it has in common with other ports.
    """
    parts.queues.add(EMPTY_QUEUE, limit=limit, kind=kind)
    parts.buckets.add(NO_BUCKET)
    return parts.ports.add(alike, kind=kind, **fields)


# ----------------------------------------------------------------------------------------- radio channels


def radios_of(scenario: Scenario, plan: Topology) -> tuple[list[Radio], dict[tuple[int, str], int]]:
    """Return the different settings of the radio, and the number of each (node, direction) with its own."""
    radios, own = [scenario.radio], {}
    for override in scenario.radio.links:
        radio = override.applied_to(scenario.radio)
        if radio not in radios:
            radios.append(radio)
        directions = ("up", "down") if override.direction == "both" else (override.direction,)
        for direction in directions:
            own[plan.nodes.index(override.node), direction] = radios.index(radio)
    return radios, own


def add_channels(
    parts: Parts, scenario: Scenario, own: dict[tuple[int, str], int], streams: Streams
) -> np.ndarray:
    """Give every port its channel and return the channels.

    Both directions of a link share a channel. With `fading = "per-piconet"` all links of a piconet share one,
    unless a link has individual settings of the radio.
    """
    known: dict[tuple, int] = {}
    radios, state_streams, error_streams = [], [], []
    for link in parts.links.rows:
        for direction in ("up", "down"):
            radio = own.get((link["node"], direction), 0) if own else 0
            shared = radio == 0 and scenario.radio.fading == "per-piconet"
            key = ("piconet", link["piconet"]) if shared else (link["up"], radio)
            if key not in known:
                known[key] = len(radios)
                radios.append(radio)
                state_streams.append(streams.add())
                error_streams.append(streams.add())
            parts.ports[link[direction]]["channel"] = known[key]
    channels = parts.tables.channels[radios]
    channels["state_stream"], channels["error_stream"] = state_streams, error_streams
    return channels


# -------------------------------------------------------------------------------------------------- hosts


def add_hosts(
    parts: Parts,
    scenario: Scenario,
    plan: Topology,
    routes: list[list[int]],
    timers: Timers,
    streams: Streams,
) -> None:
    """Give token buckets to the ports that segments enter, and delay lines to the hosts of routes."""
    hosts = {route[0] for route in routes} | {route[-1] for route in routes}
    entered: dict[int, None] = {}
    for route in routes:
        steps = list(itertools.pairwise(route))
        for step in steps if scenario.network.relay == "segment" else steps[:1]:
            entered[parts.port_of[step]] = None
    ports_of_node: dict[int, list[int]] = {}
    for port in sorted(entered):
        if parts.ports[port]["kind"] != nodes.OUTSIDE:
            ports_of_node.setdefault(parts.ports[port]["node"], []).append(port)
    for node in range(len(plan.nodes)):
        for port in ports_of_node.get(node, []):
            add_bucket(parts, scenario, port, timers)
        if node in hosts:
            add_layers(parts, node, timers, streams)


def bucket_options(scenario: Scenario) -> dict[str, object]:
    """Return the fields that all token buckets in use have in common: they are full, with an empty buffer."""
    flow_control = scenario.flow_control
    found = NO_BUCKET | {"whole_segments": flow_control.drop == "segment"}
    if not flow_control.enabled:
        return found
    depth = flow_control.bucket_bytes * NANOBITS_A_BYTE
    return found | {
        "enabled": True,
        "rate": flow_control.token_rate_kbps * 1000,
        "depth": depth,
        "tokens": depth,
    }


def add_bucket(parts: Parts, scenario: Scenario, port: int, timers: Timers) -> None:
    """Set up the token bucket of a port."""
    parts.buckets.alike[port], bucket = parts.bucket, parts.buckets[port]
    if scenario.flow_control.enabled:
        limit = scenario.flow_control.buffer_packets
        bucket["queue"] = parts.queues.add(EMPTY_QUEUE, limit=limit, kind=nodes.TOKEN_BUFFER)
        bucket["timer"] = timers.add(TOKENS, port, parts.ports[port]["node"])


def layer_options(scenario: Scenario) -> dict[str, Any]:
    """Return the processing times of a host's layers, as fields of delay lines; none where all are 0.

    Down: TCP holds each segment for its delay, then IP and L2CAP take one segment at a time (Johansson et al.
    2000, section 4.1), then a random processing delay. Up: baseband and TCP hold it, L2CAP and IP take one at
    a time. The order of TCP's delay does not matter, because it is the same for every segment.
    """
    link, transport = scenario.link, scenario.transport
    tcp, ip = nanoseconds(transport.tcp_delay_s), nanoseconds(transport.ip_delay_s)
    l2cap, baseband = nanoseconds(link.l2cap_delay_s), nanoseconds(link.baseband_delay_s)
    jitter = nanoseconds(scenario.run.jitter_s)
    down = {"delay": tcp, "interval_1": ip, "interval_2": l2cap, "jitter": jitter, "purpose": nodes.OUTBOX}
    up = {"delay": tcp + baseband, "interval_1": l2cap, "interval_2": ip, "purpose": nodes.INBOX}
    layers = tcp or ip or l2cap
    return {
        "outbox": {**EMPTY_QUEUE, **down} if layers or jitter else {},
        "inbox": {**EMPTY_QUEUE, **up} if layers or baseband else {},
    }


def add_layers(parts: Parts, node: int, timers: Timers, streams: Streams) -> None:
    """Add the delay lines for the processing times of a host's layers."""
    stream = streams.add()
    if parts.outbox:
        parts.nodes[node]["outbox"] = add_line(parts, timers, node, parts.outbox, stream=stream)
    if parts.inbox:
        parts.nodes[node]["inbox"] = add_line(parts, timers, node, parts.inbox)


def add_line(parts: Parts, timers: Timers, node: int, alike: dict[str, object], **fields: object) -> int:
    """Add an empty delay line at a node, with its timer, and return its number."""
    line = parts.lines.add(alike, **fields)
    parts.lines[line]["timer"] = timers.add(LINE, line, node)
    return line


# -------------------------------------------------------------------------------------------- outside links


def add_outside_ports(parts: Parts, plan: Topology) -> None:
    """Add the ports of outside links, medium by medium: the ports that share a medium are neighbours.

    A link that names a medium shares it with all links of that name, in both directions; else a half-duplex
    link has one medium, and a full-duplex link one for each direction.
    """
    media: dict[tuple, list[tuple[int, bool]]] = {}
    for index, outside in enumerate(plan.outside):
        for back in (False, True):
            link = outside.link
            if link.medium is not None:
                key: tuple = ("shared", link.medium)
            else:
                key = (index,) if link.half_duplex else (index, back)
            media.setdefault(key, []).append((index, back))
    for members in media.values():
        link = plan.outside[members[0][0]].link
        medium = parts.media.add(
            rate=link.rate_kbps * 1000,
            header=link.header_bytes,
            first_port=len(parts.ports),
            ports=len(members),
            serving=NOTHING,
            up_mean=link.up_s * SECOND,
            down_mean=link.down_s * SECOND,
        )
        for index, back in members:
            add_outside_port(parts, plan, index, back, medium)


def add_outside_port(parts: Parts, plan: Topology, index: int, back: bool, medium: int) -> None:
    """Add the port of one direction of an outside link."""
    outside = plan.outside[index]
    link = outside.link
    ends = (outside.target, outside.source) if back else (outside.source, outside.target)
    loss_back = link.loss if link.loss_back is None else link.loss_back
    parts.port_of[ends] = add_port(
        parts,
        nodes.OUTSIDE,
        link.buffer_packets,
        node=ends[0],
        peer=ends[1],
        piconet=NOTHING,
        link=NOTHING,
        channel=NOTHING,
        medium=medium,
        line=NOTHING,
        loss=loss_back if back else link.loss,
        loss_block=link.loss_block_bytes or 0,
    )


def add_outside_lines(parts: Parts, plan: Topology, index: int, timers: Timers, streams: Streams) -> None:
    """Add the propagation delays of both directions of an outside link, where there are any."""
    outside = plan.outside[index]
    for ends in ((outside.source, outside.target), (outside.target, outside.source)):
        port = parts.port_of[ends]
        parts.ports[port]["stream"] = streams.add()
        stream = streams.add()
        if outside.link.delay_s or outside.link.jitter_s:
            parts.ports[port]["line"] = add_line(
                parts,
                timers,
                ends[0],
                EMPTY_QUEUE,
                purpose=nodes.PROPAGATION,
                stream=stream,
                exponential=True,
                delay=nanoseconds(outside.link.delay_s),
                jitter=nanoseconds(outside.link.jitter_s),
            )
