"""The way between client and server: outside links in a row, possibly one Bluetooth hop, as a timetable.

A *medium* sends one packet at a time, in turn over its ports; each port has a drop-tail buffer, and a packet
arrives a fixed delay after it has been sent. A *polled* medium is a central and one of its peripherals, whose
packets (fragments of a segment) take turns frame by frame: downlink packet or POLL, uplink packet or NULL.

Given what is handed in, everything that follows is determined, up to the losses: :meth:`Timetable.step` stops
at each packet that may be lost and lets the caller decide. So a timetable can be copied where a loss is
possible, and both futures followed. Times are whole nanoseconds.

What a packet owes to chance besides loss is noted in its `Chain`: how many random processing delays and which
radio transmissions lie on the longest path that led to its arrival. A packet that had to wait for another one
inherits that one's chain (as in a max-plus linear system).
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from btqueue.network.request_reply.route import FREE, Chain, Form, Parcel, Way

SENT, ARRIVING, FRAME, ANSWER, FRAME_END, HANDED, ALARM = range(7)
"""Kinds of entries: sent by a medium, at the end of a hop, the three moments of a frame, handed to the first
hop after a processing delay, and an alarm of the caller's."""


class Timetable:
    """What is under way; `way` says between which places."""

    def __init__(self, way: Way) -> None:
        """Nothing under way, the central asleep on a grid of slots that begins at 0."""
        self.way = way
        self.now, self.order = 0, 0
        self.entries: list[tuple[int, int, int, Any]] = []
        self.queues: list[tuple[Parcel, ...]] = [()] * way.ports
        self.serving = [FREE] * len(way.turns)
        self.places = [0] * len(way.turns)
        self.forget_chains()
        self.asleep, self.anchor, self.started = True, 0, 0
        self.undecided: list[tuple[Parcel, list[tuple[float, int]]]] = []
        self.released = [0, 0]  # when the last segment of each direction was or will be handed over
        self.crossed = [0, 0]  # fragments of the first segment of each queue that are across
        self.overflows = [0, 0]

    def forget_chains(self) -> None:
        """Begin anew to note what is random: of each medium, and of both directions of the polled one."""
        self.chains = [Chain()] * (len(self.way.turns) + 2)

    def copy(self) -> "Timetable":
        """Return a timetable with the same past and its own future."""
        other = Timetable.__new__(Timetable)
        vars(other).update(vars(self))
        other.entries, other.queues = self.entries.copy(), self.queues.copy()
        other.serving, other.places, other.chains = (
            self.serving.copy(),
            self.places.copy(),
            self.chains.copy(),
        )
        other.undecided, other.released = self.undecided.copy(), self.released.copy()
        other.crossed, other.overflows = self.crossed.copy(), self.overflows.copy()
        return other

    def alarm(self, when: int, content: Any) -> None:
        """Let `step` return the content at `when` (ns)."""
        self._enter(when, ALARM, content)

    def hand(self, direction: int, form: Form, content: Any, chain: Chain, delay_ns: int = 0) -> None:
        """Hand a segment to the way now, or `delay_ns` later."""
        if self.way.processing_ns:
            chain = Chain(chain.delays + 1, chain.frames)
        parcel = Parcel(direction, form, content, 0, chain)
        outcomes = self._processing(direction)
        if len(outcomes) > 1:
            self.undecided.append((parcel, outcomes))
        else:
            self.release(parcel, outcomes[0][1] + delay_ns)

    def release(self, parcel: Parcel, delay_ns: int) -> None:
        """Let a segment enter its first hop so much later, but not before the one in front of it."""
        when = max(self.now + delay_ns, self.released[parcel.direction])
        self.released[parcel.direction] = when
        if when > self.now:
            self._enter(when, HANDED, parcel)
        else:
            self._queue(parcel)

    def _processing(self, direction: int) -> list[tuple[float, int]]:
        """Return probabilities and lengths of a processing delay: its mean, or what decides about the poll.

        Of a segment that waits for a poll only the poll matters: one outcome for each that it may catch.
        """
        mean = self.way.processing_ns
        first = self.way.routes[direction][0]
        if not mean or first.medium != self.way.polled or not self.asleep:
            return [(1.0, mean)]
        chance = first.port == self._port(True)  # the uplink's turn comes a slot after the downlink's
        due = self.now - (self.now - self.anchor) % self._cycle + chance * self.way.slot_ns
        while due <= self.now:
            due += self._cycle
        outcomes, since = [], self.now
        while since < self.now + 2 * mean:
            until = min(due, self.now + 2 * mean)
            outcomes.append(((until - since) / (2 * mean), (since + until) // 2 - self.now))
            since, due = until, due + self._cycle
        return outcomes

    def step(self) -> tuple[str, Any]:
        """Go on to the next entry; return ("arrived", parcel), ("alarm", content), nothing, or a choice.

        A choice is ("sent", parcel), which may have been lost: to let it go on, call `go_on` with it; or
        ("handed", (parcel, outcomes)), whose processing delay matters: call `release` with one of them.
        """
        if self.undecided:
            return "handed", self.undecided.pop(0)
        self.now, _, kind, what = heappop(self.entries)
        if kind == SENT:
            parcel = self._sent(what)
            if parcel.form.losses[parcel.direction][parcel.hop] > 0.0:
                return "sent", parcel
            return self.go_on(parcel)
        if kind == ARRIVING:
            return self._arrived(what)
        if kind == ALARM:
            return "alarm", what
        if kind == HANDED:
            self._queue(what)
        elif kind == FRAME:
            self._start_frame()
        elif kind == ANSWER:
            return self._answer(what)
        else:
            return self._end_frame(what)
        return "", None

    def go_on(self, parcel: Parcel) -> tuple[str, Any]:
        """Let a parcel that has been sent go on to the end of its hop; return as `step` does."""
        delay = self.way.routes[parcel.direction][parcel.hop].delay_ns
        if delay:
            self._enter(self.now + delay, ARRIVING, parcel)
            return "", None
        return self._arrived(parcel)

    def pending(self, describe: Callable[[Parcel], tuple]) -> tuple:
        """Return all that is under way but the alarms, with times from now, in canonical order.

        `describe` says of a parcel what matters of its content.
        """
        entries = sorted(
            (when - self.now, kind, repr(what) if not isinstance(what, Parcel) else str(describe(what)))
            for when, _, kind, what in self.entries
            if kind != ALARM
        )
        queues = tuple(tuple(describe(parcel) for parcel in queue) for queue in self.queues)
        grid = () if self.way.polled == FREE else (
            self.asleep, (self.now - self.anchor) % self._cycle if self.asleep else self.now - self.started,
            tuple(self.crossed),
        )  # fmt: skip
        return tuple(entries), queues, tuple(self.serving), tuple(self.places), grid

    # ------------------------------------------------------------------------------------------------ inside

    @property
    def _cycle(self) -> int:
        return (2 + self.way.pause_slots) * self.way.slot_ns

    def _enter(self, when: int, kind: int, what: Any) -> None:
        self.order += 1
        heappush(self.entries, (when, self.order, kind, what))

    def _arrived(self, parcel: Parcel) -> tuple[str, Any]:
        direction, form, content, hop, chain = parcel
        parcel = Parcel(direction, form, content, hop + 1, chain)
        if hop + 1 == len(self.way.routes[direction]):
            return "arrived", parcel
        self._queue(parcel)
        return "", None

    def _queue(self, parcel: Parcel) -> None:
        """Let the parcel wait for its next medium; drop it if the buffer is full."""
        medium, port, buffer, _ = self.way.routes[parcel.direction][parcel.hop]
        queue = self.queues[port]
        if len(queue) - (self.serving[medium] == port) >= buffer:
            self.overflows[parcel.direction] += 1
            return
        self.queues[port] = (*queue, parcel)
        if medium == self.way.polled:
            self._wake(port, parcel, not queue)
        elif self.serving[medium] == FREE:
            self.chains[medium] = parcel.chain
            self._send_next(medium)

    def _send_next(self, medium: int) -> None:
        """Begin with the next packet in turn."""
        ports = self.way.turns[medium]
        self.serving[medium] = FREE
        for step in range(len(ports)):
            place = (self.places[medium] + step) % len(ports)
            queue = self.queues[ports[place]]
            if queue:
                self.serving[medium] = ports[place]
                self.places[medium] = (place + 1) % len(ports)
                self._enter(self.now + queue[0].form.times_ns[medium], SENT, medium)
                return

    def _sent(self, medium: int) -> Parcel:
        port = self.serving[medium]
        queue = self.queues[port]
        direction, form, content, hop, _ = queue[0]
        self.queues[port] = queue[1:]
        self._send_next(medium)
        return Parcel(direction, form, content, hop, self.chains[medium])

    # ---------------------------------------------------------------------------------------- the polled hop

    def _wake(self, port: int, parcel: Parcel, first: bool) -> None:
        """Go on with polling, in the middle of the idle visit in progress."""
        if first:
            # Waiting for the poll absorbs a processing delay.
            kept = 0 if 2 * self.way.processing_ns <= self._cycle else parcel.chain.delays
            self.chains[self._air(port)] = Chain(kept, parcel.chain.frames)
        if not self.asleep:
            return
        self.asleep = False
        into = (self.now - self.anchor) % self._cycle
        start = self.now - into
        self.started = start
        if into < self.way.slot_ns:
            self._enter(start + self.way.slot_ns, ANSWER, 0)
        elif into < 2 * self.way.slot_ns:
            self._enter(start + 2 * self.way.slot_ns, FRAME_END, 0)
        else:
            self._enter(start + self._cycle, FRAME, None)

    def _port(self, up: bool) -> int:
        return self.way.turns[self.way.polled][up]

    def _air(self, port: int) -> int:
        """Return the place of the chain of a direction of the polled hop."""
        return len(self.way.turns) + (port == self._port(True))

    def _slots(self, up: bool) -> int:
        """Return the slots of the next fragment of a queue; 0 if there is none."""
        queue = self.queues[self._port(up)]
        return queue[0].form.fragments[self.crossed[up]][0] if queue else 0

    def _start_frame(self) -> None:
        if not (self._slots(False) or self._slots(True)):
            self.asleep, self.anchor = True, self.now
            return
        slots = self._slots(False)
        self.started = self.now
        self._enter(self.now + max(1, slots) * self.way.slot_ns, ANSWER, slots)

    def _answer(self, down_slots: int) -> tuple[str, Any]:
        """The downlink half is over: the peripheral answers with what it had ready; then receive."""
        slots = self._slots(True)
        self._enter(self.now + max(1, slots) * self.way.slot_ns, FRAME_END, slots)
        return self._receive(False, down_slots + max(1, slots)) if down_slots else ("", None)

    def _end_frame(self, up_slots: int) -> tuple[str, Any]:
        """The frame is over: start the next one with what waits; then receive."""
        length = (self.now - self.started) // self.way.slot_ns
        arrived = None
        if up_slots:
            arrived = self._take(True, length)
        if self.way.pause_slots:
            self._enter(self.now + self.way.pause_slots * self.way.slot_ns, FRAME, None)
        else:
            self._start_frame()
        return self.go_on(arrived) if arrived else ("", None)

    def _receive(self, up: bool, frame_slots: int) -> tuple[str, Any]:
        parcel = self._take(up, frame_slots)
        return self.go_on(parcel) if parcel else ("", None)

    def _take(self, up: bool, frame_slots: int) -> Parcel | None:
        """Take a fragment off its queue; return its segment if that is whole now."""
        port = self._port(up)
        air = self._air(port)
        first, *rest = self.queues[port]
        failing = first.form.fragments[self.crossed[up]][1]
        if failing > 0.0:
            # a transmission that fails is repeated in the next frame
            chain = self.chains[air]
            slots = frame_slots + self.way.pause_slots
            self.chains[air] = Chain(chain.delays, (*chain.frames, (failing, slots)))
        self.crossed[up] += 1
        if self.crossed[up] < len(first.form.fragments):
            return None
        self.crossed[up] = 0
        self.queues[port] = tuple(rest)
        return first._replace(chain=self.chains[air])
