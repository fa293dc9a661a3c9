"""What TCP sessions are made of."""

from dataclasses import dataclass

from btqueue.network.request_reply.route import Form, Way

CLIENT, SERVER = 0, 1


@dataclass(frozen=True)
class Rules:
    """What both ends of a connection go by, see `transport.request_reply_transfer`; times in ns."""

    receive_window: int
    initial_window: float
    initial_ssthresh: float
    initial_rto: float
    min_rto: float
    max_rto: float
    backoff: bool = True
    timestamps: bool = True
    ack_every: int = 1
    ack_delay: float = 0.0


@dataclass(frozen=True)
class Plan:
    """What the sessions of a connection are made of; times in ns.

    Attributes:
        data: forms of the client's segments (request, then good-bye), and of the server's (reply).
        user_bytes: bytes of the messages in each of these segments.
        small: form of acknowledgements and of SYN.
        nominal: of each form the same with nominal losses, by which is chosen what is followed.
        request: segments of a request; likewise `reply` and `goodbye`.
        handshake: every session opens a connection of its own.
        lossy: whether anything can be lost; else timers never matter.
    """

    way: Way
    rules: Rules
    data: tuple[tuple[Form, ...], tuple[Form, ...]]
    user_bytes: tuple[tuple[int, ...], tuple[int, ...]]
    small: Form
    nominal: dict[Form, Form]
    request: int
    reply: int
    goodbye: int
    pause: int
    handshake: bool
    lossy: bool

    @property
    def largest_loss(self) -> float:
        """Largest nominal probability that a data segment is lost on one hop; 1 if nothing is lost on any."""
        forms = [self.nominal[form] for form in self.data[CLIENT] + self.data[SERVER]]
        return max(loss for form in forms for losses in form.losses for loss in losses) or 1.0

    def largest_burst(self, flow: int) -> int:
        """Segments of a sender beyond which a window does not matter."""
        written = self.request + self.goodbye if flow == CLIENT else self.reply
        return min(self.rules.receive_window, written)

    @property
    def histories(self) -> int:
        """Room for histories: of packets that may fail."""
        forms = (*self.data[CLIENT], *self.data[SERVER], self.small)
        failing = any(failing for form in forms for _, failing in form.fragments)
        return 1 if not failing else 1_000_000 if self.lossy else 100_000
