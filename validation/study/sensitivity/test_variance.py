"""Sobol on functions whose indices are known."""

import numpy as np

from btqueue.study.sensitivity.over_ranges import (
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
