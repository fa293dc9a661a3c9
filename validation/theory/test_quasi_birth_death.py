"""Quasi-birth-death chains against scalar queues and dense elimination."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from btqueue.queueing.chains import markov
from btqueue.queueing.chains.quasi_birth_death import first_passage_matrix, quasi_birth_death


def random_blocks(seed: int, phases: int = 3, load: float = 0.7) -> tuple[np.ndarray, ...]:
    """Up, local and down; the drift is negative for loads below one in each phase."""
    rng = np.random.default_rng(seed)
    down = rng.uniform(0.2, 1.0, (phases, phases))
    up = rng.uniform(0.2, 1.0, (phases, phases))
    up *= load * down.sum(axis=1, keepdims=True) / up.sum(axis=1, keepdims=True)
    local = rng.uniform(0.1, 1.0, (phases, phases))
    total = (up + local + down).sum(axis=1, keepdims=True)
    return up / total, local / total, down / total


@pytest.mark.parametrize("load", [0.1, 0.5, 0.95, 0.9999])
def test_rate_matrix_of_mm1_is_the_load(load: float):
    chain = quasi_birth_death(
        np.array([[load]]),
        np.array([[-1.0 - load]]),
        np.array([[1.0]]),
        boundary=(np.array([[-load]]), np.array([[load]]), np.array([[1.0]])),
        rates=True,
    )
    assert float(chain.rate_matrix[0, 0]) == pytest.approx(load, rel=1e-13)
    assert float(chain.first_passage[0, 0]) == pytest.approx(1.0, rel=1e-14)
    assert float(chain.boundary[0]) == pytest.approx(1.0 - load, rel=1e-11)
    assert float(chain.mean_level) == pytest.approx(load / (1.0 - load), rel=1e-11)
    law = chain.level_law(20)
    np.testing.assert_allclose(law.probabilities, (1 - load) * load ** np.arange(20), rtol=1e-11)
    assert float(law.tail) == pytest.approx(load**20, rel=1e-12)


@settings(deadline=None, derandomize=True, max_examples=8)
@given(st.integers(0, 10**6), st.sampled_from([0.2, 0.9]))
def test_random_chains_agree_with_dense_elimination(seed: int, load: float):
    up, local, down = random_blocks(seed, load=load)
    chain = quasi_birth_death(up, local, down)
    levels = 40 if load < 0.5 else 300  # of the dense chain, as good as endless
    dense = np.zeros((3 * (levels + 1),) * 2)
    for k in range(levels + 1):
        here = slice(3 * k, 3 * k + 3)
        dense[here, here] = local
        dense[here, 3 * min(k + 1, levels) : 3 * min(k + 1, levels) + 3] += up
        dense[here, 3 * max(k - 1, 0) : 3 * max(k - 1, 0) + 3] += down
    law = np.asarray(markov.stationary_vector(dense)).reshape(-1, 3)
    assert float(chain.residual) < 1e-14
    np.testing.assert_allclose(np.asarray(chain.first_passage).sum(axis=1), 1.0, atol=1e-12)
    known = chain.level_law(30)
    assert np.asarray(known.probabilities).sum() + float(known.tail) == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(chain.boundary, law[0], rtol=1e-10)
    np.testing.assert_allclose(chain.phases(5), law[1:6], rtol=1e-10)


def test_upward_drift_is_refused_outside_and_flagged_inside():
    blocks = random_blocks(1, load=1.4)
    with pytest.raises(ValueError, match="drift"):
        quasi_birth_death(*blocks)
    with jax.enable_x64(True):
        chain = jax.jit(quasi_birth_death)(*map(jnp.asarray, blocks))
        assert not bool(chain.stable)
        assert float(chain.mean_level) == np.inf
        law = chain.level_law(4)
        np.testing.assert_array_equal(law.probabilities, np.zeros(4))
        assert float(law.tail) == 1.0


def test_first_passage_matrix_of_a_chain_that_drifts_up_is_minimal():
    # up .6, down .3: the walk comes down with probability 1/2
    with jax.enable_x64(True):
        passage = first_passage_matrix(*(jnp.array([[x]]) for x in (0.6, 0.1, 0.3)))
    assert float(passage[0, 0]) == pytest.approx(0.5, rel=1e-13)


def test_gradients_pass_through_the_fixed_point():
    with jax.enable_x64(True):
        # some mass moves from one block to another: rows keep their sums
        shift = jnp.asarray(0.01 * np.random.default_rng(2).uniform(0.5, 1.0, (3, 3)))

        def figures(amount: jax.Array, blocks: tuple[jax.Array, ...]) -> jax.Array:
            up, local, down = blocks
            taken = amount * shift
            chain = quasi_birth_death(up + taken, local, down - taken)
            return jnp.stack([chain.mean_level, chain.boundary[1], chain.level_law(6).tail])

        solve = jax.jit(lambda *at: (figures(*at), jax.jacrev(figures)(*at)))  # one compilation
        step = 1e-4
        for load in (0.3, 0.97):
            blocks = tuple(map(jnp.asarray, random_blocks(7, load=load)))
            wide = (solve(step, blocks)[0] - solve(-step, blocks)[0]) / (2 * step)
            narrow = (solve(step / 2, blocks)[0] - solve(-step / 2, blocks)[0]) / step
            np.testing.assert_allclose(solve(0.0, blocks)[1], (4 * narrow - wide) / 3, rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [({"up": np.full((2, 3), 0.1)}, "square"), ({"down": np.full((3, 3), 0.9)}, "sum to 1")],
)
def test_wrong_blocks_are_refused(change: dict, complaint: str):
    up, local, down = random_blocks(3)
    with pytest.raises(ValueError, match=complaint):
        quasi_birth_death(change.get("up", up), local, change.get("down", down))


def test_wrong_boundaries_are_refused():
    up, local, down = random_blocks(3)
    with pytest.raises(ValueError, match="boundary"):
        quasi_birth_death(up, local, down, boundary=(np.ones((1, 1)), up, down))
