"""The long-run orbit of a greedy connection on its path: deterministic, followed until the averages settle.

Without radio errors nothing is random once the sources always have data: window, buffers and tokens go round
in a limit cycle (slow start or recovery, growth, overflow). The orbit is followed for `HORIZON_EXCHANGES`
exchanges after as many as `SETTLING_EXCHANGES`, which averages over the phases of the cycle. The events are
played by the compiled loop of `btqueue.network.ring_piconet.connections`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import nan

import numpy as np

from btqueue.network.ring_piconet.connections import (
    CLOCK,
    CONNECTION,
    DELIVERY,
    START,
    SUMMED,
    Connections,
    Rules,
    play,
)
from btqueue.network.ring_piconet.ring import Ring
from btqueue.network.ring_piconet.ring_buffer import SMALLEST
from btqueue.network.ring_piconet.sender_path import Air, Counts, full_buckets, limits_of, packets_of
from btqueue.transport.newreno_sender import Sender

SETTLING_EXCHANGES = 300
HORIZON_EXCHANGES = 1500
PHASES_S = (0.37, 0.61, 0.83)
"""Offsets between the starts of the connections (s), one run each: no multiples of each other."""
LONGEST_S = 4_000.0
"""An orbit that moves hardly anything is followed for at most this long (s)."""
UNBOUNDED = 1 << 62


@dataclass(frozen=True)
class Orbit:
    """Averages along the orbit of one connection; rates per second, times in seconds, windows in segments.

    `rtt` is not a number if nothing was acknowledged; `counts` and `elapsed` are the packets and the time of
    all connections and runs together.
    """

    goodput: float
    sends: float
    rtt: float
    window: float
    cwnd: float
    timeouts: float
    fast_retransmits: float
    segment_loss: float
    counts: Counts
    elapsed: float


class RingOfConnections:
    """Connections round the ring, at time 0 with empty buffers and full buckets.

    They start one after the other, `phase_s` apart, so that they are not in step. The first `samples` round
    trips of connection 0 are kept, and whether a buffer refused part of its first segments.
    """

    def __init__(
        self, ring: Ring, air: Air, senders: Sequence[Sender], phase_s: float, samples: int = 0
    ) -> None:
        """Lay out the records."""
        data, ack = packets_of(ring.data, air), packets_of(ring.ack, air)
        self.rules = Rules(limits_of(ring, air), data, ack, air.data_relay_s, air.ack_relay_s)
        widest = max(sender.receive_window for sender in senders)
        self.room = (widest + 2) * max(len(ring.data), len(ring.ack))
        self.state = _at_rest(ring, len(senders), _power_of_two(widest + 1), samples, 2 * self.room)
        for end, sender in zip(self.state.ends, senders, strict=True):
            for name, value in vars(sender).items():
                end[name] = nan if value is None else value
        starts = self.state.deliveries[: len(senders), 0]
        starts["arrival"], starts["number"] = phase_s * np.arange(len(senders)), START
        starts["order"] = np.arange(len(senders))
        self.state.delivery_marks[: len(senders), 1] = 1
        self.state.clock["order"] = len(senders)

    @property
    def now(self) -> float:
        """Time of the last event (s)."""
        return float(self.state.clock["now"][0])

    def play(self, longest_s: float, exchanges: int = UNBOUNDED, round_trips: int = UNBOUNDED) -> None:
        """Play until so much time has gone, so many more segments are delivered or round trips known."""
        delivered = min(int(self.state.clock["delivered"][0]) + exchanges, UNBOUNDED)
        end = self.now + longest_s
        while not play(self.state, self.rules, delivered, end, round_trips, self.room):
            self._make_room()

    def _make_room(self) -> None:
        """Double the places of all queues."""
        state, paths = self.state, self.state.paths
        paths = paths._replace(
            releases=_doubled(paths.releases, paths.release_marks),
            departures=_doubled(paths.departures, paths.departure_marks),
        )
        self.state = state._replace(paths=paths, deliveries=_doubled(state.deliveries, state.delivery_marks))

    def forget(self) -> None:
        """Begin the sums anew."""
        for name in SUMMED:
            self.state.ends[name] = 0
        for name in vars(Counts()):
            self.state.paths.states[name] = 0


def _at_rest(ring: Ring, connections: int, window: int, samples: int, places: int) -> Connections:
    """Return empty queues and records of zeros."""

    def records(shape: int | tuple[int, int], kind: np.dtype) -> np.ndarray:
        return np.zeros(shape, kind).view(np.recarray)

    places = _power_of_two(max(places, SMALLEST))
    return Connections(
        clock=records(1, CLOCK),
        ends=records(connections, CONNECTION),
        early=np.zeros((connections, window), np.bool_),
        paths=full_buckets(connections, places, ring),
        deliveries=records((2 * connections, places), DELIVERY),
        delivery_marks=np.zeros((2 * connections, 2), np.int64),
        rtts=np.zeros(samples),
        refused=np.zeros(samples, np.bool_),
    )


def _doubled(queues: np.ndarray, marks: np.ndarray) -> np.ndarray:
    """Return queues of twice as many places; their entries begin at place 0, and the marks say so."""
    places = queues.shape[1]
    wider = np.zeros((queues.shape[0], 2 * places), queues.dtype).view(type(queues))
    for row, entries, first in zip(wider, queues, marks[:, 0], strict=True):
        row[:places] = np.roll(entries, -first)
    marks[:, 0] = 0
    return wider


def _power_of_two(least: int) -> int:
    return 1 << (least - 1).bit_length()


def follow(ring: Ring, air: Air, new_sender: Callable[[], Sender]) -> Orbit:
    """Follow the connections through this air from several starts; return averages over all."""
    runs = [follow_from(ring, air, new_sender, phase) for phase in PHASES_S]
    ends = np.concatenate([run.state.ends for run, _, _ in runs])
    paths = np.concatenate([run.state.paths.states for run, _, _ in runs])
    elapsed = sum(time * ring.peripherals for _, time, _ in runs)
    samples, sent = max(1, int(ends["acknowledgements"].sum())), int(ends["sent"].sum())
    round_trips = int(ends["round_trips"].sum())
    return Orbit(
        goodput=sum(delivered for _, _, delivered in runs) / elapsed,
        sends=sent / elapsed,
        rtt=float(ends["rtt_sum"].sum()) / round_trips if round_trips else nan,
        window=float(ends["window_sum"].sum()) / samples,
        cwnd=float(ends["cwnd_sum"].sum()) / samples,
        timeouts=int(ends["timeouts"].sum()) / elapsed,
        fast_retransmits=int(ends["fast_retransmits"].sum()) / elapsed,
        segment_loss=int(ends["lost"].sum()) / max(1, sent),
        counts=Counts(**{name: paths[name].sum().item() for name in vars(Counts())}),
        elapsed=elapsed,
    )


def follow_from(
    ring: Ring, air: Air, new_sender: Callable[[], Sender], phase_s: float
) -> tuple[RingOfConnections, float, int]:
    """Let the connections settle, then follow them; return them, the time and the segments of their sums."""
    run = RingOfConnections(ring, air, [new_sender() for _ in range(ring.peripherals)], phase_s)
    run.play(LONGEST_S / 4, SETTLING_EXCHANGES)
    run.forget()
    start, before = run.now, int(run.state.clock["delivered"][0])
    run.play(LONGEST_S, HORIZON_EXCHANGES)
    return run, run.now - start, int(run.state.clock["delivered"][0]) - before


def slow_start(ring: Ring, air: Air, sender: Sender, count: int) -> tuple[list[float], list[bool]]:
    """Let a lone connection start from idle; return its first `count` round-trip times and buffer losses.

    The losses say of each segment, in the order of sending, whether a buffer refused part of it.
    """
    silent = [replace(sender, receive_window=0) for _ in range(ring.peripherals - 1)]
    run = RingOfConnections(ring, air, [sender, *silent], 0.0, samples=count)
    run.play(LONGEST_S, round_trips=count)
    first = run.state.ends[0]
    return run.state.rtts[: first.round_trips].tolist(), run.state.refused[: first.sent].tolist()
