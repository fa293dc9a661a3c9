"""Stationary vectors against chains whose law is known."""

import jax
import numpy as np
import pytest
from jax.typing import ArrayLike

from btqueue.queueing.markov import stationary_vector


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
