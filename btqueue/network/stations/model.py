"""The answer of the one theory: metrics of the operating point, and the doubts of its laws."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, exp, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, pdtrc

from btqueue.baseband import SLOT_S
from btqueue.network.answers import NoConvergence
from btqueue.network.stations import sessions, transport
from btqueue.network.stations.air import never_meet
from btqueue.network.stations.doubts import doubts
from btqueue.network.stations.network import Network, Visit, network_of
from btqueue.network.stations.point import CROWDED, Point, operating_point
from btqueue.scenario import Scenario

Vector = NDArray[np.float64]

KEPT_OUT = (
    '[polling] discipline = "exhaustive": a visit lasts as long as there are segments, so of several links '
    "that "
    "always have some one keeps the central to itself; which one is known in the run only, here the first"
)
LOSS_PASSES = 12
"""Most turns between the losses at the buffers of bridges and the rates."""


def answer(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes, as `btqueue.network.answers` describes them.

    Raises:
        NoConvergence: the rates do not settle, or rates or times leave the numbers that a computer holds:
            hardly anything gets through.
    """
    try:
        with np.errstate(all="ignore"):  # infinite times are those of rates that are zero
            metrics, notes = _answer(scenario)
    except ArithmeticError as error:
        raise NoConvergence(f"hardly anything gets through: {error}") from error
    if not np.isfinite(metrics["goodput_kbps"]).all():
        raise NoConvergence("rates at the stations were not found: hardly anything gets through")
    if not notes["converged"]:
        raise NoConvergence(f"the rates did not settle: they still change by {notes['residual']:.1%}")
    return metrics, notes


def _answer(scenario: Scenario) -> tuple[dict, dict]:
    network = network_of(scenario)
    point = operating_point(network)
    kept_out = captured(network, point)
    if kept_out:
        flows = [replace(flow, load=0.0) if f in kept_out else flow for f, flow in enumerate(network.flows)]
        network = replace(network, flows=tuple(flows))
        point = operating_point(network)
    if any(flow.short for flow in network.flows):
        network, point = _in_rounds(scenario, network, point)
    network, point = _with_bridge_losses(network, point)
    network = point.links.network  # with the losses that depend on waits
    flows = network.flows
    count = len(flows)
    rate, load = point.rate.copy(), np.array([flow.load for flow in flows])
    waits = (point.service > 0.0) @ point.wait
    rtt = np.zeros(count)
    timeouts, fast, loss = np.zeros(count), np.zeros(count), np.zeros(count)
    overflow = overflows(network, point)
    for f, flow in enumerate(flows):
        law = point.found.get(f)
        loss[f] = flow.loss
        if f in kept_out:  # the first segment waits for ever, and its timer has doubled to its end
            timeouts[f], rtt[f], loss[f] = 1.0 / flow.transport.max_rto_s, np.nan, np.nan
            continue
        lone = point.base[f] + point.stray[f]
        if rate[f] < 0.999 * load[f]:
            rtt[f] = lone + waits[f]
            if law is not None and waits[f] == 0.0:
                timeouts[f], fast[f], rtt[f] = law.timeouts, law.fast_retransmits, law.rtt_s
                loss[f] = law.losses
        else:
            most = transport.resting_window(flow, rate[f], lone)
            own = transport.held_back(most, rate[f], lone, point.own_stray[f])
            rtt[f] = lone + own + waits[f]
            if law is not None:
                found = transport.open_losses(flow, law, rate[f], float(rtt[f]), most)
                timeouts[f], fast[f], rtt[f], loss[f] = found
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
            carried = min(rate[f], load[f])
            loss[f] = 1.0 - (1.0 - flow.loss) * carried / load[f]
            rate[f] = carried * (1.0 - flow.loss)
    for f, found in point.sessions.items():
        pair = sessions.pair_of(flows, f)
        rate[pair] = [flows[one].segments / found.cycle_s for one in pair]
        rtt[pair] = found.rtt_s
        timeouts[pair] = np.array(found.timeouts) / found.cycle_s
        fast[pair] = np.array(found.fast_retransmits) / found.cycle_s
    kilobits = np.array([flow.kilobits for flow in flows])
    metrics: dict[str, Any] = {
        "goodput_kbps": rate * kilobits,
        "throughput_kbps": rate * kilobits / np.maximum(1.0 - loss, 1e-9),
        "segment_loss": loss,
        "rtt_s": rtt,
        "timeouts_per_s": timeouts,
        "fast_retransmits_per_s": fast,
    }
    if point.sessions:
        values = np.full((4, count), np.nan)
        for f, found in point.sessions.items():
            values[:, f] = 1.0 / found.cycle_s, found.session_s, 0.0, found.connect_s
        metrics |= zip(("sessions_per_s", "session_time_s", "sessions_lost"), values[:3], strict=True)
        if np.nansum(values[3]):
            metrics["connect_time_s"] = values[3]
    tcp = np.array([flow.protocol == "tcp" for flow in flows])
    metrics["rtt_s"] = np.where(tcp & (rtt > 0.0), rtt, np.nan)
    metrics["timeouts_per_s"], metrics["fast_retransmits_per_s"] = timeouts * tcp, fast * tcp
    if not np.isfinite(metrics["rtt_s"]).any():
        del metrics["rtt_s"]
    for name in ("timeouts_per_s", "fast_retransmits_per_s"):  # a law without timers does not know them
        if not tcp.any() or not np.isfinite(metrics[name]).all():
            del metrics[name]
    return metrics, {
        "method": "fixed point of the rates at all stations",
        "converged": point.converged,
        "residual": point.residual,
        "warnings": [*([KEPT_OUT] if kept_out else []), *doubts(network, point, rtt)],
    }


def _in_rounds(scenario: Scenario, network: Network, point: Point) -> tuple[Network, Point]:
    """Return network and point where short messages share segments (Nagle's algorithm).

    With Poisson messages at rate a and round trips R, a round takes a R + exp(-a R) of them on average.
    """
    together = [1.0] * len(network.flows)
    for _ in range(6):
        before = together
        together = []
        for f, flow in enumerate(network.flows):
            messages = (
                flow.load * before[f] * float(point.base[f] + point.stray[f] + point.own_stray[f])
                if flow.short
                else 0.0
            )
            most = flow.transport.mss_bytes / flow.traffic.message_bytes if flow.short else 1.0
            round_ = max(messages, 1.0) if flow.source == "periodic" else messages + exp(-messages)
            together.append(min(round_, most) if flow.short else 1.0)
        if all(abs(a - b) <= 0.01 * b for a, b in zip(together, before, strict=True)):
            break
        network = network_of(scenario, tuple(together))
        point = operating_point(network)
    return network, point


def captured(network: Network, point: Point) -> set[int]:
    """Return the flows that exhaustive visits to another link keep out for ever.

    A visit lasts as long as there are segments. A connection of several segments between the central and a
    member always has some, so of several such links the first one keeps the central.
    """
    links, found, holders = point.links.links, set(), {}
    for f, flow in enumerate(network.flows):
        ports = [network.ports[visit.index] for visit in flow.forth if visit.kind == "port"]
        alone = len(ports) == len(flow.forth) == 1 and flow.window >= 2.0 and flow.load == inf
        if not alone or network.piconets[ports[0].piconet].discipline != "exhaustive":
            continue
        holder = holders.setdefault(ports[0].piconet, ports[0].link)
        if holder != ports[0].link and links.full_link[links.port_link[flow.forth[0].index]]:
            found.add(f)
    return found


def _with_bridge_losses(network: Network, point: Point) -> tuple[Network, Point]:
    """Return network and point with the segments that find the buffer of a bridge full on their way."""
    plain, losses = network, np.zeros(len(network.ports))
    for _ in range(LOSS_PASSES):
        new = bridge_losses(plain, point)
        change = float(np.abs(new - losses).max(initial=0.0))
        if change < 1e-3:
            break
        losses = losses + 0.5 * (new - losses) if losses.any() else new
        flows = []
        for flow in plain.flows:
            forth = [
                visit._replace(loss=1.0 - (1.0 - visit.loss) * (1.0 - losses[visit.index]))
                if visit.kind == "port"
                else visit
                for visit in flow.forth
            ]
            flows.append(replace(flow, forth=tuple(forth)))
        network = replace(plain, flows=tuple(flows))
        point = operating_point(network)
    return network, point


def bridge_losses(network: Network, point: Point) -> Vector:
    """Return the chance of a segment to lose a packet at each port, shape (ports,): at those of bridges.

    A bridge brings from a visit what fits into its buffer for the other piconet; what it has brought leaves
    at the next one. Groups of g packets come to it as a Poisson process, and c of them fit: of a mean of m in
    a round E(N - c)^+ / m are lost.
    """
    links, found = point.links.links, np.zeros(len(network.ports))
    for n, port in enumerate(network.ports):
        found[n] = float(never_meet(network, port))
        if not port.up or port.bridge < 0 or port.places == inf or found[n] == 1.0:
            continue
        bridge, link = network.bridges[port.bridge], links.port_link[n]
        windows = bridge.schedule != "walk-in"
        round_s = SLOT_S * float(links.rounds.round[link])
        if windows:
            round_s = bridge.window_s * len(bridge.piconets)
        sources, packets, group, parts, left = {}, 0.0, 0.0, 1.0, 0.0
        for f, flow in enumerate(network.flows):
            ports = [visit for visit in flow.forth if visit.kind == "port"]
            for place, visit in enumerate(ports):
                if visit.index != n:
                    continue
                before = ports[place - 1].index if place else -1
                limit = float(network.ports[before].limit) if place and not windows else inf
                if network.relay == "segment" and limit < inf:  # whole segments come at once
                    limit = ceil(limit / visit.train.packets) * visit.train.packets
                sources[before] = limit
                size = visit.train.packets
                if network.relay == "packet":
                    size = min(size, *(float(network.ports[one.index].limit) for one in ports[:place]), size)
                carried = point.rate[f] * point.sent[f] * visit.train.packets
                packets += carried * round_s
                group = max(group, size)
                error = 1.0 - visit.train.packets / visit.train.frames
                left = (
                    max(left, 1.0 - float(bdtrc(size - 1.0, port.limit, 1.0 - error)))
                    if error > 1e-9
                    else left
                )
                parts = max(parts, ceil(visit.train.packets / size))
        if not sources:
            continue
        fit = port.places // group
        mean = max(packets / group, 1e-9)
        if sum(sources.values()) <= port.places:
            # it is full only where errors leave packets behind, which were to go with the visit before
            found[n] = float(pdtrc(fit - 1.0, mean * left)) if left > 0.0 else 0.0
            continue
        # E(N - c)^+ of a Poisson number N
        over = mean * float(pdtrc(fit - 1.0, mean)) - fit * float(pdtrc(fit, mean)) if fit > 0.0 else mean
        found[n] = 1.0 - (1.0 - min(over / mean, 1.0)) ** parts
    return found


def overflows(network: Network, point: Point) -> dict[int, transport.Law]:
    """Return the law of each connection whose window overflows a buffer, by its number.

    Of a buffer each connection has the share of the segments that it sends; path and buffer hold so many of
    its segments, and one more is lost (`btqueue.transport.window_cycles`).
    """
    found = {}
    used = point.rate @ point.service
    waits = (point.service > 0.0) @ point.wait
    for f, flow in enumerate(network.flows):
        full = [visit for visit in flow.forth if used[point.links.number[visit.kind, visit.index]] > CROWDED]
        places = min((visit.places for visit in full), default=inf)
        # where several resources are equally full, what waits may do so before any of them
        if flow.protocol != "tcp" or point.rate[f] * waits[f] <= places:
            continue
        lone = float(point.base[f] + point.stray[f])
        shares = [_share(network, point, f, visit) for visit in full]
        room = (
            min(visit.places * share for visit, share in zip(full, shares, strict=True))
            + point.rate[f] * lone
        )
        found[f] = transport.chain_of(flow, lone, 1.0 / point.rate[f], room)
    return found


def _share(network: Network, point: Point, f: int, visit: Visit) -> float:
    """Return the share of a flow in the segments that come to the queue of a visit."""
    users = [
        g for g, flow in enumerate(network.flows)
        if any((one.kind, one.index) == (visit.kind, visit.index) for one in flow.forth)
    ]  # fmt: skip
    return float(point.rate[f] / point.rate[users].sum())
