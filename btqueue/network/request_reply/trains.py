"""CentaurusComm on the way between client and server: sizes, and how long trains of its packets take.

A *train* is what an end hands over at once (or at the pace of its worker): control messages and data packets.
"""

from dataclasses import dataclass

import numpy as np

from btqueue.network.request_reply.path import NS, UDP_IP_HEADER_BYTES, Path, pieces_of
from btqueue.network.request_reply.route import FREE, Chain, Form, Way
from btqueue.network.request_reply.way import Timetable
from btqueue.scenario import Scenario

Train = list[tuple[Form, int]]
"""Sizes, and when each is handed over (ns after the first)."""

POINTS = 400
"""Points of the integral over processing delays."""


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
    headers = UDP_IP_HEADER_BYTES + transport.centaurus_header_bytes
    sizes = (traffic.request_bytes, traffic.reply_bytes, traffic.goodbye_bytes)
    pieces = [pieces_of(size, transport.centaurus_packet_bytes) for size in sizes]
    forms = {piece: path.form(piece + headers) for message in pieces for piece in message}
    return Objects(
        way=path.way,
        messages=tuple(tuple(forms[piece] for piece in message) for message in pieces),
        control=path.form(transport.centaurus_control_bytes + UDP_IP_HEADER_BYTES),
        worker_ns=round(transport.centaurus_worker_s * NS),
        jitter_ns=round(scenario.run.jitter_s * NS),
    )


def send(table: Timetable, direction: int, train: Train, chain: Chain, answer: Form | None = None) -> Chain:
    """Hand a train over now and go on until its last packet has arrived; return that packet's chain.

    `answer`: when the first packet (OBJ) arrives, the far end sends this one the other way.
    """
    begun, last = table.now, len(train) - 1
    for place, (form, offset) in enumerate(train):
        table.hand(direction, form, (begun, direction, place), chain, offset)
    while True:
        kind, what = table.step()
        if kind == "sent":
            kind, what = table.go_on(what)
        if kind == "handed":
            parcel, outcomes = what
            table.release(parcel, middle(outcomes))
        if kind == "arrived" and what.content[:2] == (begun, direction):
            if what.content[2] == last:
                return what.chain
            if what.content[2] == 0 and answer is not None:
                table.hand(1 - direction, answer, (begun, 1 - direction, 0), what.chain)


def middle(outcomes: list[tuple[float, int]]) -> int:
    """Return the outcome in the middle of the law."""
    total = 0.0
    for probability, delay in outcomes:
        total += probability
        if total >= 0.5:
            return delay
    return outcomes[-1][1]


def transit_s(objects: Objects, direction: int, train: Train, *, answered: bool = False) -> float:
    """Return how long a train takes, alone on the way (s); `answered`: but for the answer to its OBJ."""
    table = Timetable(objects.way)
    send(table, direction, train, Chain(), objects.control if answered else None)
    return table.now / NS + held_up_s(objects, direction, train)


def held_up_s(objects: Objects, direction: int, train: Train) -> float:
    """Return by how much processing delays hold up a train beyond the mean of a single one (s).

    Every packet has a uniform delay U and none overtakes. The end of the train is the largest of U(k) + T(k),
    T(k) being what it takes from the release of the k-th packet on: exact for a train alone on its way, whose
    times form a max-plus linear system. The wait for a poll absorbs such delays.
    """
    jitter = objects.jitter_ns
    if not jitter or objects.way.polled != FREE or len(train) == 1 or objects.worker_ns:
        return 0.0
    bare = Way(objects.way.routes, objects.way.turns, objects.way.ports)
    times: list[int] = []
    for first in range(len(train)):
        table = Timetable(bare)
        send(table, direction, train[first:], Chain())
        times.append(table.now)
        if times[0] - times[-1] >= jitter:
            break
    behind = np.array([times[0] - time for time in times])
    level = (np.arange(POINTS) + 0.5) / POINTS * jitter  # of the largest, beyond T(1)
    below = np.clip((level[:, None] + behind) / jitter, 0.0, 1.0).prod(axis=1)
    return float((1.0 - below).mean() * jitter - jitter / 2) / NS
