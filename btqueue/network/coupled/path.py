"""How long a segment and its acknowledgement take on the polled air, from the order of the polls.

The central visits the peripherals in turn: a frame is a packet or POLL and a packet or NULL, a visit ends
with its limit of frames or when both were empty. With nobody else sending, every step is known but for where
in the cycle a segment comes (evenly distributed) and for the processing delays (likewise), so the mean round
trip is a sum. The traffic of the others shares the air as in processor sharing: what takes T alone takes
T / (1 - rho) where they use a share rho of it (L. Kleinrock, Queueing Systems II, 1976, section 4.4).
"""

from dataclasses import dataclass
from math import ceil

from btqueue.baseband import SLOT_S
from btqueue.network.ring_piconet.ring import Piece, Ring

EMPTY = 2
"""Slots of POLL and NULL."""


@dataclass(frozen=True)
class Timing:
    """Times of a lone segment in a ring, the others using a share `others` of the air.

    Attributes:
        ring: how segments are cut and polled.
        others: share of the air that the other flows use.
    """

    ring: Ring
    others: float = 0.0

    @property
    def lone(self) -> bool:
        """Whether a single peripheral sends to itself: both hops are on one link."""
        return self.ring.peripherals == 1

    @property
    def idle_cycle(self) -> int:
        """Slots of a polling cycle in which nobody sends."""
        return EMPTY * self.ring.peripherals

    @property
    def train_s(self) -> float:
        """From the first slot of the data on a link to the last (s)."""
        return self._train(self.ring.data) * SLOT_S

    @property
    def data_s(self) -> float:
        """From the first slot of the data on the first link to the last slot on the second (s)."""
        return self._transfer(self.ring.data, 0) * SLOT_S

    @property
    def between_hops_s(self) -> float:
        """From the end of the data on the first link to their beginning on the second (s)."""
        return max(self.data_s - 2.0 * self.train_s, 0.0)

    @property
    def ack_between_hops_s(self) -> float:
        """The same of the acknowledgement."""
        apart = self._transfer(self.ring.ack, self._between) - 2 * self._train(self.ring.ack)
        return max(apart, 0) * SLOT_S

    @property
    def ack_wait_s(self) -> float:
        """From the last slot of the data to the first of the acknowledgement, on average (s)."""
        jitter = self.ring.jitter_s
        wait = self._wait_for_answer(jitter / SLOT_S) * SLOT_S
        return jitter / 2 + (wait - jitter / 2) / (1.0 - self.others)

    @property
    def ack_on_own_link_s(self) -> float:
        """From the end of the data on the sender's link to the acknowledgement there (s)."""
        rest = self.data_s - self.train_s + self._transfer(self.ring.ack, self._between) * SLOT_S
        return self.ack_wait_s + (rest - self._train(self.ring.ack) * SLOT_S) / (1.0 - self.others)

    @property
    def round_trip_s(self) -> float:
        """Mean round trip of a lone segment, processing delays included (s)."""
        slots = self.idle_cycle / 2 + self._transfer(self.ring.data, 0)
        slots += self._transfer(self.ring.ack, self._between)
        return self.ring.jitter_s / 2 + slots * SLOT_S / (1.0 - self.others) + self.ack_wait_s

    @property
    def head_s(self) -> float:
        """By how much a segment's last packet alone would be faster than all of them (s)."""
        rest = [piece.packet.slots + (not self.lone) for piece in self.ring.data[:-1]]
        return 2 * sum(rest) * SLOT_S / (1.0 - self.others)

    @property
    def behind_s(self) -> float:
        """What an acknowledgement waits for the data of the next segment, once up and once down (s)."""
        slots = sum(piece.packet.slots + 1 for piece in self.ring.data) - EMPTY
        return 2 * slots * SLOT_S / (1.0 - self.others)

    @property
    def start_apart_s(self) -> float:
        """Least time between the beginnings of two segments on a link (s): one visit, or one cycle."""
        if self.ring.limit < 2 * len(self.ring.data) and not self.lone:
            return self.spacing_s
        return self.data_s if self.lone else self.train_s + SLOT_S

    @property
    def spacing_s(self) -> float:
        """What each further segment of a burst adds (s): its packets, its acknowledgement, empty visits."""
        ring = self.ring
        slots = 2 * ring.data_slots
        if not self.lone:
            slots += 2 * len(ring.data) + 2 * (ring.ack_slots - len(ring.ack))
            slots += EMPTY * (ring.peripherals - 2) * min(1.0, len(ring.data) / ring.limit)
        return slots * SLOT_S / (1.0 - self.others)

    def beside_slots(self, pieces: tuple[Piece, ...]) -> int:
        """Return the empty slots that a segment adds to the visits in which it crosses one link.

        Each packet has one empty slot beside it; a visit that ends before its limit has an empty frame; but
        an empty frame is all that each of these visits would have been otherwise.
        """
        limit = self.ring.limit
        return len(pieces) + (EMPTY if len(pieces) % limit else 0) - EMPTY * ceil(len(pieces) / limit)

    def gaps_s(self, pieces: tuple[Piece, ...]) -> list[float]:
        """Return the gaps between the packets of a segment on one link (s)."""
        ring = self.ring
        away = EMPTY * (ring.peripherals - 2) + 1
        gaps = []
        for place in range(1, len(pieces)):
            gap = 1
            if place % ring.limit == 0 and not self.lone:
                gap = away + sum(piece.packet.slots + 1 for piece in pieces[place - ring.limit : place])
            gaps.append(gap * SLOT_S)
        return gaps

    @property
    def _between(self) -> int:
        """Visits from the receiver's to the sender's."""
        return max(self.ring.peripherals - 2, 0)

    def _train(self, pieces: tuple[Piece, ...]) -> float:
        return sum(piece.packet.slots for piece in pieces) + sum(self.gaps_s(pieces)) / SLOT_S

    def _transfer(self, pieces: tuple[Piece, ...], between: int) -> int:
        """Return the slots from the first of a segment going up to the last coming down.

        `between` are the visits from the one up to the one down.
        """
        sizes, limit = [piece.packet.slots for piece in pieces], self.ring.limit
        if self.lone:
            return 2 * sum(sizes)
        visits = ceil(len(sizes) / limit)
        last = sizes[(visits - 1) * limit :]
        slots = 2 * sum(size + 1 for size in sizes) - 2
        slots += (visits - 1) * EMPTY * (self.ring.peripherals - 2) + EMPTY * between
        return slots + (EMPTY if len(last) < limit else 0)

    def _wait_for_answer(self, jitter: float) -> float:
        """Return the mean time (slots) from the end of the data to the beginning of the acknowledgement.

        It is written after a delay of up to `jitter`, and begins at the next chance to answer.
        """
        full = len(self.ring.data) % self.ring.limit == 0
        cycle = self.idle_cycle
        chances = [] if full or self.lone else [2.0]
        first = 2.0 if self.lone else float(cycle if full else cycle + EMPTY)
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
