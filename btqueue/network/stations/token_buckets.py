"""Token buckets: the tokens that are missing in a bucket, and waits of segments for them."""

from __future__ import annotations

from itertools import takewhile
from math import exp, expm1, inf
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from btqueue.baseband import SLOT_S
from btqueue.network.stations import transport
from btqueue.network.stations.acknowledgements import NEARLY
from btqueue.network.stations.network import EMPTY, Network
from btqueue.network.stations.own_queue import NONE, Tail, longer

if TYPE_CHECKING:
    from btqueue.network.stations.laws import Laws

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


class Deficit(NamedTuple):
    """The law of the tokens that are missing in a bucket, as time: the work V of an M/G/1 server (s).

    P(V > v) is the sum of two exponential functions: the tail (Cramér & Lundberg), and a part that makes its
    chance and its mean exact (H. Tijms, Stochastic Models: An Algorithmic Approach, 1994).

    Attributes:
        decay, theta: factor and rate (1/s) of the tail.
        often, mean: chance and mean (s) without the tail; of the same sign where they count.
    """

    decay: float
    theta: float
    often: float
    mean: float

    @staticmethod
    def of(prices: Vector, rates: Vector, use: float) -> Deficit:
        """Return the law for prices (s) that are asked for at these rates (1/s), in all `use` below 1."""
        squares, longest = float(rates @ prices**2), float(prices.max())
        pairs = list(zip(rates.tolist(), prices.tolist(), strict=True))
        theta = 2.0 * (1.0 - use) / squares
        for _ in range(30):  # Newton's method
            if theta * longest > 300.0:  # far beyond the root, where powers are no numbers
                theta /= 2.0
                continue
            value = sum(rate * expm1(theta * price) for rate, price in pairs) - theta
            slope = sum(rate * price * exp(theta * price) for rate, price in pairs) - 1.0
            if slope <= 0.0:
                theta *= 1.5
                continue
            step = value / slope
            theta -= step
            if abs(step) < 1e-9 * theta:
                break
        decay = (1.0 - use) / max(float(rates @ (prices * np.exp(theta * prices))) - 1.0, 1e-9)
        return Deficit(decay, theta, use - decay, squares / (2.0 * (1.0 - use)) - decay / theta)

    def beyond(self, free: float) -> Tail:
        """Return the law of waits behind a full bucket with `free` more tokens than a train needs (s)."""
        wait = self.decay / self.theta * exp(-self.theta * free)
        if self.often * self.mean > 0.0:
            wait += self.mean * exp(-free * self.often / self.mean)
        share = min(max(wait * self.theta, 0.0), 1.0)
        return Tail(share, wait / share) if share > 0.0 else NONE


def waits(
    laws: Laws, rate: Vector, sent: Vector, forth: Matrix, back: Matrix, full: Vector
) -> tuple[list[tuple[Tail, Tail]], Vector, Vector]:
    """Return the random and the certain waits of a segment and its acknowledgement for tokens (s).

    The last array is the time in which a bucket grants tokens for a segment of the flow and all traffic
    between two of them.

    The first packets of a segment are sent while its last packet waits for tokens. Then less air time
    remains for the last packet. An acknowledgement waits only for segments that windows have let out, and
    whose own acknowledgements do not wait elsewhere. A buffer that holds all windows limits no wait.

    In 21 simulations of a lone link and of rings of 3 and 5 stations (buckets of 1 to 4 segments, 20 to
    80 % of the tokens used, no losses, no timeouts) delays were 3 % too short to 1 % too long, round
    trips 3 % too short to 4 % too long.
    """
    flows, alone = laws.network.flows, laws.alone
    tails, (sure, turns) = [(NONE, NONE)] * len(flows), np.zeros((2, len(flows)))
    if not laws.network.buckets:
        return tails, sure, turns
    lets_out: list[list[tuple[int, float]]] = [[] for _ in laws.network.buckets]
    behind: list[list[tuple[int, float]]] = [[] for _ in flows]
    for n, bucket in enumerate(laws.network.buckets):
        r = laws.number["bucket", n]
        if full[r] > 0.0:
            continue
        depth = bucket.depth / bucket.rate
        jumps, rates, who, random, packets = [], [], [], [], 0.0
        held = 0.0  # packets of all windows, and of their acknowledgements
        for f, flow in enumerate(flows):
            for way, (visits, service) in enumerate(((flow.forth, forth), (flow.back, back))):
                if service[f, r] <= 0.0:
                    continue
                count = next(visit.train.packets for visit in visits if visit[:2] == ("bucket", n))
                trains = rate[f] * (flow.acks * alone[f] if way else sent[f])
                price = service[f, r] / (flow.acks if way else 1.0)
                several = 1.0 if way else 2.0 * transport.ahead(flow) + 1.0
                jumps.append(price * several)
                rates.append(trains / several)
                packets += trains * count
                held += flow.window * count * (min(flow.acks, 1.0) if way else 1.0)
                if not way:
                    lets_out[n].append((f, flow.window * price))
                random.append(flow.source != "periodic")
                saved = 0.0 if way or several > 1.0 else _sent_before(laws.network, f, n)
                who.append((f, way, max(price * (several + 1.0) / 2.0 - saved, price / count)))
        d, x = np.array(jumps), np.array(rates)
        use = min(float(d @ x), NEARLY)
        if use <= 0.0:
            continue
        room = bucket.places * use / max(packets, 1e-12) if held > bucket.places else inf
        x = x * min(1.0, use / float(d @ x))
        if not any(random):  # deterministic streams that the token rate carries
            for f, _, price in who:
                sure[f] += max(price - depth, 0.0)
            continue
        deficit = Deficit.of(d, x, use)
        for f, way, price in who:
            if not way:
                turns[f] = max(turns[f], use / max(float(rate[f] * sent[f]), 1e-12))
            sure[f] += max(price - depth, 0.0)
            tail = deficit.beyond(max(depth - price, 0.0))._replace(room=room)
            old = tails[f][way]
            if tail.wait > old.wait:  # of two buckets on a way the slower decides
                tails[f] = (tails[f][0], tail) if way else (tail, tails[f][1])
                behind[f] = lets_out[n] if way else behind[f]
    # share of a window that waits for tokens here, not as acknowledgements elsewhere
    here = [data.wait / (data.wait + ack.wait) if data.wait > 0.0 else 1.0 for data, ack in tails]
    for f, windows in enumerate(behind):
        if windows:
            longest = sum(here[g] * window_s for g, window_s in windows)
            tails[f] = (tails[f][0], tails[f][1].up_to(longest))
    return tails, sure, turns


def _sent_before(network: Network, f: int, bucket: int) -> float:
    """Return how long the packets of a segment but the last need, from a bucket to the next one (s).

    The next bucket, wire or host gathers them. Packets beyond the limit of a visit go in the next cycle.
    """
    visits, slots = network.flows[f].forth, 0.0
    first = next(place for place, visit in enumerate(visits) if visit[:2] == ("bucket", bucket)) + 1
    for visit in takewhile(lambda visit: visit.kind == "port", visits[first:]):
        train, port = visit.train, network.ports[visit.index]
        before = train.packets - 1.0
        cycle = EMPTY * (network.piconets[port.piconet].members - 1.0)
        slots += train.frames / train.packets * before * (train.first + 1.0) + before // port.limit * cycle
    return slots * SLOT_S


def back_s(laws: Laws, f: int, tokens: Tail) -> float:
    """Return how much longer an acknowledgement waits for tokens than at its port (s)."""
    at = laws.polled.ways[f, 1]
    if tokens.share <= 0.0 or not at:
        return tokens.between(0.0, inf)
    wait = float(laws.polled.later[at[0]] * laws.polled.slot_s[at[0]])
    both = longer(Tail.of(float(laws.polled.load_of[at[0]]), wait), tokens, inf)
    return max(both - wait, 0.0)  # far from the point its port has waits without a use
