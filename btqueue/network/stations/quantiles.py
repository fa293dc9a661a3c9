r"""Quantiles of round trips and message delays: the law of a time whose mean the fixed point has found.

A time is the sum of a constant, of the wait for the first visit of the central, which is uniform over a cycle
without random visits, and of waits that occur with a chance, with a gamma law:

* at the port of its host: the sojourn in the queue with vacations (`btqueue.queueing.vacations`), by three
  cumulants. Vacations have a gamma law there; other links send whole trains in them, a Poisson number of
  equal lumps: the rest of a vacation (S. W. Fuhrmann and R. B. Cooper, Oper. Res. 33, 1985) has that law;
* at a station of constant service, with use :math:`\rho`: none with the chance :math:`1 - \rho`; else the
  wait of the M/D/1 queue, whose squared coefficient of variation is :math:`1/3 + 2 \rho / 3`;
* behind others' trains on the rest of its way: lumps, with the variance :math:`t \sum \lambda w^2 / (1 -
  \rho)^3` of a busy period begun by t slots (L. Takacs, 1962);
* for tokens: the exponential tail of the tokens that are missing (`token_buckets.Deficit`), with its chance;
* until a delayed acknowledgement goes: the next segment comes at random, or the timer expires.

The sum has the mean of the fixed point. Nothing is fitted.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from math import ceil, inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, gammaln, xlogy

from btqueue.baseband import SLOT_S
from btqueue.network.stations import buffers
from btqueue.network.stations.network import EMPTY, ENDLESS, Network
from btqueue.network.stations.point import CARRIED, Point
from btqueue.scenario.metrics import PERCENTILES

Vector = NDArray[np.float64]
Parts = list[tuple[float, float, float]]
"""Chance, mean and variance of each time of a mixture of gamma times."""

POINTS, FINE = 200, 24
"""Times at which a law is evaluated, and times between two of them."""
SHORTEST_S = 1e-9
"""Timer that makes no difference (s)."""
FAR_OFF = 30.0
"""Mean times after which hardly any segment has not come."""
FAR = 9.0
"""Standard deviations above the mean up to which a law is evaluated."""
STEADY = 1e-6
"""Squared coefficient of variation of a wait below which it is constant; so are uniform times beside it."""
NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)
MOST_PAUSES = 100
"""Pauses between visits in a round trip above which their number is not taken apart."""
STEPS, CHANCES = np.polynomial.hermite_e.hermegauss(9)
CHANCES /= CHANCES.sum()
"""Standard deviations from the mean at which a number of frames is taken, and their weights."""


class Law(NamedTuple):
    """The law of a constant, a uniform time and a mixture of gamma times (s).

    Attributes:
        least: the constant.
        width: width of the uniform time.
        parts: chance, mean and variance of each gamma time.
        most: time at which a window cuts the sum off.
    """

    least: float
    width: float
    parts: tuple[tuple[float, float, float], ...]
    most: float = inf

    def below(self, times: Vector) -> Vector:
        """Return the distribution function at these times, of the same shape."""
        found = np.zeros_like(times)
        for chance, mean, variance in self.parts:
            found += chance * self._part(times - self.least, mean, variance)
        return found

    def _part(self, times: Vector, mean: float, variance: float) -> Vector:
        if mean == 0.0 or variance <= STEADY * mean**2:
            after = times - mean
            return np.clip(after / self.width, 0.0, 1.0) if self.width else (after >= 0.0).astype(float)
        shape, scale = mean**2 / variance, variance / mean

        def integral(end: Vector) -> Vector:  # of the gamma law up to there
            end = np.maximum(end, 0.0) / scale
            chance, density = gammainc(shape, end), np.exp(xlogy(shape, end) - end - gammaln(shape + 1.0))
            return end * scale * chance - mean * (chance - density)

        if self.width <= STEADY * mean:
            return gammainc(shape, np.maximum(times, 0.0) / scale)
        return np.clip((integral(times) - integral(times - self.width)) / self.width, 0.0, 1.0)

    def quantiles(self, shares: Vector) -> Vector:
        """Return the quantiles for these shares, of the same shape (s)."""
        most = self.least + self.width + max(mean + FAR * var**0.5 for _, mean, var in self.parts)
        times = np.linspace(self.least, most * (1.0 + 1e-9), POINTS)
        place = np.searchsorted(np.maximum.accumulate(self.below(times)), shares).clip(1, POINTS - 1)
        fine = np.linspace(times[place - 1], times[place], FINE, axis=-1)  # between two of them
        below = np.maximum.accumulate(self.below(fine), axis=-1)
        found = [np.interp(share, *row) for share, *row in zip(shares, below, fine, strict=True)]
        return np.minimum(found, self.most)


def quantiles(network: Network, point: Point, means: dict[str, Vector]) -> dict[str, Callable[[], Vector]]:
    """Return how to compute the quantiles of round trips and delays, by metric, shape (flows,) (s).

    Not a number where they are not known: of connections that lose segments, of radios that fade, of sources
    in bursts in a piconet of several links, of sources that pause, in piconets with a bridge, of windows that
    wait at two full ports, of several periodic sources, and where windows at times hold back a source. The
    round trip of a window that fills one station is the sum of the services of its segments there. Measured
    errors: docs/explanation/queueing-vacations.md.

    Args:
        network: the stations.
        point: the operating point.
        means: means of round trips and delays by metric, (flows,) (s).
    """
    found: dict[str, Callable[[], Vector]] = {}
    for name, mean in means.items():
        firsts = [f for f in point.links.firsts if np.isfinite(mean[f])]
        laws = {f: of(network, point, f, float(mean[f]), back=name == "rtt_s") for f in firsts}
        if any(laws.values()):
            every = [laws.get(f) for f in point.links.like.tolist()]
            for n, percent in enumerate(PERCENTILES):
                found[f"{name.removesuffix('_s')}_p{percent}_s"] = partial(_of_flows, every, n)
    return found


def _of_flows(laws: list[Law | None], n: int) -> Vector:
    return np.array([np.nan if law is None else _percentiles(law)[n] for law in laws])


@lru_cache(maxsize=512)
def _percentiles(law: Law) -> Vector:
    return law.quantiles(np.array(PERCENTILES) / 100.0)


def of(network: Network, point: Point, f: int, mean_s: float, *, back: bool) -> Law | None:
    """Return the law of the round trips of a flow, or of its delays; None if it is not known.

    Args:
        network: the stations.
        point: the operating point.
        f: number of the flow.
        mean_s: mean of the law.
        back: whether it is the law of round trips.
    """
    laws, flow = point.links, network.flows[f]
    bridged = {piconet for bridge in network.bridges for piconet in bridge.piconets}
    way = (*flow.forth, *flow.back) if back else flow.forth
    lost = f in point.found or f in point.counted or f in buffers.held(network, point)
    losing = flow.protocol == "tcp" and lost
    if losing or flow.messages or flow.short or any(visit.train.worse > 0.0 for visit in way):
        return None
    several = sum(one.source == "periodic" for one in network.flows) > 1
    if flow.source == "periodic" and (several or any(visit.cycle_s for visit in way)):
        return None  # its phase between anchor points, or to another one, is constant in a run
    if flow.more > 0.0 and any((f, 0, stop) in laws.polled.number for stop in range(len(flow.forth))):
        return None  # the queue with vacations is one of messages at random
    if laws.links.endless[f]:
        full = (point.wait * point.service[f])[: len(network.ports)] > 0.0
        if not point.waits[f] or full.sum() > 1:
            return None
        if (parts := _in_full_visits(network, point, f, mean_s)) is not None:
            return Law(0.0, 0.0, parts)
        spread = max(visit.train.spread / max(visit.train.frames, 1e-9) ** 2 for visit in flow.forth)
        around = min(flow.window, ENDLESS) * spread * float(point.service[f].max()) ** 2
        return Law(0.0, 0.0, ((1.0, mean_s, around),))
    if point.rate[f] < CARRIED * flow.load or any(
        visit.kind == "port" and visit.cycle_s == 0.0 and network.ports[visit.index].piconet in bridged
        for visit in way
    ):
        return None
    mine = laws.polled.at_hosts(f)
    random, width = _in_queue(network, point, mine[0]) if mine else (np.zeros(3), 0.0)
    if flow.source == "periodic":  # a segment has left when the next one arrives
        random = np.zeros(3)
    wait_s = laws.answers[f].wait_s if back else 0.0
    random = random + _behind_others(network, point, f, back=back)
    for visit in sorted(way, key=lambda visit: -visit.cycle_s):
        if visit.cycle_s > 0.0:  # the longest wait for an anchor point is uniform, and so are the others
            if width == 0.0:
                width = visit.cycle_s
            else:
                random += visit.cycle_s / 2.0, visit.cycle_s**2 / 12.0, 0.0
        random += visit.jitter_s, visit.jitter_s**2, 2.0 * visit.jitter_s**3
        if visit.kind == "port" and visit.train.spread > 0.0 and not mine:
            each = float(laws.links.frame[visit.index]) * SLOT_S
            random += (visit.train.frames - visit.train.packets) * each, visit.train.spread * each**2, 0.0
    parts, tail = _gamma(*random.tolist()), point.token_tails[f]
    if (tokens_s := tail.between(0.0, inf)) > 0.0:  # an exponential wait, if any
        longer = tokens_s / tail.share
        parts = _plus(parts, [(1.0 - tail.share, 0.0, 0.0), (tail.share, longer, longer**2)])
    used = min(max(float((point.rate @ point.service)[point.service[f] > 0.0].max(initial=0.0)), 1e-3), 1.0)
    lone = max(mean_s - point.token_s[f] - point.own_stray[f], 0.0)
    most = inf
    if f not in laws.ports:  # it waits longest elsewhere, and a window holds later segments back
        own, window = float(point.own[f](inf, lone)), laws.rests[f].window
        if back and (held := own - float(point.own[f](window, lone))) > 0.0:
            mean_s, most = mean_s + held, max(lone, window * float(point.service[f].max()))
        own = max(own**2 - tokens_s**2, 0.0) ** 0.5  # the longer one of both waits
        parts = _plus(parts, _met(own, 1.0 - (1.0 - used) * (1.0 - flow.more) / max(flow.batch, 1.0)))
    parts = _plus(parts, _met(float(point.stray[f]) if back else float(laws.waits[f]), used))
    if wait_s > 0.0:
        parts = _plus(parts, _answered(wait_s, flow.transport.ack_delay_s, flow.transport.ack_clock))
    mean, known = sum(chance * one for chance, one, _ in parts), mean_s - width / 2.0
    if known < 0.0:
        return None  # the mean leaves no room for the uniform wait
    if mean > known:
        parts = [(chance, one * known / mean, var * (known / mean) ** 2) for chance, one, var in parts]
    return Law(max(known - mean, 0.0), width, tuple(parts), most)


def _in_full_visits(
    network: Network, point: Point, f: int, mean_s: float
) -> tuple[tuple[float, float, float], ...] | None:
    r"""Return the round trips of a window that keeps the queue of its link filled, by pauses between visits.

    A segment waits for the K frames of a window, of which a visit of M frames ends after each M. The first
    frame has any place in its visit, so that round trips span b pauses with the chance
    :math:`\max(0, 1 - |K / M - b|)`. Visits are full, and K varies by repeated frames. Sources that do not
    always have data make pauses longer by a Poisson number of trains, and by the trains that come meanwhile:
    a round trip t varies by :math:`t \sum \lambda w^2 / (1 - \rho)^2` (L. Takacs, 1962).

    Args:
        network: the stations.
        point: the operating point.
        f: number of the flow.
        mean_s: mean round trip.

    Returns:
        Chance, mean and variance by number of pauses (s); None where a link has other flows, visits end
        otherwise, or another station is full.
    """
    flow = network.flows[f]
    stops = [visit for visit in (*flow.forth, *flow.back) if visit.kind == "port"]
    if len(stops) != 2:
        return None
    mine = stops[0]
    port = network.ports[mine.index]
    piconet = network.piconets[port.piconet]
    link = {n for n, one in enumerate(network.ports) if (one.piconet, one.link) == (port.piconet, port.link)}
    shared = any(
        visit.kind == "port" and visit.index in link
        for g, other in enumerate(network.flows)
        for visit in (*other.forth, *other.back)
        if g != f
    )
    frames = mine.train.frames * flow.window
    limited = piconet.discipline == "e-limited" and piconet.members > 1 and port.limit < frames
    if not limited or shared or not point.wait[mine.index]:
        return None
    polled, around = point.links.polled, 0.0
    if polled.count:
        others = (polled.piconet == port.piconet) & ~point.links.links.endless[polled.flow]
        rate, works, slot_s = polled.rate[others], polled.works[others], polled.slot_s[others]
        around = mean_s * float(rate @ (slot_s * works**2)) / (1.0 - min(float(rate @ works), 0.95)) ** 2
    frame_s = network.frame_s(mine)
    pause_s = mean_s * port.limit / frames - port.limit * frame_s
    if pause_s <= 0.0:
        return None
    count = frames + STEPS * (flow.window * mine.train.spread) ** 0.5
    if count.max() > MOST_PAUSES * port.limit:
        return None  # a sum of many services
    found = []
    for pauses in range(int(count.max() / port.limit) + 2):
        chances = CHANCES * np.maximum(1.0 - abs(count / port.limit - pauses), 0.0)
        if (chance := float(chances.sum())) > 0.0:
            mean = float(chances @ count) / chance
            varies = float(chances @ (count - mean) ** 2) / chance
            found.append((chance, mean * frame_s + pauses * pause_s, varies * frame_s**2 + around))
    return tuple(found)


def _gamma(mean: float, variance: float, third: float) -> Parts:
    """Return a gamma time that occurs with a chance, by three cumulants (s), or by two if it always does."""
    if mean <= 0.0 or variance <= STEADY * mean**2:
        return [(1.0, mean, 0.0)]
    second = variance / mean**2 + 1.0
    ratio = (third / mean**3 + 3.0 * second - 2.0) / second**2
    inverse = max(ratio - 1.0, 0.0) / max(2.0 - ratio, STEADY)  # of the shape
    if (chance := (1.0 + inverse) / second) >= 1.0:
        return [(1.0, mean, variance)]
    return [(1.0 - chance, 0.0, 0.0), (chance, mean / chance, inverse * (mean / chance) ** 2)]


def _in_queue(network: Network, point: Point, c: int) -> tuple[Vector, float]:
    """Return the waits in the queue of a port of hosts in a piconet of several links (s).

    Cumulants of the random ones, and a cycle of POLLs and of full visits to links that always have data.
    """
    polled = point.links.polled
    slot_s, port = float(polled.slot_s[c]), int(polled.port[c])
    always = float(polled.full_visit[polled.filled[port]].sum())  # of links that always have data
    cycle = (EMPTY * float(polled.members[c]) + always) * slot_s
    queue = buffers.unlimited(network, point, port)
    packets, found = queue.packets * queue.segments, buffers.solved(queue)
    breaks = ceil(packets / queue.limit) - 1.0
    idle = cycle / 2.0 + packets * queue.service + breaks * (cycle - EMPTY * slot_s)
    variance, third = found.sojourn_sd**2 - cycle**2 / 12.0, found.sojourn_third
    means, scvs = np.array(queue.vacations).T
    mean = float(found.served @ means)
    varies = float(found.served @ (means**2 * (1.0 + scvs))) - mean**2
    if mean > cycle:  # the rest of a vacation with whole trains of others, in the place of the gamma law
        lumps, gamma = varies / (mean - cycle), varies / mean
        more = varies * (lumps - 2.0 * gamma)
        variance += more / mean / 3.0
        third += varies * (lumps**2 - 6.0 * gamma**2) / mean / 4.0 + more * (1.0 - gamma / mean) / 2.0
    random = np.array([found.sojourn_mean - idle, variance, third])
    return np.maximum(random, 0.0), cycle


def _behind_others(network: Network, point: Point, f: int, *, back: bool) -> Vector:
    """Return the cumulants of the waits for others' trains behind the port of a flow's host (s).

    They are waits for whole trains, and for the trains that come meanwhile. While a train goes from link to
    link only some links are visited. An acknowledgement behind data of its host waits in their queue.
    """
    polled, found = point.links.polled, np.zeros(3)
    for c, _, slots in point.links.stays(f):
        relayed = not polled.host[c]
        if (polled.back[c] and not back) or not (relayed or polled.back[c]):
            continue
        every, met = (sum(work for work, _ in of[c] if work < 1.0) for of in (polled.pairs, polled.on_way))
        load, shared = min(met if relayed else every, 0.95), float(polled.with_others[c])
        if polled.back[c] and ((polled.port == polled.port[c]) & polled.host & ~polled.back).any():
            found += _in_queue(network, point, c)[0]
            continue
        mean = shared + load * max(slots - shared, 0.0)
        train = max(2.0 * float(polled.under_way[c]) / max(every, 1e-9), float(polled.slots[c]))
        train /= (1.0 - load) ** 2
        found += np.array([mean, mean * train, mean * train**2]) * float(polled.slot_s[c]) ** np.arange(1, 4)
    return found


def _plus(parts: Parts, more: Parts) -> Parts:
    """Return the sums of two mixtures of gamma times."""
    return [(p * q, one + two, a + b) for p, one, a in parts for q, two, b in more if q > 0.0]


def _met(wait: float, chance: float) -> Parts:
    """Return a wait of this mean, which occurs with a chance."""
    if wait <= 0.0:
        return [(1.0, 0.0, 0.0)]
    longer, varies = wait / chance, 1.0 / 3.0 + 2.0 * chance / 3.0
    return [(1.0 - chance, 0.0, 0.0), (chance, longer, varies * longer**2)]


def _answered(wait: float, timer: float, clock: str) -> Parts:
    """Return the wait for the next segment, which comes at random, or for a timer or the next tick (s)."""
    from scipy.optimize import root_scalar  # a tenth of the start of `solve`, seldom needed

    if timer < SHORTEST_S:
        return [(1.0, wait, 0.0)]
    ticks = float(clock == "tick") / timer  # a second

    def over(rate: float) -> float:  # the integral of the chance to wait longer, (1 - ticks t) exp(-rate t)
        alone = -np.expm1(-rate * timer) / rate
        return float(alone - ticks * (alone - timer * np.exp(-rate * timer)) / rate) - wait

    least = 1e-6 / timer
    rate = least if over(least) < 0.02 * wait else root_scalar(over, bracket=(least, 2.0 / wait)).root
    last = min(timer, FAR_OFF / rate)
    at = last * (1.0 + NODES) / 2.0
    density = last / 2.0 * WEIGHTS * (rate * (1.0 - at * ticks) + ticks) * np.exp(-rate * at)
    found = np.append(density, max(1.0 - density.sum(), 0.0)), np.append(at, last)
    return [(often, late, 0.0) for often, late in zip(*(one.tolist() for one in found), strict=True)]
