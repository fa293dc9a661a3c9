"""Runs of a network: how they begin, settle, and are counted batch by batch."""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.network.compilation import interpreted
from btqueue.network.followed import air
from btqueue.network.followed.events import MESSAGE, TURN, schedule
from btqueue.network.followed.loop import play
from btqueue.network.followed.plan import Plan, slots
from btqueue.network.followed.sources import CLIENT, SERVER
from btqueue.network.followed.world import FATES, SAMPLES, World, enlarged, table_of

SETTLING_SEGMENTS, SETTLING_WINDOWS = 600, 10
"""Segments of all flows, and windows of each, that are delivered before anything is counted: at least."""
BATCH_SEGMENTS, BATCH_OF_A_FLOW = 250, 25
"""Segments of all flows, and of each on average, in a batch: at least; more where a window holds many short
ones."""
LONGEST_S = 2_000.0
"""The shortest batch lasts for at most this long, where hardly anything is delivered."""
IDLE_VISITS = 4
"""Visits without packets that take as long to follow as an event."""
SUMS = (
    *("delivered_bytes", "repeated_bytes", "ended", "lost", "timeouts", "fast_retransmits", "samples"),
    *("cwnd_sum", "window_sum", "trips", "trip_time", "trip_squares", "message_age", "messages_in"),
    *("messages_out", "sessions", "session_time", "session_squares", "expected"),
)
"""What is added up of a flow."""


@dataclass(frozen=True)
class Counts:
    """What has been counted since the beginning, or between two looks. Times are in slots.

    Attributes:
        time: how long.
        flows: `SUMS` of each flow, [name, flow].
        written: messages, also those that nobody has looked at yet, [flow].
        fates: of packets, [flow, fate].
        held: packets in a queue, times slots, and in the buffer of its bucket, [which, port].
        visits, data_slots: of each piconet.
        steps: events, and visits without packets for what they cost.
    """

    time: float
    flows: np.ndarray
    written: np.ndarray
    fates: np.ndarray
    held: np.ndarray
    visits: np.ndarray
    data_slots: np.ndarray
    steps: int

    def __add__(self, other: "Counts") -> "Counts":
        """Return what was counted in both."""
        return Counts(*(getattr(self, item.name) + getattr(other, item.name) for item in fields(self)))

    def __sub__(self, other: "Counts") -> "Counts":
        """Return what has been counted since another look."""
        return Counts(*(getattr(self, item.name) - getattr(other, item.name) for item in fields(self)))

    def of(self, name: str) -> np.ndarray:
        """Return the sum of this name of every flow."""
        return self.flows[SUMS.index(name)]


@dataclass
class Run:
    """A network that began with a seed of its own, and what has been counted of it since it settled.

    Attributes:
        plan: the network.
        seed: of what is left to chance.
        settling: segments of all flows that are delivered before anything is counted; None: as many as usual.
        looks: what had been counted when it had settled, and at the end of each batch.
        length: of batches, in multiples of the least.
        world: what is known now.
    """

    plan: Plan
    seed: int
    settling: int | None = None
    looks: list[Counts] = field(init=False, default_factory=list)
    length: int = field(init=False, default=1)
    world: World = field(init=False)

    def __post_init__(self) -> None:
        """Let the network begin and settle."""
        self._chance = np.random.default_rng([self.seed, 1])
        self.world = self.plan.world(self.seed)
        self.world.random[:] = self._chance.random(len(self.world.random))
        self._play = player(self.world)
        for number, piconet in enumerate(self.world.piconets):
            if not piconet.away:
                schedule(self.world, 0.0, TURN, number)
        for number, flow in enumerate(self.world.flows):
            if flow.law != SERVER:
                flow.due = flow.start if flow.law == CLIENT else flow.message
                schedule(self.world, flow.due, MESSAGE, number)
        usual = max(SETTLING_SEGMENTS, SETTLING_WINDOWS * sum(self.plan.in_flight))
        self.play(usual if self.settling is None else self.settling, slots(LONGEST_S))
        self.looks.append(self.look())
        self._trips = self.world.flows["trips"].copy()

    def follow(self, batches: int, length: int = 1) -> None:
        """Follow the network until so many batches are counted.

        Args:
            batches: even.
            length: of each, in multiples of the least; those of before are put together to longer ones.
        """
        self.looks, self.length = self.looks[:: length // self.length], length
        windows = [spec.transport.receive_window_segments for spec in self.plan.specs]
        crowd = max(most // window for most, window in zip(self.plan.in_flight, windows, strict=True))
        least = max(BATCH_SEGMENTS, BATCH_OF_A_FLOW * len(self.plan.specs)) * crowd
        while len(self.looks) <= batches:
            self.play(least * length, self.looks[-1].time + slots(LONGEST_S) * length)
            self.looks.append(self.look())

    @property
    def counts(self) -> Counts:
        """What has been counted since the network settled."""
        return self.looks[-1] - self.looks[0]

    @property
    def seconds(self) -> float:
        """How long has been counted (s)."""
        return float(self.counts.time) * SLOT_S

    def is_stuck(self) -> bool:
        """Return whether bridges wait for each other for ever: no piconet polls, and none only sleeps."""
        w = self.world
        events = w.events["action"][: int(w.clock["events"][0])]
        return len(w.bridges) > 0 and not (events == TURN).any() and not w.piconets["asleep"].any()

    def batches(self, name: str) -> np.ndarray:
        """Return the sums of this name of all flows together, [batch]; "time" is that of the batch."""
        sums = [look.time if name == "time" else float(look.of(name).sum()) for look in self.looks]
        return np.diff(sums)

    def trips(self, flow: int) -> np.ndarray:
        """Return the latest round trips of a flow (slots)."""
        kept, count = int(self.world.sizes[SAMPLES]), int(self.world.flows["trips"][flow])
        numbers = np.arange(max(count - kept, self._trips[flow]), count)
        return self.world.trips[flow * kept + (numbers & (kept - 1))]

    def play(self, segments: int, end: float) -> None:
        """Follow until so many more segments are delivered, or a time (slots)."""
        clock = self.world.clock
        wanted = int(clock["delivered"][0]) + segments
        while clock["delivered"][0] < wanted and clock["now"][0] < end and clock["events"][0] > 0:
            self._play(wanted, end)
            if clock["cramped"][0]:
                self.world = enlarged(self.world)
                self._play = player(self.world)
                clock["cramped"] = 0
            if clock["drawn"][0] >= len(self.world.random):
                self.world.random[:] = self._chance.random(len(self.world.random))
                clock["drawn"] = 0

    def look(self) -> Counts:
        """Return what has been counted since the beginning."""
        w = self.world
        now = float(w.clock["now"][0])
        for number in np.flatnonzero(w.piconets["asleep"]):
            air.settle(w.piconets[number], now)
        flows, ports = np.asarray(w.flows), np.asarray(w.ports)
        sums = np.array([flows[name] for name in SUMS], float)
        waiting = flows["messages_in"] - flows["messages_out"]
        sums[SUMS.index("message_age")] += waiting * now
        late = np.maximum(now - flows["message"], 0.0)
        unseen = np.where(late > 0.0, 1.0 + late / np.maximum(flows["gap"], 1e-9), 0.0)
        held = np.array(
            [ports["age"] + ports["waiting"] * now, ports["bucket_age"] + ports["bucket_waiting"] * now]
        )
        return Counts(
            time=now,
            flows=sums,
            written=flows["messages_in"] + unseen,
            fates=w.fates.reshape(-1, FATES).copy(),
            held=held,
            visits=w.piconets["visits"].copy(),
            data_slots=w.piconets["data_slots"].copy(),
            steps=int(w.clock["steps"][0]) + int(w.clock["idle"][0]) // IDLE_VISITS,
        )


def player(world: World) -> Callable[[int, float], None]:
    """Return what plays a world until so many segments are delivered, or a time: compiled, if that is on."""
    if interpreted():
        return partial(play, world)
    from btqueue.network.followed.entry import program  # loads numba

    return partial(program(), table_of(world).ctypes.data_as(ctypes.c_void_p))  # which keeps the table
