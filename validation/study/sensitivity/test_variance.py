"""Sobol and Morris on functions whose indices are known."""

import numpy as np
import pytest

from btqueue.study.sensitivity.variance import (
    TooFewPoints,
    morris_effects,
    morris_points,
    sobol_indices,
    sobol_points,
)

NAMES = ("x1", "x2", "x3")


def ishigami(shares: np.ndarray) -> np.ndarray:
    x = np.pi * (2 * shares - 1)
    return (np.sin(x[:, 0]) + 7 * np.sin(x[:, 1]) ** 2 + 0.1 * x[:, 2] ** 4 * np.sin(x[:, 0]))[:, None]


def test_sobol_of_the_ishigami_function():
    # Ishigami and Homma 1990: a = 7, b = 0.1.
    a, b = 7.0, 0.1
    alone = 0.5 * (1 + b * np.pi**4 / 5) ** 2
    second, both = a**2 / 8, b**2 * np.pi**8 * (1 / 18 - 1 / 50)
    variance = alone + second + both
    found = sobol_indices(ishigami, NAMES, 2048, seed=3)
    first = np.array([alone, second, 0]) / variance
    total = np.array([alone + both, second, both]) / variance
    np.testing.assert_allclose(found.values["first"][0], first, atol=0.02)
    np.testing.assert_allclose(found.values["total"][0], total, atol=0.02)
    # 99.9 % of a normal error lie within 1.68 of its 95 % half-widths
    assert (np.abs(found.values["total"][0] - total) <= 1.68 * found.values["total_ci95"][0]).all()
    assert (np.abs(found.values["first"][0] - first) <= 1.68 * found.values["first_ci95"][0]).all()
    assert found.points == sobol_points(3, 2048) == 2048 * 5


def test_sobol_is_repeatable_and_rounds_samples_up_to_a_power_of_two():
    one, other = (sobol_indices(ishigami, NAMES, 100, seed=0) for _ in range(2))
    assert one.groups == 128
    for name in one.values:
        np.testing.assert_array_equal(one.values[name], other.values[name])
    assert not np.array_equal(
        one.values["first"], sobol_indices(ishigami, NAMES, 100, seed=1).values["first"]
    )


def test_an_output_that_does_not_vary_has_no_shares():
    def function(shares: np.ndarray) -> np.ndarray:
        noise = 1e-13 * np.random.default_rng(1).standard_normal(len(shares))
        return np.stack([shares[:, 0], 5 + noise], axis=1)

    found = sobol_indices(function, NAMES, 64, seed=1)
    assert np.isnan(found.values["first"][1]).all()
    assert found.values["total"][0] == pytest.approx([1, 0, 0], abs=0.05)
    assert (morris_effects(function, NAMES, 4, seed=1).values["absolute"][1] == 0).all()


def test_morris_of_a_linear_function_is_exact():
    slopes = np.array([2.0, -3.0, 0.5])
    found = morris_effects(lambda shares: (shares @ slopes + 4)[:, None], NAMES, 10, seed=2)
    np.testing.assert_allclose(found.values["mean"][0], slopes, rtol=1e-12)
    np.testing.assert_allclose(found.values["absolute"][0], np.abs(slopes), rtol=1e-12)
    np.testing.assert_allclose(found.values["deviation"][0], 0, atol=1e-12)
    assert found.points == morris_points(3, 10) == 40


def test_morris_tells_an_interaction_by_its_deviation():
    found = morris_effects(lambda s: (s[:, 0] * s[:, 1] + s[:, 2])[:, None], NAMES, 40, seed=2)
    deviation = found.values["deviation"][0]
    assert deviation[0] > 0.2 and deviation[1] > 0.2
    assert deviation[2] == pytest.approx(0, abs=1e-12)


def test_groups_with_a_missing_point_are_left_out_whole():
    slopes = np.array([2.0, -3.0, 0.5])

    def with_holes(shares: np.ndarray) -> np.ndarray:
        values = (shares @ slopes)[:, None]
        values[5] = np.nan
        return values

    found = morris_effects(with_holes, NAMES, 10, seed=2)
    assert (found.groups, found.kept[0], found.missing[0]) == (10, 9, 1)
    np.testing.assert_allclose(found.values["mean"][0], slopes, rtol=1e-12)
    blocks = sobol_indices(with_holes, NAMES, 256, seed=2)
    assert (blocks.groups, blocks.kept[0]) == (256, 255)
    shares = slopes**2 / (slopes**2).sum()
    np.testing.assert_allclose(blocks.values["total"][0], shares, atol=0.05)


def test_too_many_missing_points_make_no_index():
    def mostly_missing(shares: np.ndarray) -> np.ndarray:
        return np.where(shares[:, :1] > 0.3, np.nan, shares[:, :1])

    with pytest.raises(TooFewPoints, match=r"of 40 points have no answer.*narrower"):
        morris_effects(mostly_missing, NAMES, 10, seed=2)
    with pytest.raises(TooFewPoints):
        sobol_indices(mostly_missing, NAMES, 64, seed=2)


def test_pairs_of_the_ishigami_function():
    # x1 and x3 act together, no other two do.
    a, b = 7.0, 0.1
    together = b**2 * np.pi**8 * (1 / 18 - 1 / 50)
    variance = 0.5 * (1 + b * np.pi**4 / 5) ** 2 + a**2 / 8 + together
    found = sobol_indices(ishigami, NAMES, 2048, seed=3, pairs=True)
    pairs, widths = found.values["pair"][0], found.values["pair_ci95"][0]
    np.testing.assert_array_equal(pairs, pairs.T)
    assert np.isnan(np.diag(pairs)).all()
    expected = np.zeros((3, 3))
    expected[0, 2] = expected[2, 0] = together / variance
    off = ~np.eye(3, dtype=bool)
    assert (np.abs(pairs - expected)[off] <= 1.68 * widths[off]).all()
    assert widths[off].max() < 0.1
    assert found.points == sobol_points(3, 2048, pairs=True) == 2048 * 8
    for name in ("first", "total"):  # the same shares as without pairs, from other points
        alone = sobol_indices(ishigami, NAMES, 2048, seed=3).values[name][0]
        np.testing.assert_allclose(found.values[name][0], alone, atol=0.03)
