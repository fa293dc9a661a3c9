r"""Wires whose queues take turns: the ends of half-duplex links, and the stations of a cell.

A medium sends one packet of each of its queues in turn, as in polling with one customer a visit and no walks.
A queue k that always has packets sends one in each round

.. math:: C_k = s_k + \sum_{j \ne k} \min(s_j, \rho_j C_k),

with the time s of a packet and the load of each queue: other queues take their load, and at most one packet a
round. So C is the service of a packet of k while k is busy. Before its turn a packet waits

.. math:: T_k = \sum_{j \ne k} \min(s_j / 2, \rho_j (s_j / 2 + T_k)),

for the packet that is sent and for the packets that come meanwhile, and no more than half of a packet of each
queue. Before that it waits behind the packets of the same queue, as in M/G/1 with the service C. Where
packets are equal and no queue fills its turns, the sum of both is exactly the wait of one queue for all.

A packet that the medium itself has just delivered comes to its next queue when the medium has begun to send
another packet: it waits for whole packets, s in the place of s/2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from btqueue.network.stations.network import Network
from btqueue.network.stations.queues import stretch

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

NEARLY = 0.98
"""Use of a queue above which its packets wait as a full one's do."""


class Turns:
    """The queues of all media that carry segments of several flows from several queues.

    Media of one flow have the law of one queue: its packets are not independent.

    Attributes:
        number: number of each queue among these, by its number in the network.
        shared: whether a resource is a medium with several queues, shape (resources,).
        wires: number of the resource of the medium of each queue, shape (queues,).
        packets: of a segment of each flow at each queue, and of its acknowledgements, (2, flows, queues).
        work: the same in seconds.
        before: wait of a packet of each queue for its turn, for packets from elsewhere, and for packets that
            the medium has just delivered, (2, queues) (s).
    """

    def __init__(self, network: Network, number: dict[tuple[str, int], int]) -> None:
        """Read the queues of the wires of a network, whose resources have these numbers."""
        flows = network.flows
        users: dict[int, set[int]] = {}  # flows whose segments, not acknowledgements alone, meet at a medium
        begun: dict[int, set[int]] = {}
        for f, flow in enumerate(flows):
            for visit in flow.forth:
                if visit.kind == "wire":
                    both = flow.messages and flow.reverse is not None  # the ends of a session are one flow
                    users.setdefault(visit.index, set()).add(min(f, flow.reverse or 0) if both else f)
                    begun.setdefault(visit.index, set()).add(visit.turn)
        met = [wire for wire, queues in begun.items() if len(queues) > 1 and len(users[wire]) > 1]
        kept = {queue: n for n, queue in enumerate(q for q, one in enumerate(network.turns) if one in met)}
        self.wires = np.array([number["wire", network.turns[queue]] for queue in kept], int)
        self.shared = np.zeros(len(number), bool)
        self.shared[self.wires] = True
        self.number = kept
        self.packets, self.work = np.zeros((2, 2, len(flows), len(kept)))
        for f, flow in enumerate(flows):
            for back, visits in enumerate((flow.forth, flow.back)):
                for visit in visits:
                    if visit.turn in kept:
                        times = flow.acks if back else 1.0
                        self.packets[back, f, kept[visit.turn]] += times
                        self.work[back, f, kept[visit.turn]] += times * visit.service_s
        self.rounds = self.each = self.rate = np.zeros(len(kept))
        self.before = np.zeros((2, len(kept)))

    def update(self, rate: Vector, sent: Vector, alone: Vector, comes: Matrix) -> Matrix:
        """Set the rounds of the queues to rates of flows, and return services at the queues.

        Args:
            rate: segments a second, (flows,).
            sent: transmissions of each, (flows,).
            alone: share of the acknowledgements that travel alone, (flows,).
            comes: share of segments, and of acknowledgements, that losses let come to each resource, shape
                (2, flows, resources).

        Returns:
            Service of a segment with its acknowledgements at each queue, for capacities, (flows, queues) (s).
        """
        if not self.number:
            return self.packets[0]
        times = np.array((sent, alone))[:, :, None] * comes[:, :, self.wires]
        packets, work = ((times * one).sum(axis=0) for one in (self.packets, self.work))
        self.rate = rate @ packets
        carried = self.rate > 0.0
        mean = work.sum(axis=0) / np.maximum(packets.sum(axis=0), 1e-300)
        self.each = np.where(carried, rate @ work / np.where(carried, self.rate, 1.0), mean)
        self.rounds, self.before = np.zeros(len(self.each)), np.zeros((2, len(self.each)))
        for wire in np.unique(self.wires):
            here = np.flatnonzero(self.wires == wire)
            for k in here:
                others = here[here != k]
                most, load = self.each[others], (self.rate * self.each)[others]
                self.rounds[k] = self.each[k] + _served(most, load, load * self.each[k])
                self.before[:, k] = [_served(part * most, load, part * load * most) for part in (0.5, 1.0)]
        return packets * self.rounds

    def waits(self, sends: Vector, ahead: Vector, most: Matrix, *, steady: NDArray[np.bool_]) -> Matrix:
        """Return the waits of packets of each queue for segments of each flow ahead, (flows, queues) (s).

        Args:
            sends: segments a second of each flow, (flows,).
            ahead: segments of the same message ahead of a segment, (flows,).
            most: that the window of a flow lets wait at each resource, (flows, resources) (s).
            steady: whether a flow always has data: they wait for each other at full queues only, (flows,).
        """
        if not self.number:
            return self.packets[0]
        open_ = np.where(steady, 0.0, sends)[:, None] * self.packets[0]
        spare = np.maximum(1.0 - open_.sum(axis=0) * self.rounds, 1.0 - NEARLY)
        services = self.packets[0] * self.rounds
        queued = sends[:, None] * services**2 * (ahead[:, None] + 0.5) / spare
        most = most[:, self.wires] * self.rounds / np.maximum(self.each, 1e-300)
        return np.minimum(queued, most)


def _served(most: Vector, load: Vector, begun: Vector) -> float:
    """Return the work x of other queues that is the sum of min(most, begun + load x)."""
    begun = np.minimum(begun, most)
    return stretch(float(begun.sum()), 1.0, list(zip(load.tolist(), (most - begun).tolist(), strict=True)))


def binding(service: Matrix, turns: Turns, queues: Matrix) -> Matrix:
    """Return services at all resources that may be full, with the queues of shared media in their place.

    Args:
        service: service of each flow at each resource, (flows, resources) (s).
        turns: the queues.
        queues: service of each flow at each queue, (flows, queues) (s).
    """
    if not turns.number:
        return service
    return np.hstack([np.where(turns.shared, 0.0, service), queues])
