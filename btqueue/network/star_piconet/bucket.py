"""The token bucket of a port: an M^X/D/1/K queue (`btqueue.queueing.token_bucket`)."""

from typing import NamedTuple

import numpy as np

from btqueue.network.star_piconet.air import Entering
from btqueue.network.star_piconet.piconet import Piconet
from btqueue.queueing.token_bucket.token_bucket import token_bucket
from btqueue.queueing.traffic.arrivals import PoissonBatches


class Bucket(NamedTuple):
    """What a token bucket does to the trains of its port.

    Attributes:
        wait_s: mean time that the last packet of a segment waits for tokens.
        train_loss: share of the trains of which a packet finds no room.
        packet_loss: share of the packets.
        packets: mean number of packets that wait.
    """

    wait_s: float
    train_loss: float
    packet_loss: float
    packets: float


OPEN = Bucket(0.0, 0.0, 0.0, 0.0)


def bucket(piconet: Piconet, entering: Entering, room: int) -> Bucket:
    """Solve the bucket of a port; `room` is for packets that wait.

    Packets have their mean price. The last packet of a segment waits longer than its mean one, by the tokens
    of half a segment, where it waits at all.
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
    found = token_bucket(batches=PoissonBatches(rate, sizes), token_time=token_time, depth=depth, buffer=room)
    waits = float(np.asarray(found.occupancy)[int(depth) :].sum())
    behind = (len(piconet.data.packets) - 1) / 2 * token_time * waits if entering.data > 0.0 else 0.0
    return Bucket(
        float(found.mean_token_wait) + behind,
        float(found.segment_loss),
        float(found.packet_loss),
        float(found.mean_buffer),
    )
