r"""The polled air at given rates, in closed form: processor sharing with a queue at every port.

**Work.** A train of k frames of l slots takes k (l + 1) slots, less two for every visit that it fills: an
empty frame would have gone there. Packets of both ports of a station that share a frame save two slots
more. So the share rho of the slots is known beyond the empty frame of every visit; the cycle is 2 n / (1 -
rho).

**Others.** While a segment waits for a visit the others are served; work that comes for them while its own
frames are sent is served before its next visit. So all but the frames after its last wait takes 1 / (1 -
rho') times as long as in an idle piconet (`lone`), with rho' the work of all other ports: processor sharing
(L. Kleinrock, Queueing Systems II, 1976, section 4.4). A train of work w may be under way elsewhere when
the segment comes: as in M/G/1 that adds sum(x w^2) / (2 (1 - rho')), for visits that are not always full. A
visit serves at most M frames: no more of a station's work is served during a wait than its visits hold
(`bounded`), so that light flows do not wait for the backlog of a saturated station.

**Own port.** A train that waits behind others of its port goes a time D = (k (l + 1) + 2 (n - 1) k / M) /
(1 - rho') later for each of them: its frames, and its share of a cycle of M frames. So the port is an M/G/1
queue with this service.

Nothing is fitted. For equal stations under exhaustive service the sum is the mean wait of the pseudo-
conservation law (O. Boxma and W. Groenendijk, J. Appl. Prob. 24, 1987), but for n / (1 - rho') in the place
of n (1 - rho_1) / (1 - rho) with the work rho_1 of one station. The page of this model has the errors.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from btqueue.network.piconet.lone import EMPTY_FRAME, Stretch, Waits, crossing, stretch
from btqueue.network.piconet.ports import Piconet, Port
from btqueue.network.piconet.trains import Transmissions
from btqueue.queueing.errors import ConvergenceError

FULL = 0.985
"""Share of the time that is used at most; keeps what an overloaded piconet would need finite."""
TOLERANCE = 1e-10
"""Change of the probabilities of a shared frame in the last iteration."""
MOST_ITERATIONS = 1000


class Crossed(NamedTuple):
    """A port that a train of a flow crosses."""

    flow: int
    port: Port
    sent: Transmissions
    answer: bool


@dataclass(frozen=True)
class Passage:
    """What a flow sees; times in slots.

    Attributes:
        delay: mean time from the writing of a segment to its arrival, but for the wait behind others of its
            port.
        answer: mean time from there to the arrival of the acknowledgement.
        wait: mean wait behind others of its first port.
        service: by how much each segment of its own before it adds to that wait.
        share: of that wait that is behind its own segments.
        load: of its first port.
    """

    delay: float
    answer: float
    wait: float
    service: float
    share: float
    load: float

    def wait_inside(self, window: float) -> float:
        """Return the wait of segments that a window has let out; the others wait at their sender.

        The number of own segments at the port is taken as geometric from the first on, with the right mean.
        A window that is shorter than a round trip lets the next segment out no sooner.
        """
        if np.isinf(window):
            return self.wait
        turn = max(self.service, (self.delay + self.answer) / window)
        waiting = self.load * self.wait / self.service
        if waiting == 0.0:
            return 0.0
        more = waiting / (self.load + waiting)
        inside = max((turn + self.wait) * (1.0 - more**window) - turn, 0.0)
        return (1.0 - self.share) * self.wait + self.share * inside


class Air:
    """The solved air of a piconet; times in slots.

    Attributes:
        used: share of the slots beyond an empty frame of every visit.
        cycle: mean time from visit to visit.
        passages: of the flows that were asked for, by number.
        residual: change of the probabilities of a shared frame in the last iteration.
    """

    def __init__(
        self,
        piconet: Piconet,
        sent: tuple[Transmissions, Transmissions],
        offered: np.ndarray,
        window: float = np.inf,
        wanted: Sequence[int] | None = None,
    ) -> None:
        """Solve the air.

        Args:
            piconet: whose air it is.
            sent: transmissions of a data train and of an acknowledgement.
            offered: (flows,) segments a second of each flow, finite.
            window: most segments that a flow has under way.
            wanted: numbers of the flows whose passage is asked for; all by default.

        Raises:
            ConvergenceError: the probabilities of shared frames never settled.
        """
        self.piconet, self.window, (data, ack) = piconet, window, sent
        self.rates = np.asarray(offered, float) * piconet.slot_s
        answered = piconet.ack is not None
        self.crossed = tuple(
            Crossed(number, port, train, answer)
            for number, sender in enumerate(piconet.senders)
            for ports, train, answer in ((sender.data, data, False), (sender.back, ack, True))
            for port in ports
            if answered or not answer
        )
        self._flow = np.array([one.flow for one in self.crossed])
        self._port = np.array([_place(one.port) for one in self.crossed])
        self._rate = self.rates[self._flow]
        self._frames = np.array([one.sent.mean for one in self.crossed])
        self._slots = self._frames * np.array([one.sent.mean_slots + 1.0 for one in self.crossed])
        filled = np.array([one.sent.full_visits(piconet.limit) for one in self.crossed])
        self._work = self._slots - EMPTY_FRAME * filled
        self._frames_in = self._by_port(self._rate * self._frames)
        self._filled_in = self._by_port(self._rate * filled)
        self._work_in = self._by_port(self._rate * self._work)
        self._solve()
        self.passages = {
            number: self._passage(number, data, ack if answered else None)
            for number in (range(len(piconet.senders)) if wanted is None else wanted)
        }

    def _by_port(self, values: np.ndarray) -> np.ndarray:
        """(crossed,) -> (stations, 2) sums by port."""
        sums = np.bincount(self._port, values, 2 * self.piconet.stations)
        return sums.reshape(self.piconet.stations, 2)

    def _solve(self) -> None:
        """Find how often packets of both ports of a station share a frame.

        The port with fewer frames shares as many as find a packet at the other one: a packet is there if the
        port's queue is busy, or if one came while the port was not visited.
        """
        stations = np.arange(self.piconet.stations)
        fuller = self._frames_in.argmax(axis=1)
        trains = self._by_port(self._rate)
        filled = np.divide(
            self._filled_in, self._frames_in, out=np.zeros_like(trains), where=self._frames_in > 0.0
        ).mean(axis=1)
        present = np.zeros_like(trains)
        for _ in range(MOST_ITERATIONS):
            shared = self._frames_in.min(axis=1) * present[stations, fuller]
            self._saved = EMPTY_FRAME * shared * (1.0 - filled)
            self._work_at = self._work_in.sum(axis=1) - self._saved
            frames = self._frames_in.sum(axis=1) - shared
            self._full_visit = self.piconet.limit * np.divide(
                self._work_at, frames, out=np.zeros_like(frames), where=frames > 0.0
            )
            self.used = float(self._work_at.sum())
            self.cycle = EMPTY_FRAME * self.piconet.stations / (1.0 - min(self.used, FULL))
            self._service = self._service_times()
            self._load = self._by_port(self._rate * self._service)
            came = -np.expm1(-trains * self.cycle / 2.0)
            found = 1.0 - (1.0 - np.minimum(self._load, 1.0)) * (1.0 - came)
            self.residual = float(np.abs(found - present).max())
            if self.residual <= TOLERANCE:
                return
            present = 0.5 * (present + found)
        raise ConvergenceError(
            f"shared frames: the probabilities still moved by {self.residual:.1g} "
            f"after {MOST_ITERATIONS} iterations"
        )

    def _service_times(self) -> np.ndarray:
        """(crossed,) slots by which a train makes the next one of its port later."""
        visits = self._frames / self.piconet.limit
        away = EMPTY_FRAME * (self.piconet.stations - 1) * visits
        work = np.tile(self._work_at, (len(self.crossed), 1))
        work[np.arange(len(self.crossed)), self._port // 2] -= self._work_in.ravel()[self._port]
        return self._stretched(self._slots + away, visits, work)

    def _stretched(self, slots: np.ndarray, visits: np.ndarray, work: np.ndarray) -> np.ndarray:
        """Return how long waits take while others are served.

        What is served grows ever more slowly with the time that it takes, so Newton's method falls to the
        solution from above.

        Args:
            slots: (waits,) that they take alone.
            visits: (waits,) of each other station meanwhile.
            work: (waits, stations) slots of work that come for others in a slot.
        """
        work = np.maximum(work, 0.0)
        most = np.multiply.outer(visits, self._full_visit)
        taken = slots + most.sum(axis=1)
        for _ in range(MOST_ITERATIONS):
            served, slope = bounded(taken[:, None] * work, most)
            excess = slots + served.sum(axis=1) - taken
            step = excess / (1.0 - (slope * work).sum(axis=1))
            taken = taken + step
            if np.all(np.abs(step) <= TOLERANCE * taken):
                return taken
        raise ConvergenceError(f"waits still changed after {MOST_ITERATIONS} iterations")

    def _others(self, number: int, port: Port, beside: float) -> np.ndarray:
        """(stations,) work a slot of the others while a flow waits for a visit of a port.

        The acknowledgements of a flow that begins or ends at the central go with the frames of its own
        segments, so they are not among the others. A flow between two stations meets its own other segments
        at the ports that it has crossed or will cross, if they are under way: `beside` of all there would be.
        """
        others = self._work_at.copy()
        others[port.station] -= self._work_in[port]
        own = self._flow == number
        if len(self.piconet.senders[number].data) == 1:
            back = Port(port.station, 1 - port.way)
            all_back = self._work_in[back]
            if all_back > 0.0:
                own_back = float((self._rate * self._work)[own & (self._port == _place(back))].sum())
                others[port.station] -= (all_back - self._saved[port.station]) * own_back / all_back
        else:
            for i in np.flatnonzero(own & (self._port != _place(port))):
                others[self.crossed[i].port.station] -= (1.0 - beside) * self._rate[i] * self._work[i]
        return others

    def _passage(self, number: int, data: Transmissions, ack: Transmissions | None) -> Passage:
        """Return what a flow sees, with as many own segments beside each as window and round trip allow."""
        net = self.piconet
        way = crossing(
            net.senders[number].data, data, ack, stations=net.stations, limit=net.limit, whole=net.whole
        )
        there, there_and_back = stretch(way.data), stretch(way.data + way.answer)
        own = next(i for i, one in enumerate(self.crossed) if one.flow == number and not one.answer)
        rate, beside = float(self._rate[own]), 1.0
        for _ in range(MOST_ITERATIONS):
            seen = self._seen(number, own, there, there_and_back, beside)
            if np.isinf(self.window):
                return seen
            mean = rate * (seen.delay + seen.answer + seen.wait_inside(self.window))
            found = 1.0 - (mean / (1.0 + mean)) ** (self.window - 1.0)  # the number under way as geometric
            if abs(found - beside) <= TOLERANCE:
                return seen
            beside = found
        raise ConvergenceError("the number of segments under way never settled")

    def _seen(self, number: int, own: int, data: Stretch, all_of_it: Stretch, beside: float) -> Passage:
        first = self.piconet.senders[number].port
        half_cycle = Waits(float(self.piconet.stations), 0.5)
        waits = [(first, half_cycle), *data.by_port.items(), *all_of_it.by_port.items()]
        taken = self._stretched(
            np.array([wait.slots for _, wait in waits]),
            np.array([wait.visits for _, wait in waits]),
            np.array([self._others(number, port, beside) for port, _ in waits]),
        )
        under_way = self._under_way(number, beside) / 2.0 * taken[0] / half_cycle.slots
        there = 1 + len(data.by_port)
        delay = under_way + data.rest + float(taken[1:there].sum())
        whole = under_way + all_of_it.rest + float(taken[there:].sum())
        service = float(self._service[own])
        load = min(float(self._load[first.station, first.way]), FULL)
        return Passage(
            delay=delay,
            answer=whole - delay + self._later_waits(number),
            wait=self._wait(self._port == _place(first)),
            service=service,
            share=float(self._rate[own]) * service / load if load > 0.0 else 1.0,
            load=load,
        )

    def _wait(self, trains: np.ndarray) -> float:
        """Mean wait behind these trains of a port: Pollaczek and Khinchin's formula."""
        if not trains.any():
            return 0.0
        place = self._port[trains][0]
        load = min(float(self._load.ravel()[place]), FULL)
        scv = np.array([one.sent.variance / max(one.sent.mean, 1e-300) ** 2 for one in self.crossed])
        squares = self._rate * self._service**2 * (1.0 + scv)
        return float(squares[trains].sum()) / (2.0 * (1.0 - load))

    def _later_waits(self, number: int) -> float:
        """Waits behind other flows at later ports; a flow's own segments come there one by one."""
        first = _place(self.piconet.senders[number].port)
        later = {_place(one.port) for one in self.crossed if one.flow == number} - {first}
        return sum(self._wait((self._port == place) & (self._flow != number)) for place in later)

    def _under_way(self, number: int, beside: float) -> float:
        """Sum over others' trains of their rates times the squares of their work.

        A station that fills all its visits makes every cycle longer by the same, and none longer than others:
        each counts by the share of its visits that it does not fill.
        Data that go down and their acknowledgement are one train unless the visit was full in between.
        """
        single = len(self.piconet.senders[number].data) == 1
        first = self.piconet.senders[number].port
        total = 0.0
        in_cycle = self._work_at * self.cycle
        used = np.divide(
            in_cycle, self._full_visit, out=np.zeros_like(in_cycle), where=self._full_visit > 0.0
        )
        idle = np.clip(1.0 - used, 0.0, 1.0)
        for i, one in enumerate(self.crossed):
            if one.port == first or (one.flow == number and single):
                continue
            frame = one.sent.mean_slots + 1.0
            square = self._work[i] ** 2 + one.sent.variance * frame**2
            before = self.crossed[i - 1] if i else None
            if (
                before is not None
                and one.answer
                and not before.answer
                and before.port.station == one.port.station
                and before.port != first
                and one.port.way > before.port.way
                and len(self.piconet.senders[one.flow].data) == 1
            ):
                together = 1.0 - before.sent.fills_last_visit(self.piconet.limit)
                square += 2.0 * self._work[i] * self._work[i - 1] * together
            total += self._rate[i] * square * idle[one.port.station] * (beside if one.flow == number else 1.0)
        return float(total)


def bounded(work: np.ndarray, most: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the smaller of work and its bound, rounded off where they meet, and its derivative.

    With the power 4 work of half the bound is 1.5 % less than itself.
    """
    share = np.divide(work, most, out=np.zeros_like(work), where=most > 0.0)
    below = (1.0 + share**4) ** -0.25
    return work * below, below**5


def _place(port: Port) -> int:
    return 2 * port.station + port.way
