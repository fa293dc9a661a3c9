"""What a connection over a chain gets while the radio stays in one state."""

from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from btqueue.scenario import Scenario


@dataclass(frozen=True)
class Flow:
    """What a connection gets in one state of the radio; rates per second, windows in segments.

    `rtts` are the means of the round trips in the phases of the sawtooth, with their deviations and weights.
    """

    goodput: float
    sends: float
    window: float
    cwnd: float | None
    fast_retransmits: float
    timeouts: float | None
    losses: float
    rtts: NDArray[np.float64]
    iterations: int
    residual: float

    @property
    def rtt(self) -> float:
        """Mean round trip (s)."""
        return float(np.average(self.rtts[0], weights=self.rtts[2]))


def capacity(scenario: Scenario) -> float:
    """Segments that a node holds."""
    buffer = scenario.link.node_buffer_bytes
    if buffer is None:
        return inf
    transport = scenario.transport
    payload = min(transport.mss_bytes, scenario.traffic.message_bytes)
    return buffer // (payload + transport.header_bytes + scenario.link.l2cap_header_bytes)
