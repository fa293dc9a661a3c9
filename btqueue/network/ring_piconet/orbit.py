"""The long-run orbit of a greedy connection on its path: deterministic, followed until the averages settle.

Without radio errors nothing is random once the sources always have data: window, buffers and tokens go round
in a limit cycle (slow start or recovery, growth, overflow). The orbit is followed for `HORIZON_EXCHANGES`
exchanges after as many as `SETTLING_EXCHANGES`, which averages over the phases of the cycle.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from math import inf, nan

from btqueue.network.ring_piconet.ring import Ring
from btqueue.network.ring_piconet.sender_path import Air, Counts, SenderPath, sum_counts
from btqueue.transport.newreno_sender import Receiver, Sender

SETTLING_EXCHANGES = 300
HORIZON_EXCHANGES = 1500
PHASES_S = (0.37, 0.61, 0.83)
"""Offsets between the starts of the connections (s), one run each: no multiples of each other."""
LONGEST_S = 4_000.0
"""An orbit that moves hardly anything is followed for at most this long (s)."""


@dataclass
class Sums:
    """What is added up along the orbit."""

    acknowledgements: int = 0
    window: float = 0.0
    cwnd: float = 0.0
    rtts: list[float] = field(default_factory=list)
    losses: list[bool] = field(default_factory=list)
    delivered: int = 0
    timeouts: int = 0
    fast_retransmits: int = 0


@dataclass(frozen=True)
class Orbit:
    """Averages along the orbit of one connection; rates per second, times in seconds, windows in segments.

    `rtts` are all samples, `counts` and `elapsed` the packets and the time of all connections and runs
    together.
    """

    goodput: float
    sends: float
    rtts: tuple[float, ...]
    window: float
    cwnd: float
    timeouts: float
    fast_retransmits: float
    segment_loss: float
    counts: Counts
    elapsed: float

    @property
    def rtt(self) -> float:
        """Mean round-trip time; not a number if nothing was acknowledged."""
        return sum(self.rtts) / len(self.rtts) if self.rtts else nan


class Connection:
    """A greedy connection: sender, receiver, the path of its data and that of its acknowledgements."""

    def __init__(self, sender: Sender, path: SenderPath, ack_path: SenderPath) -> None:
        """Nothing sent yet."""
        self.sender, self.path, self.ack_path = sender, path, ack_path
        self.receiver, self.sums = Receiver(), Sums()
        self.before = (0, 0, 0)

    def forget(self) -> None:
        """Begin the sums anew."""
        self.sums, self.path.counts = Sums(), Counts()
        self.before = (self.receiver.expected, self.sender.timeouts, self.sender.fast_retransmits)

    def count_totals(self) -> None:
        """Bring what the sender and the receiver count into the sums."""
        delivered, timeouts, fast = self.before
        self.sums.delivered = self.receiver.expected - delivered
        self.sums.timeouts = self.sender.timeouts - timeouts
        self.sums.fast_retransmits = self.sender.fast_retransmits - fast

    def sample_window(self) -> None:
        """Count the window in force when an acknowledgement or a timeout comes."""
        self.sums.acknowledgements += 1
        self.sums.window += self.sender.window
        self.sums.cwnd += self.sender.cwnd


class RingOfConnections:
    """Connections round the ring: the data of i share buffers with the acknowledgements of i - 1.

    The connections start one after the other, `phase_s` apart, so that they are not in step.
    """

    def __init__(self, ring: Ring, air: Air, senders: Sequence[Sender], phase_s: float) -> None:
        """Start at time 0 with empty buffers and full buckets."""
        paths = [SenderPath(ring, air) for _ in senders]
        self.connections = [
            Connection(sender, path, ack_path)
            for sender, path, ack_path in zip(senders, paths, paths[1:] + paths[:1], strict=True)
        ]
        self.now, self.order = 0.0, 0
        self.events: list[tuple[float, int, str, int, int, float]] = []
        for index in range(len(senders)):
            self._push(index * phase_s, "start", index, 0, 0.0)

    @property
    def delivered(self) -> int:
        """Segments delivered in order by both connections."""
        return sum(connection.receiver.expected for connection in self.connections)

    def play(self, exchanges: int, longest_s: float) -> None:
        """Play until so many more segments are delivered, or so much time has gone."""
        target, end = self.delivered + exchanges, self.now + longest_s
        while self.delivered < target and self.now < end:
            self.step()

    def step(self) -> None:
        """Play the next event: the delivery of data or of an acknowledgement, or the expiry of a timer."""
        delivery = self.events[0][0] if self.events else inf
        index, deadline = min(
            enumerate(c.sender.deadline for c in self.connections), key=lambda pair: pair[1]
        )
        if deadline < delivery:
            self.now = deadline
            connection = self.connections[index]
            connection.sample_window()
            self._send(index, connection.sender.expire(self.now))
            return
        self.now, _, kind, index, number, time = heappop(self.events)
        connection = self.connections[index]
        if kind == "data":
            expected, echo = connection.receiver.take(number, time)
            path = connection.ack_path
            self._push(
                path.send(path.ring.ack, self.now) + path.air.ack_relay_s, "ack", index, expected, echo
            )
        elif kind == "ack":
            connection.sample_window()
            if number > connection.sender.una:
                connection.sums.rtts.append(self.now - time)
            self._send(index, connection.sender.acknowledge(number, time, self.now))
        else:
            self._send(index, connection.sender.sendable(self.now))

    def _send(self, index: int, numbers: list[int]) -> None:
        connection = self.connections[index]
        path = connection.path
        for number in numbers:
            arrival = path.send(path.ring.data, self.now) + path.air.data_relay_s
            connection.sums.losses.append(arrival == inf)
            self._push(arrival, "data", index, number, self.now)

    def _push(self, arrival: float, kind: str, index: int, number: int, time: float) -> None:
        if arrival < inf:
            self.order += 1
            heappush(self.events, (arrival, self.order, kind, index, number, time))


def follow(ring: Ring, air: Air, new_sender: Callable[[], Sender]) -> Orbit:
    """Follow the connections through this air from several starts; return averages over all."""
    runs = [follow_from(ring, air, new_sender, phase) for phase in PHASES_S]
    sums = [connection.sums for run, _ in runs for connection in run.connections]
    elapsed = sum(time * ring.peripherals for _, time in runs)
    samples = max(1, sum(s.acknowledgements for s in sums))
    sent = sum(len(s.losses) for s in sums)
    return Orbit(
        goodput=sum(s.delivered for s in sums) / elapsed,
        sends=sent / elapsed,
        rtts=tuple(rtt for s in sums for rtt in s.rtts),
        window=sum(s.window for s in sums) / samples,
        cwnd=sum(s.cwnd for s in sums) / samples,
        timeouts=sum(s.timeouts for s in sums) / elapsed,
        fast_retransmits=sum(s.fast_retransmits for s in sums) / elapsed,
        segment_loss=sum(sum(s.losses) for s in sums) / max(1, sent),
        counts=sum_counts(connection.path.counts for run, _ in runs for connection in run.connections),
        elapsed=elapsed,
    )


def follow_from(
    ring: Ring, air: Air, new_sender: Callable[[], Sender], phase_s: float
) -> tuple[RingOfConnections, float]:
    """Let the connections settle, then follow them; return them and the time that their sums cover."""
    run = RingOfConnections(ring, air, [new_sender() for _ in range(ring.peripherals)], phase_s)
    run.play(SETTLING_EXCHANGES, LONGEST_S / 4)
    for connection in run.connections:
        connection.forget()
    start = run.now
    run.play(HORIZON_EXCHANGES, LONGEST_S)
    for connection in run.connections:
        connection.count_totals()
    return run, run.now - start


def slow_start(ring: Ring, air: Air, sender: Sender, count: int) -> tuple[list[float], list[bool]]:
    """Let a lone connection start from idle; return its first `count` round-trip times and buffer losses.

    The losses say of each segment, in the order of sending, whether a buffer refused part of it.
    """
    silent = [replace(sender, receive_window=0) for _ in range(ring.peripherals - 1)]
    run = RingOfConnections(ring, air, [sender, *silent], 0.0)
    sums = run.connections[0].sums
    while len(sums.rtts) < count and run.now < LONGEST_S:
        run.step()
    return sums.rtts[:count], sums.losses[:count]
