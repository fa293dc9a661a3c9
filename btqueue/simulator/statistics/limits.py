"""Limits of flows, from measured shares of time: how long queues hold packets, how full windows are.

A queue that holds packets nearly all the time has a station behind it that is the limit: with more packets it
would not carry more. If it is empty for part of the time, the station would carry more, by as much. Then the
window is the limit if it is as large as it may be, else the congestion window or the timer.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from btqueue.scenario import Scenario
from btqueue.scenario.limits import (
    HALF,
    OFTEN_FULL,
    STATIONS,
    TOGETHER,
    WAITING,
    Bound,
    Kind,
    delays_s,
    starved,
    together,
    with_the_next,
)
from btqueue.scenario.topology import Topology, topology
from btqueue.simulator.records.arrays import State
from btqueue.simulator.records.conventions import NOTHING, SECOND, SLOT, UNLIMITED
from btqueue.simulator.statistics.measurement import Counts

CARRIED = 0.98
"""Share of the load that is carried where the load is the limit."""
FULL = 0.95
"""Share of the time that the queue of a full station holds packets; of the receive window that is used."""
LOSSES = {
    "refused_at_token_buffer": "the token buffer",
    "refused_at_baseband": "the baseband queue",
    "refused_at_node": "a node's buffer",
    "refused_on_the_way": "a queue on the way",
    "packets_corrupted": "the radio",
    "given_up": "the radio",
    "lost_outside": "",
}
"""The place of each count of lost packets; an outside link has a name."""
BUFFERS = [place for count, place in LOSSES.items() if count.startswith("refused")]


def bounds(scenario: Scenario, network: State, counts: Counts, bits: np.ndarray) -> list[list[Bound]]:
    """Return the limit of each flow and the next one behind it; empty for sessions and CentaurusComm.

    Args:
        scenario: that was simulated.
        network: its state, of which the ports, buckets and windows are read.
        counts: of one replication, or their sums over all of them; `busy` are means.
        bits: mean size of a message of each flow, shape (flows,).
    """
    plan, ports = topology(scenario), network.ports
    port_of = {(int(port.node), int(port.peer)): number for number, port in enumerate(ports)}
    goodput = counts.goodput_kbps()
    stations = [_stations(plan, one.source, one.target, port_of, network) for one in plan.flows]
    back = [_stations(plan, one.target, one.source, port_of, network) for one in plan.flows]
    through = np.zeros(len(counts.busy))
    for rate, visited in zip(goodput, stations, strict=True):
        for queue in visited:
            through[queue] += rate
    tokens, bounded = _tokens(plan, network, counts, port_of), scenario.link.node_buffer_bytes is not None
    hosts, found = _hosts(scenario, plan, counts), list[list[Bound]]()
    offered = counts.flows["messages"] * bits / 1000.0 / float(counts.seconds)
    offered[[scenario.of_flow(flow.spec).traffic.source == "greedy" for flow in plan.flows]] = math.inf
    contending = {number: goodput[number] for number in np.flatnonzero(goodput < CARRIED * offered).tolist()}
    queues: list[dict[Any, tuple[Kind, str]]] = [
        {**visited, **{(way, node): ("host", plan.nodes[node]) for way, node in enumerate(one[:2])}}
        for one, visited in zip(plan.flows, stations, strict=True)
    ]
    trips_s = counts.flows["rtt_sum"] / np.maximum(counts.flows["rtt_samples"], 1) / SECOND
    waits_s = counts.sojourn / np.maximum(counts.served, 1) / SECOND
    kept_out = starved(scenario, goodput.tolist(), offered.tolist())
    # Packets also wait for gaps between voice packets, for connection events, and for polls of other links,
    # while slots are free. Then the time in which the queue is empty does not say what the slots would carry.
    # Elsewhere it was up to 4 % too much in 9 piconets of one link, and behind a window up to 24 % in 35 of
    # one to seven links, all with perfect radios.
    simple = scenario.link.bearer == "br-edr" and not scenario.voice.links
    lone = [piconet.name for piconet in plan.piconets if len(piconet.members) == 1]
    idle_shares = _idle_shares(plan, network, counts)
    for number, flow in enumerate(plan.flows):
        own = scenario.of_flow(flow.spec)
        if own.traffic.source == "request-reply" or own.transport.protocol == "centaurus":
            found.append([])
            continue
        if number in kept_out and {*places_of_losses(counts.flows[number], plan, number)[:1]} <= {*BUFFERS}:
            found.append(kept_out[number])
            continue
        rate = float(goodput[number])
        every: list[tuple[float, Bound]] = []  # with the share of the time that it is the limit
        for queue, (kind, name) in stations[number].items():
            busy = float(counts.busy[queue])
            mine = busy * rate / through[queue] if through[queue] > 0.0 else 0.0
            used = busy
            if kind == "tokens":
                mine, used = tokens[number][queue], sum(one.get(queue, 0.0) for one in tokens)
            room = rate * (mine + 1.0 - used) / mine if mine > 0.0 else math.inf
            if kind == "slots" and own.transport.protocol == "tcp":  # acknowledgements may be all that waits
                busy = max(busy, float(counts.busy[port_of[int(ports[queue].peer), int(ports[queue].node)]]))
            overflows = bounded or network.queues[queue].limit < UNLIMITED  # without a limit it never does
            share = busy if overflows or busy >= FULL else 0.0
            every.append((share, Bound(kind, room, name, idle_shares[name] if kind == "slots" else 0.0)))
        for mine, busy, node in hosts[number]:
            room = rate * (mine + 1.0 - busy) / mine if mine > 0.0 else math.inf
            every.append((busy, Bound("host", room, plan.nodes[node])))
        every += _of_transport(own, counts, number, plan)
        if own.traffic.source != "greedy":
            load = float(offered[number])
            every.append((float(rate >= CARRIED * load), Bound("load", load)))
        times = defaultdict[tuple[Kind, str], float](float)
        for queue, place in {**stations[number], **back[number]}.items():
            times[place] += float(waits_s[queue]) if place[0] != "slots" else 0.0
        longest_s = max(own.transport.min_rto_s, float(trips_s[number]))
        waiting = float(counts.flows["timeouts"][number]) / float(counts.seconds) * longest_s
        held = [one.kbps for _, one in every if one.kind in ("window", "cwnd")]
        lossy = held and any(one.kind == "cwnd" for _, one in every)
        most_s = held[0] * counts.flows["rtt_least"][number] if lossy else 0.0
        active = min(rate * float(trips_s[number]) * SECOND / most_s, 1.0) if most_s > 0.0 else 1.0
        both = _ordered(every, rate, _most_of_window_kbps(own, counts, number, plan))
        named = [one for _, one in every if one.kind != "window"]
        filled = max((share for share, one in every if one.kind in ("window", "cwnd")), default=0.0)
        if both and filled >= (FULL if both[0].kind in STATIONS else HALF):
            named.append(Bound("window", math.nan))
        more = named, float(trips_s[number]), waiting, active, times, queues, contending
        if len(both) == 2 and both[1].kind == "slots":
            both = both if simple and (both[1].name in lone or both[0].kind == "window") else both[:1]
        found.append([together(scenario, number, one, *more) for one in both[:1]] + both[1:])
    return found


def _idle_shares(plan: Topology, network: State, counts: Counts) -> dict[str, float]:
    """Return the least share of the slots of each piconet, by name, that polls links without data."""
    found = dict.fromkeys((piconet.name for piconet in plan.piconets), 0.0)
    for link, visits in zip(network.links, counts.link_visits.tolist(), strict=True):
        own = network.piconets[int(link.piconet)]
        free_ns = counts.seconds * SECOND * (1.0 - own.voice_reserved / max(own.voice_period, 1))
        idle = max(visits - counts.served[int(link.up)] - counts.served[int(link.down)], 0)
        found[plan.piconets[int(link.piconet)].name] += float(2 * SLOT * idle / free_ns)
    return found


def _tokens(
    plan: Topology, network: State, counts: Counts, port_of: dict[tuple[int, int], int]
) -> list[dict[int, float]]:
    """Return the share of the tokens that each flow takes with its segments and acknowledgements, by queue.

    A bucket saves tokens, so that its queue is empty more often than tokens are left. The tokens of a segment
    of mean size are interpolated between the sizes of the flow.
    """
    found, layouts = [], network.layouts
    for number, ends in enumerate(plan.flows):
        flow, own, taken = counts.flows[number], network.connections[number], defaultdict[int, float](float)
        cut = network.patterns[own.pattern : own.pattern + own.pattern_length]
        cut = cut[np.argsort(layouts.application[cut])]
        mean_bytes = flow["bytes_sent"] / max(flow["segments_sent"], 1)
        price = np.interp(mean_bytes, layouts.application[cut], layouts.all_tokens[cut]) if len(cut) else 0.0
        ways = [(ends.source, ends.target, flow["segments_sent"] * price)]
        if own.control_layout != NOTHING:
            price = layouts[own.control_layout].all_tokens
            ways.append((ends.target, ends.source, flow["acks_sent"] * price))
        for source, target, spent in ways:
            for hop in plan.route(source, target):
                bucket = network.buckets[port_of[hop.source, hop.target]]
                if bucket.enabled:
                    granted = float(bucket.rate * SECOND * counts.seconds)
                    taken[int(bucket.queue)] += float(spent) / granted if granted else 0.0
        found.append(taken)
    return found


def _hosts(scenario: Scenario, plan: Topology, counts: Counts) -> list[list[tuple[float, float, int]]]:
    """Return the layers of hosts that take one segment at a time and that each flow passes.

    Each as the share of the time that they work for the flow, and for all flows, and the number of the host.
    """
    each_s = max(scenario.transport.ip_delay_s, scenario.link.l2cap_delay_s) / float(counts.seconds)
    mine, used = [], defaultdict[tuple[int, bool], float](float)
    for number, flow in enumerate(plan.flows):
        data, acks = (float(counts.flows[name][number]) * each_s for name in ("segments_sent", "acks_sent"))
        there, back = (flow.source, True), (flow.target, True)
        mine.append({there: data, (flow.target, False): data, back: acks, (flow.source, False): acks})
        for line, share in mine[-1].items():
            used[line] += share
    return [[(share, used[line], line[0]) for line, share in one.items() if share > 0.0] for one in mine]


def _ordered(every: list[tuple[float, Bound]], rate: float, of_window: float) -> list[Bound]:
    """Return the bound that limits a flow of this goodput, then the next one behind it.

    Behind a station that is the limit, the least round trip without waits is not known: nothing is next where
    the receive window may bind first.

    Args:
        every: shares of the time that a bound is the limit, and the bounds.
        rate: goodput of the flow (kbit/s).
        of_window: goodput of the receive window in the delay of outside links alone (kbit/s).
    """
    order: dict[Kind, int] = {"load": 0, "timer": 1, **dict.fromkeys(STATIONS, 2), "window": 3}
    overflows = any(one.kind == "cwnd" and one.name in BUFFERS for _, one in every)
    enough = OFTEN_FULL if overflows else FULL
    full = [
        (order.get(one.kind, 4), -share, one)
        for share, one in every
        if share >= (WAITING if one.kind == "timer" else enough if one.kind in STATIONS else FULL)
    ]
    rest = [(order.get(one.kind, 4), -share, one) for share, one in every if one.kind in ("cwnd", "window")]
    if not full and not rest:
        return []
    first = min(full or rest, key=lambda one: one[:2])[2]
    # where all round trips are long, the round trip without waits is not known
    unknown = ("window", "cwnd") if first.kind in STATIONS else ()
    known = [one for _, one in every if one.kind not in unknown]
    found = with_the_next(first._replace(kbps=rate), known, rate)
    return found[:1] if unknown and found[-1].kbps >= of_window else found


def _most_of_window_kbps(own: Scenario, counts: Counts, number: int, plan: Topology) -> float:
    """Return the goodput of a full window in each round trip of the links' delays; inf without (kbit/s)."""
    flow, t, trip_s = counts.flows[number], own.transport, delays_s(plan, plan.flows[number])
    if t.protocol != "tcp" or trip_s == 0.0:
        return math.inf
    window = min(t.receive_window_segments, t.send_buffer_segments or math.inf)
    kilobits = 8.0 * float(flow["bytes_sent"]) / max(float(flow["segments_sent"]), 1.0) / 1000.0
    return window * kilobits / trip_s


def _of_transport(own: Scenario, counts: Counts, number: int, plan: Topology) -> list[tuple[float, Bound]]:
    """Return the window of a TCP flow and its timer, with the shares of the time that they are the limit."""
    flow, t = {name: counts.flows[name][number] for name in counts.flows.dtype.names}, own.transport
    if t.protocol != "tcp":
        return []
    trip_s = flow["rtt_sum"] / max(flow["rtt_samples"], 1) / SECOND
    decides = t.min_rto_s > trip_s  # else the timer follows the round trips
    waiting = flow["timeouts"] / float(counts.seconds) * t.min_rto_s * decides
    timer = (float(waiting), Bound("timer", math.inf))
    if not flow["window_samples"] or not flow["rtt_samples"]:
        return [timer]
    kilobits = 8 * flow["bytes_sent"] / max(flow["segments_sent"], 1) / 1000.0
    most_kbps = kilobits * SECOND / flow["rtt_least"]  # of a window of one segment
    used, most = flow["window_sum"] / flow["window_samples"], t.receive_window_segments
    most = min(most, t.send_buffer_segments or most)
    places = places_of_losses(flow, plan, number)
    further = [(0.0, Bound("cwnd", math.inf, place)) for place in places]
    if used >= FULL * most or not (places or flow["fast_retransmits"] or flow["timeouts"]):
        return [timer, (used / most, Bound("window", most * most_kbps)), *further]
    place = places[0] if places else ""
    return [timer, (used / most, Bound("cwnd", used * most_kbps, place)), *further[1:]]


def places_of_losses(flow: Mapping[str, float], plan: Topology, number: int) -> list[str]:
    """Return the places where a flow loses a tenth of its lost packets or more, the worst first."""
    least = TOGETHER * sum(flow[name] for name in LOSSES)
    found = [name for name in LOSSES if flow[name] > 0 and flow[name] >= least]
    hops = plan.route(*plan.flows[number][:2])
    links = [plan.outside[hop.index].link for hop in hops if hop.kind == "outside"]
    far = max(links, key=lambda link: link.loss).name if links else ""
    return list(dict.fromkeys(LOSSES[name] or far for name in sorted(found, key=lambda name: -flow[name])))


def _stations(
    plan: Topology, source: int, target: int, port_of: dict[tuple[int, int], int], network: State
) -> dict[int, tuple[Kind, str]]:
    """Return the queues before the stations on a way, with the names of the stations."""
    found: dict[int, tuple[Kind, str]] = {}
    for hop in plan.route(source, target):
        port = port_of[hop.source, hop.target]
        inside = hop.kind == "bluetooth"
        name = plan.piconets[hop.index].name if inside else plan.outside[hop.index].link.name
        found[port] = ("slots" if inside else "outside", name)
        if network.buckets[port].enabled:
            found[int(network.buckets[port].queue)] = ("tokens", "")
    return found
