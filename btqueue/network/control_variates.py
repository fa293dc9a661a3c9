"""Control variates for connections that are followed: what was chance, and would be 0 in the long run.

How long round trips come out in a sample depends on how the messages happened to bunch. What that did to
a queue with given service times is known in the sample, and its mean in the long run is known exactly. So
batches get weights with which these queues have their means, and round trips are averaged with the same
weights (regression estimator; Glasserman, Monte Carlo Methods in Financial Engineering (2003), section 4.1;
as weights: Deville and Särndal, JASA 87 (1992)). Nothing is assumed of how both are related: if they are
not, the weights are nearly 1.

With radio errors goodput is decided by how often retransmissions happened to fail. What was a surprise in
that, against what was likely given all that had happened, has the mean 0 (a martingale), whatever it is
weighted by, as long as the weight is known beforehand: the time that the sender would wait.
`ring_piconet.radio` adds it up.
"""

from typing import NamedTuple

import numpy as np

from btqueue.network.ring_piconet import sequences
from btqueue.network.ring_piconet.sequences import MESSAGES, gap
from btqueue.transport.compilation import compiled

MOST_UTILISED = 0.8
"""Share of its time that a queue may be busy: beyond, samples are too short for its long run."""

FLOW = np.dtype(
    [
        *((name, np.float64) for name in ("interval", "shared", "own", "mean_wait", "next", "free_at")),
        *((name, np.int64) for name in ("sequence", "count")),
    ]
)
"""A flow: mean time between its messages, service time of a message in the queue of all flows and in one of
its own, mean wait there, its next message, and when its own queue is empty (s)."""


class Messages(NamedTuple):
    """The messages of some flows, all but `sequences` in seconds, [flow].

    Attributes:
        sequences: which ones they follow.
        first: when the first one comes.
        intervals: mean time between them.
        shared: service time in a queue of all flows; 0: it does not go there.
        own: service time in a queue of each flow.
    """

    sequences: np.ndarray
    first: np.ndarray
    intervals: np.ndarray
    shared: np.ndarray
    own: np.ndarray


def excess_of(messages: Messages, edges: np.ndarray) -> np.ndarray:
    """Return by how much messages, and their waits in each kind of queue, exceed their means in batches.

    Args:
        messages: of all flows.
        edges: beginning of the first batch, and ends of all (s).

    Returns:
        Sums over each batch, shape (batches, controls); without controls if a queue were too busy.
    """
    rates, shared, own = 1.0 / messages.intervals, messages.shared, messages.own
    busy, busy_alone = float(rates @ shared), rates * own
    if max(busy, busy_alone.max()) >= MOST_UTILISED:
        return np.zeros((len(edges) - 1, 0))
    flows = np.zeros(len(rates), FLOW)
    for name, values in zip(("sequence", "next", "interval", "shared", "own"), messages, strict=True):
        flows[name] = values
    # the formula of Pollaczek and Khinchine
    mean_wait = float(rates @ shared**2) / (2.0 * (1.0 - busy))
    flows["mean_wait"] = rates * own**2 / (2.0 * (1.0 - busy_alone))
    found = np.zeros((len(edges) - 1, 3))
    serve(flows.view(np.recarray), mean_wait, np.ascontiguousarray(edges), found)
    found[:, 0] -= rates.sum() * np.diff(edges)
    return found


@compiled(sequences)
def serve(flows, mean_wait, edges, found):
    """Count messages, and add up their waits less the mean, in the queue of all flows and in their own.

    Args:
        flows: `FLOW` records.
        mean_wait: in the queue of all flows (s).
        edges: beginning of the first batch, and ends of all (s).
        found: sums over each batch, [batch, kind].
    """
    free_at, batch, last = 0.0, -1, len(edges) - 1
    while True:
        f = 0
        for other in range(1, len(flows)):
            if flows[other].next < flows[f].next:
                f = other
        flow = flows[f]
        now = flow.next
        while batch < last and now >= edges[batch + 1]:
            batch += 1
        if batch == last:
            return
        if batch >= 0:
            found[batch, 0] += 1.0
            found[batch, 2] += max(flow.free_at - now, 0.0) - flow.mean_wait
            if flow.shared > 0.0:
                found[batch, 1] += max(free_at - now, 0.0) - mean_wait
        free_at = max(free_at, now) + flow.shared
        flow.free_at = max(flow.free_at, now) + flow.own
        flow.count += 1
        flow.next = now + flow.interval * gap(flow.sequence, MESSAGES, flow.count)


def weights(sizes: np.ndarray, excess: np.ndarray) -> np.ndarray:
    """Return weights of batches near 1 with which the excesses sum to 0, and the sizes to what they do.

    Where that would take a batch off instead of counting it, the batches are too few or too uneven for a
    regression, which can turn a rate below 0: then all count alike.

    Args:
        sizes: of each batch.
        excess: of each batch and control.
    """
    given = np.column_stack([sizes, excess])
    missing = np.append(0.0, -excess.sum(axis=0))
    found = 1.0 + given @ np.linalg.lstsq(given.T @ given, missing)[0]
    return found if (found >= 0.0).all() else np.ones(len(found))


def relative_error(parts: np.ndarray, sizes: np.ndarray, excess: np.ndarray) -> float:
    """Return the relative standard error of the ratio of the sums with these weights."""
    alike = (weights(sizes, excess) == 1.0).all()
    given = sizes[:, None] if alike else np.column_stack([sizes, excess])
    scatter = parts - given @ np.linalg.lstsq(given, parts)[0]
    freedom = max(len(parts) - given.shape[1], 1)
    return float(scatter @ scatter * len(parts) / freedom) ** 0.5 / max(float(parts.sum()), 1e-300)
