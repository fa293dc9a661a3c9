"""Token bucket and the queue behind it: exact values, confirmed by simulation, and conservation of packets.

Segments of five packets come in a slot with probability 0.011; the bucket holds 9.75 packets; service takes 6
slots, at most 5 packets a visit, vacations are uniform on 10..50 slots, and the queue has room for 20.
"""

import jax
import jax.numpy as jnp
import numba
import numpy as np
import pytest
from jax.typing import ArrayLike
from scipy import stats

from btqueue.queueing.laws import lattice
from btqueue.queueing.token_bucket.chain import LatticeBucket, lattice_bucket
from btqueue.queueing.token_bucket.joint import (
    BucketAndQueueSolution,
    bucket_and_queue,
    greedy_bucket_and_queue,
)
from btqueue.queueing.traffic.arrivals import BernoulliBatches
from btqueue.queueing.vacations.vacations import limited_service_queue

SERVICE, VACATION = lattice.point(6), lattice.uniform(10, 50)
SEGMENTS = BernoulliBatches(0.011, lattice.point(5))


def published(token_slots: int, buffer: int) -> BucketAndQueueSolution:
    return bucket_and_queue(
        bucket=LatticeBucket(token_slots, depth=9 * token_slots + 3 * token_slots // 4, buffer=buffer),
        batches=SEGMENTS,
        service=SERVICE,
        vacation=VACATION,
        capacity=20,
        limit=5,
    )


@pytest.mark.parametrize(
    ("token_slots", "buffer", "at_bucket", "at_queue", "throughput"),
    [
        (16, 25, 0.026354, 0.000000, 0.053551),
        (16, 10, 0.072295, 0.000000, 0.051024),
        (8, 25, 0.000028, 0.012768, 0.054296),
        (4, 25, 0.000000, 0.019337, 0.053936),
    ],
)
def test_losses_and_throughput(
    token_slots: int, buffer: int, at_bucket: float, at_queue: float, throughput: float
):
    solution = published(token_slots, buffer)
    assert float(solution.bucket_packet_loss) == pytest.approx(at_bucket, abs=5.1e-7)
    # the digits known were cut off, not rounded, for one of the values
    assert float(solution.queue_packet_loss) == pytest.approx(at_queue, abs=1.01e-6)
    assert float(solution.throughput) == pytest.approx(throughput, abs=5.1e-7)

    offered = 0.055
    passed = offered * (1 - float(solution.bucket_packet_loss))
    assert passed * (1 - float(solution.queue_packet_loss)) == pytest.approx(
        float(solution.throughput), rel=1e-11
    )
    assert float(np.sum(solution.joint)) == pytest.approx(1.0, abs=1e-12)
    assert (np.asarray(solution.joint) >= 0).all()
    assert float(solution.residual) < 1e-12

    bucket = LatticeBucket(token_slots, depth=39 * token_slots // 4, buffer=buffer)
    alone = lattice_bucket(bucket, SEGMENTS)  # the bucket does not know what is behind it
    np.testing.assert_allclose(np.asarray(solution.joint).sum(axis=1), alone.level, atol=1e-12)
    assert float(solution.mean_token_wait) == pytest.approx(float(alone.mean_wait), rel=1e-9)


SMALL = {"token_slots": 3, "depth": 7, "buffer": 4}
SMALL_BATCHES = BernoulliBatches(0.08, [0.0, 0.3, 0.2, 0.5])
SMALL_SERVICE = np.array([0.0, 0.0, 0.5, 0.5])
SMALL_VACATION = np.array([0.0, 0.0, 0.0, 0.3, 0.3, 0.2, 0.2])


def small(*, whole: bool) -> BucketAndQueueSolution:
    return bucket_and_queue(
        bucket=LatticeBucket(**SMALL, whole_batches=whole),
        batches=SMALL_BATCHES,
        service=SMALL_SERVICE,
        vacation=SMALL_VACATION,
        capacity=5,
        limit=2,
    )


@numba.njit
def draw_from(draw, cumulated):
    return int(np.searchsorted(cumulated, draw.random(), side="right"))


@numba.njit
def simulate(
    draw, slots, token_slots, depth, buffer, whole, chance, sizes, service, vacation, capacity, limit
):
    """Packet by packet, with the tokens as a plain counter; shares and means of one run."""
    tokens, head, tail = depth, 0, 0
    owner, ring = np.zeros(buffer + 1, np.int64), buffer + 1
    lost_bucket, lost_queue = np.zeros(slots, np.bool_), np.zeros(slots, np.bool_)
    refused, passed, dropped, served, offered, batches = 0, 0, 0, 0, 0, 0
    queue, left, serving, done, waiting_sum, queue_sum = 0, draw_from(draw, vacation), False, 0, 0, 0
    for slot in range(slots):
        queue_sum += queue
        waiting_sum += tail - head
        tokens += 1
        if head < tail and tokens >= token_slots:
            tokens -= token_slots
            first = owner[head % ring]
            head += 1
            passed += 1
            if queue == capacity:
                dropped += 1
                lost_queue[first] = True
            else:
                queue += 1
        if head == tail:
            tokens = min(tokens, depth)
        if draw.random() < chance:
            size = draw_from(draw, sizes)
            offered += size
            batches += 1
            fits = 0
            spare, waiting = tokens, tail - head
            for _ in range(size):
                if waiting == 0 and spare >= token_slots:
                    spare -= token_slots
                    fits += 1
                elif waiting < buffer:
                    waiting += 1
                    fits += 1
            admitted = 0 if whole and fits < size else fits
            refused += size - admitted
            lost_bucket[slot] = admitted < size
            for _ in range(admitted):
                if head == tail and tokens >= token_slots:
                    tokens -= token_slots
                    passed += 1
                    if queue == capacity:
                        dropped += 1
                        lost_queue[slot] = True
                    else:
                        queue += 1
                else:
                    owner[tail % ring] = slot
                    tail += 1
        left -= 1
        if left == 0:
            if serving:
                queue -= 1
                served += 1
                done += 1
                if queue == 0 or done == limit:
                    serving = False
            elif queue > 0:
                serving, done = True, 0
            left = draw_from(draw, service) if serving else draw_from(draw, vacation)
    return np.array(
        [
            refused / offered,
            lost_bucket.sum() / batches,
            dropped / passed,
            lost_queue.sum() / batches,
            (lost_bucket | lost_queue).sum() / batches,
            served / slots,
            waiting_sum / (offered - refused),
            queue_sum / served,
        ]
    )


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.long)])
def test_against_simulation(whole: bool):
    """Forty runs of 400,000 slots; false alarm 1e-5 for each of eight measures."""
    laws = [np.cumsum(law) for law in (SMALL_BATCHES.batch_size, SMALL_SERVICE, SMALL_VACATION)]
    system = (*SMALL.values(), whole, 0.08, *laws, 5, 2)
    runs = np.array(
        [
            simulate(np.random.default_rng(seed), 400_000, *system)
            for seed in range(100 + 40 * whole, 140 + 40 * whole)
        ]
    )
    solution = small(whole=whole)
    exact = [
        solution.bucket_packet_loss,
        solution.bucket_batch_loss,
        solution.queue_packet_loss,
        solution.queue_batch_loss,
        solution.batch_loss,
        solution.throughput,
        solution.mean_token_wait,
        solution.mean_sojourn,
    ]
    scores = (runs.mean(axis=0) - np.asarray(exact)) / (runs.std(axis=0, ddof=1) / np.sqrt(len(runs)))
    assert np.abs(scores).max() < stats.t.isf(0.5e-5, len(runs) - 1), scores


def test_losses_are_ordered():
    solution = small(whole=False)
    assert float(solution.queue_batch_loss) > 0.01
    both = float(solution.bucket_batch_loss), float(solution.queue_batch_loss)
    assert max(both) < float(solution.batch_loss) < sum(both)


@pytest.mark.long
def test_a_bucket_that_never_holds_back_is_not_there():
    """Tokens of a packet a slot and a depth of twenty batches: what is left is the vacation queue."""
    solution = bucket_and_queue(
        bucket=LatticeBucket(1, depth=60, buffer=1),
        batches=SMALL_BATCHES,
        service=SMALL_SERVICE,
        vacation=SMALL_VACATION,
        capacity=5,
        limit=2,
    )
    alone = limited_service_queue(
        arrivals=SMALL_BATCHES, service=SMALL_SERVICE, vacations=SMALL_VACATION, capacity=5, limit=2
    )
    assert float(solution.bucket_packet_loss) < 1e-12
    assert float(solution.queue_packet_loss) == pytest.approx(float(alone.packet_loss), rel=1e-10)
    assert float(solution.queue_batch_loss) == pytest.approx(float(alone.segment_loss), rel=1e-10)
    assert float(solution.mean_sojourn) == pytest.approx(float(alone.mean_sojourn), rel=1e-10)


def test_a_greedy_source_is_paced():
    greedy = greedy_bucket_and_queue(token_slots=16, service=SERVICE, vacation=VACATION, capacity=20, limit=5)
    assert float(greedy.throughput) == pytest.approx(1 / 16, rel=1e-9)  # the queue can carry it
    narrow = greedy_bucket_and_queue(token_slots=4, service=SERVICE, vacation=VACATION, capacity=20, limit=5)
    assert float(narrow.throughput) == pytest.approx(5 / 60, rel=1e-9)  # and here all it can: 5 in 60 slots
    assert float(narrow.queue_packet_loss) == pytest.approx(1 - 4 * 5 / 60, rel=1e-9)


@pytest.mark.long
def test_gradient():
    def loss(chance: ArrayLike, brief: ArrayLike) -> jax.Array:
        solution = bucket_and_queue(
            bucket=LatticeBucket(2, depth=4, buffer=2),
            batches=BernoulliBatches(chance, [0.0, 0.4, 0.6]),
            service=jnp.asarray([0.0, brief, 1.0 - jnp.asarray(brief)]),
            vacation=np.array([0.0, 0.2, 0.3, 0.5]),
            capacity=2,
            limit=1,
        )
        return solution.queue_packet_loss + solution.batch_loss + solution.mean_sojourn

    at = (0.2, 0.3)
    with jax.enable_x64(True):
        slopes = jax.jit(jax.grad(loss, argnums=(0, 1)))(*at)
        compiled = jax.jit(loss)
        for place, slope in enumerate(slopes):
            step = np.eye(2)[place] * 1e-5
            difference = (compiled(*(at + step)) - compiled(*(at - step))) / 2e-5
            assert float(slope) == pytest.approx(float(difference), rel=1e-6)


def test_tokens_and_server_in_step_for_ever():
    """Tokens, service and vacation of four slots keep their phase; half of the packets are served."""
    solution = greedy_bucket_and_queue(
        token_slots=4, service=lattice.point(4), vacation=lattice.point(4), capacity=3, limit=1
    )
    assert float(solution.throughput) == pytest.approx(1 / 8, rel=1e-12)
    assert float(solution.queue_packet_loss) == pytest.approx(1 / 2, rel=1e-12)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"capacity": 0}, "capacity"),
        ({"limit": 1.5}, "limit"),
        ({"service": [1.0]}, "service"),
        ({"vacation": [0.0, 0.5]}, "vacation"),
    ],
)
def test_impossible_arguments_are_refused(change, name: str):
    arguments = {"service": [0.0, 1.0], "vacation": [0.0, 1.0], "capacity": 3, "limit": 1, **change}
    with pytest.raises(ValueError, match=name):
        bucket_and_queue(bucket=LatticeBucket(2, 4, 2), batches=SMALL_BATCHES, **arguments)
