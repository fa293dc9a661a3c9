"""The infinite single queue against closed forms, known values and simulation."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from btqueue.queueing.laws import lattice
from btqueue.queueing.single.single_queue import single_queue, wait_distribution
from btqueue.queueing.traffic.arrivals import BernoulliBatches, PoissonBatches

from .single_queue_cases import (
    ARRIVALS,
    CONSTANT,
    HORIZON,
    INVERSION,
    LENGTH,
    MIXED,
    SINGLE,
    UNIFORM,
    padded,
    positive,
    solve,
)


@pytest.mark.parametrize("load", [0.1, 0.6, 0.95])
def test_md1_moments_are_those_of_pollaczek_and_khinchine(load: float):
    rate = load / 6
    solution = solve(PoissonBatches(rate, SINGLE), CONSTANT, slotted=False)
    mean = rate * 36 / (2 * (1 - load))
    assert float(solution.mean_wait) == pytest.approx(mean, rel=1e-12)
    assert float(solution.second_moment_wait) == pytest.approx(
        2 * mean**2 + rate * 216 / (3 * (1 - load)), rel=1e-11
    )
    assert float(solution.mean_queue) == pytest.approx(rate * (mean + 6), rel=1e-12)


@pytest.mark.parametrize("load", [0.3, 0.8])
def test_md1_queue_law(load: float):
    """``1 - rho``, ``(1 - rho)(e^rho - 1)``, ``(1 - rho)(e^2rho - e^rho(1 + rho))``: Erlang's."""
    solution = solve(PoissonBatches(load / 6, SINGLE), CONSTANT, slotted=False)
    e = math.exp(load)
    expected = [1 - load, (1 - load) * (e - 1), (1 - load) * (e * e - e * (1 + load))]
    np.testing.assert_allclose(solution.occupancy.probabilities[:3], expected, atol=INVERSION)
    np.testing.assert_allclose(solution.at_arrivals.probabilities[:3], expected, atol=INVERSION)


@pytest.mark.parametrize("load", [0.3, 0.6, 0.9])
def test_md1_waiting_time_is_crommelins(load: float):
    """``(1 - rho) sum_j (-y_j)^j / j! e^(y_j)`` with ``y_j = lambda (t - j D)``; terms stay below 1e3."""
    times = np.array([0.0, 0.4, 2.5, 6.0, 7.75, 13.2, 24.0, 29.99])  # eight, as in the other tests
    rate = load / 6

    def crommelin(time: float) -> float:
        shifted = [rate * (time - 6 * j) for j in range(int(time // 6) + 1)]
        return (1 - load) * sum((-y) ** j / math.factorial(j) * math.exp(y) for j, y in enumerate(shifted))

    distribution = wait_distribution(
        arrivals=PoissonBatches(rate, SINGLE), service=CONSTANT, times=times, horizon=60
    )
    np.testing.assert_allclose(distribution, [crommelin(time) for time in times], atol=1e-11)


def test_distribution_at_whole_times_is_the_law_of_the_rounded_wait():
    arrivals = PoissonBatches(0.05, MIXED)
    wait = solve(arrivals, slotted=False).wait
    times = np.array([0, 1, 2, 5, 9, 16, 30, 59])
    distribution = wait_distribution(arrivals=arrivals, service=UNIFORM, times=times, horizon=60)
    np.testing.assert_allclose(distribution, np.cumsum(wait.probabilities)[times], atol=INVERSION)


@pytest.mark.parametrize(("probability", "mean_service"), [(0.1, 4.0), (0.3, 2.0), (0.28, 3.0)])
def test_geo_geo_1(probability: float, mean_service: float):
    """Birth and death slot by slot; a wait is the rest of a service and those before it."""
    solution = single_queue(
        arrivals=BernoulliBatches(probability),
        service=padded(lattice.geometric(mean_service), 130),
        length=LENGTH,
        horizon=HORIZON,
    )
    end = 1 / mean_service
    up, down = probability * (1 - end), end * (1 - probability)
    packets = np.arange(400)
    law = np.where(packets == 0, 1.0, probability / down * (up / down) ** (packets - 1.0))
    law[0] = 1 - probability * mean_service
    law[1:] *= law[0]
    np.testing.assert_allclose(solution.at_slot_starts.probabilities, law[:LENGTH], atol=INVERSION)
    np.testing.assert_allclose(solution.occupancy.probabilities, law[:LENGTH], atol=INVERSION)
    waits = np.arange(100)
    wait = law[0] * (waits == 0) + sum(
        law[n] * stats.nbinom.pmf(waits - (n - 1), n, end) for n in range(1, 101)
    )
    np.testing.assert_allclose(solution.wait.probabilities[:100], wait, atol=INVERSION)
    spread = mean_service - 1  # E[B (B - 1)] / (2 E[B])
    expected = probability * mean_service * spread / (1 - probability * mean_service)
    assert float(solution.mean_wait) == pytest.approx(expected, rel=1e-11)


def extrapolated(quantity, coarse: int) -> np.ndarray:
    """Limit of ever finer slots, from 1/m, 1/2m and 1/4m of a mean service (errors in powers of 1/m)."""
    first, second, third = (quantity(coarse * 2**level) for level in range(3))
    return (8 * third - 6 * second + first) / 3


@pytest.mark.parametrize("again", [0.0, 0.4])
def test_fine_slots_approach_mx_m_1(again: float):
    """Geometric batches, ``Pr(X = k) ~ again^k``: geometric but for zero; M/M/1 if ``again = 0``."""
    load = 0.6
    sizes = np.append(0.0, again ** np.arange(40.0))
    sizes /= sizes.sum()
    batches = load * (1 - again)  # a mean service
    expected = (1 - load) * batches * (again + batches) ** np.arange(19.0)

    def occupancy(slots: int) -> np.ndarray:
        service = padded(lattice.geometric(float(slots), tail=1e-13), 2400)
        arrivals = PoissonBatches(batches / slots, sizes)
        solution = single_queue(arrivals=arrivals, service=service, length=20, horizon=2, slotted=False)
        return np.asarray(solution.occupancy.probabilities)

    law = extrapolated(occupancy, 20)
    assert law[0] == pytest.approx(1 - load, abs=1e-11)
    # what is left is of third order, (1 / 20)**3 / 8 = 2e-5, times a probability's share in it
    np.testing.assert_allclose(law[1:], expected, atol=2e-6)


def embedded_chain(slot: np.ndarray, service: np.ndarray, opening: np.ndarray, states: int) -> np.ndarray:
    """Law left behind by departures, from its defining chain solved by plain linear algebra."""
    law = np.zeros(states)
    for weight in service[:0:-1]:  # Horner: packets that arrive in a service
        law = np.convolve(law, slot)[:states]
        law[0] += weight
    law = np.convolve(law, slot)[:states]
    transition = np.zeros((states, states))
    for left in range(states):
        start = opening if left == 0 else np.eye(states + 1)[left]
        for packets, share in enumerate(start[: states + 1]):
            if share:
                size = states - packets + 1
                transition[left, packets - 1 :] += share * law[:size]
        transition[left, -1] += 1 - transition[left].sum()
    system = np.vstack([transition.T - np.eye(states), np.ones(states)])
    return np.linalg.lstsq(system, np.append(np.zeros(states), 1.0), rcond=None)[0]


@pytest.mark.parametrize("arrivals", [PoissonBatches(0.05, MIXED), BernoulliBatches(0.05, MIXED)])
def test_departures_leave_what_their_markov_chain_says(arrivals):
    states = 150
    slot = np.asarray(arrivals.slot_law(states + 1).probabilities)
    opening = np.append(0.0, slot[1:]) / slot[1:].sum()
    left = embedded_chain(slot, UNIFORM, opening, states)
    np.testing.assert_allclose(solve(arrivals).at_arrivals.probabilities, left[:LENGTH], atol=1e-12)


@pytest.mark.parametrize("arrivals", [PoissonBatches(0.06, MIXED), BernoulliBatches(0.07, MIXED)])
def test_work_left_after_a_slot_follows_its_recursion(arrivals):
    """``V' = (V + G - 1)^+`` iterated to its fixed point; a Bernoulli batch finds exactly V."""
    batch = np.zeros(1)
    for weight in MIXED[::-1]:
        batch = np.convolve(batch, UNIFORM)
        batch[0] += weight
    work = type(arrivals)(
        arrivals.batch_rate if isinstance(arrivals, PoissonBatches) else arrivals.batch_probability, batch
    )
    slot = np.asarray(work.slot_law(300).probabilities)
    spectrum = np.fft.rfft(slot, 1024)
    law = np.eye(512)[0]
    for _ in range(6000):
        moved = np.fft.irfft(np.fft.rfft(law, 1024) * spectrum, 1024)
        law = np.append(moved[0] + moved[1], moved[2:513])
    virtual = solve(arrivals).virtual_wait.probabilities
    within = np.asarray(work.part_slot_law(150).probabilities)
    expected = np.convolve(law[:150], within)[:150]
    np.testing.assert_allclose(virtual[:150], expected, atol=1e-11)


@settings(deadline=None, derandomize=True, max_examples=15)
@given(st.sampled_from(sorted(ARRIVALS)), st.floats(0.05, 0.97), st.tuples(positive, positive, positive))
def test_infinite_laws_keep_the_mass_and_littles_law(kind: str, load: float, weights):
    sizes = np.append(0.0, weights) / sum(weights)
    arrivals = ARRIVALS[kind](load, sizes)
    solution = solve(arrivals)
    rate = float(arrivals.packet_rate)
    for law in (solution.at_slot_starts, solution.occupancy, solution.at_arrivals, solution.wait):
        assert float(law.probabilities.sum() + law.tail) == pytest.approx(1.0, abs=1e-12)
        assert float(law.probabilities.min()) >= 0.0
    assert float(solution.mean_queue) == pytest.approx(rate * float(solution.mean_sojourn), rel=1e-10)
    assert float(solution.at_slot_starts.probabilities[0]) == pytest.approx(1 - load, abs=1e-12)
    if float(solution.wait.tail) < 1e-13:  # all of the law is there: its moments are those of the transform
        joined = 0.5 if kind == "poisson" else 0.0
        mean = float(lattice.mean(solution.wait.probabilities)) + joined
        assert float(solution.mean_wait) == pytest.approx(mean, rel=1e-9)


def test_an_unstable_queue_says_so():
    with pytest.raises(ValueError, match="unstable: the load must be below 1"):
        solve(PoissonBatches(0.3))

    def answers(rate):
        solution = solve(PoissonBatches(rate, MIXED))
        return solution.mean_wait, solution.wait.tail, jnp.where(solution.stable, 1.0, 0.0)

    with jax.enable_x64(True):
        rates = jnp.array([0.05, 0.3])
        both = jax.vmap(lambda rate: jax.jvp(answers, (rate,), (1.0,)))(rates)
    (mean, tail, stable), (slope, *_) = jax.tree.map(np.asarray, both)
    assert stable.tolist() == [1.0, 0.0]
    assert np.isfinite(mean[0]) and np.isinf(mean[1]) and tail[1] == 1.0
    assert np.isfinite(slope).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"arrivals": BernoulliBatches(0.1), "slotted": False}, "arrivals must be PoissonBatches"),
        ({"service": np.array([0.5, 0.5])}, "service must give no probability to zero"),
        ({"service": np.array([0.0, 0.5])}, "service must sum to one"),
        ({"length": 0}, "length must be a whole number"),
        ({"horizon": 0}, "horizon must be a whole number"),
        ({"arrivals": "often"}, "arrivals must be PoissonBatches or BernoulliBatches, got str"),
    ],
)
def test_bad_input_is_named(arguments, message: str):
    good = {"arrivals": PoissonBatches(0.1), "service": UNIFORM, "length": 5, "horizon": 5}
    with pytest.raises(ValueError, match=message):
        single_queue(**(good | arguments))


def test_against_simulated_waits():
    """M^X/G/1 in continuous time, Lindley's recursion, 1000 independent runs (seed 41, false alarm 3e-4)."""
    random = np.random.default_rng(41)
    runs, batches, warm_up = 1000, 1200, 400
    rate = 0.06
    work = np.zeros(runs)
    waits, late = np.zeros(runs), np.zeros(runs)
    for batch in range(batches):
        size = random.choice(4, runs, p=MIXED)
        services = np.where(np.arange(3)[:, None] < size, random.integers(2, 8, (3, runs)), 0)
        if batch >= warm_up:
            before = np.cumsum(services, axis=0) - services
            packet = work + before
            there = np.arange(3)[:, None] < size
            waits += (packet * there).sum(axis=0)
            late += ((packet > 20.0) & there).sum(axis=0)
        work = np.maximum(work + services.sum(axis=0) - random.exponential(1 / rate, runs), 0.0)
    packets = (batches - warm_up) * 2.2
    arrivals = PoissonBatches(rate, MIXED)
    times = np.full(8, 20.0)
    beyond = 1 - float(wait_distribution(arrivals=arrivals, service=UNIFORM, times=times, horizon=60)[0])
    for sample, exact in (
        (waits / packets, float(solve(arrivals, slotted=False).mean_wait)),
        (late / packets, beyond),
    ):
        error = sample.std(ddof=1) / math.sqrt(runs)
        assert abs(sample.mean() - exact) < stats.norm.isf(0.75e-4) * error
