"""The token bucket of a peripheral under Poisson batches, and what losses cost a slow source."""

import numpy as np

from btqueue.network.ring_piconet.ring import Ring
from btqueue.queueing.token_bucket.token_bucket import TokenBucketSolution, token_bucket
from btqueue.queueing.traffic.arrivals import PoissonBatches, batch_loss
from btqueue.scenario import Scenario
from btqueue.transport import LossProcess, lockstep_rates

NEGLIGIBLE_LOSS = 1e-9
LARGEST_WINDOW = 8


def solve_bucket(ring: Ring, rate: float) -> TokenBucketSolution | None:
    """Solve the token bucket for data and acknowledgements as Poisson batches; None without flow control."""
    if np.isinf(ring.token_rate):
        return None
    price = ring.exchange_bytes / ring.exchange_packets
    return token_bucket(
        batches=PoissonBatches(2 * rate, batch_sizes(ring)),
        token_time=price / ring.token_rate,
        depth=ring.bucket_bytes / price,
        buffer=ring.buffer,
    )


def batch_sizes(ring: Ring) -> np.ndarray:
    """Return the law of a batch: the packets of a data segment or, as often, those of an acknowledgement."""
    size = np.zeros(max(len(ring.data), len(ring.ack)) + 1)
    size[len(ring.data)] += 0.5
    size[len(ring.ack)] += 0.5
    return size


def data_loss(ring: Ring, bucket: TokenBucketSolution) -> float:
    """Return the probability that a data segment, arriving at random, finds too few places."""
    size = np.zeros(len(ring.data) + 1)
    size[-1] = 1.0
    with_depth = float(bucket.segment_loss)
    whole_depth = np.asarray(batch_loss(bucket.occupancy, batch_sizes(ring)))
    data_at_whole_depth = np.asarray(batch_loss(bucket.occupancy, size))
    return with_depth * float(data_at_whole_depth / whole_depth) if with_depth > 0.0 else 0.0


def recovery(scenario: Scenario, rtt: float, segment_loss: float) -> tuple[float, float, float]:
    """Return mean window, timeouts and fast retransmits per message, for independent losses of this share.

    The greedy chain's share of losses that end in each way is used; sparse sources have fewer duplicate
    acknowledgements, so the split leans towards fast retransmits.
    """
    transport = scenario.transport
    window = transport.receive_window_segments
    if segment_loss < NEGLIGIBLE_LOSS:
        return float(window), 0.0, 0.0
    rates = lockstep_rates(
        window=min(window, LARGEST_WINDOW),
        loss=LossProcess.independent(min(segment_loss, 0.9)),
        rtt=rtt,
        min_rto=transport.min_rto_s,
        max_rto=max(transport.max_rto_s, transport.min_rto_s),
        rto_backoff=transport.rto_backoff,
    )
    widen = window / min(window, LARGEST_WINDOW)
    return (
        rates.mean_window_found * widen,
        rates.timeouts / rates.goodput,
        rates.fast_retransmits / rates.goodput,
    )
