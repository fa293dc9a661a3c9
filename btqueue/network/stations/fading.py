r"""A radio that fades, with repetition on the link: the effect of its states on waits, service and timers.

Capacities need the mean speed only (`network.train_of`). Waits need more: while a worse state lets less than
the load through, a backlog grows, and it is cleared only some time after. Segments are taken as a fluid. They
come at a rate x, leave at r_0 in the better state and r_1 in the worse one, and states change at rates a and
b. With the growth g = x - r_1, the decline d = r_0 - x and the share p of the worse state, the backlog V has

    P(V > v) = p (1 + g / d) exp(-v (b / g - a / d)),

and it is cleared at the rate x on average. A window bounds the backlog. Nothing waits where x < r_1.

Source: D. Anick, D. Mitra and M. M. Sondhi, Bell System Technical Journal 61 (1982).
"""

from __future__ import annotations

from math import exp, inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc

from btqueue.baseband import SLOT_S
from btqueue.network.stations.network import Flow, Network, Train, Visit

Vector = NDArray[np.float64]

EXPIRIES = 7
"""Expiries of one timer that are counted: the last one comes after 127 timeouts."""
REPEATED, BUSY = 1.25, 0.45
"""Frames for a packet, and utilisation of the air, above which the waits of segments that are not full are
too short: of 13 random stars of four to seven links 3 were wrong, and of 62 with full segments 1."""
OFTEN = 0.01
"""Timeouts a second from which on they make a difference."""
ENDLESS = 1e9
"""Segments that stand for no window."""


class Faded(NamedTuple):
    """The time that fading adds to a round trip at a port (s), and timeouts a second of the flow."""

    wait_s: float
    timeouts: float


def doubts(network: Network, point: Any, timed: NDArray[np.bool_]) -> list[str]:
    """Return the doubts about radios at a point, with errors against the simulator.

    `timed` tells whether round trips or delays of a flow are answered, (flows,).
    """
    found, flows = [], network.flows
    stops = [(f, visit) for f, flow in enumerate(flows) for visit in flow.forth if visit.kind == "port"]
    faded = [f for f, visit in stops if timed[f] and visit.train.worse > 0.0 and visit.train.spread > 0.0]
    crowded = any(piconet.members > 1 for piconet in network.piconets)
    # data both ways, or over several links in a row
    paired = any(flows[f].reverse is not None or faded.count(f) > 1 for f in faded)
    if any(flows[f].load < inf or (crowded and paired) for f in faded):
        found.append(
            "The radio fades, and packets are repeated, with sources that have nothing to send at times, or "
            "data in both directions over several links: round trips were 19 % too short to 26 % too long"
        )
    endless = point.links.links.endless
    if any(visit.flush_s < inf for _, visit in stops):
        found.append(
            "Packets may become too old, and theory leaves flush timeouts out: goodput was many times too "
            "high where hardly any segment arrives in time, and round trips were up to twice as long"
        )
    # timers that expire seldom, and sources that write meanwhile
    rough = [f for f, visit in stops if not endless[f] or visit.train.stay_s < flows[f].transport.min_rto_s]
    if any(point.expiries[f] > OFTEN for f in rough):
        found.append(
            "Timers expire in the worse states of a radio: round trips of random sources were up to 30 % too "
            "short; where these states are shorter than timers, timeouts were up to three times as many"
        )
    long = any(
        timed[f] and flows[f].short and visit.train.frames > REPEATED * visit.train.packets
        for f, visit in stops
    )
    several = any(piconet.members >= 4 for piconet in network.piconets)
    if long and several and point.links.links.load.sum() > BUSY:
        found.append(
            "short segments are repeated in a busy piconet of four peripherals or more: theory's round trips "
            "were up to 13 % too short"
        )
    return found


def faded(
    flow: Flow, visit: Visit, arrivals: float, rate: float, each_s: float, base_s: float, allowed: float, *,
    waits: bool,
) -> Faded:  # fmt: skip
    """Return the effect of the states of the radio at a port on a flow that passes there.

    Args:
        flow: the flow.
        visit: its stop at the port.
        arrivals: segments that come to the server a second.
        rate: segments a second of the flow.
        each_s: service of a segment at the mean speed.
        base_s: time of a lone segment at the mean speed.
        allowed: segments that windows let be under way at the server.
        waits: whether the wait is needed.
    """
    train = visit.train
    mean = train.air + train.frames
    states = np.array([train.fast, train.slow])
    moves = np.array([train.worse / (1.0 - train.worse), 1.0]) / train.stay_s
    allowed = min(allowed, ENDLESS)
    each, crossing = each_s * states / mean, np.maximum(base_s + (states - mean) * SLOT_S, 1e-9)
    timeouts = _timeouts(flow, train, each[1], moves, rate, crossing[0])
    speeds = 1.0 / np.maximum(each, crossing / allowed)
    grows, declines = arrivals - float(speeds[1]), float(speeds[0]) - arrivals
    if not waits or grows <= 0.0 or declines <= 0.0:
        return Faded(0.0, timeouts)
    decay = max(float(moves[1]) / grows - float(moves[0]) / declines, 1.0 / ENDLESS)
    backlog = train.worse * (1.0 + grows / declines) / decay * -float(np.expm1(-decay * allowed))
    return Faded(backlog / arrivals, timeouts)


def _timeouts(
    flow: Flow, train: Train, spacing_s: float, moves: Vector, rate: float, crossing_s: float
) -> float:
    """Return the timeouts a second in worse states.

    If no acknowledgement comes for a timeout, the sender stops. The time between acknowledgements is a sum of
    exponential times, one for each packet of a segment.
    """
    if flow.protocol != "tcp" or flow.window == inf:
        return 0.0
    transport: Any = flow.transport
    rto, packets, leaves = max(transport.min_rto_s, crossing_s), train.packets, float(moves[1])
    none_yet = float(gammaincc(packets, packets * rto / spacing_s))
    busy = min(rate * crossing_s, 1.0)
    busy += (1.0 - busy) * rate / (rate + leaves)  # or a segment arrives before the state ends
    again = sum(exp(-leaves * rto * (2.0**k - 2.0)) for k in range(1, EXPIRIES + 1))
    late = exp(-leaves * max(rto - crossing_s, 0.0))
    return busy * late * none_yet * again * train.worse * leaves
