"""Laws on the slot lattice against closed forms of elementary probability."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.typing import ArrayLike
from scipy import stats

from btqueue.queueing.errors import require_law
from btqueue.queueing.laws import lattice
from btqueue.queueing.traffic.arrivals import BernoulliBatches, PoissonBatches, batch_loss, packet_loss

weights = st.lists(st.floats(0.0, 1.0), min_size=2, max_size=12).filter(lambda values: sum(values) > 1e-3)


def law_of(values: list[float]) -> np.ndarray:
    return np.array(values) / sum(values)


@settings(deadline=None, derandomize=True, max_examples=12)
@given(weights, weights)
def test_convolution_adds_means_and_keeps_the_mass(first: list[float], second: list[float]):
    a, b = law_of(first), law_of(second)
    total = lattice.convolve(a, b)
    rounding = 4 * np.finfo(float).eps * np.log2(24)
    np.testing.assert_allclose(total, np.convolve(a, b), rtol=0, atol=rounding)
    np.testing.assert_allclose(lattice.mean(total), lattice.mean(a) + lattice.mean(b), rtol=1e-12)


def test_results_are_double_precision_and_leave_the_caller_in_single():
    before = jax.numpy.zeros(1).dtype
    coin = np.array([0.5, 0.5])
    assert lattice.convolve(coin, coin).dtype == np.float64
    assert jax.numpy.zeros(1).dtype == before == np.float32


def test_geometric_law_has_the_moments_of_the_closed_form():
    law = lattice.geometric(12.0)
    assert float(lattice.mean(law)) == pytest.approx(12.0, rel=1e-12)
    assert float(lattice.second_moment(law)) == pytest.approx(2 * 12**2 - 12, rel=1e-11)


def test_arrivals_during_a_fixed_time_are_poisson_with_the_tail_tracked():
    slot = PoissonBatches(0.3).slot_law(8).probabilities
    during = lattice.compound(lattice.point(10), slot, 8)
    np.testing.assert_allclose(during.probabilities, stats.poisson.pmf(np.arange(8), 3.0), rtol=1e-12)
    assert float(during.tail) == pytest.approx(stats.poisson.sf(7, 3.0), rel=1e-10)


def test_compound_poisson_has_its_mean_and_variance():
    sizes = np.array([0.0, 0.25, 0.0, 0.0, 0.75])
    law = PoissonBatches(0.7, sizes).slot_law(80).probabilities
    assert float(lattice.mean(law)) == pytest.approx(0.7 * 3.25, rel=1e-12)
    second = float(lattice.second_moment(law)) - float(lattice.mean(law)) ** 2
    assert second == pytest.approx(0.7 * (0.25 + 12.0), rel=1e-11)


def test_part_of_a_slot_is_the_average_over_its_moments():
    rate = 0.8
    moments = (np.arange(20000) + 0.5) / 20000
    average = np.array([stats.poisson.pmf(j, rate * moments).mean() for j in range(6)])
    np.testing.assert_allclose(PoissonBatches(rate).part_slot_law(6).probabilities, average, atol=1e-9)


def test_filling_matrix_applies_the_capacity_once():
    matrix = lattice.filling_matrix(lattice.truncate(np.array([0.5, 0.25, 0.125, 0.125]), 3))
    np.testing.assert_allclose(matrix, [[0.5, 0.25, 0.25], [0, 0.5, 0.5], [0, 0, 1.0]], atol=1e-16)


def test_losses_of_a_batch_count_packets_and_batches():
    occupancy = np.array([0.4, 0.3, 0.2, 0.1])  # K = 3; batches of 2 find room for 3, 2, 1, 0
    assert float(packet_loss(occupancy, lattice.point(2))) == pytest.approx((0.2 * 1 + 0.1 * 2) / 2)
    assert float(batch_loss(occupancy, lattice.point(2))) == pytest.approx(0.3)


def test_bernoulli_batches_have_the_law_of_their_slot():
    slot = BernoulliBatches(0.2, lattice.point(3)).slot_law(3)
    np.testing.assert_allclose(slot.probabilities, [0.8, 0, 0])
    assert float(slot.tail) == pytest.approx(0.2)


@pytest.mark.parametrize("law", [[0.5, 0.4], [1.5, -0.5], [np.nan, 1.0], []])
def test_what_is_not_a_law_is_refused(law: list[float]):
    with pytest.raises(ValueError, match="vacation"):
        require_law(law, "vacation")


def test_impossible_batches_are_refused():
    with pytest.raises(ValueError, match="batch_rate"):
        PoissonBatches(0.0)
    with pytest.raises(ValueError, match="batch_size"):
        PoissonBatches(1.0, [0.5, 0.5])
    with pytest.raises(ValueError, match="batch_probability"):
        BernoulliBatches(1.2)


def test_tail_of_a_compound_keeps_its_digits():
    # a subtraction from one would leave nothing of 1e-40
    slot = lattice.CutLaw(
        jnp.asarray(stats.poisson.pmf(np.arange(30), 0.1)), jnp.asarray(stats.poisson.sf(29, 0.1))
    )
    during = lattice.compound(lattice.point(3), slot, 30)
    assert float(during.tail) == pytest.approx(stats.poisson.sf(29, 0.3), rel=1e-10)
    with pytest.raises(ValueError, match="summand is known on 30 points"):
        lattice.compound(lattice.point(3), slot, 31)


def test_gradient_of_a_tail():
    with jax.enable_x64(True):

        def late(rate: ArrayLike) -> jax.Array:
            slot = PoissonBatches(rate, np.array([0.0, 0.5, 0.5])).slot_law(12)
            during = lattice.compound(lattice.uniform(2, 6), slot, 12)
            return during.tail + lattice.mean(during.probabilities)

        difference = (late(0.3 + 1e-5) - late(0.3 - 1e-5)) / 2e-5
        assert float(jax.grad(late)(0.3)) == pytest.approx(float(difference), rel=1e-7)
