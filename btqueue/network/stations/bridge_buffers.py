"""Buffers of bridges: the packets that a bridge brings from a visit and has no room for.

A bridge brings from a visit to one piconet the packets that fit into its buffer for the other piconet; all of
them leave at the next visit there. Groups of g packets come as a Poisson process with a mean of m in a round,
and c of them fit: a share E(N - c)^+ / m of them is lost.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, pdtrc

from btqueue.baseband import SLOT_S
from btqueue.network.stations.air import Links, never_meet
from btqueue.network.stations.network import Flow, Network
from btqueue.network.stations.queues import CYCLIC

Vector = NDArray[np.float64]


class _Coming(NamedTuple):
    """The packets that come to the port of a bridge.

    Attributes:
        most: packets in a round.
        packets: packets of a segment of each flow, shape (flows,).
        group: packets that come at once.
        parts: groups of a segment.
        left: chance that errors leave packets of a group behind.
        whole: whether packets that come at once always do: no error, gate, end of a stay or shorter segment
            divides them.
    """

    most: float
    packets: Vector
    group: float
    parts: float
    left: float
    whole: bool


class Brought:
    """The packets that bridges bring to their ports, which do not depend on rates."""

    def __init__(self, network: Network) -> None:
        """Read the ports of bridges with buffers of limited room."""
        self.network = network
        # the bridges at both ends are never there at once
        self.never = [n for n, port in enumerate(network.ports) if never_meet(network, port)]
        self.coming = {
            n: self._coming(n)
            for n, port in enumerate(network.ports)
            if n not in self.never and port.up and port.bridge >= 0 and port.places < inf
        }
        too_many = [n for n, one in self.coming.items() if one.group > network.ports[n].places]
        # ports that no segment passes, whatever the rates
        self.shut = {*self.never, *(n for n in too_many if self.coming[n].whole)}

    def refused(self, links: Links, coming: Vector) -> Vector:
        """Return the chance of a segment to lose a packet at each port of a bridge, shape (ports,).

        Args:
            links: the air, with the lengths of rounds.
            coming: segments sent a second, shape (flows,).
        """
        found = np.zeros(len(self.network.ports))
        found[self.never] = 1.0
        for n, (most, packets, group, parts, left, _) in self.coming.items():
            port = self.network.ports[n]
            if group == 0.0:
                continue
            bridge = self.network.bridges[port.bridge]
            round_s = SLOT_S * float(links.rounds.round[links.port_link[n]])
            if bridge.schedule != "walk-in":
                round_s = bridge.window_s * len(bridge.piconets)
            fit, mean = port.places // group, max(float(coming @ packets) * round_s / group, 1e-9)
            if most <= port.places:
                # it is full only where errors leave packets of the visit before behind
                found[n] = float(pdtrc(fit - 1.0, mean * left)) if left > 0.0 else 0.0
                continue
            # E(N - c)^+ of a Poisson number N
            over = mean * float(pdtrc(fit - 1.0, mean)) - fit * float(pdtrc(fit, mean)) if fit > 0.0 else mean
            found[n] = 1.0 - (1.0 - min(over / mean, 1.0)) ** parts
        return found

    def _coming(self, n: int) -> _Coming:
        network, port = self.network, self.network.ports[n]
        bridge = network.bridges[port.bridge]
        windows = bridge.schedule != "walk-in"
        packets, sources, group, parts, left = np.zeros(len(network.flows)), {}, 0.0, 1.0, 0.0
        whole = network.relay == "segment" or (not windows and bridge.cycles == 0.0)
        for f, flow in enumerate(network.flows):
            ports = [visit for visit in flow.forth if visit.kind == "port"]
            turns = {network.piconets[network.ports[visit.index].piconet].discipline for visit in ports}
            for place, visit in enumerate(ports):
                if visit.index != n:
                    continue
                before = ports[place - 1].index if place else -1
                limit = float(network.ports[before].limit) if place and not windows else inf
                size = visit.train.packets
                if network.relay == "segment" and limit < inf:  # whole segments come at once
                    limit = ceil(limit / size) * size
                sources[before] = limit
                packets[f] += size
                if network.relay == "packet":
                    size = min(size, *(float(network.ports[one.index].limit) for one in ports[:place]), size)
                group, parts = max(group, size), max(parts, ceil(visit.train.packets / size))
                error = 1.0 - visit.train.packets / visit.train.frames
                alike = not (flow.short or flow.kinds or flow.messages) and flow.uneven == 1.0
                never_divided = network.relay == "segment" or (error <= 1e-9 and turns <= set(CYCLIC))
                whole = whole and alike and never_divided
                if error > 1e-9:
                    left = max(left, 1.0 - float(bdtrc(size - 1.0, port.limit, 1.0 - error)))
        return _Coming(sum(sources.values()), packets, group, parts, left, whole)


def losing(flows: tuple[Flow, ...], lost: Vector) -> tuple[Flow, ...]:
    """Return flows whose segments are also lost at ports, with these chances, shape (ports,)."""
    found = []
    for flow in flows:
        forth = [
            visit._replace(loss=1.0 - (1.0 - visit.loss) * (1.0 - lost[visit.index]))
            if visit.kind == "port"
            else visit
            for visit in flow.forth
        ]
        found.append(replace(flow, forth=tuple(forth)))
    return tuple(found)
