"""The answer of theory: metrics of the operating point, and the doubts of its laws."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from btqueue.baseband import SLOT_S
from btqueue.network.answers import NoConvergence
from btqueue.network.stations import anchors, buffers, limits, nagle, quantiles, sessions, tagged, transport
from btqueue.network.stations.doubts import doubts
from btqueue.network.stations.laws import CROWDED
from btqueue.network.stations.nagle import Cut
from btqueue.network.stations.network import EMPTY, Flow, Network, more_of, network_of
from btqueue.network.stations.point import CARRIED, Point, operating_point
from btqueue.network.stations.queues import CYCLIC
from btqueue.scenario import Scenario

Vector = NDArray[np.float64]

KEPT_OUT = (
    '[polling] discipline = "exhaustive": a visit lasts as long as there are segments, and several links '
    "always have some, so that one of them keeps the central to itself; which link it is depends on the run, "
    "here it is the first"
)
JUST_CARRIED = (
    "a window just carries the load of its source: the waits at several stations add up to more than the "
    "window allows, and the answer is the round trip of the full window, which was 13 to 85 % too long"
)
TURNS, DAMPED = 8, 0.6
"""Most iterations between the segments of a stream and the round trips, and the damping factor."""
LEAST_LOSS = 1e-3
"""Chance of a segment to find the buffer of a bridge full, below which none does."""


def answer(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes, as `btqueue.network.answers` describes them.

    Raises:
        NoConvergence: the rates do not settle, or rates or times overflow: hardly any segment gets through.
    """
    try:
        with np.errstate(all="ignore"):  # rates of zero have infinite times
            metrics, notes = _answer(scenario)
    except ArithmeticError as error:
        raise NoConvergence(f"hardly anything gets through: {error}") from error
    if not np.isfinite(metrics["goodput_kbps"]).all():
        raise NoConvergence("rates at the stations were not found: hardly anything gets through")
    if not notes["converged"]:
        change = notes["residual"]
        words = f"{change:.1%}" if change < 1.0 else "more than 100 %"
        raise NoConvergence(f"the rates did not settle: they still change by {words}")
    return metrics, notes


def _answer(scenario: Scenario) -> tuple[dict, dict]:
    network = network_of(scenario)
    if tagged.is_asked(network):
        return _sampled(scenario, network)
    point = operating_point(network)
    kept_out = captured(network)
    if kept_out:
        flows = [replace(flow, load=0.0) if f in kept_out else flow for f, flow in enumerate(network.flows)]
        network = replace(network, flows=tuple(flows))
        point = operating_point(network)
    if any(flow.short for flow in network.flows):
        network, point = _in_rounds(scenario, network, point)
    if tagged.is_asked(network, overflows=True) and buffers.doubts(network, point):
        return _sampled(scenario, network)
    laws = point.links
    if (laws.brings.refused(laws.links, point.rate, point.sent) >= LEAST_LOSS).any():
        point = operating_point(network, point, refuses=True)
    network = point.links.network  # with the losses that depend on waits
    flows = network.flows
    count = len(flows)
    rate, load = point.rate.copy(), np.array([flow.load for flow in flows])
    waits, used = point.waits, point.rate @ point.service
    rtt = np.zeros(count)
    timeouts, fast, loss = np.zeros(count), np.zeros(count), np.zeros(count)
    flow_loss = np.array([flow.loss for flow in flows])
    overflow, fits = buffers.saws(network, point), buffers.whole(network, point)
    point.counted |= {f: law.known for f, law in overflow.items()}
    held, tight = buffers.held(network, point), False
    for f, flow in enumerate(flows):
        law = point.found.get(f)
        loss[f] = flow.loss
        if f in kept_out:  # the first segment waits for ever, and its timer has doubled to its end
            timeouts[f], rtt[f], loss[f] = 1.0 / flow.transport.max_rto_s, np.nan, np.nan
            continue
        lone = point.base[f] + point.stray[f]
        if rate[f] < 0.999 * load[f]:
            rest = point.links.rests[f]
            rtt[f] = lone + waits[f]
            if waits[f] > 0.0 and rest.shown < inf:
                rtt[f] += (rest.shown - rest.window) / rate[f]
            elif law is None and rate[f] > 0.0:
                alone, slowest = float(point.base[f] - point.gather[f]), float(point.service[f].max())
                rtt[f] += transport.across_s(flow, alone, slowest, rate[f])
            if law is not None and waits[f] == 0.0:
                timeouts[f], fast[f], rtt[f] = law.timeouts, law.fast_retransmits, law.rtt_s
                loss[f] = law.losses
        else:
            most = point.links.rests[f].window
            rtt[f] = lone + point.own[f](most, lone) + waits[f]
            if law is not None:
                found = transport.open_losses(flow, law, rate[f], float(rtt[f]), most)
                timeouts[f], fast[f], rtt[f], loss[f] = found
            elif f in held:
                rtt[f] = held[f].rtt_s + waits[f]
                timeouts[f] = held[f].full * held[f].law.timeouts
                fast[f] = held[f].full * held[f].law.fast_retransmits
                loss[f] = held[f].full * held[f].law.losses
            if rate[f] > 0.0 and rtt[f] > flow.window / rate[f]:  # Little: no more than a window is under way
                rtt[f], tight = flow.window / rate[f], True
        timeouts[f] += point.expiries[f]
        if f in overflow:
            found = overflow[f]
            rate[f], timeouts[f], fast[f] = (
                min(rate[f], found.goodput),
                found.timeouts,
                found.fast_retransmits,
            )
            loss[f], rtt[f] = found.losses, found.rtt_s
        if flow.protocol == "none" and load[f] < inf:
            carried = min(rate[f], load[f] * fits[f])
            # the queue of datagrams before a full station without a limit grows, and none is lost
            crowded = [
                visit for visit in flow.forth if used[point.links.number[visit.kind, visit.index]] > CROWDED
            ]
            waits_for_ever = all(visit.places == inf for visit in crowded) and fits[f] == 1.0
            loss[f] = flow.loss if waits_for_ever else 1.0 - (1.0 - flow.loss) * carried / load[f]
            rate[f] = carried * (1.0 - flow.loss)
    delay = delays(network, point, overflow)
    for f, found in point.sessions.items():
        pair = sessions.pair_of(flows, f)
        rate[pair] = [flows[one].segments / found.cycle_s for one in pair]
        rtt[pair] = found.rtt_s
        timeouts[pair] = np.array(found.timeouts) / found.cycle_s
        fast[pair] = np.array(found.fast_retransmits) / found.cycle_s
    kilobits = np.array([flow.kilobits for flow in flows])
    datagrams = (loss > flow_loss) & np.isfinite(load) & ~np.array([flow.protocol == "tcp" for flow in flows])
    # a source of datagrams sends them all, and datagrams that a full queue refuses are lost
    sent = np.where(datagrams, load, rate / np.where(loss < 1.0, 1.0 - loss, 1.0))
    metrics: dict[str, Any] = {
        "goodput_kbps": rate * kilobits,
        "throughput_kbps": sent * kilobits,
        "segment_loss": loss,
        "rtt_s": rtt,
        "timeouts_per_s": timeouts,
        "fast_retransmits_per_s": fast,
    }
    if np.isfinite(delay).any():
        metrics["delay_s"] = delay
    metrics |= of_the_air(network, point)
    if network.anchored:
        metrics |= anchors.metrics(network, rate)
    full = buffers.refused(network, point)
    if np.isfinite(full).any():
        metrics["loss_baseband_buffer"] = full
    if queues := buffers.waiting(network, point):
        metrics["queue_packets"] = queues
    if point.sessions:
        values = np.full((4, count), np.nan)
        for f, found in point.sessions.items():
            values[:, f] = 1.0 / found.cycle_s, found.session_s, 0.0, found.connect_s
        metrics |= zip(("sessions_per_s", "session_time_s", "sessions_lost"), values[:3], strict=True)
        if np.nansum(values[3]):
            metrics["connect_time_s"] = values[3]
    tcp = np.array([flow.protocol == "tcp" for flow in flows])
    metrics["rtt_s"] = np.where(tcp & (rtt > 0.0), rtt, np.nan)
    means = {name: metrics[name] for name in ("rtt_s", "delay_s") if name in metrics}
    spread = quantiles.quantiles(network, point, means)
    metrics |= {name: values for name, values in spread.items() if np.isfinite(values).any()}
    metrics["timeouts_per_s"], metrics["fast_retransmits_per_s"] = timeouts * tcp, fast * tcp
    if not np.isfinite(metrics["rtt_s"]).any():
        del metrics["rtt_s"]
    for name in ("timeouts_per_s", "fast_retransmits_per_s"):  # a law without timers does not have them
        if not tcp.any() or not np.isfinite(metrics[name]).all():
            del metrics[name]
    return metrics, {
        "method": "fixed point of the rates at all stations",
        "converged": point.converged,
        "residual": point.residual,
        "limits": limits.bounds(scenario, network, point, metrics["goodput_kbps"], timeouts, overflow),
        "warnings": [
            *([KEPT_OUT] if kept_out else []),
            *([JUST_CARRIED] if tight else []),
            *doubts(network, point, rtt, tcp | np.isfinite(delay)),
            *anchors.doubts(network, point),
        ],
    }


def _sampled(scenario: Scenario, network: Network) -> tuple[dict, dict]:
    """Return the answer of a sampled connection."""
    metrics, notes = tagged.tagged(scenario, network)
    return metrics, {**notes, "limits": limits.of_a_ring(network, metrics)}


def of_the_air(network: Network, point: Point) -> dict[str, float]:
    """Return the share of the slots that data could use and do, and the mean polling cycle (s), where known.

    Cycles are known for piconets of several members without bridges, under cyclic polling. While a link
    always has packets, cycles have full visits to it.
    """
    laws, links = point.links, point.links.links
    if not network.piconets or not network.ports:
        return {}
    free = sum(piconet.free_share for piconet in network.piconets)
    found = {"slot_utilisation": min(float(links.slots_s.sum()) * SLOT_S / free, 1.0)}
    cycles = []
    for number, piconet in enumerate(network.piconets):
        ports = np.flatnonzero(links.piconet[links.port_link] == number)
        full = ports[links.full_link[links.port_link[ports]]]
        if (
            network.bridges
            or piconet.discipline not in CYCLIC
            or piconet.members < 2
            or not laws.polled.count
        ):
            return found
        if not len(ports):
            cycles.append(EMPTY * piconet.members / piconet.data_share)
        elif len(full):  # a visit for each full number of frames sent
            first = full[np.argmax(links.rate_of[full])]
            cycles.append(float(links.visit[links.port_link[first]] / links.rate_of[first]) / SLOT_S)
        else:
            cycles.append(float(laws.polled.cycle[ports].mean()))
    return found | {"cycle_s": float(np.mean(cycles)) * SLOT_S}


def delays(network: Network, point: Point, overflow: dict[int, transport.Law]) -> Vector:
    """Return the mean time from writing a message until it is delivered (s), shape (flows,).

    It is known for messages of one segment whose load is carried, without losses and with a window that
    covers the way back: else the queue at the sender is longer than the queue before the slowest station.
    """
    found = np.full(len(network.flows), np.nan)
    for f, flow in enumerate(network.flows):
        laws, window = point.links, point.links.rests[f].window
        port = laws.ports.get(f)
        service_s = port.turn if port else laws.queues[f].service_s
        known = flow.batch == 1.0 and not flow.messages and not flow.short and f not in overflow
        known = known and 0.0 < flow.load < inf and point.rate[f] >= CARRIED * flow.load
        fades = any(visit.train.worse > 0.0 for visit in flow.forth)
        repaired = flow.protocol != "none" and flow.loss + flow.ack_loss > 0.0
        if not known or fades or repaired or service_s <= 0.0:
            continue
        lone = float(point.base[f] + point.stray[f])
        on_way = (lone - laws.answers[f].wait_s) / service_s
        if flow.protocol == "none" or window >= on_way + (1.0 / flow.acks if flow.acks else 1.0) - 1.0:
            own = point.own[f](inf, lone) - port.rest if port else point.own_stray[f]
            found[f] = point.there[f] + laws.waits[f] + own
    return found


def _in_rounds(scenario: Scenario, network: Network, point: Point) -> tuple[Network, Point]:
    """Return network and point where messages share segments (Nagle's algorithm).

    The sizes of segments follow from the round trips, and these from the segments.
    """
    before, paths, settled = np.zeros(len(network.flows)), np.zeros((len(network.flows), 2)), False
    like = point.links.like.tolist()
    for turn in range(TURNS):
        here = np.zeros_like(paths)
        shared = [f for f in sorted(set(like)) if network.flows[f].short]
        for f in shared:
            here[f] = _path_of(network.flows[f], f, point)
        paths = paths + (1.0 if turn == 0 else DAMPED) * (here - paths)
        full = point.links.links.endless
        found = {f: _cut(network.flows[f], *paths[f].tolist(), backlog=bool(full[f])) for f in shared}
        cuts = tuple(found.get(f) for f in like)
        bits = np.array([cut.bytes if cut else 0.0 for cut in cuts])
        settled = bool((np.abs(bits - before) <= 0.01 * bits).all())
        if settled:
            break
        before = bits
        network = network_of(scenario, cuts)
        point = operating_point(network, point)
    point.between |= not settled
    return network, point


def _path_of(flow: Flow, f: int, point: Point) -> tuple[float, float]:
    """Return the round trip of a full segment of a flow, and its service at its slowest station (s)."""
    laws, (least, most), full = point.links, flow.span_s, flow.transport.mss_bytes
    beyond = (full - flow.kilobits * 125.0) * (most - least) / (full - flow.traffic.message_bytes % full)
    each_s = max(laws.queues[f].service_s, laws.polled.following_s(f))
    if not each_s or any(visit.kind == "bucket" for visit in flow.forth):  # which has tokens for several
        each_s = laws.polled.following_s(f) or float(
            point.service[f, : len(laws.names) - len(laws.network.buckets)].max()
        )
    lone_s = max(float(point.base[f] + point.stray[f]) - laws.answers[f].wait_s, most - beyond)
    return lone_s + beyond, each_s * most / (most - beyond)


def _cut(flow: Flow, trip_s: float, each_s: float, *, backlog: bool) -> Cut:
    """Return the segments of a flow with this round trip and service of full ones (s).

    `backlog`: whether data wait at the sender for room in its window, so that all segments are full.
    """
    (least, most), full, traffic = flow.span_s, flow.transport.mss_bytes, flow.traffic
    rate = traffic.load_kbps * 125.0 / traffic.message_bytes
    source = nagle.Source(traffic.message_bytes, rate, more_of(traffic, rate), flow.source == "periodic")
    slope = (most - least) / (full - traffic.message_bytes % full)
    times = [float(f"{time:.6e}") for time in (trip_s, slope, each_s, slope / most)]  # one solution
    every = flow.transport.ack_every_segments if transport.delays_received(flow) else 1
    path = nagle.Path(
        full_s=times[0],
        byte_s=times[1],
        each_s=times[2],
        part=times[3],
        window=flow.window,
        every=every,
        delay_s=transport.by_clock_s(flow),
    )
    if nagle.waits_for_all(flow.transport):
        return nagle.cut(source, full, path)
    if backlog:
        return Cut(((float(full), traffic.message_bytes / full),), 0.0, 0.0, 0.0, 1.0, 0.0, 0.0)
    return nagle.between_short(source, full, path)


def captured(network: Network) -> set[int]:
    """Return the flows that exhaustive visits to another link keep out for ever.

    A visit lasts as long as there are segments. A connection of several segments between the central and a
    member always has some. So the first link with a connection of this kind keeps the central.
    """
    found, holders = set(), {}
    for f, flow in enumerate(network.flows):
        ports = [network.ports[visit.index] for visit in flow.forth if visit.kind == "port"]
        alone = len(ports) == len(flow.forth) == 1 and flow.window >= 2.0 and flow.load == inf
        if not alone or network.piconets[ports[0].piconet].discipline != "exhaustive":
            continue
        holder = holders.setdefault(ports[0].piconet, ports[0].link)
        if holder != ports[0].link:
            found.add(f)
    return found
