"""Two polled piconets and the bridge between them in plain Python, to hold the compiled recursion against.

While the bridge is in one piconet the other knows nothing of it: each runs by itself from the time it was
left to the time it is left again. The bridge is polled last in the cycle. Absent, it wastes an empty frame;
present, it answers the first POLL by NULL and then exchanges packets. Of what happens in both piconets at the
same time the first one's comes first.
"""

from collections import deque
from dataclasses import dataclass, field

from btqueue.baseband import SLOT_S
from btqueue.network.ring_piconet.ring import Ring

from .plain_peripheral import Packet, Peripheral


@dataclass
class Piconet:
    """A central, its peripherals, and its place for the bridge.

    Attributes:
        ring: how often a peripheral is polled.
        bridge_limit: most frames of an exchange with the bridge.
        exchanges: how many of them make a stay.
        late: a bridge that leaves the other piconet just now is too late to be polled.
        peripherals: in the order of the cycle.
        waiting: packets at the central for the bridge.
        held: packets on the bridge for this piconet.
        slot: up to when the piconet has been followed.
        cycles, data_slots: since the beginning.
    """

    ring: Ring
    bridge_limit: int
    exchanges: int
    late: bool
    peripherals: list[Peripheral]
    waiting: deque[Packet] = field(default_factory=deque)
    held: deque[Packet] = field(default_factory=deque)
    slot: int = 0
    cycles: int = 0
    data_slots: int = 0

    @property
    def now(self) -> float:
        """The same in seconds."""
        return self.slot * SLOT_S

    def stay(self, since: int, beyond: "Piconet") -> int:
        """Follow the piconet until the bridge, here from slot `since` on, leaves it; return when."""
        exchanges = 0
        while exchanges < self.exchanges:
            for peripheral in self.peripherals:
                self._visit(peripheral)
            self.cycles += 1
            present = self.slot > since or (self.slot == since and not self.late)
            self.slot += 2
            if present:
                self._exchange(beyond)
                exchanges += 1
        return self.slot

    def _visit(self, peripheral: Peripheral) -> None:
        """Visit a peripheral, which answers with what it had ready."""
        for _ in range(self.ring.limit):
            peripheral.catch_up(self.now)
            polled = not peripheral.downlink
            self._spend(0 if polled else peripheral.downlink[0].slots)
            peripheral.catch_up(self.now)
            answered = bool(peripheral.uplink)
            if not polled:
                peripheral.arrive(self.now)
            self._spend(peripheral.uplink[0].slots if answered else 0)
            if answered:
                peripheral.catch_up(self.now)
                packet = peripheral.depart(self.now)
                self.waiting.append(Packet(packet.slots, packet.segment, self.now))
            elif polled:
                return

    def _exchange(self, beyond: "Piconet") -> None:
        """Exchange packets with the bridge, up to its limit or an empty frame."""
        for _ in range(self.bridge_limit):
            polled = not self.waiting
            self._spend(0 if polled else self.waiting[0].slots)
            if not polled:
                packet = self.waiting.popleft()
                beyond.held.append(Packet(packet.slots, packet.segment, self.now))
            self._spend(self.held[0].slots if self.held else 0)
            if self.held:
                packet = self.held.popleft()
                target = self.peripherals[packet.segment.flow.pair]
                target.downlink.append(Packet(packet.slots, packet.segment, self.now))
            elif polled:
                return

    def _spend(self, slots: int) -> None:
        self.slot += max(slots, 1)
        self.data_slots += slots


@dataclass
class Air:
    """Both piconets; `here` is the one that the bridge is in, since slot `since`."""

    piconets: tuple[Piconet, Piconet]
    here: int = 0
    since: int = -1

    def step(self) -> None:
        """Follow the bridge through its next stay."""
        beyond = 1 - self.here
        self.since = self.piconets[self.here].stay(self.since, self.piconets[beyond])
        self.here = beyond
