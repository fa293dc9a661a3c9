"""What models find that follow connections: averages over flows and runs, and the metrics they become.

Without radio errors a followed connection is a deterministic recursion; runs differ in how the connections
begin and when messages come.
"""

from dataclasses import dataclass
from math import nan

import numpy as np

SPREAD = 0.03
"""Relative difference of goodput between runs above which there are several limit cycles."""


@dataclass(frozen=True)
class Orbit:
    """Averages over all flows; rates per second and flow, times in seconds, windows in segments.

    Attributes:
        rtts: samples of the round-trip time.
        queues: mean packets in a token buffer, an uplink queue and a downlink queue.
        goodputs: goodput of each run.
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
    loss_radio: float = 0.0

    @property
    def rtt(self) -> float:
        """Mean round-trip time; not a number if nothing was acknowledged."""
        return float(self.rtts.mean()) if self.rtts.size else nan

    def quantile(self, share: float) -> float:
        """Return the round-trip time that this share does not exceed (s)."""
        return float(np.quantile(self.rtts, share)) if self.rtts.size else nan

    @property
    def standard_error(self) -> float:
        """Relative standard error of goodput, as far as the runs tell."""
        mean, count = float(np.mean(self.goodputs)), len(self.goodputs)
        return float(np.std(self.goodputs, ddof=1)) / count**0.5 / mean if mean > 0.0 and count > 1 else 0.0

    @property
    def spread(self) -> float:
        """Relative spread of goodput over the runs."""
        return max(self.goodputs) / min(self.goodputs) - 1.0 if min(self.goodputs) > 0.0 else 0.0

    def metrics(self) -> dict:
        """Return the metrics by name; `goodput` and `sends` are rates of segments still."""
        found = {
            "goodput": self.goodput,
            "sends": self.sends,
            "rtt_s": self.rtt,
            "rtt_p50_s": self.quantile(0.5),
            "rtt_p90_s": self.quantile(0.9),
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
        """Return a warning if the runs fell into several limit cycles."""
        if self.spread <= SPREAD:
            return []
        return [
            f"several limit cycles: each connection gets {min(self.goodputs):.2f} to "
            f"{max(self.goodputs):.2f} segments/s from run to run; their mean is given"
        ]
