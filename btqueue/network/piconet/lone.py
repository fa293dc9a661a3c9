"""How a lone segment and its acknowledgement cross an idle piconet, slot by slot on average.

The central visits its stations in turn. A frame is a packet or POLL and a packet or NULL; a visit ends with
its limit of frames, or with a frame that was empty. With nobody else sending, every step follows from this
order but for the moment in the cycle at which the segment comes, which is evenly distributed. Two rules
decide whether an acknowledgement just misses a visit: a station answers a packet with a packet that it had
before, and the central has decided on the next frame when a packet ends.
"""

from typing import NamedTuple

from btqueue.network.piconet.ports import UP, Port
from btqueue.network.piconet.trains import Transmissions

EMPTY_FRAME = 2.0
"""POLL and NULL (slots)."""
RARE = 1e-6
"""Probability below which a step is left out."""


class Step(NamedTuple):
    """A part of the way.

    Attributes:
        slots: that it takes if it comes about.
        away_from: port whose next visit is waited for; none while the segment's own frames are sent.
        visits: of each other station while that is waited for, on average.
        probability: that it comes about.
    """

    slots: float
    away_from: Port | None = None
    visits: float = 0.0
    probability: float = 1.0


class Crossing(NamedTuple):
    """The steps until a segment has arrived, and those until its acknowledgement has."""

    data: tuple[Step, ...]
    answer: tuple[Step, ...]


class Waits(NamedTuple):
    """Waits for the visits of a port.

    Attributes:
        slots: of them, and of the own frames before each, during which the others' queues fill.
        visits: of each other station in these slots.
    """

    slots: float
    visits: float


class Stretch(NamedTuple):
    """A way as others' traffic finds it.

    Attributes:
        by_port: slots that the traffic of others stretches.
        rest: own frames after the last wait.
    """

    by_port: dict[Port, Waits]
    rest: float


def stretch(steps: tuple[Step, ...]) -> Stretch:
    """Sort the slots of a way by the visits that they wait for."""
    by_port: dict[Port, Waits] = {}
    pending = 0.0
    for step in steps:
        if step.away_from is None:
            pending += step.slots
            continue
        before = by_port.get(step.away_from, Waits(0.0, 0.0))
        by_port[step.away_from] = Waits(
            before.slots + step.probability * (step.slots + pending),
            before.visits + step.probability * step.visits,
        )
        pending *= 1.0 - step.probability
    return Stretch(by_port, pending)


def crossing(
    ports: tuple[Port, ...],
    data: Transmissions,
    ack: Transmissions | None,
    *,
    stations: int,
    limit: int,
    whole: bool,
) -> Crossing:
    """Return the way of a lone segment.

    Args:
        ports: that its data cross, one or two; the acknowledgement crosses the opposite ones.
        data: transmissions of its train.
        ack: transmissions of the acknowledgement; none if nothing comes back.
        stations: of the piconet.
        limit: most frames of a visit.
        whole: whether the central puts a train together before it passes it on.
    """
    idle = Idle(stations, limit, whole)
    wait = Step(float(stations), ports[0], visits=0.5)  # half a cycle of empty frames
    there = (wait, *idle.train(ports, data))
    if ack is None:
        return Crossing(there, ())
    back = tuple(Port(port.station, 1 - port.way) for port in reversed(ports))
    return Crossing(there, (*idle.turn(back[0], data), *idle.train(back, ack)))


class Idle(NamedTuple):
    """An idle piconet."""

    stations: int
    limit: int
    whole: bool

    @property
    def away(self) -> float:
        """Slots of the other stations' empty visits."""
        return EMPTY_FRAME * (self.stations - 1)

    def train(self, ports: tuple[Port, ...], sent: Transmissions) -> tuple[Step, ...]:
        """Return the steps from the first frame of a train on its first port to its end on the last."""
        if len(ports) == 1:
            return self._hop(ports[0], sent)
        if self.stations == 1:  # up and down on one link: each packet goes down while the next one comes up
            return (Step(2.0 * sent.mean * sent.mean_slots - 1.0),)
        first, second = ports
        between = (second.station - first.station) % self.stations - 1
        closing = EMPTY_FRAME * (1.0 - sent.fills_last_visit(self.limit))
        passed_on = Step(EMPTY_FRAME * between + closing, second, visits=between / (self.stations - 1))
        if self.whole:
            return (*self._hop(first, sent), passed_on, *self._hop(second, sent))
        visits = sent.visits(self.limit)
        last = Step(self._frames(sent) / visits - 1.0)
        # in a visit before the last one packets go up, and go down later in the same cycle
        earlier = self._earlier(first, sent, 2.0, self.away - EMPTY_FRAME)
        return (*earlier, last, passed_on, last)

    def turn(self, port: Port, data: Transmissions) -> tuple[Step, ...]:
        """Return the steps from the end of the data to the first chance of the acknowledgement on a port."""
        full = data.fills_last_visit(self.limit)
        if port.way != UP:  # the frame that follows is empty, and ends the visit unless the limit did
            cycle = EMPTY_FRAME * self.stations
            slots = full * (self.away if self.stations > 1 else EMPTY_FRAME) + (1.0 - full) * cycle
            return (Step(slots, port, visits=1.0),)
        if self.stations == 1:
            return (Step(EMPTY_FRAME),)
        goes_on = Step(EMPTY_FRAME * (1.0 - full))
        missed = Step(EMPTY_FRAME * self.stations, port, visits=1.0, probability=full)
        return (goes_on, missed) if full > RARE else (goes_on,)

    def _hop(self, port: Port, sent: Transmissions) -> tuple[Step, ...]:
        last = Step(self._frames(sent) / sent.visits(self.limit) - 1.0)
        return (*self._earlier(port, sent, 1.0, self.away), last)

    def _earlier(self, port: Port, sent: Transmissions, hops: float, away: float) -> tuple[Step, ...]:
        """Return the visits before the last one, with as many hops in each cycle."""
        visits = sent.visits(self.limit)
        more = visits - 1.0
        if more < RARE:
            return ()
        happens = min(1.0, more)
        wait = Step(more / happens * away, port, visits=more / happens, probability=happens)
        return (Step(hops * self._frames(sent) * more / visits), wait)

    @staticmethod
    def _frames(sent: Transmissions) -> float:
        """Slots of the frames of a train, each with an empty other half."""
        return sent.mean * (sent.mean_slots + 1.0)
