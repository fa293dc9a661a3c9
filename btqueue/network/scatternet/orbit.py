"""The long run of connections through a scatternet: a recursion, followed until its averages are known.

Without radio errors nothing is random but the times at which messages come, which are taken from fixed
sequences with the exponential law (`ring_piconet.sequences`). So this is an integral over the gaps, worked
out by sampling; its batches tell the sampling error. Greedy connections go round in a limit cycle. There may
be several cycles, and which one the connections fall into depends on how they began: several runs, each with
its own offsets and gaps, have equal weights.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.network.answers import NoConvergence, uncertain_ends
from btqueue.network.control_variates import weights
from btqueue.network.orbit_averages import Orbit, Repeated, too_rare
from btqueue.network.orbit_precision import BATCHES, UNKNOWN, Precision, enough, precision_of
from btqueue.network.ring_piconet.records import SUMMED
from btqueue.network.scatternet.network import Scatternet
from btqueue.network.scatternet.runs import MOST_BATCHES, Counts, Run
from btqueue.transport.newreno_sender import Sender

MOST_WITH_ERRORS = 32
"""Batches of a run with radio errors: at most."""
RUNS = 3
"""Runs, each with other sequences."""
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
        ends: relative error for where counting began and ended, of the class that it is largest of.
        batches: how many there were.
    """

    orbits: tuple[Orbit, ...]
    class_of: tuple[int, ...]
    precision: float
    ends: float
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
    batches = BATCHES
    while True:
        for run in runs:
            run.follow(batches)
        counts = [run.counts for run in runs]
        excess, delivers = excess_of(net, runs, counts), carried(counts)
        precision = precision_of([run.batches for run in runs], excess, carried=delivers)
        time = sum(count.time for count in counts)
        timeouts = sum(count.sums[SUMMED.index("timeouts")].sum() for count in counts)
        known = enough(precision, timeouts, time * net.flows)
        most = MOST_WITH_ERRORS if net.radio.lossy else MOST_BATCHES
        if known or batches >= most or 2 * time * net.piconets > MOST_PICONET_SECONDS:
            break
        batches = min(2 * batches, most)
    orbits = average(net, runs, counts, excess, precision)
    ends = [uncertain_ends(orbit.counted) for orbit in orbits if orbit.goodput > 0.0]
    return Followed(orbits, class_of, max(precision), max(ends, default=0.0), batches * len(runs))


def excess_of(net: Scatternet, runs: Sequence[Run], counts: Sequence[Counts]) -> np.ndarray | None:
    """Return the control variates of all batches, if there are any."""
    delivers = min(runs[0].intervals) > 0.0 and carried(counts)
    kinds = (
        [r.excess for r in runs] if delivers else [],
        [r.surprises for r in runs] if net.radio.lossy else [],
    )
    found = [np.concatenate(kind) for kind in kinds if kind]
    excess = np.hstack(found) if found else np.zeros((0, 0))
    return excess if excess.shape[1] else None


def carried(counts: Sequence[Counts]) -> bool:
    """Return whether the network carried what was written."""
    return sum(c.delivered.sum() for c in counts) > CARRIED * sum(c.written.sum() for c in counts)


def average(
    net: Scatternet,
    runs: Sequence[Run],
    counts: Sequence[Counts],
    excess: np.ndarray | None,
    precision: Precision,
) -> tuple[Orbit, ...]:
    """Average over the time of all runs and the flows of each class.

    Goodput and round trips are weighted by the control variates, the others are not.
    """
    trips = [np.concatenate(samples) for samples in zip(*(run.round_trips() for run in runs), strict=True)]
    class_of, intervals = np.array(runs[0].class_of), np.array(runs[0].intervals)
    flows = [np.flatnonzero(class_of == kind) for kind in range(len(trips))]
    each, faster = [None] * len(trips), 1.0
    if excess is not None:
        each = weights_of(runs, excess)
        time = np.concatenate([run.batches.time for run in runs])
        delivered = np.concatenate([run.batches.delivered for run in runs])
        faster = time.sum() / (weights(delivered, excess) @ time)
    return tuple(
        replace(
            _orbit(net, counts, members, float(intervals[members[0]]), float(faster)),
            rtts=rtts,
            rtt_weights=of_trips,
            precision=precision,
        )
        for members, rtts, of_trips in zip(flows, trips, each, strict=True)
    )


def weights_of(runs: Sequence[Run], excess: np.ndarray) -> list[np.ndarray]:
    """Return what each of the round-trip times that are kept counts for, by class."""
    trips = [run.trips for run in runs]
    of_batches = np.split(
        weights(np.concatenate(trips).sum(axis=1), excess), np.cumsum([len(x) for x in trips])[:-1]
    )
    kept = [run.round_trips() for run in runs]
    return [
        np.concatenate(
            [
                np.repeat(w, each[:, kind])[-len(rows[kind]) :]
                for w, each, rows in zip(of_batches, trips, kept, strict=True)
            ]
        )
        for kind in range(trips[0].shape[1])
    ]


def _orbit(
    net: Scatternet,
    counts: Sequence[Counts],
    flows: np.ndarray,
    interval: float,
    faster: float,
) -> Orbit:
    """Average over these flows, which have messages `interval` seconds apart.

    Goodput is so much `faster` than counted, as the control variates say.
    If the network carried what was written, goodput is the load, and other rates are scaled by what the
    sample of messages had too many or too few. For what is sent see `orbit_averages.Repeated`.
    """
    together = reduce(add, counts)
    if interval > 0.0 and not together.written[flows].any():
        raise NoConvergence(too_rare(together.time))
    targets = np.array([net.connections[flow].forth[-1].link for flow in flows])
    goodputs = tuple(float(run.delivered[flows].sum()) / run.time / len(flows) for run in counts)
    delivered = int(together.delivered[flows].sum())
    elapsed = together.time
    if interval > 0.0 and delivered > CARRIED * together.written[flows].sum():
        elapsed, faster = delivered * interval / len(flows), 1.0
        goodputs = (1.0 / interval,) * len(counts)  # they differ by what happened to be written
    sums: dict[str, np.ndarray] = dict(zip(SUMMED, together.sums, strict=True))

    def share(part: str, whole: str) -> float:
        return float(sums[part][flows].sum() / max(sums[whole][flows].sum(), 1.0))

    def rate(name: str) -> float:
        return float(sums[name][flows].sum()) / (elapsed * len(flows))

    def mean_queue(name: str, links: int) -> float:
        return float(sums[name].sum()) / (together.time * links)

    again = Repeated(
        delivered,
        float(sums["sent"][flows].sum() - together.numbered[flows].sum()),
        float(sums["lost"][targets].sum()),
    )
    goodput = faster * delivered / (elapsed * len(flows))
    return Orbit(
        goodput=goodput,
        sends=again.sends(goodput) if delivered else rate("sent"),
        rtts=np.array([]),
        window=share("window_sum", "samples"),
        cwnd=share("cwnd_sum", "samples"),
        timeouts=rate("timeouts"),
        fast_retransmits=rate("fast_retransmits"),
        segment_loss=again.loss if delivered else 1.0,
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
        precision=UNKNOWN,
        counted=min(float(run.delivered[flows].sum()) for run in counts) / len(flows),
        goodputs=goodputs,
    )
