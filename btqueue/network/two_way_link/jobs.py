"""What comes to a direction of a link, and how its neighbour moves from frame to frame."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ROOM = 6
"""Most jobs of the neighbour that are told apart."""
BURSTY = 2.0
"""Mean jobs in a batch from which the neighbour is on or off."""
LEAST_IDLE = 0.02
"""Share of the time that a bursty neighbour is taken to be off at least."""


class Overloaded(ValueError):
    """More jobs come than the direction can carry."""


class Jobs(NamedTuple):
    """What comes to one direction.

    Attributes:
        rate: batches a slot.
        batch: mean jobs in a batch, geometric.
        data, ack: slots and error rates of the packets of a segment and of an acknowledgement.
        ack_share: share of the jobs that are acknowledgements.
    """

    rate: float
    batch: float
    data: tuple[tuple[int, float], ...]
    ack: tuple[tuple[int, float], ...]
    ack_share: float

    @property
    def frames(self) -> float:
        """Mean frames of a job."""
        return self._mean(lambda slots, error: 1.0 / (1.0 - error))

    @property
    def packet(self) -> float:
        """Mean slots of a packet on the air."""
        return self._mean(lambda slots, error: slots / (1.0 - error)) / self.frames

    def _mean(self, value) -> float:
        data, ack = (sum(value(*packet) for packet in train) for train in (self.data, self.ack))
        return (1.0 - self.ack_share) * data + self.ack_share * ack


def neighbour_lengths(neighbour: Jobs | None, jobs: Jobs) -> Array:
    """Slots of the other half of a frame, by the neighbour's state."""
    if neighbour is None:
        return np.ones(1)
    states = 2 if neighbour.batch > BURSTY else ROOM + 1
    return np.where(np.arange(states) == 0, 1.0, neighbour.packet)


def neighbour_moves(neighbour: Jobs | None, jobs: Jobs, lengths: Array) -> Array:
    """``(i, v, w)`` how the neighbour moves over a frame of this length."""
    if neighbour is None:
        return np.ones((*lengths.shape, 1))
    states = lengths.shape[1]
    moves = np.zeros((*lengths.shape, states))
    bursty = neighbour.batch > BURSTY
    comes = np.minimum(neighbour.rate * (1.0 if bursty else neighbour.batch) * lengths, 1.0)
    load = neighbour.rate * neighbour.batch * neighbour.frames
    ends = 1.0 / neighbour.frames
    moves[:, 0, 0], moves[:, 0, 1] = 1.0 - comes[:, 0], comes[:, 0]
    if bursty:
        # a busy period begun by one batch, at the pace of frames of this length
        spell = neighbour.batch * neighbour.frames / np.maximum(1.0 - load * lengths[:, 1], LEAST_IDLE)
        moves[:, 1, 0], moves[:, 1, 1] = 1.0 / spell, 1.0 - 1.0 / spell
        return moves
    for state in range(1, states):
        above, coming = min(state + 1, states - 1), comes[:, state]
        moves[:, state, state - 1] += ends * (1.0 - coming)
        moves[:, state, state] += ends * coming + (1.0 - ends) * (1.0 - coming)
        moves[:, state, above] += (1.0 - ends) * coming
    return moves


def continuing(jobs: Jobs, length: float) -> float:
    """Chance that one more job follows in a geometric batch that stands for the arrivals of a frame."""
    ratio = _pairs(jobs, np.array(length))
    return float(ratio / (1.0 + ratio))


def batches(jobs: Jobs, lengths: Array, more: float) -> tuple[Array, Array]:
    """Return for frames of these lengths the chances of an arrival, and that a second one comes with it.

    Each further one follows with chance ``more``. Mean and second factorial moment of the arrivals of each
    frame are those of Poisson batches.
    """
    offered = jobs.rate * jobs.batch * lengths
    share = np.minimum(_pairs(jobs, lengths) * (1.0 - more), 0.999)
    extra = share / (1.0 - share)
    return np.minimum(offered / (1.0 + extra), 1.0), np.minimum(extra * (1.0 - more), 1.0)


def _pairs(jobs: Jobs, lengths: Array) -> Array:
    """Half of E[A (A - 1)] / E[A]; m arrivals in Poisson batches of mean b have m^2 + 2 m (b - 1) over m."""
    return 0.5 * jobs.rate * jobs.batch * lengths + jobs.batch - 1.0


def starts(jobs: Jobs) -> Array:
    """Law of the first packet of a job."""
    law = np.zeros(len(jobs.data) + len(jobs.ack))
    law[0] += 1.0 - jobs.ack_share
    law[len(jobs.data) if jobs.ack else 0] += jobs.ack_share
    return law
