"""The two ends of flows in plain Python, to hold compiled recursions against: greedy senders, receivers."""

from dataclasses import dataclass, field
from math import inf

from btqueue.transport.newreno_sender import Receiver, Sender

from .plain_peripheral import Flow, Segment

NO_END = 1 << 30


@dataclass
class Messages:
    """There are always data from a time on (s)."""

    upcoming: float

    def until(self, now: float) -> int:
        """Return how many messages have come by now."""
        return NO_END if now >= self.upcoming else 0


@dataclass
class PacedSender(Sender):
    """A sender that waits for its messages."""

    messages: Messages = field(default_factory=lambda: Messages(0.0))

    def next_message(self, now: float) -> float:
        """Return when the next message comes, if the sender waits for it."""
        return inf if self.nxt < self.messages.until(now) else self.messages.upcoming

    def sendable(self, now: float) -> list[int]:
        """Return the new segments that window and messages let out, and count them as sent."""
        count = max(0, min(int(self.una + self.window), self.messages.until(now)) - self.nxt)
        numbers = list(range(self.nxt, self.nxt + count))
        self._sent(self.nxt + count, now)
        return numbers


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

    def counters(self) -> tuple[int, int, int]:
        """Return segments delivered to the receiver here, and the sender's timeouts and fast retransmits."""
        return self.receiver.expected, self.sender.timeouts, self.sender.fast_retransmits

    def _segments(self, numbers: list[int], now: float) -> list[Segment]:
        self.message = self.sender.next_message(now)
        return [Segment(self.flow, True, number, now, self.data) for number in numbers]

    def _sample(self) -> None:
        self.windows.append(self.sender.window)
        self.cwnds.append(self.sender.cwnd)
