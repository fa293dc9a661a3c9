"""Runs of connections through a scatternet: how they begin, settle, and are counted batch by batch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.network.answers import NoConvergence
from btqueue.network.control_variates import Messages, excess_of
from btqueue.network.orbit_precision import Batches, of_long_batches
from btqueue.network.ring_piconet.records import NOTED, SUMMED, rules_of, written
from btqueue.network.scatternet.air import play
from btqueue.network.scatternet.network import Scatternet
from btqueue.network.scatternet.records import STUCK, State, at_rest, begin, first_message, paths_of
from btqueue.transport.compilation import bound
from btqueue.transport.newreno_sender import Sender

SETTLING_SEGMENTS = 400
SETTLING_WINDOWS = 8
"""Segments of all flows, and windows of each, that are delivered before anything is counted: at least."""
BATCH_SEGMENTS = 125
BATCH_OF_A_CLASS = 25
"""Segments of all flows, and on average of each class of flows, in a batch: at least."""
LONGEST_S = 10_000.0
"""A batch in which hardly anything is delivered lasts for at most this long (s), times piconets; or for:"""
LONG_ENOUGH_S = 50.0
MOST_BATCHES = 48
"""Batches of a run."""
PLACES = 128
"""Places that a queue begins with."""
SAMPLES = 1 << 15
LEAST_SAMPLES = 1 << 10
"""Round-trip times kept of all classes of flows together, and of each: at least."""


@dataclass(frozen=True)
class Counts:
    """What has been counted since the beginning, or in a batch.

    Attributes:
        time: how long (s).
        delivered, written: segments in order, and messages (`ring_piconet.records.written`), [flow].
        numbered: segments sent for the first time, [flow].
        sums: `SUMMED` of each link, [name, link].
        cycles, data_slots, relay_losses: of each piconet.
        trips: round-trip times measured, [class].
        trip_time: their sum over all classes (s).
    """

    time: float
    delivered: np.ndarray
    written: np.ndarray
    numbered: np.ndarray
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
    """

    net: Scatternet
    new_sender: Callable[[], Sender]
    window: int
    intervals: Sequence[float]
    class_of: Sequence[int]
    number: int
    state: State = field(init=False)

    def __post_init__(self) -> None:
        """Let the connections settle."""
        self._rules, self._paths = rules_of(self.net.ring), paths_of(self.net)
        self._errors = self.net.radio._replace(shared=False)  # each link knows its channel
        self._targets = [connection.forth[-1].link for connection in self.net.connections]
        self._begin(PLACES)

    def follow(self, batches: int) -> None:
        """Follow the connections until so many batches have been counted.

        Raises:
            NoConvergence: bridges wait for each other for ever.
        """
        segments = max(BATCH_SEGMENTS, BATCH_OF_A_CLASS * (max(self.class_of) + 1))
        while not self._deliver(batches + 1 - int(self._clock("notes")), segments):
            self._begin(4 * self.state.queues.shape[2])

    @property
    def batches(self) -> Batches:
        """What the batches counted."""
        return Batches.between(self._notes)

    @property
    def surprises(self) -> np.ndarray:
        """What of the radio was a surprise, [batch, kind]; the means are 0."""
        return np.diff(self._notes[:, 4:NOTED], axis=0)

    @property
    def excess(self) -> np.ndarray:
        """How the messages of each batch differ from what they are in the long run (`control_variates`)."""
        ring, numbers = self.net.ring, self.state.peripherals.view(np.ndarray)["sequence"][: self.net.flows]
        messages = Messages(
            sequences=numbers,
            first=np.array(
                [first_message(*each) for each in zip(self.intervals, numbers.tolist(), strict=True)]
            ),
            intervals=np.array(self.intervals),
            shared=np.array(self.net.busiest_slots) * SLOT_S,
            own=np.full(self.net.flows, ring.exchange_bytes / ring.token_rate),
        )
        return excess_of(messages, self._notes[:, 0])

    @property
    def trips(self) -> np.ndarray:
        """Round-trip times measured, [batch, class]."""
        return np.diff(self._notes[:, NOTED:], axis=0).astype(int)

    @property
    def counts(self) -> Counts:
        """What has been counted since the connections settled."""
        return self._counts().since(self._begun)

    def round_trips(self) -> list[np.ndarray]:
        """Return the latest round-trip times of each class (s)."""
        samples, counts = self.state.samples, self.state.counts
        places = samples.shape[1]
        return [
            row[np.arange(max(count - places, begun), count) & (places - 1)]
            for row, count, begun in zip(samples, counts, self._begun.trips, strict=True)
        ]

    @property
    def _notes(self) -> np.ndarray:
        return of_long_batches(self.state.notes[: self._clock("notes")])

    def _clock(self, name: str):
        return self.state.clock.view(np.ndarray)[name][0]

    def _begin(self, places: int) -> None:
        """Let the connections begin and settle; with larger queues, if they need them."""
        kept = max(SAMPLES // (max(self.class_of) + 1), LEAST_SAMPLES)
        samples = 1 << (kept.bit_length() - 1)
        self.state = at_rest(self.net, self.window, places, samples, self.class_of, MOST_BATCHES)
        begin(self.state, self.new_sender(), self.intervals, self.number)
        self._play = bound(play, self.state, self._rules, self._errors, self._paths)
        if not self._deliver(1, max(SETTLING_SEGMENTS, SETTLING_WINDOWS * self.window * self.net.flows)):
            self._begin(4 * places)
            return
        self._begun = self._counts()

    def _deliver(self, batches: int, segments: int) -> bool:
        """Follow for so many batches of segments delivered; return whether the queues have places enough.

        Raises:
            NoConvergence: bridges wait for each other for ever.
        """
        most = max(LONGEST_S / self.net.piconets, LONG_ENOUGH_S)
        self._play(batches, segments, float(self._clock("now") + batches * most))
        if self._clock("stuck"):
            raise NoConvergence(STUCK)
        return not self._clock("too_small")

    def _counts(self) -> Counts:
        own, piconets = (part.view(np.ndarray) for part in (self.state.peripherals, self.state.piconets))
        now = float(self._clock("now"))
        return Counts(
            time=now,
            delivered=own["expected"][self._targets],
            written=written(own[: self.net.flows], now),
            numbered=own["highest"][: self.net.flows].copy(),
            sums=np.array([own[name] for name in SUMMED], float),
            cycles=piconets["cycles"].copy(),
            data_slots=piconets["data_slots"].copy(),
            relay_losses=piconets["relay_losses"].copy(),
            trips=self.state.counts.copy(),
            trip_time=float(self._clock("trip_time")),
        )
