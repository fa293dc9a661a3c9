"""Laws of transport: what windows, timers and losses make of a path."""

from __future__ import annotations

from math import exp, inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.network.paths.loss import LossyRates, lossy_rates
from btqueue.network.paths.recovery import LossyPath
from btqueue.network.stations.network import Flow, Network

Vector = NDArray[np.float64]

LARGEST_CHAIN = 256
"""Segments of a window whose losses are solved; beyond, losses hold it back before it opens so far."""
KNOWN = {"cubic": "newreno", "vegas": "newreno"}
"""Variants without a law of losses of their own, and whose they take."""
GRID = 0.03
"""Change of a path, in logarithms, up to which a solved chain is used again on the way to the fixed point."""


class Law(NamedTuple):
    """What losses make of a connection: segments a second, transmissions of each, events a second, window."""

    goodput: float
    transmissions: float
    timeouts: float
    fast_retransmits: float
    losses: float
    window: float
    rtt_s: float


def window_of(network: Network, flow: Flow) -> float:
    """Return the segments that may be under way; of datagrams those that find place in a queue."""
    if flow.messages:
        longest = max(sum(piece.count for piece in message) for message in flow.messages)
        return min(flow.window, float(longest))
    if flow.window < inf:
        return flow.window
    places = min((visit.places for visit in flow.forth), default=inf)
    return min(places + 1.0, 1e9)


def ack_wait(flow: Flow, rate: float, *, carried: bool) -> float:
    """Return the mean wait of a segment for the acknowledgement that a receiver delays (s)."""
    transport = flow.transport
    if flow.protocol != "tcp" or not transport.delayed_ack:
        return 0.0
    every, delay = transport.ack_every_segments, transport.ack_delay_s
    if transport.ack_clock != "timer":
        delay = delay / 2.0
    if every <= 1 or delay == 0.0:
        return 0.0
    if flow.window < every:
        return delay
    if flow.load == inf or not carried:
        return 0.0
    if flow.short:  # a short segment waits for the acknowledgement of the one before (Nagle)
        return delay
    alone = (flow.batch % every) / max(flow.batch, 1.0) if flow.batch >= 1.0 else 1.0
    next_one = rate / max(flow.batch, 1.0)
    # the segment left over waits for the next message or the timer
    wait = (1.0 - exp(-next_one * delay)) / next_one if next_one > 0.0 else delay
    return alone * wait


def gather_s(flow: Flow, service_s: float) -> float:
    """Return how long the first of the segments that share an acknowledgement waits for the last (s)."""
    if flow.protocol != "tcp" or flow.load < inf or not flow.acks or flow.window * flow.acks < 1.0:
        return 0.0
    return (1.0 / flow.acks - 1.0) * service_s if flow.window * flow.acks < 2.0 else 0.0


def held_back(window: float, rate: float, base_s: float, wait_s: float) -> float:
    """Return the part of a wait that is in the network: a window keeps the rest at the sender (s).

    The segments that wait are taken for exponential, and no more than the window are under way.
    """
    if wait_s <= 0.0 or rate <= 0.0 or window == inf:
        return wait_s
    room = max(window - rate * base_s, 0.0)
    return -wait_s * float(np.expm1(-room / (rate * wait_s)))


def resting_window(flow: Flow, rate: float, lone_s: float) -> float:
    """Return the window at which a connection rests without losses (segments).

    That of Vegas is `alpha` segments more than are on the way (Low, Peterson & Wang 2002); the others' opens
    as far as the receiver lets it.
    """
    if flow.protocol != "tcp" or flow.transport.variant != "vegas":
        return flow.window
    return min(flow.window, max(rate * lone_s + flow.transport.alpha + 0.5, 2.0))


def chain_of(flow: Flow, base_s: float, service_s: float, room: float) -> Law:
    """Return the renewal chain of a greedy connection on a path (`btqueue.network.paths.loss`)."""
    transport = flow.transport
    every = 1.0 / flow.acks if flow.acks else 1.0
    loss, ack_loss = flow.loss, flow.ack_loss
    path = LossyPath(
        loss=loss,
        segments_per_ack=every / max(1.0 - ack_loss, 0.05),
        window=int(min(resting_window(flow, 1.0 / service_s, base_s), LARGEST_CHAIN)),
        room=max(room, 2.0),
        base_s=base_s,
        service_s=service_s,
        variant=KNOWN.get(transport.variant, transport.variant),
        min_rto_s=transport.min_rto_s,
        max_rto_s=transport.max_rto_s,
        backoff=transport.rto_backoff,
        ack_delay_s=transport.ack_delay_s if every > 1.0 else 0.0,
        gathered=int(every),
        ack_loss=min(ack_loss, 0.95),
    )
    if min(path.window, path.room) < 2.0 or loss > 0.9:
        return _stop_and_go(flow, base_s)
    found: LossyRates = lossy_rates(path)
    weights = found.weights / found.weights.sum()
    return Law(
        found.goodput,
        1.0 / max(1.0 - found.losses, 1e-9),
        found.timeouts,
        found.fast_retransmits,
        found.losses,
        found.window,
        float(found.rtts @ weights),
    )


def _stop_and_go(flow: Flow, base_s: float) -> Law:
    """Return the law of a window of one segment: each loss is a timeout, whose timer doubles."""
    transport = flow.transport
    lost = 1.0 - (1.0 - flow.loss) * (1.0 - flow.ack_loss)
    if lost >= 1.0 - 1e-9:
        return Law(0.0, 1.0, 1.0 / transport.max_rto_s, 0.0, 1.0, 1.0, np.nan)
    rto, seconds, chance = max(transport.min_rto_s, base_s), base_s, lost
    first = rto
    while chance > 1e-9 and rto < transport.max_rto_s:
        seconds += chance * rto
        chance *= lost
        rto = min(rto * (2.0 if transport.rto_backoff else 1.0), transport.max_rto_s)
        if not transport.rto_backoff and rto == first:
            break
    seconds += chance * rto / (1.0 - lost)
    events = lost / (1.0 - lost)
    return Law(1.0 / seconds, 1.0 + events, events / seconds, 0.0, flow.loss, 1.0, base_s)


def caps(
    network: Network, laws: Any, rate: Vector, sent: Vector, base: Vector, service: NDArray, turn: int
) -> tuple[Vector, Vector, dict[int, Law]]:
    """Return what losses let each flow send at most (1/s), transmissions of a segment, and the laws asked."""
    flows = network.flows
    most, again, found = np.full(len(flows), inf), sent.copy(), {}
    use = rate @ service
    known: dict[tuple, Law] = {}
    endless = np.array([flow.load == inf for flow in flows])
    sharing = (service > 0.0).T.astype(float) @ endless
    for f, flow in enumerate(flows):
        if flow.protocol != "tcp" or flow.source == "request-reply":
            continue
        if flow.loss == 0.0 and flow.ack_loss == 0.0:
            continue
        others = np.clip(use - rate[f] * service[f], 0.0, 0.98)
        stretched = service[f] / np.maximum(1.0 - others, 1.0 / np.maximum(sharing, 1.0))
        slowest = float(stretched.max(initial=1e-6))
        key = (
            flow.forth,
            flow.back,
            round(np.log(base[f]) / 1e-3),
            round(np.log(slowest) / 1e-3),
            flow.window,
        )
        if key not in known:
            known[key] = chain_of(flow, float(base[f]), slowest, inf)
        found[f] = known[key]
        most[f] = found[f].goodput
        again[f] = found[f].transmissions if flow.load == inf else 1.0 / max(1.0 - flow.loss, 0.02)
    return most, again, found
