"""The long run of connections through a scatternet on a perfect radio: a recursion that is followed.

Without radio errors nothing is random but the times at which messages come, which are taken from fixed
sequences with the exponential law (`ring_piconet.ends.gap`). So this is an integral over the gaps, worked out
by sampling; its batches tell the sampling error. Greedy connections go round in a limit cycle. There may be
several cycles, and which one the connections fall into depends on how they began: several runs, each with its
own offsets and gaps, have equal weights.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.network.orbit_averages import Orbit
from btqueue.network.ring_piconet.records import SUMMED
from btqueue.network.scatternet.network import Scatternet
from btqueue.network.scatternet.runs import Counts, Run
from btqueue.transport.newreno_sender import Sender

PRECISION = 0.005
"""Relative standard error of goodput and of the mean round trip at which it is enough."""
EVENTS = 100
"""Timeouts and fast retransmits, if there are any, that are enough."""
RUNS = 3
"""Runs, each with other sequences."""
LEAST_BATCHES, MOST_BATCHES = 4, 32
"""Batches of a run."""
MOST_PICONET_SECONDS = 300_000.0
"""Time followed, times piconets, at which it is enough."""
CARRIED = 0.99
"""Share of the messages written that are delivered if the network carries the load."""
UNCERTAIN = 0.02
"""Relative standard error from which on a warning says how large it is; runs then differ by chance."""
OF_THE_NETWORK = ("queue_packets", "cycle_s", "slot_utilisation")


@dataclass(frozen=True)
class Followed:
    """Averages over the flows of each class, and which class each flow is of.

    Attributes:
        orbits: of each class.
        class_of: of each flow.
        precision: relative standard error, as far as the batches tell.
        batches: how many there were.
    """

    orbits: tuple[Orbit, ...]
    class_of: tuple[int, ...]
    precision: float
    batches: int

    def metrics(self) -> dict:
        """Return the metrics by name, one number for each flow where flows may differ."""
        each = [orbit.metrics() for orbit in self.orbits]
        names = [name for name in each[0] if all(name in one for one in each)]
        return {
            name: each[0][name]
            if name in OF_THE_NETWORK or len(each) == 1
            else np.array([each[kind][name] for kind in self.class_of])
            for name in names
        }

    def warnings(self) -> list[str]:
        """Return what to be careful about: a small sample or several limit cycles, flows that starve."""
        if self.precision >= UNCERTAIN:
            found = [f"goodput or round trips are uncertain by {self.precision:.1%}, one standard error"]
        else:
            found = max(self.orbits, key=lambda orbit: orbit.spread).warnings()
        if starved := sum(self.orbits[kind].goodput == 0.0 for kind in self.class_of):
            found.append(f"{starved} of {len(self.class_of)} flows get nothing through")
        return found


def classes_of(net: Scatternet, intervals: Sequence[float]) -> tuple[int, ...]:
    """Return a number for each flow, the same for flows over the same piconets with as many messages.

    They differ in their places in the polling cycles only, which is left out. So do the two directions where
    every bridge is a peripheral.
    """
    mirrored = all(piconet.central_bridge is None for piconet in net.polled)
    keys = []
    for connection, interval in zip(net.connections, intervals, strict=True):
        forth = tuple(net.home_of[place.link] for place in connection.forth)
        keys.append((min(forth, forth[::-1]) if mirrored else forth, interval))
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    return tuple(numbers[key] for key in keys)


def follow(
    net: Scatternet, new_sender: Callable[[], Sender], window: int, intervals: Sequence[float]
) -> Followed:
    """Follow connections whose messages come so many seconds apart on average; 0: always data.

    Raises:
        NoConvergence: bridges wait for each other for ever.
    """
    class_of = classes_of(net, intervals)
    runs = [Run(net, new_sender, window, intervals, class_of, way) for way in range(RUNS)]
    batches = LEAST_BATCHES
    while True:
        for run in runs:
            run.follow(batches)
        precision = precision_of([run.batches for run in runs])
        time = sum(batch.time for run in runs for batch in run.batches)
        settled = precision < PRECISION and not 0 < events_of(runs) < EVENTS
        if settled or batches >= MOST_BATCHES or 2 * time * net.piconets > MOST_PICONET_SECONDS:
            break
        batches = min(2 * batches, MOST_BATCHES)
    return Followed(average(net, runs, class_of), class_of, precision, batches * len(runs))


def events_of(runs: Sequence[Run]) -> int:
    """Return how many timeouts and fast retransmits were counted."""
    rows = [SUMMED.index("timeouts"), SUMMED.index("fast_retransmits")]
    return int(sum(batch.sums[rows].sum() for run in runs for batch in run.batches))


def precision_of(runs: Sequence[Sequence[Counts]]) -> float:
    """Return the relative standard error of the mean round trip or of goodput, whichever is larger.

    Batches are compared with the others of their run: what runs differ in, more batches do not mend. Those of
    a run are taken for independent. Where the load is carried goodput is known.
    """
    carried = sum(b.delivered.sum() for run in runs for b in run) > CARRIED * sum(
        b.written.sum() for run in runs for b in run
    )
    found = [[[b.round_trip, 0.0 if carried else b.delivered.sum() / b.time] for b in run] for run in runs]
    values = np.array(found)
    count = values.shape[0] * values.shape[1]
    variance = values.var(axis=1, ddof=1).mean(axis=0)
    return float(np.max(np.sqrt(variance / count) / np.maximum(values.mean(axis=(0, 1)), 1e-12)))


def average(net: Scatternet, runs: Sequence[Run], class_of: Sequence[int]) -> tuple[Orbit, ...]:
    """Average over the time of all runs and the flows of each class."""
    counts = [reduce(add, run.batches) for run in runs]
    trips = [np.concatenate(samples) for samples in zip(*(run.round_trips() for run in runs), strict=True)]
    flows = [np.flatnonzero(np.array(class_of) == kind) for kind in range(len(trips))]
    intervals = np.array(runs[0].intervals)
    return tuple(
        _orbit(net, counts, members, float(intervals[members[0]]), rtts)
        for members, rtts in zip(flows, trips, strict=True)
    )


def _orbit(
    net: Scatternet, counts: Sequence[Counts], flows: np.ndarray, interval: float, rtts: np.ndarray
) -> Orbit:
    """Average over these flows, which have messages `interval` seconds apart.

    If the network carried what was written, goodput is the load, and other rates are scaled by what the
    sample of messages had too many or too few.
    """
    together = reduce(add, counts)
    targets = np.array([net.connections[flow].forth[-1].link for flow in flows])
    delivered = int(together.delivered[flows].sum())
    elapsed = together.time
    if interval > 0.0 and delivered > CARRIED * together.written[flows].sum():
        elapsed = delivered * interval / len(flows)
    sums: dict[str, np.ndarray] = dict(zip(SUMMED, together.sums, strict=True))

    def share(part: str, whole: str) -> float:
        return float(sums[part][flows].sum() / max(sums[whole][flows].sum(), 1.0))

    def rate(name: str) -> float:
        return float(sums[name][flows].sum()) / (elapsed * len(flows))

    def mean_queue(name: str, links: int) -> float:
        return float(sums[name].sum()) / (together.time * links)

    return Orbit(
        goodput=delivered / (elapsed * len(flows)),
        sends=rate("sent"),
        rtts=rtts,
        window=share("window_sum", "samples"),
        cwnd=share("cwnd_sum", "samples"),
        timeouts=rate("timeouts"),
        fast_retransmits=rate("fast_retransmits"),
        segment_loss=float(sums["lost"][targets].sum()) / max(float(sums["sent"][flows].sum()), 1.0)
        if delivered > 0
        else 1.0,
        loss_token_buffer=share("refused_at_buffer", "offered_to_buffer"),
        loss_baseband_buffer=share("refused_at_baseband", "offered_to_baseband"),
        queues={
            "token_buffer": mean_queue("time_in_buffer", net.flows),
            "uplink": mean_queue("time_in_uplink", net.links),
            "downlink": mean_queue("time_in_downlink", net.links),
        },
        cycle=float(np.mean(together.time / np.maximum(together.cycles, 1))),
        slot_utilisation=float(together.data_slots.mean()) * SLOT_S / together.time,
        loss_radio=float(sums["damaged"].sum() / max(sums["received"].sum(), 1.0)),
        goodputs=tuple(float(run.delivered[flows].sum()) / run.time / len(flows) for run in counts),
    )
