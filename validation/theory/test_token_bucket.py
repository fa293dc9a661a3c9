"""Token bucket: exact values (each confirmed by simulation to its error) and limits.

Segments of 1460 bytes are five packets of 307.8 bytes on average; rates are in kbit/s of payload and of
tokens.
"""

from typing import Any

import jax
import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.typing import ArrayLike
from scipy import stats

from btqueue.queueing.chains import markov
from btqueue.queueing.laws import lattice
from btqueue.queueing.token_bucket.bytes import byte_bucket
from btqueue.queueing.token_bucket.chain import LatticeBucket, lattice_bucket
from btqueue.queueing.token_bucket.output import passed_in, passing_groups, passing_matrices
from btqueue.queueing.token_bucket.token_bucket import (
    TokenBucketSolution,
    saturated_loss,
    token_bucket,
    token_wait_survival,
)
from btqueue.queueing.traffic.arrivals import BernoulliBatches, PoissonBatches

PACKET_BYTES = 307.8


def segments(payload_kbps: float, token_kbps: float, buffer: int, depth: float) -> TokenBucketSolution:
    return token_bucket(
        batches=PoissonBatches(payload_kbps * 1e3 / (8 * 1460), lattice.point(5)),
        token_time=8 * PACKET_BYTES / (token_kbps * 1e3),
        depth=depth,
        buffer=buffer,
    )


@pytest.mark.parametrize(
    ("payload", "tokens", "buffer", "load", "packet_loss", "segment_loss"),
    [
        (200, 250, 25, 0.8433, 0.019957, 0.037390),
        (200, 250, 15, 0.8433, 0.043106, 0.080756),
        (240, 250, 25, 1.0119, 0.076597, 0.137486),
        (200, 250, 5, 0.8433, 0.107036, 0.200245),
        (200, 250, 10, 0.8433, 0.066090, 0.123732),
        (160, 250, 10, 0.6746, 0.025510, 0.050225),
        (80, 250, 5, 0.3373, 0.006487, 0.014804),
    ],
)
def test_losses(
    payload: float, tokens: float, buffer: int, load: float, packet_loss: float, segment_loss: float
):
    solution = segments(payload, tokens, buffer, 9)
    assert float(solution.load) == pytest.approx(load, abs=5e-5)
    assert float(solution.packet_loss) == pytest.approx(packet_loss, abs=5e-7)
    assert float(solution.segment_loss) == pytest.approx(segment_loss, abs=5e-7)


def test_fractional_depth_is_interpolated_geometrically():
    solution = segments(80, 250, 5, 3000 / PACKET_BYTES)
    assert float(solution.packet_loss) == pytest.approx(0.004893, abs=5e-7)
    assert float(solution.segment_loss) == pytest.approx(0.010980, abs=5e-7)


def test_only_depth_plus_buffer_matters_for_loss_and_depth_shortens_the_wait():
    shallow, deep = segments(200, 250, 25, 9), segments(200, 250, 15, 19)
    assert float(shallow.packet_loss) == pytest.approx(float(deep.packet_loss), rel=1e-12)
    assert float(deep.mean_token_wait) < float(shallow.mean_token_wait)


def test_tokens_are_spent_at_the_accepted_rate():
    """Tokens accrue whenever the bucket is not full, one packet's worth in a token time."""
    solution = segments(240, 250, 25, 9)
    token_time = 8 * PACKET_BYTES / 250e3
    accrued = (1.0 - float(solution.occupancy[0])) / token_time
    assert accrued == pytest.approx(float(solution.accepted_rate), rel=1e-12)


def test_wait_without_loss_is_that_of_md1():
    """One token deep, single packets, large buffer: the wait for a token is the wait in M/D/1."""
    rate, token_time = 0.5, 1.0
    solution = token_bucket(batches=PoissonBatches(rate), token_time=token_time, depth=1, buffer=100)
    load = rate * token_time
    assert float(solution.mean_token_wait) == pytest.approx(load * token_time / (2 * (1 - load)), rel=1e-10)


def test_occupancy_is_a_law():
    occupancy = segments(240, 250, 25, 9).occupancy
    assert occupancy.shape == (35,)
    assert np.sum(occupancy) == pytest.approx(1.0, abs=1e-13)


@pytest.mark.parametrize(
    ("change", "name"),
    [({"token_time": 0.0}, "token_time"), ({"depth": -1.0}, "depth"), ({"buffer": 2.5}, "buffer")],
)
def test_impossible_arguments_are_refused(change: dict[str, float], name: str):
    arguments = {"batches": PoissonBatches(1.0), "token_time": 1.0, "depth": 2.0, "buffer": 3, **change}
    with pytest.raises(ValueError, match=name):
        token_bucket(**arguments)


POISSON: Any = PoissonBatches(0.1)
FIVE = {"token_time": 0.01, "depth": 9, "buffer": 25}


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("sizes", [lattice.point(5), np.array([0, 0.2, 0, 0.3, 0, 0.5])])
def test_the_wait_law_has_the_mean_of_littles_law(sizes: np.ndarray, whole: bool):
    """Integrated over each token time, between the steps of the law, by Gauss's rule."""
    batches = PoissonBatches(17.0, sizes)
    solution = token_bucket(batches=batches, **FIVE, whole_batches=whole)
    nodes, weights = np.polynomial.legendre.leggauss(12)
    times = (np.arange(25)[:, None] + (nodes + 1) / 2).ravel() * 0.01
    survival = token_wait_survival(times, batches=batches, **FIVE, whole_batches=whole)
    mean = 0.01 * (np.asarray(survival).reshape(25, 12) @ weights / 2).sum()
    assert mean == pytest.approx(float(solution.mean_token_wait), rel=1e-10)
    accrued = (1.0 - float(solution.occupancy[0])) / 0.01
    assert accrued == pytest.approx(float(solution.accepted_rate), rel=1e-10)


def test_the_wait_law_of_md1():
    """One token, single packets, no limit: ``Pr(W > t) = 1 - (1 - rho) e^(rho t)`` within one service."""
    survival = token_wait_survival(
        np.array([0.0, 0.25, 0.75]), batches=PoissonBatches(0.5), token_time=1.0, depth=1, buffer=60
    )
    exact = 1 - 0.5 * np.exp(0.5 * np.array([0.0, 0.25, 0.75]))
    np.testing.assert_allclose(survival, exact, rtol=1e-12)


def test_whole_segments_refused_lose_no_part():
    solution = token_bucket(batches=PoissonBatches(17.0, lattice.point(5)), **FIVE, whole_batches=True)
    assert float(solution.packet_loss) == pytest.approx(float(solution.segment_loss), rel=1e-14)


def test_a_greedy_source_gets_one_packet_a_token_time():
    solution = token_bucket(batches=PoissonBatches(1e4, lattice.point(5)), **FIVE)
    assert float(solution.accepted_rate) == pytest.approx(100.0, rel=1e-12)
    assert float(solution.packet_loss) == pytest.approx(float(saturated_loss(solution.load)), rel=1e-12)


# bytes: segments of 4 x 339 + 183, 3000 bytes deep, 250 kbit/s of tokens; simulated losses of packets and
# of segments, accepted in part (published) and whole (2e7 segments, within 0.3 %)
UNEQUAL = [339, 339, 339, 339, 183]


def bytes_bucket(payload_kbps: float, buffer: int, *, whole: bool):
    return byte_bucket(
        batch_rate=payload_kbps * 1e3 / (8 * 1460),
        packet_bytes=UNEQUAL,
        byte_rate=250e3 / 8,
        depth=3000,
        buffer=buffer,
        whole_batches=whole,
    )


@pytest.mark.parametrize(
    ("payload", "buffer", "packet_loss", "segment_loss"),
    [
        (200, 25, 0.019922, 0.036419),
        (200, 10, 0.065743, 0.119147),
        (160, 10, 0.024135, 0.045593),
        (240, 25, 0.080073, 0.141114),
        (80, 5, 0.005299, 0.010919),
    ],
)
def test_unequal_packets_accepted_in_part_are_approximated(
    payload: int, buffer: int, packet_loss: float, segment_loss: float
):
    """Within 5 % where the mean size is off by up to 36 %."""
    solution = bytes_bucket(payload, buffer, whole=False)
    assert float(solution.packet_loss) == pytest.approx(packet_loss, rel=0.05)
    assert float(solution.batch_loss) == pytest.approx(segment_loss, rel=0.05)
    assert float(np.sum(solution.level)) == pytest.approx(1.0, abs=1e-12)


@numba.njit
def simulate_bytes(draw, segments, rate, sizes, byte_rate, depth, buffer):
    """Whole segments at a bucket of bytes, packet by packet; loss and mean wait of one run."""
    missing, head, waiting, ring = 0.0, 0, 0, buffer + 1
    bytes_of, since, now = np.zeros(ring), np.zeros(ring), 0.0
    lost, wait, accepted = 0, 0.0, 0
    for _ in range(segments):
        arrival = now + draw.exponential(1 / rate)
        while waiting > 0:
            ready = now + max(0.0, missing + bytes_of[head] - depth) / byte_rate
            if ready > arrival:
                break
            missing = max(0.0, missing - (ready - now) * byte_rate) + bytes_of[head]
            wait += ready - since[head]
            now, head, waiting = ready, (head + 1) % ring, waiting - 1
        missing, now = max(0.0, missing - (arrival - now) * byte_rate), arrival
        taken, queued, fits = missing, waiting, True
        for size in sizes:
            if queued == 0 and taken + size <= depth + 1e-6:
                taken += size
            else:
                queued += 1
        fits = queued <= buffer
        lost += not fits
        for size in sizes:
            if fits:
                accepted += 1
                if waiting == 0 and missing + size <= depth + 1e-6:
                    missing += size
                else:
                    place = (head + waiting) % ring
                    bytes_of[place], since[place], waiting = size, now, waiting + 1
    return lost / segments, wait / accepted


@pytest.mark.parametrize(("payload", "buffer"), [(200, 10), (80, 5)])
def test_whole_segments_of_unequal_packets_against_simulation(payload: int, buffer: int):
    """Forty runs of 200,000 segments; false alarm 1e-5 for each of two measures."""
    rate, sizes = payload * 1e3 / (8 * 1460), np.array(UNEQUAL, float)
    runs = np.array(
        [
            simulate_bytes(np.random.default_rng(seed), 200_000, rate, sizes, 250e3 / 8, 3000.0, buffer)
            for seed in range(300, 340)
        ]
    )
    solution = bytes_bucket(payload, buffer, whole=True)
    exact = np.array([float(solution.packet_loss), float(solution.mean_token_wait)])
    scores = (runs.mean(axis=0) - exact) / (runs.std(axis=0, ddof=1) / np.sqrt(len(runs)))
    assert np.abs(scores).max() < stats.t.isf(0.5e-5, len(runs) - 1), scores


@pytest.mark.parametrize("whole", [False, True])
def test_bytes_of_equal_packets_are_packets(whole: bool):
    rate = 200e3 / (8 * 1460)
    in_bytes = byte_bucket(
        batch_rate=rate,
        packet_bytes=[308] * 5,
        byte_rate=250e3 / 8,
        depth=308 * 9,
        buffer=25,
        whole_batches=whole,
    )
    in_packets = token_bucket(
        batches=PoissonBatches(rate, lattice.point(5)),
        token_time=308 * 8 / 250e3,
        depth=9,
        buffer=25,
        whole_batches=whole,
    )
    assert float(in_bytes.packet_loss) == pytest.approx(float(in_packets.packet_loss), rel=1e-11)
    assert float(in_bytes.batch_loss) == pytest.approx(float(in_packets.segment_loss), rel=1e-11)
    assert float(in_bytes.mean_token_wait) == pytest.approx(float(in_packets.mean_token_wait), rel=1e-11)


LATTICE_BATCHES = BernoulliBatches(0.03, [0.0, 0.3, 0.0, 0.7])


@pytest.mark.parametrize("whole", [False, True])
def test_what_passes_a_lattice_bucket(whole: bool):
    bucket = LatticeBucket(8, depth=20, buffer=3, whole_batches=whole)
    solution = lattice_bucket(bucket, LATTICE_BATCHES)
    matrices = passing_matrices(bucket, LATTICE_BATCHES)
    np.testing.assert_allclose(np.asarray(matrices).sum(axis=(0, 2)), 1.0, atol=1e-13)
    np.testing.assert_allclose(
        markov.stationary_vector(np.asarray(matrices).sum(axis=0)), solution.level, atol=1e-14
    )

    rate = float(solution.accepted_rate)  # what is admitted passes
    counts = np.arange(matrices.shape[0])
    assert float(np.asarray(solution.level) @ np.asarray(matrices).sum(axis=2).T @ counts) == pytest.approx(
        rate, rel=1e-12
    )
    forty = passed_in(bucket, LATTICE_BATCHES, slots=40, length=60)
    assert float(lattice.mean(forty.probabilities)) == pytest.approx(40 * rate, rel=1e-12)
    groups = passing_groups(bucket, LATTICE_BATCHES, length=1200)
    assert float(lattice.mean(groups.gap.probabilities)) == pytest.approx(1 / float(groups.rate), rel=1e-10)
    assert float(groups.rate) * float(lattice.mean(groups.size)) == pytest.approx(rate, rel=1e-12)
    none = np.asarray(solution.level) @ np.linalg.matrix_power(np.asarray(matrices)[0], 40)
    assert float(forty.probabilities[0]) == pytest.approx(none.sum(), rel=1e-11)


@settings(deadline=None, max_examples=10)
@given(chance=st.floats(1e-4, 0.99), small=st.floats(0.0, 1.0))
def test_lattice_bucket_keeps_its_balances(chance: float, small: float):
    bucket = LatticeBucket(5, depth=13, buffer=4)
    solution = lattice_bucket(bucket, BernoulliBatches(chance, [0.0, small, 0.0, 1.0 - small]))
    level, wait = np.asarray(solution.level), np.asarray(solution.wait)
    assert level.sum() == pytest.approx(1.0, abs=1e-12)
    assert wait.sum() == pytest.approx(1.0, abs=1e-12)
    assert (level >= 0).all()
    assert float(solution.mean_wait) * float(solution.accepted_rate) == pytest.approx(
        float(solution.mean_buffer), rel=1e-9, abs=1e-12
    )
    # tokens of a slot are spent unless the bucket was full
    assert (1.0 - level[0]) / 5 == pytest.approx(float(solution.accepted_rate), rel=1e-9)


def test_fine_slots_approach_the_fluid():
    """Bernoulli batches on 16 times finer slots come 16 times closer to Poisson batches and fluid tokens."""
    fluid = token_bucket(batches=PoissonBatches(0.02, lattice.point(3)), token_time=10.0, depth=4, buffer=6)
    errors = []
    for scale in (1, 16):
        bucket = LatticeBucket(10 * scale, depth=40 * scale, buffer=6)
        lattice_loss = lattice_bucket(bucket, BernoulliBatches(0.02 / scale, lattice.point(3))).packet_loss
        errors.append(abs(float(lattice_loss) - float(fluid.packet_loss)))
    assert errors[1] < errors[0] / 12


def test_gradient_and_batch():
    def loss(rate: ArrayLike) -> jax.Array:
        return token_bucket(batches=PoissonBatches(rate), token_time=1.0, depth=2, buffer=1).packet_loss

    with jax.enable_x64(True):
        slope, single = float(jax.grad(loss)(0.4)), float(loss(0.4))
        difference = float(loss(0.4 + 1e-5) - loss(0.4 - 1e-5)) / 2e-5
        several = jax.vmap(loss)(np.array([0.1, 0.4]))
    assert slope == pytest.approx(difference, rel=1e-6)
    assert float(several[1]) == pytest.approx(single, rel=1e-11)


@pytest.mark.long
def test_gradients_of_waits_bytes_and_slots():
    def value(rate: ArrayLike, time: ArrayLike) -> jax.Array:
        batches = PoissonBatches(rate, [0.0, 0.3, 0.7])
        arguments = {"batches": batches, "token_time": time, "depth": 2, "buffer": 3, "whole_batches": True}
        wait = token_wait_survival(np.array([1.3]), **arguments)
        bytes_ = byte_bucket(batch_rate=rate, packet_bytes=[3, 2], byte_rate=4.0, depth=6, buffer=2)
        slots = lattice_bucket(LatticeBucket(2, 3, 2), BernoulliBatches(rate, [0.0, 0.3, 0.7]))
        return token_bucket(**arguments).packet_loss + wait[0] + bytes_.batch_loss + slots.mean_wait

    at = (0.4, 1.1)
    with jax.enable_x64(True):
        slopes = jax.jit(jax.grad(value, argnums=(0, 1)))(*at)
        compiled = jax.jit(value)
        for place, slope in enumerate(slopes):
            step = np.eye(2)[place] * 1e-5
            difference = (compiled(*(at + step)) - compiled(*(at - step))) / 2e-5
            assert float(slope) == pytest.approx(float(difference), rel=1e-6)
        rates = np.array([0.1, 0.4])
        several, single = jax.vmap(lambda rate: value(rate, 1.1))(rates), float(compiled(0.4, 1.1))
    assert float(several[1]) == pytest.approx(single, rel=1e-11)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: LatticeBucket(0, 3, 2), "token_slots"),
        (lambda: LatticeBucket(4, 3, 0), "depth"),
        (lambda: lattice_bucket(LatticeBucket(4, 8, 1), BernoulliBatches(1.0)), "batch_probability"),
        (lambda: lattice_bucket(LatticeBucket(4, 8, 1), POISSON), "BernoulliBatches"),
        (
            lambda: byte_bucket(batch_rate=1.0, packet_bytes=[], byte_rate=1.0, depth=3, buffer=1),
            "packet_bytes",
        ),
        (
            lambda: byte_bucket(batch_rate=9.0, packet_bytes=[3], byte_rate=1.0, depth=3, buffer=1),
            "batch_rate",
        ),
        (lambda: byte_bucket(batch_rate=0.1, packet_bytes=[5], byte_rate=1.0, depth=3, buffer=0), "depth"),
        (lambda: token_wait_survival(np.array([-1.0]), batches=PoissonBatches(1.0), **FIVE), "times"),
    ],
)
def test_impossible_buckets_are_refused(call, name: str):
    with pytest.raises(ValueError, match=name):
        call()
