"""The stations of a bulk transfer as exact recursions: a shared medium, and a polled piconet.

Both are deterministic. Of ARQ only the mean is left: the transmissions of a packet follow the geometric law
at the points of a golden-ratio sequence, which gives any row of packets nearly its mean number. How much the
true number varies is added to the round trips afterwards (`bulk_transfer`).
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf, log1p, sqrt

from btqueue.baseband import SLOT_S
from btqueue.network.bulk_transfer.path import Layout, MediumPath, OutsidePort, RadioPort

GOLDEN_RATIO = (sqrt(5.0) - 1.0) / 2.0
NOBODY = -1


@dataclass(slots=True)
class Travelling:
    """A segment or acknowledgement on its way: `route[hop]` is the port that it is at or goes to next.

    `content` is an acknowledgement, or nothing; `parts` counts its packets that are still under way.
    """

    flow: int
    layout: Layout
    route: tuple[int, ...]
    number: int
    stamp: float
    content: tuple | None
    hop: int = 0
    parts: int = 0
    damaged: bool = False


Crossed = Callable[[Travelling, float], None]


class Medium:
    """A transmitter that serves its ports in turn, one packet at a time; `time` is when it is done (s)."""

    def __init__(self, path: MediumPath, ports: list[OutsidePort]) -> None:
        """Nothing waits."""
        self.path, self.ports = path, ports
        self.queues: list[deque[Travelling]] = [deque() for _ in range(path.ports)]
        self.serving, self.turn, self.time = NOBODY, 0, inf

    def offer(self, place: int, item: Travelling, now: float) -> bool:
        """Queue a packet; return False if there is no place. The one on the wire takes none."""
        queue = self.queues[place]
        if len(queue) - (self.serving == place) >= self.ports[place].places:
            return False
        queue.append(item)
        if self.serving == NOBODY:
            self._start(now)
        return True

    def finish(self) -> tuple[Travelling, float]:
        """End the transmission in progress; return the packet and when it is at the far side (s)."""
        place, now = self.serving, self.time
        item = self.queues[place].popleft()
        self._start(now)
        return item, now + self.ports[place].delay_s

    def _start(self, now: float) -> None:
        count = self.path.ports
        for step in range(count):
            place = (self.turn + step) % count
            if self.queues[place]:
                self.serving, self.turn = place, (place + 1) % count
                size = self.queues[place][0].layout.ip_bytes + self.path.header_bytes
                self.time = now + 8 * size / self.path.bits_per_s
                return
        self.serving, self.time = NOBODY, inf


@dataclass(slots=True)
class Packet:
    """A baseband packet in a queue; it leaves with its last transmission."""

    item: Travelling
    slots: int
    carried: int
    transmissions: int


@dataclass
class RadioQueue:
    """The queue of one direction of a radio link."""

    port: RadioPort
    packets: deque[Packet] = field(default_factory=deque)
    seen: int = 0

    def transmissions(self, error_rate: float) -> int:
        """Return how often the next packet has to be sent: the geometric law at a golden-ratio sequence."""
        if error_rate == 0.0:
            return 1
        self.seen += 1
        return 1 + int(log1p(-((self.seen * GOLDEN_RATIO) % 1.0)) / log1p(error_rate - 1.0))


class Piconet:
    """A central that polls its members, frame by frame; `time` is when its state changes next (s).

    A frame is a packet down, or POLL, and the packet up, or NULL, that answers it. With every queue empty the
    visits of two slots go on unseen until a packet comes (`time` is infinite).
    """

    def __init__(
        self, members: int, discipline: str, frames: int, node_bytes: int | None, crossed: Crossed
    ) -> None:
        """Nothing waits; the first visit begins at time 0."""
        self.members, self.fair_exhaustive, self.frames = members, discipline == "fep", frames
        self.node_bytes, self.crossed = node_bytes, crossed
        self.down: list[RadioQueue] = []
        self.up: list[RadioQueue] = []
        self.held: dict[int, int] = {}
        self.active = [True] * members
        self.station = self.frame = self.waiting = self.visits = self.data_slots = 0
        self.phase = "frame"
        self.sent: Packet | None = None
        self.reply: Packet | None = None
        self.idle_since = 0.0
        self.time = inf

    def offer(self, queue: RadioQueue, item: Travelling, now: float) -> None:
        """Cut a segment into packets and queue them; what finds no place damages it."""
        node = queue.port.node
        size = item.layout.frame_bytes
        if self.node_bytes is not None and self.held.get(node, 0) + size > self.node_bytes:
            item.damaged = True
            return
        if self.time == inf:
            self._wake(now)
        self.held[node] = self.held.get(node, 0) + size
        for kind, carried in item.layout.packets:
            if queue.port.places is not None and len(queue.packets) >= queue.port.places:
                item.damaged = True
                self.held[node] -= carried
                continue
            times = queue.transmissions(queue.port.error_rates[kind])
            queue.packets.append(Packet(item, kind.slots, carried, times))
            self.waiting += 1
            item.parts += 1

    def play(self, until: float) -> None:
        """Go on by one half-frame, or over visits to members without packets that end before `until`."""
        now = self.time
        down, up = self.down[self.station].packets, self.up[self.station].packets
        if self.phase == "frame":
            if not self.waiting:
                self.idle_since, self.time = now, inf
            elif not down and not up and now + 2 * SLOT_S < until:
                self._pass_idle(until)
            else:
                self.sent = down[0] if down else None
                self.phase, self.time = "answer", now + self._duration(self.sent)
        elif self.phase == "answer":
            # The peripheral answers with what it had ready before this packet.
            self.reply = up[0] if up else None
            self.phase, self.time = "end", now + self._duration(self.reply)
            if self.sent is not None:
                self._receive(self.down[self.station], now)
        else:
            self.phase = "frame"
            null = self.sent is None and self.reply is None
            answered = self.reply is not None
            station = self.station
            if answered:
                self._receive(self.up[station], now)
            self._end_frame(null)

    def _pass_idle(self, until: float) -> None:
        """Visit members without packets, as long as the visits end in time."""
        station = self.station
        while not self.down[station].packets and not self.up[station].packets:
            if self.time + 2 * SLOT_S >= until:
                return
            self.time += 2 * SLOT_S
            self._end_frame(null=True)
            station = self.station

    def visits_by(self, now: float) -> int:
        """Return the visits so far, those of a sleeping central included."""
        asleep = self.time == inf
        return self.visits + (int((now - self.idle_since) / (2 * SLOT_S)) if asleep else 0)

    def _duration(self, packet: Packet | None) -> float:
        if packet is None:
            return SLOT_S
        self.data_slots += packet.slots
        return packet.slots * SLOT_S

    def _receive(self, queue: RadioQueue, now: float) -> None:
        packet = queue.packets[0]
        packet.transmissions -= 1
        if packet.transmissions:
            return
        queue.packets.popleft()
        self.waiting -= 1
        self.held[queue.port.node] -= packet.carried
        item = packet.item
        item.parts -= 1
        if not item.parts:
            self.crossed(item, now)

    def _end_frame(self, null: bool) -> None:
        self.frame += 1
        if not null and self.frame < self.frames:
            return
        self.visits += 1
        self.frame = 0
        if self.fair_exhaustive:
            self.active[self.station] = not null
            self.station = self._next_active()
        else:
            self.station = (self.station + 1) % self.members

    def _next_active(self) -> int:
        """Fair exhaustive polling: the next member with data down, or whose last visit brought something."""
        for place in range(self.members):
            self.active[place] = self.active[place] or bool(self.down[place].packets)
        if not any(self.active):
            self.active = [True] * self.members
        order = ((self.station + step) % self.members for step in range(1, self.members + 1))
        return next(place for place in order if self.active[place])

    def _wake(self, now: float) -> None:
        """Find the half-frame of the idle visit that is in progress."""
        passed = int((now - self.idle_since) / (2 * SLOT_S))
        start = self.idle_since + passed * 2 * SLOT_S
        self.visits += passed
        self.station = (self.station + passed) % self.members
        self.sent = self.reply = None
        self.frame = 0
        early = now < start + SLOT_S
        self.phase, self.time = ("answer", start + SLOT_S) if early else ("end", start + 2 * SLOT_S)
