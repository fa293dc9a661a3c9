"""The answer of theory: metrics of the operating point, and the doubts of its laws."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.baseband import SLOT_S
from btqueue.network.answers import Answer, NoConvergence
from btqueue.network.stations import (
    acknowledgements,
    anchors,
    bridge_buffers,
    buffers,
    limits,
    nagle,
    quantiles,
    sessions,
    tagged,
    transport,
)
from btqueue.network.stations.description import more_of, network_of
from btqueue.network.stations.doubts import doubts
from btqueue.network.stations.laws import CROWDED
from btqueue.network.stations.nagle import Cut
from btqueue.network.stations.network import EMPTY, Flow, Network
from btqueue.network.stations.point import CARRIED, FINE, Point, operating_point
from btqueue.network.stations.queues import CYCLIC
from btqueue.scenario import Scenario
from btqueue.scenario.metrics import Computed

Vector = NDArray[np.float64]

KEPT_OUT = (
    '[polling] discipline = "exhaustive": a visit lasts as long as there are segments, and several links '
    "always have some, so that one of them keeps the central to itself; which link it is depends on the run, "
    "here it is the first"
)
AT_TIMES = (
    '[polling] discipline = "exhaustive": a connection that always has data keeps the central until it loses '
    "a segment, or waits for tokens, for a wire or for hosts: other links got nothing to all of their load"
)
NO_ROOM = (
    "a bridge has no room for the packets of a visit, and no segment gets through, unless errors, gates or "
    "ends of a stay divide its packets: in 4 of 100 random scenarios segments did, and in 12 timeouts were "
    "up to 75 % too few"
)
TURNS, DAMPED, NEAR = 8, 0.6, 0.05
"""Most iterations between the segments of a stream and the round trips, the damping factor, and the relative
change of settled round trips."""


def answer(scenario: Scenario, *, sampling: bool = True, near: Point | None = None) -> Answer:
    """Return metrics and notes, as `btqueue.network.answers` describes them.

    Limits and doubts among the notes are computed when they are read. The note `point` is the operating point
    before messages share segments and bridges refuse packets.

    Args:
        scenario: to be answered.
        sampling: whether a connection may be sampled.
        near: the note `point` of a scenario with other numbers, from which the operating point is found.

    Raises:
        NotSampled: with *sampling* false, where a connection would be sampled.
        NoConvergence: the rates do not settle, or rates or times overflow: hardly any segment gets through.
    """
    metrics, notes = _converged(_answer, scenario, sampling, near)
    if not np.isfinite(metrics["goodput_kbps"]).all():
        raise NoConvergence("rates at the stations were not found: hardly anything gets through")
    if not notes["converged"]:
        change = notes["residual"]
        words = f"{change:.1%}" if change < 1.0 else "more than 100 %"
        raise NoConvergence(f"the rates did not settle: they still change by {words}")
    return metrics, notes


@np.errstate(all="ignore")  # rates of zero have infinite times
def _converged(law: Callable[..., Any], *given: Any) -> Any:
    try:
        return law(*given)
    except ArithmeticError as error:
        raise NoConvergence(f"hardly anything gets through: {error}") from error


def _answer(scenario: Scenario, sampling: bool, near: Point | None) -> Answer:
    network = network_of(scenario)
    if tagged.is_asked(network):
        return _sampled(scenario, network, sampling)
    kept_out, captures = captured(network)
    first = point = operating_point(_without(network, kept_out), near, within=FINE)
    if kept_out and any(flow.host_s + flow.layer_s + flow.jitter_s > 0.0 for flow in network.flows):
        captures = [*captures, AT_TIMES]  # visits may end while hosts are busy
    network = _without(network, kept_out)
    backlog = point.links.links.endless
    if any(
        flow.load and (flow.short or (flow.shared_in_backlog and full))
        for flow, full in zip(network.flows, backlog, strict=True)
    ):
        network, point = _in_rounds(scenario, network, point, kept_out)
    if tagged.is_asked(network, overflows=True) and buffers.doubts(network, point):
        metrics, notes = _sampled(scenario, network, sampling)
        return metrics, {**notes, "point": first}
    laws = point.links
    if (
        laws.refuses_rows()
        or (laws.brings.refused(laws.links, point.rate * point.sent) >= bridge_buffers.RARE).any()
    ):
        point = operating_point(network, point, refuses=True)
    network = point.links.network  # with the losses that depend on waits
    overflow = buffers.saws(network, point)
    point.counted |= {f: law.known for f, law in overflow.items()}
    found = _of_flows(network, point, overflow, kept_out)
    tcp = np.array([flow.protocol == "tcp" for flow in network.flows])
    metrics = {
        **_of_transport(network, found, tcp),
        **of_the_air(network, point),
        **(anchors.metrics(network, found.rate) if network.anchored else {}),
        **_of_queues(network, point),
        **_of_sessions(point, len(tcp)),
        **_of_messages(network, point, overflow),
    }
    times = {name: metrics[name] for name in ("rtt_s", "delay_s") if name in metrics}
    known = tcp | np.isfinite(metrics.get("delay_s", np.full(len(tcp), np.nan)))
    later = {
        "limits": partial(
            _converged,
            limits.bounds,
            scenario,
            network,
            point,
            metrics["goodput_kbps"],
            found.timeouts,
            overflow,
        ),
        "warnings": partial(_converged, _doubts, network, point, found.rtt_s, known, captures),
    }
    return Computed(metrics, quantiles.quantiles(network, point, times)), Computed(
        {
            "method": "fixed point of the rates at all stations",
            "converged": point.converged,
            "residual": point.residual,
            "point": first,
        },
        later,
    )


def _doubts(network: Network, point: Point, rtt: Vector, known: Any, captures: list[str]) -> list[str]:
    return [
        *captures,
        *([NO_ROOM] if _may_pass(network, point) else []),
        *doubts(network, point, rtt, known),
        *anchors.doubts(network, point),
    ]


class Found(NamedTuple):
    """The transport of a flow, or of all flows in arrays of shape (flows,).

    Attributes:
        rate: segments delivered a second.
        offered: segments sent a second.
        rtt_s: round trip (s).
        timeouts, fast_retransmits: a second.
        losses: share of the segments that are lost.
    """

    rate: Any
    offered: Any
    rtt_s: Any
    timeouts: Any
    fast_retransmits: Any
    losses: Any


def _may_pass(network: Network, point: Point) -> bool:
    """Return whether bridges may at times have room for a segment of a flow that gets nothing through."""
    laws = point.links
    return bool(laws.lost.any()) and any(
        flow.load > 0.0
        and point.rate[f] == 0.0
        and not laws.brings.shut & {visit.index for visit in flow.forth if visit.kind == "port"}
        for f, flow in enumerate(network.flows)
    )


def _of_flows(
    network: Network, point: Point, overflow: dict[int, transport.Law], kept_out: set[int]
) -> Found:
    """Return the transport of all flows, in arrays; `overflow`: see `buffers.saws`."""
    flows = network.flows
    each = [
        # the first segment waits for ever, and its timer has doubled to its end
        Found(point.rate[f], point.rate[f], np.nan, 1.0 / flow.transport.max_rto_s, 0.0, np.nan)
        if f in kept_out
        else _of_flow(network, point, f, overflow.get(f))
        for f, flow in enumerate(flows)
    ]
    found = Found(*map(np.array, zip(*each, strict=True)))
    for f, session in point.sessions.items():
        pair = sessions.pair_of(flows, f)
        found.rate[pair] = [flows[one].segments / session.cycle_s for one in pair]
        found.offered[pair] = found.rate[pair] / (1.0 - found.losses[pair])
        found.rtt_s[pair] = session.rtt_s
        found.timeouts[pair] = np.array(session.timeouts) / session.cycle_s
        found.fast_retransmits[pair] = np.array(session.fast_retransmits) / session.cycle_s
    return found


def _of_flow(network: Network, point: Point, f: int, overflow: transport.Law | None) -> Found:
    """Return the transport of a flow.

    Args:
        network: the stations.
        point: the operating point.
        f: number of the flow.
        overflow: law of a window that overflows a full buffer.
    """
    flow, law = network.flows[f], point.found.get(f)
    rate, rest = point.rate[f], point.links.rests[f]
    lone, waits = point.base[f] + point.stray[f], point.waits[f]
    timeouts = fast = 0.0
    loss = flow.loss
    if rate < 0.999 * flow.load:
        rtt = lone + waits
        if waits > 0.0 and rest.shown < inf:
            rtt += (rest.shown - rest.window) / rate
        full = (point.service[f] > 0.0) & (point.wait > 0.0)
        # losses keep the window of a flow that fills its stations alone below the receive window
        alone = full.any() and (point.service[:, full] > 0.0).sum() == full.sum()
        if law is not None and (waits == 0.0 or alone):
            timeouts, fast, rtt, loss = law.timeouts, law.fast_retransmits, law.rtt_s, law.losses
    else:
        rtt = lone + point.own[f](rest.window, lone) + waits
        if law is not None:
            timeouts, fast, rtt, loss = transport.open_losses(flow, law, rate, float(rtt), rest.window)
        if rate > 0.0 and rtt > flow.window / rate:  # Little: no more than a window is under way
            rtt = flow.window / rate
    # a connection has one timer, which is hardly shorter than its round trip
    timeouts = min(timeouts + point.expiries[f], 1.0 / max(flow.transport.min_rto_s, float(rtt)))
    if overflow is not None:
        rate, timeouts, fast = min(rate, overflow.goodput), overflow.timeouts, overflow.fast_retransmits
        loss, rtt = overflow.losses, overflow.rtt_s
    if flow.protocol == "none" and flow.load < inf:
        rate, loss = _of_datagrams(network, point, f)
    # a source of datagrams sends them all, and datagrams that a full queue refuses are lost
    refused = loss > flow.loss and flow.protocol != "tcp" and flow.load < inf
    offered = flow.load if refused else rate / (1.0 - loss if loss < 1.0 else 1.0)
    return Found(rate, offered, rtt, timeouts, fast, loss)


def _of_datagrams(network: Network, point: Point, f: int) -> tuple[float, float]:
    """Return the rate of the datagrams of a flow that arrive (1/s), and the share that is lost.

    The queue of datagrams before a full station without a limit grows, and none of them is lost.
    """
    flow, used = network.flows[f], point.rate @ point.service
    fits = buffers.whole(network, point)[f]
    carried = min(point.rate[f], flow.load * fits)
    crowded = [visit for visit in flow.forth if used[point.links.number[visit.kind, visit.index]] > CROWDED]
    waits_for_ever = all(visit.places == inf for visit in crowded) and fits == 1.0
    loss = flow.loss if waits_for_ever else 1.0 - (1.0 - flow.loss) * carried / flow.load
    return carried * (1.0 - flow.loss), loss


def _of_transport(network: Network, found: Found, tcp: NDArray[np.bool_]) -> dict[str, Any]:
    """Return the metrics of transport, without repetitions where no law counts them."""
    kilobits = np.array([flow.kilobits for flow in network.flows])
    metrics: dict[str, Any] = {
        "goodput_kbps": found.rate * kilobits,
        "throughput_kbps": found.offered * kilobits,
        "segment_loss": found.losses,
        "rtt_s": np.where(tcp & (found.rtt_s > 0.0), found.rtt_s, np.nan),
    }
    if not np.isfinite(metrics["rtt_s"]).any():
        del metrics["rtt_s"]
    timers = {
        "timeouts_per_s": found.timeouts * tcp,
        "fast_retransmits_per_s": found.fast_retransmits * tcp,
    }
    return metrics | {name: one for name, one in timers.items() if tcp.any() and np.isfinite(one).all()}


def _of_queues(network: Network, point: Point) -> dict[str, Any]:
    """Return the losses at full uplink queues, and the packets in the queues, where they are known."""
    full, queues = buffers.refused(network, point), buffers.waiting(network, point)
    found: dict[str, Any] = {"loss_baseband_buffer": full} if np.isfinite(full).any() else {}
    return found | ({"queue_packets": queues} if queues else {})


def _of_sessions(point: Point, count: int) -> dict[str, Any]:
    """Return the metrics of sessions, of `count` flows."""
    if not point.sessions:
        return {}
    values = np.full((4, count), np.nan)
    for f, found in point.sessions.items():
        values[:, f] = 1.0 / found.cycle_s, found.session_s, 0.0, found.connect_s
    names = ("sessions_per_s", "session_time_s", "sessions_lost")
    connects = {"connect_time_s": values[3]} if np.nansum(values[3]) else {}
    return dict(zip(names, values[:3], strict=True)) | connects


def _of_messages(network: Network, point: Point, overflow: dict[int, transport.Law]) -> dict[str, Any]:
    delay = delays(network, point, overflow)
    return {"delay_s": delay} if np.isfinite(delay).any() else {}


def _sampled(scenario: Scenario, network: Network, sampling: bool) -> Answer:
    """Return the answer of a sampled connection."""
    metrics, notes = tagged.tagged(scenario, network, sampling=sampling)
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
            stations = {laws.number[visit.kind, visit.index] for visit in flow.forth}
            behind = sum(point.wait[r] for r in stations)  # windows of other flows that fill a station
            found[f] = point.there[f] + laws.waits[f] + own + behind + flow.at_sender_s
    return found


def _without(network: Network, kept_out: set[int]) -> Network:
    """Return the network in which these flows send nothing."""
    if not kept_out:
        return network
    flows = [replace(flow, load=0.0) if f in kept_out else flow for f, flow in enumerate(network.flows)]
    return replace(network, flows=tuple(flows))


def _in_rounds(
    scenario: Scenario, network: Network, point: Point, kept_out: set[int]
) -> tuple[Network, Point]:
    """Return network and point where messages share segments (Nagle's algorithm, or a backlog).

    The sizes of segments follow from the round trips, and these from the segments.
    """
    before, paths, settled = np.zeros(len(network.flows)), np.zeros((len(network.flows), 2)), False
    like, full = point.links.like.tolist(), point.links.links.endless
    filled = {f: _full(flow) for f, flow in enumerate(network.flows) if full[f] and flow.shared_in_backlog}
    for turn in range(TURNS):
        here = np.zeros_like(paths)
        shared = [f for f in sorted(set(like)) if network.flows[f].short and f not in kept_out]
        for f in shared:
            here[f] = _path_of(network.flows[f], f, point, uncut=turn == 0)
        paths = paths + (1.0 if turn == 0 else DAMPED) * (here - paths)
        full = point.links.links.endless
        found = filled | {
            f: _cut(network.flows[f], *paths[f].tolist(), backlog=bool(full[f])) for f in shared
        }
        cuts = tuple(found.get(f) for f in like)
        bits = np.array([cut.bytes if cut else 0.0 for cut in cuts])
        settled = bool((np.abs(bits - before) <= 0.01 * bits).all())
        settled &= bool((np.abs(here - paths) <= NEAR * here).all())
        if settled:
            break
        before = bits
        network = _without(network_of(scenario, cuts), kept_out)
        point = operating_point(network, point)
    point.between |= not settled
    return network, point


def _path_of(flow: Flow, f: int, point: Point, *, uncut: bool) -> tuple[float, float]:
    """Return the round trip of a full segment of a flow, and its service at its slowest station (s).

    `uncut`: each message was one segment. These may overload a station that shared segments do not, so that
    their waits are left out: with them all segments would seem full, and remain full.
    """
    laws, (least, most), full = point.links, flow.span_s, flow.transport.mss_bytes
    beyond = (full - flow.kilobits * 125.0) * (most - least) / (full - flow.traffic.message_bytes % full)
    each_s = max(laws.queues[f].service_s, laws.polled.following_s(f))
    if not each_s or any(visit.kind == "bucket" for visit in flow.forth):  # which has tokens for several
        each_s = laws.polled.following_s(f) or float(
            point.service[f, : len(laws.names) - len(laws.network.buckets)].max()
        )
    waits_s = 0.0 if uncut else float(point.stray[f] + point.waits[f])
    lone_s = float(point.base[f]) + waits_s - laws.answers[f].wait_s + flow.released * flow.soon_s
    lone_s = max(lone_s, most - beyond)
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
    every = flow.transport.ack_every_segments if flow.delays_received else 1
    path = nagle.Path(
        full_s=times[0],
        byte_s=times[1],
        each_s=times[2],
        part=times[3],
        window=flow.window,
        every=every,
        delay_s=acknowledgements.by_clock_s(flow),
        soon_s=float(f"{flow.soon_s:.6e}"),
    )
    # acknowledgements of all segments that wait at an anchor point come in one event
    at_once = path.soon_s > 0.0 and every == 1 < path.window
    if nagle.waits_for_all(flow.transport) and not at_once:
        return nagle.cut(source, full, path)
    return _full(flow) if backlog else nagle.between_short(source, full, path)


def _full(flow: Flow) -> Cut:
    """Return the segments of a flow whose data wait for room in its window: all are full."""
    full = flow.transport.mss_bytes
    return Cut(((float(full), flow.traffic.message_bytes / full),), 0.0, 0.0, 0.0, 1.0, 0.0, 0.0)


def captured(network: Network) -> tuple[set[int], list[str]]:
    """Return the flows that exhaustive visits to another link keep out for ever, and doubts about them.

    A visit lasts as long as there are segments. A connection between the central and a member always has some
    if its window holds one more than an acknowledgement is for, unless one is lost or waits for tokens. So
    the first link with a connection of this kind keeps the central, and no flow gets through that needs
    another link of the piconet.
    """
    holders: dict[int, list[int]] = {}  # links of these connections, by piconets
    others: dict[int, list[int]] = {}  # of connections that pass wires or buckets, too
    loose = set()
    for flow in network.flows:
        visits = [visit for visit in flow.forth if visit.kind == "port"]
        every = flow.transport.ack_every_segments if flow.delays_received else 1
        if len(visits) != 1 or flow.window < 1.0 + every or flow.load < inf:
            continue
        port = network.ports[visits[0].index]
        if network.piconets[port.piconet].discipline != "exhaustive":
            continue
        direct = len(flow.forth) == 1
        if flow.loss > 0.0 or flow.window > visits[0].places or not direct:
            loose.add(port.piconet)
        (holders if direct else others).setdefault(port.piconet, []).append(port.link)
    found, why = set(), []
    for f, flow in enumerate(network.flows):
        for visit in flow.forth:
            if visit.kind != "port":
                continue
            port = network.ports[visit.index]
            links = holders.get(port.piconet, [])
            if port.link == (links or others.get(port.piconet) or [port.link])[0]:
                continue
            greedy = port.link in links and flow.load == inf and len(flow.forth) == 1
            if links and (port.piconet not in loose or greedy):
                found.add(f)
            why.append(AT_TIMES if f not in found else KEPT_OUT if len(set(links)) > 1 else "")
    return found, [one for one in dict.fromkeys(why) if one]
