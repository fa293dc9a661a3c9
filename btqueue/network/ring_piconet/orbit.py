"""The long run of connections: an exact recursion, followed until its averages are known.

Irregular are the times at which messages come, processing delays and radio errors; all else follows. Without
them connections go round in a limit cycle. They decide which of several cycles the connections fall into, how
often a buffer overflows, and how often a recovery fails. They are taken from fixed sequences
(`ring_piconet.sequences`) that have the right laws. So this is an integral over them, worked out by sampling,
like a simulation that is stripped to what matters here; its sampling error is what is left (see
`Orbit.precision`).
"""

from collections.abc import Callable

import numpy as np

from btqueue.baseband import SLOT_S
from btqueue.network.answers import NoConvergence
from btqueue.network.control_variates import weights
from btqueue.network.orbit_averages import Orbit, Repeated, too_rare
from btqueue.network.orbit_precision import BATCHES, Precision, enough, precision_of
from btqueue.network.ring_piconet.network import RingNetwork
from btqueue.network.ring_piconet.records import SUMMED
from btqueue.network.ring_piconet.runs import MOST_BATCHES, Connections, Run
from btqueue.transport.newreno_sender import Sender

RUNS = 4
"""Runs, each with other sequences and other offsets between the connections."""
MOST_RUNS = 6
"""Runs where goodput differs so much between fewer that its standard error is above `CERTAIN`."""
CERTAIN = 0.01
"""Relative."""
CARRIED = 0.99
"""Share of the messages written that are delivered if the network carries the load."""


def follow(net: RingNetwork, new_sender: Callable[[], Sender], window: int, interval: float) -> Orbit:
    """Follow connections whose messages come `interval` seconds apart on average; 0: always data."""
    connections = Connections(net, new_sender(), window, interval)
    runs = [Run(connections, number) for number in range(RUNS)]
    batches = BATCHES
    while True:
        for run in runs:
            run.follow(batches)
        excess = excess_of(runs, connections)
        if batches >= MOST_BATCHES or known(runs, connections, excess):
            break
        batches = min(2 * batches, MOST_BATCHES)
    while not (net.radio.lossy or carried(runs, interval)) and len(runs) < MOST_RUNS and differ(runs):
        runs.append(Run(connections, len(runs)))
        runs[-1].follow(batches)
    return average(connections, runs, excess)


def known(runs: list[Run], connections: Connections, excess: np.ndarray | None) -> bool:
    """Return whether goodput, round trip and timeouts are known as well as they need be."""
    timeouts = sum(run.sums()[SUMMED.index("timeouts")] for run in runs)
    seconds = sum(run.elapsed for run in runs) * connections.net.flows
    return enough(certainty(runs, connections, excess), timeouts, seconds)


def certainty(runs: list[Run], connections: Connections, excess: np.ndarray | None) -> Precision:
    """Return how well goodput and round trips are known."""
    delivers = carried(runs, connections.interval)
    return precision_of([run.batches for run in runs], excess, carried=delivers)


def excess_of(runs: list[Run], connections: Connections) -> np.ndarray | None:
    """Return the control variates of all batches, if there are any."""
    delivers, lossy = carried(runs, connections.interval), connections.net.radio.lossy
    kinds = [run.excess for run in runs] if delivers else [], [run.surprises for run in runs] if lossy else []
    found = [np.concatenate(kind) for kind in kinds if kind]
    excess = np.hstack(found) if found else np.zeros((0, 0))
    return excess if excess.shape[1] else None


def differ(runs: list[Run]) -> bool:
    """Return whether goodput differs by more between runs than is sought."""
    goodputs = [run.delivered / run.elapsed for run in runs]
    return float(np.std(goodputs, ddof=1)) > CERTAIN * len(runs) ** 0.5 * float(np.mean(goodputs))


def carried(runs: list[Run], interval: float) -> bool:
    """Return whether the network carried what was written."""
    return interval > 0.0 and sum(run.delivered for run in runs) > CARRIED * sum(run.written for run in runs)


def average(connections: Connections, runs: list[Run], excess: np.ndarray | None) -> Orbit:
    """Average over the time and the flows of all runs.

    Goodput and round trips are weighted by the control variates, the others are not. If the network carried
    what was written, goodput is the load, and other rates are scaled by what the sample of messages had too
    many or too few. For what is sent see `orbit_averages.Repeated`.
    """
    net = connections.net
    if connections.interval > 0.0 and not any(run.written for run in runs):
        raise NoConvergence(too_rare(sum(run.elapsed for run in runs)))
    time, segments, trips, _ = (np.concatenate(x) for x in zip(*(run.batches for run in runs), strict=True))
    elapsed, delivered, rtt_weights = float(time.sum()), float(segments.sum()), None
    goodput = delivered / elapsed / net.flows
    if excess is not None:
        goodput *= elapsed / float(weights(segments, excess) @ time)
        rtt_weights = np.repeat(weights(trips, excess), trips.astype(int))
    goodputs = tuple(run.delivered / run.elapsed / net.flows for run in runs)
    if carried(runs, connections.interval):
        elapsed = delivered * connections.interval / net.flows
        goodput = 1.0 / connections.interval
        goodputs = (goodput,) * len(runs)  # they differ by what happened to be written
    totals = np.sum([run.sums() for run in runs], axis=0)
    sums: dict[str, float] = dict(zip(SUMMED, totals.tolist(), strict=True))

    def share(part: str, whole: str) -> float:
        return sums[part] / max(sums[whole], 1.0)

    per_flow = 1.0 / (elapsed * net.flows)
    again = Repeated(float(segments.sum()), sum(run.repeated for run in runs), sums["lost"])
    return Orbit(
        goodput=goodput,
        sends=again.sends(goodput) if delivered else sums["sent"] * per_flow,
        rtts=np.concatenate([run.round_trips for run in runs]),
        rtt_weights=rtt_weights,
        window=share("window_sum", "samples"),
        cwnd=share("cwnd_sum", "samples"),
        timeouts=sums["timeouts"] * per_flow,
        fast_retransmits=sums["fast_retransmits"] * per_flow,
        segment_loss=again.loss if delivered else 1.0,
        loss_radio=share("damaged", "received"),
        loss_token_buffer=share("refused_at_buffer", "offered_to_buffer"),
        loss_baseband_buffer=share("refused_at_baseband", "offered_to_baseband"),
        queues={
            "token_buffer": sums["time_in_buffer"] * per_flow,
            "uplink": sums["time_in_uplink"] * per_flow,
            "downlink": sums["time_in_downlink"] * per_flow,
        },
        cycle=elapsed / sum(run.cycles for run in runs),
        # a packet that is under way when counting ends is counted whole
        slot_utilisation=min(sum(run.data_slots for run in runs) * SLOT_S / elapsed, 1.0),
        precision=certainty(runs, connections, excess),
        counted=min(run.delivered for run in runs) / net.flows,
        goodputs=goodputs,
    )
