"""Derivatives that a sensitivity study tells: of steps of whole numbers, and of simulations in pairs."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from btqueue.study.sensitivity.factors import Factor
from btqueue.study.sensitivity.local import bends, of_simulations, of_steps, reaction

numbers = st.floats(-100, 100)


@given(numbers.filter(lambda slope: abs(slope) > 0.1), st.integers(1, 9))
def test_the_steps_of_a_line_are_its_slope(slope, step):
    found = of_steps(50.0, 50.0 - slope * step, 50.0 + slope * step, step)
    assert found.kind == "step" and not bends(found.left, found.right)
    assert (found.derivative, found.left, found.right) == pytest.approx((slope,) * 3)


def test_steps_on_one_side_on_none_and_of_a_bend():
    assert of_steps(1.0, math.nan, math.nan, 1).kind == "none"
    one_sided = of_steps(1.0, math.nan, 1.2, 0.1, "one-sided")
    assert one_sided.kind == "one-sided" and one_sided.derivative == pytest.approx(2.0)
    bent = of_steps(1.0, 0.5, 1.0, 1)
    assert bends(bent.left, bent.right) and (bent.left, bent.right) == (0.5, 0.0)


def samples(slope_below, slope_above, noise, rng, count=8):
    """Return replications below, at and above 0, half a unit away, with common random numbers."""
    common, own = rng.standard_normal(count), noise * rng.standard_normal((2, count))
    return list(common - 0.5 * slope_below + own[0]), list(common), list(common + 0.5 * slope_above + own[1])


def test_common_random_numbers_cancel_and_a_kink_beyond_its_interval_is_told():
    rng = np.random.default_rng(2)
    straight = of_simulations(*samples(3.0, 3.0, 0.0, rng), (-0.5, 0.5))
    assert straight.kind == "secant"
    assert (straight.derivative, straight.error) == pytest.approx((3.0, 0.0), abs=1e-12)
    found = of_simulations(*samples(3.0, 0.0, 0.01, rng), (-0.5, 0.5))
    assert found.kind == "kink" and math.isnan(found.derivative)
    assert (found.left, found.right) == pytest.approx((3.0, 0.0), abs=0.1)
    assert of_simulations(*samples(3.0, 2.5, 0.01, rng), (-0.5, 0.5)).kind == "secant"


def test_what_is_missing_or_does_not_move():
    one_side = of_simulations([], [1.0, 2.0, 3.0], [2.0, 3.0, 4.0], (-1.0, 1.0))
    assert one_side.kind == "secant" and one_side.derivative == 1.0 and math.isnan(one_side.left)
    still = of_simulations([1.0, 2.0], [1.0, 2.0], [1.0, 2.0], (-1.0, 1.0))
    assert (still.kind, still.derivative, still.error) == ("secant", 0.0, 0.0)
    assert of_simulations([], [1.0, 2.0], [], (-1.0, 1.0)).kind == "none"
    assert of_simulations([math.nan] * 3, [1.0] * 3, [math.nan] * 3, (-1.0, 1.0)).kind == "none"


def test_the_interval_of_a_secant_is_students_of_the_slopes_of_the_replications():
    below, here, above = samples(0.5, 0.5, 0.3, np.random.default_rng(5))
    found = of_simulations(below, here, above, (-0.5, 1.5))
    slopes = (np.array(above) - below) / 2.0
    half_width = stats.t.ppf(0.975, 7) * stats.sem(slopes)
    assert (found.derivative, found.error) == pytest.approx((slopes.mean(), half_width), rel=1e-12)


@pytest.mark.parametrize(("noise", "shown"), [(0.01, True), (30.0, False)])
def test_an_elasticity_whose_sign_the_simulations_do_not_show_is_none(noise, shown):
    random = np.random.default_rng(4)
    here = random.normal(100.0, 1.0, 8)
    below, above = here - 1.0 + random.normal(0, noise, 8), here + 1.0 + random.normal(0, noise, 8)
    slope = of_simulations(below.tolist(), here.tolist(), above.tolist(), (-1.0, 1.0))
    found = reaction(Factor("polling.limit", 10, True, None), 100.0, slope, 99.0, 101.0)
    assert (slope.kind == "secant") == shown
    assert math.isfinite(found["elasticity"]) == shown
