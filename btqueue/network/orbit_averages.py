"""What models find that follow connections: averages over flows and runs, and the metrics they become.

Without radio errors a followed connection is a deterministic recursion; runs differ in how the connections
begin and when messages come.
"""

from dataclasses import dataclass
from math import nan
from typing import NamedTuple

import numpy as np

from btqueue.network.orbit_precision import Precision

SPREAD = 0.03
"""Relative difference of goodput between runs above which there are several limit cycles."""
CHANCE = 6.0
"""The same in standard errors, of several runs, that chance does not explain."""


class Repeated(NamedTuple):
    """Counts that tell what is sent for each segment delivered, whatever was under way when counting began.

    In the long run each segment delivered was sent once and then repeated, and each one lost was repeated.
    Sends as they are counted miss what was under way at first, and so can be fewer than what was delivered.

    Attributes:
        delivered: segments in order; more than none.
        repeated: segments sent again.
        lost: segments that did not arrive.
    """

    delivered: float
    repeated: float
    lost: float

    def sends(self, goodput: float) -> float:
        """Return the segments sent for so many delivered."""
        return goodput * (1.0 + self.repeated / self.delivered)

    @property
    def loss(self) -> float:
        """Share of the segments sent that were lost; of those whose repetition has been seen."""
        return min(self.lost, self.repeated) / (self.delivered + self.repeated)


def too_rare(followed_s: float) -> str:
    """Return why nothing is known of flows that wrote no message in the time that they were followed."""
    return (
        f"no message was written in the {followed_s:.3g} s that connections were followed: at this load "
        "messages are too rare for this model"
    )


@dataclass(frozen=True)
class Orbit:
    """Averages over all flows; rates per second and flow, times in seconds, windows in segments.

    Attributes:
        rtts: samples of the round-trip time.
        rtt_weights: what each of them counts for; all alike without.
        queues: mean packets in a token buffer, an uplink queue and a downlink queue.
        goodputs: goodput of each run.
        precision: how well goodput and round trips are known.
        counted: segments delivered of a flow in the run that has the fewest.
        loss_radio: share of the packets that arrive damaged.
    """

    goodput: float
    sends: float
    rtts: np.ndarray
    window: float
    cwnd: float
    timeouts: float
    fast_retransmits: float
    segment_loss: float
    loss_token_buffer: float
    loss_baseband_buffer: float
    queues: dict[str, float]
    cycle: float
    slot_utilisation: float
    goodputs: tuple[float, ...]
    precision: Precision
    counted: float
    loss_radio: float = 0.0
    rtt_weights: np.ndarray | None = None

    @property
    def rtt(self) -> float:
        """Mean round-trip time; not a number if nothing was acknowledged."""
        return float(np.average(self.rtts, weights=self.rtt_weights)) if self.rtts.size else nan

    @property
    def spread(self) -> float:
        """Relative spread of goodput over the runs."""
        return max(self.goodputs) / min(self.goodputs) - 1.0 if min(self.goodputs) > 0.0 else 0.0

    def quantiles(self, *shares: float) -> tuple[float, ...]:
        """Return the round-trip times that these shares do not exceed (s)."""
        if not self.rtts.size:
            return (nan,) * len(shares)
        if self.rtt_weights is None:
            return tuple(np.quantile(self.rtts, shares).tolist())
        order = np.argsort(self.rtts)
        reached = np.cumsum(self.rtt_weights[order])
        places = np.searchsorted(reached, np.multiply(shares, reached[-1]))
        return tuple(self.rtts[order[np.minimum(places, len(order) - 1)]].tolist())

    def metrics(self) -> dict:
        """Return the metrics by name; `goodput` and `sends` are rates of segments still."""
        median, high = self.quantiles(0.5, 0.9)
        found = {
            "goodput": self.goodput,
            "sends": self.sends,
            "rtt_s": self.rtt,
            "rtt_p50_s": median,
            "rtt_p90_s": high,
            "window_segments": self.window,
            "timeouts_per_s": self.timeouts,
            "fast_retransmits_per_s": self.fast_retransmits,
            "segment_loss": self.segment_loss,
            "loss_token_buffer": self.loss_token_buffer,
            "loss_baseband_buffer": self.loss_baseband_buffer,
            "queue_packets": self.queues,
            "cycle_s": self.cycle,
            "slot_utilisation": self.slot_utilisation,
            "loss_radio": self.loss_radio,
        }
        if self.segment_loss > 0.0:
            found["cwnd_segments"] = self.cwnd  # without losses it grows for ever
        return found

    def warnings(self) -> list[str]:
        """Return a warning if the runs fell into several limit cycles: they differ by more than chance."""
        if self.spread <= max(SPREAD, CHANCE * self.precision.goodput):
            return []
        return [
            f"several limit cycles: each connection gets {min(self.goodputs):.2f} to "
            f"{max(self.goodputs):.2f} segments/s from run to run; their mean is given"
        ]
