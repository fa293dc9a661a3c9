"""Laws on the slot lattice against closed forms of elementary probability."""

from typing import Any, cast

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.typing import ArrayLike
from scipy import stats

from btqueue.queueing.errors import require_law
from btqueue.queueing.laws import cut_laws, lattice
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


def test_convolution_power_of_a_bernoulli_law_is_binomial():
    binomial = stats.binom.pmf(np.arange(10), 9, 0.3)
    np.testing.assert_allclose(lattice.convolution_power(np.array([0.7, 0.3]), 9), binomial, atol=1e-15)
    np.testing.assert_allclose(lattice.convolution_power(np.array([0.7, 0.3]), 0), [1.0], atol=1e-15)


def test_results_are_double_precision_and_leave_the_caller_in_single():
    before = jax.numpy.zeros(1).dtype
    coin = np.array([0.5, 0.5])
    assert lattice.convolve(coin, coin).dtype == np.float64
    assert jax.numpy.zeros(1).dtype == before == np.float32


def test_geometric_law_has_the_moments_of_the_closed_form():
    law = lattice.geometric(12.0)
    assert float(lattice.mean(law)) == pytest.approx(12.0, rel=1e-12)
    assert float(lattice.second_moment(law)) == pytest.approx(2 * 12**2 - 12, rel=1e-11)


def test_residual_of_a_geometric_law_is_the_same_law_shifted():
    residual = lattice.equilibrium_residual(lattice.geometric(5.0))
    np.testing.assert_allclose(residual[:40], lattice.geometric(5.0)[1:41], rtol=1e-12)


def test_mean_residual_is_the_renewal_formula():
    law = lattice.uniform(10, 50)
    expected = float(lattice.second_moment(law)) / (2 * 30.0) - 0.5
    assert float(lattice.mean(lattice.equilibrium_residual(law))) == pytest.approx(expected, rel=1e-13)


def test_arrivals_during_a_fixed_time_are_poisson_with_the_tail_tracked():
    slot = PoissonBatches(0.3).slot_law(8).probabilities
    during = lattice.compound(lattice.point(10), slot, 8)
    np.testing.assert_allclose(during.probabilities, stats.poisson.pmf(np.arange(8), 3.0), rtol=1e-12)
    assert float(during.tail) == pytest.approx(stats.poisson.sf(7, 3.0), rel=1e-10)


def test_horner_and_fft_agree_on_a_long_vacation():
    vacation, slot = (
        lattice.geometric(12.0),
        PoissonBatches(0.02, lattice.point(5)).slot_law(60).probabilities,
    )
    horner = lattice.compound(vacation, slot, 60)
    fft = lattice.compound_fft(vacation, slot, 60, points=1024)
    np.testing.assert_allclose(fft.probabilities, horner.probabilities, atol=1e-14)


def test_compound_poisson_has_its_mean_and_variance():
    sizes = lattice.from_points({1: 0.25, 4: 0.75})
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


def cut_poisson(mean: float, length: int) -> lattice.CutLaw:
    known, beyond = stats.poisson.pmf(np.arange(length), mean), stats.poisson.sf(length - 1, mean)
    return cut_laws.cut(lattice.CutLaw(cast(Any, known), cast(Any, beyond)), length)


def test_direct_convolution_keeps_the_digits_of_rare_values():
    law = stats.poisson.pmf(np.arange(60), 1.0)
    direct = np.asarray(lattice.convolve_direct(law, law))[:60]
    np.testing.assert_allclose(direct, stats.poisson.pmf(np.arange(60), 2.0), rtol=1e-12)
    by_fft = np.asarray(lattice.convolve(law, law))[:60]
    assert abs(by_fft[50] / stats.poisson.pmf(50, 2.0) - 1) > 1  # what the direct way is for


def test_tail_of_a_compound_keeps_its_digits():
    # a subtraction from one would leave nothing of 1e-40
    during = lattice.compound(lattice.point(3), cut_poisson(0.1, 30), 30)
    assert float(during.tail) == pytest.approx(stats.poisson.sf(29, 0.3), rel=1e-10)
    with pytest.raises(ValueError, match="summand is known on 5 points"):
        lattice.compound(lattice.point(3), cut_poisson(0.1, 5), 6)


def test_mixture_of_vectors():
    mixed = lattice.mixture([0.25, 0.75], [lattice.point(1), lattice.uniform(0, 2)])
    np.testing.assert_allclose(mixed, [0.25, 0.5, 0.25], rtol=1e-15)
    with pytest.raises(ValueError, match="weights"):
        lattice.mixture([0.5, 0.5], [lattice.point(1)])


def test_moments_of_a_uniform_law():
    law = lattice.uniform(1, 6)
    assert float(lattice.moment(law, 3)) == pytest.approx(441 / 6, rel=1e-14)
    assert float(lattice.variance(law)) == pytest.approx(35 / 12, rel=1e-14)


@pytest.mark.parametrize(
    ("level", "expected"), [(0.0, 0), (0.1, 1), (0.5, 5), (0.5001, 6), (0.95, 10), (1.0, 10)]
)
def test_quantiles_of_a_uniform_law(level: float, expected: int):
    assert int(lattice.quantile(lattice.uniform(1, 10), level)) == expected


def test_quantiles_close_to_one_and_wrong_levels():
    law = stats.poisson.pmf(np.arange(80), 5.0)
    for rare in (1e-6, 1e-11):
        assert int(lattice.quantile(law / law.sum(), 1 - rare)) == stats.poisson.isf(rare, 5.0)
    with pytest.raises(ValueError, match="level"):
        lattice.quantile(law, 1.5)


@pytest.mark.parametrize("direct", [True, False])
@pytest.mark.parametrize("length", [4, 9])
def test_sum_of_cut_laws_is_exact_as_far_as_both_are_known(direct: bool, length: int):
    total = cut_laws.convolve(cut_poisson(1.0, 9), cut_poisson(2.0, length), direct=direct)
    expected = cut_poisson(3.0, length)
    np.testing.assert_allclose(total.probabilities, expected.probabilities, rtol=1e-12, atol=1e-16)
    assert float(total.tail) == pytest.approx(float(expected.tail), rel=1e-12)


def test_sum_of_a_vector_and_a_cut_law():
    total = cut_laws.convolve(lattice.point(2), cut_poisson(2.0, 6))
    np.testing.assert_allclose(total.probabilities[2:], stats.poisson.pmf(np.arange(4), 2.0), rtol=1e-14)
    assert float(total.tail) == pytest.approx(stats.poisson.sf(3, 2.0), rel=1e-13)
    whole = cut_laws.convolve(lattice.point(2), lattice.point(3))
    np.testing.assert_array_equal(whole.probabilities, lattice.point(5))
    assert float(whole.tail) == 0.0


seven = st.lists(st.floats(0.0, 1.0), min_size=7, max_size=7).filter(lambda values: sum(values) > 1e-3)


@settings(deadline=None, derandomize=True, max_examples=10)
@given(seven, seven, st.sampled_from([1, 5]))
def test_cutting_before_and_after_is_the_same(first: list[float], second: list[float], length: int):
    a, b = law_of(first), law_of(second)
    before = cut_laws.convolve(cut_laws.cut(a, length), cut_laws.cut(b, length))
    after = cut_laws.cut(np.convolve(a, b), length)
    np.testing.assert_allclose(before.probabilities, after.probabilities, atol=1e-15)
    assert float(before.tail) == pytest.approx(float(after.tail), abs=1e-14)
    mixed = cut_laws.mixture([0.3, 0.7], [cut_laws.cut(a, length), b])
    assert np.asarray(mixed.probabilities).sum() + float(mixed.tail) == pytest.approx(1.0, abs=1e-14)


def test_compound_with_unknown_large_counts_says_what_it_could_not_place():
    sizes = lattice.from_points({0: 0.5, 1: 0.5})
    thinned = cut_laws.compound(cut_poisson(2.0, 6), sizes, 6)
    exact = stats.poisson.pmf(np.arange(6), 1.0)
    known = np.asarray(thinned.law.probabilities)
    assert float(thinned.unplaced) == pytest.approx(stats.poisson.sf(5, 2.0), rel=1e-12)
    assert (known <= exact + 1e-16).all()
    assert (exact <= known + float(thinned.unplaced)).all()
    assert known.sum() + float(thinned.law.tail + thinned.unplaced) == pytest.approx(1.0, abs=1e-14)
    # at least one each: whatever the large counts are, their sums are beyond
    placed = cut_laws.compound(cut_poisson(2.0, 6), lattice.uniform(1, 2), 6)
    assert float(placed.unplaced) == 0.0
    assert float(placed.law.tail + placed.law.probabilities.sum()) == pytest.approx(1.0, abs=1e-14)


def test_moments_of_a_cut_law_are_bounded():
    bounds = cut_laws.moment_bounds(cut_poisson(3.0, 8), longest=40)
    assert float(bounds.lower) < 3.0 < float(bounds.upper)
    assert float(cut_laws.moment_bounds(cut_poisson(3.0, 8)).upper) == np.inf
    exact = cut_laws.moment_bounds(lattice.uniform(1, 3), 2)
    assert float(exact.lower) == float(exact.upper) == pytest.approx(14 / 3, rel=1e-15)


def test_quantiles_beyond_the_cut_are_not_made_up():
    law = cut_poisson(3.0, 5)
    assert float(cut_laws.quantile(law, 0.5)) == 3.0
    assert float(cut_laws.quantile(law, 0.99)) == np.inf
    assert float(cut_laws.quantile(lattice.uniform(1, 3), 1.0)) == 3.0


def test_residual_of_a_cut_law_needs_the_mean():
    law = lattice.geometric(5.0)
    residual = cut_laws.equilibrium_residual(cut_laws.cut(law, 30), 5.0)
    np.testing.assert_allclose(residual.probabilities, law[1:31], rtol=1e-12)
    assert float(residual.tail) == pytest.approx(0.8**30, rel=1e-9)
    assert float(cut_laws.equilibrium_residual(law).tail) == 0.0
    with pytest.raises(ValueError, match="mean must be given"):
        cut_laws.equilibrium_residual(cut_laws.cut(law, 30))
    with pytest.raises(ValueError, match="mean must be at least"):
        cut_laws.equilibrium_residual(cut_laws.cut(law, 30), 4.0)
    with pytest.raises(ValueError, match="length must not exceed 30"):
        cut_laws.cut(cut_laws.cut(law, 30), 31)


def test_gradient_of_a_tail():
    with jax.enable_x64(True):

        def late(rate: ArrayLike) -> jax.Array:
            slot = PoissonBatches(rate, np.array([0.0, 0.5, 0.5])).slot_law(12)
            during = lattice.compound(lattice.uniform(2, 6), slot, 12)
            both = cut_laws.convolve(during, lattice.uniform(0, 3))
            return both.tail + cut_laws.moment_bounds(both).lower

        difference = (late(0.3 + 1e-5) - late(0.3 - 1e-5)) / 2e-5
        assert float(jax.grad(late)(0.3)) == pytest.approx(float(difference), rel=1e-7)
