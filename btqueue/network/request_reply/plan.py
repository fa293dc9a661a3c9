"""What TCP sessions are made of, what can be chosen in them, and what is noted of them."""

from dataclasses import dataclass
from typing import NamedTuple

from btqueue.network.request_reply.route import Chain, Form, Parcel, Way
from btqueue.transport.request_reply_transfer import Rules

CLIENT, SERVER = 0, 1


@dataclass(frozen=True)
class Plan:
    """What the sessions of a connection are made of; times in ns.

    Attributes:
        data: forms of the client's segments (request, then good-bye), and of the server's (reply).
        user_bytes: bytes of the messages in each of these segments.
        small: form of acknowledgements and of SYN.
        request: segments of a request; likewise `reply` and `goodbye`.
        handshake: every session opens a connection of its own.
        lossy: whether anything can be lost; else timers never matter.
    """

    way: Way
    rules: Rules
    data: tuple[tuple[Form, ...], tuple[Form, ...]]
    user_bytes: tuple[tuple[int, ...], tuple[int, ...]]
    small: Form
    request: int
    reply: int
    goodbye: int
    pause: int
    handshake: bool
    lossy: bool

    @property
    def largest_loss(self) -> float:
        """Largest probability that a data segment is lost on one hop; 1 if nothing is lost on any."""
        forms = self.data[CLIENT] + self.data[SERVER]
        return max(loss for form in forms for losses in form.losses for loss in losses) or 1.0

    def largest_burst(self, flow: int) -> int:
        """Segments of a sender beyond which a window does not matter."""
        written = self.request + self.goodbye if flow == CLIENT else self.reply
        return min(self.rules.receive_window, written)


class Option(NamedTuple):
    """A future: its probability; the parcel that goes on, None if lost; or after which processing delay."""

    probability: float
    parcel: Parcel | None
    delay_ns: int | None


class Record(NamedTuple):
    """What happened in a stage; times in ns from its start.

    Attributes:
        elapsed: until the next stage.
        started: when the request was written; None if earlier.
        finished: when the reply was complete; None if not in this stage.
        chain: what is random besides losses up to there.
        repeated: mean slots that repeated radio packets add to the whole session, good-bye included.
        late: mean slots that they add to all round-trip samples together, of each sender.
        connected: how long the handshake took, if there was one.
        sent_bytes: of the messages, what was sent again included, of both senders.
        resent, timeouts, fast, samples: of both senders.
    """

    elapsed: int
    started: int | None
    finished: int | None
    chain: Chain
    repeated: float
    late: tuple[float, float]
    connected: int | None
    sent_bytes: tuple[int, int]
    resent: tuple[int, int]
    timeouts: tuple[int, int]
    fast: tuple[int, int]
    samples: tuple[tuple[float, ...], tuple[float, ...]]
