r"""A radio that fades, with repetition on the link: the effect of its states on waits, service and timers.

Capacities need the mean speed only (`network.train_of`). Waits need more: the backlog of a worse state is
cleared only some time after it. The port is a queue whose server has two speeds, Poisson jobs of exponential
work of mean theta at rate x / theta, speeds r_j in state j (0 better, 1 worse), moves at rates a and b. The
transform F_j(s) of the work V in state j obeys

    F(s) K(s) = s l,   K(s) = Q + diag(s r_j - x s / (1 + theta s)),   l_j = r_j P(V = 0, j),

where det K is s times a cubic: its positive root divides the idle time between the states, its negative
ones are the rates of two exponentials. To clear work v takes v / r + c_j (1 - e^(-k v)) from state j, with
r = sum pi_j r_j, k = a / r_0 + b / r_1, c_j = (1 / r_j - 1 / r) / k. A window bounds the work before a job.

Sources: U. Yechiali and P. Naor, Oper. Res. 19 (1971); S. Asmussen and O. Kella, J. Appl. Prob. 37 (2000).
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

APART = 1e-9
"""Least share of the better speed that the worse one has, and least relative difference of both."""
LEAST = 1e-3
"""Least load of a queue: without any, its two decay rates are equal."""
FULL = 0.999
"""Highest load for which a steady state is computed."""
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


class _Queue(NamedTuple):
    """Work in the states: with chance `none` (2,) nothing, or exponentials `some` (2, 2), `rates` (2,)."""

    speeds: Vector
    share: Vector
    none: Vector
    some: NDArray[np.float64]
    rates: Vector
    forgetting: float
    mean_speed: float

    def excess(self) -> Vector:
        """Return c_j."""
        return (1.0 / self.speeds - 1.0 / self.mean_speed) / self.forgetting

    def wait(self, most: float) -> tuple[float, float]:
        """Return the mean wait, and its part by jobs that come in the worse state, with `most` ahead."""
        k, rates = self.forgetting, self.rates
        beyond, forgotten = np.exp(-rates * most), exp(-min(k * most, 700.0))
        linear = self.some @ ((1.0 - beyond) / rates) / self.mean_speed
        within = (1.0 - beyond) - rates / (rates + k) * (1.0 - beyond * forgotten)
        after = beyond * rates / (rates + k) * (1.0 - forgotten)
        waits = linear + self.excess() * (self.some @ (within + after))
        return float(waits.sum()), float(waits[1])

    def worse_at_service(self) -> float:
        """Return the chance of the worse state when the service of a job begins."""
        worse = float(self.share[1] * self.speeds[1] / self.mean_speed)
        known = self.none + self.some @ (self.rates / (self.rates + self.forgetting))
        return float(worse + known[1] - worse * known.sum())


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
    if any((crowded or paired) if flows[f].load < inf else (crowded and paired) for f in faded):
        found.append(
            "The radio fades, with several links or data in both directions, and packets are repeated: round "
            "trips were 19 % too short to 26 % too long"
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
            "Segments that are not full are repeated on four links or more that are busy: round trips were "
            "up to 13 % short"
        )
    return found


def two_speeds(rate: float, speeds: Vector, moves: Vector, size: float) -> _Queue:
    """Return the steady state of work that comes at `rate` in exponential jobs of mean `size`."""
    good = float(speeds[0])
    bad = float(np.clip(speeds[1], APART * good, (1.0 - APART) * good))
    speeds, share = np.array([good, bad]), moves[::-1] / moves.sum()
    mean_speed = float(share @ speeds)
    x = float(np.clip(rate, LEAST * mean_speed, FULL * mean_speed))
    spare = speeds - x
    p, q = moves[0] * bad + moves[1] * good, (mean_speed - x) * moves.sum()
    cubic = np.array(
        [
            good * bad,
            good * spare[1] + bad * spare[0] - size * p,
            spare[0] * spare[1] - size * (p + q),
            -size * q,
        ]
    )
    if not (np.isfinite(cubic).all() and cubic[0] > 0.0):
        raise FloatingPointError("hardly anything gets through in any state of the radio")
    third, second, first, last = cubic.tolist()
    companion = [[-second / third, -first / third, -last / third], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    y = np.sort(np.linalg.eigvals(companion).real)
    top, y = y[2], y[:2]
    idle_bad = (mean_speed - x) * moves[0] / (top / size * (good - x / (1.0 + top)))
    idle = np.array([mean_speed - x - idle_bad, idle_bad])
    s, t = y / size, 1.0 + y
    other = speeds[::-1, None] * s * t - x * s - moves[::-1, None] * t
    tops = t * (idle[:, None] * other - t * (idle * moves)[::-1, None])
    some = -tops / (((3.0 * third * y + 2.0 * second) * y + first) * s)
    return _Queue(
        speeds, share, idle / speeds, some, np.asarray(-s, float), float((moves / speeds).sum()), mean_speed
    )


def faded(flow: Flow, visit: Visit, arrivals: float, rate: float, each_s: float, base_s: float,
          allowed: float, size: float, *, waits: bool) -> Faded:  # fmt: skip
    """Return the effect of the states of the radio at a port on a flow that passes there.

    Args:
        flow: the flow.
        visit: its stop at the port.
        arrivals: segments that come to the server a second.
        rate: segments a second of the flow.
        each_s: service of a segment at the mean speed.
        base_s: time of a lone segment at the mean speed.
        allowed: segments that windows let be under way at the server.
        size: E[S^2] / (2 E[S]^2) of the services of a state.
        waits: whether the wait is needed.
    """
    train = visit.train
    mean = train.air + train.frames
    states = np.array([train.fast, train.slow])
    moves = np.array([train.worse / (1.0 - train.worse), 1.0]) / train.stay_s
    allowed = min(allowed, ENDLESS)
    each, crossing = each_s * states / mean, np.maximum(base_s + (states - mean) * SLOT_S, 1e-9)
    silent, timeouts = _timer(flow, train, each[1], moves, rate, crossing[0])
    if not waits:
        return Faded(0.0, timeouts)
    queue = two_speeds(arrivals, 1.0 / np.maximum(each, crossing / allowed), moves, size)
    wait, in_worse = queue.wait(allowed - 1.0)
    load = min(arrivals / queue.mean_speed, FULL)
    decay = (1.0 - load) / size
    before = load / decay * -float(np.expm1(-decay * (allowed - 1.0))) / queue.mean_speed
    # the way of the segment itself
    worse = queue.worse_at_service()
    alone = queue._replace(speeds=1.0 / crossing, mean_speed=float(queue.share @ (1.0 / crossing)))
    alone = alone._replace(forgetting=float(moves @ crossing))
    longer = float(np.array([1.0 - worse, worse]) @ alone.excess()) * -float(np.expm1(-alone.forgetting))
    missing = silent * (max(in_worse - queue.share[1] * before, 0.0) + longer)
    return Faded(wait - before + longer - missing, timeouts)


def _timer(
    flow: Flow, train: Train, spacing_s: float, moves: Vector, rate: float, crossing_s: float
) -> tuple[float, float]:
    """Return the share of segments held back by timeouts in a worse state, and timeouts a second.

    If no acknowledgement comes for a timeout, the sender stops. The time between acknowledgements is a sum of
    exponential times, one for each packet of a segment.
    """
    if flow.protocol != "tcp" or flow.window == inf:
        return 0.0, 0.0
    transport: Any = flow.transport
    rto, packets, leaves = max(transport.min_rto_s, crossing_s), train.packets, float(moves[1])
    none_yet = float(gammaincc(packets, packets * rto / spacing_s))
    age = float(gammaincc(packets + 1.0, packets * rto / spacing_s)) - rto / spacing_s * none_yet
    silent = exp(-leaves * rto) * max(age, 0.0) * float(gammaincc(flow.window, max(rate * rto, 1e-9)))
    busy = min(rate * crossing_s, 1.0)
    busy += (1.0 - busy) * rate / (rate + leaves)  # or a segment arrives before the state ends
    again = sum(exp(-leaves * rto * (2.0**k - 2.0)) for k in range(1, EXPIRIES + 1))
    late = exp(-leaves * max(rto - crossing_s, 0.0))
    return silent, busy * late * none_yet * again * train.worse * leaves
