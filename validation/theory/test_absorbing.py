"""Absorbing chains against gambling, collecting and waiting problems with known answers."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.typing import ArrayLike
from scipy import stats

from btqueue.queueing.chains import absorbing
from btqueue.queueing.laws import lattice


def gambler(total: int, up: float) -> tuple[np.ndarray, np.ndarray]:
    """Fortune ``1..total-1``, up one with ``up``; ruin at 0, bank broken at ``total``."""
    down = 1.0 - up
    size = total - 1
    transient = up * np.eye(size, k=1) + down * np.eye(size, k=-1)
    ends = np.zeros((size, 2))
    ends[0, 0], ends[-1, 1] = down, up
    return transient, ends


@pytest.mark.parametrize("up", [0.5, 0.4, 0.05])
def test_gamblers_ruin_has_its_closed_form(up: float):
    total = 10
    solution = absorbing.absorption(*gambler(total, up))
    start = np.arange(1, total)
    if up == 0.5:
        win, duration = start / total, start * (total - start)
    else:
        odds = (1 - up) / up
        win = (odds**start - 1) / (odds**total - 1)
        duration = (start - total * win) / (1 - 2 * up)
    np.testing.assert_allclose(solution.probabilities[:, 1], win, rtol=1e-13)
    np.testing.assert_allclose(solution.probabilities.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_allclose(solution.mean_steps, duration, rtol=1e-13)


def test_hardly_ever_ending_keeps_its_digits():
    # 1 - 1e-12 would cost four digits, were the pivots found by subtraction
    end = 1e-12
    transient = np.array([[0.5, 0.5 - end], [1.0, 0.0]])
    solution = absorbing.absorption(transient, np.array([[end], [0.0]]))
    assert solution.mean_steps[0] == pytest.approx((1.5 - end) / end, rel=1e-14)


def test_coupon_collector():
    kinds = 12
    have = np.arange(kinds)
    transient = np.diag(have / kinds) + np.diag((kinds - have[:-1]) / kinds, 1)
    ends = np.zeros((kinds, 1))
    ends[-1] = 1 / kinds
    solution = absorbing.absorption(transient, ends)
    missing = 1.0 / np.arange(1, kinds + 1)
    assert solution.mean_steps[0] == pytest.approx(kinds * missing.sum(), rel=1e-13)  # 37.238528...
    variance = (kinds**2 * missing**2 - kinds * missing).sum()
    assert solution.variance_steps[0] == pytest.approx(variance, rel=1e-11)


def test_waiting_for_a_run_of_heads():
    # three heads in a row: 2 + 4 + 8 throws
    transient = np.array([[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.5, 0.0, 0.0]])
    solution = absorbing.absorption(transient, np.array([[0.0], [0.0], [0.5]]))
    assert solution.mean_steps[0] == pytest.approx(14.0, rel=1e-14)
    assert solution.variance_steps[0] == pytest.approx(142.0, rel=1e-13)


def test_time_to_absorption_is_negative_binomial_with_its_tail():
    stages, chance, length = 4, 0.3, 25
    transient = (1 - chance) * np.eye(stages) + chance * np.eye(stages, k=1)
    exits = np.array([0.0, 0.0, 0.0, chance])
    law = absorbing.absorption_time(np.eye(stages)[0], transient, exits, length)
    np.testing.assert_allclose(
        law.probabilities[stages:], stats.nbinom.pmf(np.arange(length - stages), stages, chance), rtol=1e-12
    )
    assert float(law.tail) == pytest.approx(stats.nbinom.sf(length - stages - 1, stages, chance), rel=1e-12)
    assert (np.asarray(law.probabilities[:stages]) == 0).all()


def test_hitting_times_of_a_walk_on_a_circle():
    # two neighbours at 1/2 each on n points: k (n - k) steps to point 0
    points = 9
    walk = 0.5 * (np.roll(np.eye(points), 1, axis=1) + np.roll(np.eye(points), -1, axis=1))
    steps = np.arange(points)
    np.testing.assert_allclose(absorbing.mean_hitting_times(walk, [0]), steps * (points - steps), rtol=1e-12)
    assert (np.asarray(absorbing.mean_hitting_times(walk, range(points))) == 0).all()


def test_returning_takes_one_over_the_stationary_probability():
    chain = np.random.default_rng(5).dirichlet(np.ones(6), size=6)
    law = np.linalg.matrix_power(chain, 200)[0]
    returns = 1.0 + chain[2] @ np.asarray(absorbing.mean_hitting_times(chain, [2]))
    assert returns == pytest.approx(1.0 / law[2], rel=1e-11)


def test_gradient_agrees_with_differences():
    with jax.enable_x64(True):

        def duration(up: ArrayLike) -> jax.Array:
            transient = up * jnp.eye(5, k=1) + (1 - up) * jnp.eye(5, k=-1)
            ends = jnp.zeros((5, 2)).at[0, 0].set(1 - up).at[4, 1].set(up)
            solution = absorbing.absorption(transient, ends)
            return solution.mean_steps[1] + solution.probabilities[3, 1] + solution.variance_steps[2]

        step = 1e-5
        difference = (duration(0.4 + step) - duration(0.4 - step)) / (2 * step)
        assert float(jax.grad(duration)(0.4)) == pytest.approx(float(difference), rel=1e-8)


def test_mean_of_the_law_is_the_mean_number_of_steps():
    transient, ends = gambler(5, 0.3)
    law = absorbing.absorption_time(np.eye(4)[2], transient, ends.sum(axis=1), 300)
    mean = absorbing.absorption(transient, ends).mean_steps[2]
    assert float(lattice.mean(law.probabilities)) == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize(
    ("transient", "ends", "complaint"),
    [
        ([[0.5, 0.5], [0.5, 0.5]], [[0.0], [0.0]], r"\[0, 1\] never lead"),
        ([[0.5, 0.0], [0.5, 0.0]], [[0.5], [0.4]], "sum to one"),
        ([[0.5]], [[0.25], [0.25]], "shapes"),
    ],
)
def test_what_does_not_end_is_refused(transient: list, ends: list, complaint: str):
    with pytest.raises(ValueError, match=complaint):
        absorbing.absorption(np.array(transient), np.array(ends))


def test_unknown_targets_are_refused():
    with pytest.raises(ValueError, match="targets"):
        absorbing.mean_hitting_times(np.full((2, 2), 0.5), [2])
