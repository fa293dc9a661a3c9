"""The way between client and server as a timetable: outside links in a row, and at most one Bluetooth hop.

A *medium* sends one packet at a time, in turn over its ports; each port has a drop-tail buffer, and a packet
arrives a fixed delay after it has been sent. One medium may be *polled*: a central and a peripheral take
turns frame by frame, a frame being a downlink packet or POLL and an uplink packet or NULL; then the central
spends some slots with its other peripherals. Times are whole nanoseconds, and nothing is lost by chance.

What a packet owes to chance is noted with it as mean and variance: the processing delays and the repeated
radio packets on the longest path that led to its arrival. A packet that had to wait for another one inherits
that one's path (as in a max-plus linear system). A radio packet that fails is repeated in the next frame, a
geometric number of times.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, NamedTuple

NS = 1e9
"""Nanoseconds of a second."""


class Chance(NamedTuple):
    """What is random on the longest path so far: processing delays, and time (ns) of repeated packets."""

    delays: int = 0
    repeated_ns: float = 0.0
    variance: float = 0.0


NO_CHANCE = Chance()


class Form(NamedTuple):
    """A size of segment: for each medium how long it takes, or its fragments; how likely it is lost.

    Attributes:
        times_ns: for each medium, the transmission time.
        fragments: for the polled hop, (slots, probability that a transmission fails) of each packet.
        losses: probability of loss from client to server, and back.
        share: user bytes as a share of those of a full segment.
    """

    times_ns: tuple[int, ...]
    fragments: tuple[tuple[int, float], ...]
    losses: tuple[float, float]
    share: float = 1.0


class Hop(NamedTuple):
    """One hop of the route in one direction: medium, its port, buffer (packets), delay after transmission."""

    medium: int
    port: int
    buffer: int
    delay_ns: int


class Way(NamedTuple):
    """The description of the way.

    Attributes:
        routes: hops from the client to the server, and back.
        turns: for each medium its ports in the order of their turns.
        polled: the medium that is a Bluetooth hop, or None; its ports are the downlink and the uplink.
        slot_ns: a slot.
        pause_slots: slots that the central spends with its other peripherals between two frames.
        processing_ns: mean of the processing delay of a segment at its sender, which is uniform from 0.
    """

    routes: tuple[tuple[Hop, ...], tuple[Hop, ...]]
    turns: tuple[tuple[int, ...], ...]
    polled: int | None = None
    slot_ns: int = 625_000
    pause_slots: int = 0
    processing_ns: int = 0

    @property
    def cycle_ns(self) -> int:
        """Time from one idle poll to the next."""
        return (2 + self.pause_slots) * self.slot_ns


class Parcel:
    """A segment on its way: direction (0 from the client), size, what it carries, and what led to it."""

    __slots__ = ("chance", "direction", "form", "hop", "later_ns", "load")

    def __init__(self, direction: int, form: Form, load: Any, chance: Chance, later_ns: int = 0) -> None:
        """`later_ns`: by how much later than now it is handed over."""
        self.direction, self.form, self.load, self.chance, self.later_ns = (
            direction, form, load, chance, later_ns,
        )  # fmt: skip
        self.hop = 0


class Timetable:
    """What is under way, from time 0 on; `arrived` is called with each parcel at its last node."""

    def __init__(self, way: Way, arrived: Callable[[Parcel], None]) -> None:
        """Nothing is under way, and the central polls on a grid that begins at 0."""
        self.way, self.arrived, self.now = way, arrived, 0
        self._ahead: list[tuple[int, int, Callable[..., None], tuple]] = []
        self._order = 0
        self._posted: list[Parcel] = []
        count = 1 + max(port for turns in way.turns for port in turns)
        self._queues: list[deque[Parcel]] = [deque() for _ in range(count)]
        self._serving: list[int | None] = [None] * len(way.turns)
        self._turn = [0] * len(way.turns)
        self._paths = [NO_CHANCE] * len(way.turns)
        self._released = [0, 0]
        self._asleep, self._anchor, self._frame = True, 0, 0
        self._crossed = [0, 0]  # fragments across of the first segment, down and up
        self._air = [NO_CHANCE, NO_CHANCE]

    def at(self, when: int, action: Callable[..., None], *args: Any) -> None:
        """Let this happen then, behind what happens then already."""
        self._order += 1
        heappush(self._ahead, (when, self._order, action, args))

    def post(self, direction: int, form: Form, load: Any, chance: Chance, later_ns: int = 0) -> None:
        """Hand a parcel over at the end of what happens now; a sender may need time for it."""
        self._posted.append(Parcel(direction, form, load, chance, later_ns))

    def step(self) -> None:
        """Go on to what happens next."""
        self.now, _, action, args = heappop(self._ahead)
        action(*args)
        self.flush()

    def flush(self) -> None:
        """Hand over what has been posted."""
        while self._posted:
            posted, self._posted = self._posted, []
            for parcel in posted:
                self._hand_over(parcel)

    def forget_chance(self) -> None:
        """Note anew what is random on the longest path to the state of each medium."""
        self._paths = [NO_CHANCE] * len(self._paths)
        self._air = [NO_CHANCE, NO_CHANCE]

    @property
    def phase(self) -> tuple:
        """What decides how a packet that is handed over now fares: the grid of polls, and what is ahead."""
        ahead = tuple(sorted((when - self.now, action.__name__) for when, _, action, _ in self._ahead))
        grid = (self.now - self._anchor) % self.way.cycle_ns if self._asleep else self.now - self._frame
        return grid if self.way.polled is not None else 0, tuple(map(len, self._queues)), ahead

    # ------------------------------------------------------------------------------------------ links

    def _hand_over(self, parcel: Parcel) -> None:
        way, direction = self.way, parcel.direction
        if way.processing_ns:
            parcel.chance = parcel.chance._replace(delays=parcel.chance.delays + 1)
        when = self.now + parcel.later_ns + way.processing_ns
        if self._asleep and way.processing_ns and way.routes[direction][0].medium == way.polled:
            when = self._catch(direction, parcel.later_ns)
        when = self._released[direction] = max(when, self._released[direction])
        if when > self.now:
            self.at(when, self._queue, parcel)
        else:
            self._queue(parcel)

    def _queue(self, parcel: Parcel) -> None:
        hop = self.way.routes[parcel.direction][parcel.hop]
        queue = self._queues[hop.port]
        if len(queue) - (self._serving[hop.medium] == hop.port) >= hop.buffer:
            return
        queue.append(parcel)
        if hop.medium == self.way.polled:
            self._wake(parcel, hop.port)
        elif self._serving[hop.medium] is None:
            self._paths[hop.medium] = parcel.chance
            self._send_next(hop.medium)

    def _send_next(self, medium: int) -> None:
        turns, turn = self.way.turns[medium], self._turn[medium]
        self._serving[medium] = None
        for place in range(len(turns)):
            place = (turn + place) % len(turns)
            port = turns[place]
            if self._queues[port]:
                self._serving[medium], self._turn[medium] = port, (place + 1) % len(turns)
                took = self._queues[port][0].form.times_ns[medium]
                self.at(self.now + took, self._sent, medium, port)
                return

    def _sent(self, medium: int, port: int) -> None:
        parcel = self._queues[port].popleft()
        parcel.chance = self._paths[medium]
        self._send_next(medium)
        self._go_on(parcel)

    def _go_on(self, parcel: Parcel) -> None:
        delay = self.way.routes[parcel.direction][parcel.hop].delay_ns
        if delay:
            self.at(self.now + delay, self._arrive, parcel)
        else:
            self._arrive(parcel)

    def _arrive(self, parcel: Parcel) -> None:
        parcel.hop += 1
        if parcel.hop == len(self.way.routes[parcel.direction]):
            self.arrived(parcel)
        else:
            self._queue(parcel)

    # ------------------------------------------------------------------------------------- polled hop

    def _port(self, up: int) -> int:
        assert self.way.polled is not None
        return self.way.turns[self.way.polled][up]

    def _slots(self, up: int) -> int:
        queue = self._queues[self._port(up)]
        return queue[0].form.fragments[self._crossed[up]][0] if queue else 0

    def _catch(self, direction: int, later_ns: int) -> int:
        """Return when a segment is handed over that waits for a poll: only which poll it catches matters.

        The grid of polls moves to the mean of the polls caught, so that what follows is in phase with it.
        """
        way, cycle, start = self.way, self.way.cycle_ns, self.now + later_ns
        longest = 2 * way.processing_ns
        up = way.routes[direction][0].port == self._port(1)
        first = self._anchor + up * way.slot_ns
        first += cycle * ((start - first) // cycle + 1)
        mean, since, due = 0.0, start, first
        while since < start + longest:
            until = min(due, start + longest)
            mean += due * (until - since) / longest
            since, due = until, due + cycle
        self._anchor += round(mean - first) % cycle
        return max(start, round(mean) - way.slot_ns // 2)

    def _wake(self, parcel: Parcel, port: int) -> None:
        """A parcel has come: go on with polling, in the middle of the idle visit in progress."""
        cycle, slot = self.way.cycle_ns, self.way.slot_ns
        if len(self._queues[port]) == 1:
            absorbs = 2 * self.way.processing_ns <= cycle  # waiting for the poll absorbs a processing delay
            up = port == self._port(1)
            self._air[up] = parcel.chance._replace(delays=0) if absorbs else parcel.chance
        if not self._asleep:
            return
        self._asleep = False
        into = (self.now - self._anchor) % cycle
        self._frame = self.now - into
        if into < slot:
            self.at(self._frame + slot, self._answer, 0)
        elif into < 2 * slot:
            self.at(self._frame + 2 * slot, self._end_frame, 0)
        else:
            self.at(self._frame + cycle, self._start_frame)

    def _start_frame(self) -> None:
        slots = self._slots(0)
        if not slots and not self._queues[self._port(1)]:
            self._asleep, self._anchor = True, self.now
            return
        self._frame = self.now
        self.at(self.now + max(1, slots) * self.way.slot_ns, self._answer, slots)

    def _answer(self, down: int) -> None:
        """The downlink half is over: the peripheral answers with what it had ready; then receive."""
        slots = self._slots(1)
        self.at(self.now + max(1, slots) * self.way.slot_ns, self._end_frame, slots)
        if down:
            self._cross(0, down + max(1, slots))

    def _end_frame(self, up: int) -> None:
        """The frame is over: start the next one with what waits; then receive."""
        frame, whole = (self.now - self._frame) // self.way.slot_ns, None
        if up:
            whole = self._taken(1, frame)
        if self.way.pause_slots:
            self.at(self.now + self.way.pause_slots * self.way.slot_ns, self._start_frame)
        else:
            self._start_frame()
        if whole is not None:
            self._go_on(whole)

    def _cross(self, up: int, frame_slots: int) -> None:
        whole = self._taken(up, frame_slots)
        if whole is not None:
            self._go_on(whole)

    def _taken(self, up: int, frame_slots: int) -> Parcel | None:
        """Take a fragment off its queue; return its segment if that is whole."""
        queue = self._queues[self._port(up)]
        parcel, air = queue[0], self._air[up]
        failing = parcel.form.fragments[self._crossed[up]][1]
        if failing:
            again = (frame_slots + self.way.pause_slots) * self.way.slot_ns
            more, odds = failing / (1.0 - failing), failing / (1.0 - failing) ** 2
            air = Chance(air.delays, air.repeated_ns + more * again, air.variance + odds * again**2)
            self._air[up] = air
        self._crossed[up] += 1
        if self._crossed[up] < len(parcel.form.fragments):
            return None
        self._crossed[up] = 0
        queue.popleft()
        parcel.chance = air
        return parcel
