"""Two polled piconets and the bridge between them, followed visit by visit; nothing here is random.

While the bridge is in one piconet the other knows nothing of it: each runs by itself from the time it was
left to the time it is left again. Visits and frames follow the rules of E-limited polling: a frame is a
packet or POLL, then a packet or NULL; a visit ends with its limit or when POLL is answered by NULL. The
bridge is polled last in the cycle. Absent, it wastes an empty frame; present, it answers the first POLL by
NULL and then exchanges packets. Times are in seconds.
"""

from collections import deque
from dataclasses import dataclass, field
from math import floor

from btqueue.baseband import SLOT_S
from btqueue.network.scatternet.network import EMPTY_FRAME_S, PICONETS, Scatternet
from btqueue.network.scatternet.peripheral import Packet, Peripheral


@dataclass
class Piconet:
    """A central, its peripherals, and its place for the bridge.

    Attributes:
        net: the numbers of the scatternet.
        peripherals: in the order of the cycle.
        waiting: packets at the central for the bridge.
        held: packets on the bridge for this piconet.
        now: up to when the piconet has been followed (s).
        cycles, data_slots: since the last `forget`.
        time_in_waiting, time_in_held: sums of the times that packets spent in these two (s).
    """

    net: Scatternet
    peripherals: list[Peripheral]
    waiting: deque[Packet] = field(default_factory=deque)
    held: deque[Packet] = field(default_factory=deque)
    now: float = 0.0
    cycles: int = 0
    data_slots: int = 0
    time_in_waiting: float = 0.0
    time_in_held: float = 0.0

    def forget(self) -> None:
        """Begin the sums anew."""
        self.cycles = self.data_slots = 0
        self.time_in_waiting = self.time_in_held = 0.0

    def stay(self, since: float, beyond: "Piconet") -> float:
        """Follow the piconet until the bridge, here from `since` on, leaves it; return when."""
        exchanges = 0
        while exchanges < self.net.exchanges:
            self._skip_idle_cycles(since)
            for peripheral in self.peripherals:
                self._visit(peripheral)
            self.cycles += 1
            present = self.now >= since
            self.now += EMPTY_FRAME_S
            if present:
                self._exchange(beyond)
                exchanges += 1
        return self.now

    def _skip_idle_cycles(self, since: float) -> None:
        """Pass over whole cycles in which nothing can happen."""
        if any(peripheral.downlink or peripheral.uplink for peripheral in self.peripherals):
            return
        until = min(since, *(peripheral.next_event for peripheral in self.peripherals))
        cycles = floor((until - self.now) / self.net.idle_cycle_s)
        if cycles > 0:
            self.now += cycles * self.net.idle_cycle_s
            self.cycles += cycles

    def _visit(self, peripheral: Peripheral) -> None:
        for _ in range(self.net.ring.limit):
            peripheral.catch_up(self.now)
            polled = not peripheral.downlink
            if polled:
                self.now += SLOT_S
            else:
                self._spend(peripheral.downlink[0].slots)
                peripheral.arrive(self.now)
            peripheral.catch_up(self.now)
            if peripheral.uplink:
                self._spend(peripheral.uplink[0].slots)
                packet = peripheral.depart(self.now)
                self.waiting.append(Packet(packet.slots, packet.segment, self.now))
            else:
                self.now += SLOT_S
                if polled:
                    return

    def _exchange(self, beyond: "Piconet") -> None:
        """Exchange packets with the bridge, up to its limit or an empty frame."""
        for _ in range(self.net.bridge_limit):
            polled = not self.waiting
            if polled:
                self.now += SLOT_S
            else:
                self._spend(self.waiting[0].slots)
                self._take(beyond)
            if self.held:
                self._spend(self.held[0].slots)
                self._give()
            else:
                self.now += SLOT_S
                if polled:
                    return

    def _take(self, beyond: "Piconet") -> None:
        """The bridge takes a packet for the piconet beyond it; it has room for all of a stay."""
        packet = self.waiting.popleft()
        self.time_in_waiting += self.now - packet.since
        beyond.held.append(Packet(packet.slots, packet.segment, self.now))

    def _give(self) -> None:
        """The bridge gives a packet to the central, which queues it for its peripheral."""
        packet = self.held.popleft()
        self.time_in_held += self.now - packet.since
        target = self.peripherals[packet.segment.flow.pair]
        target.downlink.append(Packet(packet.slots, packet.segment, self.now))

    def _spend(self, slots: int) -> None:
        self.now += slots * SLOT_S
        self.data_slots += slots


@dataclass
class Air:
    """Both piconets; `here` is the one that the bridge is in, since `since` (s)."""

    piconets: tuple[Piconet, ...]
    here: int = 0
    since: float = 0.0

    def step(self) -> None:
        """Follow the bridge through its next stay."""
        beyond = (self.here + 1) % PICONETS
        piconet = self.piconets[self.here]
        self.since = piconet.stay(self.since, self.piconets[beyond]) + piconet.net.switch_s
        self.here = beyond

    @property
    def now(self) -> float:
        """Up to when both piconets have been followed (s)."""
        return min(piconet.now for piconet in self.piconets)
