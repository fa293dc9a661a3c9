"""The two ends of the flows of a scatternet: TCP and its messages."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf, log, sqrt
from typing import Literal

from btqueue.network.scatternet.peripheral import GOLDEN_RATIO, Flow, Segment
from btqueue.transport.newreno_sender import Receiver, Sender

Start = Literal["burst", "even", "irregular"]
"""How messages come until they fill the window: all at once, at equal or at irregular intervals."""
NO_END = 1 << 30
SHORTEST = 1e-12


@dataclass
class Messages:
    """When messages come: equally spaced, or in the order of a low-discrepancy sequence of exponential gaps.

    Attributes:
        start: ways to begin.
        interval: mean gap (s).
        upcoming: when the next one comes.
        count: how many have come.
        shift: where in the sequence it starts; another for each flow.
    """

    start: Start
    interval: float
    upcoming: float
    count: int = 0
    shift: float = 0.0

    def until(self, now: float) -> int:
        """Return how many messages have come by now."""
        if self.start == "burst":
            return NO_END if now >= self.upcoming else 0
        while self.upcoming <= now:
            self.count += 1
            self.upcoming += self.interval * self._gap()
        return self.count

    def _gap(self) -> float:
        if self.start == "even":
            return 1.0
        return -log((self.count * GOLDEN_RATIO + self.shift) % 1.0 + SHORTEST)


@dataclass
class PacedSender(Sender):
    """A sender that waits for its messages."""

    messages: Messages = field(default_factory=lambda: Messages("burst", 0.0, 0.0))

    def next_message(self, now: float) -> float:
        """Return when the next message comes, if the sender waits for it."""
        return inf if self.nxt < self.messages.until(now) else self.messages.upcoming

    def sendable(self, now: float) -> list[int]:
        """Return the new segments that window and messages let out, and count them as sent."""
        count = max(0, min(int(self.una + self.window), self.messages.until(now)) - self.nxt)
        numbers = list(range(self.nxt, self.nxt + count))
        self._sent(self.nxt + count, now)
        return numbers


def messages_of(start: Start, interval: float, connection: int, phase_s: float) -> Messages:
    """Return the messages of a connection; the connections begin `phase_s` apart."""
    return Messages(start, interval, connection * phase_s, shift=connection * sqrt(2.0) % 1.0)


class TcpEnd:
    """The sender of a flow and the receiver of the opposite one.

    Attributes:
        rtts: samples of the round-trip time (s).
        windows, cwnds: window used and congestion window that acknowledgements and expiries find.
    """

    def __init__(self, sender: PacedSender, flow: Flow, opposite: Flow, data: int, ack: int) -> None:
        """Let the sender begin; a segment is `data`, an acknowledgement `ack` packets."""
        self.sender, self.receiver = sender, Receiver()
        self.flow, self.opposite = flow, opposite
        self.data, self.ack = data, ack
        self.message = sender.messages.upcoming
        self.rtts: list[float] = []
        self.windows: list[float] = []
        self.cwnds: list[float] = []

    @property
    def deadline(self) -> float:
        """When the timer expires, or a message comes that the sender waits for."""
        return min(self.sender.deadline, self.message)

    def expire(self, now: float) -> list[Segment]:
        """Send the message that has come, or go back to the oldest segment."""
        if self.message <= now:
            return self._segments(self.sender.sendable(now), now)
        self._sample()
        return self._segments(self.sender.expire(now), now)

    def receive(self, segment: Segment, now: float) -> list[Segment]:
        """Acknowledge data, or send what an acknowledgement lets out."""
        if segment.is_data:
            expected, echo = self.receiver.take(segment.number, segment.stamp)
            return [Segment(self.opposite, False, expected, echo, self.ack)]
        self._sample()
        if segment.number > self.sender.una:
            self.rtts.append(now - segment.stamp)
        return self._segments(self.sender.acknowledge(segment.number, segment.stamp, now), now)

    def forget(self) -> None:
        """Begin the samples anew."""
        self.rtts, self.windows, self.cwnds = [], [], []

    def counters(self) -> tuple[int, int, int]:
        """Return segments delivered to the receiver here, and the sender's timeouts and fast retransmits."""
        return self.receiver.expected, self.sender.timeouts, self.sender.fast_retransmits

    def _segments(self, numbers: list[int], now: float) -> list[Segment]:
        self.message = self.sender.next_message(now)
        return [Segment(self.flow, True, number, now, self.data) for number in numbers]

    def _sample(self) -> None:
        self.windows.append(self.sender.window)
        self.cwnds.append(self.sender.cwnd)


NewSender = Callable[[Messages], PacedSender]
