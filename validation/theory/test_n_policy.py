"""N-policy against its closed forms, a Markov chain and simulation."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from btqueue.queueing.laws import lattice
from btqueue.queueing.single.n_policy import NPolicySolution, best_threshold, n_policy_queue
from btqueue.queueing.single.single_queue import single_queue
from btqueue.queueing.traffic.arrivals import BernoulliBatches, PoissonBatches

UNIFORM = lattice.uniform(2, 7)
SINGLE = np.array([0.0, 1.0, 0.0, 0.0])
MIXED = np.array([0.0, 0.3, 0.2, 0.5])
LENGTH, LARGEST = 80, 16


def solve(arrivals, threshold, service=UNIFORM, *, slotted: bool = False) -> NPolicySolution:
    return n_policy_queue(
        arrivals=arrivals,
        service=service,
        threshold=threshold,
        length=LENGTH,
        largest=LARGEST,
        slotted=slotted,
    )


@pytest.mark.parametrize("threshold", [1, 2, 5, 16])
def test_single_poisson_arrivals_meet_the_closed_forms(threshold: int):
    """``W = W(M/G/1) + (N - 1) / (2 lambda)``, a cycle of ``N / (lambda (1 - rho))``."""
    rate, load = 0.1, 0.45
    solution = solve(PoissonBatches(rate, SINGLE), threshold)
    ordinary = rate * float(lattice.second_moment(UNIFORM)) / (2 * (1 - load))
    assert float(solution.mean_wait) == pytest.approx(ordinary + (threshold - 1) / (2 * rate), rel=1e-12)
    assert float(solution.mean_build_up) == pytest.approx(threshold / rate, rel=1e-12)
    assert float(solution.mean_cycle) == pytest.approx(threshold / (rate * (1 - load)), rel=1e-12)


@pytest.mark.parametrize("slotted", [False, True])
def test_switching_on_at_the_first_packet_is_the_ordinary_queue(slotted: bool):
    arrivals = PoissonBatches(0.05, MIXED)
    ordinary = single_queue(arrivals=arrivals, service=UNIFORM, length=LENGTH, horizon=40, slotted=slotted)
    solution = solve(arrivals, 1, slotted=slotted)
    np.testing.assert_allclose(solution.occupancy.probabilities, ordinary.occupancy.probabilities, atol=2e-14)
    assert float(solution.mean_wait) == pytest.approx(float(ordinary.mean_wait), rel=1e-12)


def chain(probability: float, sizes: np.ndarray, mean_service: float, threshold: int, states: int):
    """Queue at slot starts and switchings on a slot, for geometric service: off 0..N-1, on 1..states."""
    size = threshold + states
    transition = np.zeros((size, size))
    switching = np.zeros(size)
    batch = np.append(1 - probability, probability * sizes[1:])

    def on(queue: int) -> int:
        return threshold + min(queue, states) - 1

    for brought, weight in enumerate(batch):
        for queue in range(threshold):
            reached = queue + brought
            transition[queue, on(reached) if reached >= threshold else reached] += weight
            switching[queue] += weight * (reached >= threshold)
        for queue in range(1, states + 1):
            left = queue + brought - 1
            transition[on(queue), on(left) if left else 0] += weight / mean_service
            transition[on(queue), on(queue + brought)] += weight * (1 - 1 / mean_service)
    system = np.vstack([transition.T - np.eye(size), np.ones(size)])
    law = np.linalg.lstsq(system, np.append(np.zeros(size), 1.0), rcond=None)[0]
    queue = np.append(law[:threshold], np.zeros(states + 1 - threshold))
    queue[1:] += law[threshold:]
    return queue, law @ switching


@pytest.mark.parametrize("threshold", [2, 7])
def test_batches_meet_the_chain_of_one_step_a_slot(threshold: int):
    queue, switched = chain(0.06, MIXED, 4.0, threshold, 250)
    solution = solve(BernoulliBatches(0.06, MIXED), threshold, lattice.geometric(4.0), slotted=True)
    np.testing.assert_allclose(solution.occupancy.probabilities, queue[:LENGTH], atol=1e-12)
    assert float(solution.mean_queue) == pytest.approx(float(queue @ np.arange(queue.size)), rel=1e-9)
    assert float(solution.mean_cycle) == pytest.approx(1 / switched, rel=1e-10)


@pytest.mark.parametrize(("switching", "expected"), [(0.0, 1), (100.0, 3), (1000.0, 10), (2000.0, 15)])
def test_best_threshold_is_next_to_heymans_root(switching: float, expected: int):
    """Costs ``h (N - 1) / 2 + R lambda (1 - rho) / N`` above the ordinary; least near a square root."""
    rate, load = 0.1, 0.45
    best = best_threshold(
        arrivals=PoissonBatches(rate, SINGLE),
        service=UNIFORM,
        holding_cost=1.0,
        switching_cost=switching,
        largest=LARGEST,
        slotted=False,
    )
    n = np.arange(1, LARGEST + 1)
    ordinary = rate * (4.5 + rate * float(lattice.second_moment(UNIFORM)) / (2 * (1 - load)))
    costs = ordinary + (n - 1) / 2 + switching * rate * (1 - load) / n
    np.testing.assert_allclose(best.costs, costs, rtol=1e-12)
    assert int(best.threshold) == expected == int(np.argmin(costs)) + 1
    assert abs(expected - math.sqrt(2 * rate * (1 - load) * switching)) <= 1.0
    assert float(best.cost) == pytest.approx(costs.min(), rel=1e-12)


@settings(deadline=None, derandomize=True, max_examples=12)
@given(st.floats(0.02, 0.95), st.integers(1, LARGEST))
def test_law_has_the_mean_and_the_server_works_for_the_load(load: float, threshold: int):
    solution = solve(PoissonBatches(load / 4.5 / 2.2, MIXED), threshold)
    law = solution.occupancy
    assert float(law.probabilities.sum() + law.tail) == pytest.approx(1.0, abs=1e-12)
    assert float(solution.mean_build_up / solution.mean_cycle) == pytest.approx(1 - load, rel=1e-10)
    if float(law.tail) < 1e-12:
        assert float(solution.mean_queue) == pytest.approx(float(lattice.mean(law.probabilities)), rel=1e-8)


def test_thresholds_batch_and_overload_is_marked():
    with jax.enable_x64(True):
        waits = jax.vmap(lambda n: solve(PoissonBatches(0.1, SINGLE), n).mean_wait)(jnp.arange(1, 5))
        overload = jax.jit(lambda rate: solve(PoissonBatches(rate, SINGLE), 3))(0.3)
        np.testing.assert_allclose(np.diff(waits), 5.0, rtol=1e-12)
    assert (
        not bool(overload.stable) and np.isinf(overload.mean_wait) and float(overload.occupancy.tail) == 1.0
    )
    assert float(overload.mean_build_up) == pytest.approx(10.0, rel=1e-12)


@pytest.mark.parametrize(
    ("rate", "threshold", "message"),
    [
        (0.1, 17, "threshold must not exceed largest = 16, got 17"),
        (0.1, 0, "threshold must be a whole number of at least 1, got 0"),
        (0.3, 2, "unstable: the load must be below 1"),
    ],
)
def test_bad_input_is_named(rate: float, threshold: int, message: str):
    with pytest.raises(ValueError, match=message):
        solve(PoissonBatches(rate, SINGLE), threshold)


def test_derivatives_are_central_differences():
    @jax.jit
    def outputs(rate):
        solution = solve(PoissonBatches(rate, MIXED), 5)
        return jnp.stack([solution.mean_wait, solution.mean_cycle, solution.occupancy.probabilities[3]])

    with jax.enable_x64(True):
        slope = jax.jvp(outputs, (0.05,), (1.0,))[1]
        near, far = ((outputs(0.05 + h) - outputs(0.05 - h)) / (2 * h) for h in (2e-4, 4e-4))
        np.testing.assert_allclose(slope, (4 * near - far) / 3, rtol=1e-6)


def test_against_simulation():
    """Slotted Bernoulli batches, N = 5, 2000 independent runs (seed 44): two means, false alarm 2e-4."""
    random = np.random.default_rng(44)
    runs, slots, warm_up, threshold = 2000, 1500, 500, 5
    content, left = np.zeros(runs, int), np.zeros(runs, int)
    on = np.zeros(runs, bool)
    queue, switched = np.zeros(runs), np.zeros(runs)
    for slot in range(slots):
        start = on & (left == 0)
        left = np.where(start, random.integers(2, 8, runs), left)
        if slot >= warm_up:
            queue += content
        content = content + np.where(random.random(runs) < 0.05, random.choice(4, runs, p=MIXED), 0)
        content = content - (on & (left == 1))
        left = np.maximum(left - 1, 0)
        waking = ~on & (content >= threshold)
        switched += waking & (slot >= warm_up)
        on = (on & (content > 0)) | waking
    solution = solve(BernoulliBatches(0.05, MIXED), threshold, slotted=True)
    for sample, exact in (
        (queue / (slots - warm_up), float(solution.mean_queue)),
        (switched / (slots - warm_up), 1 / float(solution.mean_cycle)),
    ):
        error = sample.std(ddof=1) / math.sqrt(runs)
        assert abs(sample.mean() - exact) < stats.norm.isf(0.5e-4) * error
