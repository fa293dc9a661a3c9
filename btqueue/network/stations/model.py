"""The answer of the one theory: metrics of the operating point, and the doubts of its laws."""

from __future__ import annotations

from math import exp, inf
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import pdtr

from btqueue.network.stations import sessions, transport
from btqueue.network.stations.network import Flow, Network, network_of
from btqueue.network.stations.point import Point, operating_point
from btqueue.scenario import Scenario

Vector = NDArray[np.float64]

OPENING = 6
"""Segments acknowledged from a window of two, after a loss, to one of four, which finds three duplicates."""


def answer(scenario: Scenario) -> tuple[dict, dict]:
    """Return metrics and notes, as `btqueue.network.answers` describes them."""
    network = network_of(scenario)
    point = operating_point(network)
    if any(flow.short for flow in network.flows):
        network, point = _in_rounds(scenario, network, point)
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
    for f, found in point.sessions.items():
        pair = sessions.pair_of(flows, f)
        rate[pair] = [flows[one].segments / found.cycle_s for one in pair]
        rtt[pair] = found.rtt_s
        timeouts[pair] = np.array(found.timeouts) / found.cycle_s
        fast[pair] = np.array(found.fast_retransmits) / found.cycle_s
    doubts.extend(sessions.doubts(network, point.sessions))
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
