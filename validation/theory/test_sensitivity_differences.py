"""Derivatives by extrapolated differences: exact ones, and those that do not exist."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from btqueue.queueing.closed_forms import lost_share
from btqueue.queueing.vacations import Time, vacation_queue
from btqueue.study.sensitivity.differences import (
    FLAT,
    NOTHING,
    STEPS,
    Derivative,
    Stencil,
    best_of,
    floor_of,
    judge,
    slopes,
    step_difference,
)


def differentiate(function: Callable[[float], float], x: float, unit: float | None = None) -> Derivative:
    """The derivative of a function as the study takes it: step by step until it is settled."""
    unit = abs(x) if unit is None else unit
    found = []
    for relative in STEPS:
        h = relative * unit
        below, above = (function(x - h), function(x - h / 2)), (function(x + h), function(x + h / 2))
        stencil = Stencil(h, function(x), below, above)
        values = [stencil.centre, *below, *above]
        floor = floor_of(values, unit)
        found.append(slopes(stencil))
        jump = max(FLAT * float(np.nanmax(np.abs(values))), NOTHING)
        if derivative := judge(found, floor, jump):
            return derivative
    return best_of(found, floor)


@settings(deadline=None)
@given(
    st.lists(st.floats(-5, 5), min_size=4, max_size=4),
    st.floats(0.1, 10),
)
def test_a_polynomial_has_its_derivative(coefficients, x):
    polynomial = np.polynomial.Polynomial(coefficients)
    found = differentiate(lambda at: float(polynomial(at)), x)
    exact = float(polynomial.deriv()(x))
    assert found.kind in ("smooth", "flat")
    size = max(abs(float(polynomial(x * share))) for share in (0.99, 1, 1.01))
    assert found.value == pytest.approx(exact, rel=1e-6, abs=2e-6 * size / x + 1e-10)
    assert found.error >= 0


@pytest.mark.parametrize(
    ("function", "x", "exact"),
    [
        (math.exp, 2.0, math.exp(2)),
        (math.sqrt, 3e-5, 0.5 / math.sqrt(3e-5)),
        (lambda x: 1 - (1 - x) ** 2712, 1e-4, 2712 * (1 - 1e-4) ** 2711),
        (lambda x: 1 / (1 - x), 0.95, 400.0),  # a queue near saturation
    ],
)
def test_the_error_estimate_covers_the_error(function, x, exact):
    found = differentiate(function, x)
    assert found.kind == "smooth"
    assert abs(found.value - exact) <= found.error
    assert found.error <= 2e-3 * abs(exact)


@settings(deadline=None)
@given(st.floats(-3, 3), st.floats(-3, 3), st.floats(0.1, 100))
def test_a_kink_shows_its_two_slopes(left, right, x):
    if abs(left - right) < 0.05 * max(abs(left), abs(right), 0.1):
        right = left + 1.0

    def bent(at: float) -> float:
        # the curvature makes it no mere pair of lines
        return 5 * x + (left if at < x else right) * (at - x) + 0.3 * (at - x) ** 2 / x

    found = differentiate(bent, x)
    assert found.kind == "kink"
    assert math.isnan(found.value)
    assert found.left == pytest.approx(left, abs=1e-3)
    assert found.right == pytest.approx(right, abs=1e-3)


def test_a_kink_beside_the_argument_does_no_harm():
    found = differentiate(lambda x: min(x, 1.003), 1.0)
    assert (found.kind, found.value) == ("smooth", pytest.approx(1.0, abs=1e-9))


def test_a_jump_is_none_of_a_derivative():
    found = differentiate(lambda x: x + (0.2 if x >= 1.0 else 0.0), 1.0)
    assert found.kind == "jump"
    assert math.isnan(found.value) and math.isnan(found.left)
    assert found.right == pytest.approx(1.0, abs=1e-9)
    beside = differentiate(lambda x: x + (0.2 if x >= 1.002 else 0.0), 1.0)
    assert (beside.kind, beside.value) == ("smooth", pytest.approx(1.0, abs=1e-9))


def test_at_a_bound_the_derivative_is_from_one_side():
    found = differentiate(lambda x: math.nan if x < 0 else 3 + 2 * x - x**2, 0.0, unit=1e-3)
    assert found.kind == "one-sided"
    assert found.value == pytest.approx(2.0, abs=1e-4)
    assert math.isnan(found.left)
    found = differentiate(lambda x: math.nan if x > 1 else x**3, 1.0)
    assert (found.kind, found.value) == ("one-sided", pytest.approx(3.0, abs=1e-3))


def test_small_noise_is_seen_through_and_large_noise_is_reported():
    noise = np.random.default_rng(5)
    quiet = differentiate(lambda x: x**2 + 1e-9 * noise.standard_normal(), 1.0)
    assert (quiet.kind, quiet.value) == ("smooth", pytest.approx(2.0, abs=1e-3))
    loud = differentiate(lambda x: 1 + 0.01 * x + 1e-2 * noise.standard_normal(), 1.0)
    assert loud.kind == "uncertain"


def test_noise_alone_is_no_slope():
    noise = np.random.default_rng(6)
    found = differentiate(lambda x: 1.0 + 1e-10 * noise.standard_normal(), 1.0)
    assert (found.kind, found.value) == ("flat", 0.0)
    assert differentiate(lambda x: 0.0, 1.0).kind == "flat"


def test_nothing_can_be_said_without_values():
    assert differentiate(lambda x: 1.0 if x == 1.0 else math.nan, 1.0).kind == "none"
    assert step_difference(math.nan, 1.0, math.nan).kind == "none"


def test_whole_numbers_have_steps():
    found = step_difference(4.0, 9.0, 16.0)
    assert (found.kind, found.left, found.right, found.value) == ("step", 5.0, 7.0, 6.0)
    assert step_difference(math.nan, 9.0, 16.0).value == 7.0


def test_differences_of_a_chain_agree_with_the_slope_of_its_formula():
    # packets of 300 bytes on a line with a rate in kbit/s; the unit of time is the service of one
    rate = sympy.Symbol("rate", positive=True)
    exact = float(sympy.diff(lost_share(300.0 / rate, 22), rate).subs(rate, 340.0))

    def loss(at: float) -> float:
        return vacation_queue(
            rate=300.0 / at, service=Time(1.0, 1.0), vacations=None, capacity=22
        ).packet_loss

    found = differentiate(loss, 340.0)
    assert found.kind == "smooth"
    assert abs(found.value - exact) <= found.error + 1e-9 * abs(exact)
    assert found.value == pytest.approx(exact, rel=1e-5)
