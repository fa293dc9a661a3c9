"""What TCP makes of a round trip and of independent losses: the reduced chain of NewReno."""

from typing import NamedTuple

from btqueue.transport.reduced_chain import LARGEST_WINDOW, reduced_structure
from btqueue.transport.reduced_rates import reduced_rates

LOSSLESS = 1e-12
"""Probability below which nothing is lost."""


class Timing(NamedTuple):
    """Receive window (segments), least and largest timeout (s) of the senders."""

    window: int
    min_rto_s: float
    max_rto_s: float


class Tcp(NamedTuple):
    """What TCP makes of a round trip and losses; rates a second, windows in segments."""

    rate: float
    timeouts: float
    fast_retransmits: float
    window: float


def tcp_rate(timing: Timing, rtt_s: float, loss: float, ack_loss: float) -> Tcp:
    """Return what a greedy NewReno connection makes of a round trip and independent losses."""
    most = min(timing.window, LARGEST_WINDOW)
    if loss < LOSSLESS and ack_loss < LOSSLESS:
        return Tcp(most / rtt_s, 0.0, 0.0, float(most))
    times = {"rtt": rtt_s, "min_rto": timing.min_rto_s, "max_rto": timing.max_rto_s}
    loss, ack_loss = (min(share, 1.0 - 1e-9) for share in (loss, ack_loss))
    found = reduced_rates(reduced_structure(most), loss, ack_loss, **times)
    return Tcp(*(max(float(value), 0.0) for value in found))
