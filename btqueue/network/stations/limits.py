"""Limits of flows at the operating point: the constraint that binds, and the next one behind it."""

from __future__ import annotations

from collections import defaultdict
from math import inf, nan
from typing import Any

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.network.stations.network import Flow, Network
from btqueue.network.stations.point import CARRIED, Point
from btqueue.scenario import Scenario
from btqueue.scenario.limits import (
    HALF,
    OFTEN_FULL,
    STATIONS,
    WAITING,
    Bound,
    Kind,
    starved,
    together,
    with_the_next,
)
from btqueue.scenario.topology import Topology, topology

LEAST_FREE = 0.03
"""Least share of a wire that a flow has for itself, so that times there stay finite (assumed)."""
BUSY = 0.97
"""Share of the goodput of a full station from which on the station is the limit, not the losses."""


@np.errstate(all="ignore")  # times for ever
def bounds(
    scenario: Scenario, network: Network, point: Point, goodput: Any, timeouts: Any, overflow: Any
) -> list[list[Bound]]:
    """Return the limit of each flow and the next one behind it; empty for sessions and CentaurusComm.

    Args:
        scenario: with its keys in tables (`btqueue.scenario.traits.in_tables`).
        network: network of the scenario.
        point: its operating point.
        goodput: goodput of each flow (kbit/s).
        timeouts: timeouts of each flow, a second.
        overflow: laws of flows whose windows overflow a full buffer, by number.
    """
    plan = topology(scenario)
    used = point.rate @ point.service
    found: list[list[Bound]] = []
    sources = [scenario.of_flow(flow.spec).traffic for flow in plan.flows]
    offered = [inf if one.source == "greedy" else one.load_kbps for one in sources]
    stations = [dict(_stations(plan, point, flow, f)) for f, flow in enumerate(network.flows)]
    queues: list[dict[Any, Any]] = [
        {("host", one.node): ("host", plan.nodes[one.node]) for one in flow.layers if not one.back}
        | {(*one[:2], one.turn): places[point.links.number[one[:2]]] for one in flow.forth}
        for flow, places in zip(network.flows, stations, strict=True)
    ]
    contending = {f: kbps for f, kbps in enumerate(goodput) if not (point.carried[f] or f in overflow)}
    kept_out, idle_shares = starved(scenario, goodput, offered), _idle_shares(plan, network, point)
    for f, flow in enumerate(network.flows):
        if flow.messages or f in point.sessions or flow.protocol == "centaurus":
            found.append([])
            continue
        if f in kept_out and f not in point.found:
            found.append(kept_out[f])
            continue
        every = _every(plan, network, point, f, used)
        first = _binding(flow, point, f, every, float(goodput[f]), float(timeouts[f]), overflow)
        if first.kind == "slots":
            first = first._replace(idle_share=idle_shares.get(first.name))
        lone_s, law = float(point.base[f] + point.stray[f]), overflow.get(f, point.found.get(f))
        trip_s = lone_s if law is None else law.rtt_s
        waiting = timeouts[f] * max(flow.transport.min_rto_s, trip_s)
        active = min(law.goodput * trip_s / law.window, 1.0) if law is not None else 1.0 - waiting
        times = defaultdict[tuple[Kind, str], float](float, {("tokens", ""): point.token_s[f]})
        for number, place in stations[f].items():
            mine = point.service[f, number] if place[0] == "outside" else 0.0
            times[place] += mine / max(1.0 - used[number] + point.rate[f] * mine, LEAST_FREE)
        if f in overflow:
            full = min((one for one in every if one.kind in STATIONS), key=lambda one: one.kbps)
            times[full.kind, full.name] += max(trip_s - lone_s, 0.0)
        named = [one for one in every if one.kind != "window"]
        if law is None or law.window >= (BUSY if first.kind in STATIONS else HALF) * flow.window:
            named.append(Bound("window", nan))
        first = together(scenario, f, first, named, trip_s, waiting, active, times, queues, contending)
        found.append(with_the_next(first, every, float(goodput[f])))
    return found


def _every(plan: Topology, network: Network, point: Point, f: int, used: Any) -> list[Bound]:
    """Return the stations on the way, the window and the load of a flow, with the goodputs they allow."""
    flow = network.flows[f]
    rooms: dict[tuple[Kind, str], float] = {}
    for number, place in _stations(plan, point, flow, f):
        service = float(point.service[f, number])
        if service > 0.0:
            free = max(1.0 - float(used[number]), 0.0) + float(point.rate[f]) * service
            rooms[place] = min(rooms.get(place, inf), free / service * flow.kilobits)
    every = [Bound(kind, kbps, name) for (kind, name), kbps in rooms.items()]
    lone = float(point.base[f] + point.stray[f])
    if flow.protocol == "tcp" and flow.window < inf and lone > 0.0:
        held = Bound("window", flow.window / lone * flow.kilobits)
        if (law := point.found.get(f)) is not None:
            held, lossy = held._replace(kbps=law.goodput * flow.kilobits), _lossy(plan, flow, f)
            full = law.window >= BUSY * flow.window
            every += [held, Bound("cwnd", inf, lossy)] if full else [held._replace(kind="cwnd", name=lossy)]
        else:
            every.append(held)
    if flow.load < inf:
        every.append(Bound("load", flow.load * flow.kilobits))
    return every


def _idle_shares(plan: Topology, network: Network, point: Point) -> dict[str, float]:
    """Return the least share of the slots of each piconet, by name, that polls links without data.

    Known where a link always has data: its visits are as frequent as its full numbers of frames.
    """
    links, found = point.links.links, dict[str, float]()
    frames = links.by_link(links.rate_of)
    full = np.where(links.full_link, np.max(links.rate_of[:, None] * links.of_link, axis=0, initial=0.0), 0.0)
    for number, piconet in enumerate(network.piconets):
        own = links.piconet == number
        visits = float((full[own] / links.visit[own]).max(initial=0.0))
        idle = piconet.members * visits - float(np.minimum(frames[own], visits).sum())
        found[plan.piconets[number].name] = 2.0 * SLOT_S * idle / piconet.free_share
    return found


def _binding(
    flow: Flow, point: Point, f: int, every: list[Bound], goodput: float, timeouts: float, overflow: Any
) -> Bound:
    stations = [one for one in every if one.kind in STATIONS]
    full = min(stations, key=lambda one: one.kbps, default=None)
    if flow.load < inf and point.rate[f] >= CARRIED * flow.load:
        return Bound("load", goodput)
    if timeouts * max(flow.transport.min_rto_s, 0.0) >= WAITING and flow.protocol == "tcp":
        return Bound("timer", goodput)
    filled = full is not None and f in point.found and goodput >= BUSY * full.kbps
    if full is not None and (filled or point.waits[f] > 0.0 or flow.protocol != "tcp"):
        if f not in overflow or goodput >= OFTEN_FULL * full.kbps:
            return full._replace(kbps=goodput)
        return Bound("cwnd", goodput, BUFFERS.get(full.kind, ""))
    other = next((one for one in every if one.kind in ("cwnd", "window")), None)
    return Bound(other.kind, goodput, other.name) if other else Bound("load", goodput)


BUFFERS = {"tokens": "the token buffer", "slots": "the baseband queue", "outside": "a queue on the way"}
"""The place of losses before a full station."""


def _stations(plan: Topology, point: Point, flow: Flow, f: int) -> list[tuple[int, tuple[Kind, str]]]:
    """Return numbers and names of the stations that a flow visits, there and back."""
    ends, found = plan.flows[f], list[tuple[int, tuple[Kind, str]]]()
    for layer in flow.layers:
        name = plan.nodes[layer.node]
        found.append((point.links.number["wire", layer.wire], ("host", name)))
    ways = ((flow.forth, ends.source, ends.target), (flow.back, ends.target, ends.source))
    for visits, source, target in ways:
        hops = iter(plan.route(source, target))
        for visit in visits:
            place: tuple[Kind, str] = ("tokens", "")
            if visit.kind != "bucket":
                hop = next(hops)
                outside = hop.kind == "outside"
                name = plan.outside[hop.index].link.name if outside else plan.piconets[hop.index].name
                place = ("outside" if outside else "slots", name)
            found.append((point.links.number[visit.kind, visit.index], place))
    return found


def _lossy(plan: Topology, flow: Flow, f: int) -> str:
    """Return the place where most segments of a flow are lost at random."""
    worst = max(range(len(flow.forth)), key=lambda at: flow.forth[at].loss)
    if flow.forth[worst].kind != "wire":
        return "the radio"
    hops = plan.route(plan.flows[f].source, plan.flows[f].target)
    before = sum(visit.kind != "bucket" for visit in flow.forth[:worst])
    return plan.outside[hops[before].index].link.name


def of_a_ring(network: Network, metrics: Any) -> list[list[Bound]]:
    """Return the limit of each connection of a ring that is sampled (`tagged`)."""
    goodput = metrics["goodput_kbps"].tolist()
    timed = metrics["timeouts_per_s"] * network.flows[0].transport.min_rto_s >= WAITING
    flow, lost = network.flows[0], float(metrics["segment_loss"][0])
    place = "the token buffer" if network.buckets else "the baseband queue"
    place = "the radio" if flow.loss > lost / 2.0 else place
    lossy = Bound("cwnd", nan, place)
    found = [Bound("timer", nan, also=(lossy,)) if waits else lossy for waits in timed]
    loads = [CARRIED * one.load * one.kilobits for one in network.flows]
    every = zip(goodput, loads, found, strict=True)
    return [[(Bound("load", rate) if rate >= load else one)._replace(kbps=rate)] for rate, load, one in every]
