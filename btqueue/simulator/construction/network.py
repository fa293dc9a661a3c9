"""From a scenario's topology to records: nodes, links with their ports and queues, piconets, bridges, media.

Ports are numbered: uplinks and downlinks of all memberships, then the two directions of each outside link.
"""

import itertools

import numpy as np

from btqueue.baseband.voice import exchange_slots
from btqueue.scenario import Scenario
from btqueue.scenario.network import OutsideLink
from btqueue.scenario.radio import Radio
from btqueue.scenario.topology import Topology
from btqueue.simulator.construction.numbering import NO_FIELDS, Draft
from btqueue.simulator.records import nodes, piconets
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

SINGLE_FRAME = ("1-limited", "round-robin")
"""Disciplines that are E-limited with a limit of 1."""
EMPTY_QUEUE: dict[str, object] = {"head": NOTHING, "tail": NOTHING}
NO_BUCKET: dict[str, object] = {"queue": NOTHING, "timer": NOTHING}
NO_RADIO: dict[str, object] = dict.fromkeys(("piconet", "link", "channel", "line"), NOTHING)


def add_nodes(draft: Draft, scenario: Scenario, plan: Topology) -> None:
    """Add all devices, without links."""
    limit = scenario.link.node_buffer_bytes
    empty: dict[str, object] = {"outbox": NOTHING, "inbox": NOTHING, "bridge": NOTHING}
    empty |= {"buffer_limit": UNLIMITED if limit is None else limit}
    for _ in plan.nodes:
        draft.nodes.add(empty)
    draft.radio_port = radio_port_options(scenario)


# ------------------------------------------------------------------------------------ piconets and bridges


def add_bridges(draft: Draft, scenario: Scenario, plan: Topology) -> None:
    """Note which devices are in several piconets."""
    polling = scenario.polling
    for index, bridge in enumerate(plan.bridges):
        count = len(bridge.piconets)
        padding = [NOTHING] * (piconets.PICONETS_A_BRIDGE - count)
        own = [k for k, p in enumerate(bridge.piconets) if plan.piconets[p].central == bridge.node]
        draft.bridges.add(
            node=bridge.node,
            schedule=piconets.SCHEDULES.index(polling.bridge_schedule),
            residence=piconets.RESIDENCES.index(polling.residence),
            residence_cycles=polling.residence_cycles,
            count=count,
            piconets=list(bridge.piconets) + padding,
            links=[NOTHING] * piconets.PICONETS_A_BRIDGE,
            own=bridge.piconets[own[0]] if own else NOTHING,
            current=own[0] if own else 0,
            # Without a switch delay the clocks agree on slot pairs, so that windows begin with one.
            window=max(4 * SLOT, round(polling.rendezvous_s / count * SECOND / SLOT) * SLOT),
            switch_delay=polling.switch_delay,
        )
        draft.nodes[bridge.node]["bridge"] = index


def add_piconets(draft: Draft, scenario: Scenario, plan: Topology) -> None:
    """Add all piconets."""
    add_bridges(draft, scenario, plan)
    for index in range(len(plan.piconets)):
        add_piconet(draft, scenario, plan, index)


def add_piconet(draft: Draft, scenario: Scenario, plan: Topology, index: int) -> None:
    """Add a piconet, its memberships, and their ports and queues."""
    polling, piconet = scenario.polling, plan.piconets[index]
    single = polling.discipline in SINGLE_FRAME
    discipline = piconets.DISCIPLINES.index("e-limited" if single else polling.discipline)
    limit = 1 if single else polling.limit
    bridges = [member for member in piconet.members if "bridge" in draft.nodes[member]]
    away = draft.nodes[piconet.central].get("bridge", NOTHING)
    ordinary = max(1, len(piconet.members) - len(bridges))
    bridge_limit = polling.bridge_limit or (1 if single else ordinary * polling.limit)
    bridge_buffer = polling.bridge_buffer_packets or ordinary * polling.limit
    links = scenario.voice.reservation
    period, reserved = (links.period * SLOT, links.reserved * SLOT) if links else (0, 0)
    rates = draft.tables.error_rates[:, -2]  # of voice packets, where extended voice links have a column
    repeated = links is not None and links.window > 0 and bool(np.any(rates))
    cyclic = discipline <= piconets.GATED
    windows = polling.bridge_schedule != "walk-in"
    draft.piconets.add(
        timer=draft.add_timer(TURN, index, piconet.central),
        node=piconet.central,
        first_link=len(draft.links),
        links=len(piconet.members),
        plain=is_plain(scenario) and not (windows and (bridges or away != NOTHING)),
        discipline=discipline,
        limit=limit,
        max_weight=polling.max_weight,
        packet=NOTHING,
        on_air_type=NOTHING,
        bridge=away,
        can_sleep=cyclic and not bridges and away == NOTHING and links is None,
        voice_period=period,
        voice_reserved=reserved,
        voice_links=links.links if links and repeated else 0,
        voice_type=draft.tables.error_rates.shape[1] - 2,
        voice_slots=exchange_slots(scenario.voice.packet) // 2,
        voice_window=links.window if links else 0,
    )
    for member in piconet.members:
        bridge = draft.nodes[member].get("bridge", NOTHING)
        link = draft.links.add(
            piconet=index,
            node=member,
            bridge=bridge,
            limit=limit if bridge == NOTHING else bridge_limit,
        )
        if bridge != NOTHING:
            memberships = draft.bridges[bridge]
            memberships["links"][memberships["piconets"].index(index)] = link
        limits = scenario.flow_control
        down_limit = limits.central_buffer_packets or UNLIMITED
        up_limit = (limits.baseband_packets or UNLIMITED) if bridge == NOTHING else bridge_buffer
        draft.links[link].update(
            up=add_radio_port(draft, link, member, piconet.central, nodes.UPLINK, up_limit),
            down=add_radio_port(draft, link, piconet.central, member, nodes.DOWNLINK, down_limit),
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


def add_radio_port(draft: Draft, link: int, node: int, peer: int, kind: int, limit: int) -> int:
    """Add the sending side of one direction of a Bluetooth link, with its queue, and return its number."""
    piconet = draft.links[link]["piconet"]
    port = add_port(draft, kind, limit, draft.radio_port, node=node, peer=peer, piconet=piconet, link=link)
    draft.port_of[node, peer] = port
    return port


def add_port(
    draft: Draft, kind: int, limit: int, alike: dict[str, object] = NO_FIELDS, **fields: object
) -> int:
    """Add a port, its queue of at most `limit` packets, and its token bucket, off until a host sends.

    All three have the same number, so no port may be added after the buffer of a bucket. *alike* are fields
    that it has in common with other ports.
    """
    draft.queues.add(EMPTY_QUEUE, limit=limit, kind=kind)
    draft.buckets.add(NO_BUCKET)
    return draft.ports.add(alike, kind=kind, **fields)


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


def add_channels(draft: Draft, scenario: Scenario, own: dict[tuple[int, str], int]) -> None:
    """Add the channels and give every port its own.

    Both directions of a link share a channel. With `fading = "per-piconet"` all links of a piconet share one,
    unless a link has individual settings of the radio.
    """
    known: dict[tuple, int] = {}
    radios, state_streams, error_streams = [], [], []
    for link in draft.links.rows:
        for direction in ("up", "down"):
            radio = own.get((link["node"], direction), 0) if own else 0
            shared = radio == 0 and scenario.radio.fading == "per-piconet"
            key = ("piconet", link["piconet"]) if shared else (link["up"], radio)
            if key not in known:
                known[key] = len(radios)
                radios.append(radio)
                state_streams.append(draft.add_stream())
                error_streams.append(draft.add_stream())
            draft.ports[link[direction]]["channel"] = known[key]
    channels = draft.tables.channels[radios]
    channels["state_stream"], channels["error_stream"] = state_streams, error_streams
    draft.channels = channels


# -------------------------------------------------------------------------------------------------- hosts


def add_hosts(draft: Draft, scenario: Scenario, plan: Topology, routes: list[list[int]]) -> None:
    """Give token buckets to the ports that segments enter, and delay lines to the hosts of routes."""
    hosts = {route[0] for route in routes} | {route[-1] for route in routes}
    entered: dict[int, None] = {}
    for route in routes:
        steps = list(itertools.pairwise(route))
        for step in steps if scenario.network.relay == "segment" else steps[:1]:
            entered[draft.port_of[step]] = None
    ports_of_node: dict[int, list[int]] = {}
    for port in sorted(entered):
        if draft.ports[port]["kind"] != nodes.OUTSIDE:
            ports_of_node.setdefault(draft.ports[port]["node"], []).append(port)
    bucket, layers = bucket_options(scenario), layer_options(scenario)
    for node in range(len(plan.nodes)):
        for port in ports_of_node.get(node, []):
            draft.buckets.alike[port] = bucket
            if scenario.flow_control.enabled:
                limit = scenario.flow_control.buffer_packets
                buffer = draft.queues.add(EMPTY_QUEUE, limit=limit, kind=nodes.TOKEN_BUFFER)
                draft.buckets[port].update(queue=buffer, timer=draft.add_timer(TOKENS, port, node))
        if node in hosts:
            # only the way down has random times
            stream = {"outbox": draft.add_stream(), "inbox": 0}
            for layer, times in layers.items():
                draft.nodes[node][layer] = add_line(draft, node, times, stream=stream[layer])


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


def layer_options(scenario: Scenario) -> dict[str, dict[str, object]]:
    """Return the processing times of a host's layers, as fields of delay lines; without lines of no time.

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
        **({"outbox": EMPTY_QUEUE | down} if layers or jitter else {}),
        **({"inbox": EMPTY_QUEUE | up} if layers or baseband else {}),
    }


def add_line(draft: Draft, node: int, alike: dict[str, object], **fields: object) -> int:
    """Add an empty delay line at a node, with its timer, and return its number."""
    line = draft.lines.add(alike, **fields)
    draft.lines[line]["timer"] = draft.add_timer(LINE, line, node)
    return line


# -------------------------------------------------------------------------------------------- outside links


def add_outside_ports(draft: Draft, plan: Topology) -> None:
    """Add the ports of outside links, medium by medium: the ports that share a medium are neighbours.

    A link that names a medium shares it with all links of that name, in both directions; else a half-duplex
    link has one medium, and a full-duplex link one for each direction.
    """
    media: dict[tuple, list[tuple[OutsideLink, int, int, float]]] = {}
    for index, outside in enumerate(plan.outside):
        link, ends = outside.link, (outside.source, outside.target)
        loss_back = link.loss if link.loss_back is None else link.loss_back
        for back, (node, peer), loss in ((False, ends, link.loss), (True, ends[::-1], loss_back)):
            if link.medium is not None:
                key: tuple = ("shared", link.medium)
            else:
                key = (index,) if link.half_duplex else (index, back)
            media.setdefault(key, []).append((link, node, peer, loss))
    for members in media.values():
        link = members[0][0]
        medium = draft.media.add(
            rate=link.rate_kbps * 1000,
            header=link.header_bytes,
            first_port=len(draft.ports),
            ports=len(members),
            serving=NOTHING,
            up_mean=link.up_s * SECOND,
            down_mean=link.down_s * SECOND,
        )
        for own, node, peer, loss in members:
            block = own.loss_block_bytes or 0
            fields = {"node": node, "peer": peer, "medium": medium, "loss": loss, "loss_block": block}
            port = add_port(draft, nodes.OUTSIDE, own.buffer_packets, NO_RADIO, **fields)
            draft.port_of[node, peer] = port


def add_outside_lines(draft: Draft, plan: Topology) -> None:
    """Add the propagation delays of both directions of outside links, where there are any."""
    for outside in plan.outside:
        link = outside.link
        times = {"delay": nanoseconds(link.delay_s), "jitter": nanoseconds(link.jitter_s)}
        alike = EMPTY_QUEUE | times | {"purpose": nodes.PROPAGATION, "exponential": True}
        for ends in ((outside.source, outside.target), (outside.target, outside.source)):
            port = draft.ports[draft.port_of[ends]]
            port["stream"] = draft.add_stream()
            stream = draft.add_stream()
            if link.delay_s or link.jitter_s:
                port["line"] = add_line(draft, ends[0], alike, stream=stream)


def add_media_and_streams(draft: Draft) -> None:
    """Give timers to the media of outside links, and random streams to media, bridges and piconets."""
    for index, medium in enumerate(draft.media.rows):
        medium["timer"] = draft.add_timer(MEDIUM, index, draft.ports[medium["first_port"]]["node"])
    for row in (*draft.media.rows, *draft.bridges.rows, *draft.piconets.rows):
        row["stream"] = draft.add_stream()
