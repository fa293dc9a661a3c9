"""Birth-death queues against textbook formulas and printed values."""

from math import comb, exp, factorial

import jax
import numpy as np
import pytest
from scipy import stats

from btqueue.queueing.chains import birth_death
from btqueue.queueing.chains.markov import stationary_vector_continuous
from btqueue.queueing.laws import lattice


@pytest.mark.parametrize("load", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("capacity", [1, 4, 40])
def test_mm1k_is_truncated_geometric(load: float, capacity: int):
    queue = birth_death.mmck_queue(arrival_rate=load, service_rate=1.0, capacity=capacity)
    weights = load ** np.arange(capacity + 1.0)
    np.testing.assert_allclose(queue.occupancy, weights / weights.sum(), rtol=1e-13)
    assert queue.blocking == pytest.approx(weights[-1] / weights.sum(), rel=1e-13)
    # served = accepted
    busy = 1.0 - queue.occupancy[0]
    assert queue.throughput == pytest.approx(busy, rel=1e-13)
    assert queue.mean_sojourn == pytest.approx(queue.mean_wait + 1.0, rel=1e-12)


def test_blocking_of_mm15_at_load_one_half():
    queue = birth_death.mmck_queue(arrival_rate=0.5, service_rate=1.0, capacity=5)
    assert queue.blocking == pytest.approx(1 / 63, rel=1e-14)
    assert queue.mean_queue == pytest.approx(57 / 63, rel=1e-14)


@pytest.mark.parametrize(
    ("servers", "offered", "blocking"),
    [
        (1, 1.0, 1 / 2),
        (2, 1.0, 1 / 5),
        (3, 1.0, 1 / 16),
        (10, 5.0, 0.018384570336648144),
        (0, 3.0, 1.0),
    ],
)
def test_erlang_b(servers: int, offered: float, blocking: float):
    assert float(birth_death.erlang_b(servers, offered)) == pytest.approx(blocking, rel=1e-13)
    terms = [offered**k / factorial(k) for k in range(servers + 1)]
    assert float(birth_death.erlang_b(servers, offered)) == pytest.approx(terms[-1] / sum(terms), rel=1e-12)


def test_erlang_b_of_many_servers_does_not_overflow():
    # offered**k / k! would: compare with the ratio of Poisson probabilities
    expected = stats.poisson.pmf(900, 880.0) / stats.poisson.cdf(900, 880.0)
    assert float(birth_death.erlang_b(900, 880.0)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("servers", "offered", "waiting"), [(1, 0.7, 0.7), (2, 1.0, 1 / 3), (3, 2.0, 4 / 9)])
def test_erlang_c(servers: int, offered: float, waiting: float):
    assert float(birth_death.erlang_c(servers, offered)) == pytest.approx(waiting, rel=1e-13)


def test_mm2_has_the_printed_means():
    # load 3/4: W = 1/(mu (1 - rho^2)), Wq = rho^2 / (mu (1 - rho^2))
    queue = birth_death.mmc_queue(arrival_rate=1.5, service_rate=1.0, servers=2)
    assert queue.mean_wait == pytest.approx(0.5625 / 0.4375, rel=1e-13)
    assert queue.mean_queue == pytest.approx(1.5 / 0.4375, rel=1e-13)
    assert queue.wait_decay == pytest.approx(0.5)


def test_mmc_is_the_limit_of_large_capacity():
    limited = birth_death.mmck_queue(arrival_rate=2.0, service_rate=1.0, servers=3, capacity=200)
    unlimited = birth_death.mmc_queue(arrival_rate=2.0, service_rate=1.0, servers=3)
    assert limited.mean_wait == pytest.approx(float(unlimited.mean_wait), rel=1e-12)
    assert unlimited.mean_queue == pytest.approx(2 + 8 / 9, rel=1e-13)


def test_servers_without_queue_give_erlang_b():
    queue = birth_death.mmck_queue(arrival_rate=5.0, service_rate=1.0, servers=10, capacity=10)
    assert queue.blocking == pytest.approx(float(birth_death.erlang_b(10, 5.0)), rel=1e-13)
    assert queue.mean_wait == pytest.approx(0.0, abs=1e-15)


def test_engset_is_binomial():
    sources, on, off = 8, 0.3, 1.1
    births = on * np.arange(sources, 0, -1)
    deaths = off * np.arange(1, sources + 1)
    share = on / (on + off)
    expected = [comb(sources, k) * share**k * (1 - share) ** (sources - k) for k in range(sources + 1)]
    np.testing.assert_allclose(birth_death.stationary_law(births, deaths), expected, rtol=1e-13)


def test_infinite_servers_are_poisson():
    law = birth_death.stationary_law(np.full(60, 3.0), np.arange(1.0, 61.0))
    np.testing.assert_allclose(law, stats.poisson.pmf(np.arange(61), 3.0), rtol=1e-12)


def test_steep_chains_neither_overflow_nor_lose_digits():
    rates = np.concatenate([np.full(100, 1e6), np.full(100, 1e-6)])
    law = np.asarray(birth_death.stationary_law(rates, np.ones(200)))
    assert law.argmax() == 100
    np.testing.assert_allclose(law[90:110] / law[100], 1e-6 ** np.abs(np.arange(-10, 10.0)), rtol=1e-12)
    assert law.sum() == pytest.approx(1.0, abs=1e-15)


def test_a_birth_rate_of_zero_ends_the_chain():
    law = birth_death.stationary_law(np.array([1.0, 0.0, 2.0]), np.ones(3))
    np.testing.assert_allclose(law, [0.5, 0.5, 0.0, 0.0], rtol=1e-15)


def test_product_form_is_what_elimination_finds():
    rng = np.random.default_rng(3)
    births, deaths = rng.uniform(0.1, 2, 12), rng.uniform(0.1, 2, 12)
    generator = np.diag(births, 1) + np.diag(deaths, -1)
    generator -= np.diag(generator.sum(axis=1))
    law = birth_death.stationary_law(births, deaths)
    np.testing.assert_allclose(stationary_vector_continuous(generator), law, rtol=1e-12)


def test_climbing_against_the_stream_takes_ever_longer():
    # h[k] = 1 + 2 h[k-1]
    times = birth_death.mean_climb_times(np.ones(3), np.full(3, 2.0))
    np.testing.assert_allclose(times, [1.0, 3.0, 7.0], rtol=1e-15)


def test_waiting_time_decays_at_the_spare_rate():
    queue = birth_death.mmc_queue(arrival_rate=0.5, service_rate=1.0)
    tail = float(queue.wait_probability) * exp(-float(queue.wait_decay) * 2.0)
    assert tail == pytest.approx(0.5 * exp(-1.0), rel=1e-14)


def test_overload_is_refused_outside_and_flagged_inside():
    with pytest.raises(ValueError, match="arrival_rate must be below"):
        birth_death.mmc_queue(arrival_rate=2.0, service_rate=1.0, servers=2)
    inside = jax.jit(lambda rate: birth_death.mmc_queue(arrival_rate=rate, service_rate=1.0, servers=2))(2.5)
    assert not bool(inside.stable)
    assert float(inside.mean_wait) == np.inf
    assert float(inside.wait_probability) == 1.0


def test_gradients_agree_with_differences():
    with jax.enable_x64(True):

        def figures(rate: float) -> jax.Array:
            limited = birth_death.mmck_queue(arrival_rate=rate, service_rate=1.3, servers=2, capacity=9)
            unlimited = birth_death.mmc_queue(arrival_rate=rate, service_rate=1.3, servers=2)
            return jax.numpy.stack([limited.blocking, limited.mean_sojourn, unlimited.mean_wait])

        solve = jax.jit(lambda rate: (figures(rate), jax.jacrev(figures)(rate)))
        step = 1e-5
        difference = (solve(1.1 + step)[0] - solve(1.1 - step)[0]) / (2 * step)
        np.testing.assert_allclose(solve(1.1)[1], difference, rtol=1e-7)


def test_batches_of_parameters():
    with jax.enable_x64(True):
        rates = np.array([0.2, 1.0, 4.0])
        batch = jax.vmap(
            lambda rate: birth_death.mmck_queue(arrival_rate=rate, service_rate=1.0, capacity=6).occupancy
        )(rates)
        np.testing.assert_allclose(np.asarray(batch).sum(axis=1), 1.0, atol=1e-15)
        np.testing.assert_allclose(lattice.mean(batch)[1], 3.0, rtol=1e-14)


@pytest.mark.parametrize(
    ("births", "deaths", "complaint"),
    [([1.0], [0.0], "death"), ([-1.0], [1.0], "birth"), ([1.0, 1.0], [1.0], "one length")],
)
def test_impossible_rates_are_refused(births: list[float], deaths: list[float], complaint: str):
    with pytest.raises(ValueError, match=complaint):
        birth_death.stationary_law(np.array(births), np.array(deaths))


def test_more_servers_than_places_are_refused():
    with pytest.raises(ValueError, match="capacity"):
        birth_death.mmck_queue(arrival_rate=1.0, service_rate=1.0, servers=3, capacity=2)
