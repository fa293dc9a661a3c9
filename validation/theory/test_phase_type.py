"""Phase-type laws against the laws they are made to be."""

from math import factorial

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from btqueue.queueing.laws import lattice, phase_type, phase_type_fit
from btqueue.queueing.laws.phase_type import ContinuousPhaseType, DiscretePhaseType


def geometric(success: float) -> DiscretePhaseType:
    return DiscretePhaseType([1.0], [[1.0 - success]], [success])


def exponential(rate: float) -> ContinuousPhaseType:
    return ContinuousPhaseType([1.0], [[-rate]], [rate])


def pmf(part: DiscretePhaseType, length: int) -> np.ndarray:
    return np.asarray(part.law(length).probabilities)


def test_erlang_has_its_moments_survival_and_density():
    three = phase_type.convolve(phase_type.convolve(exponential(2.0), exponential(2.0)), exponential(2.0))
    for order in (1, 2, 3, 4):
        expected = factorial(order + 2) / 2 / 2.0**order
        assert float(three.moment(order)) == pytest.approx(expected, rel=1e-13)
    assert float(three.scv) == pytest.approx(1 / 3, rel=1e-13)
    assert float(three.survival(1.7)) == pytest.approx(stats.erlang.sf(1.7, 3, scale=0.5), rel=1e-12)
    assert float(three.density(1.7)) == pytest.approx(stats.erlang.pdf(1.7, 3, scale=0.5), rel=1e-12)


def test_sum_of_geometrics_is_negative_binomial():
    two = phase_type.convolve(geometric(0.3), geometric(0.3))
    law = two.law(30)
    np.testing.assert_allclose(law.probabilities[2:], stats.nbinom.pmf(np.arange(28), 2, 0.3), rtol=1e-12)
    assert float(law.tail) == pytest.approx(stats.nbinom.sf(27, 2, 0.3), rel=1e-12)
    assert float(two.factorial_moment(2)) == pytest.approx(float(two.moment(2)) - float(two.mean), rel=1e-13)


def test_discrete_moments_are_those_of_the_vector():
    part = phase_type_fit.fit_discrete(3.7, 0.4)
    vector = pmf(part, 400)
    for order in (1, 2, 3, 4):
        assert float(part.moment(order)) == pytest.approx(float(lattice.moment(vector, order)), rel=1e-11)


def test_smaller_and_larger_in_slots():
    first, second = phase_type_fit.fit_discrete(3.0, 0.2), geometric(0.4)
    least, most = phase_type.minimum(first, second), phase_type.maximum(first, second)
    assert float(least.mean) + float(most.mean) == pytest.approx(3.0 + 2.5, rel=1e-13)
    survival = [1 - np.cumsum(pmf(part, 20)) for part in (first, second, least, most)]
    np.testing.assert_allclose(survival[2], survival[0] * survival[1], atol=1e-14)
    np.testing.assert_allclose(1 - survival[3], (1 - survival[0]) * (1 - survival[1]), atol=1e-14)


def test_smaller_and_larger_in_continuous_time():
    first, second = phase_type_fit.fit(3.0, 0.4), exponential(0.4)
    least, most = phase_type.minimum(first, second), phase_type.maximum(first, second)
    assert float(least.mean) + float(most.mean) == pytest.approx(3.0 + 2.5, rel=1e-13)
    survival = [float(part.survival(2.2)) for part in (first, second, least, most)]
    assert survival[2] == pytest.approx(survival[0] * survival[1], rel=1e-12)
    assert 1 - survival[3] == pytest.approx((1 - survival[0]) * (1 - survival[1]), rel=1e-12)


def test_retransmissions_of_exponential_service_are_exponential():
    again = phase_type.geometric_sum(exponential(3.0), 0.25)
    assert float(again.survival(1.3)) == pytest.approx(np.exp(-0.75 * 1.3), rel=1e-13)
    assert float(again.mean) == pytest.approx(4 / 3, rel=1e-14)


def test_retransmissions_in_slots_obey_wald():
    packet = phase_type_fit.fit_discrete(5.0, 0.1)
    again = phase_type.geometric_sum(packet, 0.4)
    assert float(again.mean) == pytest.approx(5.0 / 0.4, rel=1e-13)
    variance = 0.1 * 25.0 / 0.4 + 25.0 * 0.6 / 0.16
    assert float(again.variance) == pytest.approx(variance, rel=1e-12)


def test_mixture_mixes_the_laws():
    parts = [geometric(0.5), phase_type.convolve(geometric(0.9), geometric(0.2))]
    mixed = phase_type.mixture([0.3, 0.7], parts)
    np.testing.assert_allclose(pmf(mixed, 15), 0.3 * pmf(parts[0], 15) + 0.7 * pmf(parts[1], 15), atol=1e-16)


def test_what_is_left_of_an_exponential_time_is_the_same():
    left = phase_type.stationary_excess(phase_type.mixture([1.0, 0.0], [exponential(2.0), exponential(5.0)]))
    np.testing.assert_allclose(left.start, [1.0, 0.0], atol=1e-16)


def test_what_is_left_in_slots_is_the_residual_of_renewal_theory():
    part = phase_type_fit.fit_discrete(6.0, 0.15)
    residual = lattice.equilibrium_residual(pmf(part, 200))
    np.testing.assert_allclose(pmf(phase_type.stationary_excess(part), 60)[1:], residual[:59], atol=1e-15)
    mean = float(phase_type.stationary_excess(part).mean)
    assert mean == pytest.approx((float(part.moment(2)) / 6.0 + 1) / 2, rel=1e-13)


@settings(deadline=None, derandomize=True, max_examples=12)
@given(st.floats(0.01, 100.0), st.floats(0.04, 30.0))
def test_continuous_fit_has_mean_and_scv(mean: float, scv: float):
    # one shape for all: compiled once

    part = (
        phase_type_fit.fit_low_variability(mean, scv, stages=25)
        if scv < 1
        else phase_type_fit.fit_high_variability(mean, scv)
    )
    assert float(part.mean) == pytest.approx(mean, rel=1e-12)
    assert float(part.scv) == pytest.approx(scv, rel=1e-10)
    assert (np.asarray(part.start) >= 0).all()


@settings(deadline=None, derandomize=True, max_examples=12)
@given(st.floats(1.001, 20.0), st.floats(0.0, 1.0), st.booleans())
def test_discrete_fit_has_mean_and_scv(mean: float, share: float, bursty: bool):
    middle, part = 1 - 1 / mean, mean % 1
    least = part * (1 - part) / mean**2
    scv = middle + 20 * share if bursty else least + share * (middle - least)
    fitted = (
        phase_type_fit.fit_discrete_high_variability(mean, scv)
        if bursty
        else phase_type_fit.fit_discrete_low_variability(mean, scv, stages=20)
    )
    assert float(fitted.mean) == pytest.approx(mean, rel=1e-11)
    # the variance of nearly constant lengths is a difference of squares
    assert float(fitted.scv) == pytest.approx(scv, rel=1e-9, abs=1e-11)
    assert (np.asarray(fitted.matrix) >= 0).all()
    assert (np.asarray(fitted.start) >= 0).all()


@pytest.mark.parametrize("slots", [1, 2, 5])
def test_constant_lengths_are_met_exactly(slots: int):
    np.testing.assert_allclose(
        pmf(phase_type_fit.fit_discrete(slots, 0.0), slots + 1), lattice.point(slots), atol=1e-15
    )


@pytest.mark.parametrize(("scv", "phases"), [(1.0, 2), (0.5, 2), (1 / 3, 3), (0.3, 4), (0.05, 20)])
def test_number_of_phases(scv: float, phases: int):
    part = phase_type_fit.fit(1.0, scv)
    assert len(np.asarray(part.start)) == phases
    if scv in (0.5, 1 / 3):  # exactly Erlang
        assert np.asarray(part.start).max() == pytest.approx(1.0, abs=1e-12)


def test_fit_is_differentiable_with_spare_stages():
    with jax.enable_x64(True):

        def third(mean: jax.Array, scv: jax.Array) -> jax.Array:
            low = phase_type_fit.fit_low_variability(mean, scv, stages=5)
            high = phase_type_fit.fit_high_variability(mean, scv + 1.0)
            slots = phase_type_fit.fit_discrete_low_variability(mean, scv / 2, stages=5)
            bursts = phase_type_fit.fit_discrete_high_variability(mean, scv + 1.0)
            return low.moment(3) + high.moment(3) + slots.moment(3) + bursts.moment(3)

        solve = jax.jit(jax.value_and_grad(third, argnums=(0, 1)))  # one compilation
        step = 1e-5
        for which, slope in enumerate(solve(4.0, 0.41)[1]):
            at = [np.array([4.0, 0.41]) + sign * step * np.eye(2)[which] for sign in (1, -1)]
            difference = (solve(*at[0])[0] - solve(*at[1])[0]) / (2 * step)
            assert float(slope) == pytest.approx(float(difference), rel=1e-7)


def test_spare_stages_change_nothing():
    plain, spare = (
        phase_type_fit.fit_low_variability(2.0, 0.4),
        phase_type_fit.fit_low_variability(2.0, 0.4, stages=7),
    )
    assert float(plain.moment(3)) == pytest.approx(float(spare.moment(3)), rel=1e-13)


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        (lambda: phase_type_fit.fit(1.0, 0.0), "scv"),
        (lambda: phase_type_fit.fit(-1.0, 0.5), "mean"),
        (lambda: phase_type_fit.fit_low_variability(1.0, 0.1, stages=5), "stages"),
        (lambda: phase_type_fit.fit_high_variability(1.0, 0.9), "scv"),
        (lambda: phase_type_fit.fit_discrete(0.5, 1.0), "one slot"),
        (lambda: phase_type_fit.fit_discrete(2.5, 0.01), "scv must be at least 0.04"),
        (lambda: phase_type_fit.fit_discrete_high_variability(1.0, 0.5), "mean must be above 1"),
        (lambda: jax.jit(lambda x: phase_type_fit.fit(1.0, x).mean)(0.5), "compiled"),
        (lambda: DiscretePhaseType([1.0], [[0.5, 0.5]]), "shapes"),
        (lambda: DiscretePhaseType([1.0], [[0.5]], [0.4]), "sum to 1"),
        (lambda: ContinuousPhaseType([0.5], [[-1.0]]), "start"),
        (lambda: ContinuousPhaseType([1.0, 0.0], [[-1.0, 2.0], [0.0, -1.0]]), "negative"),
        (lambda: phase_type.convolve(geometric(0.5), exponential(1.0)), "all be discrete"),
        (lambda: phase_type.geometric_sum(geometric(0.5), 0.0), "success"),
        (lambda: phase_type.mixture([1.0], [geometric(0.5), geometric(0.4)]), "weights"),
    ],
)
def test_impossible_requests_are_refused(call, complaint: str):
    with pytest.raises(ValueError, match=complaint):
        call()
