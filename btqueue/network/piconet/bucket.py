"""The token bucket of a port: missing tokens and waiting packets as an M^X/D/1/K queue.

The same chain as `btqueue.queueing.token_bucket`, but not compiled: there every pair of depth and buffer is a
program of its own that takes seconds to compile, and here users vary both. Tests hold the two together.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import poisson

from btqueue.network.piconet.ports import Piconet
from btqueue.network.piconet.trains import Transmissions


class Entering(NamedTuple):
    """Trains a second that come to a port from a host."""

    data: float = 0.0
    ack: float = 0.0


class Bucket(NamedTuple):
    """What a token bucket does to the trains of its port.

    Attributes:
        wait_s: mean time that the last packet of a segment waits for tokens.
        train_loss: share of the trains of which a packet finds no room.
        packets: mean number of packets that wait.
    """

    wait_s: float
    train_loss: float
    packets: float


OPEN = Bucket(0.0, 0.0, 0.0)


def bucket(piconet: Piconet, entering: Entering) -> Bucket:
    """Solve the bucket of a port.

    Packets have their mean price. For a depth between two whole packets losses are interpolated geometrically
    and what waits linearly. The last packet of a segment waits longer than its mean one, by the tokens of
    half a segment, where it waits at all.
    """
    rate = entering.data + entering.ack
    if np.isinf(piconet.token_rate) or rate == 0.0:
        return OPEN
    trains = [(entering.data, piconet.data), (entering.ack, piconet.ack)]
    used = [(own, train) for own, train in trains if train is not None and own > 0.0]
    packets = sum(own * len(train.packets) for own, train in used) / rate
    price = sum(own * train.tokens for own, train in used) / rate / packets
    sizes = np.zeros(max(len(train.packets) for _, train in used) + 1)
    for own, train in used:
        sizes[len(train.packets)] += own / rate
    depth, token_time = piconet.bucket_bytes / price, price / piconet.token_rate
    whole = int(depth)
    low, high = (solve(rate, sizes, token_time, whole + more, piconet.buffer) for more in (0, 1))
    share = depth - whole
    loss = low.packet_loss ** (1.0 - share) * high.packet_loss**share
    waiting = (1.0 - share) * low.waiting + share * high.waiting
    behind = (len(piconet.data.packets) - 1) / 2 * token_time * low.delayed if entering.data > 0.0 else 0.0
    return Bucket(
        wait_s=waiting / (rate * packets * (1.0 - loss)) + behind,
        train_loss=low.batch_loss ** (1.0 - share) * high.batch_loss**share,
        packets=waiting,
    )


def queue_loss(rate: float, train: Transmissions, service_s: float, places: int) -> float:
    """Return the share of trains of which a queue refuses a packet.

    Every transmission is a packet of its own, and the one under way has a place: the queue of a port is a
    bucket for one packet whose tokens come in the time from frame to frame.

    Args:
        rate: trains a second, Poisson.
        train: law of their transmissions.
        service_s: time from frame to frame of the port while its queue is busy (s).
        places: packets that it holds.
    """
    if rate == 0.0:
        return 0.0
    return solve(rate, train.law, service_s, 1, places - 1).batch_loss


class Solution(NamedTuple):
    """A bucket of whole packets: shares of packets and batches lost, of time with a wait, mean waiting."""

    packet_loss: float
    batch_loss: float
    delayed: float
    waiting: float


def solve(rate: float, sizes: np.ndarray, token_time: float, depth: int, buffer: int) -> Solution:
    """Return the losses of Poisson batches at a bucket of whole packets, of which the first ones get in.

    Embedded are the starts of token times. In one of them come k batches with Poisson's probability; the time
    with k of them is the probability of more than k, over the rate.
    """
    capacity = depth + buffer
    content = np.arange(capacity + 1)
    added = np.zeros((capacity + 1, capacity + 1))
    for size, share in enumerate(sizes):
        np.add.at(added, (content, np.minimum(content + size, capacity)), share)
    mean = rate * token_time
    counts = np.arange(int(mean + 12.0 * mean**0.5) + 20)
    powers = np.eye(capacity + 1)
    end, spent = np.zeros((2, capacity + 1, capacity + 1))
    for exactly, more in zip(poisson.pmf(counts, mean), poisson.sf(counts, mean) / rate, strict=True):
        end += exactly * powers
        spent += more * powers
        powers = powers @ added
    # a token time begins with what the last one left behind, or with the first batch after an idle time
    begin = np.eye(capacity + 1)
    begin[0] = added[0]
    chain = (end[1:, 1:] @ begin[:-1])[:, 1:]
    system = np.eye(capacity) - chain.T
    system[-1] = 1.0
    law = np.maximum(np.linalg.solve(system, np.eye(capacity)[-1]), 0.0)  # rounding can fall below
    idle = float(law @ end[1:, 1]) / rate
    occupancy = law @ spent[1:]
    occupancy[0] += idle
    occupancy /= token_time + idle
    packets = np.arange(sizes.size)
    excess = np.maximum(packets[None, :] - (capacity - content)[:, None], 0)
    return Solution(
        packet_loss=float(occupancy @ excess @ sizes / (packets @ sizes)),
        batch_loss=float(occupancy @ (excess > 0) @ sizes),
        delayed=float(occupancy[depth:].sum()),
        waiting=float(occupancy @ np.clip(content - depth, 0, buffer)),
    )
