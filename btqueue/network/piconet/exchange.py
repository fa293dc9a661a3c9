"""How a segment and its acknowledgement take turns with others on the air, from the order of the polls.

The central visits the stations in turn: a frame is a packet or POLL and a packet or NULL, a visit ends with
its limit of frames or when both were empty. With nobody else sending, every step is known but for where in
the cycle a segment comes (evenly distributed) and for the processing delays (likewise). All numbers are slots
of a connection alone; the traffic of others makes them longer as in processor sharing (`lossy`).
"""

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.network.piconet.ports import DOWN, Piconet, Sender, Train

EMPTY = 2
"""Slots of POLL and NULL."""


class Exchange(NamedTuple):
    """Times of a segment and its acknowledgement, in slots.

    Attributes:
        lone: 1 if both hops are on one link, of the only station.
        hops: 1 or 2.
        stations: of the piconet.
        round_trip: of a lone segment, but for the wait of its acknowledgement for a chance to be sent.
        answer: mean of that wait, less what the receiver's processing takes.
        head: by how much the last packet alone would be faster than all of a segment.
        behind: what an acknowledgement waits for the data of the next segment.
        spacing: what each further segment of a burst adds.
        apart: least time between the beginnings of two segments on a link; 0 where this is `spacing`.
        visit: share of a segment that a visit serves.
        train: from the beginning of the data on a link to their end there.
        way: from their beginning on the first link to their end on the last.
        ack_hops: from the end of the acknowledgement on its first link to its beginning on the second.
        ack_own: from the end of the data on the sender's link to the acknowledgement there, less the wait for
            the answer.
        gaps, ack_gaps: (N - 1,) between the packets of data and of acknowledgements on a link.
        busy: (2,) slots of packets of data and of acknowledgements on all hops; on one hop acknowledgements
            go beside data, in the place of an empty slot.
        beside: (2,) empty slots that these add to the visits in which they are sent.
    """

    lone: float
    hops: float
    stations: float
    round_trip: float
    answer: float
    head: float
    behind: float
    spacing: float
    apart: float
    visit: float
    train: float
    way: float
    ack_hops: float
    ack_own: float
    gaps: np.ndarray
    ack_gaps: np.ndarray
    busy: np.ndarray
    beside: np.ndarray


def exchange_of(piconet: Piconet, sender: Sender) -> Exchange:
    """Return the times of a flow."""
    assert piconet.ack is not None
    turns = _Turns(piconet, sender)
    data, ack = turns.slots(piconet.data), turns.slots(piconet.ack)
    hops, lone, n = turns.hops, turns.lone, piconet.stations
    elsewhere = max(n - hops, 0)  # stations whose empty visits lie between those of a burst
    spacing = hops * sum(data)
    if not lone:
        spacing += hops * (len(data) + sum(ack) - len(ack))
        spacing += EMPTY * elsewhere * min(1.0, len(data) / piconet.limit)
    train, way = turns.train(data), turns.way(data, turns.between)
    ack_way = turns.way(ack, turns.back)
    apart = way if lone else train + 1.0
    share = piconet.limit < 2 * len(data) and not lone
    return Exchange(
        lone=float(lone),
        hops=float(hops),
        stations=float(n),
        round_trip=EMPTY * n / 2 + way + ack_way,
        answer=turns.answer(piconet.jitter_s / SLOT_S, len(data)) - piconet.jitter_s / SLOT_S / 2,
        head=hops * sum(size + (not lone) for size in data[:-1]),
        behind=hops * (sum(size + 1 for size in data) - EMPTY) if hops > 1 else 0.0,
        spacing=spacing,
        apart=0.0 if share else apart,
        visit=min(1.0, piconet.limit / len(data)),
        train=train,
        way=way,
        ack_hops=max(ack_way - 2 * turns.train(ack), 0.0) if hops > 1 else 0.0,
        ack_own=way - train + ack_way - turns.train(ack),
        gaps=np.array(turns.gaps(data), float),
        ack_gaps=np.array(turns.gaps(ack), float),
        busy=np.array([hops * sum(data), hops * sum(ack) - (hops == 1) * len(ack)], float),
        beside=np.array(
            [
                0.0 if lone else hops * turns.beside(len(data)),
                hops * turns.beside(len(ack)) if hops > 1 and not lone else 0.0,
            ]
        ),
    )


class _Turns:
    """The turns of one flow."""

    def __init__(self, piconet: Piconet, sender: Sender) -> None:
        self.n, self.limit = piconet.stations, piconet.limit
        self.hops = len(sender.data)
        self.lone = self.hops > 1 and self.n == 1
        self.down = sender.port.way == DOWN
        first, last = sender.data[0].station, sender.data[-1].station
        self.between = (last - first) % self.n - 1 if self.hops > 1 else 0
        self.back = (first - last) % self.n - 1 if self.hops > 1 else 0

    def slots(self, train: Train) -> list[int]:
        return [packet.slots for packet in train.packets]

    @property
    def away(self) -> float:
        """Slots of the visits to others, between two visits to stations of this flow."""
        return EMPTY * (self.n - self.hops)

    def gaps(self, sizes: Sequence[int]) -> list[float]:
        """Return the gaps between the packets of a train on one link."""
        found = []
        for place in range(1, len(sizes)):
            gap = 1.0
            if place % self.limit == 0 and not self.lone:
                gap = self.away + 1.0
                if self.hops > 1:  # they go on over the second link meanwhile
                    gap += sum(size + 1 for size in sizes[place - self.limit : place])
            found.append(gap)
        return found

    def train(self, sizes: Sequence[int]) -> float:
        return sum(sizes) + sum(self.gaps(sizes))

    def way(self, sizes: Sequence[int], between: int) -> float:
        """Return the slots from the first of a train to its last on the last link."""
        if self.lone:
            return 2.0 * sum(sizes)
        if self.hops == 1:
            return self.train(sizes)
        visits = ceil(len(sizes) / self.limit)
        last = sizes[(visits - 1) * self.limit :]
        slots = 2.0 * sum(size + 1 for size in sizes) - 2.0
        slots += (visits - 1) * EMPTY * (self.n - 2) + EMPTY * between
        return slots + (EMPTY if len(last) < self.limit else 0.0)

    def beside(self, packets: int) -> float:
        """Return the empty slots that a train adds to the visits in which it crosses one link.

        Each packet has one empty slot beside it; a visit that ends before its limit has an empty frame; but
        an empty frame is all that each of these visits would have been otherwise.
        """
        return packets + (EMPTY if packets % self.limit else 0) - EMPTY * ceil(packets / self.limit)

    def answer(self, jitter: float, packets: int) -> float:
        """Return the mean time from the end of the data to the beginning of the acknowledgement.

        It is written after a delay of up to `jitter`, and begins at the next chance to answer. A station
        answers in the next frame of its visit; the central has decided on that when a packet ends.
        """
        full = packets % self.limit == 0
        cycle = float(EMPTY * self.n)
        chances: list[float] = []
        if self.lone:
            first = 2.0
        elif self.hops == 1 and not self.down:
            first = EMPTY * (self.n - 1.0) if full and self.n > 1 else cycle
        else:
            chances = [] if full else [2.0]
            first = cycle if full else cycle + EMPTY
        while first <= jitter + cycle:
            chances.append(first)
            first += cycle
        if jitter == 0.0:
            return chances[0]
        mean, before = 0.0, 0.0
        for chance in chances:
            upto = min(chance, jitter)
            if upto > before:
                mean += chance * (upto - before) / jitter
                before = upto
        return mean
