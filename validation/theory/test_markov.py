"""Stationary vectors against chains whose law is known."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.typing import ArrayLike
from scipy import stats

from btqueue.queueing.chains.markov import (
    closed_classes,
    deviation_matrix,
    is_irreducible,
    stationary_vector,
    stationary_vector_continuous,
)


def birth_death(up: np.ndarray, down: np.ndarray) -> np.ndarray:
    matrix = np.diag(up, 1) + np.diag(down, -1)
    return matrix + np.diag(1.0 - matrix.sum(axis=1))


def test_two_states():
    np.testing.assert_allclose(
        stationary_vector(np.array([[0.9, 0.1], [0.3, 0.7]])), [0.75, 0.25], rtol=1e-15
    )


def test_tiny_probabilities_keep_their_relative_accuracy():
    up, down = np.full(19, 0.01), np.full(19, 0.9)
    expected = (0.01 / 0.9) ** np.arange(20)
    np.testing.assert_allclose(
        stationary_vector(birth_death(up, down)), expected / expected.sum(), rtol=1e-12
    )


def test_random_chain_is_in_balance():
    matrix = np.random.default_rng(1).dirichlet(np.ones(30), size=30)
    law = stationary_vector(matrix)
    np.testing.assert_allclose(law @ matrix, law, atol=1e-15)
    assert law.sum() == pytest.approx(1.0, abs=1e-14)


def test_transient_states_get_nothing():
    matrix = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.2, 0.3, 0.5]])
    np.testing.assert_allclose(stationary_vector(matrix), [0.5, 0.5, 0.0], atol=1e-16)


def test_derivative_agrees_with_a_difference():
    with jax.enable_x64(True):

        def last(chance: ArrayLike) -> jax.Array:
            matrix = jax.numpy.array([[0.6, 0.4, 0.0], [0.0, 0.5, 0.5], [0.3, 0.2, 0.5]])
            change = jax.numpy.array([[-1.0, 0.0, 1.0], [1.0, -1.0, 0.0], [0.0, 1.0, -1.0]])
            return stationary_vector(matrix + chance * change)[2]

        step = 1e-6
        difference = (last(0.1 + step) - last(0.1 - step)) / (2 * step)
        assert float(jax.grad(last)(0.1)) == pytest.approx(float(difference), rel=1e-8)


@pytest.mark.parametrize(
    ("matrix", "complaint"),
    [
        ([[0.5, 0.5]], "square"),
        ([[0.5, 0.4], [0.5, 0.5]], "sum to one"),
        ([[1.1, -0.1], [0.5, 0.5]], "non-negative"),
        ([[1.0, 0.0], [0.0, 1.0]], "reducible"),
    ],
)
def test_what_is_not_a_transition_matrix_is_refused(matrix: list[list[float]], complaint: str):
    with pytest.raises(ValueError, match=complaint):
        stationary_vector(np.array(matrix))


def test_numbering_does_not_matter_outside_compiled_code():
    # state 0 is transient, which elimination alone could not handle
    matrix = np.array([[0.0, 1.0, 0.0], [0.0, 0.5, 0.5], [0.0, 0.25, 0.75]])
    np.testing.assert_allclose(stationary_vector(matrix), [0, 1 / 3, 2 / 3], rtol=1e-15)


def test_ehrenfest_urn_is_binomial():
    balls = 10
    matrix = np.diag((balls - np.arange(balls)) / balls, 1) + np.diag(np.arange(1, balls + 1) / balls, -1)
    np.testing.assert_allclose(
        stationary_vector(matrix), stats.binom.pmf(np.arange(11), balls, 0.5), rtol=1e-13
    )


def test_continuous_time():
    generator = np.array([[-3.0, 2.0, 1.0], [4.0, -4.0, 0.0], [0.0, 5.0, -5.0]])
    law = np.asarray(stationary_vector_continuous(generator))
    np.testing.assert_allclose(law @ generator, 0.0, atol=1e-15)
    # rates of very different size: entrywise accurate all the same
    stiff = np.array([[-1e-9, 1e-9], [1e6, -1e6]])
    np.testing.assert_allclose(stationary_vector_continuous(stiff), [1.0, 1e-15], rtol=1e-14)
    np.testing.assert_allclose(stationary_vector_continuous(np.zeros((1, 1))), [1.0])


def test_derivatives_of_rare_states_keep_their_digits():
    # M/M/1/K as a chain: d log pi[k] / d log(birth) = k - mean
    with jax.enable_x64(True):

        def law(up: ArrayLike) -> jax.Array:
            chain = up * jnp.eye(13, k=1) + 0.9 * jnp.eye(13, k=-1)
            return stationary_vector(chain + jnp.diag(1 - chain.sum(axis=1)))

        value, slope = law(1e-3), jax.jacrev(law)(1e-3)
        states = np.arange(13)
        np.testing.assert_allclose(1e-3 * slope / value, states - value @ states, rtol=1e-11, atol=1e-13)


def test_overload_spans_more_than_the_floating_point_range():
    law = np.asarray(stationary_vector(birth_death(np.full(200, 0.99), np.full(200, 0.01))))
    np.testing.assert_allclose(law[:-4:-1], 98 / 99 * 99.0 ** -np.arange(3), rtol=1e-12)
    assert np.isfinite(law).all()


def test_deviation_matrix_sums_what_the_start_is_worth():
    matrix = np.random.default_rng(4).dirichlet(np.ones(4), size=4)
    law = np.asarray(stationary_vector(matrix))
    total, power = np.zeros((4, 4)), np.eye(4)
    for _ in range(200):
        total += power - law
        power = power @ matrix
    np.testing.assert_allclose(deviation_matrix(matrix), total, atol=1e-13)


def test_classes_are_named():
    matrix = np.array([[1.0, 0, 0, 0], [0.5, 0, 0.5, 0], [0, 0, 0, 1.0], [0, 0, 1.0, 0]])
    assert closed_classes(matrix) == [[0], [2, 3]]
    assert not is_irreducible(matrix)
    assert is_irreducible(np.full((3, 3), 1 / 3))
    with pytest.raises(
        ValueError, match=r"reducible: 2 classes of states are never left \(\{0\} and \{2, 3\}\)"
    ):
        stationary_vector(matrix)


@pytest.mark.parametrize(
    ("matrix", "complaint"),
    [
        ([[0.0, 1.0]], "square"),
        ([[1.0, -1.0], [1.0, -1.0]], "off the diagonal"),
        ([[-1.0, 0.5], [1.0, -1.0]], "row 0"),
    ],
)
def test_what_is_not_a_generator_is_refused(matrix: list[list[float]], complaint: str):
    with pytest.raises(ValueError, match=complaint):
        stationary_vector_continuous(np.array(matrix))
