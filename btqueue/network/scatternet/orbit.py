"""The long-run orbit of overloaded connections through a scatternet: a deterministic recursion.

Without radio errors nothing is random once the sources always have data. There are several limit cycles, and
which one the connections fall into depends on how they began: a window filled in bursts stays in bursts, and
those overflow the token buffer where an evenly filled window does not. The averages are over several ways to
begin; their equal weights are a choice, made against the simulator, and not derived.
"""

from dataclasses import dataclass, field
from math import nan

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.network.scatternet.air import Air, Piconet
from btqueue.network.scatternet.network import PICONETS, Scatternet
from btqueue.network.scatternet.peripheral import Flow, Peripheral, Tally
from btqueue.network.scatternet.sender import NewSender, Start, TcpEnd, messages_of

SETTLING_SEGMENTS = 500
"""Segments of all flows together that are delivered before anything is counted; some fill the windows."""
HORIZON_SEGMENTS = 600
"""Segments of all flows together that are then counted."""
PHASE_S = 0.037
"""Offset between the beginnings of two connections (s)."""
LONGEST_S = 2_000.0
"""An orbit that moves hardly anything is followed for at most this long (s)."""


@dataclass(frozen=True)
class Orbit:
    """Averages over all flows; rates per second and flow, times in seconds, windows in segments.

    Attributes:
        queues: mean packets in a token buffer, an uplink queue and a downlink queue; the last two are
            averages over the links of the bridge, too.
        goodputs: goodput of each run.
        elapsed: time followed, settled runs together (s).
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


@dataclass
class Run:
    """All connections of the scatternet on its air, from one way to begin."""

    net: Scatternet
    air: Air
    ends: list[TcpEnd]
    started: float = 0.0
    before: list[tuple[int, int, int]] = field(default_factory=list)

    @property
    def delivered(self) -> int:
        """Segments delivered in order."""
        return sum(end.receiver.expected for end in self.ends)

    @property
    def elapsed(self) -> float:
        """Time since the sums began (s)."""
        return self.air.now - self.started

    @property
    def gained(self) -> np.ndarray:
        """Segments delivered, timeouts and fast retransmits since the sums began."""
        return np.array([end.counters() for end in self.ends]).sum(axis=0) - np.sum(self.before, axis=0)

    def play(self, segments: int, longest_s: float) -> None:
        """Follow until so many more segments are delivered, or so much time has gone."""
        target, end = self.delivered + segments, self.air.now + longest_s
        while self.delivered < target and self.air.now < end:
            self.air.step()

    def forget(self) -> None:
        """Begin the sums anew."""
        self.started = self.air.now
        for piconet in self.air.piconets:
            piconet.forget()
            for peripheral in piconet.peripherals:
                peripheral.tally = Tally()
        for end in self.ends:
            end.forget()
            end.flow.sent = end.flow.lost = 0
        self.before = [end.counters() for end in self.ends]


def connect(net: Scatternet, new_sender: NewSender, start: Start, interval: float) -> Run:
    """Put a connection at every peripheral, with empty queues."""
    ring, ends, piconets = net.ring, [], []
    flows = [[Flow(pair) for pair in range(net.peripherals)] for _ in range(PICONETS)]
    for here in range(PICONETS):
        members = []
        for pair in range(net.peripherals):
            messages = messages_of(start, interval, pair * PICONETS + here, PHASE_S)
            end = TcpEnd(
                new_sender(messages), flows[here][pair], flows[1 - here][pair], len(ring.data), len(ring.ack)
            )
            ends.append(end)
            members.append(Peripheral(ring, end))
        piconets.append(Piconet(net, members))
    return Run(net, Air(tuple(piconets)), ends)


def follow(net: Scatternet, new_sender: NewSender, starts: tuple[Start, ...], interval: float) -> Orbit:
    """Follow the connections from each way to begin, messages `interval` seconds apart, and average."""
    runs = []
    for start in starts:
        run = connect(net, new_sender, start, interval)
        run.play(SETTLING_SEGMENTS, LONGEST_S / 4)
        run.forget()
        run.play(HORIZON_SEGMENTS, LONGEST_S)
        runs.append(run)
    return average(runs)


def average(runs: list[Run]) -> Orbit:
    """Average over the time and the flows of all runs, each with the same weight."""
    weights = np.array([1.0 / (len(runs) * run.elapsed) for run in runs])
    net = runs[0].net
    delivered, timeouts, fast = weights @ np.array([run.gained for run in runs]) / net.flows
    flows = [[end.flow for end in run.ends] for run in runs]
    piconets = [run.air.piconets for run in runs]
    tallies = [[place.tally for piconet in both for place in piconet.peripherals] for both in piconets]

    def rate(groups: list, name: str) -> float:
        """Return what is counted under this name, a second."""
        return float(weights @ [sum(getattr(one, name) for one in group) for group in groups])

    links = PICONETS * (net.peripherals + 1)
    sent, lost = rate(flows, "sent"), rate(flows, "lost")
    ends = [end for run in runs for end in run.ends]
    return Orbit(
        goodput=float(delivered),
        sends=sent / net.flows,
        rtts=np.concatenate([end.rtts for end in ends]),
        window=float(np.mean(np.concatenate([end.windows for end in ends]))),
        cwnd=float(np.mean(np.concatenate([end.cwnds for end in ends]))),
        timeouts=float(timeouts),
        fast_retransmits=float(fast),
        segment_loss=lost / sent if sent else 0.0,
        loss_token_buffer=rate(tallies, "refused_at_buffer") / max(rate(tallies, "offered_to_buffer"), 1e-9),
        loss_baseband_buffer=rate(tallies, "refused_at_baseband")
        / max(rate(tallies, "offered_to_baseband"), 1e-9),
        queues={
            "token_buffer": rate(tallies, "time_in_buffer") / net.flows,
            "uplink": (rate(tallies, "time_in_uplink") + rate(piconets, "time_in_held")) / links,
            "downlink": (rate(tallies, "time_in_downlink") + rate(piconets, "time_in_waiting")) / links,
        },
        cycle=PICONETS / rate(piconets, "cycles"),
        slot_utilisation=rate(piconets, "data_slots") * SLOT_S / PICONETS,
        goodputs=tuple(float(run.gained[0]) / run.elapsed / net.flows for run in runs),
    )
