"""The answer of the one theory: metrics of the operating point, and the doubts of its laws."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, exp, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, pdtr, pdtrc

from btqueue.baseband import SLOT_S
from btqueue.network.stations import transport
from btqueue.network.stations.air import never_meet
from btqueue.network.stations.network import Flow, Network, network_of
from btqueue.network.stations.point import Point, operating_point
from btqueue.scenario import Scenario

Vector = NDArray[np.float64]

LOSS_PASSES = 12
OPENING = 6
"""Segments acknowledged from a window of two, after a loss, to one of four, which finds three duplicates."""


def answer(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes, as `btqueue.network.answers` describes them."""
    network = network_of(scenario)
    point = operating_point(network)
    if any(flow.short for flow in network.flows):
        network, point = _in_rounds(scenario, network, point)
    network, point = _with_bridge_losses(network, point)
    flows = network.flows
    count = len(flows)
    rate, load = point.rate.copy(), np.array([flow.load for flow in flows])
    window = np.array([transport.window_of(network, flow) for flow in flows])
    waits = (point.service > 0.0) @ point.wait
    rtt = np.zeros(count)
    timeouts, fast, loss = np.zeros(count), np.zeros(count), np.zeros(count)
    doubts: list[str] = []
    overflow = overflows(network, point)
    for f, flow in enumerate(flows):
        law = point.found.get(f)
        loss[f] = flow.loss
        lone = point.base[f] + point.stray[f]
        if rate[f] < 0.999 * load[f]:
            rtt[f] = lone + waits[f]
            if law is not None and waits[f] == 0.0:
                timeouts[f], fast[f], rtt[f] = law.timeouts, law.fast_retransmits, law.rtt_s
        else:
            most = transport.resting_window(flow, rate[f], lone)
            own = transport.held_back(most, rate[f], lone, point.own_stray[f])
            rtt[f] = lone + own + waits[f]
            if law is not None:
                timeouts[f], fast[f] = sparse_losses(flow, rate[f], float(rtt[f]), most)
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
    kilobits = np.array([flow.kilobits for flow in flows])
    metrics: dict[str, Any] = {
        "goodput_kbps": rate * kilobits,
        "throughput_kbps": rate * kilobits / np.maximum(1.0 - loss, 1e-9),
        "segment_loss": loss,
        "rtt_s": rtt,
        "timeouts_per_s": timeouts,
        "fast_retransmits_per_s": fast,
    }
    if any(flow.protocol != "tcp" for flow in flows):
        for name in ("rtt_s", "timeouts_per_s", "fast_retransmits_per_s"):
            metrics[name] = np.where([flow.protocol == "tcp" for flow in flows], metrics[name], np.nan)
    return metrics, {
        "method": "fixed point of the rates at all stations",
        "converged": point.converged,
        "residual": point.residual,
        "warnings": doubts,
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
            messages = flow.load * before[f] * float(point.base[f] + point.stray[f]) if flow.short else 0.0
            most = flow.transport.mss_bytes / flow.traffic.message_bytes if flow.short else 1.0
            round_ = max(messages, 1.0) if flow.source == "periodic" else messages + exp(-messages)
            together.append(min(round_, most) if flow.short else 1.0)
        if all(abs(a - b) <= 0.01 * b for a, b in zip(together, before, strict=True)):
            break
        network = network_of(scenario, tuple(together))
        point = operating_point(network)
    return network, point


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
    its segments, and one more is lost (`btqueue.network.paths.loss`).
    """
    found = {}
    for r in np.flatnonzero(point.wait > 0.0):
        kind, index = point.links.names[r]
        users = np.flatnonzero(point.service[:, r] > 0.0)
        queue, places = 0.0, inf
        held = {}
        for f in users:
            for visit in network.flows[f].forth:
                if (visit.kind, visit.index) == (kind, index):
                    held[f] = visit.places
                    places = min(places, visit.places)
                    queue += point.rate[f] * point.wait[r]
        if queue <= places:
            continue
        for f in held:
            flow = network.flows[f]
            if flow.protocol != "tcp" or point.rate[f] <= 0.0:
                continue
            share = point.rate[f] * point.wait[r] / queue * places
            lone = float(point.base[f] + point.stray[f])
            law = transport.chain_of(flow, lone, 1.0 / point.rate[f], share + point.rate[f] * lone)
            if f not in found or law.goodput < found[f].goodput:
                found[f] = law
    return found


def sparse_losses(flow: Flow, rate: float, rtt_s: float, window: float) -> tuple[float, float]:
    """Return timeouts and fast retransmits a second of a connection that sends less than it may.

    Three segments behind the lost one within the timeout make a fast retransmit, if the window holds four.
    """
    rto = max(flow.transport.min_rto_s, rtt_s)
    lost = flow.loss
    behind = 1.0 - float(pdtr(2, rate * rto)) if window >= 4.0 else 0.0
    behind *= (1.0 - lost) ** OPENING  # a window that a loss has cut must open first
    if flow.batch > 1.0:
        behind = max(behind, max(flow.batch - 3.0, 0.0) / flow.batch)
    again = lost * (1.0 - (1.0 - flow.loss) * (1.0 - flow.ack_loss))
    losses = rate * lost / max(1.0 - lost, 1e-9)
    return losses * (1.0 - behind) + rate * again * behind, losses * behind * (1.0 - lost)
