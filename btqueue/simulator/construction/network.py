"""From a scenario's topology to records: nodes, links with their ports and queues, piconets, bridges, media.

Ports are numbered: uplinks and downlinks of all memberships, then the two directions of each outside link.
"""

import itertools
from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from btqueue.baseband.voice import exchange_slots
from btqueue.scenario import Scenario
from btqueue.scenario.network import OutsideLink
from btqueue.scenario.radio import Radio
from btqueue.scenario.topology import Topology
from btqueue.simulator.construction.numbering import CONSTANT, Draft, Numbers
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
EMPTY_QUEUE, NO_BUCKET = CONSTANT["empty"], CONSTANT["no bucket"]


def numbers_of_places(scenario: Scenario, plan: Topology, rates: np.ndarray) -> Numbers:
    """Return the numbers of nodes, ports, queues and buckets, and of piconets and bridges.

    Args:
        scenario: whose numbers these are.
        plan: its topology.
        rates: packet error rates, shape (levels, types + 1).
    """
    limit, limits = scenario.link.node_buffer_bytes, scenario.flow_control
    empty: dict[str, object] = {"outbox": NOTHING, "inbox": NOTHING, "bridge": NOTHING}
    found: Numbers = {
        "node": empty | {"buffer_limit": UNLIMITED if limit is None else limit},
        "radio port": radio_port_options(scenario),
        "bucket": bucket_options(scenario),
        "buffer": EMPTY_QUEUE | {"limit": limits.buffer_packets, "kind": nodes.TOKEN_BUFFER},
        **layer_options(scenario),
    }
    low = scenario.link.bearer == "le"
    down, up = (None, None) if low else (limits.central_buffer_packets, limits.baseband_packets)
    for kind, most in ((nodes.DOWNLINK, down), (nodes.UPLINK, up)):
        found["queue", kind] = EMPTY_QUEUE | {"kind": kind, "limit": most or UNLIMITED}
    return found if low else found | numbers_of_piconets(scenario, plan, rates)


# ------------------------------------------------------------------------------------ piconets and bridges


def kind_of(plan: Topology, index: int) -> tuple[int, bool, bool]:
    """Return the facts that set the numbers of a piconet.

    These are the number of members in this piconet only, whether it has other members, and whether its
    central is a bridge.
    """
    piconet, bridges = plan.piconets[index], plan.bridge_nodes
    count = len(bridges.intersection(piconet.members))
    return max(1, len(piconet.members) - count), count > 0, piconet.central in bridges


def numbers_of_piconets(scenario: Scenario, plan: Topology, rates: np.ndarray) -> Numbers:
    """Return the numbers of piconets of each kind, of links and of bridges; see `numbers_of_places`."""
    polling, found = scenario.polling, Numbers()
    single = polling.discipline in SINGLE_FRAME
    discipline = piconets.DISCIPLINES.index("e-limited" if single else polling.discipline)
    limit = 1 if single else polling.limit
    links = scenario.voice.reservation
    period, reserved = (links.period * SLOT, links.reserved * SLOT) if links else (0, 0)
    # the rates of voice packets, where extended voice links have a column
    repeated = links is not None and links.window > 0 and bool(np.any(rates[:, -2]))
    cyclic = discipline <= piconets.GATED
    windows = polling.bridge_schedule != "walk-in"
    found["link"] = {"limit": limit, "bridge": NOTHING}
    for kind in {kind_of(plan, index) for index in range(len(plan.piconets))}:
        ordinary, bridges, away = kind
        found["piconet", *kind] = {
            "plain": is_plain(scenario) and not (windows and (bridges or away)),
            "discipline": discipline,
            "limit": limit,
            "max_weight": polling.max_weight,
            "packet": NOTHING,
            "on_air_type": NOTHING,
            "bridge": NOTHING,
            "can_sleep": cyclic and not bridges and not away and links is None,
            "voice_period": period,
            "voice_reserved": reserved,
            "voice_links": links.links if links and repeated else 0,
            "voice_type": rates.shape[1] - 2,
            "voice_slots": exchange_slots(scenario.voice.packet) // 2,
            "voice_window": links.window if links else 0,
        }
        most = polling.bridge_limit or (1 if single else ordinary * polling.limit)
        found["link", ordinary] = {"limit": most}
        most = polling.bridge_buffer_packets or ordinary * polling.limit
        found["bridge", ordinary] = EMPTY_QUEUE | {"kind": nodes.UPLINK, "limit": most}
    for count in {len(bridge.piconets) for bridge in plan.bridges}:
        found["bridge in", count] = {
            "schedule": piconets.SCHEDULES.index(polling.bridge_schedule),
            "residence": piconets.RESIDENCES.index(polling.residence),
            "residence_cycles": polling.residence_cycles,
            # Without a switch delay the clocks agree on slot pairs, so that windows begin with one.
            "window": max(4 * SLOT, round(polling.rendezvous_s / count * SECOND / SLOT) * SLOT),
            "switch_delay": polling.switch_delay,
        }
    return found


def add_bridges(draft: Draft, plan: Topology) -> None:
    """Note which devices are in several piconets."""
    for index, bridge in enumerate(plan.bridges):
        count = len(bridge.piconets)
        padding = [NOTHING] * (piconets.PICONETS_A_BRIDGE - count)
        own = [k for k, p in enumerate(bridge.piconets) if plan.piconets[p].central == bridge.node]
        draft.bridges.add(
            ("bridge in", count),
            node=bridge.node,
            count=count,
            piconets=list(bridge.piconets) + padding,
            links=[NOTHING] * piconets.PICONETS_A_BRIDGE,
            own=bridge.piconets[own[0]] if own else NOTHING,
            current=own[0] if own else 0,
        )
        draft.nodes[bridge.node]["bridge"] = index


def add_piconets(draft: Draft, plan: Topology) -> None:
    """Add all piconets."""
    add_bridges(draft, plan)
    for index in range(len(plan.piconets)):
        add_piconet(draft, plan, index)


def add_piconet(draft: Draft, plan: Topology, index: int) -> None:
    """Add a piconet, its memberships, and their ports and queues."""
    piconet, kind = plan.piconets[index], kind_of(plan, index)
    draft.piconets.add(
        ("piconet", *kind),
        timer=draft.add_timer(TURN, index, piconet.central),
        node=piconet.central,
        first_link=len(draft.links),
        links=len(piconet.members),
        **({"bridge": draft.nodes[piconet.central]["bridge"]} if kind[2] else {}),
    )
    for member in piconet.members:
        link = len(draft.links)
        if member in plan.bridge_nodes:
            bridge, queue = draft.nodes[member]["bridge"], ("bridge", kind[0])
            draft.links.add(("link", kind[0]), piconet=index, node=member, bridge=bridge)
            memberships = draft.bridges[bridge]
            memberships["links"][memberships["piconets"].index(index)] = link
        else:
            queue = "queue", nodes.UPLINK
            draft.links.add("link", piconet=index, node=member)
        draft.links[link].update(
            up=add_radio_port(draft, link, member, piconet.central, nodes.UPLINK, queue),
            down=add_radio_port(draft, link, piconet.central, member, nodes.DOWNLINK),
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


def add_radio_port(draft: Draft, link: int, node: int, peer: int, kind: int, queue: Hashable = None) -> int:
    """Add the sending side of one direction of a Bluetooth link, with its queue, and return its number.

    `queue`: group of the queue, if it is not like others of its kind.
    """
    piconet, queue = draft.links[link]["piconet"], queue or ("queue", kind)
    port = add_port(draft, queue, "radio port", kind=kind, node=node, peer=peer, piconet=piconet, link=link)
    draft.port_of[node, peer] = port
    return port


def add_port(draft: Draft, queue: Hashable, group: Hashable, **fields: object) -> int:
    """Add a port, its queue, and its token bucket, off until a host sends.

    All three have the same number, so no port may be added after the buffer of a bucket. *queue* and *group*
    are the groups of the queue and of the port.
    """
    draft.queues.add(queue)
    draft.buckets.add("no bucket")
    return draft.ports.add(group, **fields)


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


def add_channels(draft: Draft, own: Mapping[tuple[int, str], int], *, together: bool) -> None:
    """Add the channels and give every port its own.

    Both directions of a link share a channel. If `together`, all links of a piconet share a channel, except
    links with individual settings of the radio, whose numbers are in `own`.
    """
    known: dict[tuple, int] = {}
    for link in draft.links.rows:
        for direction in ("up", "down"):
            radio = own.get((link["node"], direction), 0) if own else 0
            shared = radio == 0 and together
            key = ("piconet", link["piconet"]) if shared else (link["up"], radio)
            if key not in known:
                streams = draft.add_stream(), draft.add_stream()
                known[key] = draft.channels.add(
                    ("radio", radio), state_stream=streams[0], error_stream=streams[1]
                )
            draft.ports[link[direction]]["channel"] = known[key]


# -------------------------------------------------------------------------------------------------- hosts


def add_hosts(
    draft: Draft, plan: Topology, routes: list[list[int]], layers: Sequence[str], relays: bool, tokens: bool
) -> None:
    """Give token buckets to the ports that segments enter, and delay lines to the hosts of routes.

    `layers`: groups of the lines; `relays`: whether segments enter ports on the way, too; `tokens`: whether
    buckets are used.
    """
    hosts = {route[0] for route in routes} | {route[-1] for route in routes}
    entered: dict[int, None] = {}
    for route in routes:
        steps = list(itertools.pairwise(route))
        for step in steps if relays else steps[:1]:
            entered[draft.port_of[step]] = None
    ports_of_node: dict[int, list[int]] = {}
    for port in sorted(entered):
        if draft.ports[port]["kind"] != nodes.OUTSIDE:
            ports_of_node.setdefault(draft.ports[port]["node"], []).append(port)
    for node in range(len(plan.nodes)):
        for port in ports_of_node.get(node, []):
            draft.buckets.groups[port] = "bucket"
            if tokens:
                buffer = draft.queues.add("buffer")
                draft.buckets[port].update(queue=buffer, timer=draft.add_timer(TOKENS, port, node))
        if node in hosts:
            # only the way down has random times
            stream = {"outbox": draft.add_stream(), "inbox": 0}
            for layer in layers:
                draft.nodes[node][layer] = add_line(draft, node, layer, stream=stream[layer])


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


LAYERS = ("outbox", "inbox")
"""Delay lines that a host may have."""


def layer_options(scenario: Scenario) -> Numbers:
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


def add_line(draft: Draft, node: int, group: Hashable, **fields: object) -> int:
    """Add an empty delay line of a group at a node, with its timer, and return its number."""
    line = draft.lines.add(group, **fields)
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
            port = add_port(draft, "empty", "no radio", kind=nodes.OUTSIDE, **fields)
            draft.queues[port].update(kind=nodes.OUTSIDE, limit=own.buffer_packets)
            draft.port_of[node, peer] = port


def add_outside_lines(draft: Draft, plan: Topology) -> None:
    """Add the propagation delays of both directions of outside links, where there are any."""
    for outside in plan.outside:
        link = outside.link
        times = {"delay": nanoseconds(link.delay_s), "jitter": nanoseconds(link.jitter_s)}
        times |= {"purpose": nodes.PROPAGATION, "exponential": True}
        for ends in ((outside.source, outside.target), (outside.target, outside.source)):
            port = draft.ports[draft.port_of[ends]]
            port["stream"] = draft.add_stream()
            stream = draft.add_stream()
            if link.delay_s or link.jitter_s:
                port["line"] = add_line(draft, ends[0], "empty", stream=stream, **times)


def add_media_and_streams(draft: Draft) -> None:
    """Give timers to the media of outside links, and random streams to media, bridges and piconets."""
    for index, medium in enumerate(draft.media.rows):
        medium["timer"] = draft.add_timer(MEDIUM, index, draft.ports[medium["first_port"]]["node"])
    for row in (*draft.media.rows, *draft.bridges.rows, *draft.piconets.rows):
        row["stream"] = draft.add_stream()
