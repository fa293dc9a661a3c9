"""What buffers lose: windows that outgrow them, sources at random that find them full, datagrams."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import expm

from btqueue.network.stations import transport
from btqueue.network.stations.network import ENDLESS, Flow, Network, Visit
from btqueue.network.stations.point import CROWDED, Point

Vector = NDArray[np.float64]

RARE = 1e-3
"""Share of the segments that find a buffer full, up to which it makes no difference."""
OFTEN = 0.01
"""Overflows a second from which on they make a difference, however small their share is."""
MOST_PLACES = 200
"""Packets of a buffer whose content is followed; a greater one loses what cannot be carried, and no more."""


class Buffer(NamedTuple):
    """A buffer of limited room before a station; all in packets.

    Attributes:
        kind: of the station.
        places: packets that it holds.
        most: that windows let wait there.
        queue: mean that waits there, if the station is full; of what may wait there or at others as full.
        refused: chance that a segment finds no room, where the station is not full.
        rate: segments a second that come.
    """

    kind: str
    places: float
    most: float
    queue: float
    refused: float
    rate: float

    @property
    def overflows(self) -> bool:
        """Whether segments are lost there, so that it makes a difference."""
        if self.most <= self.places:
            return False
        rare = self.refused < RARE or self.refused * self.rate < OFTEN
        return self.queue > 0.999 * self.places or not rare


def visits_to(network: Network) -> Iterator[tuple[int, Flow, Visit, float, bool]]:
    """Yield number, flow, visit, packets of a segment or its acknowledgements there, and whether it is these."""
    for f, flow in enumerate(network.flows):
        for back, visits in enumerate((flow.forth, flow.back)):
            for visit in visits:
                packets = max(visit.train.packets, 1.0)
                yield f, flow, visit, packets * (flow.acks if back else 1.0), bool(back)


def buffers(network: Network, point: Point) -> dict[int, Buffer]:
    """Return the buffers of limited room, by the numbers of their stations."""
    laws = point.links
    count = len(laws.names)
    used = point.rate @ point.service
    waits = (point.service > 0.0) @ point.wait
    places, first = np.full(count, inf), np.zeros(count)
    most, queue, stray, packets_s, rate = np.zeros((5, count))
    for f, flow, visit, packets, back in visits_to(network):
        r = laws.number[visit.kind, visit.index]
        places[r] = min(places[r], visit.places * packets)
        most[r] += min(flow.window, ENDLESS) * packets
        packets_s[r] += point.rate[f] * packets
        queue[r] += point.rate[f] * waits[f] * packets
        if not back:
            stray[r] += point.rate[f] * point.own_stray[f] * packets
            rate[r] += point.rate[f]
            first[r] = max(first[r], (min(flow.batch, flow.window) - 1.0) * packets)
    found = {}
    for r in np.flatnonzero(np.isfinite(places) & (rate > 0.0)):
        kind, index = laws.names[r]
        full, use = bool(used[r] > CROWDED and queue[r] > 0.0), min(float(used[r]), 1.0)
        room = max(float(places[r] - first[r]), 0.0)
        refused = 0.0
        if not full and kind == "bucket":
            decay, theta = laws.tails.get(index, (0.0, 1.0))
            bucket = network.buckets[index]
            segment = float(point.service[:, r].max())
            seconds = bucket.depth / bucket.rate + room * use / packets_s[r] - segment
            refused = min(decay * float(np.exp(-theta * seconds)), 1.0)
        elif not full and stray[r] > 0.0:
            refused = use * float(np.exp(-room * use / stray[r]))
        found[int(r)] = Buffer(
            kind,
            float(places[r]),
            float(most[r]),
            float(queue[r]) if full else 0.0,
            refused,
            float(rate[r]),
        )
    return found


def saws(network: Network, point: Point) -> dict[int, transport.Law]:
    """Return the law of each connection whose window overflows the buffer of a full station, by its number.

    Of a buffer each connection has the share of the packets that it sends; path and buffer hold so many of
    its segments, and one more is lost (`btqueue.network.paths.loss`).
    """
    known, found = buffers(network, point), {}
    sent = np.zeros(len(point.links.names))
    for f, _, visit, packets, _ in visits_to(network):
        sent[point.links.number[visit.kind, visit.index]] += point.rate[f] * packets
    for f, flow in enumerate(network.flows):
        lone, room = float(point.base[f] + point.stray[f]), inf
        for visit in flow.forth if flow.protocol == "tcp" else ():
            r = point.links.number[visit.kind, visit.index]
            one = known.get(r)
            if one is not None and one.overflows and one.queue > 0.0:
                room = min(room, one.places * point.rate[f] / sent[r])
        if room < inf:
            found[f] = transport.chain_of(flow, lone, 1.0 / point.rate[f], room + point.rate[f] * lone)
    return found


def whole(network: Network, point: Point) -> Vector:
    """Return the share of the datagrams of each flow that find room for all their packets, (flows,)."""
    found = np.ones(len(network.flows))
    laws = point.links
    at: dict[int, list[tuple[int, Flow, Visit, float]]] = {}
    for f, flow, visit, packets, back in visits_to(network):
        if not back and visit.places < inf:
            at.setdefault(laws.number[visit.kind, visit.index], []).append((f, flow, visit, packets))
    for r, users in at.items():
        if all(flow.protocol != "none" for _, flow, _, _ in users):
            continue
        rate = np.array([flow.load if flow.protocol == "none" else point.rate[f] for f, flow, *_ in users])
        if not np.isfinite(rate).all() or not rate.any():
            continue
        share = rate / rate.sum()
        packets = float(share @ [one[3] for one in users])
        service = float(share @ [point.service[f, r] for f, *_ in users]) / packets
        kind, index = laws.names[r]
        places = min(visit.places * count for _, _, visit, count in users)
        if kind == "port":  # of which half of a segment is taken for sent (`Visit.places`)
            places += packets / 2.0
        elif kind == "bucket":  # what the bucket holds goes at once, and comes back at the rate of tokens
            places += network.buckets[index].depth / network.buckets[index].rate / service
        if not places <= MOST_PLACES:
            continue
        batch = max(round(float(share @ [flow.batch for _, flow, *_ in users])), 1)
        one = filled(float(rate.sum()) / batch, batch, max(round(packets), 1), int(places), service)
        for f, *_ in users:
            found[f] *= one
    return found


def filled(rate: float, batch: int, packets: int, places: int, service: float) -> float:
    """Return the share of the segments that find room for all their packets: an M^X/D/1/K queue.

    A message comes at once, and takes what room there is. Nothing leaves during a service: the content left
    behind by departures is a Markov chain (Takagi 1993, vol. 2).

    Args:
        rate: messages a second, at random.
        batch: segments of a message.
        packets: of a segment.
        places: packets that find room, the one in service included.
        service: of a packet (s).
    """
    size = places + 1
    fill = np.zeros((size, size))
    fill[np.arange(size), np.minimum(np.arange(size) + batch * packets, places)] += rate
    fill -= rate * np.eye(size)
    both = np.zeros((2 * size, 2 * size))  # of which the corner is the integral over a service
    both[:size, :size], both[:size, size:] = fill, np.eye(size)
    both = expm(both * service)
    begin = np.arange(places)
    begin[0] = min(batch * packets, places)
    after = both[begin, 1:size]  # less the one that leaves
    equations = np.vstack([after.T - np.eye(places), np.ones(places)])
    left = np.linalg.lstsq(equations, np.append(np.zeros(places), 1.0), rcond=None)[0]
    time = left @ both[begin, size:]
    time[0] += left[0] / rate
    below = np.cumsum(time / time.sum())
    rooms = places - packets * np.arange(1, batch + 1)
    return float(np.mean([below[room] if room >= 0 else 0.0 for room in rooms]))


def doubts(network: Network, point: Point) -> list[str]:
    """Return the buffers that overflow, or may."""
    for one in buffers(network, point).values():
        if one.overflows:
            return [
                f"windows of {one.most:.0f} packets may overflow a buffer of {one.places:.3g} before a "
                f"{one.kind}: connections fall into a rhythm that no mean knows; goodput was up to 20 %, "
                "round trips 100 % off"
            ]
    return []
