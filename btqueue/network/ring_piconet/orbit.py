"""The long run of connections on a perfect radio: an exact recursion, followed until its averages settle.

Without radio errors nothing is random but the times at which messages come. Greedy connections go round in a
limit cycle. With messages, which of several cycles the connections fall into, and how often a buffer
overflows, depends on the irregularity of the gaps: they are taken from fixed sequences (`ends.gap`) that have
the exponential law. So this is an integral over the gaps, worked out by sampling, like a simulation that is
stripped to what matters here; its sampling error is what is left (see `Orbit.spread`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import nan

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.network.ring_piconet.air import play
from btqueue.network.ring_piconet.network import RingNetwork
from btqueue.network.ring_piconet.records import SUMMED, UNBOUNDED, State, at_rest, begin, rules_of
from btqueue.transport.newreno_sender import Sender

RUNS = 3
"""Runs, each with other sequences of gaps and other offsets between the connections."""
SETTLING_SEGMENTS = 1_000
"""Segments of all flows that are delivered in a run before anything is counted."""
HORIZON_SEGMENTS = 10_000
"""Segments of all flows that are then counted."""
PHASES_S = (0.037, 0.061, 0.083)
"""Offsets between the beginnings of two connections (s)."""
LONGEST_S = 1e6
"""An orbit that moves hardly anything is followed for at most this long (s)."""
CARRIED = 0.99
"""Share of the messages written that are delivered if the network carries the load."""
PLACES = 256
"""Places that a queue begins with."""


@dataclass(frozen=True)
class Orbit:
    """Averages over all flows; rates per second and flow, times in seconds, windows in segments.

    Attributes:
        rtts: samples of the round-trip time.
        queues: mean packets in a token buffer, an uplink queue and a downlink queue.
        goodputs: goodput of each run.
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


@dataclass(frozen=True)
class Run:
    """What one run counted, over `elapsed` seconds."""

    elapsed: float
    delivered: int
    written: int
    cycles: int
    data_slots: int
    sums: dict[str, float]
    rtts: np.ndarray


def follow(net: RingNetwork, new_sender: Callable[[], Sender], window: int, interval: float) -> Orbit:
    """Follow connections whose messages come `interval` seconds apart on average; 0: always data."""
    runs = [run(net, new_sender(), window, interval, number) for number in range(RUNS)]
    return average(net, runs, interval)


def run(net: RingNetwork, sender: Sender, window: int, interval: float, number: int) -> Run:
    """Let the connections settle, then follow them; with larger queues, if they need them."""
    places = PLACES
    while True:
        state = at_rest(net.ring, window, places, 2 * HORIZON_SEGMENTS)
        begin(state, sender, [PHASES_S[number] * k for k in range(net.flows)], interval, number)
        found = _counted(net, state)
        if found is not None:
            return found
        places *= 4


def _counted(net: RingNetwork, state: State) -> Run | None:
    """Follow the connections; None if a queue has too few places."""
    clock, rules = state.clock[0], rules_of(net.ring)
    play(state, rules, SETTLING_SEGMENTS, UNBOUNDED, LONGEST_S / 4)
    if clock.too_small:
        return None
    before, written = state.clock.copy()[0], int(state.peripherals["messages"].sum())
    for name in SUMMED:
        state.peripherals[name] = 0
    play(state, rules, int(before.delivered) + HORIZON_SEGMENTS, UNBOUNDED, float(before.now) + LONGEST_S)
    if clock.too_small:
        return None
    gained = int(clock.round_trips - before.round_trips)
    known = np.arange(clock.round_trips - min(gained, len(state.rtts)), clock.round_trips) % len(state.rtts)
    return Run(
        elapsed=float(clock.now - before.now),
        delivered=int(clock.delivered - before.delivered),
        written=int(state.peripherals["messages"].sum()) - written,
        cycles=int(clock.cycles - before.cycles),
        data_slots=int(clock.data_slots - before.data_slots),
        sums={name: float(state.peripherals[name].sum()) for name in SUMMED},
        rtts=state.rtts[known],
    )


def average(net: RingNetwork, runs: list[Run], interval: float) -> Orbit:
    """Average over the time and the flows of all runs.

    If the network carried what was written, goodput is the load, and other rates are scaled by what the
    sample of messages had too many or too few.
    """
    elapsed = sum(run.elapsed for run in runs)
    delivered, written = (sum(getattr(run, name) for run in runs) for name in ("delivered", "written"))
    if interval > 0.0 and delivered > CARRIED * written:
        elapsed = delivered * interval / net.flows
    sums = {name: sum(run.sums[name] for run in runs) for name in SUMMED}

    def share(part: str, whole: str) -> float:
        return sums[part] / max(sums[whole], 1.0)

    per_flow = 1.0 / (elapsed * net.flows)
    return Orbit(
        goodput=delivered * per_flow,
        sends=sums["sent"] * per_flow,
        rtts=np.concatenate([run.rtts for run in runs]),
        window=share("window_sum", "samples"),
        cwnd=share("cwnd_sum", "samples"),
        timeouts=sums["timeouts"] * per_flow,
        fast_retransmits=sums["fast_retransmits"] * per_flow,
        segment_loss=share("lost", "sent"),
        loss_token_buffer=share("refused_at_buffer", "offered_to_buffer"),
        loss_baseband_buffer=share("refused_at_baseband", "offered_to_baseband"),
        queues={
            "token_buffer": sums["time_in_buffer"] * per_flow,
            "uplink": sums["time_in_uplink"] * per_flow,
            "downlink": sums["time_in_downlink"] * per_flow,
        },
        cycle=elapsed / sum(run.cycles for run in runs),
        slot_utilisation=sum(run.data_slots for run in runs) * SLOT_S / elapsed,
        goodputs=tuple(run.delivered / run.elapsed / net.flows for run in runs),
    )
