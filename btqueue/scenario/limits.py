"""The limit of a flow in one line, and overloaded flows: words and keys for the findings of both engines."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.baseband import low_energy as air
from btqueue.scenario.topology import FlowPlan, Topology, topology
from btqueue.scenario.traits import shares_segments

if TYPE_CHECKING:
    from btqueue.scenario.scenario import Scenario

Kind = Literal["load", "window", "cwnd", "slots", "tokens", "outside", "host", "timer", "polling"]


class Bound(NamedTuple):
    """Something that can limit a flow.

    Attributes:
        kind: its load, the receive window, the congestion window, slots of a piconet, tokens, an outside
            link, the layers of a host, the retransmission timer, or polls that another flow keeps.
        kbps: the goodput that it allows if nothing else limits the flow (kbit/s); NaN if that is not known.
        name: name of the piconet, the outside link, the host, or the other flow; of the congestion window,
            the place of its losses.
        idle_share: share of a piconet's slots that poll links without data.
        share: share of the round trip that a station takes, where a window is the limit.
        also: limits that hold the flow together with this one: more of any of them brings goodput.
    """

    kind: Kind
    kbps: float
    name: str = ""
    idle_share: float = 0.0
    share: float = 0.0
    also: tuple[Bound, ...] = ()


PLACES = {
    "the token buffer": "flow_control.buffer_packets",
    "a node's buffer": "link.node_buffer_bytes",
    "the radio": "link.arq",
}
"""The key behind losses at a place. Losses at an outside link have a key in its entry; `_of_queues` has the
key of other queues."""
STATIONS: tuple[Kind, ...] = ("slots", "tokens", "outside", "host")
"""Kinds of limits that are stations."""
KEYS: dict[Kind, str] = {
    "load": "traffic.load_kbps",
    "window": "transport.receive_window_segments",
    "slots": "link.packets",
    "tokens": "flow_control.token_rate_kbps",
    "timer": "transport.min_rto_s",
    "polling": "polling.discipline",
}
ENDLESS = ("exhaustive", "slq", "ldq", "fep")
"""Disciplines under which a link that always has packets may keep the central."""
STARVED = 0.5
"""Share of its load, or of the goodput of the flow that keeps the central, below which a flow is starved."""
POLLS = {"e-limited": "polling.limit", "1-limited": "polling.discipline", "round-robin": "polling.discipline"}
"""The key behind the polls of links without data."""
IDLE = 0.1
"""Share of the slots that poll links without data, above which these polls decide."""
TOGETHER = 0.1
"""Share of the round trip, of the time, or of a queue, from which on a further limit is named: a tenth more
brings about 1 % of goodput."""
HALF = 0.5
"""Mean share of the receive window from which on it is named beside losses, because the congestion window
fills it at times. Of ten flows, five with 0.64 or more gained from a larger window, five with 0.46 or less
did not; the bound was taken between them."""
OFTEN_FULL = 0.75
"""Share of the time that the queue of a full station holds packets, or of its goodput, if its buffer
overflows at times: a window that halves at each overflow uses three quarters of the path in the mean, or
more."""
WAITING = 0.5
"""Share of the time in which a sender waits for its timer, from which on the timer is the limit."""
DELAYS = ("delay_", "acknowledged_delay_")
"""Beginnings of the names of metrics that grow with the run where a backlog grows."""
MOST_NAMED = 3
"""Flows that a warning names one by one."""


def limits(scenario: Scenario, bounds: Sequence[Sequence[Bound]]) -> list[dict[str, Any]]:
    """Return the limit of each flow, as plain values.

    Args:
        scenario: as the user wrote it.
        bounds: bounds of each flow, the limit first and the next one behind it; empty where neither is known.

    Returns:
        For each flow the `kind` and `name` of the limit, the `key` that sets it, its `value`, `kbps` that it
        allows, `also`: the same of limits that hold the flow together with it, `next`: the same of the limit
        behind it (None if it is not known), and the `line` that says all; {} where the limit is not known.
    """
    flows = topology(scenario).flows
    return [
        _limit(scenario, flow, number, found) if found else {}
        for number, (flow, found) in enumerate(zip(flows, bounds, strict=True))
    ]


def starved(scenario: Scenario, goodput: Sequence[float], offered: Sequence[float]) -> dict[int, list[Bound]]:
    """Return the bounds of flows that get little because another flow keeps the central, by number.

    It may do so for ever, or, under e-limited polling, longer than the least timeout of the others.

    Args:
        scenario: with its keys in tables (`btqueue.scenario.traits.in_tables`).
        goodput: goodput of each flow (kbit/s).
        offered: load of each flow (kbit/s), infinite where it always has data.
    """
    polling = scenario.polling
    least_s = 2 * SLOT_S * polling.limit  # of a visit that the limit ends
    if polling.discipline not in (*ENDLESS, "e-limited") or scenario.link.bearer == "le":
        return {}
    plan, found = topology(scenario), dict[int, list[Bound]]()
    links = [
        {(hop.index, hop.source + hop.target) for hop in plan.route(flow.source, flow.target)
         if hop.kind == "bluetooth"}
        for flow in plan.flows
    ]  # fmt: skip
    for number, mine in enumerate(links):
        piconets = {index for index, _ in mine}
        beside = [n for n, one in enumerate(links) if piconets & {index for index, _ in one - mine}]
        most = max(beside, key=lambda n: goodput[n], default=number)
        timer_s = scenario.of_flow(plan.flows[number].spec).transport.min_rto_s
        kept = polling.discipline in ENDLESS or least_s > timer_s
        if kept and goodput[number] < STARVED * min(offered[number], goodput[most]):
            behind = [Bound("load", float(offered[number]))] if math.isfinite(offered[number]) else []
            first = Bound("polling", float(goodput[number]), plan.flows[most].name)
            found[number] = [first, *behind]
    return found


def with_the_next(first: Bound, every: Iterable[Bound], kbps: float) -> list[Bound]:
    """Return the bound that limits a flow of this goodput (kbit/s), and the lowest other bound."""
    later = [one for one in every if (one.kind, one.name) != (first.kind, first.name)]
    later = [one for one in later if math.isfinite(one.kbps) and (first.kind, one.kind) != ("timer", "cwnd")]
    further = min(later, key=lambda one: one.kbps, default=None)
    return [first] if further is None else [first, further._replace(kbps=max(further.kbps, kbps))]


def together(
    scenario: Scenario, number: int, first: Bound, every: Sequence[Bound], trip_s: float, waiting: float,
    active: float, times: Mapping[tuple[Kind, str], float], queues: Sequence[Mapping[Any, tuple[Kind, str]]],
    contending: Mapping[int, float],
) -> Bound:  # fmt: skip
    """Return the first limit of a flow of this number, with the limits that bind together with it.

    Beside the timer losses are named, and a window that is filled at times. If the flow is `waiting` for
    timeouts for much of the time, losses are named beside a window, and the timer, if the mean round trip
    is shorter than its least value. Beside a window stations are named that take much of the time in round
    trips, for which the flow is `active` (shares). Slots have the time that `times` at other stations
    leave, with the waits of delayed acknowledgements for a second segment. Beside a station the window is
    named, or the load of datagrams, if other flows fill its queue. `queues` of each flow have their
    stations; `contending` has goodputs of flows whose load is not carried.
    """
    plan, kinds = topology(scenario), {one.kind for one in every}
    flow, own, also = plan.flows[number], scenario.of_flow(plan.flows[number].spec), list[Bound]()
    t, stations = own.transport, dict.fromkeys(queues[number].values())
    if first.kind == "timer":
        also = [one for one in every if one.kind in ("cwnd", "window")]
    elif first.kind in ("window", "cwnd"):
        alone = t.delayed_ack and t.receive_window_segments == 1 < t.ack_every_segments
        parts = {**times, ("host", plan.nodes[flow.source]): 4.0 * (t.ip_delay_s + own.link.l2cap_delay_s)}
        known_s = sum(parts.values()) + delays_s(plan, flow) + (t.ack_delay_s if alone else 0.0)
        trip_s = max(trip_s, known_s)  # round trips of lost segments are not measured
        piconets = " and ".join(name for kind, name in stations if kind == "slots")
        parts |= {("slots", piconets): trip_s - known_s} if piconets else {}
        lossy = first.kind == "cwnd" or waiting >= TOGETHER
        beside = [one for one in every if one.kind == "window" or (one.kind == "cwnd" and lossy)]
        also = [one for one in beside if (one.kind, one.name) != (first.kind, first.name)]
        also += [Bound("timer", math.nan)] if waiting >= TOGETHER and t.min_rto_s > trip_s else []
        also += [
            Bound(place[0], math.nan, place[1], share=part_s / trip_s)
            for place, part_s in parts.items()
            if active * part_s >= TOGETHER * trip_s
        ]
    elif first.kind in STATIONS and number in contending:
        mine = {queue for queue, place in queues[number].items() if place == (first.kind, first.name)}
        full_kbps = sum(kbps for other, kbps in contending.items() if mine & queues[other].keys())
        kind: Kind = "window" if t.protocol == "tcp" else "load"
        shared = kind in kinds and contending[number] <= (1.0 - TOGETHER) * full_kbps
        also = [Bound(kind, math.nan)] if shared else []
    return first._replace(also=tuple(also))


def delays_s(plan: Topology, flow: FlowPlan) -> float:
    """Return the delays of outside links in a round trip of a flow (s)."""
    hops = [hop for hop in plan.route(flow.source, flow.target) if hop.kind == "outside"]
    return sum(2.0 * plan.outside[hop.index].link.delay_s for hop in hops)


def _limit(scenario: Scenario, flow: FlowPlan, number: int, found: Sequence[Bound]) -> dict[str, Any]:
    first, further = found[0], found[1] if len(found) > 1 else None
    own = scenario.of_flow(flow.spec)
    grows = shares_segments(own) and own.traffic.message_bytes < own.transport.mss_bytes
    if further is not None and further.kind != "load" and grows:
        further = None  # with more load, segments are larger, and how large is not known
    told, *also = (_plain(scenario, flow, number, one) for one in (first, *first.also))
    key, value = told["key"], told["value"]
    slots = "connection events" if scenario.link.bearer == "le" else "slots"
    names = [_words(first, value, slots)] + [
        _words(bound, one["value"], slots if bound.kind == "slots" else "")
        + (f" ({bound.share:.0%} of the round trip)" if bound.share else "")
        for bound, one in zip(first.also, also, strict=True)
    ]
    line = f"{', '.join(names[:-1])}{' and ' if also else ''}{names[-1]}: {_amount(first.kbps)} kbit/s"
    behind = further and _plain(scenario, flow, number, further)
    if further is not None and behind is not None and math.isfinite(further.kbps):
        verb = "is" if further.kind == "load" else "would carry"
        line += f"; {_words(further, behind['value'])} {verb} {_amount(further.kbps)}"
    origin, polls = scenario.origin(key), first.kind == "polling" or key.startswith("polling.")
    if key == "le.event_length_s":
        said = "the interval" if value is None else origin
        length = f"{scenario.le.reserved_s:g}{said and f', {said}'}"
        line += f" (events end at the next reservation: {key} = {length})"
    elif key == "le.latency":
        line += f" (a peripheral that has nothing to send skips events: {key} = {value})"
    elif key and (origin or polls):
        shown = ", ".join(value) if isinstance(value, list | tuple) else value
        idle = f"{first.idle_share:.0%} of the slots poll links without data; " if first.idle_share else ""
        said = " is unset" if value is None else f" = {shown}{origin and f', {origin}'}"
        line += f" ({idle if polls else ''}{key}{said})"
    return told | {"also": also, "next": behind, "line": line}


def _plain(scenario: Scenario, flow: FlowPlan, number: int, bound: Bound) -> dict[str, Any]:
    key = _key(scenario, flow, number, bound)
    found = {"kind": bound.kind, "kbps": bound.kbps, "name": bound.name}
    return found | {"key": key, "value": scenario.value_of(key) if key else None}


def _key(scenario: Scenario, flow: FlowPlan, number: int, bound: Bound) -> str:
    """Return the key that sets a limit of a flow, in the flow's entry if it is there; "" if none does."""
    if bound.name and bound.kind in ("outside", "cwnd"):
        links = [link.name for link in scenario.network.outside_links]
        if bound.name in links:
            end = "rate_kbps" if bound.kind == "outside" else "loss"
            return f"network.outside_links[{links.index(bound.name) + 1}].{end}"
    key = PLACES.get(bound.name, "") if bound.kind == "cwnd" else KEYS.get(bound.kind, "")
    if bound.kind == "cwnd" and bound.name in ("the baseband queue", "a queue on the way"):
        return _of_queues(scenario, flow, bound.name)
    if bound.kind == "slots" and scenario.link.bearer == "le":
        key = "le.interval_s" if bound.share else f"le.{_of_events(scenario, flow, bound.name)}"
    elif bound.idle_share > IDLE:
        key = POLLS.get(scenario.polling.discipline, key)
    own = scenario.of_flow(flow.spec)
    t = own.transport
    if bound.kind == "polling" and scenario.polling.discipline == "e-limited":
        key = "polling.limit"
    if bound.kind == "host":
        key = "transport.ip_delay_s" if t.ip_delay_s >= own.link.l2cap_delay_s else "link.l2cap_delay_s"
    if bound.kind == "load" and own.traffic.source == "file":
        key = "traffic.arrival_file"
    if bound.kind == "window" and (t.send_buffer_segments or math.inf) < t.receive_window_segments:
        key = "transport.send_buffer_segments"
    if flow.spec is None or not key:
        return key
    entry = min(number, number if flow.reverse is None else flow.reverse) + 1
    return flow.spec.names(entry).get(key, key)


def _of_queues(scenario: Scenario, flow: FlowPlan, place: str) -> str:
    """Return the key of the first baseband queue with a limit, or of the queues on the way; "" of several."""
    plan, keys = topology(scenario), list[str]()
    hops = plan.route(flow.source, flow.target)
    first = place == "the baseband queue"
    for hop in [hop for hop in hops if hop.kind == "bluetooth"] if first else hops:
        central = hop.kind == "bluetooth" and hop.source == plan.piconets[hop.index].central
        key = "flow_control.central_buffer_packets" if central else "flow_control.baseband_packets"
        if hop.kind == "outside":
            key = f"network.outside_links[{hop.index + 1}].buffer_packets"
        elif hop.source in plan.bridge_nodes and not central:
            key = "polling.bridge_buffer_packets"
        limited = not key.startswith("flow_control") or scenario.value_of(key) is not None
        if limited and (first or hop.kind == "outside" or hop is not hops[0]):
            keys.append(key)
    if not first and scenario.link.node_buffer_bytes is not None:
        keys.append("link.node_buffer_bytes")
    return keys[0] if keys and (first or len({*keys}) == 1) else ""


def _of_events(scenario: Scenario, flow: FlowPlan, piconet: str) -> str:
    """Return the key of `[le]` that limits the exchanges of an event of a flow in a piconet.

    An event may go on until the next reservation of the central. Spaced reservations follow each other in the
    order of the peripherals, so that the last one has the rest of the interval. Where nothing is sent to the
    central, the peripheral skips events though the central has data.
    """
    le, space_us, plan = scenario.le, 1e6 * scenario.le.frame_space_s, topology(scenario)
    acknowledged = scenario.of_flow(flow.spec).transport.protocol != "none"
    length_s = le.interval_s if le.event_extension else le.reserved_s
    for hop in plan.route(flow.source, flow.target):
        here = plan.piconets[hop.index] if hop.kind == "bluetooth" else None
        if here is None or here.name != piconet:
            continue
        links, spaced = len(here.members), le.anchors == "spaced"
        if spaced and links > 1 and links * le.reserved_s > le.interval_s * le.subrate * (1.0 + 1e-9):
            return "event_length_s"  # events are missed
        back = hop._replace(source=hop.target, target=hop.source)
        sent_back = acknowledged or any(back in plan.route(one.source, one.target) for one in plan.flows)
        if le.latency and hop.source == here.central and not sent_back:
            return "latency"
        if spaced and here.members[-1] not in (hop.source, hop.target):
            length_s = le.reserved_s
    own_us = air.exchange_us(le.phy, 0, le.payload_bytes, frame_space_us=space_us, encrypted=le.encrypted)
    fit = air.exchanges_that_fit(1e6 * (length_s - le.event_overhead_s), own_us, own_us, space_us)
    if (le.acl_buffers or math.inf) <= min(fit, le.event_packets or math.inf):
        return "acl_buffers"
    if (le.event_packets or math.inf) <= fit:
        return "event_packets"
    if le.subrate > 1:
        return "subrate"
    return "event_length_s" if length_s < le.interval_s else "phy"


def _amount(kbps: float) -> str:
    return f"{kbps:,.3g}" if kbps < 1000 else f"{kbps:,.0f}"


def _words(bound: Bound, value: Any, slots: str = "") -> str:
    """Return a limit in words, with the name of the `slots` of a piconet; without, of a limit behind it."""
    if bound.kind == "window":  # a send buffer that is smaller acts like a receive window
        return f"{'' if slots else 'the '}window of {value} segment{'' if value == 1 else 's'}"
    if bound.kind == "slots":
        return f"{slots} of piconet {bound.name}" if slots else "the radio"
    if bound.kind == "cwnd":
        return f"the congestion window{bound.name and f' after losses at {bound.name}'}"
    if bound.kind == "host":
        return f"the layers of host {bound.name}"
    if bound.kind == "polling":
        return f"polls, which {bound.name} keeps to itself"
    words = {"load": "its load", "tokens": "the tokens", "timer": "the retransmission timer"}
    return words.get(bound.kind, f"link {bound.name}")


def grows_with_the_run(metric: str) -> bool:
    """Whether the metric of an overloaded flow grows with the length of the run."""
    return metric.startswith(DELAYS)


def overload_warning(
    names: Sequence[str], overloaded: np.ndarray, carried_kbps: np.ndarray, offered_kbps: np.ndarray
) -> str:
    """Return the warning of a result with flows whose offered load exceeds the goodput; empty without them.

    Args:
        names: names of the flows.
        overloaded: whether each is, shape (flows,).
        carried_kbps: goodputs, shape (flows,).
        offered_kbps: offered loads, shape (flows,).
    """

    def share(of: np.ndarray) -> str:
        carried, offered = np.mean(carried_kbps[of]), np.mean(offered_kbps[of])
        return f"{carried:.3g} of {offered:.3g} kbit/s carried"

    places = np.flatnonzero(overloaded)
    if not places.size:
        return ""
    if places.size == len(names):
        which = share(places) + (" per flow" if len(names) > 1 else "")
    elif places.size <= MOST_NAMED:
        which = ", ".join(f"{names[int(place)]} ({share(np.array([place]))})" for place in places)
    else:
        which = f"{places.size} of {len(names)} flows, on average {share(places)}"
    return f"overloaded: {which}; delays grow with the run and are left out"
