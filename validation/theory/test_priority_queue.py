"""Priorities against Cobham's means, the conservation law, special cases and simulation."""

import heapq
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import simpy
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from btqueue.queueing.laws import lattice
from btqueue.queueing.single.priority_queue import PriorityQueueSolution, priority_queue
from btqueue.queueing.single.single_queue import law_quantile, single_queue
from btqueue.queueing.traffic.arrivals import BernoulliBatches, PoissonBatches

HORIZON = 600
RATES = np.array([0.03, 0.04, 0.05])
SERVICES = [np.pad(lattice.point(4), (0, 5)), lattice.uniform(1, 9), np.pad(lattice.uniform(3, 7), (0, 2))]
MEANS = np.array([4.0, 5.0, 5.0])
SECONDS = np.array([16.0, 285 / 9, 27.0])


def solve(rates: Any = RATES, services=SERVICES, *, preemptive: bool = False, slotted: bool = False):
    return priority_queue(
        arrivals=[PoissonBatches(rate) for rate in rates],
        services=services,
        horizon=HORIZON,
        preemptive=preemptive,
        slotted=slotted,
    )


def cobham(rates: np.ndarray, means: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    up_to = np.cumsum(rates * means)
    return rates @ seconds / 2 / ((1 - up_to) * (1 - up_to + rates * means))


def check_law(solution: PriorityQueueSolution) -> None:
    for law in (solution.wait, solution.sojourn):
        np.testing.assert_allclose(law.probabilities.sum(axis=1) + law.tail, 1.0, atol=1e-12)
        assert float(law.probabilities.min()) >= 0.0


@pytest.mark.parametrize("scale", [0.2, 1.0, 1.7])
def test_without_preemption_mean_waits_are_cobhams(scale: float):
    solution = solve(scale * RATES)
    np.testing.assert_allclose(solution.mean_wait, cobham(scale * RATES, MEANS, SECONDS), rtol=1e-11)
    np.testing.assert_allclose(solution.mean_sojourn, solution.mean_wait + MEANS, rtol=1e-12)
    check_law(solution)


@pytest.mark.parametrize("scale", [0.2, 1.0, 1.7])
def test_with_preemption_mean_sojourns_are_the_textbooks(scale: float):
    """``b_k / (1 - s_(k-1)) + sum_(i <= k) lambda_i b2_i / (2 (1 - s_(k-1)) (1 - s_k))``."""
    rates = scale * RATES
    solution = solve(rates, preemptive=True)
    up_to = np.cumsum(rates * MEANS)
    above = up_to - rates * MEANS
    residual = np.cumsum(rates * SECONDS) / 2
    expected = MEANS / (1 - above) + residual / ((1 - above) * (1 - up_to))
    np.testing.assert_allclose(solution.mean_sojourn, expected, rtol=1e-11)
    np.testing.assert_allclose(solution.mean_queue, rates * expected, rtol=1e-11)
    check_law(solution)


def test_highest_class_with_preemption_is_alone():
    alone = single_queue(
        arrivals=PoissonBatches(RATES[0]), service=SERVICES[0], length=5, horizon=HORIZON, slotted=False
    )
    solution = solve(preemptive=True)
    np.testing.assert_allclose(solution.wait.probabilities[0], alone.wait.probabilities, atol=1e-13)
    np.testing.assert_allclose(solution.sojourn.probabilities[0], alone.sojourn.probabilities, atol=1e-13)
    assert float(solution.second_moment_wait[0]) == pytest.approx(float(alone.second_moment_wait), rel=1e-12)


@pytest.mark.parametrize("preemptive", [False, pytest.param(True, marks=pytest.mark.long)])
def test_last_in_the_order_waits_a_delayed_busy_period(preemptive: bool):
    """Second moment of Kesten and Runnenburg for the lower of two classes, from Takagi's ``V(theta(s))``.

    The work found has the moments v1, v2 of M/G/1 with all classes, and each unit lasts a busy period of the
    class above, of moments ``1 / (1 - r)`` and ``1 / (1 - r)^2 + lambda b2 / (1 - r)^3``.
    """
    rates, means, seconds = RATES[:2], MEANS[:2], SECONDS[:2]
    thirds = np.array([64.0, 225.0])
    load, above = rates @ means, rates[0] * means[0]
    first = rates @ seconds / (2 * (1 - load))
    second = 2 * first**2 + rates @ thirds / (3 * (1 - load))
    expected = second / (1 - above) ** 2 + first * rates[0] * seconds[0] / (1 - above) ** 3
    solution = solve(rates, SERVICES[:2], preemptive=preemptive)
    assert float(solution.second_moment_wait[1]) == pytest.approx(expected, rel=1e-11)


def test_a_saturated_lower_class_is_a_vacation_without_end():
    """Above it the server never idles: ``W = lambda b2 / (2 (1 - rho)) + b2_low / (2 b_low)``."""
    solution = solve(np.array([0.03, 0.5]), SERVICES[:2])
    expected = 0.03 * 16 / (2 * 0.88) + SECONDS[1] / (2 * MEANS[1])
    assert solution.stable.tolist() == [True, False]
    assert float(solution.mean_wait[0]) == pytest.approx(expected, rel=1e-12)
    assert np.isinf(solution.mean_wait[1]) and float(solution.wait.tail[1]) == 1.0
    assert float(solution.wait.probabilities[0, 0]) < 1e-13  # never served at once


def test_one_class_in_two_is_one_queue_on_average():
    """Two like classes share the waits of the common queue: means by the conservation law."""
    rates = np.array([0.04, 0.06])
    solution = solve(rates, [SERVICES[1]] * 2)
    together = single_queue(
        arrivals=PoissonBatches(0.1), service=SERVICES[1], length=5, horizon=HORIZON, slotted=False
    )
    assert float(rates @ solution.mean_wait) / 0.1 == pytest.approx(float(together.mean_wait), rel=1e-12)
    assert float(solution.wait.probabilities[0, 0]) == pytest.approx(0.5, abs=1e-13)
    assert float(solution.wait.probabilities[1, 0]) == pytest.approx(0.5, abs=1e-13)


def conserved(loads: np.ndarray, solution: PriorityQueueSolution) -> float:
    return float(loads @ solution.mean_wait)


@settings(deadline=None, derandomize=True, max_examples=8)
@given(st.floats(0.1, 0.95), st.floats(0.1, 0.9))
def test_conservation_law_on_the_slotted_axis(load: float, share: float):
    """``sum rho_k W_k`` is the same in either order: work does not care."""
    loads = np.array([share, 1 - share]) * load
    sizes = np.array([0.0, 0.3, 0.2, 0.5])
    streams = [
        PoissonBatches(loads[0] / 5 / 2.2, sizes),
        PoissonBatches(loads[1] / 5 / 2.2, sizes),
    ]
    services = SERVICES[1:]
    ahead, behind = (
        priority_queue(arrivals=streams[::step], services=services[::step], horizon=HORIZON)
        for step in (1, -1)
    )
    assert conserved(loads, ahead) == pytest.approx(conserved(loads[::-1], behind), rel=1e-10)
    check_law(ahead)
    check_law(behind)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="services must be one law for each of the 3 arrivals, got 2"):
        solve(services=SERVICES[:2])
    with pytest.raises(ValueError, match="unstable: the load must be below 1"):
        solve(np.array([0.3, 0.1]), SERVICES[:2])


@pytest.mark.parametrize("preemptive", [False, pytest.param(True, marks=pytest.mark.long)])
def test_derivatives_are_central_differences(preemptive: bool):
    @jax.jit
    def outputs(rate):
        solution = solve([rate, 0.05], SERVICES[:2], preemptive=preemptive)
        return jnp.stack([solution.mean_wait[1], solution.sojourn.probabilities[1, 12]])

    with jax.enable_x64(True):
        slope = jax.jvp(outputs, (0.05,), (1.0,))[1]
        near, far = ((outputs(0.05 + h) - outputs(0.05 - h)) / (2 * h) for h in (2e-4, 4e-4))
        np.testing.assert_allclose(slope, (4 * near - far) / 3, rtol=1e-6)


def simulated(random: np.random.Generator, preemptive: bool, until: float) -> list[list[tuple[float, float]]]:
    """Waits and sojourns by class, of continuous time, in SimPy."""
    environment = simpy.Environment()
    resource = simpy.PreemptiveResource if preemptive else simpy.PriorityResource
    server: Any = resource(environment)
    records: list[list[tuple[float, float]]] = [[], [], []]

    def packet(kind: int):
        arrived, remaining, begun = environment.now, float(draw(kind)), None
        while remaining > 0:
            with server.request(priority=kind) as turn:
                yield turn
                since = environment.now
                begun = since if begun is None else begun
                try:
                    yield environment.timeout(remaining)
                    remaining = 0.0
                except simpy.Interrupt:
                    remaining -= environment.now - since
        assert begun is not None
        records[kind].append((begun - arrived, environment.now - arrived))

    def draw(kind: int) -> int:
        return int(random.choice(SERVICES[kind].shape[0], p=SERVICES[kind]))

    def source(kind: int):
        while True:
            yield environment.timeout(random.exponential(1 / RATES[kind]))
            environment.process(packet(kind))

    for kind in range(3):
        environment.process(source(kind))
    environment.run(until=until)
    return records


@pytest.mark.parametrize("preemptive", [False, True])
def test_against_simpy(preemptive: bool):
    """Mean sojourns and late packets by class, 30 runs (seed 45): Student's t, false alarm 6e-4 for all six.

    Late packets wait beyond their class's 0.9 quantile. Runs start empty and last 3000 slots, the relaxation
    time is about 50: the start's bias is 1e-2 of a mean, below a quarter of its standard error.
    """
    random = np.random.default_rng(45)
    runs = [simulated(random, preemptive, 3000.0) for _ in range(30)]
    solution = solve(preemptive=preemptive)
    slow = np.asarray(law_quantile(solution.wait, 0.9))
    late = 1 - np.cumsum(solution.wait.probabilities, axis=1)[np.arange(3), slow]
    for kind in range(3):
        samples = [np.array(run[kind]) for run in runs]
        for values, exact in (
            ([sample[:, 1].mean() for sample in samples], float(solution.mean_sojourn[kind])),
            ([(sample[:, 0] > slow[kind]).mean() for sample in samples], float(late[kind])),
        ):
            error = np.std(values, ddof=1) / math.sqrt(len(values))
            assert abs(np.mean(values) - exact) < stats.t.isf(0.5e-4, len(values) - 1) * error


def draw_length(random: np.random.Generator, kind: int) -> int:
    return int(random.integers(1, 10)) if kind else 4


def slot_by_slot(random: np.random.Generator, preemptive: bool, slots: int) -> list[float]:
    """Mean sojourns from the end of the slot of arrival, Bernoulli arrivals of two classes."""
    waiting: list[Any] = []  # class, arrival, slots left
    current: list[float] | None = None
    total, number = [0.0, 0.0], [0, 0]
    for slot in range(slots):
        if waiting and (current is None or (preemptive and waiting[0][0] < current[0])):
            chosen = heapq.heappop(waiting)
            if current is not None:
                heapq.heappush(waiting, current)
            current = chosen
        arrived = [[kind, slot + 1, draw_length(random, kind)] for kind in (0, 1) if random.random() < 0.07]
        if current is not None:
            current = [current[0], current[1], current[2] - 1]
            if current[2] == 0:
                kind = int(current[0])
                total[kind] += slot + 1 - current[1]
                number[kind] += 1
                current = None
        for one in arrived:
            heapq.heappush(waiting, one)
    return [total[kind] / number[kind] for kind in (0, 1)]


@pytest.mark.parametrize("preemptive", [False, True])
def test_against_a_slotted_simulation(preemptive: bool):
    """Two classes of Bernoulli arrivals, 30 runs of 4000 slots (seed 46): false alarm 2e-4 for both means."""
    random = np.random.default_rng(46)
    runs = np.array([slot_by_slot(random, preemptive, 4000) for _ in range(30)])
    solution = priority_queue(
        arrivals=[BernoulliBatches(0.07)] * 2, services=SERVICES[:2], horizon=HORIZON, preemptive=preemptive
    )
    error = runs.std(axis=0, ddof=1) / math.sqrt(len(runs))
    distance = np.abs(runs.mean(axis=0) - np.asarray(solution.mean_sojourn))
    assert (distance < stats.t.isf(0.5e-4, len(runs) - 1) * error).all()
