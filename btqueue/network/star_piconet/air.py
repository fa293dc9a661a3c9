"""The polled air at given rates: pair queues, and what they make of a segment and its acknowledgement.

`btqueue.queueing.pairs.queue` has the laws of both queues of every station, for Poisson batches. Data meet it
as such batches. An acknowledgement does not come at a random moment: it is there when a frame of the visit
ends that carried the segment, and waits for what was decided before it came, and for the next visit if this
one ends.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.network.star_piconet.piconet import DOWN, UP, Piconet, Port
from btqueue.network.star_piconet.trains import Transmissions
from btqueue.queueing.pairs.queue import PairQueue, pair_queue
from btqueue.queueing.pairs.solution import PairQueueMeasures, PairQueueSolution

EMPTY_FRAME = 2.0
"""POLL and NULL (slots)."""
TOLERANCE = 1e-7
"""Change of the pair queues' state in their last iteration."""
LARGEST_QUEUE = 60
"""Packets of the largest queue that is followed, for cost."""
LEAST_IDLE = 0.02
"""Share of the time that the others leave at least; keeps an overloaded piconet's absences finite."""
BATCHES = (32, 128, 512)
"""Lengths that laws of batches are padded to: each costs a compilation of its own."""


@dataclass(frozen=True)
class Entering:
    """Trains a second that enter a port."""

    data: float = 0.0
    ack: float = 0.0


class Air:
    """The solved air; times in slots, unless they say otherwise.

    Attributes:
        data, ack: transmissions of both trains; an `ack` without any where there is no transport protocol.
        solution: of the pair queues.
    """

    def __init__(
        self,
        piconet: Piconet,
        sent: tuple[Transmissions, Transmissions],
        entering: dict[Port, Entering],
        rooms: tuple[int, int],
    ) -> None:
        """Solve the pair queues.

        Args:
            piconet: whose air it is.
            sent: transmissions of a data train and of an acknowledgement.
            entering: trains a second, by port.
            rooms: packets that a queue holds, by way.

        Raises:
            ConvergenceError: the pair queues were not solved.
        """
        self.piconet, self.entering = piconet, entering
        self.data, self.ack = sent
        self._alike = (
            len({(entering[Port(s, DOWN)], entering[Port(s, UP)]) for s in range(piconet.stations)}) == 1
        )
        self.solution = self._solve(rooms)

    def _solve(self, rooms: tuple[int, int]) -> PairQueueSolution:
        stations = range(1 if self._alike else self.piconet.stations)
        ports = [[Port(s, way) for s in stations] for way in (DOWN, UP)]
        batches = [[self._batch(port) for port in row] for row in ports]
        longest = max(batch.size for row in batches for batch in row)
        padded = next((length for length in BATCHES if length >= longest), longest)

        def laid_out(rows: list) -> np.ndarray:
            return np.array(rows)[:, 0] if self._alike else np.array(rows)

        return pair_queue(
            PairQueue(
                stations=self.piconet.stations,
                limit=self.piconet.limit if self._alike else [self.piconet.limit for _ in stations],
                batch_rate=laid_out([[self._rate(port) for port in row] for row in ports]),
                batch_size=laid_out([[np.pad(b, (0, padded - b.size)) for b in row] for row in batches]),
                packet_slots=laid_out([[self._slots(port) for port in row] for row in ports]),
                capacity=laid_out([[room for _ in stations] for room in rooms]),
            ),
            tolerance=TOLERANCE,
        )

    def _rate(self, port: Port) -> float:
        """Trains a slot that enter a port."""
        return (self.entering[port].data + self.entering[port].ack) * SLOT_S

    def _batch(self, port: Port) -> np.ndarray:
        """Law of the transmissions of a train of this port."""
        return _mixed(self.entering[port].data, self.data.law, self.entering[port].ack, self.ack.law)

    def _slots(self, port: Port) -> np.ndarray:
        """Law of the slots of a transmission of this port."""
        own = self.entering[port]
        return _mixed(own.data * self.data.mean, self.data.slots, own.ack * self.ack.mean, self.ack.slots)

    def queue(self, port: Port) -> PairQueueMeasures:
        """Steady state of a port's queue."""
        measures = self.solution.outbound if port.way == UP else self.solution.inbound
        if self._alike:
            return measures
        return type(measures)(*(np.asarray(leaf)[port.station] for leaf in vars(measures).values()))

    @cached_property
    def cycle(self) -> float:
        """Mean slots from visit to visit."""
        return float(self.solution.mean_cycle)

    def visit(self, station: int) -> float:
        """Mean slots of a visit."""
        visits = np.asarray(self.solution.mean_visit)
        return float(visits if self._alike else visits[station])

    def absence_after(self, station: int, visit: float) -> float:
        """Mean slots until the next visit to a station, after one of this length.

        The others' visits take an empty frame each, and what came for them since their last ones.
        """
        others = [other for other in range(self.piconet.stations) if other != station]
        use = sum(self.visit(other) - EMPTY_FRAME for other in others) / self.cycle
        return (EMPTY_FRAME * len(others) + use * visit) / max(1.0 - use, LEAST_IDLE)

    def frame(self, port: Port) -> float:
        """Mean slots of a frame with a packet of this port, and one of the other port or none."""
        other = Port(port.station, 1 - port.way)
        busy = 1.0 - float(self.queue(other).occupancy[0])
        return _mean(self._slots(port)) + 1.0 + busy * (_mean(self._slots(other)) - 1.0)

    def data_delay(self, port: Port) -> float:
        """Mean slots from the writing of a segment to the end of its last transmission.

        The pair queues know the mean over all transmissions of a batch; the last one is so many frames, and
        absences where the limit falls in between, behind that.
        """
        queue, batch = self.queue(port), self._batch(port)
        frame, occupancy = self.frame(port), np.asarray(queue.occupancy)
        limit = self.piconet.limit
        absence = self.absence_after(port.station, limit * frame)
        ahead, places = np.arange(occupancy.size), np.arange(max(batch.size, self.data.law.size) - 1)
        crossed = (ahead[:, None] + places[None, :]) // limit - (ahead // limit)[:, None]
        behind_first = places * frame + absence * (occupancy @ crossed)
        at_least = 1.0 - np.cumsum(batch)[:-1]  # batches that have a transmission at a place
        of_mean = float(at_least @ behind_first[: at_least.size]) / float(at_least.sum())
        of_last = float(self.data.law[1:] @ behind_first[: self.data.law.size - 1])
        slots = self.data.mean_slots - _mean(self._slots(port))
        return float(queue.mean_sojourn) + slots + of_last - of_mean

    def answer_delay(self, port: Port) -> float:
        """Mean slots from the end of a segment on a port to the end of its acknowledgement on the other.

        A station answers the last packet with what it had before, the central has the next frame decided:
        the acknowledgement goes a frame later. Behind the segment more data may wait; if not, the frame is
        empty, and on the way up it ends the visit.
        """
        queue, slots = self.queue(port), self.data.mean_slots
        more = 1.0 - float(queue.occupancy[0])
        limited = self._ends_visit(port)
        absence = self.absence_after(port.station, min(self.data.mean, self.piconet.limit) * self.frame(port))
        next_half = 1.0 + more * (slots - 1.0)
        if port.way == DOWN:
            wait = 1.0 + limited * absence + next_half
        else:
            goes_on = 1.0 if self.piconet.stations == 1 else 1.0 - limited
            wait = limited * absence + goes_on * (1.0 + next_half + (1.0 - more) * absence)
        return wait + self.ack.mean * self.ack.mean_slots

    def _ends_visit(self, port: Port) -> float:
        """Probability that the last transmission of a segment is the last one that its visit may have."""
        occupancy = np.asarray(self.queue(port).occupancy)
        behind = np.arange(occupancy.size)[:, None] + np.arange(self.data.law.size)[None, :]
        return float(occupancy @ (behind % self.piconet.limit == 0) @ self.data.law)


def _mixed(weight: float, law: np.ndarray, other_weight: float, other: np.ndarray) -> np.ndarray:
    """Return the mixture of two laws; the first where neither has weight."""
    if other_weight == 0.0:
        return law
    mixed = np.zeros(max(law.size, other.size))
    mixed[: law.size] += weight * law
    mixed[: other.size] += other_weight * other
    return mixed / mixed.sum()


def _mean(law: np.ndarray) -> float:
    return float(law @ np.arange(law.size))
