"""The sparse route against elimination without subtractions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.typing import ArrayLike
from scipy import sparse

from btqueue.queueing.chains.birth_death import stationary_law
from btqueue.queueing.chains.markov import stationary_vector
from btqueue.queueing.chains.sparse_chain import SparseTransition, sparse_stationary_vector


def two_queues(capacity: int, first: float = 0.3, second: float = 0.2) -> SparseTransition:
    """Two queues in a row with a shared server: a chain on a grid, without product form."""
    side = capacity + 1
    rows, columns, rates = [], [], []

    def move(here: tuple[int, int], there: tuple[int, int], rate: float) -> None:
        rows.append(here[0] * side + here[1])
        columns.append(there[0] * side + there[1])
        rates.append(rate)

    for n, m in np.ndindex(side, side):
        move((n, m), (min(n + 1, capacity), m), first)
        move((n, m), (n, min(m + 1, capacity)), second)
        busy = (n > 0) + (m > 0)
        move((n, m), (n - 1, min(m + 1, capacity)) if n else (n, m), 0.5 / busy if n else 0.0)
        move((n, m), (n, m - 1) if m else (n, m), 0.5 / busy if m else 0.0)
        move((n, m), (n, m), 0.0 if busy else 0.5)
    return SparseTransition(np.array(rows), np.array(columns), np.array(rates), side * side)


def test_agrees_with_elimination():
    chain = two_queues(12)
    law = np.asarray(sparse_stationary_vector(chain))
    np.testing.assert_allclose(law, stationary_vector(chain.to_scipy().toarray()), atol=1e-15, rtol=1e-9)
    assert law.sum() == pytest.approx(1.0, abs=1e-14)


def test_large_birth_death_chain_has_its_product_form():
    size = 20000
    births, deaths = np.linspace(0.4, 0.1, size - 1), np.full(size - 1, 0.25)
    states = np.arange(size)
    stay = 1.0 - np.append(births, 0.0) - np.append(0.0, deaths)
    chain = SparseTransition(
        np.concatenate([states[:-1], states[1:], states]),
        np.concatenate([states[1:], states[:-1], states]),
        np.concatenate([births, deaths, stay]),
        size,
    )
    law = np.asarray(sparse_stationary_vector(chain))
    expected = np.asarray(stationary_law(births, deaths))
    np.testing.assert_allclose(law, expected, atol=1e-12 * expected.max())


def test_transient_states_get_nothing_wherever_they_stand():
    matrix = sparse.csr_array([[0.2, 0.3, 0.5], [0.0, 0.5, 0.5], [0.0, 0.25, 0.75]])
    np.testing.assert_allclose(
        sparse_stationary_vector(SparseTransition.from_scipy(matrix)), [0, 1 / 3, 2 / 3]
    )


@pytest.mark.parametrize("states", [1, 2])
def test_smallest_chains(states: int):
    matrix = sparse.csr_array(np.full((states, states), 1 / states))
    np.testing.assert_allclose(sparse_stationary_vector(SparseTransition.from_scipy(matrix)), 1 / states)


def test_derivatives_agree_with_the_dense_chain_and_with_differences():
    with jax.enable_x64(True):
        plain = two_queues(4)
        rows, columns = jnp.asarray(plain.rows), jnp.asarray(plain.columns)
        towards = (
            jnp.asarray(two_queues(4, 0.31, 0.19).probabilities) - jnp.asarray(plain.probabilities)
        ) / 0.01

        def rare(amount: ArrayLike, dense: bool) -> jax.Array:
            chances = jnp.asarray(plain.probabilities) + amount * towards
            if dense:
                law = stationary_vector(jnp.zeros((25, 25)).at[rows, columns].add(chances))
            else:
                law = sparse_stationary_vector(SparseTransition(rows, columns, chances, 25))
            return jnp.log(law[-1]) + law[3]

        slope = jax.grad(rare)(0.0, False)
        assert float(slope) == pytest.approx(float(jax.grad(rare)(0.0, True)), rel=1e-9)
        forward = jax.jvp(lambda amount: rare(amount, False), (0.0,), (1.0,))[1]
        assert float(forward) == pytest.approx(float(slope), rel=1e-11)
        solve = jax.jit(rare, static_argnums=1)
        difference = (solve(1e-4, False) - solve(-1e-4, False)) / 2e-4
        assert float(slope) == pytest.approx(float(difference), rel=1e-6)
        batch = jax.vmap(lambda amount: rare(amount, False))(jnp.array([0.0, 0.01]))
        np.testing.assert_allclose(batch, [rare(0.0, False), rare(0.01, False)], rtol=1e-12)


@pytest.mark.parametrize(
    ("rows", "columns", "probabilities", "complaint"),
    [
        ([0, 1], [0, 1], [1.0, 1.0], r"reducible.*\{0\} and \{1\}"),
        ([0, 1], [1, 0], [1.0, 0.9], "row 1"),
        ([0, 1], [1, 2], [1.0, 1.0], "below 2"),
        ([0, 1, 1], [1, 0, 1], [1.0, 1.1, -0.1], "not negative"),
        ([0, 1], [1, 0, 0], [1.0, 1.0], "one length"),
    ],
)
def test_what_is_no_chain_is_refused(rows: list, columns: list, probabilities: list, complaint: str):
    chain = SparseTransition(np.array(rows), np.array(columns), np.array(probabilities), 2)
    with pytest.raises(ValueError, match=complaint):
        sparse_stationary_vector(chain)
