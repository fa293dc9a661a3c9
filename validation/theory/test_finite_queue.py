"""The finite single queue against closed forms, known values, the infinite one and simulation."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from btqueue.queueing.laws import lattice
from btqueue.queueing.single.finite_queue import FiniteQueueSolution, finite_queue
from btqueue.queueing.traffic.arrivals import BernoulliBatches, PoissonBatches

from .single_queue_cases import ARRIVALS, CONSTANT, FIVE, INVERSION, MIXED, SINGLE, UNIFORM, positive, solve


def brun_garcia(load: float, capacity: int) -> float:
    """Blocking of M/D/1/K: ``1 - b / (1 + rho b)`` with an alternating sum b (J. Appl. Prob. 37, 2000)."""
    last = capacity - 1
    b = math.fsum(
        (-load) ** k / math.factorial(k) * (last - k) ** k * math.exp((last - k) * load)
        for k in range(last + 1)
    )
    return 1 - b / (1 + load * b)


@pytest.mark.parametrize("capacity", [1, 6])
@pytest.mark.parametrize("load", [0.5, 0.9, 1.5])
def test_md1k_blocking(load: float, capacity: int):
    solution = finite_queue(
        arrivals=PoissonBatches(load / 6, SINGLE), service=CONSTANT, capacity=capacity, slotted=False
    )
    expected = brun_garcia(load, capacity)
    assert float(solution.packet_loss) == pytest.approx(expected, abs=1e-12)
    assert float(solution.batch_loss) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("payload", "room", "packet_loss", "segment_loss"),
    [
        (200, 25, 0.019957, 0.037390),
        (240, 25, 0.076597, 0.137486),
        pytest.param(200, 5, 0.107036, 0.200245, marks=pytest.mark.long),
    ],
)
def test_batches_of_five_at_a_finite_md1(payload: int, room: int, packet_loss: float, segment_loss: float):
    """A token bucket of depth 9 before ``room`` packets is M^5/D/1/(9 + room).

    Segments of 1460 bytes in packets of 307.8 on average, tokens at 250 kbit/s, a slot for each packet's
    tokens.
    """
    batches_per_slot = payload / (8 * 1460) * 8 * 307.8 / 250
    solution = finite_queue(
        arrivals=PoissonBatches(batches_per_slot, FIVE),
        service=lattice.point(1),
        capacity=9 + room,
        slotted=False,
    )
    assert float(solution.packet_loss) == pytest.approx(packet_loss, abs=5e-7)
    assert float(solution.batch_loss) == pytest.approx(segment_loss, abs=5e-7)


@pytest.mark.parametrize("load", [0.2, 1.0, 7.0])
def test_without_a_waiting_room_blocking_is_erlangs_whatever_the_service(load: float):
    solution = finite_queue(
        arrivals=PoissonBatches(load / 4.5, SINGLE), service=UNIFORM, capacity=1, slotted=False
    )
    assert float(solution.packet_loss) == pytest.approx(load / (1 + load), rel=1e-13)
    assert float(solution.mean_wait) == pytest.approx(0.0, abs=1e-15)


def slot_chain(
    probability: float, sizes: np.ndarray, mean_service: float, capacity: int, whole: bool
) -> np.ndarray:
    """Law at slot starts of a queue with geometric service, from its chain of one step a slot."""
    transition = np.zeros((capacity + 1, capacity + 1))
    for found in range(capacity + 1):
        for size, weight in enumerate(np.append(1 - probability, probability * sizes[1:])):
            room = capacity - found
            then = found + (min(size, room) if not whole else size * (size <= room))
            ends = 1 / mean_service if found else 0.0
            transition[found, then] += weight * (1 - ends)
            transition[found, then - 1 if found else then] += weight * ends
    system = np.vstack([transition.T - np.eye(capacity + 1), np.ones(capacity + 1)])
    return np.linalg.lstsq(system, np.append(np.zeros(capacity + 1), 1.0), rcond=None)[0]


@pytest.mark.parametrize("acceptance", ["partial", "whole"])
@pytest.mark.parametrize("probability", [0.1, 0.6])
def test_geo_batches_at_a_finite_queue_with_geometric_service(probability: float, acceptance):
    solution = finite_queue(
        arrivals=BernoulliBatches(probability, MIXED),
        service=lattice.geometric(4.0),
        capacity=7,
        acceptance=acceptance,
    )
    law = slot_chain(probability, MIXED, 4.0, 7, acceptance == "whole")
    np.testing.assert_allclose(solution.at_slot_starts, law, atol=1e-12)
    lost = [law[7 - size + 1 :].sum() for size in range(4)]
    assert float(solution.batch_loss) == pytest.approx(float(MIXED @ lost), rel=1e-11)
    assert float(solution.throughput) == pytest.approx((1 - law[0]) / 4, rel=1e-12)
    refused = law[7] if acceptance == "partial" else float(MIXED @ lost)
    assert float(solution.batch_refusal) == pytest.approx(refused, rel=1e-11)


@pytest.mark.parametrize(
    ("arrivals", "slotted"),
    [
        (PoissonBatches(0.05, MIXED), True),
        pytest.param(PoissonBatches(0.05, MIXED), False, marks=pytest.mark.long),
        pytest.param(BernoulliBatches(0.05, MIXED), True, marks=pytest.mark.long),
    ],
)
def test_a_limit_never_reached_gives_the_queue_without_one(arrivals, slotted: bool):
    """The finite solver counts positions on a chain, the infinite one inverts transforms: all laws agree."""
    infinite = solve(arrivals, slotted=slotted)
    finite = finite_queue(arrivals=arrivals, service=UNIFORM, capacity=80, slotted=slotted)
    for name in ("at_slot_starts", "occupancy", "at_arrivals", "wait", "sojourn"):
        law = getattr(infinite, name).probabilities
        np.testing.assert_allclose(getattr(finite, name)[: law.shape[0]], law, atol=INVERSION)
    for name in ("mean_queue", "mean_wait", "mean_sojourn", "second_moment_wait"):
        assert float(getattr(finite, name)) == pytest.approx(float(getattr(infinite, name)), rel=1e-10)


@settings(deadline=None, derandomize=True, max_examples=15)
@given(
    st.sampled_from([("poisson", "partial"), ("bernoulli", "whole")]),
    st.floats(0.05, 3.0),
    st.tuples(positive, positive, positive),
)
def test_finite_laws_keep_the_mass_littles_law_and_the_balance_of_flows(how, load: float, weights):
    kind, acceptance = how
    sizes = np.append(0.0, weights) / sum(weights)
    arrivals = ARRIVALS[kind](load, sizes)
    solution = finite_queue(arrivals=arrivals, service=UNIFORM, capacity=6, acceptance=acceptance)
    for name in ("at_departures", "at_arrivals", "at_slot_starts", "occupancy", "wait", "sojourn"):
        assert float(getattr(solution, name).sum()) == pytest.approx(1.0, abs=1e-12)
        assert float(getattr(solution, name).min()) >= -1e-16
    # level crossing: what accepted packets find is what departing ones leave, found in two different ways
    np.testing.assert_allclose(solution.at_arrivals, solution.at_departures, atol=1e-13)
    rate = float(arrivals.packet_rate)
    assert float(solution.throughput) == pytest.approx(rate * (1 - float(solution.packet_loss)), rel=1e-12)
    assert float(solution.mean_sojourn) == pytest.approx(
        float(solution.mean_queue / solution.throughput), rel=1e-11
    )
    assert float(solution.throughput) * 4.5 == pytest.approx(1 - float(solution.at_slot_starts[0]), rel=1e-12)


def test_bad_input_of_the_finite_queue_is_named():
    unknown: Any = "none"
    with pytest.raises(ValueError, match="acceptance must be 'partial' or 'whole', got 'none'"):
        finite_queue(arrivals=PoissonBatches(0.1), service=UNIFORM, capacity=3, acceptance=unknown)
    with pytest.raises(ValueError, match="capacity must leave room for the smallest batch, got 3"):
        finite_queue(arrivals=PoissonBatches(0.1, FIVE), service=UNIFORM, capacity=3, acceptance="whole")


def test_against_a_simulated_finite_queue():
    """Geo^X/G/1/K with whole batches, slot by slot, 2000 independent runs (seed 42, false alarm 3e-4)."""
    random = np.random.default_rng(42)
    runs, slots, warm_up, capacity = 2000, 1500, 500, 6
    content, left = np.zeros(runs, int), np.zeros(runs, int)
    offered, lost, queue = np.zeros(runs), np.zeros(runs), np.zeros(runs)
    for slot in range(slots):
        size = np.where(random.random(runs) < 0.1, random.choice(4, runs, p=MIXED), 0)
        if slot >= warm_up:
            offered += size
            queue += content
            lost += np.where(size > capacity - content, size, 0)
        start = (content > 0) & (left == 0)
        left = np.where(start, random.integers(2, 8, runs), left)
        content = content + np.where(size <= capacity - content, size, 0)
        done = left == 1
        left = np.maximum(left - 1, 0)
        content = content - done
    solution: FiniteQueueSolution = finite_queue(
        arrivals=BernoulliBatches(0.1, MIXED), service=UNIFORM, capacity=capacity, acceptance="whole"
    )
    mean_queue = float(lattice.mean(solution.at_slot_starts))
    for sample, exact in (
        (lost - float(solution.packet_loss) * offered, 0.0),
        (queue / (slots - warm_up), mean_queue),
    ):
        error = sample.std(ddof=1) / math.sqrt(runs)
        assert abs(sample.mean() - exact) < stats.norm.isf(0.75e-4) * error
