"""Stationary laws by elimination against chains whose law is known."""

from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.typing import ArrayLike
from scipy import stats

from btqueue.queueing.elimination import stationary_law


@pytest.fixture(autouse=True)
def _double_precision() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def law_of(transition: np.ndarray) -> np.ndarray:
    return np.asarray(stationary_law(jnp.asarray(transition)))


def birth_death(up: np.ndarray, down: np.ndarray) -> np.ndarray:
    matrix = np.diag(up, 1) + np.diag(down, -1)
    return matrix + np.diag(1.0 - matrix.sum(axis=1))


def test_two_states():
    np.testing.assert_allclose(law_of(np.array([[0.9, 0.1], [0.3, 0.7]])), [0.75, 0.25], rtol=1e-15)


def test_tiny_probabilities_keep_their_relative_accuracy():
    expected = (0.01 / 0.9) ** np.arange(20)
    law = law_of(birth_death(np.full(19, 0.01), np.full(19, 0.9)))
    np.testing.assert_allclose(law, expected / expected.sum(), rtol=1e-12)


def test_random_chain_is_in_balance():
    matrix = np.random.default_rng(1).dirichlet(np.ones(30), size=30)
    law = law_of(matrix)
    np.testing.assert_allclose(law @ matrix, law, atol=1e-15)
    assert law.sum() == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
def test_transient_states_get_nothing_wherever_they_stand(order: list[int]):
    matrix = np.array([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0], [0.2, 0.3, 0.5]])
    law = law_of(matrix[np.ix_(order, order)])
    np.testing.assert_allclose(law, np.array([1 / 3, 2 / 3, 0.0])[order], rtol=1e-15, atol=1e-16)


def test_ehrenfest_urn_is_binomial():
    balls = 10
    matrix = np.diag((balls - np.arange(balls)) / balls, 1) + np.diag(np.arange(1, balls + 1) / balls, -1)
    np.testing.assert_allclose(law_of(matrix), stats.binom.pmf(np.arange(11), balls, 0.5), rtol=1e-13)


def test_derivatives_of_rare_states_keep_their_digits():
    # M/M/1/K as a chain: d log pi[k] / d log(birth) = k - mean
    def law(up: ArrayLike) -> jax.Array:
        chain = up * jnp.eye(13, k=1) + 0.9 * jnp.eye(13, k=-1)
        return stationary_law(chain + jnp.diag(1 - chain.sum(axis=1)))

    value, slope = law(1e-3), jax.jacrev(law)(1e-3)
    states = np.arange(13)
    np.testing.assert_allclose(1e-3 * slope / value, states - value @ states, rtol=1e-11, atol=1e-13)


def test_overload_spans_more_than_the_floating_point_range():
    law = law_of(birth_death(np.full(200, 0.99), np.full(200, 0.01)))
    np.testing.assert_allclose(law[:-4:-1], 98 / 99 * 99.0 ** -np.arange(3), rtol=1e-12)
    assert np.isfinite(law).all()
