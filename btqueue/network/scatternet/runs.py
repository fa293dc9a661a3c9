"""Runs of connections through a scatternet: how they begin, settle, and are counted batch by batch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from btqueue.network.answers import NoConvergence
from btqueue.network.ring_piconet.records import SUMMED, rules_of
from btqueue.network.scatternet.air import play
from btqueue.network.scatternet.network import Scatternet
from btqueue.network.scatternet.records import STUCK, State, at_rest, begin, paths_of
from btqueue.transport.newreno_sender import Sender

SETTLING_SEGMENTS = 800
SETTLING_WINDOWS = 8
"""Segments of all flows, and windows of each, that are delivered before anything is counted: at least."""
BATCH_SEGMENTS = 250
BATCH_OF_A_CLASS = 50
"""Segments of all flows, and on average of each class of flows, in a batch: at least."""
LONGEST_S = 20_000.0
"""A batch in which hardly anything is delivered lasts for at most this long (s), times piconets; or for:"""
LONG_ENOUGH_S = 100.0
PLACES = 64
"""Places that a queue begins with."""
SAMPLES = 1 << 15
LEAST_SAMPLES = 1 << 10
"""Round-trip times kept of all classes of flows together, and of each: at least."""


@dataclass(frozen=True)
class Counts:
    """What has been counted since the beginning, or in a batch.

    Attributes:
        time: how long (s).
        delivered, written: segments in order, and messages, [flow].
        sums: `SUMMED` of each link, [name, link].
        cycles, data_slots, relay_losses: of each piconet.
        trips: round-trip times measured, [class].
        trip_time: their sum over all classes (s).
    """

    time: float
    delivered: np.ndarray
    written: np.ndarray
    sums: np.ndarray
    cycles: np.ndarray
    data_slots: np.ndarray
    relay_losses: np.ndarray
    trips: np.ndarray
    trip_time: float

    def __add__(self, other: "Counts") -> "Counts":
        """Return what was counted in both."""
        return Counts(*(getattr(self, item.name) + getattr(other, item.name) for item in fields(self)))

    def since(self, other: "Counts") -> "Counts":
        """Return what has been counted since another time."""
        return Counts(*(getattr(self, item.name) - getattr(other, item.name) for item in fields(self)))

    @property
    def round_trip(self) -> float:
        """Mean round-trip time over all flows (s); 0 if there was none."""
        return self.trip_time / max(float(self.trips.sum()), 1.0)


@dataclass
class Run:
    """Connections that began in one of several ways, and what has been counted of them.

    Attributes:
        net: the scatternet.
        new_sender: makes what every sender is at first.
        window: largest window (segments).
        intervals: mean time between the messages of each flow (s); 0: there are always data.
        class_of: class of each flow.
        number: which way to begin.
        batches: what has been counted.
    """

    net: Scatternet
    new_sender: Callable[[], Sender]
    window: int
    intervals: Sequence[float]
    class_of: Sequence[int]
    number: int
    batches: list[Counts] = field(default_factory=list)
    state: State = field(init=False)

    def __post_init__(self) -> None:
        """Let the connections settle."""
        self._rules, self._paths = rules_of(self.net.ring), paths_of(self.net)
        self._errors = self.net.radio._replace(shared=False)  # each link knows its channel
        self._targets = np.array([connection.forth[-1].link for connection in self.net.connections])
        self._begin(PLACES)

    def follow(self, batches: int) -> None:
        """Follow the connections until so many batches have been counted.

        Raises:
            NoConvergence: bridges wait for each other for ever.
        """
        classes = max(self.class_of) + 1
        while len(self.batches) < batches:
            before = self._counts()
            if self._deliver(max(BATCH_SEGMENTS, BATCH_OF_A_CLASS * classes)):
                self.batches.append(self._counts().since(before))
            else:
                self._begin(4 * self.state.queues.shape[2])

    def round_trips(self) -> list[np.ndarray]:
        """Return the latest round-trip times of each class (s)."""
        samples, gained = self.state.samples, np.sum([batch.trips for batch in self.batches], axis=0)
        places = samples.shape[1]
        return [
            row[np.arange(count - min(new, places), count) % places]
            for row, count, new in zip(samples, self.state.counts, gained, strict=True)
        ]

    def _begin(self, places: int) -> None:
        """Let the connections begin and settle; with larger queues, if they need them."""
        samples = max(SAMPLES // (max(self.class_of) + 1), LEAST_SAMPLES)
        self.batches = []
        self.state = at_rest(self.net, self.window, places, samples, self.class_of)
        begin(self.state, self.new_sender(), self.intervals, self.number)
        if not self._deliver(max(SETTLING_SEGMENTS, SETTLING_WINDOWS * self.window * self.net.flows)):
            self._begin(4 * places)

    def _deliver(self, segments: int) -> bool:
        """Follow until so many more segments are delivered; False if a queue has too few places.

        Raises:
            NoConvergence: bridges wait for each other for ever.
        """
        clock = self.state.clock[0]
        most = max(LONGEST_S / self.net.piconets, LONG_ENOUGH_S)
        play(
            self.state,
            self._rules,
            self._errors,
            self._paths,
            int(clock.delivered) + segments,
            float(clock.now) + most,
        )
        if clock.stuck:
            raise NoConvergence(STUCK)
        return not clock.too_small

    def _counts(self) -> Counts:
        state = self.state
        own, piconets = state.peripherals, state.piconets
        return Counts(
            time=float(state.clock[0].now),
            delivered=own["expected"][self._targets],
            written=own["messages"][: self.net.flows].copy(),
            sums=np.array([own[name] for name in SUMMED], float),
            cycles=piconets["cycles"].copy(),
            data_slots=piconets["data_slots"].copy(),
            relay_losses=piconets["relay_losses"].copy(),
            trips=state.counts.copy(),
            trip_time=float(state.clock[0].trip_time),
        )
