"""Buffers of bridges: the packets that a bridge brings from a stay and has no room for.

A bridge brings from a stay in one piconet the packets that fit into its buffer for the other piconet; all of
them leave in the next stay there. Groups of g packets come as a Poisson process with a mean of m in a round,
and c of them fit: a share E(N - c)^+ / m of them is lost.

A window of TCP that always has data sends its segments in a row. Of these c fit, and the next one is refused
for certain if a stay brings more packets than the buffer holds; if not, only where transmission errors leave
packets of the row behind. The renewal chain of the window has this loss beside losses at random
(`btqueue.transport.window_cycles`).
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtrc, pdtrc

from btqueue.baseband import SLOT_S
from btqueue.network.stations.air import Links
from btqueue.network.stations.bridges import never_meet
from btqueue.network.stations.network import Flow, Network, Port, Train
from btqueue.network.stations.queues import CYCLIC
from btqueue.transport import binomial
from btqueue.transport.recovery import Row

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


RARE = 1e-3
"""Chance of a segment to be refused that makes no difference."""


class _Coming(NamedTuple):
    """The packets that come to the port of a bridge.

    Attributes:
        most: packets that a stay brings.
        packets: packets of a segment of each flow, shape (flows,).
        group: packets that come at once.
        parts: groups of a segment.
        left: chance that errors leave packets of a group behind.
        whole: whether packets that come at once always do: no error, gate, end of a stay or shorter segment
            divides them.
        rows: by flow, chance that a segment is refused behind segments in a row that fill the buffer.
        fills: flows of which a stay brings more packets than the next one sends, with room for two segments.
    """

    most: float
    packets: Vector
    group: float
    parts: float
    left: float
    whole: bool
    rows: dict[int, float]
    fills: set[int]


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
        endless = {f for one in self.coming.values() for f in one.rows if network.flows[f].load == inf}
        self.several = len(endless) > 1  # how their losses share the rounds has no law
        self.tcp = np.array([flow.protocol == "tcp" for flow in network.flows], bool)

    def refused(self, links: Links, coming: Vector) -> Matrix:
        """Return the chance that ports of bridges have no room for a lone segment, shape (flows, ports).

        Windows that always have data are left out before their own segments, which come in rows (`row`).

        Args:
            links: the air, with the lengths of rounds.
            coming: segments sent a second, shape (flows,).
        """
        found = np.zeros((len(self.network.flows), len(self.network.ports)))
        found[:, self.never] = 1.0
        in_a_row = self.tcp & links.endless
        for n, one in self.coming.items():
            if one.group == 0.0:
                continue
            places, round_s = self.network.ports[n].places, self._round_s(n, links)
            passes, groups = one.packets > 0.0, coming * one.packets * round_s / one.group
            mean = np.maximum(groups.sum() - groups * in_a_row, 1e-9)
            fit = places // one.group
            if one.most <= places:
                # it is full only where errors leave packets of the stay before behind
                chance = pdtrc(fit - 1.0, mean * one.left) if one.left > 0.0 else 0.0
            else:  # E(N - c)^+ of a Poisson number N
                over = mean * pdtrc(fit - 1.0, mean) - fit * pdtrc(fit, mean) if fit > 0.0 else mean
                chance = 1.0 - (1.0 - np.minimum(over / mean, 1.0)) ** one.parts
            found[:, n] = np.where(passes, chance, 0.0)
        return found

    def row(self, f: int) -> Row | None:
        """Return the room for segments in a row of a window that always has data; none without a limit."""
        chances = {n: one.rows.get(f, 0.0) for n, one in self.coming.items()}
        found = [n for n, chance in chances.items() if chance >= RARE]
        if not found:
            return None
        fits = min(int(self.network.ports[n].places // self.coming[n].packets[f]) for n in found)
        return Row(fits, 1.0 - float(np.prod([1.0 - chances[n] for n in found])))

    def room(self, f: int, n: int) -> float:
        """Return the segments of a flow that wait in the buffer of a bridge, inf where they wait elsewhere.

        The queue of the only window over bridges forms there if a stay brings more than the next one sends.

        Args:
            f: number of the flow.
            n: number of a port.
        """
        one = self.coming.get(n)
        if one is None or self.several or f not in one.fills:
            return inf
        return self.network.ports[n].places / one.packets[f]

    def _round_s(self, n: int, links: Links) -> float:
        bridge = self.network.bridges[self.network.ports[n].bridge]
        if bridge.schedule != "walk-in":
            return bridge.window_s * len(bridge.piconets)
        return SLOT_S * float(links.rounds.round[links.port_link[n]])

    def _row(self, port: Port, train: Train, limit: float) -> float:
        """Return the chance that a segment is refused behind others that fill the buffer.

        Args:
            port: of the bridge.
            train: of the segments.
            limit: packets that a stay brings.
        """
        size, places, error = train.packets, port.places, 1.0 - train.packets / train.frames
        fits = places // size
        if self.network.relay == "segment":
            whole = limit < inf and size % 1.0 == 0.0  # and known one by one
            over = (
                _most_waiting(limit, float(port.limit), size) > places
                if whole
                else limit >= (fits + 1) * size
            )
            if over:
                return 1.0
        elif limit > places:
            return 1.0
        if fits != 1.0:
            return 0.0  # packets that stays leave behind fill a longer buffer seldom
        # more packets come in a stay than the stay before has sent
        most = int(min(limit, size))
        sent = np.arange(most)
        come = bdtrc(np.minimum(sent + (places - size), most), most, 1.0 - error)
        return float(binomial.probability(sent, float(port.limit), 1.0 - error) @ come)

    def _coming(self, n: int) -> _Coming:
        network, port = self.network, self.network.ports[n]
        bridge = network.bridges[port.bridge]
        windows = bridge.schedule != "walk-in"
        packets, sources, rows, fills = np.zeros(len(network.flows)), {}, {}, set()
        group, parts, left = 0.0, 1.0, 0.0
        whole = network.relay == "segment" or (not windows and bridge.cycles == 0.0)
        for f, flow in enumerate(network.flows):
            ports = [visit for visit in flow.forth if visit.kind == "port"]
            turns = {network.piconets[network.ports[visit.index].piconet].discipline for visit in ports}
            for place, visit in enumerate(ports):
                if visit.index != n:
                    continue
                size, before = visit.train.packets, network.ports[ports[place - 1].index] if place else None
                limit = inf
                if before is not None and windows:
                    limit = bridge.window_s / SLOT_S / (visit.train.slots / size + 1.0)
                elif before is not None:
                    limit = before.limit * bridge.exchanges
                sources[ports[place - 1].index if place else -1] = limit
                packets[f] += size
                longer = not windows and before is not None and limit > port.limit * bridge.exchanges
                if longer and port.places >= 2.0 * size:
                    fills.add(f)
                rows[f] = self._row(port, visit.train, limit)
                if network.relay == "packet":  # one exchange brings no more than a visit before has left
                    visits = ports[:place] if bridge.exchanges == 1.0 and not windows else ()
                    size = min(size, limit, *(float(network.ports[one.index].limit) for one in visits))
                group, parts = max(group, size), max(parts, ceil(visit.train.packets / size))
                error = 1.0 - visit.train.packets / visit.train.frames
                alike = not (flow.short or flow.kinds or flow.messages) and flow.uneven == 1.0
                never_divided = network.relay == "segment" or (error <= 1e-9 and turns <= set(CYCLIC))
                whole = whole and alike and never_divided
                if error > 1e-9:
                    left = max(left, 1.0 - float(bdtrc(size - 1.0, port.limit, 1.0 - error)))
        most = sum(sources.values())
        return _Coming(most, packets, group, parts, left, whole, rows, fills)


def _most_waiting(limit: float, sends: float, size: float) -> float:
    """Return the most packets of whole segments that wait for the next stay of a bridge, without errors.

    A part of a segment that is relayed whole waits beside the buffer, until a later stay brings the rest. The
    number grows without limit if a stay brings more than the next one sends.

    Args:
        limit: packets that a stay brings.
        sends: packets that the next stay sends.
        size: packets of a segment.
    """
    if limit > sends:
        return inf
    waiting, most, ended = 0.0, 0.0, 0.0
    for stay in range(1, 2 * int(size) + 1):  # after `size` stays they end at the same place in a segment
        before, ended = ended, stay * limit // size * size
        waiting += ended - before
        most, waiting = max(most, waiting), max(waiting - sends, 0.0)
    return most


def losing(flows: tuple[Flow, ...], lost: Matrix) -> tuple[Flow, ...]:
    """Return flows whose segments are also lost at ports, with these chances, shape (flows, ports)."""
    found = []
    for flow, chances in zip(flows, lost, strict=True):
        forth = [
            visit._replace(loss=1.0 - (1.0 - visit.loss) * (1.0 - float(chances[visit.index])))
            if visit.kind == "port"
            else visit
            for visit in flow.forth
        ]
        found.append(replace(flow, forth=tuple(forth)))
    return tuple(found)
