"""Bulk transfers without random loss: the orbit of their windows and queues, segment by segment.

With greedy sources and no loss but overflow nothing is random: windows grow until a buffer overflows, fall,
and grow again, or stay at the receive window. The orbit is followed until two halves of it have the same
averages. A host's processing jitter is a golden-ratio sequence with the right mean, which also keeps flows
from locking to each other's phase for ever.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf

from btqueue.network.bulk_transfer.path import FlowPath, OutsidePort, Paths
from btqueue.network.bulk_transfer.receiver import Acknowledgement, Receiver
from btqueue.network.bulk_transfer.sender import Sender
from btqueue.network.bulk_transfer.sessions import Session, Step
from btqueue.network.bulk_transfer.stations import GOLDEN_RATIO, Medium, Piconet, RadioQueue, Travelling


@dataclass
class Tally:
    """What is added up for a flow: user bytes, segments at the end of their way, and round trips (s)."""

    sent_bytes: int = 0
    delivered_bytes: int = 0
    ended: int = 0
    lost: int = 0
    rtts: list[float] = field(default_factory=list)


@dataclass
class Connection:
    """A flow with its two ends."""

    path: FlowPath
    sender: Sender
    receiver: Receiver
    tally: Tally = field(default_factory=Tally)
    alarm: float = inf
    ack_alarm: float = inf


class Orbit:
    """Flows on their paths; `now` is the time (s)."""

    def __init__(
        self,
        paths: Paths,
        new_sender: Callable[[FlowPath], Sender],
        new_receiver: Callable[[], Receiver],
        phase: float = 0.0,
    ) -> None:
        """Every flow starts at its time with empty queues; `phase` begins the sequence of the jitter."""
        self.paths, self.phase, self.now, self.order = paths, phase, 0.0, 0
        self.events: list[tuple[float, int, Callable, object]] = []
        self.piconet = Piconet(paths.members, paths.discipline, paths.frames, paths.node_bytes, self._crossed)
        self.media: list[Medium] = []
        outside = [port for port in paths.ports if isinstance(port, OutsidePort)]
        for index, medium in enumerate(paths.media):
            own = sorted((p for p in outside if p.medium == index), key=lambda p: p.place)
            self.media.append(Medium(medium, own))
        self.radio = {
            number: RadioQueue(port)
            for number, port in enumerate(paths.ports)
            if not isinstance(port, OutsidePort)
        }
        for queue in self.radio.values():
            (self.piconet.down if queue.port.down else self.piconet.up).append(queue)
        self.outbox: dict[int, tuple[int, float]] = {}
        self.connections = [Connection(path, new_sender(path), new_receiver()) for path in paths.flows]
        self.sessions: dict[int, Session] = {}
        for index, path in enumerate(paths.flows):
            if path.session is not None:
                session = Session(index, path.session)
                self.sessions |= {index: session, path.session.server: session}
            self._at(path.start_s, self._begin, index)
        for index in self.sessions:
            self.connections[index].sender.written = 0

    def play(self, segments: int, longest_s: float) -> None:
        """Play until so many more segments have ended their way, or so much time has gone."""
        target = self._ended() + segments
        end = self.now + longest_s
        while self._ended() < target and self.now < end:
            for _ in range(50):
                self._step()

    def _ended(self) -> int:
        return sum(connection.tally.ended for connection in self.connections)

    def _step(self) -> None:
        first = self.events[0][0] if self.events else inf
        if self.piconet.time <= first:
            self.now = self.piconet.time
            self.piconet.play(first)
            return
        self.now, _, action, argument = heappop(self.events)
        action(argument)

    def _at(self, time: float, action: Callable, argument: object) -> None:
        self.order += 1
        heappush(self.events, (time, self.order, action, argument))

    def _begin(self, index: int) -> None:
        session = self.sessions.get(index)
        if session is None:
            self._emit(index, self.connections[index].sender.send(self.now))
        elif index == session.client:
            self._write(session.begin(self.now))

    def _write(self, step: Step) -> None:
        """An application writes; nothing written is the pause before the next request."""
        sender = self.connections[step.flow].sender
        if not step.segments:
            self._at(self.now + self.sessions[step.flow].path.pause_s, self._begin, step.flow)
            return
        sender.written += step.segments
        self._emit(step.flow, sender.send(self.now))

    def _emit(self, index: int, numbers: list[int]) -> None:
        """Put segments of a flow on their way, and keep its alarm."""
        connection = self.connections[index]
        path = connection.path
        for number in numbers:
            layout = path.layouts[number % len(path.layouts)]
            connection.tally.sent_bytes += layout.user_bytes
            self._leave(path.source, Travelling(index, layout, path.forth, number, self.now, None))
        deadline = connection.sender.timer.deadline
        if deadline < connection.alarm:
            connection.alarm = deadline
            self._at(deadline, self._alarm, index)

    def _leave(self, node: int, item: Travelling) -> None:
        """Through the processing delay of the host, which keeps the order, to the first port."""
        if not self.paths.jitter_s:
            self._enter(item)
            return
        count, last = self.outbox.get(node, (0, 0.0))
        delay = self.paths.jitter_s * ((self.phase + (count + 1) * GOLDEN_RATIO) % 1.0)
        release = max(last, self.now + delay)
        self.outbox[node] = (count + 1, release)
        self._at(release, self._enter, item)

    def _enter(self, item: Travelling) -> None:
        port = self.paths.ports[item.route[item.hop]]
        if isinstance(port, OutsidePort):
            medium = self.media[port.medium]
            idle = medium.time == inf
            if not medium.offer(port.place, item, self.now):
                item.damaged = True
            elif idle:
                self._at(medium.time, self._transmitted, medium)
        else:
            self.piconet.offer(self.radio[item.route[item.hop]], item, self.now)
        if item.damaged and not item.parts:
            self._end(item)

    def _transmitted(self, medium: Medium) -> None:
        item, arrival = medium.finish()
        if medium.time < inf:
            self._at(medium.time, self._transmitted, medium)
        if arrival > self.now:
            self._at(arrival, self._arrive, item)
        else:
            self._arrive(item)

    def _crossed(self, item: Travelling, now: float) -> None:
        self.now = now
        self._arrive(item)

    def _arrive(self, item: Travelling) -> None:
        """At the far side of a link: on to the next, or up."""
        item.hop += 1
        if item.damaged or item.hop == len(item.route):
            self._end(item)
        else:
            self._enter(item)

    def _end(self, item: Travelling) -> None:
        """The way is over: a segment is lost, or delivered; an acknowledgement goes to the sender."""
        connection = self.connections[item.flow]
        if isinstance(item.content, Acknowledgement):
            if not item.damaged:
                self._acknowledged(item.flow, item.content)
            return
        connection.tally.ended += 1
        connection.tally.lost += item.damaged
        if item.damaged:
            return
        before = connection.receiver.expected
        answer = connection.receiver.take(item.number, item.stamp, self.now)
        layouts = connection.path.layouts
        for number in range(before, connection.receiver.expected):
            connection.tally.delivered_bytes += layouts[number % len(layouts)].user_bytes
        # What the application says because of it leaves before the acknowledgement.
        if item.flow in self.sessions and connection.receiver.expected > before:
            step = self.sessions[item.flow].delivered(item.flow, connection.receiver.expected, self.now)
            if step is not None:
                self._write(step)
        if answer is not None:
            self._answer(item.flow, answer)
        elif connection.receiver.deadline < connection.ack_alarm:
            connection.ack_alarm = connection.receiver.deadline
            self._at(connection.ack_alarm, self._ack_alarm, item.flow)

    def _answer(self, index: int, answer: Acknowledgement) -> None:
        path = self.connections[index].path
        self._leave(path.target, Travelling(index, self.paths.ack, path.back, 0, self.now, answer))

    def _acknowledged(self, index: int, answer: Acknowledgement) -> None:
        connection = self.connections[index]
        numbers, rtt = connection.sender.acknowledge(answer.number, answer.echo, answer.blocks, self.now)
        if rtt is not None:
            connection.tally.rtts.append(rtt)
        self._emit(index, numbers)

    def _alarm(self, index: int) -> None:
        """The retransmission timer, unless it has been put off since."""
        connection = self.connections[index]
        connection.alarm = inf
        late = connection.sender.timer.deadline <= self.now
        self._emit(index, connection.sender.expire(self.now) if late else [])

    def _ack_alarm(self, index: int) -> None:
        """The timer of the delayed acknowledgement, unless another one has left since."""
        connection = self.connections[index]
        connection.ack_alarm = inf
        deadline = connection.receiver.deadline
        if deadline <= self.now:
            self._answer(index, connection.receiver.acknowledge())
        elif deadline < inf:
            connection.ack_alarm = deadline
            self._at(deadline, self._ack_alarm, index)
