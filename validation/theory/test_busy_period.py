"""Busy periods against Borel's law, the hitting-time theorem, Takacs's moments and simulation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats
from scipy.special import gammaln

from btqueue.queueing.laws import lattice
from btqueue.queueing.single.busy_period import BusyPeriod, busy_period
from btqueue.queueing.traffic.arrivals import BernoulliBatches, PoissonBatches

# laws of equal lengths share a compiled solver
CONSTANT = np.pad(lattice.point(6), (0, 1))
UNIFORM = lattice.uniform(2, 7)
SINGLE = np.array([0.0, 1.0, 0.0, 0.0])
MIXED = np.array([0.0, 0.3, 0.2, 0.5])
HORIZON, LENGTH = 300, 50
ROUNDING = 5e-14  # of an entry: 75 eps from the circle, and what Newton's division adds


def solve(arrivals, service=UNIFORM, *, slotted: bool = False, initial_work=None) -> BusyPeriod:
    return busy_period(
        arrivals=arrivals,
        service=service,
        horizon=HORIZON,
        length=LENGTH,
        slotted=slotted,
        initial_work=initial_work,
    )


def borel_tanner(load: float, initial: int) -> np.ndarray:
    """``Pr(N = n) = (j / n) (rho n)^(n - j) e^(-rho n) / (n - j)!`` for ``n = j..LENGTH-1``."""
    n = np.arange(initial, LENGTH)
    log = np.log(initial / n) + (n - initial) * np.log(load * n) - load * n - gammaln(n - initial + 1)
    return np.append(np.zeros(initial), np.exp(log))


@pytest.mark.parametrize("load", [0.2, 0.6, 0.95, 1.0, 1.6])
def test_customers_of_md1_have_borels_law_at_any_load(load: float):
    solution = solve(PoissonBatches(load / 6, SINGLE), CONSTANT)
    law = borel_tanner(load, 1)
    np.testing.assert_allclose(solution.served.probabilities, law, atol=ROUNDING)
    np.testing.assert_allclose(solution.duration.probabilities[::6], law, atol=ROUNDING)
    assert float(solution.duration.probabilities[1::6].sum()) < LENGTH * ROUNDING


@pytest.mark.parametrize("size", [2, 3])
def test_batches_at_md1_have_the_law_of_borel_and_tanner(size: int):
    solution = solve(PoissonBatches(0.5 / 6 / size, np.eye(4)[size]), CONSTANT)
    n = np.arange(size, LENGTH)
    batches, rest = np.divmod(n - size, size)
    # hitting time of a walk: (j / n) Pr(n - j customers arrive in n services)
    law = np.where(rest == 0, size / n * stats.poisson.pmf(batches, 0.5 / size * n), 0.0)
    np.testing.assert_allclose(solution.served.probabilities[size:], law, atol=ROUNDING)


@pytest.mark.parametrize("work", [1, 4])
def test_delayed_busy_period_is_a_hitting_time(work: int):
    """From j slots of work: ``(j / n) Pr(n - j slots of work arrive in n slots)``; services of 6."""
    initial = np.eye(5)[work]
    solution = solve(PoissonBatches(0.1, SINGLE), CONSTANT, initial_work=initial)
    customers = np.arange(LENGTH - 1)
    n = work + 6 * customers
    law = work / n * stats.poisson.pmf(customers, 0.1 * n)
    np.testing.assert_allclose(solution.duration.probabilities[n], law, atol=ROUNDING)
    np.testing.assert_allclose(solution.served.probabilities[: LENGTH - 1], law, atol=ROUNDING)
    assert float(solution.mean_duration) == pytest.approx(work / 0.4, rel=1e-12)
    assert float(solution.mean_served) == pytest.approx(0.1 * work / 0.4, rel=1e-12)


def test_geo_d_1_is_a_hitting_time():
    """Bernoulli arrivals, services of 6 slots: after the first slot of work n steps, binomial arrivals."""
    solution = solve(BernoulliBatches(0.1, SINGLE), CONSTANT, slotted=True)
    customers = np.arange(1, LENGTH)
    n = 6 * customers
    law = 6 / n * stats.binom.pmf(customers - 1, n, 0.1)
    np.testing.assert_allclose(solution.duration.probabilities[n], law, atol=ROUNDING)


@pytest.mark.parametrize("load", [0.3, 0.8])
def test_takacs_moments(load: float):
    """``E[D] = b / (1 - rho)``, ``E[D^2] = b2 / (1 - rho)^3``; Kleinrock's for the customers."""
    rate = load / 4.5
    solution = solve(PoissonBatches(rate, SINGLE))
    second = float(lattice.second_moment(UNIFORM))
    assert float(solution.mean_duration) == pytest.approx(4.5 / (1 - load), rel=1e-12)
    assert float(solution.second_moment_duration) == pytest.approx(second / (1 - load) ** 3, rel=1e-11)
    assert float(solution.mean_served) == pytest.approx(1 / (1 - load), rel=1e-12)
    variance = (load * (1 - load) + rate**2 * second) / (1 - load) ** 3
    assert float(solution.second_moment_served) == pytest.approx(variance + 1 / (1 - load) ** 2, rel=1e-11)


@pytest.mark.parametrize("load", [3.0, 5.0])
def test_overloaded_busy_periods_may_never_end(load: float):
    """They end with probability the least root of ``s = e^(-rho (1 - s))``; moments are infinite."""
    solution = solve(PoissonBatches(load / 6, SINGLE), CONSTANT)
    ends = optimize.brentq(lambda s: s - np.exp(-load * (1 - s)), 1e-6, 0.5, xtol=1e-15)
    assert 1 - float(solution.served.tail) == pytest.approx(ends, abs=1e-12)
    assert not bool(solution.stable)
    assert np.isinf(solution.mean_duration) and np.isinf(solution.second_moment_served)


positive = st.floats(0.05, 1.0)


@settings(deadline=None, derandomize=True, max_examples=12)
@given(st.booleans(), st.floats(0.05, 0.7), st.tuples(positive, positive, positive))
def test_laws_have_the_moments_and_server_and_customers_agree(bernoulli: bool, load: float, weights):
    sizes = np.append(0.0, weights) / sum(weights)
    rate = load / 4.5 / (sizes @ np.arange(4))
    arrivals = BernoulliBatches(rate, sizes) if bernoulli else PoissonBatches(rate, sizes)
    solution = solve(arrivals, slotted=bernoulli)
    for law in (solution.duration, solution.served):
        assert float(law.probabilities.sum() + law.tail) == pytest.approx(1.0, abs=1e-12)
        assert float(law.probabilities.min()) >= 0.0
    # a busy period lasts as long as the services of its customers (Wald)
    assert float(solution.mean_duration) == pytest.approx(4.5 * float(solution.mean_served), rel=1e-11)
    if float(solution.duration.tail) < 1e-12:
        mean = float(lattice.mean(solution.duration.probabilities))
        assert float(solution.mean_duration) == pytest.approx(mean, rel=1e-8)


def test_idle_and_busy_periods_alternate_in_the_right_proportion():
    """On the slotted axis a busy period begins with all batches of a slot: share of busy slots = load."""
    solution = solve(PoissonBatches(0.05, MIXED), slotted=True)
    idle = 1 / -np.expm1(-0.05)
    busy = float(solution.mean_duration)
    assert busy / (busy + idle) == pytest.approx(0.05 * 2.2 * 4.5, rel=1e-12)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="initial_work must sum to one"):
        solve(PoissonBatches(0.1), initial_work=np.array([0.5, 0.2]))
    with pytest.raises(ValueError, match="arrivals must be PoissonBatches in continuous time"):
        solve(BernoulliBatches(0.1))


def test_derivatives_are_central_differences():
    @jax.jit
    def outputs(rate):
        solution = solve(PoissonBatches(rate, MIXED))
        return jnp.stack(
            [solution.mean_duration, solution.second_moment_served, solution.duration.probabilities[20]]
        )

    with jax.enable_x64(True):
        slope = jax.jvp(outputs, (0.05,), (1.0,))[1]
        near, far = ((outputs(0.05 + h) - outputs(0.05 - h)) / (2 * h) for h in (1e-4, 2e-4))
        np.testing.assert_allclose(slope, (4 * near - far) / 3, rtol=1e-6)


def test_against_simulated_busy_periods():
    """20,000 slotted busy periods with Bernoulli batches (seed 43): two binomial counts, false alarm 2e-4."""
    random = np.random.default_rng(43)
    runs, slots = 20_000, 120
    sizes = random.choice(4, runs, p=MIXED)
    work = np.where(np.arange(3)[:, None] < sizes, random.integers(2, 8, (3, runs)), 0).sum(axis=0)
    ended = np.zeros(slots, int)
    for slot in range(1, slots):
        busy = work > 0
        sizes = np.where(random.random(runs) < 0.05, random.choice(4, runs, p=MIXED), 0)
        brought = np.where(np.arange(3)[:, None] < sizes, random.integers(2, 8, (3, runs)), 0).sum(axis=0)
        work = np.where(busy, work - 1 + brought, 0)
        ended[slot] = (busy & (work == 0)).sum()
    duration = np.asarray(solve(BernoulliBatches(0.05, MIXED), slotted=True).duration.probabilities)
    for last in (12, 60):
        probability = duration[: last + 1].sum()
        z = (ended[: last + 1].sum() - runs * probability) / np.sqrt(runs * probability * (1 - probability))
        assert abs(z) < stats.norm.isf(0.5e-4)
