"""CentaurusComm on the way between client and server: sizes, and how long trains of its packets take.

A *train* is what an end hands over at once (or at the pace of its worker): control messages and data packets.
"""

from dataclasses import dataclass

import numpy as np

from btqueue.network.answers import NoConvergence
from btqueue.network.request_reply.path import NS, Path, pieces_of
from btqueue.network.request_reply.playing import hand_train, play, play_ends, wait
from btqueue.network.request_reply.records import NONE, Net, Sizes, State, moments, net_of
from btqueue.network.request_reply.route import FREE, Form, Way
from btqueue.scenario import Scenario

Train = list[tuple[Form, int]]
"""Sizes, and when each is handed over (ns after the first)."""

POINTS = 400
"""Points of the integral over processing delays."""

AT_FIRST = np.zeros(2, np.int64)
"""The path of what has not been on any way."""

HISTORIES = 200_000
"""Room for radio packets that may fail."""


@dataclass(frozen=True)
class Objects:
    """What CentaurusComm sends for the messages of a scenario.

    Attributes:
        messages: forms of the data packets of request, reply and good-bye.
        control: form of a control message.
        worker_ns: time between two packets handed over.
    """

    way: Way
    messages: tuple[tuple[Form, ...], ...]
    control: Form
    worker_ns: int
    jitter_ns: int
    numbers: dict[Form, int]
    net: Net

    def at_rest(self) -> State:
        """Return a moment at which nothing is under way, and another one like it."""
        most = 2 * max(len(message) for message in self.messages) + 8
        return moments(self.way, Sizes(entries=2 * most, segments=most, queue=2 * most), 2)

    def require_room(self) -> None:
        """Raise NoConvergence if a list was too short for what is under way."""
        if self.net.counters["too_small"][0]:
            raise NoConvergence("more packets are under way, or repeated, than there is room for")

    def listed(self, train: Train) -> tuple[np.ndarray, np.ndarray]:
        """Return the numbers of the forms of a train, and when each is handed over."""
        return np.array([self.numbers[form] for form, _ in train]), np.array([offset for _, offset in train])

    def train(self, packets: tuple[Form, ...], *, offer: bool = False) -> Train:
        """Return the train of data packets, closed by DONE; `offer`: with OBJ in front."""
        front: Train = [(self.control, 0)] if offer else []
        data = [(form, place * self.worker_ns) for place, form in enumerate(packets)]
        return [*front, *data, (self.control, len(packets) * self.worker_ns)]

    @property
    def alone(self) -> Train:
        """The train of a single control message."""
        return [(self.control, 0)]


def objects_of(scenario: Scenario) -> Objects:
    """Return what CentaurusComm sends for the messages of the scenario."""
    traffic, transport = scenario.traffic, scenario.transport
    path = Path(scenario)
    headers = transport.header_bytes + transport.centaurus_header_bytes
    sizes = (traffic.request_bytes, traffic.reply_bytes, traffic.goodbye_bytes)
    pieces = [pieces_of(size, transport.centaurus_packet_bytes) for size in sizes]
    forms = {
        piece: path.form(piece + headers) for piece in {piece for message in pieces for piece in message}
    }
    control = path.form(transport.centaurus_control_bytes + transport.header_bytes)
    kinds, way = list(dict.fromkeys([*forms.values(), control])), path.way
    failing = any(failing for form in kinds for _, failing in form.fragments)
    return Objects(
        way=way,
        messages=tuple(tuple(forms[piece] for piece in message) for message in pieces),
        control=control,
        numbers={form: number for number, form in enumerate(kinds)},
        net=net_of(way, kinds, histories=HISTORIES if failing else 1),
        worker_ns=round(transport.centaurus_worker_s * NS),
        jitter_ns=round(scenario.run.jitter_s * NS),
    )


class Timetable:
    """What is under way of objects, from time 0 on."""

    def __init__(self, objects: Objects) -> None:
        """Nothing is."""
        self.objects, self.state = objects, objects.at_rest()

    @property
    def now(self) -> int:
        """The time (ns)."""
        return int(self.state.clocks["now"][0])

    def send(self, direction: int, train: Train, path: np.ndarray, *, answered: bool = False) -> np.ndarray:
        """Hand a train over now and go on until its last packet has arrived; return that packet's path.

        A path is the number of processing delays, and the number of a history. `answered`: when the first
        packet (OBJ) arrives, the far end sends a control message the other way.
        """
        path, objects = path.copy(), self.objects
        answer = objects.numbers[objects.control] if answered else NONE
        play(objects.net, self.state, direction, *objects.listed(train), 0, answer, path)
        objects.require_room()
        return path

    def hand(self, direction: int, train: Train) -> None:
        """Hand a train over now."""
        hand_train(self.objects.net, self.state, direction, *self.objects.listed(train))

    def wait(self, until: int) -> None:
        """Let time pass; what is under way goes on."""
        if until > self.now:
            wait(self.objects.net, self.state, until)


def transit_s(objects: Objects, direction: int, train: Train, *, answered: bool = False) -> float:
    """Return how long a train takes, alone on the way (s); `answered`: but for the answer to its OBJ."""
    table = Timetable(objects)
    table.send(direction, train, AT_FIRST, answered=answered)
    return table.now / NS + held_up_s(objects, direction, train)


def held_up_s(objects: Objects, direction: int, train: Train) -> float:
    """Return by how much processing delays hold up a train beyond the mean of a single one (s).

    Every packet has a uniform delay U and none overtakes. The end of the train is the largest of U(k) + T(k),
    T(k) being what it takes from the release of the k-th packet on: exact for a train alone on its way, whose
    times form a max-plus linear system. The wait for a poll absorbs such delays.
    """
    jitter = objects.jitter_ns
    if not jitter or objects.net.polled != FREE or len(train) == 1 or objects.worker_ns:
        return 0.0
    times = np.full(len(train), NONE)
    bare = objects.net._replace(processing_ns=0)
    play_ends(bare, objects.at_rest(), direction, *objects.listed(train), jitter, times)
    objects.require_room()
    behind = times[0] - times[times != NONE]
    level = (np.arange(POINTS) + 0.5) / POINTS * jitter  # of the largest, beyond T(1)
    below = np.clip((level[:, None] + behind) / jitter, 0.0, 1.0).prod(axis=1)
    return float((1.0 - below).mean() * jitter - jitter / 2) / NS
