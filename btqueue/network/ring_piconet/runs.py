"""Runs of a ring's connections: how they begin, settle, and are counted batch by batch."""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.network.control_variates import Messages, excess_of
from btqueue.network.orbit_precision import Batches, of_long_batches
from btqueue.network.ring_piconet.air import play
from btqueue.network.ring_piconet.network import RingNetwork
from btqueue.network.ring_piconet.records import (
    NOTED,
    SUMMED,
    Rules,
    State,
    at_rest,
    begin,
    first_message,
    rules_of,
    written,
)
from btqueue.transport.compilation import bound
from btqueue.transport.newreno_sender import Sender

SETTLING_SEGMENTS = 700
"""Segments of all flows that are sent in a run before anything is counted."""
BATCH_SEGMENTS = 235
"""Segments of all flows that are sent in a batch."""
MOST_BATCHES = 32
"""Batches of a run."""
SAMPLES = 1 << 14
"""Round-trip times kept."""
BATCH_FRAMES = 10_000
"""Frames of a batch on average: at most, where segments take many packets or find no way."""
BATCH_S = 3e4
"""A batch in which hardly anything is moved lasts for at most this long (s)."""


@dataclass(frozen=True)
class Connections:
    """What is followed.

    Attributes:
        net: the ring.
        sender: what every sender is at first.
        window: largest window (segments).
        interval: mean time between the messages of a flow (s); 0: there are always data.
    """

    net: RingNetwork
    sender: Sender
    window: int
    interval: float

    @cached_property
    def rules(self) -> Rules:
        """What does not change."""
        return rules_of(self.net.ring)

    @property
    def places(self) -> int:
        """Places that a queue begins with: a power of two, enough for a window."""
        return 1 << max(self.window * self.net.ring.exchange_packets, 1).bit_length()


@dataclass
class Run:
    """Connections that began in one of several ways, and what has been counted of them since they settled.

    Attributes:
        connections: what is followed.
        number: which sequences they follow.
    """

    connections: Connections
    number: int
    state: State = field(init=False)
    batches: Batches = field(init=False)

    def __post_init__(self) -> None:
        """Let the connections settle."""
        self._begin(self.connections.places)

    def follow(self, batches: int) -> None:
        """Follow the connections until so many batches are counted, or it was long enough."""
        while not self._play(batches - self._counted, BATCH_SEGMENTS):
            self._begin(4 * self.state.queues.shape[2])
        self.batches = Batches.between(self._notes)

    @property
    def elapsed(self) -> float:
        """Time (s)."""
        return float(self.batches.time.sum())

    @property
    def delivered(self) -> int:
        """Segments in order."""
        return int(self.batches.delivered.sum())

    @property
    def repeated(self) -> int:
        """Segments sent that had been sent before."""
        return int((self._own["sent"] - self._own["highest"]).sum() + self._highest_before)

    @property
    def written(self) -> float:
        """Messages, as far as they are known; see `records.written`."""
        return self._written() - self._written_before

    @property
    def cycles(self) -> int:
        """Polling cycles."""
        return int(self._clock["cycles"][0] - self._before["cycles"])

    @property
    def data_slots(self) -> int:
        """Slots with data."""
        return int(self._clock["data_slots"][0] - self._before["data_slots"])

    @property
    def round_trips(self) -> np.ndarray:
        """The round-trip times (s)."""
        return self.state.rtts[self._before["round_trips"] : self._clock["round_trips"][0]]

    def sums(self) -> np.ndarray:
        """Return what was added up over the peripherals, in the order of `records.SUMMED`."""
        return np.array([self._own[name].sum() for name in SUMMED], float)

    @property
    def surprises(self) -> np.ndarray:
        """What of the radio was a surprise, [batch, kind]; the means are 0."""
        return np.diff(self._notes[:, 4:NOTED], axis=0)

    @property
    def excess(self) -> np.ndarray:
        """How the messages of each batch differ from what they are in the long run (`control_variates`)."""
        ring, with_ = self.connections.net.ring, self.connections
        numbers = self._own["sequence"]
        alike = np.ones(len(numbers))
        messages = Messages(
            sequences=numbers,
            first=np.array([first_message(with_.interval, number) for number in numbers.tolist()]),
            intervals=with_.interval * alike,
            shared=ring.exchange_slots * SLOT_S * alike,
            own=ring.exchange_bytes / ring.token_rate * alike,
        )
        return excess_of(messages, self._notes[:, 0])

    @property
    def _counted(self) -> int:
        return int(self._clock["notes"][0]) - 1

    @property
    def _notes(self) -> np.ndarray:
        return of_long_batches(self.state.notes[: self._counted + 1])

    def _written(self) -> float:
        return float(written(self._own, self._clock["now"][0]).sum())

    def _begin(self, places: int) -> None:
        """Let the connections begin and settle; with larger queues, if they need them."""
        with_, net = self.connections, self.connections.net
        self.state = at_rest(net, with_.window, places, SAMPLES, MOST_BATCHES)
        self._clock, self._own = (
            part.view(np.ndarray) for part in (self.state.clock, self.state.peripherals)
        )
        begin(self.state, with_.sender, with_.interval, self.number)
        self._follow = bound(play, self.state, with_.rules, net.radio, net.voice)
        if not self._play(1, SETTLING_SEGMENTS):
            self._begin(4 * places)
            return
        for name in SUMMED:
            self._own[name] = 0
        self._before, self._written_before = self._clock[0].copy(), self._written()
        self._highest_before = self._own["highest"].sum()

    def _play(self, batches: int, segments: int) -> bool:
        """Follow for so many more batches; return whether the queues have places enough."""
        frames = int(self._clock["frames"][0]) + batches * BATCH_FRAMES
        self._follow(batches, segments, frames, float(self._clock["now"][0]) + batches * BATCH_S)
        return not self._clock["too_small"][0]
